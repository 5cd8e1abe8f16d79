"""Describes images and audio in byte strings by their headers, without decoding pixels or samples."""

from __future__ import annotations

import io
import logging
import struct
import warnings
import wave
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from recordspec.errors import counted
from recordspec.wire.file_types import type_name

# Without a handler, Python prints warnings on unusual images to stderr; they are no errors here.
logging.getLogger("PIL").addHandler(logging.NullHandler())

_MOST_SAMPLES = 1 << 40  # libsndfile reports 2^63 - 1 frames if the file does not state the number


def describe(data: bytes, size: int | None = None) -> str:
    """Describes bytes: `PNG 28x28`, `WAV 1.2 s at 16 kHz`, `gzip data, 312 bytes`, `12 bytes`. Decodes no
    pixels.

    Without soundfile, only the durations of WAV files are known.

    Args:
        size: the number of bytes, if `data` is only the first of them.
    """
    form = type_name(data)
    count = counted(len(data) if size is None else size, "byte")
    if form is None:
        return count
    info = media_info(data, form)
    if info is not None:
        return info.text
    text = _wav(data) if form == "WAV file" else None
    return f"{form}, {count}" if text is None else f"WAV {text}"


def _wav(data: bytes) -> str | None:
    try:
        with wave.open(io.BytesIO(data)) as sound:
            rate = sound.getframerate()
            return _sound_text(sound.getnframes() / rate, rate, sound.getnchannels()) if rate else None
    except (wave.Error, EOFError, struct.error, RuntimeError):  # RuntimeError: wrong sizes
        return None


def _sound_text(seconds: float, rate: int, channels: int) -> str:
    length = f"{seconds:,.1f}" if seconds >= 1 else f"{seconds:.2g}"
    several = f", {channels} channels" if channels > 1 else ""
    return f"{length} s at {rate / 1000:g} kHz{several}"


@dataclass(frozen=True, kw_only=True)
class MediaInfo:
    """The header of an image or of audio.

    Attributes:
        form: the type, judged by the first bytes.
        mode: Pillow's mode of an image; the rate and channels of audio.
        measures: `width` and `height`, or `seconds`.
        rate, channels: the samples per second and channels of audio; 0 for an image.
        orientation: the EXIF orientation of an image; 1 is upright.
        is_transparent: whether an image has an alpha channel, or a transparent colour.
        takers: the channels and dtypes of the features that store it unchanged; None if unknown, since it is
            corrupt.
    """

    form: str
    mode: str
    measures: Mapping[str, float]
    rate: int = 0
    channels: int = 0
    orientation: int = 1
    is_transparent: bool = False
    takers: frozenset[tuple[int, str]] | None = None

    @property
    def text(self) -> str:
        """`PNG 28x28`, `WAV 1.2 s at 16 kHz`."""
        if "seconds" in self.measures:
            measured = _sound_text(self.measures["seconds"], self.rate, self.channels)
        else:
            measured = f"{self.measures['width']}x{self.measures['height']}"
        return f"{self.form.partition(' ')[0]} {measured}"


def media_info(data: bytes, form: str) -> MediaInfo | None:
    """Reads the header of bytes with a given type, such as `PNG image` or `WAV file`.

    Returns None for other types, for a header that cannot be read, and if a required package is missing.
    """
    read = MEDIA.get(form)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of images with very many pixels, none of which is decoded
            return None if read is None else read(data, form)
    except Exception:  # Pillow raises many types for bad data, or is not installed
        return None


def _image(data: bytes, form: str) -> MediaInfo:
    from recordspec.schema.media import images  # importing it takes 0.1 s

    with images.pillow("the sizes of images").open(io.BytesIO(data)) as image:
        measures = {"width": image.width, "height": image.height}
        return MediaInfo(
            form=form,
            mode=image.mode,
            measures=measures,
            orientation=images.orientation_of(image),
            is_transparent=image.has_transparency_data,
            takers=images.features_storing(data, image),
        )


def image_info(data: bytes) -> MediaInfo | None:
    """Reads the header of an image in any format that Pillow reads, with Pillow's name of the format.

    Returns None for other bytes.
    """
    from recordspec.schema.media import images

    try:
        with images.pillow("the sizes of images").open(io.BytesIO(data)) as image:
            form = f"{image.format} image"
        return _image(data, form)
    except Exception:  # Pillow raises many types for bad data
        return None


def _sound(data: bytes, form: str) -> MediaInfo | None:
    from recordspec.schema.media import sounds

    sound: Any = sounds.opened(data)
    if sound.samplerate <= 0 or not 0 <= sound.frames < _MOST_SAMPLES:
        return None
    mode = f"{sound.samplerate:,} Hz, {counted(sound.channels, 'channel')}"
    return MediaInfo(
        form=form,
        mode=mode,
        measures={"seconds": sound.frames / sound.samplerate},
        rate=sound.samplerate,
        channels=sound.channels,
        takers=sounds.features_storing(data, sound),
    )


# The reader of the header for each format.
MEDIA: dict[str, Callable[[bytes, str], MediaInfo | None]] = {
    **{f"{name} image": _image for name in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WebP")},
    **{f"{name} file": _sound for name in ("WAV", "AIFF", "FLAC", "Ogg", "MP3")},
}
