"""Re-encodes images and audio for the page. The bytes of a record are never sent to the browser as media."""

from __future__ import annotations

import io
import warnings
import wave
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordspec.errors import Problem, RecordError
from recordspec.schema.media import images, sounds
from recordspec.schema.options import format_bytes
from recordspec.tables.cells import Cell, cell_of, image_of
from recordspec.tables.media_headers import MEDIA

# The longer side, in pixels, of an image in a cell and of an enlarged image.
_SMALL, _LARGE = 160, 1600
# Limits of pixels and of audio samples: a small file may decode to a huge image, or to many hours of audio.
_MOST_PIXELS, _MOST_SAMPLES = 1 << 26, 1 << 24


@dataclass(frozen=True, kw_only=True)
class Media:
    """An encoded image or audio file, with its media type."""

    data: bytes
    type: str


def medium(value: Any, *, large: bool) -> Media:
    """Re-encodes a `pyarrow.Scalar`: the bytes of an image or audio file, or lists of pixels. Raises
    RecordError if it is neither, cannot be decoded, or is too large."""
    cell = cell_of(value, is_picture=True)
    if cell.kind == "bytes" and cell.form in MEDIA:  # an error tells why its header cannot be read
        if len(cell.value) < cell.size:
            raise RecordError(Problem(expected="a smaller file", got=format_bytes(cell.size)))
        return _decoded(cell, large=large)
    if cell.kind not in ("image", "audio"):
        got = {"missing": "a missing value", "bytes": "other bytes", "text": "other bytes"}
        problem = Problem(expected="an image or audio", got=got.get(cell.kind, str(value.type)))
        raise RecordError(problem)
    if cell.info is not None:
        return _decoded(cell, large=large)
    _check_size(cell.value.shape[1], cell.value.shape[0])
    return picture(cell.value, large=large)


def _check_size(width: int, height: int) -> None:
    if width * height > _MOST_PIXELS:
        size = f"{width:,} x {height:,}"
        raise RecordError(Problem(expected=f"an image of at most {_MOST_PIXELS:,} pixels", got=size))


def _decoded(cell: Cell, *, large: bool) -> Media:
    """The image or audio file of a cell. Raises RecordError if it cannot be decoded."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if cell.form.endswith(" file"):
                return _sound(cell.value)
            with images.pillow("images").open(io.BytesIO(cell.value)) as image:
                _check_size(*image.size)
                image.draft("RGB", (_LARGE, _LARGE) if large else (_SMALL, _SMALL))
                image.load()
                return _image(image, large=large)
    except RecordError:
        raise
    except Exception as error:  # Pillow raises many types for bad data
        raise RecordError(Problem(expected="an image or audio", got=str(error))) from None


def picture(pixels: Any, *, large: bool) -> Media:
    """Encodes pixels, NumPy `[height, width, 1, 3 or 4]`, as an image."""
    return _image(image_of(pixels), large=large)


def _image(image: Any, *, large: bool) -> Media:
    side = _LARGE if large else _SMALL
    image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    image.thumbnail((side, side))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return Media(data=buffer.getvalue(), type="image/png")


def _sound(data: bytes) -> Media:
    """Encodes audio as a WAV file of 16 bits, of at most some minutes."""
    opened: Any = sounds.opened(data)
    samples = opened.read(
        min(opened.frames, _MOST_SAMPLES // max(opened.channels, 1)), dtype="int16", always_2d=True
    )
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(opened.samplerate)
        file.writeframes(np.ascontiguousarray(samples, "<i2").tobytes())
    return Media(data=buffer.getvalue(), type="audio/wav")
