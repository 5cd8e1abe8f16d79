"""The stored values of rows under a key, in the order of the rows, and their types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec._arrow import arrow
from recordspec.errors import show_shape
from recordspec.tables.feature_names import FeatureKey
from recordspec.wire.arrays import (
    ArrowArray,
    Mask,
    are_text,
    as_lists,
    counts_of,
    flat_of,
    is_list,
    items_of,
    list_array,
    offsets,
    present_in,
    spread,
    storage_of,
    values_array,
)
from recordspec.wire.record_batch import RecordBatch

# Arrow's names of types, where a schema has others.
_DTYPES = {"halffloat": "float16", "float": "float32", "double": "float64", "date32[day]": "date"}


def keys_of(decoded: RecordBatch) -> list[FeatureKey]:
    """The keys of records, in order: first the keys of features (or of the context), then those of
    feature lists.
    """
    return [(False, key) for key in sorted(decoded.features)] + [
        (True, key) for key in sorted(decoded.sequence)
    ]


@dataclass(frozen=True, kw_only=True)
class ColumnType:
    """The type of the values under a key, in all records so far.

    Attributes:
        kind: the kind of values; `none` if no record has any.
        single: whether every record with the key has one value (in a feature list: every step).
        steps: whether the key has a feature list.
        text: for bytes, whether all of them are valid UTF-8.
    """

    kind: str = "none"
    single: bool = True
    steps: bool = False
    text: bool = True

    def __str__(self) -> str:
        return f"steps of {self.kind}" if self.steps else self.kind

    @property
    def depth(self) -> int:
        """The depth of nested lists in a row."""
        return (not self.single) + self.steps

    def fits(self, kind: str) -> bool:
        """Whether values of the given kind can be added."""
        return "none" in (kind, self.kind) or kind == self.kind

    def joined(self, other: ColumnType) -> ColumnType:
        """The common type of two types of values under the same key."""
        return replace(
            self,
            kind=other.kind if self.kind == "none" else self.kind,
            single=self.single and other.single,
            text=self.text and other.text,
        )

    def shaped(self, array: ArrowArray) -> ArrowArray:
        """The stored values of a key, as lists nested as deep as the column's."""
        if self.steps:
            steps = replace(self, steps=False).shaped(items_of(array))
            return list_array(steps, offsets(counts_of(array)), present_in(array))
        if not self.single:
            return as_lists(array)
        return spread(values_array(flat_of(array)), present_in(array)) if is_list(array) else array


def type_of(array: ArrowArray, *, steps: bool) -> ColumnType:
    """The type of values under a key, or in a feature list."""
    lists = items_of(array) if steps else array
    kind = storage_of(lists)
    return ColumnType(
        kind=kind,
        single=bool(are_single(lists).all()),
        steps=steps,
        text=kind != "bytes" or are_text(flat_of(lists)),
    )


def are_single(lists: ArrowArray) -> Mask:
    """A mask of the lists with exactly one value, or null."""
    if not is_list(lists):
        return np.ones(len(lists), bool)
    alone: Mask = counts_of(lists) == 1
    return alone | ~present_in(lists)


def first_row(array: ArrowArray, *, steps: bool) -> int:
    """The first row with a value. For a feature list, the first row with a step that has a value, if
    there is one.
    """
    if steps:
        there = present_in(items_of(array))
        if there.any():
            return int(np.searchsorted(np.cumsum(counts_of(array)), np.argmax(there), side="right"))
    return int(np.argmax(present_in(array)))


def values_by_kind(decoded: RecordBatch, key: FeatureKey) -> list[ArrowArray]:
    """The values under a key, separately for each kind of list.

    In a feature list, each kind has all steps, with null for steps of other kinds. If no list has a kind, all
    lists are null.
    """
    in_sequence, name = key
    arrays = (decoded.sequence if in_sequence else decoded.features).get(name, ())
    lists = map(items_of, arrays) if in_sequence else arrays
    some = [
        array
        for array, values in zip(arrays, lists, strict=True)
        if storage_of(values) != "none" and values.null_count < len(values)
    ]
    if some:
        return some
    pyarrow = arrow()
    nothing = pyarrow.large_list(pyarrow.null())
    if not in_sequence or not arrays:
        return [pyarrow.nulls(decoded.rows, pyarrow.large_list(nothing) if in_sequence else nothing)]
    counts = counts_of(arrays[0])
    return [list_array(pyarrow.nulls(int(counts.sum()), nothing), offsets(counts), present_in(arrays[0]))]


def shortest(numbers: npt.NDArray[np.float32]) -> list[float]:
    """Converts float32 `[n]` to floats with the shortest distinguishing digits: 0.1, not
    0.10000000149011612.
    """
    return [float(str(number)) for number in numbers]  # Arrow's cast takes 170 us for one, this 1 us for each


def is_list_type(kind: Any) -> bool:
    """Whether an Arrow type is a list type."""
    types = arrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def leaves_of(values: Any) -> tuple[Any, list[int | None]]:
    """The innermost items of nested lists, and the sizes of the lists per level; None if they differ."""
    shape: list[int | None] = [len(values)]
    while is_list_type(values.type):
        sizes = arrow().compute.unique(arrow().compute.list_value_length(values))
        shape.append(sizes[0].as_py() if len(sizes) == 1 else None)
        values = values.flatten()
    return values, shape


def is_image_shape(shape: Sequence[int | None]) -> bool:
    """Whether nested lists of the given sizes may be the pixels of an image."""
    return None not in shape and len(shape) == 3 and shape[2] in (1, 3, 4) and 0 not in shape


def type_text(type_: Any) -> str:
    """The name of a type: `string`, `float32 [null, 4]` for lists."""
    types, sizes = arrow().types, list[int | None]()
    while is_list_type(type_):
        sizes.append(type_.list_size if types.is_fixed_size_list(type_) else None)
        type_ = type_.value_type
    named = types.is_struct(type_) or types.is_dictionary(type_)
    name = ("struct" if types.is_struct(type_) else "dictionary") if named else str(type_)
    return f"{_DTYPES.get(name, name).removeprefix('large_')}{f' {show_shape(sizes)}' if sizes else ''}"
