"""The geometry of images: how they are turned at write and resized at read, and how coordinates in them
follow.
"""

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
    """How images are resized at read, with `tf.image.resize`.

    Attributes:
        size: height and width in pixels.
        method: the interpolation method; see `tf.image.ResizeMethod`.
        aspect: how an image of another aspect ratio is resized: `stretch` changes its aspect ratio, `crop`
            keeps its centre, and `pad` pads it on both sides with the image's `pad`.
        antialias: whether an anti-aliasing filter is used when an image is made smaller.
        scaled_decoding: whether the decoder makes a JPEG image smaller, by 2, 4 or 8, as long as no side
            becomes smaller than in the resized image. It takes less time, and gives different pixels where an
            image has fine detail, since it averages pixels instead of leaving some out. For photographs of
            500x375 pixels, resized to 160, 96 and 64 pixels wide and high, the mean difference was 2 to 4 of
            255 with `antialias`, and 5 to 9 without.
    """

    size: tuple[int, ...]
    method: Literal["bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5"] = "bilinear"
    aspect: Aspect = "stretch"
    antialias: bool = False
    scaled_decoding: bool = False

    def option_problems(self) -> Iterator[Problem]:
        """Yields the problem of an invalid size."""
        if len(self.size) != 2 or min(self.size) < 1:
            yield problem("resize", "[height, width] of at least 1", str(list(self.size)))

    def points(self, points: Tensor, sides: Tensor) -> Tensor:
        """Converts points to resized images. Points in a part that `crop` removes lie outside of the image.

        Args:
            points: (x, y) in pixels, float32 `[..., 2]`.
            sides: height and width of the images before, int32 `[..., 2]`, in a shape that broadcasts.
        """
        return resized_points(points, sides, self)[0]


@dataclass(frozen=True)
class Turn:
    """How an image is turned at write.

    Attributes:
        orientation: the EXIF orientation, 2 to 8 (CIPA DC-008, 4.6.5).
        height, width: the size of the image before it is turned, in pixels.
    """

    orientation: int
    height: int
    width: int

    def points(self, points: Array) -> Array:
        """Converts points, (x, y) in pixels, `[..., 2]`, to the turned image."""
        x, y = points[..., 0], points[..., 1]
        if self.orientation in (2, 3, 7, 8):
            x = self.width - x
        if self.orientation in (3, 4, 6, 7):
            y = self.height - y
        return np.stack([y, x] if self.orientation >= 5 else [x, y], axis=-1)

    def pixels(self, pixels: Array) -> Array:
        """Turns pixels `[h, w, ...]`."""
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
    """How images are cropped, resized to their original size, and flipped by augmentation.

    Attributes:
        scale, offset: a point (x, y) in pixels moves to `point * scale + offset`; float32 `[2]`, or `[n, 2]`
            for a batch. The scale is negative if the image is flipped.
        size: width and height of the image, float32, in the same shape.
    """

    scale: Tensor
    offset: Tensor
    size: Tensor

    @property
    def is_batch(self) -> bool:
        """Whether this is the transform of a batch of images."""
        return bool(self.scale.shape.rank > 1)

    def of_items(self, rows: Tensor) -> ImageTransform:
        """The transform for each item of lists; `rows` are the rows of the items, int64 `[m]`."""
        if not self.is_batch:
            return self
        return ImageTransform(*(tf.gather(one, rows) for one in (self.scale, self.offset, self.size)))

    def points(self, points: Tensor) -> Tensor:
        """Converts points to the transformed images. Points in a cropped part lie outside of the image.

        Args:
            points: (x, y) in pixels, float32 `[..., 2]`, for a batch `[n, ..., 2]`.
        """
        scale, offset = self.scale, self.offset
        for _ in range(points.shape.rank - 2 if self.is_batch else 0):
            scale, offset = tf.expand_dims(scale, 1), tf.expand_dims(offset, 1)
        return points * scale + offset


