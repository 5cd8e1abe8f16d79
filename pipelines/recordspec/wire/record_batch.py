"""Decodes many Examples to columns, the inverse of `example.encode`, without TensorFlow.

Records with an unusual encoding are parsed by protobuf. If TensorFlow reads them differently,
`RecordBatch.conflicts` has the differences.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError
from recordspec.wire import native, proto
from recordspec.wire.arrays import (
    ArrowArray,
    Bytes,
    Ints,
    Mask,
    counts_of,
    empty_lists,
    items_of,
    joined,
    list_array,
    offsets,
    present_in,
    strings_array,
    take,
    to_arrow,
    values_array,
)
from recordspec.wire.columns import LIST_KINDS, Kind, Section
from recordspec.wire.proto import Conflict

# The kinds of lists, as numbered by the native library.
_KINDS: tuple[Kind, ...] = ("none", *LIST_KINDS)

# The most items of the arrays that are kept; an item may take 8 bytes.
_MOST_KEPT = 1 << 22

T = TypeVar("T")


class Decoded(Mapping[str, tuple[ArrowArray, ...]]):
    """The arrays by key, each built on access: every record may have a distinct key, and an array has an item
    for every record. The arrays of the first keys are kept."""

    def __init__(self, rows: int, *, steps: bool) -> None:
        self._rows, self._steps = rows, steps
        self._made: dict[str, tuple[ArrowArray, ...]] = {}
        # the functions that build arrays, by key, group of rows and kind
        self._makers: dict[str, dict[int, dict[Kind, Callable[[], ArrowArray]]]] = {}

    def add(self, key: str, group: int, kind: Kind, make: Callable[[], ArrowArray]) -> None:
        """Adds an array of a key. The groups have disjoint rows."""
        self._makers.setdefault(key, {}).setdefault(group, {})[kind] = make

    def __getitem__(self, key: str) -> tuple[ArrowArray, ...]:
        if key in self._made:
            return self._made[key]
        groups = [{kind: make() for kind, make in one.items()} for one in self._makers[key].values()]
        merged = _merged(groups, steps=self._steps)
        if len(self._made) * self._rows < _MOST_KEPT:
            self._made[key] = merged
        return merged

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


@dataclass(kw_only=True)
class RecordBatch:
    """Records as columns.

    Attributes:
        rows: the number of records.
        features: the features of Examples, or of the context of SequenceExamples: by key, an array for each
            kind of list (see `wire.arrays`). A record without a list of the kind is null.
        sequence: the feature lists: by key, an array for each kind, with a list of lists for each record. If
            steps have lists of several kinds, each array has all steps, and steps of another kind are null.
        repeated: pairs of a row and a duplicate key. The last value of the key counts.
        broken: the problems of rows that are not such messages, by row. Their values are null.
        unknown_fields: the rows with fields that these messages do not have. The fields are left out.
        conflicts: the conflicts of rows that TensorFlow rejects, or reads differently, by row.
    """

    rows: int
    features: Mapping[str, tuple[ArrowArray, ...]] = field(default_factory=dict)
    sequence: Mapping[str, tuple[ArrowArray, ...]] = field(default_factory=dict)
    repeated: list[tuple[int, str]] = field(default_factory=list)
    broken: dict[int, Problem] = field(default_factory=dict)
    unknown_fields: list[int] = field(default_factory=list)
    conflicts: dict[int, tuple[Conflict, ...]] = field(default_factory=dict)

    def keys_in(self, section: Section) -> Mapping[str, tuple[ArrowArray, ...]]:
        """The arrays of a section by key: `sequence`, or `features`."""
        return self.sequence if section == "sequence" else self.features

    @property
    def problems(self) -> Iterator[tuple[int, tuple[Problem, ...]]]:
        """The problems of rows that TensorFlow does not read, or reads differently, in ascending order of
        rows."""
        for row in sorted({*self.broken, *self.conflicts}):
            conflicts = tuple(conflict.problem for conflict in self.conflicts.get(row, ()))
            yield row, conflicts or (self.broken[row],)


def decode(
    buffer: Bytes,
    starts: Ints,
    stops: Ints,
    *,
    sequence: bool | None = False,
    keys: Collection[str] | None = None,
) -> RecordBatch:
    """Decodes the records in a buffer to columns.

    Args:
        buffer: the bytes, uint8 `[bytes]`.
        starts, stops: the offsets at which each record begins and ends, int64 `[n]`.
        sequence: whether the records are SequenceExamples; None if unknown: a record with feature lists is
            one.
        keys: the keys whose values are decoded; None for all. Each record is read whole in any case, so that
            broken records are found.
    """
    library = native.library()
    features, lists = Decoded(len(starts), steps=False), Decoded(len(starts), steps=True)
    batch = RecordBatch(rows=len(starts), features=features, sequence=lists)
    odd = np.ones(len(starts), np.bool_)
    if library is not None:
        sections, in_lists = (features, lists), sequence is not False
        odd = _decode(sections, library, buffer, starts, stops, sequence=in_lists, keys=keys)
    rows = np.flatnonzero(odd).tolist()
    records = {row: buffer[starts[row] : stops[row]].data for row in rows}
    _parse(batch, (features, lists), records, sequence=sequence, keys=keys)
    return batch


def _decode(
    sections: tuple[Decoded, Decoded],
    library: Any,
    buffer: Bytes,
    starts: Ints,
    stops: Ints,
    *,
    sequence: bool,
    keys: Collection[str] | None,
) -> Mask:
    """Adds the records with the usual encoding. Returns a mask of the records left out. Raises
    MemoryError."""
    rows, odd = len(starts), np.empty(len(starts), np.bool_)
    starts, stops = native.ints(starts), native.ints(stops)
    records = map(native.at, (buffer, starts, stops))
    names = map(str.encode, keys or ())
    wanted = None if keys is None else b"".join(struct.pack("<I", len(name)) + name for name in names)
    address = library.rs_decode(
        *records, rows, sequence, wanted, 0 if wanted is None else len(wanted), native.at(odd)
    )
    if address is None:
        raise MemoryError
    memory = native.Memory(library, address)
    count = ctypes.c_int64()
    parts = library.rs_parts(address, ctypes.byref(count))
    size = _Part.NUMBERS * count.value
    numbers = (ctypes.c_int64 * size).from_address(parts) if size else ()
    described = zip(*[iter(numbers)] * _Part.NUMBERS, strict=True)
    for place, (is_list, name, size, *part_numbers) in enumerate(described):
        part = _Part(memory, place, rows if is_list else None, *part_numbers)
        sections[is_list].add(ctypes.string_at(name, size).decode(), 0, part.kind, part.array)
    return odd


class _Part:
    """The lists of one kind under a key, in the memory of the native library; for a feature list, the lists
    of the steps of `rows` records."""

    NUMBERS = 11

    def __init__(
        self, memory: native.Memory, number: int, rows: int | None, kind: int, lists: int, *numbers: int
    ) -> None:
        self._memory, self._number, self._rows, self._lists = memory, number, rows, lists
        self.kind = _KINDS[kind]
        self._width, self._listed, self._values, self._count, self._places, self._with_steps = numbers

    def array(self) -> ArrowArray:
        pyarrow, flat = arrow(), self._flat()
        if self._width == 1:
            lists = flat
        elif self._width:
            type_ = pyarrow.list_(flat.type, self._width)
            lists = pyarrow.Array.from_buffers(type_, self._lists, [None], children=[flat])
        else:
            lists = self._list_array(flat, self._lists, self._listed, steps=False)
        if self._rows is None:
            return lists
        return self._list_array(lists, self._rows, self._with_steps, steps=True)

    def _flat(self) -> ArrowArray:
        pyarrow, count = arrow(), self._count
        if self.kind == "none":
            return pyarrow.nulls(0)
        if self.kind == "bytes":
            places = self._memory.buffer(self._places, 8 * (count + 1))
            data = self._memory.buffer(self._values, int(np.frombuffer(places, np.int64)[-1]))
            return pyarrow.Array.from_buffers(pyarrow.large_binary(), count, [None, places, data])
        type_ = pyarrow.int64() if self.kind == "int64" else pyarrow.float32()
        data = self._memory.buffer(self._values, type_.bit_width // 8 * count)
        return pyarrow.Array.from_buffers(type_, count, [None, data])

    def _list_array(self, items: ArrowArray, rows: int, present: int, *, steps: bool) -> ArrowArray:
        """Lists of items, one for each row; `present` is the number of rows that are not null."""
        pyarrow, ends, valid = arrow(), np.empty(rows + 1, np.int64), np.empty((rows + 7) // 8, np.uint8)
        self._memory.library.rs_places(
            self._memory.address, self._number, steps, native.at(ends), native.at(valid)
        )
        buffers = [pyarrow.py_buffer(valid) if present < rows else None, pyarrow.py_buffer(ends)]
        return pyarrow.Array.from_buffers(pyarrow.large_list(items.type), rows, buffers, children=[items])


def _parse(
    batch: RecordBatch,
    sections: tuple[Decoded, Decoded],
    records: Mapping[int, memoryview],
    *,
    sequence: bool | None,
    keys: Collection[str] | None,
) -> None:
    """Adds records that protobuf parses one by one."""
    features: dict[str, dict[int, proto.Listed]] = {}
    lists: dict[str, dict[int, list[proto.Listed]]] = {}
    for row, data in records.items():
        try:
            entries = proto.entries(data, sequence=sequence)
        except RecordError as error:
            batch.broken[row] = error.problems[0]
            continue
        if entries.unknown_fields:
            batch.unknown_fields.append(row)
        if entries.conflicts:
            batch.conflicts[row] = entries.conflicts
        twice = (*_sort(entries.features, row, features), *_sort(entries.lists, row, lists))
        batch.repeated += [(row, key) for key in twice]
    for key, values in _wanted(features, keys):
        for kind in _kinds_in(values.values()):
            sections[0].add(key, 1, kind, partial(_listed, values, kind, batch.rows))
    for key, many in _wanted(lists, keys):
        for kind in _kinds_in(chain.from_iterable(many.values())) or ["none"]:
            sections[1].add(key, 1, kind, partial(_listed_steps, many, kind, batch.rows))


def _wanted(by_key: Mapping[str, T], keys: Collection[str] | None) -> list[tuple[str, T]]:
    return [(key, value) for key, value in by_key.items() if keys is None or key in keys]


def _sort(entries: list[tuple[str, T]], row: int, by_key: dict[str, dict[int, T]]) -> list[str]:
    """Adds the entries of a row by key. Returns the duplicate keys of the row."""
    twice = []
    for key, value in entries:
        rows = by_key.setdefault(key, {})
        if row in rows:
            twice.append(key)
        rows[row] = value
    return twice


def _kinds_in(features: Iterable[proto.Listed]) -> list[Kind]:
    return sorted({feature.kind for feature in features}, key=_KINDS.index)


def _listed(features: Mapping[int, proto.Listed], kind: Kind, rows: int) -> ArrowArray:
    """The lists of a kind among `features`, the features by row, as an array of `rows` items."""
    present, counts, values = np.zeros(rows, np.bool_), np.zeros(rows, np.int64), []
    for row, feature in sorted(features.items()):
        if feature.kind == kind:
            present[row], counts[row] = True, len(feature.values)
            values.append(feature.values)
    if kind == "none":
        return empty_lists(present)
    flat = list(chain.from_iterable(values))
    made = strings_array(flat) if kind == "bytes" else values_array(np.array(flat, kind))
    if rows and counts[0] and present.all() and bool((counts == counts[0]).all()):
        return to_arrow(made, int(counts[0]))
    return list_array(made, offsets(counts), present)


def _listed_steps(lists: Mapping[int, list[proto.Listed]], kind: Kind, rows: int) -> ArrowArray:
    """The lists of a kind among `lists`, the feature lists by row, as an array of `rows` items."""
    present, counts, steps = np.zeros(rows, np.bool_), np.zeros(rows, np.int64), []
    for row, many in sorted(lists.items()):
        present[row], counts[row] = True, len(many)
        steps += many
    items = _listed(dict(enumerate(steps)), kind, len(steps))
    return list_array(items, offsets(counts), present)


def _merged(groups: list[dict[Kind, ArrowArray]], *, steps: bool) -> tuple[ArrowArray, ...]:
    """The arrays of a key, one for each kind, merged from the groups of rows."""
    if len(groups) == 1:
        return tuple(groups[0].values())
    pieces = []
    for kind in _KINDS:
        arrays = [group[kind] for group in groups if kind in group]
        if arrays and steps:  # each array must have all steps
            arrays = [
                group[kind] if kind in group else _without_values(next(iter(group.values())), kind)
                for group in groups
            ]
        if arrays:
            pieces.append(_merged_rows(arrays))
    some = [array for array in pieces if not steps or items_of(array).null_count < len(items_of(array))]
    return tuple(some or pieces[:1])


def _merged_rows(arrays: list[ArrowArray]) -> ArrowArray:
    """The merged rows of one or two arrays. At most one of them is not null in each row."""
    first, *others = arrays
    for other in others:
        places = np.arange(len(first)) + len(first) * present_in(other)
        first = take(joined([first, other]), places)
    return first


def _without_values(steps: ArrowArray, kind: Kind) -> ArrowArray:
    """An array with the same steps, all null for this kind of list."""
    pyarrow, counts = arrow(), counts_of(steps)
    types = {"none": pyarrow.null(), "bytes": pyarrow.large_binary(), "float32": pyarrow.float32()}
    items = pyarrow.nulls(int(counts.sum()), pyarrow.large_list(types.get(kind, pyarrow.int64())))
    return list_array(items, offsets(counts), present_in(steps))
