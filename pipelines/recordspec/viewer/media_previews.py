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
from recordspec.tables.cells import cell_of, image_of

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
    if cell.kind not in ("image", "audio"):
        got = {"missing": "a missing value", "bytes": "other bytes", "text": "other bytes"}
        problem = Problem(expected="an image or audio", got=got.get(cell.kind, str(value.type)))
        raise RecordError(problem)
    measures = (
        cell.info.measures if cell.info else {"height": cell.shape[0] or 0, "width": cell.shape[1] or 0}
    )
    if measures.get("width", 0) * measures.get("height", 0) > _MOST_PIXELS:
        raise RecordError(Problem(expected="an image of fewer pixels", got=f"{measures}"))
    if cell.info is None:
        return picture(cell.value, large=large)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if cell.kind == "audio":
                return _sound(cell.value)
            with images.pillow("images").open(io.BytesIO(cell.value)) as image:
                image.draft("RGB", (_LARGE, _LARGE) if large else (_SMALL, _SMALL))
                image.load()
                return _image(image, large=large)
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
