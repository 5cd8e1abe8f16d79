"""The geometry of images: how they are turned when they are written and resized when they are read, and how
coordinates in them follow."""

from __future__ import annotations

import abc
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem
from recordspec.schema.features.feature import READING, Feature
from recordspec.schema.features.option_checks import problem
from recordspec.schema.tensors import Tensor
from recordspec.schema.values import Array
from recordspec.wire.arrays import ArrowArray, Ints, Mask

Aspect = Literal["stretch", "crop", "pad"]


@dataclass(frozen=True, kw_only=True)
class Resize:
    """How images are resized when they are read, with `tf.image.resize`.

    Attributes:
        size: height and width in pixels.
        method: the interpolation method; see `tf.image.ResizeMethod`.
        aspect: how an image of another aspect ratio is resized: `stretch` changes its aspect ratio, `crop`
            keeps its centre, and `pad` pads it on both sides with the image's `pad`.
        antialias: whether an anti-aliasing filter is used when an image is made smaller.
        scaled_decoding: whether the decoder makes a JPEG image smaller, by 2, 4 or 8, as far as no side
            becomes smaller than in the resized image. It takes less time, and gives other pixels where an
            image has fine detail, since it averages those that are left out: of photographs of 500x375
            pixels, made 160, 96 and 64 wide and high, the mean difference was 2 to 4 of 255 with
            `antialias`, and 5 to 9 without.
    """

    size: tuple[int, ...]
    method: Literal["bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5"] = "bilinear"
    aspect: Aspect = "stretch"
    antialias: bool = False
    scaled_decoding: bool = False

    def option_problems(self) -> Iterator[Problem]:
        """Yields the problem of a size."""
        if len(self.size) != 2 or min(self.size) < 1:
            yield problem("resize", "[height, width] of at least 1", str(list(self.size)))

    def points(self, points: Tensor, sides: Tensor) -> Tensor:
        """The same points in resized images. Those in a part that `crop` removes lie outside of the image.

        Args:
            points: (x, y) in pixels, float32 `[..., 2]`.
            sides: height and width of the images before, int32 `[..., 2]`, of a shape that broadcasts.
        """
        return resized_points(points, sides, self.size, self.aspect)[0]


@dataclass(frozen=True)
class Turn:
    """How an image is turned when it is written.

    Attributes:
        orientation: its EXIF orientation, 2 to 8 (CIPA DC-008, 4.6.5).
        height, width: of the image that is turned, in pixels.
    """

    orientation: int
    height: int
    width: int

    def points(self, points: Array) -> Array:
        """The same points, (x, y) in pixels, `[..., 2]`, in the turned image."""
        x, y = points[..., 0], points[..., 1]
        if self.orientation in (2, 3, 7, 8):
            x = self.width - x
        if self.orientation in (3, 4, 6, 7):
            y = self.height - y
        return np.stack([y, x] if self.orientation >= 5 else [x, y], axis=-1)

    def pixels(self, pixels: Array) -> Array:
        """The same pixels `[h, w, ...]` in the turned image."""
        if self.orientation in (2, 3, 7, 8):
            pixels = pixels[:, ::-1]
        if self.orientation in (3, 4, 6, 7):
            pixels = pixels[::-1]
        return pixels.swapaxes(0, 1) if self.orientation >= 5 else pixels

    @property
    def turned(self) -> tuple[int, int]:
        """The height and width of the turned image."""
        return (self.width, self.height) if self.orientation >= 5 else (self.height, self.width)


