"""`image`: pixels, encoded or raw."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem, one_of, show_shape
from recordspec.schema.features.feature import LATER, READING, WRITING, Invalid, Traits, ValueType
from recordspec.schema.features.geometry import Pictures, Resize, Turn, resized, resized_jpeg, sides_of
from recordspec.schema.features.option_checks import check_sizes, check_value, problem, static
from recordspec.schema.features.stored import check_bytes, check_media, each_refused
from recordspec.schema.media import resizing
from recordspec.schema.media.decoders import decode_webp
from recordspec.schema.media.images import ImageEncoding, decoded, encoded, header_of, mask_pixels
from recordspec.schema.tensors import Tensor, TypeSpec, ragged_spec, reshaped
from recordspec.schema.values import Array, BadValue
from recordspec.wire.arrays import ArrowArray, Ints, bytes_in, flat_of, to_arrow
from recordspec.wire.columns import Column, Fixed

# Channels supported by the codecs of both TensorFlow and Pillow.
_CHANNELS = {"png": (1, 3, 4), "jpeg": (1, 3), "webp": (3, 4), "bmp": (1, 3), "gif": (3,)}
_DEEP = ("png", "raw")  # encodings that can hold 16 bits per channel
_LOSSY = ("jpeg", "webp")


@dataclass(frozen=True, kw_only=True)
class Image(Pictures):
    """An image.

    Given as a path, as the bytes of a file, as an array `[h, w, c]` (or `[h, w]` for one channel) of `dtype`,
    or as a PIL image. A file in the encoding is stored unchanged; any other file is encoded again, or decoded
    with `encoding: raw`. Bytes are always the bytes of a file: pixels without a header are given as an array.
    Decodes to a dense tensor `[h, w, c]`; if height or width is null, and without `resize`, a batch is a
    RaggedTensor `[n, (h), (w), c]`.

    Attributes:
        shape: height, width, channels; height and width may be null.
        encoding: png, jpeg (lossy), webp, bmp, gif (at most 256 colours), or raw bytes.
        dtype: uint8; uint16 for png and raw.
        quality: the quality of images encoded as JPEG or WebP, 1 to 100. By default 95 for JPEG, lossless for
            WebP.
        convert: whether images of other modes are converted at write to the channels and the dtype: grey and
            colour images, palettes (to their colours), alpha channels, CMYK, and 16 bits (by their upper 8).
            By default such an image is an error, as is a file with the suffix of another format.
        background: the value, from 0 to white, on which `convert` draws transparent pixels if the shape has
            no alpha channel; by default transparent images are errors.
        orientation: how an EXIF orientation is handled: `keep` stores the image unchanged (TensorFlow's
            decoders ignore the orientation), `upright` turns the image together with its boxes, and `error`
            raises an error.
        pad: the padding value of images of different sizes if `fit` makes a batch dense, and of steps; 0 by
            default.
        resize: the height and width to which images are resized at read, or a mapping such as
            `{size: [160, 160], aspect: crop}`; the stored bytes do not change.
        mask_of: the image whose pixels this mask classifies. A mask has one channel. It stores the indices of
            a file with a palette, and 0 and 1 for a file with one bit. It is turned, resized (with the
            nearest pixel) and augmented together with its image; `pad` is the class of pixels added by
            `aspect: pad`.
    """

    kind: ClassVar[str] = "image"

    shape: tuple[int | None, ...] = (None, None, 3)
    encoding: ImageEncoding = "png"
    dtype: Literal["uint8", "uint16"] = "uint8"
    quality: int | None = field(default=None, metadata=WRITING)
    convert: bool = field(default=False, metadata=WRITING | LATER)
    background: int | None = field(default=None, metadata=WRITING | LATER)
    orientation: Literal["keep", "upright", "error"] = field(default="keep", metadata=WRITING)
    pad: int | None = field(default=None, metadata=READING)
    resize: tuple[int, ...] | Resize | None = field(default=None, metadata=READING)
    mask_of: str | None = field(default=None, metadata=READING)

    def option_problems(self) -> Iterator[Problem]:
        yield from check_value("pad", self.pad, self.dtype, ())
        if self.resizing is not None:
            yield from self.resizing.option_problems()
            if self.resizing.scaled_decoding and self.encoding != "jpeg":
                yield problem("resize", f"no scaled_decoding for {self.encoding}", "one", "only jpeg has it")
        if len(self.shape) != 3 or self.shape[-1] is None:
            expected = "[height, width, channels], the channels known"
            yield problem("shape", expected, show_shape(self.shape))
            return
        known = _CHANNELS.get(self.encoding)
        if known and self.shape[2] not in known:
            expected = f"{one_of(map(str, known))} channels for {self.encoding}"
            yield problem("shape", expected, str(self.shape[2]))
        yield from check_sizes("shape", tuple(size for size in self.shape if size is not None))
        if self.mask_of is not None:
            yield from self._problems_of_mask()
        if self.encoding == "raw" and None in self.shape:
            yield problem("shape", "sizes that are known for raw", show_shape(self.shape))
        if self.dtype == "uint16" and self.encoding not in _DEEP:
            yield problem("dtype", f"uint8 for {self.encoding}", "`uint16`")
        yield from self._problems_of_writing()

    def _problems_of_writing(self) -> Iterator[Problem]:
        if self.quality is not None and self.encoding not in _LOSSY:
            hint = "only jpeg and webp have one"
            yield problem("quality", f"none for {self.encoding}", str(self.quality), hint)
        elif self.quality is not None and not 1 <= self.quality <= 100:
            yield problem("quality", "1 to 100", str(self.quality))
        yield from check_value("background", self.background, self.dtype, ())
        if self.background is not None and not self.convert:
            yield problem("background", "none without `convert: true`", str(self.background))
        elif self.background is not None and self.channels == 4:
            yield problem(
                "background", "none with 4 channels", str(self.background), "they keep transparency"
            )

    def _problems_of_mask(self) -> Iterator[Problem]:
        if self.channels != 1:
            yield problem("shape", "1 channel of a mask", show_shape(self.shape))
        if self.encoding not in ("png", "raw"):
            yield problem("encoding", "png or raw for a mask", f"`{self.encoding}`")
        others = {"convert": self.convert, "orientation": self.orientation != "keep"}
        for name in (name for name, is_given in others.items() if is_given):
            hint = f"it is turned with `{self.mask_of}`, and classes are kept"
            yield problem(name, "none of a mask", f"`{getattr(self, name)}`".lower(), hint)
        if isinstance(self.resize, Resize) and self.resize.method not in (Resize.method, "nearest"):
            hint = "others mix classes"
            yield problem("resize", "`method: nearest` of a mask", f"`{self.resize.method}`", hint)
        if self.resizing is not None and self.resizing.aspect == "pad" and self.pad is None:
            yield problem("pad", "the class of the pixels that `aspect: pad` adds to a mask", "none")

    @property
    def resizing(self) -> Resize | None:
        resize = Resize(size=self.resize) if isinstance(self.resize, tuple) else self.resize
        if self.mask_of is None or resize is None:
            return resize
        return replace(resize, method="nearest", antialias=False)

    def among(self, names: Container[str]) -> Image:
        if self.mask_of is None or self.mask_of in names:
            return self
        return replace(self, mask_of=None, resize=self.resizing)

    def _mask_problems(self, image: Pictures) -> Iterator[Problem]:
        if not isinstance(image, Image):
            yield problem("mask_of", "an image", f"`{image.name}`, a {image.kind}")
            return
        if self.shape[:2] != image.shape[:2]:
            expected = f"height and width as `{image.name}`, {show_shape(image.shape[:2])}"
            yield problem("shape", expected, show_shape(self.shape[:2]))
        ours, theirs = self.resizing, image.resizing
        if (ours and (ours.size, ours.aspect)) != (theirs and (theirs.size, theirs.aspect)):
            expected, got = f"that of `{image.name}`", "none" if ours is None else "another"
            if theirs is not None:
                expected += f", `{{size: {list(theirs.size)}, aspect: {theirs.aspect}}}`"
            yield problem("resize", expected, got)

    def _moved_with(self, row: int, value: Any, image: Pictures, picture: Any) -> Any:
        pixels, sides, turn = (
            mask_pixels(self, row, value),
            image.sides_given(picture),
            image.turn_of(picture),
        )
        if sides is not None and pixels.shape[:2] != sides:
            expected = f"{show_shape(sides)} pixels, as `{image.name}` has"
            hint = "" if turn is None else "a mask is given as the image is, before it is turned"
            raise BadValue(row, expected, show_shape(pixels.shape[:2]), hint)
        return pixels if turn is None else np.ascontiguousarray(turn.pixels(pixels))

    def sides_given(self, value: Any) -> tuple[int, int] | None:
        if isinstance(value, np.ndarray):
            return value.shape[:2] if value.ndim > 1 else None
        header = header_of(value)
        return None if header is None else header[1:]

    @property
    def is_turned(self) -> bool:
        return self.orientation == "upright"

    @property
    def not_turned(self) -> Image:
        return replace(self, orientation="keep")

    def turn_of(self, value: Any) -> Turn | None:
        header = header_of(value) if self.is_turned else None
        return None if header is None or header[0] == 1 else Turn(*header)

    @cached_property
    def traits(self) -> Traits:
        is_coded = self.encoding != "raw"
        may_grow = is_coded or self.resize is not None
        return Traits(per_example=is_coded, may_grow=may_grow, mask_of=self.mask_of)

    @property
    def channels(self) -> int:
        return self.shape[2] or 0

    @property
    def value_type(self) -> ValueType:
        return ValueType("media")

    def columns(self) -> tuple[Column, ...]:
        return (Column(key=self.stored, storage="bytes", layout=Fixed()),)

    def encode(self, values: Any) -> tuple[ArrowArray, ...]:
        if self.mask_of is not None:
            values = [mask_pixels(self, row, value) for row, value in enumerate(values)]
        return (to_arrow([encoded(self, row, value) for row, value in enumerate(values)]),)

    def invalid_stored(self, array: ArrowArray) -> Iterator[Invalid]:
        if self.encoding != "raw":
            return each_refused(array, lambda data: check_media(self, self.encoding, data))
        size = math.prod(static(self.shape)) * np.dtype(self.dtype).itemsize
        return each_refused(array, lambda data: check_bytes(len(data), size, varies=False))

    @property
    def restored_type(self) -> ValueType | None:
        return ValueType(self.dtype, self.shape) if self.encoding == "raw" else None

    def restored(self, stored: Mapping[str, Any]) -> Any:
        if stored.get(self.stored) is None:
            return None
        (data,) = stored[self.stored]
        if self.encoding != "raw":
            return data
        return np.frombuffer(data, np.dtype(self.dtype).newbyteorder("<")).reshape(static(self.shape))

    def decode(self, columns: Mapping[str, Tensor]) -> Tensor:
        return self.pixels(columns[self.stored])

    def pixels(self, data: Tensor) -> Tensor:
        """Decodes stored bytes, string `[]`, to pixels `[h, w, c]`; raw bytes may also be string `[n]`."""
        return self._pixels_with_sides(data)[0]

    def decode_with_sides(self, columns: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        return self._pixels_with_sides(columns[self.stored])

    def _pixels_with_sides(self, data: Tensor) -> tuple[Tensor, Tensor]:
        resize = self.resizing if self.encoding == "jpeg" else None
        if resize is not None and (resize.scaled_decoding or resize.aspect == "crop"):
            return resized_jpeg(data, self.shape, resize, self.pad)
        pixels = self._stored_pixels(data)
        sides = sides_of(pixels, data)
        return pixels if self.resizing is None else resized(pixels, self.resizing, self.pad), sides

    @property
    def decoded_shape(self) -> tuple[int | None, ...]:
        """The height, width and channels of decoded images."""
        return self.shape if self.resizing is None else (*self.resizing.size, self.channels)

    def _stored_pixels(self, data: Tensor) -> Tensor:
        if self.encoding == "raw":
            return reshaped(tf.io.decode_raw(data, tf.as_dtype(self.dtype)), data, static(self.shape))
        if self.encoding == "jpeg":
            pixels = tf.io.decode_jpeg(data, self.channels)
        elif self.encoding == "webp":
            pixels = decode_webp(data, self.channels)
        elif self.encoding == "bmp":
            pixels = tf.io.decode_bmp(data)  # the op does not accept `channels=1`
        elif self.encoding == "gif":
            pixels = tf.io.decode_gif(data)[0]
        else:
            pixels = tf.io.decode_png(data, self.channels, tf.as_dtype(self.dtype))
        return tf.ensure_shape(pixels, self.shape)

    def decode_numpy(self, columns: Mapping[str, ArrowArray]) -> Any:
        return self.decode_numpy_with_sides(columns)[0]

    def decode_numpy_with_sides(self, columns: Mapping[str, ArrowArray]) -> tuple[Any, Ints]:
        stored = bytes_in(flat_of(columns[self.stored]))
        sides = np.zeros((len(stored), 2), np.int64)
        images = self._read(stored, sides)
        return resizing.stacked(images, len(stored), self.decoded_shape, self.dtype), sides

    def _read(self, stored: Sequence[bytes], sides: Ints) -> Iterator[Array]:
        """Decodes the images one after another, since the pixels of all would not fit into the
        processor's cache.
        """
        for row, (pixels, size) in enumerate(self._images(stored)):
            sides[row] = size
            if self.resizing is not None:
                pixels = resizing.resized(pixels, size, self.resizing, self.pad or 0)
            yield pixels

    def _images(self, stored: Sequence[bytes]) -> Iterator[tuple[Array, tuple[int, ...]]]:
        """The pixels of stored images before they are resized, each `[h, w, c]`, with their height and
        width. Raises BadValue for an image that does not decode, or has another shape.
        """
        for row, data in enumerate(stored):
            if self.encoding == "raw":
                size = math.prod(static(self.shape)) * np.dtype(self.dtype).itemsize
                if len(data) != size:
                    raise BadValue(row, f"{size} bytes", str(len(data)))
                pixels = self.restored({self.stored: [data]})
                yield pixels, pixels.shape[:2]
            else:
                yield decoded(self, row, data)

    def spec(self) -> TypeSpec:
        if None in self.decoded_shape:
            return ragged_spec(self.decoded_shape, self.dtype)
        return tf.TensorSpec(self.decoded_shape, self.dtype)

    def sample(self, rng: np.random.Generator) -> Any:
        shape = [int(rng.integers(1, 9)) if size is None else size for size in self.shape]
        if self.encoding == "gif":  # with few enough colours for a palette
            few = rng.integers(0, 256, (4, 3), np.uint8)
            return few[rng.integers(0, 4, shape[:2])]
        return rng.integers(0, np.iinfo(self.dtype).max, shape, self.dtype, endpoint=True)