@dataclass(frozen=True, kw_only=True)
class Pictures(Feature):
    """The base class of image kinds."""

    @property
    def resizing(self) -> Resize | None:
        """How images are resized when they are decoded."""
        return None

    @property
    def is_turned(self) -> bool:
        """Whether `encode` turns images with an EXIF orientation."""
        return False

    @property
    def not_turned(self) -> Pictures:
        """The feature with an `encode` that turns no image."""
        return self

    def turn_of(self, value: Any) -> Turn | None:
        """How `encode` turns the image of a row; None if it does not turn it, or refuses it."""
        return None

    def sides_given(self, value: Any) -> tuple[int, int] | None:
        """The height and width of a row's image before it is turned; None if unknown."""
        return None

    @abc.abstractmethod
    def decode_with_sides(self, columns: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The result of `decode`, and the height and width before images are resized, int32 `[2]` or
        `[n, 2]`.

        Called if there is a `resizing`. Like `decode`, takes one record at a time if `per_example`.
        """

    def decode_numpy_with_sides(self, columns: Mapping[str, ArrowArray]) -> tuple[Any, Ints]:
        """`decode_with_sides` in NumPy: the result of `decode_numpy`, and the sides, int64 `[n, 2]`."""
        raise self._needs_tensorflow("decode_with_sides", "decode_numpy_with_sides")


@dataclass(frozen=True, kw_only=True)
class Coordinates(Feature):
    """The base class of kinds for coordinates in an image. They follow the image if it is turned, resized or
    augmented.

    Attributes:
        image: the image or video of the coordinates; by default the only one of the record.
    """

    image: str | None = field(default=None, metadata=READING)

    def among(self, names: Container[str]) -> Coordinates:
        """The feature for a record with only these features: references to other features are removed."""
        return self if self.image is None or self.image in names else replace(self, image=None)

    def of_corners(self, corners: Array, width: float, height: float) -> Array:
        """Converts boxes to values of this kind, float32 `[m, 4]`; by default (left, top, width, height) in
        pixels.

        Args:
            corners: (left, top, right, bottom) in pixels, float64 `[m, 4]`.
            width, height: the size of the image, in pixels.
        """
        sides = corners[:, 2:] - corners[:, :2]
        return np.concatenate([corners[:, :2], sides], axis=1).astype(np.float32)

    @property
    def dropped_with(self) -> tuple[str, ...] | None:
        """The features that lose the same items as this one if its image is resized; None if items are
        never lost.
        """
        return None

    def kept(self, value: Tensor, sides: Tensor, resize: Resize) -> Tensor:
        """A mask of the items that stay if the image is resized, bool `[k]` or ragged `[n, (k)]`.

        Called with the arguments of `resized`, unless `dropped_with` is None.
        """
        raise NotImplementedError

    @abc.abstractmethod
    def turned(self, value: Any, turn: Turn) -> Any:
        """Converts a row's value to the turned image. Raises BadValue if the value is invalid."""

    @abc.abstractmethod
    def resized(self, value: Tensor, sides: Tensor, resize: Resize) -> Tensor:
        """Converts decoded values to the resized images, in a graph.

        Args:
            value: the result of `decode`, of one record or of a batch.
            sides: height and width of the images before, int32 `[2]` or `[n, 2]`.
        """

    def resized_numpy(self, value: Any, sides: Ints, resize: Resize) -> tuple[Any, Mask | None]:
        """`resized` and `kept` in NumPy.

        Args:
            value: the result of `decode_numpy`.
            sides: height and width of each row's image before, int64 `[n, 2]`.

        Returns:
            The value, and a mask of the items that stay, bool `[m]`; None if all stay.
        """
        raise self._needs_tensorflow("resized", "resized_numpy")

    def augmented(self, value: Tensor, transform: ImageTransform) -> tuple[Tensor, Tensor | None]:
        """Converts decoded values to augmented images, in a graph. For a kind without this method, `augment`
        refuses to flip or crop the image.

        Args:
            value: the result of `decode`, of one record or of a batch.
            transform: the transform of the image, or of a batch of images.

        Returns:
            The value, and a mask of the items that stay, bool `[k]` or ragged `[n, (k)]`: features of
            `dropped_with` lose the same items. None if all stay.
        """
        raise NotImplementedError


def sides_of(pixels: Tensor, data: Tensor) -> Tensor:
    """The height and width of images `[..., h, w, c]`, int32 `[..., 2]`, with the leading shape of `data`."""
    sides = tf.shape(pixels)[-3:-1]
    return tf.ensure_shape(
        tf.broadcast_to(sides, tf.concat([tf.shape(data), [2]], 0)), data.shape.concatenate([2])
    )


def sides_by_step(sides: Tensor, steps: Tensor) -> Tensor:
    """The height and width of the image at each step of a batch, int32 `[m, 2]`.

    Args:
        sides: the sides of the records' images, int32 `[n, 2]`, or of the steps' images, ragged
            `[n, (steps), 2]`.
        steps: values in the images, ragged `[n, (steps), ...]`.
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
        pad: the padding value of the image.
    """
    start, part, before, inner = resize_window(tf.shape(pixels)[-3:-1], resize)
    if resize.aspect == "crop":
        pixels = pixels[..., start[0] : start[0] + part[0], start[1] : start[1] + part[1], :]
    return _placed(pixels, before, inner, resize, pad)


def _placed(pixels: Tensor, before: Tensor, inner: Tensor, resize: Resize, pad: int | None) -> Tensor:
    """Resizes the kept part of images to `inner`, and places it at `before` in the resized images."""
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
    """Decodes a JPEG file, string `[]`, of the expected `shape`, and resizes it like `resized`.

    Only the kept part is decoded, with the decoder's downscaling if `scaled_decoding`. Two kinds of files are
    decoded as a whole: a file of another type that TensorFlow's decoder accepts (ImageNet has a PNG); and a
    file that does not end like a JPEG, since the decoder of a part does not notice if data below it is
    missing.

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
    """Decodes the kept part of a JPEG file.

    Returns:
        The pixels `[h, w, c]`, made smaller by the decoder if `scaled_decoding`; the start and the sides of
        their place in the resized image, and the height and width of the whole image, each int32 `[2]`.
    """
    sides = tf.image.extract_jpeg_shape(data)[:2]
    message = f"expected a shape of {list(shape)}"
    known = [(sides[place], wanted) for place, wanted in enumerate(shape[:2]) if wanted is not None]
    with tf.control_dependencies([tf.debugging.assert_equal(*one, message) for one in known]):
        start, part, before, inner = resize_window(sides, resize)

    def decoded(ratio: int) -> Tensor:
        if resize.aspect != "crop":
            return tf.io.decode_jpeg(data, shape[2], ratio)
        # The decoder interpolates the colours of the first and the last column without their outer
        # neighbours. One more column on each side is decoded and cut off, so that the pixels equal those of
        # the whole image.
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


def resize_window(sides: Tensor, resize: Resize) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The part of images that is kept, and its place in the resized images.

    Args:
        sides: height and width of the images, int32 `[..., 2]`.

    Returns:
        The start and the sides of the part, the start and the sides of its place, each int32 `[..., 2]`,
        height first. The last two are `[2]` if they are the same for all images.
    """
    part, wanted = sides, tf.constant(resize.size)
    inner = wanted
    if resize.aspect == "crop":
        # the largest centred part with the wanted aspect ratio
        part = tf.minimum(sides, tf.maximum(1, sides[..., ::-1] * wanted // wanted[::-1]))
    if resize.aspect == "pad":
        scale = tf.reduce_min(wanted / sides, -1, keepdims=True)
        scaled = tf.cast(tf.round(tf.cast(sides, scale.dtype) * scale), tf.int32)
        inner = tf.clip_by_value(scaled, 1, wanted)
    return (sides - part) // 2, part, (wanted - inner) // 2, inner


def resized_points(points: Tensor, sides: Tensor, resize: Resize) -> tuple[Tensor, Tensor, Tensor]:
    """Converts points of images, (x, y) in pixels, float32 `[..., 2]`, to the resized images.

    Also returns the first and the last corner of the part of the resized image that is not padding.
    """
    window = resize_window(sides, resize)
    start, part, before, inner = (tf.cast(one[..., ::-1], tf.float32) for one in window)
    return (points - start) * (inner / part) + before, before, before + inner