@dataclass(frozen=True)
class ImageTransform:
    """How images are cropped, resized to the size that they had, and flipped, when they are augmented.

    Attributes:
        scale, offset: a point (x, y) in pixels is at `point * scale + offset` after; float32 `[2]`, or
            `[n, 2]` of a batch. The scale is negative if the image is flipped.
        size: width and height of the image, float32, of the same shape.
    """

    scale: Tensor
    offset: Tensor
    size: Tensor

    @property
    def is_batch(self) -> bool:
        """Whether it is that of a batch of images."""
        return bool(self.scale.shape.rank > 1)

    def of_items(self, rows: Tensor) -> ImageTransform:
        """The transform of each item of lists, of which `rows` are the rows, int64 `[m]`."""
        if not self.is_batch:
            return self
        return ImageTransform(*(tf.gather(one, rows) for one in (self.scale, self.offset, self.size)))

    def points(self, points: Tensor) -> Tensor:
        """The same points in the images after. Those in a part that is cropped lie outside of the image.

        Args:
            points: (x, y) in pixels, float32 `[..., 2]`, of a batch `[n, ..., 2]`.
        """
        scale, offset = self.scale, self.offset
        for _ in range(points.shape.rank - 2 if self.is_batch else 0):
            scale, offset = tf.expand_dims(scale, 1), tf.expand_dims(offset, 1)
        return points * scale + offset


