"""Images and sounds in a few words, by what their first bytes say."""

from __future__ import annotations

import io
import struct
import warnings
import wave
from typing import Any

from recordspec.errors import MissingExtra
from recordspec.wire.recognised import format_of

_IMAGES = {"PNG", "JPEG", "GIF", "BMP", "WebP"}
_SOUNDS = {"WAV", "FLAC", "Ogg", "MP3"}
_MOST_SAMPLES = 1 << 40  # libsndfile says 2^63 - 1 of a file that does not tell


def described(data: bytes) -> str:
    """`PNG 28x28`, `WAV 1.2 s at 16 kHz`, `gzip, 312 bytes`, `12 bytes`. Nothing is decoded."""
    name = format_of(data)
    if name in _IMAGES and (found := _size(name, data)) is not None:
        return f"{name} {found[0]}x{found[1]}"
    if name in _SOUNDS and (told := _length(name, data)) is not None:
        return f"{name} {told}"
    size = f"{len(data):,} byte{'s' * (len(data) != 1)}"
    return size if name is None else f"{name}, {size}"


def _size(name: str, data: bytes) -> tuple[int, int] | None:
    """Width and height. Without Pillow only those of a PNG file are known."""
    from recordspec.spec.media.images import pillow

    try:
        library = pillow("the sizes of images")
    except MissingExtra:
        return _png_size(data) if name == "PNG" else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of images of very many pixels, none of which is decoded
            width, height = library.open(io.BytesIO(data), formats=[name.upper()]).size
    except Exception:  # Pillow raises many types for bad data
        return None
    return int(width), int(height)


def _png_size(data: bytes) -> tuple[int, int] | None:
    return struct.unpack_from(">II", data, 16) if len(data) >= 24 else None  # the IHDR chunk comes first


def _length(name: str, data: bytes) -> str | None:
    """`1.2 s at 16 kHz`. Without soundfile only that of a WAV file of whole numbers is known."""
    from recordspec.spec.media.sounds import soundfile

    try:
        library = soundfile("the lengths of sounds")
    except MissingExtra:
        return _wav_length(data) if name == "WAV" else None
    try:
        found: Any = library.info(io.BytesIO(data))
    except library.LibsndfileError:
        return None
    return _told(found.frames, found.samplerate, found.channels)


def _wav_length(data: bytes) -> str | None:
    try:
        with wave.open(io.BytesIO(data)) as sound:
            return _told(sound.getnframes(), sound.getframerate(), sound.getnchannels())
    except (wave.Error, EOFError, struct.error):
        return None


def _told(samples: int, rate: int, channels: int) -> str | None:
    if rate <= 0 or not 0 <= samples < _MOST_SAMPLES:
        return None
    seconds = samples / rate
    length = f"{seconds:,.1f}" if seconds >= 1 else f"{seconds:.2g}"
    several = f", {channels} channels" if channels > 1 else ""
    return f"{length} s at {rate / 1000:g} kHz{several}"
