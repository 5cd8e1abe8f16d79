"""`box`: the bounding boxes of an image's objects."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem
from recordspec.schema.features.feature import READING, WRITING, Invalid, Traits, ValueType
from recordspec.schema.features.geometry import Coordinates, ImageTransform, Resize, Turn, resized_points
from recordspec.schema.features.option_checks import check_positive, check_value, problem
from recordspec.schema.features.stored import refused_by_encode
from recordspec.schema.lists import by_row, items
from recordspec.schema.media import resizing
from recordspec.schema.ragged_array import RaggedArray, ragged
from recordspec.schema.tensors import Tensor, TypeSpec, lengths_of, ragged_spec
from recordspec.schema.values import Array, BadValue
from recordspec.wire.arrays import ArrowArray, Ints, Mask, to_arrow
from recordspec.wire.columns import Column, Ragged

# Tolerance, relative to 1 or to the size of the image: float32 has 24 bits, and x + w is rounded.
_SLACK = 1e-5


BoxFormat = Literal[
    "xyxy",
    "yxyx",
    "xywh",
    "center_xywh",
    "rel_xyxy",
    "rel_yxyx",
    "rel_xywh",
    "rel_center_xywh",
]


@dataclass(frozen=True, kw_only=True)
class Drop:
    """Rules for dropping boxes when `resize` with `aspect: crop` crops their image.

    Attributes:
        with_: the features of the same section with one item per box, such as its label, which lose the items
            of dropped boxes; `[]` if there are none.
        below: the fraction of a box's area, 0 to 1. A box is dropped if a smaller fraction, or no area at
            all, is left.
    """

    with_: tuple[str, ...]
    below: float = 0.0

    def option_problems(self) -> Iterator[Problem]:
        """Yields the problem of an invalid fraction."""
        if not 0 <= self.below <= 1:
            yield Problem(path=("drop", "below"), expected="0 to 1", got=f"{self.below:g}")


@dataclass(frozen=True, kw_only=True)
class Box(Coordinates):
    """Any number of boxes.

    Given as nested lists or an array `[k, 4]`. Decodes to float32 `[k, 4]`; a batch is a RaggedTensor
    `[n, (k), 4]`. A box that has no area, or exceeds its image, is an error at write. Boxes are given in the
    coordinates of the image's stored pixels, whatever its EXIF orientation. They follow the image if
    `orientation: upright` turns it, and if `resize` changes it.

    Attributes:
        format: the order and the units, with the names of Keras: `xyxy` (left, top, right, bottom),
            `yxyx` (top, left, bottom, right), `xywh` (left, top, width, height), `center_xywh`
            (centre, width, height), in pixels; with the prefix `rel_` as fractions of the image, 0 to 1.
        size: height and width of the images in pixels, if all are equal; boxes in pixels are checked
            against it.
        keys: the keys of four lists of numbers, in the order of `format`, instead of one list under `key`, as
            in the TensorFlow Object Detection API. In a record, the four lists have the same length.
        pad: the padding value if `fit` makes a batch dense; 0 by default. A box of four zeros has no area, so
            it cannot be data. A box of which `resize` leaves nothing also takes this value, unless it is
            dropped.
        drop: the boxes to drop when `resize` with `aspect: crop` crops their image, such as
            `{with: [labels], below: 0.25}`. By default all boxes stay, clipped.
    """

    kind: ClassVar[str] = "box"

    format: BoxFormat
    size: tuple[int, ...] | None = field(default=None, metadata=WRITING)
    keys: tuple[str, ...] = ()
    pad: float | None = field(default=None, metadata=READING)
    drop: Drop | None = field(default=None, metadata=READING)

    def option_problems(self) -> Iterator[Problem]:
        yield from check_value("pad", self.pad, "float32", ())
        if self.drop is not None:
            yield from self.drop.option_problems()
        if self.keys and (len(set(self.keys)) != 4 or len(self.keys) != 4 or "" in self.keys):
            yield problem("keys", f"four different keys, in the order of {self.format}", str(list(self.keys)))
        if self.keys and self.key is not None:
            yield problem("key", "none beside `keys`", f"`{self.key}`")
        if self.size is None:
            return
        if self._relative:
            yield problem("size", f"none for {self.format}", "one", "its bounds are 0 and 1")
        elif len(self.size) != 2:
            yield problem("size", "[height, width]", str(list(self.size)))
        else:
            for side in self.size:
                yield from check_positive("size", side)

    @property
    def _relative(self) -> bool:
        return self.format.startswith("rel_")

    @property
    def _limits(self) -> tuple[float, float]:
        """The largest x and the largest y."""
        if self._relative:
            return 1.0, 1.0
        height, width = self.size or (np.inf, np.inf)
        return float(width), float(height)

    @cached_property
    def traits(self) -> Traits:
        return Traits(takes_arrow=True)

    @property
    def value_type(self) -> ValueType:
        return ValueType("float32", (None, 4))

    def stored_options(self) -> dict[str, Any]:
        """The options, with `key` replaced by the four keys, if given."""
        options = super().stored_options()
        keys = options.pop("keys")
        return options | ({"key": keys} if keys else {})

    def columns(self) -> tuple[Column, ...]:
        if self.keys:
            layouts = (Ragged(), *[Ragged(aligned_with=self.keys[0])] * 3)
            return tuple(
                Column(key=key, storage="float32", layout=layout)
                for key, layout in zip(self.keys, layouts, strict=True)
            )
        return (Column(key=self.stored, storage="float32", layout=Ragged(shape=(4,))),)

    def encode(self, values: Any) -> tuple[ArrowArray, ...]:
        flat, counts = items(values, "float32", (4,))
        with by_row(counts):
            self._check_boxes(np.asarray(flat).reshape(-1, 4))
        if self.keys:
            sides = np.asarray(flat).reshape(-1, 4).T
            return tuple(to_arrow(side, counts, len(values)) for side in sides)
        return (to_arrow(flat, counts * 4, len(values)),)

    def invalid_stored(self, array: ArrowArray) -> Iterator[Invalid]:
        return refused_by_encode(self, array)

    def restored(self, stored: Mapping[str, Any]) -> Any:
        if not self.keys:
            return super().restored(stored)
        return list(zip(*(stored.get(key) or [] for key in self.keys), strict=True))

    def decode(self, columns: Mapping[str, Tensor]) -> Tensor:
        if not self.keys:
            return columns[self.stored]
        return stacked([columns[key] for key in self.keys])

    def _check_boxes(self, boxes: Array) -> None:
        low, high = self._check_areas(boxes)
        limits = np.array(self._limits)
        slack = _SLACK * np.where(np.isfinite(limits), limits, 1)
        clip = "clip it to the image"
        _refuse(boxes, (low < -slack).any(axis=1), f"a box {self.format} from 0", clip)
        end = f"{limits[0]:g}" if limits[0] == limits[1] else f"{limits[0]:g} x {limits[1]:g}"
        _refuse(boxes, (high > limits + slack).any(axis=1), f"a box {self.format} up to {end}", clip)

    def _check_areas(self, boxes: Array) -> tuple[Array, Array]:
        """The corners of boxes. Raises BadValue for the first box without an area."""
        low, high = self._corners(boxes.astype(np.float64))
        _refuse(boxes, ~np.isfinite(boxes).all(axis=1), f"a box {self.format} of finite numbers")
        hint = "is the format right?"
        _refuse(boxes, (low >= high).any(axis=1), f"a box {self.format} with an area", hint)
        return low, high

    def _corners(self, boxes: Array) -> tuple[Array, Array]:
        """The corners (left, top) and (right, bottom), each float64 `[m, 2]`."""
        return corners_of(boxes, self.format)

    def of_corners(self, corners: Array, width: float, height: float) -> Array:
        low, high = corners[:, :2], corners[:, 2:]
        if self._relative:
            low, high = (point / [width, height] for point in (low, high))
        return np.concatenate(halves_of(low, high, self.format), axis=1).astype(np.float32)

    def turned(self, value: Any, turn: Turn) -> Any:
        flat, _ = items([value], "float32", (4,))
        boxes = np.asarray(flat).reshape(-1, 4)
        self._check_areas(boxes)
        unit = [turn.width, turn.height] if self._relative else [1, 1]
        ends = [turn.points(one * unit) for one in self._corners(boxes.astype(np.float64))]
        height, width = turn.turned
        return self.of_corners(np.concatenate([np.minimum(*ends), np.maximum(*ends)], 1), width, height)

    def resized(self, value: Tensor, sides: Tensor, resize: Resize) -> Tensor:
        if self._relative and resize.aspect == "stretch":
            return value  # fractions of the image do not change
        if isinstance(value, tf.RaggedTensor):
            each = tf.gather(sides, value.value_rowids())
            return value.with_values(self.resized(value.values, each, resize))
        old = tf.cast(sides[..., ::-1], tf.float32)
        # not a division: in a graph, TensorFlow replaces the division by a constant by a multiplication,
        # which rounds differently
        new = tf.constant([1 / side for side in resize.size[::-1]], tf.float32)
        corners = [corner * old if self._relative else corner for corner in corners_of(value, self.format)]
        moved = [resized_points(corner, sides, resize) for corner in corners]
        return self._clipped_boxes(moved, new if self._relative else tf.ones([2]))

    def _clipped_boxes(self, moved: list[tuple[Tensor, Tensor, Tensor]], unit: Tensor) -> Tensor:
        """Boxes clipped to their images, float32 `[k, 4]`. A box without any area left becomes four times
        `pad`.

        Args:
            moved: for each of the two corners, the point in pixels, and the first and the last corner of the
                image.
            unit: the format's units per pixel, float32 `[2]` or `[k, 2]`.
        """
        low, high = [tf.clip_by_value(corner, start, end) for corner, start, end in moved]
        left = tf.reduce_all(low < high, 1, keepdims=True)
        halves = halves_of(low * unit, high * unit, self.format)
        return tf.where(left, tf.concat(halves, 1), tf.constant(self.pad or 0, tf.float32))

    def resized_numpy(self, value: Any, sides: Ints, resize: Resize) -> tuple[Any, Mask | None]:
        each, zero = np.repeat(sides, value.lengths, axis=0), np.float32(0)
        boxes: Array = np.ascontiguousarray(value.values)
        old = each[:, ::-1].astype(np.float32)
        corners = [corner * old if self._relative else corner for corner in corners_of(boxes, self.format)]
        moved = [resizing.points(corner, each, resize) for corner in corners]
        kept = None
        if self.drop is not None:

            def area(slack: float) -> Array:
                around = [np.float32(slack) * (end - start) for _, start, end in moved]
                low, high = (
                    np.maximum(np.minimum(point, end + margin), start - margin)
                    for (point, start, end), margin in zip(moved, around, strict=True)
                )
                return np.asarray(np.prod(np.maximum(high - low, zero), axis=1))

            whole = np.prod(moved[1][0] - moved[0][0], axis=1)
            kept = (area(0) > 0) & (area(_SLACK) >= whole * np.float32(self.drop.below))
        if self._relative and resize.aspect == "stretch":
            return value, kept
        low, high = (np.clip(point, start, end) for point, start, end in moved)
        left = (low < high).all(axis=1, keepdims=True)
        if self._relative:
            new = np.array([1 / side for side in resize.size[::-1]], np.float32)
            low, high = low * new, high * new
        both = np.concatenate(halves_of(low, high, self.format), axis=1)
        return RaggedArray(np.where(left, both, np.float32(self.pad or 0)), value.lengths), kept

    def among(self, names: Container[str]) -> Coordinates:
        if self.drop is None or all(name in names for name in self.drop.with_):
            return super().among(names)
        left = tuple(name for name in self.drop.with_ if name in names)
        return replace(self, drop=replace(self.drop, with_=left)).among(names)

    @property
    def dropped_with(self) -> tuple[str, ...] | None:
        return None if self.drop is None else self.drop.with_

    def kept(self, value: Tensor, sides: Tensor, resize: Resize) -> Tensor:
        if isinstance(value, tf.RaggedTensor):
            each = tf.gather(sides, value.value_rowids())
            return value.with_values(self.kept(value.values, each, resize))
        old = tf.cast(sides[..., ::-1], tf.float32) if self._relative else tf.ones([2])
        corners = [corner * old for corner in corners_of(value, self.format)]
        return self._stay([resized_points(corner, sides, resize) for corner in corners])

    def _stay(self, moved: list[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
        """A mask of the boxes that keep as much of their area as `drop` requires, bool `[k]`.

        Args:
            moved: for each of the two corners, the point in pixels, which may lie outside of the image, and
                the first and the last corner of the image.
        """

        def area(slack: float) -> Tensor:
            low, high = (_clipped(*one, slack) for one in moved)
            return tf.reduce_prod(tf.maximum(high - low, 0), 1)

        # a box that ends at the image's border may end slightly after it once both are scaled
        whole = tf.reduce_prod(moved[1][0] - moved[0][0], 1)
        return (area(0) > 0) & (area(_SLACK) >= whole * (self.drop.below if self.drop else 0))

    def augmented(self, value: Tensor, transform: ImageTransform) -> tuple[Tensor, Tensor | None]:
        if isinstance(value, tf.RaggedTensor):
            boxes, kept = self.augmented(value.values, transform.of_items(value.value_rowids()))
            return value.with_values(boxes), None if kept is None else value.with_values(kept)
        corners = corners_of(value, self.format)
        unit = transform.size if self._relative else tf.ones([2])
        ends = [transform.points(corner * unit) for corner in corners]
        # a box of which `resize` left nothing has no area; a flip that swaps its corners must not give it one
        is_box = tf.reduce_all(corners[0] < corners[1], 1, keepdims=True)
        low, high = (tf.where(is_box, end, 0) for end in (tf.minimum(*ends), tf.maximum(*ends)))
        moved = [(corner, tf.zeros([2]), transform.size) for corner in (low, high)]
        boxes = self._clipped_boxes(moved, 1 / unit)
        return boxes, None if self.drop is None else self._stay(moved)

    def decode_numpy(self, columns: Mapping[str, ArrowArray]) -> RaggedArray:
        if not self.keys:
            return ragged(columns[self.stored], (4,))
        sides = [ragged(columns[key]) for key in self.keys]
        return RaggedArray(np.column_stack([side.values for side in sides]), sides[0].lengths)

    def spec(self) -> TypeSpec:
        return ragged_spec((None, 4), "float32")

    def sample(self, rng: np.random.Generator) -> Any:
        width, height = (1000.0 if np.isinf(limit) else limit for limit in self._limits)
        count = int(rng.integers(0, 4))
        low = rng.uniform(0, 0.5, (count, 2)) * [width, height]
        sides = rng.uniform(0.1, 0.5, (count, 2)) * [width, height]
        order = self.format.removeprefix("rel_")
        first, second = (low, low + sides) if order in ("xyxy", "yxyx") else (low, sides)
        if order == "center_xywh":
            first = low + sides / 2
        turned = slice(None, None, -1 if order == "yxyx" else 1)
        return np.concatenate([first[:, turned], second[:, turned]], axis=1).astype(np.float32)


def _clipped(points: Tensor, start: Tensor, end: Tensor, slack: float) -> Tensor:
    """Points clipped to an image with a margin of `slack` times its sides."""
    around = slack * (end - start)
    return tf.maximum(tf.minimum(points, end + around), start - around)


def _refuse(boxes: Array, bad: Any, expected: str, hint: str = "") -> None:
    if bool(bad.any()):
        place = int(bad.argmax())
        shown = ", ".join(f"{number:g}" for number in boxes[place])
        raise BadValue(place, expected, f"[{shown}]", hint)


def corners_of(boxes: Any, format_: str) -> tuple[Any, Any]:
    """The corners (left, top) and (right, bottom), each `[m, 2]`, of boxes `[m, 4]`."""
    first, second = boxes[:, :2], boxes[:, 2:]
    order = format_.replace("rel_", "")
    if order == "yxyx":
        return first[:, ::-1], second[:, ::-1]
    if order == "xywh":
        return first, first + second
    if order == "center_xywh":
        return first - second / 2, first + second / 2
    return first, second


def halves_of(low: Any, high: Any, format_: str) -> tuple[Any, Any]:
    """The first two and the last two numbers of boxes, each `[m, 2]`, from their corners."""
    order = format_.replace("rel_", "")
    if order == "yxyx":
        return low[:, ::-1], high[:, ::-1]
    if order == "xywh":
        return low, high - low
    if order == "center_xywh":
        return (low + high) / 2, high - low
    return low, high


def stacked(sides: list[Tensor]) -> Tensor:
    """Four lists of numbers, each `[k]` or ragged `[n, (k)]`, stacked to boxes `[k, 4]` or `[n, (k), 4]`."""
    first, *others = sides
    message = "expected as many numbers under each key of a box"
    same = [tf.debugging.assert_equal(lengths_of(other), lengths_of(first), message) for other in others]
    with tf.control_dependencies(same):
        if isinstance(first, tf.RaggedTensor):
            return first.with_values(tf.stack([side.values for side in sides], 1))
        return tf.stack(sides, 1)
