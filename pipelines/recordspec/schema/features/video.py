"""`video`: frames, each an encoded image."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem, SpecError, show_shape
from recordspec.schema.features.feature import READING, WRITING, Invalid, Traits, ValueType
from recordspec.schema.features.geometry import Pictures, Resize
from recordspec.schema.features.image import Image
from recordspec.schema.features.option_checks import check_sizes, problem
from recordspec.schema.features.stored import refused_by_encode
from recordspec.schema.lists import by_row, check_lengths, rows_of
from recordspec.schema.media.images import ImageEncoding, encoded, pillow
from recordspec.schema.ragged_array import RaggedArray
from recordspec.schema.tensors import Tensor, TypeSpec, mapped, one_by_one, ragged_spec
from recordspec.schema.values import BadValue
from recordspec.wire.arrays import ArrowArray, Ints, counts_of, flat_of, offsets, to_arrow
from recordspec.wire.columns import Column, Fixed, Ragged


@dataclass(frozen=True, kw_only=True)
class Video(Pictures):
    """A list of frames of equal size.

    Given as a list of images in the forms that `image` takes, or as an array `[frames, h, w, c]`. Decodes to
    a dense tensor `[frames, h, w, c]`; a batch is a RaggedTensor if a size is null. A video without frames
    has height and width 0 where the shape has null.

    Attributes:
        shape: frames, height, width, channels; all but the channels may be null.
        encoding: the encoding of each frame; see `image`.
        dtype: uint8; uint16 for png and raw.
        quality: the quality of frames encoded as JPEG or WebP, 1 to 100.
        pad: the padding value of videos of different sizes if `fit` makes a batch dense, and of steps; 0 by
            default.
        resize: the height and width to which frames are resized at read; see `image`.
    """

    kind: ClassVar[str] = "video"

    shape: tuple[int | None, ...] = (None, None, None, 3)
    encoding: ImageEncoding = "jpeg"
    dtype: Literal["uint8", "uint16"] = "uint8"
    quality: int | None = field(default=None, metadata=WRITING)
    pad: int | None = field(default=None, metadata=READING)
    resize: tuple[int, ...] | Resize | None = field(default=None, metadata=READING)

    def option_problems(self) -> Iterator[Problem]:
        if len(self.shape) != 4:
            yield problem("shape", "[frames, height, width, channels]", show_shape(self.shape))
            return
        yield from check_sizes("shape", tuple(size for size in self.shape[:1] if size is not None))
        if self.shape[0] == 0:
            yield problem("shape", "at least 1 frame", "0")
        try:
            _ = self.frame
        except SpecError as error:
            yield from error.problems

    @cached_property
    def frame(self) -> Image:
        """The image feature of one frame."""
        return Image(
            name=self.name,
            shape=self.shape[1:],
            encoding=self.encoding,
            dtype=self.dtype,
            quality=self.quality,
            pad=self.pad,
            resize=self.resize,
        )

    @property
    def _decoded_shape(self) -> tuple[int | None, ...]:
        return (*self.shape[:1], *self.frame.decoded_shape)

    @property
    def value_type(self) -> ValueType:
        return ValueType("media", self.shape[:1])

    def columns(self) -> tuple[Column, ...]:
        frames = self.shape[0]
        layout = Ragged() if frames is None else Fixed(shape=(frames,))
        return (Column(key=self.stored, storage="bytes", layout=layout),)

    def encode(self, values: Any) -> tuple[ArrowArray, ...]:
        images, counts = rows_of(values, "a list of images")
        lengths: Ints = np.broadcast_to(np.asarray(counts, np.int64), (len(values),))
        if (known := self.shape[0]) is not None:
            check_lengths(lengths, lengths == known, f"{known} frames")
        with by_row(lengths):
            frames = [encoded(self.frame, place, image) for place, image in enumerate(images)]
        if None in self.frame.shape:
            _check_sizes(frames, lengths)
        return (to_arrow(frames, lengths),)

    @cached_property
    def traits(self) -> Traits:
        return Traits(may_grow=self.frame.traits.may_grow)

    def invalid_stored(self, array: ArrowArray) -> Iterator[Invalid]:
        return refused_by_encode(self, array) if self.encoding != "raw" else self.frame.invalid_stored(array)

    @property
    def restored_type(self) -> ValueType | None:
        return ValueType(self.dtype, self.shape) if self.encoding == "raw" else None

    def restored(self, stored: Mapping[str, Any]) -> list[Any] | None:
        frames = stored.get(self.stored)
        return (
            None if frames is None else [self.frame.restored({self.frame.stored: [data]}) for data in frames]
        )

    @property
    def resizing(self) -> Resize | None:
        return self.frame.resizing

    def decode_with_sides(self, columns: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        return self.decode(columns), sides_of_videos(columns[self.stored], self._sides)

    def _sides(self, frames: Tensor) -> Tensor:
        """The height and width of stored frames, string `[m]`."""
        if not self.frame.traits.per_example:
            return self.frame.decode_with_sides({self.frame.stored: frames})[1]
        spec = tf.TensorSpec([2], tf.int32)
        return one_by_one(
            lambda frame: self.frame.decode_with_sides(frame)[1], {self.frame.stored: frames}, spec
        )

    def decode(self, columns: Mapping[str, Tensor]) -> Tensor:
        data = columns[self.stored]
        if not isinstance(data, tf.RaggedTensor) and data.shape.rank == 1:
            return self._one(data)
        return decode_videos(data, self._frames)

    def _frames(self, data: Tensor) -> Tensor:
        """Decodes the frames of many videos, string `[m]`; a RaggedTensor if sizes differ."""
        if not self.frame.traits.per_example:
            return self.frame.pixels(data)
        return one_by_one(self.frame.decode, {self.frame.stored: data}, self.frame.spec())

    def _one(self, data: Tensor) -> Tensor:
        """Decodes the frames of one video, string `[frames]`, which are of equal size."""
        if not self.frame.traits.per_example:
            return self.frame.pixels(data)
        shape = self.frame.decoded_shape
        # tf.map_fn fails without frames if their size is unknown (TensorFlow 2.16 and 2.21)
        pixels = tf.cond(
            tf.size(data) > 0,
            lambda: mapped(self.frame.pixels, data, tf.TensorSpec(shape, self.dtype)),
            lambda: tf.zeros([0, *(size or 0 for size in shape)], self.dtype),
        )
        return tf.ensure_shape(pixels, self._decoded_shape)

    def decode_numpy(self, columns: Mapping[str, ArrowArray]) -> Any:
        return self.decode_numpy_with_sides(columns)[0]

    def decode_numpy_with_sides(self, columns: Mapping[str, ArrowArray]) -> tuple[Any, Ints]:
        array = columns[self.stored]
        counts = counts_of(array)
        with by_row(counts):
            frames, sides = self.frame.decode_numpy_with_sides({self.frame.stored: flat_of(array)})
        first = np.ones((len(counts), 2), np.int64)  # kept for a video without frames
        first[counts > 0] = sides[offsets(counts)[:-1][counts > 0]]
        if self.shape[0] is None or isinstance(frames, RaggedArray):
            return RaggedArray(frames, counts, dense_rows=True), first
        return frames.reshape(len(counts), self.shape[0], *frames.shape[1:]), first

    def spec(self) -> TypeSpec:
        if None in self._decoded_shape:
            return ragged_spec(self._decoded_shape, self.dtype)
        return tf.TensorSpec(self._decoded_shape, self.dtype)

    def sample(self, rng: np.random.Generator) -> Any:
        frames = self.shape[0] or int(rng.integers(1, 4))
        first = self.frame.sample(rng)
        return np.stack([rng.permutation(first) for _ in range(frames)])  # frames of equal size


def sides_of_videos(data: Tensor, sides: Callable[[Tensor], Tensor]) -> Tensor:
    """The height and width of videos, int32 `[2]` or `[n, 2]`; `[1, 1]` for a video without frames.

    Args:
        data: the frames of one video, string `[frames]`, or of several, `[n, frames]` or ragged.
        sides: returns the height and width of frames, string `[m]`.
    """
    if isinstance(data, tf.RaggedTensor):
        some = data.row_lengths() > 0
        first_sides = sides(tf.gather(data.values, tf.boolean_mask(data.row_starts(), some)))
        return tf.tensor_scatter_nd_update(tf.ones([data.nrows(), 2], tf.int32), tf.where(some), first_sides)
    if data.shape.rank == 2:
        return sides(data[:, 0])
    return tf.concat([sides(data[:1]), tf.ones([1, 2], tf.int32)], 0)[0]


def decode_videos(data: Tensor, decode: Callable[[Tensor], Tensor]) -> Tensor:
    """Decodes videos, string `[n, frames]` or ragged. `decode` decodes the frames of all videos, string
    `[m]`.
    """
    if isinstance(data, tf.RaggedTensor):
        return data.with_values(decode(data.values))
    frames = decode(tf.reshape(data, [-1]))
    if isinstance(frames, tf.RaggedTensor):
        counts = tf.fill([tf.shape(data)[0]], tf.constant(data.shape[1], tf.int64))
        return tf.RaggedTensor.from_row_lengths(frames, counts, validate=False)
    together = tf.reshape(frames, tf.concat([tf.shape(data), tf.shape(frames)[1:]], 0))
    return tf.ensure_shape(together, data.shape.concatenate(frames.shape[1:]))


def _check_sizes(frames: list[bytes], lengths: Ints) -> None:
    """Raises BadValue for the first video whose frames differ in size."""
    sizes = np.array([pillow("frames").open(io.BytesIO(data)).size for data in frames]).reshape(-1, 2)
    ends = np.cumsum(lengths)
    for row, (start, end) in enumerate(zip(ends - lengths, ends, strict=True)):
        other = np.flatnonzero((sizes[start:end] != sizes[start : start + 1]).any(axis=1))
        if len(other):
            width, height = sizes[start + other[0]].tolist()
            expected = f"frames of one size, {show_shape(sizes[start][::-1].tolist())}"
            raise BadValue(row, expected, f"{show_shape([height, width])} at item {other[0]}")
