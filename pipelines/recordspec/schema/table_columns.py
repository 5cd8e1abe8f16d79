"""Features as the columns of an Arrow table, which every tool that knows Arrow can read.

| a value | in Arrow |
|---|---|
| one number, text, bytes | its type; `large_string`; `large_binary` |
| a class | a dictionary of the names |
| a date or a time, of features with `date` | `date32`, `timestamp` |
| an image, a sound | `large_binary` of what is stored, or lists of its pixels or samples |
| `[2, 3]`; any number of items | `fixed_size_list`; `large_list` |
| indices and values | a struct of both |
| of each step | a `large_list` of these |

A missing value is null. A value that may be missing is a `large_list` where it would be a `fixed_size_list`:
Parquet files with nulls among the latter cannot be read.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec._arrow import arrow
from recordspec.errors import RecordError
from recordspec.schema.features import KINDS, Feature
from recordspec.schema.features.label import MISSING
from recordspec.schema.ragged_array import RaggedArray
from recordspec.schema.row_blocks import Sections
from recordspec.schema.values import DTYPES, BadValue
from recordspec.wire.arrays import (
    ArrowArray,
    Ints,
    Mask,
    are_text,
    counts_of,
    fixed_lists,
    flat_of,
    is_list,
    items_of,
    lengths_of,
    list_array,
    lists_in,
    numbers_array,
    offsets,
    present_in,
    spread,
    storage_of,
    strings_array,
    to_binary,
    to_numpy,
    truth_array,
    values_array,
)
from recordspec.wire.columns import Fixed, Place, Ragged, Sparse

# Numbers of these dtypes are those of another in a table: Arrow has no bfloat16, and few tools float16.
_WIDER = {"float16": "float32", "bfloat16": "float32"}
# A complex number is two floats.
_PARTS = {"complex64": "float32", "complex128": "float64"}
_DATE_TYPES = {"seconds": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}

ListSizes = tuple[int | None, ...]


@dataclass(frozen=True, kw_only=True)
class TableColumn:
    """A feature as a column of a table.

    Attributes:
        place, feature: of the schema.
        text: whether its bytes are text; of a class, whether its name is.
        decoded: whether images and sounds are what they decode to, not what is stored.
    """

    place: Place
    feature: Feature
    text: bool = True
    decoded: bool = False

    @property
    def name(self) -> str:
        return self.feature.name

    @property
    def keys(self) -> tuple[str, ...]:
        """The stored keys."""
        return tuple(column.key for column in self.feature.columns())

    @property
    def _in_steps(self) -> bool:
        return self.place.in_steps and not self.feature.traits.spans_steps

    @property
    def _is_decoded(self) -> bool:
        return self.decoded and self.feature.value_type.item == "media"

    @property
    def _is_restored(self) -> bool:
        """Whether a custom kind stores values in a form of its own."""
        kind = type(self.feature)
        return kind.restored is not Feature.restored and KINDS.get(kind.kind) is not kind

    @cached_property
    def _items(self) -> str:
        """What the innermost items are, as `ValueType.item` has it."""
        item, made = self.feature.value_type.item, self.feature.restored_type
        return item if made is None or item != "media" else made.item

    @cached_property
    def _shape(self) -> ListSizes:
        made = self.feature.restored_type
        if self._items == "any":  # what is stored
            column = self.feature.columns()[0]
            return column.cell if isinstance(column.layout, Fixed) else (None, *column.cell)
        return self.feature.value_type.shape if made is None else made.shape

    @cached_property
    def type(self) -> Any:
        """The type of the column, a `pyarrow.DataType`."""
        pyarrow = arrow()
        if self._is_decoded:
            empty = self._stored_without_rows
            made = from_numpy(self.feature.decode_numpy(empty)).type
        elif self._items == "pair":
            column, *indices = self.feature.columns()
            place = pyarrow.large_list(pyarrow.int64())
            if len(indices) > 1:
                place = pyarrow.large_list(pyarrow.list_(pyarrow.int64(), len(indices)))
            items = self._leaf_type(column.storage)
            made = pyarrow.struct([("indices", place), ("values", pyarrow.large_list(items))])
        else:
            made = nested_type(self._leaf_type(self.feature.columns()[0].storage), self._outer_shape)
        return pyarrow.large_list(made) if self._in_steps else made

    @property
    def _outer_shape(self) -> ListSizes:
        """The sizes of lists, of which the outermost is not fixed where a row may lack the value."""
        shape = self._shape
        return (None, *shape[1:]) if shape and self.feature.traits.optional else shape

    def _leaf_type(self, storage: str) -> Any:
        pyarrow, item = arrow(), self._items
        date = self.feature.value_type.date
        if date is not None:
            return pyarrow.date32() if date == "days" else pyarrow.timestamp(_DATE_TYPES[date])
        if item == "class":
            return pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        if item in _PARTS:
            return pyarrow.list_(pyarrow.type_for_alias(_PARTS[item]), 2)
        if item == "bool":
            return pyarrow.bool_()
        dtype = storage if item in ("any", "pair") else item
        if dtype in DTYPES:
            return pyarrow.type_for_alias(_WIDER.get(dtype, dtype))
        return pyarrow.large_string() if self.text and item != "media" else pyarrow.large_binary()

    @property
    def _stored_without_rows(self) -> dict[str, ArrowArray]:
        return {
            column.key: list_array(strings_array([]), offsets(np.zeros(0, np.int64)))
            if column.storage == "bytes"
            else list_array(values_array(np.zeros(0, column.storage)), offsets(np.zeros(0, np.int64)))
            for column in self.feature.columns()
        }

    def widened(self, sections: Sections) -> TableColumn:
        """The column that holds these rows, too: of bytes, if some of them are no text."""
        if not self.text or "large_string" not in str(self.type):
            return self
        octets, first = replace(self, text=False), sections[self.place.section][self.keys[0]]
        if self._is_restored:
            flat = octets.array(sections)
            while is_list(flat):
                flat = items_of(flat)
        else:
            flat = items_of(first) if self.place.in_steps else first
        return self if are_text(flat_of(flat)) else octets

    def array(self, sections: Sections) -> ArrowArray:
        """The values of rows whose columns these are, of `type`.

        Raises RecordError, with the row, for one that the feature does not store.
        """
        stored = {key: sections[self.place.section][key] for key in self.keys}
        counts = None
        if self.place.in_steps:
            counts = counts_of(stored[self.keys[0]])
            stored = {key: items_of(array) for key, array in stored.items()}
        try:
            if counts is None:
                return self._values(stored)
            if self._in_steps:
                return list_array(self._values(stored), offsets(counts))
            cells = self._leaves(values_array(flat_of(stored[self.keys[0]])))
            return list_array(nested_lists(cells, self._shape[1:]), offsets(counts))
        except BadValue as bad:
            row = (
                bad.index if counts is None else int(np.searchsorted(offsets(counts), bad.index, "right")) - 1
            )
            raise RecordError(bad.problem.under(self.place.section, self.name), row) from None

    def _values(self, stored: Mapping[str, ArrowArray]) -> ArrowArray:
        """The values of rows, or of steps. Raises BadValue."""
        first, *others = stored.values()
        column, feature = self.feature.columns()[0], self.feature
        if self._is_decoded:
            present = counts_of(first) > 0
            made = from_numpy(feature.decode_numpy(stored))
            return made if present.all() else masked(made, present)
        if self._is_restored:
            return self._restored(stored)
        if isinstance(column.layout, Sparse):
            return self._pairs(first, others)
        if isinstance(column.layout, Ragged) and column.layout.row_lengths:
            return self._ragged(first, others, column.cell)
        if others:
            return self._stacked([first, *others])
        if self._items in DTYPES and column.storage == "bytes":
            is_tensor = feature.value_type.item != "media"
            return self._from_numpy(stored, counts_of(first) > 0) if is_tensor else self._restored(stored)
        return self._nested(first)

    def _ragged(self, values: ArrowArray, lengths: Sequence[ArrowArray], cell: tuple[int, ...]) -> ArrowArray:
        """Lists in lists, whose lengths are under other keys, those of the outermost first."""
        made = nested_lists(self._leaves(values_array(flat_of(values)), counts_of(values)), cell)
        for inner in reversed(lengths):
            made = list_array(made, offsets(flat_of(inner)))
        return list_array(made, offsets(counts_of(lengths[0])), self._present(values))

    def _stacked(self, parts: Sequence[ArrowArray]) -> ArrowArray:
        """Items of which each part is under a key of its own, as the sides of boxes may be."""
        flat = np.stack([flat_of(array) for array in parts], 1).reshape(-1)
        cells = nested_lists(self._leaves(values_array(flat)), (len(parts),))
        return list_array(cells, offsets(counts_of(parts[0])), self._present(parts[0]))

    def _pairs(self, values: ArrowArray, indices: Sequence[ArrowArray]) -> ArrowArray:
        """Values and their indices in each dimension."""
        counts = counts_of(values)
        leaves, places = self._leaves(values_array(flat_of(values)), counts), offsets(counts)
        points = values_array(np.stack([flat_of(array) for array in indices], 1).reshape(-1))
        points = fixed_lists(points, len(indices)) if len(indices) > 1 else points
        arrays = [list_array(points, places), list_array(leaves, places)]
        return arrow().StructArray.from_arrays(arrays, ["indices", "values"])

    def _nested(self, array: ArrowArray) -> ArrowArray:
        """What is stored under a key, in lists of the shape."""
        shape, counts = self._shape, counts_of(array)
        flat = values_array(flat_of(array))
        if not shape:
            leaves, present = self._leaves(flat, counts), counts == 1
            return leaves if present.all() else spread(leaves, present)
        leaves = self._leaves(flat, counts)
        if self._outer_shape[0] is not None:
            return nested_lists(leaves, shape, len(array))
        cells = nested_lists(leaves, shape[1:])
        counts = counts // max(1, math.prod(size or 1 for size in shape[1:]))
        present = self._present(array) if shape[0] is None else counts == shape[0]
        return list_array(cells, offsets(counts), present)

    def _present(self, lists: ArrowArray) -> Mask | None:
        """Which lists of any length are there. One without its key is empty, as it is read, unless rows may
        omit it."""
        return present_in(lists) if self.feature.traits.optional else None

    def _leaves(self, flat: ArrowArray, counts: Ints | None = None) -> ArrowArray:
        """Stored values as items of the column. Raises BadValue, with the row of which there are `counts`."""
        type_ = self._leaf_type(storage_of(flat))
        if flat.type == type_:
            return flat
        if self._items == "class" and storage_of(flat) == "float32":
            type_ = arrow().int64()  # of the indices, which `encoding: float` stores
        try:
            if self._items == "class":
                return self._classes(flat.cast(type_) if type_ == arrow().int64() else flat)
            if self._items == "bool":
                return truth_array(to_numpy(flat) != 0)
            if arrow().types.is_date32(type_):
                return flat.cast("int32").cast(type_)
            return flat.cast(type_)
        except arrow().ArrowInvalid:
            row = self._refused(flat, type_)
            owner = row if counts is None else int(np.searchsorted(offsets(counts), row, "right")) - 1
            value = flat[row].as_py()
            got = f"bytes that are not, as {value[:20]!r}" if isinstance(value, bytes) else str(value)
            raise BadValue(owner, _expected(type_), got) from None

    def _refused(self, flat: ArrowArray, type_: Any) -> int:
        """The first value that cannot be converted, by bisection."""
        start, stop = 0, len(flat)
        while stop - start > 1:
            middle = (start + stop) // 2
            try:
                part = flat.slice(start, middle - start)
                part = part.cast("int32") if arrow().types.is_date32(type_) else part
                part.cast(type_)
            except arrow().ArrowInvalid:
                stop = middle
            else:
                start = middle
        return start

    def _classes(self, flat: ArrowArray) -> ArrowArray:
        """Indices or names of classes as a dictionary of all names, and of what is none of them."""
        pyarrow, is_missing = arrow(), None
        names = [name.encode() for name in self.feature.traits.class_names]
        if storage_of(flat) == "bytes":
            known = strings_array(names)
            found = pyarrow.compute.index_in(to_binary(flat), value_set=known)
            places = np.where(present_in(found), to_numpy(found), -1).astype(np.int64)
            others = flat.filter(truth_array(places < 0)).unique().to_pylist()
            for number, name in enumerate(others):
                same = pyarrow.compute.equal(flat, pyarrow.scalar(name, flat.type))
                places[to_numpy(same)] = len(names) + number
        else:
            indices = to_numpy(flat)
            is_missing = (indices == MISSING) & (self.feature.traits.indicator is not None)
            indices = np.where(is_missing, 0, indices)
            is_other = (indices < 0) | (indices >= len(names))
            places, others = indices, []
            if is_other.any():
                distinct, inverse = np.unique(indices[is_other], return_inverse=True)
                others = [_digits(index, self.feature.traits.class_names) for index in distinct.tolist()]
                places = indices.copy()
                places[is_other] = len(names) + inverse
        entries = strings_array([*names, *others]).cast(pyarrow.string())
        present = None if is_missing is None or not is_missing.any() else ~is_missing
        return pyarrow.DictionaryArray.from_arrays(numbers_array(places.astype(np.int32), present), entries)

    def _from_numpy(self, stored: Mapping[str, ArrowArray], present: Mask) -> ArrowArray:
        """Values of kinds that decode to exactly what is stored."""
        value = self.feature.decode_numpy(stored)
        value = next(iter(value.values())) if isinstance(value, dict) else value
        made = self._shaped(value, self._outer_shape)
        is_missing = self.feature.traits.optional and not present.all()
        return masked(made, present) if is_missing else made

    def _shaped(self, value: Any, shape: ListSizes) -> ArrowArray:
        """An array of NumPy or a RaggedArray as lists of this shape."""
        if isinstance(value, RaggedArray):
            return list_array(self._shaped(value.values, shape[1:]), offsets(value.lengths))
        leaves = self._numpy_leaves(np.ascontiguousarray(value).reshape(-1))
        if shape[:1] != (None,):
            return nested_lists(leaves, shape, len(value))
        rows, size = value.shape[:2]
        return list_array(nested_lists(leaves, shape[1:], rows * size), np.arange(rows + 1) * size)

    def _numpy_leaves(self, flat: npt.NDArray[Any]) -> ArrowArray:
        item = self._items
        if item in _PARTS:
            return fixed_lists(numbers_array(flat.view(_PARTS[item])), 2)
        if item in _WIDER:
            flat = flat.astype(_WIDER[item])
        return truth_array(flat) if flat.dtype == np.bool_ else numbers_array(flat)

    def _restored(self, stored: Mapping[str, ArrowArray]) -> ArrowArray:
        """Values as the kind restores them, row by row."""
        values = []
        rows = zip(*map(lists_in, stored.values()), strict=True)
        for row, lists in enumerate(rows):
            try:
                values.append(self.feature.restored(dict(zip(stored, lists, strict=True))))
            except (ValueError, TypeError, IndexError, zlib.error) as error:
                raise BadValue(row, f"what {self.feature.kind} stores", str(error)) from None
        dtype = "bytes" if self._items in ("text", "media", "bytes") else self._items
        made = nested_array(values, len(self._shape), _WIDER.get(dtype, dtype))
        kind = self.type.value_type if self._in_steps else self.type
        try:
            return made.cast(kind)
        except arrow().ArrowInvalid:
            raise BadValue(self._refused(made, kind), _expected(kind), "bytes that are not") from None


def _digits(index: int, names: Container[str]) -> bytes:
    """The digits of an index without a name, which are none of the names."""
    text = str(index)
    while text in names:
        text = f"#{text}"
    return text.encode()


def _expected(type_: Any) -> str:
    return "UTF-8 text" if "string" in str(type_) else f"a number that {type_} holds"


def nested_type(item: Any, shape: ListSizes) -> Any:
    """The type of lists of these sizes, where None is any size."""
    pyarrow = arrow()
    for size in reversed(shape):
        item = pyarrow.large_list(item) if size is None else pyarrow.list_(item, size)
    return item


def nested_lists(items: ArrowArray, shape: ListSizes, rows: int | None = None) -> ArrowArray:
    """Items in lists of these sizes, all of which are known; `rows` is how many, where a size may be 0."""
    sizes = [size or 0 for size in shape]
    rows = len(items) // max(1, math.prod(sizes)) if rows is None else rows
    for level in reversed(range(len(sizes))):
        kind, count = arrow().list_(items.type, sizes[level]), rows * math.prod(sizes[:level])
        items = arrow().Array.from_buffers(kind, count, [None], children=[items])
    return items


def from_numpy(value: Any) -> ArrowArray:
    """An array of NumPy `[n, ...]`, or a RaggedArray, as lists: of fixed sizes where the array has such."""
    if isinstance(value, RaggedArray):
        return list_array(from_numpy(value.values), offsets(value.lengths))
    flat = np.ascontiguousarray(value).reshape(-1)
    leaves = truth_array(flat) if flat.dtype == np.bool_ else numbers_array(flat)
    return nested_lists(leaves, value.shape[1:], len(value))


def masked(array: ArrowArray, present: Mask) -> ArrowArray:
    """The same rows, those that are not present as null."""
    return array.take(numbers_array(np.arange(len(array)), present))


def nested_array(values: list[Any], levels: int, dtype: str) -> ArrowArray:
    """The values of a feature, nested lists or arrays of `levels` dimensions; null where one is None.

    Args:
        dtype: of numbers; `bytes` of strings.
    """
    if levels and values and all(isinstance(value, np.ndarray) for value in values):
        return _array_of_arrays(values, levels, dtype)
    present = np.array([value is not None for value in values], bool)
    if levels:
        lists = [() if value is None else value for value in values]
        items = nested_array([item for array in lists for item in array], levels - 1, dtype)
        return list_array(items, offsets(lengths_of(lists)), present)
    there = [value for value in values if value is not None]
    made = strings_array(there) if dtype == "bytes" else numbers_array(np.array(there, dtype))
    return made if present.all() else spread(made, present)


def _array_of_arrays(values: list[npt.NDArray[Any]], levels: int, dtype: str) -> ArrowArray:
    """The same of arrays, which all have `levels` dimensions."""
    made = numbers_array(np.concatenate([value.reshape(-1) for value in values]).astype(dtype))
    for level in range(levels - 1, -1, -1):
        times = [int(np.prod(value.shape[:level])) for value in values]
        made = list_array(made, offsets(np.repeat([value.shape[level] for value in values], times)))
    return made
