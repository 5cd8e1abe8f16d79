"""Re-encodes images and audio for the page. The bytes of a record are never sent to the browser as media."""

from __future__ import annotations

import io
import warnings
import wave
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError
from recordspec.schema.media import images, sounds
from recordspec.tables.column_types import is_image_shape, is_list_type, leaves_of
from recordspec.tables.media_headers import media_info
from recordspec.wire.arrays import to_numpy
from recordspec.wire.file_types import type_name

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
    types = arrow().types
    if not value.is_valid:
        raise RecordError(Problem(expected="an image or a sound", got="a missing value"))
    is_file = types.is_binary(value.type) or types.is_large_binary(value.type)
    if not is_file and not is_list_type(value.type):
        raise RecordError(Problem(expected="an image or a sound", got=str(value.type)))
    if not is_file:
        leaves, shape = leaves_of(value.values)
        if not is_image_shape(shape) or len(leaves) > _MOST_PIXELS:
            raise RecordError(Problem(expected="an image", got=f"{leaves.type} {shape}"))
        return picture(to_numpy(leaves).reshape(shape), large=large)
    data = value.as_buffer().to_pybytes()
    info = media_info(data, type_name(data) or "")
    if info is None:
        raise RecordError(Problem(expected="an image or a sound", got="other bytes"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if "seconds" in info.measures:
                return _sound(data)
            if info.measures["width"] * info.measures["height"] > _MOST_PIXELS:
                raise RecordError(Problem(expected="an image of fewer pixels", got=f"{info.measures}"))
            with images.pillow("images").open(io.BytesIO(data)) as image:
                image.draft("RGB", (_LARGE, _LARGE) if large else (_SMALL, _SMALL))
                image.load()
                return _image(image, large=large)
    except RecordError:
        raise
    except Exception as error:  # Pillow raises many types for bad data
        raise RecordError(Problem(expected="an image or a sound", got=str(error))) from None


def picture(pixels: Any, *, large: bool) -> Media:
    """Encodes pixels, NumPy `[height, width, 1, 3 or 4]`, as an image."""
    return _image(_drawn(pixels), large=large)


def _drawn(pixels: Any) -> Any:
    """Converts pixels `[height, width, channels]` to an image. Floats are scaled from their minimum to their
    maximum."""
    if pixels.dtype.kind == "f":
        finite = np.nan_to_num(pixels.astype(np.float64), posinf=0.0, neginf=0.0)
        low, high = float(finite.min()), float(finite.max())
        pixels = ((finite - low) * (255 / (high - low or 1))).astype(np.uint8)
    elif pixels.dtype != np.uint8:
        pixels = (
            (pixels.astype(np.int64) >> (8 if pixels.dtype == np.uint16 else 0)).clip(0, 255).astype(np.uint8)
        )
    return images.pillow("images").fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


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
