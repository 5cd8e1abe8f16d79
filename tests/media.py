"""Images and audio for tests, and the encodings that this installation decodes in graph mode."""

from __future__ import annotations

import io
from functools import cache

import numpy as np
import pytest
import soundfile
from PIL import Image

import recordspec as rs
from recordspec.schema.features.audio import Audio
from recordspec.schema.features.image import Image as ImageFeature

RNG = np.random.default_rng(0)


def image_bytes(pixels: np.ndarray, encoding: str, **options) -> bytes:
    stream = io.BytesIO()
    squeezed = pixels[:, :, 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels
    Image.fromarray(squeezed).save(stream, encoding, **options)
    return stream.getvalue()


def sound_bytes(samples: np.ndarray, rate: int, encoding: str = "WAV", subtype: str | None = None) -> bytes:
    stream = io.BytesIO()
    soundfile.write(stream, samples, rate, format=encoding, subtype=subtype)
    return stream.getvalue()


def tone(seconds: float = 0.25, rate: int = 8000, channels: int = 1) -> np.ndarray:
    """A sine of 440 Hz at half of full scale, int16 `[n, channels]`."""
    wave = np.sin(2 * np.pi * 440 * np.arange(int(seconds * rate)) / rate)
    return np.repeat((wave * 16384).astype(np.int16)[:, None], channels, axis=1)


def photo(height: int = 30, width: int = 40) -> np.ndarray:
    """A smooth picture that lossy codecs hardly change, uint8 `[height, width, 3]`."""
    rows, columns = np.mgrid[0:height, 0:width]
    return np.stack([rows * 200 // height, columns * 200 // width, (rows + columns) * 2], axis=2).astype(
        np.uint8
    )


def noise(channels: int, dtype: str = "uint8") -> np.ndarray:
    """Pixels that no codec can compress, `[7, 5, channels]`."""
    return RNG.integers(0, np.iinfo(dtype).max, (7, 5, channels), dtype, endpoint=True)


@cache
def decodes(encoding: str) -> bool:
    """Whether this installation decodes the encoding in graph mode."""
    feature = ImageFeature(name="x", encoding="webp")
    value: np.ndarray = photo()
    if encoding != "webp":
        feature = Audio(name="x", sample_rate=8000, encoding=encoding)  # type: ignore[assignment,arg-type]
        value = tone() / np.float32(32768)
    schema = rs.Schema(name="s", features=(feature,))
    try:
        schema.decode(schema.encode({"x": value}))
    except (rs.MissingExtra, pytest.skip.Exception):  # or this is a run without TensorFlow
        return False
    return True