@dataclass(frozen=True, kw_only=True)
class Pictures(Feature):
    """The base of kinds of images."""

    @property
    def pictures(self) -> Pictures:
        return self

    @property
    def resizing(self) -> Resize | None:
        """How images are resized when they are decoded."""
        return None

    @property
    def is_turned(self) -> bool:
        """Whether `encode` turns images that have an EXIF orientation."""
        return False

    @property
    def not_turned(self) -> Pictures:
        """The same feature, whose `encode` turns no image."""
        return self

    def turn_of(self, value: Any) -> Turn | None:
        """How `encode` turns the image of a row; None if it does not, or refuses it."""
        return None

    def sides_given(self, value: Any) -> tuple[int, int] | None:
        """The height and width of the image of a row before it is turned; None if they are not known."""
        return None

    @abc.abstractmethod
    def decode_with_sides(self, columns: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """What `decode` returns, and the height and width before images are resized, int32 `[2]` or `[n, 2]`.

        It is called if there is a `resizing`, and like `decode` for one record at a time if `per_example`.
        """

    def decode_numpy_with_sides(self, columns: Mapping[str, ArrowArray]) -> tuple[Any, Ints]:
        """The same in NumPy: what `decode_numpy` returns, and the sides, int64 `[n, 2]`."""
        raise self._needs_tensorflow("decode_with_sides", "decode_numpy_with_sides")


@dataclass(frozen=True, kw_only=True)
class Coordinates(Feature):
    """The base of kinds of coordinates in an image. They follow it when it is turned, resized or augmented.

    Attributes:
        image: the image or video that the coordinates are in; by default the only one of the record.
    """

    image: str | None = field(default=None, metadata=READING)

    @property
    def coordinates(self) -> Coordinates:
        return self

    def among(self, names: Container[str]) -> Coordinates:
        """The same feature in a record that has only these features: it names no others."""
        return self if self.image is None or self.image in names else replace(self, image=None)

    def of_corners(self, corners: Array, width: float, height: float) -> Array:
        """Boxes as values of this kind, float32 `[m, 4]`; by default (left, top, width, height) in pixels.

        Args:
            corners: (left, top, right, bottom) in pixels, float64 `[m, 4]`.
            width, height: of the image, in pixels.
        """
        sides = corners[:, 2:] - corners[:, :2]
        return np.concatenate([corners[:, :2], sides], axis=1).astype(np.float32)

    @property
    def dropped_with(self) -> tuple[str, ...] | None:
        """The features that lose the same items as this one when its image is resized; None if none is."""
        return None

    def kept(self, value: Tensor, sides: Tensor, resize: Resize) -> Tensor:
        """Which items of the value stay when its image is resized, bool `[k]` or ragged `[n, (k)]`.

        It is called, with the arguments of `resized`, unless `dropped_with` is None.
        """
        raise NotImplementedError

    @abc.abstractmethod
    def turned(self, value: Any, turn: Turn) -> Any:
        """The value of a row, as it is in the turned image. Raises BadValue if it is invalid."""

    @abc.abstractmethod
    def resized(self, value: Tensor, sides: Tensor, resize: Resize) -> Tensor:
        """Decoded values, as they are in the resized images, in a graph.

        Args:
            value: what `decode` returns, of one record or of a batch.
            sides: height and width of the images before, int32 `[2]` or `[n, 2]`.
        """

    def resized_numpy(self, value: Any, sides: Ints, resize: Resize) -> tuple[Any, Mask | None]:
        """The same in NumPy: what `resized` and `kept` return.

        Args:
            value: what `decode_numpy` returns.
            sides: height and width of the image of each row, int64 `[n, 2]`.

        Returns:
            The value, and which of its items stay, bool `[m]`; None if all do.
        """
        raise self._needs_tensorflow("resized", "resized_numpy")

    def augmented(self, value: Tensor, transform: ImageTransform) -> tuple[Tensor, Tensor | None]:
        """Decoded values, as they are in augmented images, in a graph. Without it, `augment` refuses to flip
        or crop the image.

        Args:
            value: what `decode` returns, of one record or of a batch.
            transform: of the image, or of those of a batch.

        Returns:
            The value, and which of its items stay, bool `[k]` or ragged `[n, (k)]`: `dropped_with` lose the
            others, too. None if all do.
        """
        raise NotImplementedError


def sides_of(pixels: Tensor, data: Tensor) -> Tensor:
    """The height and width of images `[..., h, w, c]`, int32 `[..., 2]`, with the leading shape of `data`."""
    sides = tf.shape(pixels)[-3:-1]
    return tf.ensure_shape(
        tf.broadcast_to(sides, tf.concat([tf.shape(data), [2]], 0)), data.shape.concatenate([2])
    )


def sides_by_step(sides: Tensor, steps: Tensor) -> Tensor:
    """The height and width of the image of each step of a batch, int32 `[m, 2]`.

    Args:
        sides: of the images of the records, int32 `[n, 2]`, or of the steps, ragged `[n, (steps), 2]`.
        steps: values in these images, ragged `[n, (steps), ...]`.
    """
    if not isinstance(sides, tf.RaggedTensor):
        return tf.gather(sides, steps.value_rowids())
    message = "expected as many steps of coordinates as of their images"
    same = tf.debugging.assert_equal(sides.row_splits, steps.row_splits, message)
    with tf.control_dependencies([same]):
        return tf.identity(sides.values)


def resized(pixels: Tensor, resize: Resize, pad: int | None) -> Tensor:
    """Resizes images of any integer type, and rounds.

    Args:
        pixels: `[h, w, c]` or `[n, h, w, c]`.
        pad: that of the image.
    """
    start, part, before, inner = resize_window(tf.shape(pixels)[-3:-1], resize.size, resize.aspect)
    if resize.aspect == "crop":
        pixels = pixels[..., start[0] : start[0] + part[0], start[1] : start[1] + part[1], :]
    return _placed(pixels, before, inner, resize, pad)


def _placed(pixels: Tensor, before: Tensor, inner: Tensor, resize: Resize, pad: int | None) -> Tensor:
    """Resizes the part of images that is kept, to `inner`, and puts it at `before` in the resized images."""
    dtype, channels = pixels.dtype, pixels.shape[-1]
    pixels = tf.image.resize(pixels, inner, resize.method, antialias=resize.antialias)
    if pixels.dtype != dtype:
        pixels = tf.saturate_cast(tf.round(pixels), dtype)
    if resize.aspect == "pad":
        around = tf.stack([before, tf.constant(resize.size) - inner - before], 1)
        around = tf.pad(around, [[pixels.shape.rank - 3, 1], [0, 0]])
        pixels = tf.pad(pixels, around, constant_values=tf.constant(pad or 0, dtype))
    return tf.ensure_shape(pixels, [*pixels.shape[:-3], *resize.size, channels])


def resized_jpeg(
    data: Tensor, shape: tuple[int | None, ...], resize: Resize, pad: int | None
) -> tuple[Tensor, Tensor]:
    """Decodes a JPEG file, string `[]`, of which `shape` is expected, and resizes it, as `resized` does.

    Only the part that is kept is decoded, by the decoder's own downscaling if `scaled_decoding`. A file of
    another type, which TensorFlow's decoder takes, too (ImageNet has a PNG), is decoded as a whole; so is one
    that does not end as a JPEG, since the decoder of a part does not notice that data below it are missing.

    Returns:
        The pixels `[*size, c]`, and the height and width before, int32 `[2]`.
    """
    end = tf.strings.substr(data, tf.maximum(tf.strings.length(data) - 2, 0), 2)
    is_whole = tf.io.is_jpeg(data) & (end == b"\xff\xd9")

    def in_part() -> tuple[Tensor, Tensor]:
        pixels, before, inner, sides = _jpeg_part(data, shape, resize)
        return _placed(pixels, before, inner, resize, pad), sides

    def as_whole() -> tuple[Tensor, Tensor]:
        pixels = tf.ensure_shape(tf.io.decode_jpeg(data, shape[2]), shape)
        return resized(pixels, resize, pad), tf.shape(pixels)[:2]

    pixels, sides = tf.cond(is_whole, in_part, as_whole)
    return pixels, sides


def _jpeg_part(
    data: Tensor, shape: tuple[int | None, ...], resize: Resize
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Decodes the part of a JPEG file that is kept.

    Returns:
        The pixels `[h, w, c]`, made smaller by the decoder if `scaled_decoding`; the start and the sides of
        their place in the resized image, and the height and width of the whole image, each int32 `[2]`.
    """
    sides = tf.image.extract_jpeg_shape(data)[:2]
    message = f"expected a shape of {list(shape)}"
    known = [(sides[place], wanted) for place, wanted in enumerate(shape[:2]) if wanted is not None]
    with tf.control_dependencies([tf.debugging.assert_equal(*one, message) for one in known]):
        start, part, before, inner = resize_window(sides, resize.size, resize.aspect)

    def decoded(ratio: int) -> Tensor:
        if resize.aspect != "crop":
            return tf.io.decode_jpeg(data, shape[2], ratio)
        # The decoder interpolates the colours of the first and the last column without those beside them: one
        # more on each side is decoded, and left out. So the pixels are those of the whole image.
        first, stop, width = start // ratio, -(-(start + part) // ratio), -(-sides[1] // ratio)
        left, right = tf.maximum(first[1] - 1, 0), tf.minimum(stop[1] + 1, width)
        window = tf.stack([first[0], left, stop[0] - first[0], right - left])
        pixels = tf.image.decode_and_crop_jpeg(data, window, shape[2], ratio)
        return pixels[:, first[1] - left : stop[1] - left]

    if resize.scaled_decoding:
        larger = tf.reduce_min(part // inner)
        places = [tf.cast(larger >= ratio, tf.int32) for ratio in (2, 4, 8)]
        pixels = tf.switch_case(tf.add_n(places), [lambda r=r: decoded(r) for r in (1, 2, 4, 8)])
    else:
        pixels = decoded(1)
    return pixels, before, inner, sides


def resize_window(sides: Tensor, size: tuple[int, ...], aspect: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The part of images that is kept, and its place in the resized images of `size`.

    Args:
        sides: height and width of the images, int32 `[..., 2]`.

    Returns:
        The start and the sides of the part, the start and the sides of its place, each int32 `[..., 2]`,
        height first; the last are `[2]` where they are those of all images.
    """
    part, wanted = sides, tf.constant(size)
    inner = wanted
    if aspect == "crop":
        # the largest part of the wanted ratio, in the middle
        part = tf.minimum(sides, tf.maximum(1, sides[..., ::-1] * wanted // wanted[::-1]))
    if aspect == "pad":
        scale = tf.reduce_min(wanted / sides, -1, keepdims=True)
        scaled = tf.cast(tf.round(tf.cast(sides, scale.dtype) * scale), tf.int32)
        inner = tf.clip_by_value(scaled, 1, wanted)
    return (sides - part) // 2, part, (wanted - inner) // 2, inner


def resized_points(
    points: Tensor, sides: Tensor, size: tuple[int, ...], aspect: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Points of images, (x, y) in pixels, float32 `[..., 2]`, as points of the resized images of `size`.

    Also the first and the last corner of the part of the resized image that is not padding.
    """
    window = resize_window(sides, size, aspect)
    start, part, before, inner = (tf.cast(one[..., ::-1], tf.float32) for one in window)
    return (points - start) * (inner / part) + before, before, before + inner
