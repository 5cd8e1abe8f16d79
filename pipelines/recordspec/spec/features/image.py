"""`image`: pixels, as PNG, as JPEG, or raw."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem, describe, missing_extra, one_of, show_shape
from recordspec.spec.features.base import Feature, Tensor, TypeSpec
from recordspec.spec.features.options import check_sizes, problem
from recordspec.spec.tensors import ragged_spec, reshaped
from recordspec.spec.values import Array, BadValue
from recordspec.wire.columns import Cells, Column, Fixed
from recordspec.wire.strings import Strings

# What the codecs of TensorFlow and Pillow both hold.
_CHANNELS = {"png": (1, 3, 4), "jpeg": (1, 3)}
_DTYPES = {"png": ("uint8", "uint16"), "jpeg": ("uint8",), "raw": ("uint8", "uint16")}
# What Pillow calls the pixels that an array of these channels and dtype holds.
_MODES = {
    ("L", 1, "uint8"),
    ("RGB", 3, "uint8"),
    ("RGBA", 4, "uint8"),
    ("I;16", 1, "uint16"),
}
# What TensorFlow's decoder brings to these channels and dtype without losing anything: grey to colour.
_DECODED = {
    (1, "uint8"): ("1", "L"),
    (3, "uint8"): ("1", "L", "P", "RGB"),
    (4, "uint8"): ("1", "L", "LA", "P", "PA", "RGB", "RGBA"),
    (1, "uint16"): ("I;16", "I"),
}
_SIGNATURES = {
    "png": b"\x89PNG\r\n\x1a\n",
    "jpeg": b"\xff\xd8\xff",
    "gif": b"GIF8",
    "bmp": b"BM",
    "webp": b"RIFF",
    "html": b"<",
}


@dataclass(frozen=True, kw_only=True)
class Image(Feature):
    """An image.

    Given as a path, as bytes that have the encoding (they are stored as they are), as an array
    `[h, w, c]` (or `[h, w]` of one channel) of `dtype`, or as a PIL image. Decodes to a dense tensor
    `[h, w, c]`; where height or width is null, a batch is a RaggedTensor `[n, (h), (w), c]`.

    Attributes:
        shape: height, width, channels; height and width may be null.
        encoding: png, jpeg (lossy), or raw bytes.
        dtype: uint8; uint16 for png and raw.
        quality: of a JPEG made here, 1 to 100.
    """

    kind: ClassVar[str] = "image"

    shape: tuple[int | None, ...] = (None, None, 3)
    encoding: Literal["png", "jpeg", "raw"] = "png"
    dtype: Literal["uint8", "uint16"] = "uint8"
    quality: int = 95

    def check(self) -> Iterator[Problem]:
        if len(self.shape) != 3 or self.shape[-1] is None:
            expected = "[height, width, channels], the channels known"
            yield problem("shape", expected, show_shape(self.shape))
            return
        known = _CHANNELS.get(self.encoding)
        if known and self.shape[2] not in known:
            expected = f"{one_of(map(str, known))} channels for {self.encoding}"
            yield problem("shape", expected, str(self.shape[2]))
        yield from check_sizes("shape", tuple(size for size in self.shape if size is not None))
        if self.encoding == "raw" and None in self.shape:
            yield problem("shape", "sizes that are known for raw", show_shape(self.shape))
        if self.dtype not in _DTYPES[self.encoding]:
            expected = f"{one_of(_DTYPES[self.encoding])} for {self.encoding}"
            yield problem("dtype", expected, f"`{self.dtype}`")
        elif self.dtype == "uint16" and self.encoding == "png" and self.shape[2] != 1:
            yield problem("dtype", "uint8 for several channels", "`uint16`", "Pillow writes no other")
        if not 1 <= self.quality <= 100:
            yield problem("quality", "1 to 100", str(self.quality))

    @property
    def per_example(self) -> bool:
        return self.encoding != "raw"

    @property
    def _channels(self) -> int:
        return self.shape[2] or 0

    def columns(self) -> tuple[Column, ...]:
        return (Column(key=self.stored, storage="bytes", layout=Fixed()),)

    def encode(self, values: Any) -> tuple[Cells, ...]:
        encoded = Strings.of([self._encoded(row, value) for row, value in enumerate(values)])
        return (Cells(flat=encoded, lengths=1, rows=len(values)),)

    def _encoded(self, row: int, value: Any) -> bytes:
        if isinstance(value, (str, os.PathLike)):
            return self._from_file(row, Path(value))
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self._from_bytes(row, bytes(value), "")
        if isinstance(value, np.ndarray) and not np.ma.is_masked(value):
            return self._from_pixels(row, np.asarray(value))
        pillow = _pillow("images")
        if isinstance(value, pillow.Image):
            self._check_mode(row, value.mode, "")
            return self._from_pixels(row, np.asarray(value))
        raise BadValue(row, "a path, bytes, an array or a PIL image", describe(value))

    def _from_file(self, row: int, path: Path) -> bytes:
        try:
            data = path.read_bytes()
        except (OSError, ValueError) as error:
            got = getattr(error, "strerror", None) or str(error)
            raise BadValue(row, f"an image file at {path}", got) from None
        if self.encoding == "raw":
            image = self._opened(row, data, f"{path}: ")
            if image.mode == "I" and self.dtype == "uint16":  # how Pillow before 11 opens a 16-bit PNG
                image = image.convert("I;16")
            self._check_mode(row, image.mode, f"{path}: ")
            return self._from_pixels(row, np.asarray(image))
        return self._from_bytes(row, data, f"{path}: ")

    def _from_bytes(self, row: int, data: bytes, name: str) -> bytes:
        if self.encoding == "raw":
            size = math.prod(size or 0 for size in self.shape) * np.dtype(self.dtype).itemsize
            if len(data) != size:
                raise BadValue(row, f"{size} bytes, {self._expected()}", f"{len(data)} bytes")
            return data
        if not data.startswith(_SIGNATURES[self.encoding]):
            raise BadValue(row, f"{self.encoding} data", f"{name}{_what_is(data)}")
        image = self._opened(row, data, name)
        if image.mode not in _DECODED.get((self._channels, self.dtype), ()):
            self._check_mode(row, image.mode, name)
        self._check_shape(row, (image.height, image.width, self._channels), name)
        return data

    def _opened(self, row: int, data: bytes, name: str) -> Any:
        pillow = _pillow("images")
        try:
            pillow.open(io.BytesIO(data)).verify()  # the end of a PNG, which `load` does without
            image = pillow.open(io.BytesIO(data))
            image.load()
        except Exception as error:  # Pillow's decoders raise many types for bad data
            expected = f"{self.encoding} data that decodes"
            raise BadValue(row, expected, f"{name}{error}") from None
        return image

    def _from_pixels(self, row: int, pixels: Array) -> bytes:
        if pixels.ndim == 2 and self._channels == 1:
            pixels = pixels[:, :, None]
        if pixels.dtype.name != self.dtype:
            raise BadValue(row, self._expected(), describe(pixels))
        self._check_shape(row, pixels.shape, "")
        if self.encoding == "raw":
            return np.ascontiguousarray(pixels).astype(pixels.dtype.newbyteorder("<")).tobytes()
        pillow = _pillow("making images of arrays")
        squeezed = pixels[:, :, 0] if self._channels == 1 else pixels
        stream = io.BytesIO()
        options = {"quality": self.quality} if self.encoding == "jpeg" else {}
        try:
            pillow.fromarray(np.ascontiguousarray(squeezed)).save(stream, self.encoding, **options)
        except (OSError, ValueError) as error:  # too large a side for a JPEG, say
            raise BadValue(row, f"an image that {self.encoding} can hold", str(error)) from None
        return stream.getvalue()

    def _check_mode(self, row: int, mode: str, name: str) -> None:
        if (mode, self._channels, self.dtype) not in _MODES:
            hint = "convert it, or write the shape and dtype that it has"
            raise BadValue(row, self._expected(), f"{name}mode {mode}", hint)

    def _check_shape(self, row: int, shape: tuple[int, ...], name: str) -> None:
        fits = len(shape) == 3 and all(
            size > 0 if known is None else known == size
            for known, size in zip(self.shape, shape, strict=True)
        )
        if not fits:
            raise BadValue(row, self._expected(), f"{name}shape {show_shape(shape)}")

    def _expected(self) -> str:
        return f"an image {self.dtype} {show_shape(self.shape)}"

    def decode(self, columns: Mapping[str, Tensor]) -> Tensor:
        data = columns[self.stored]
        dtype = tf.as_dtype(self.dtype)
        if self.encoding == "raw":
            known = tuple(size or 0 for size in self.shape)
            return reshaped(tf.io.decode_raw(data, dtype), data, known)
        if self.encoding == "jpeg":
            pixels = tf.io.decode_jpeg(data, self._channels)
        else:
            pixels = tf.io.decode_png(data, self._channels, dtype)
        return tf.ensure_shape(pixels, self.shape)

    def spec(self) -> TypeSpec:
        if None in self.shape:
            return ragged_spec(self.shape, self.dtype)
        return tf.TensorSpec(self.shape, self.dtype)

    def sample(self, rng: np.random.Generator) -> Any:
        shape = [int(rng.integers(1, 9)) if size is None else size for size in self.shape]
        return rng.integers(0, np.iinfo(self.dtype).max, shape, self.dtype, endpoint=True)


def _what_is(data: bytes) -> str:
    """What some bytes are, in a message."""
    if not data:
        return "no bytes at all"
    names = [name for name, start in _SIGNATURES.items() if data.lstrip().startswith(start)]
    return f"{names[0]} data" if names else f"bytes that begin {data[:8]!r}"


@cache
def _pillow(purpose: str) -> Any:
    try:
        from PIL import Image as pillow  # noqa: N813
    except ImportError as error:
        raise missing_extra("Pillow", "image", purpose, error) from None
    return pillow
