"""Bytes that are no text in a few words: images and sounds by their headers."""

from __future__ import annotations

import io
import struct
import wave

from recordspec.wire.file_types import type_name


def described(data: bytes) -> str:
    """`PNG 28x28`, `WAV 1.2 s at 16 kHz`, `gzip data, 312 bytes`, `12 bytes`. No pixel is decoded.

    Without Pillow and soundfile, only PNG images and WAV files tell their sizes.
    """
    form = type_name(data)
    size = f"{len(data):,} byte{'s' * (len(data) != 1)}"
    if form is None:
        return size
    told = _told(data, form) or _told_by_header(data, form)
    return f"{form}, {size}" if told is None else f"{form.partition(' ')[0]} {told}"


def _told(data: bytes, form: str) -> str | None:
    from recordspec.inspect.stats.media import medium  # the packages behind it take 0.1 s

    found = medium(data, form)
    if found is None:
        return None
    if "seconds" in found.measures:
        return _sound(found.measures["seconds"], found.rate, found.channels)
    return f"{found.measures['width']}x{found.measures['height']}"


def _told_by_header(data: bytes, form: str) -> str | None:
    if form == "PNG image" and len(data) >= 24:
        width, height = struct.unpack_from(">II", data, 16)  # the IHDR chunk comes first
        return f"{width}x{height}"
    if form == "WAV file":
        return _wav(data)
    return None


def _wav(data: bytes) -> str | None:
    try:
        with wave.open(io.BytesIO(data)) as sound:
            rate = sound.getframerate()
            return _sound(sound.getnframes() / rate, rate, sound.getnchannels()) if rate else None
    except (wave.Error, EOFError, struct.error, RuntimeError):  # the last of sizes that are wrong
        return None


def _sound(seconds: float, rate: int, channels: int) -> str:
    length = f"{seconds:,.1f}" if seconds >= 1 else f"{seconds:.2g}"
    several = f", {channels} channels" if channels > 1 else ""
    return f"{length} s at {rate / 1000:g} kHz{several}"
