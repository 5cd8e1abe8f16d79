"""Decodes many Examples to columns, the inverse of `example.encode`, without TensorFlow.

Records with an unusual encoding are parsed by protobuf. If TensorFlow reads them differently,
`RecordBatch.conflicts` has the differences.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError
from recordspec.wire import native, proto
from recordspec.wire.arrays import (
    ArrowArray,
    Bytes,
    Ints,
    Mask,
    StringsInPlace,
    counts_of,
    empty_lists,
    items_of,
    joined,
    list_array,
    objects_at,
    offsets,
    present_in,
    strings_array,
    take,
    to_arrow,
    values_array,
)
from recordspec.wire.columns import NATIVE_KINDS, FixedKeys, Kind, Section, packed_names
from recordspec.wire.proto import Conflict

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


class FixedValues(NamedTuple):
    """The values of keys under which every record has a list.

    Attributes:
        values: the values of all records by key, end to end.
        lengths: the number of values in each record, int64 `[n]`, by key, for keys with any number.
    """

    values: dict[str, npt.NDArray[Any]]
    lengths: dict[str, Ints]


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
        fixed: the values of the keys that were asked for as fixed, if every record has such lists under all
            of them. These keys are not in `features`.
    """

    rows: int
    features: Mapping[str, tuple[ArrowArray, ...]] = field(default_factory=dict)
    sequence: Mapping[str, tuple[ArrowArray, ...]] = field(default_factory=dict)
    repeated: list[tuple[int, str]] = field(default_factory=list)
    broken: dict[int, Problem] = field(default_factory=dict)
    unknown_fields: list[int] = field(default_factory=list)
    conflicts: dict[int, tuple[Conflict, ...]] = field(default_factory=dict)
    fixed: FixedValues | None = None

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
    fixed: FixedKeys | None = None,
) -> RecordBatch:
    """Decodes the records in a buffer to columns.

    Args:
        buffer: the bytes, uint8 `[bytes]`.
        starts, stops: the offsets at which each record begins and ends, int64 `[n]`.
        sequence: whether the records are SequenceExamples; None if unknown: a record with feature lists is
            one.
        keys: the keys whose values are decoded; None for all. Each record is read whole in any case, so that
            broken records are found.
        fixed: the keys that are decoded to `RecordBatch.fixed`; for few rows, an Arrow array for each key
            takes most of the time.
    """
    library = native.library()
    features, lists = Decoded(len(starts), steps=False), Decoded(len(starts), steps=True)
    batch = RecordBatch(rows=len(starts), features=features, sequence=lists)
    odd = np.ones(len(starts), np.bool_)
    if library is not None:
        wanted = None if keys is None else packed_names(keys)
        memory = _decoded(library, buffer, starts, stops, odd, sequence=sequence is not False, wanted=wanted)
        if fixed is not None and fixed.of and not odd.any():
            batch.fixed = _fixed(memory, fixed, len(starts))
        for part in _parts(memory, len(starts)):
            name = part.name.decode()
            if part.is_list or batch.fixed is None or name not in batch.fixed.values:
                (features, lists)[part.is_list].add(name, 0, part.kind, part.array)
    rows = np.flatnonzero(odd).tolist()
    records = {row: buffer[starts[row] : stops[row]].data for row in rows}
    _parse(batch, (features, lists), records, sequence=sequence, keys=keys)
    return batch


def fixed_values(
    buffer: Bytes, starts: Ints, stops: Ints, keys: FixedKeys, *, sequence: bool
) -> FixedValues | None:
    """Decodes only keys under which every record has a list, in half of the time of `decode` for one record.

    Returns None without the native library, and if a record has an unusual encoding, or another list under a
    key: `decode` has the reason.
    """
    library, count = native.library(), len(starts)
    if library is None or not count:
        return None
    odd = np.empty(count, np.bool_)
    memory = _decoded(library, buffer, starts, stops, odd, sequence=sequence, wanted=keys.wanted)
    # NumPy's `any` takes four times as long
    return None if 1 in odd.tobytes() else _fixed(memory, keys, count)


def strings_in_place(
    buffer: Bytes, starts: Ints, stops: Ints, key: str, counts: Ints
) -> StringsInPlace | None:
    """The strings under a key of Examples, which have as many as `counts` says.

    Returns None without the native library, and if an Example has an unusual encoding, or others.
    """
    if (library := native.library()) is None:
        return None
    starts, stops, counts, name = native.ints(starts), native.ints(stops), native.ints(counts), key.encode()
    addresses, sizes = (np.empty(int(counts.sum()), np.int64) for _ in range(2))
    places, found = (buffer, starts, stops), (counts, addresses, sizes)
    done = library.rs_strings(*map(native.at, places), len(starts), name, len(name), *map(native.at, found))
    return StringsInPlace(addresses, sizes, (buffer,)) if done == len(starts) else None


def _decoded(
    library: Any, buffer: Bytes, starts: Ints, stops: Ints, odd: Mask, *, sequence: bool, wanted: bytes | None
) -> native.Memory:
    """Decodes the records with the usual encoding, and sets `odd` for the others. Raises MemoryError."""
    starts, stops = native.ints(starts), native.ints(stops)
    size = 0 if wanted is None else len(wanted)
    places = native.at(buffer), native.at(starts), native.at(stops)
    address = library.rs_decode(*places, len(starts), sequence, wanted, size, native.at(odd))
    if address is None:
        raise MemoryError
    return native.Memory(library, address)


def _fixed(memory: native.Memory, keys: FixedKeys, rows: int) -> FixedValues | None:
    """The values of these keys; None if a record has another kind or another number of values."""
    made: dict[str, npt.NDArray[Any]] = {}
    for key, (kind, width) in keys.of.items():
        if width is None:
            made[key] = np.empty(rows + 3, np.int64)
        else:
            made[key] = (
                np.empty(rows * width + 2, np.int64) if kind == "bytes" else np.empty(rows * width, kind)
            )
    addresses = np.array([*map(native.at, made.values())], np.int64)
    library, packed = memory.library, keys.packed
    if not library.rs_values(memory.address, packed, len(packed), native.at(addresses)):
        return None
    lengths: dict[str, Ints] = {}
    for key, (kind, width) in keys.in_memory:
        found = made[key]
        if width is not None:
            made[key] = _strings(int(found[0]), found[1:])
            continue
        values, ends, count = found[:3].tolist()
        lengths[key] = found[3:]
        if kind == "bytes":
            made[key] = _strings(values, _numbers(ends, count + 1, "int64") if count else offsets(found[:0]))
        else:
            made[key] = _numbers(values, count, kind)
    return FixedValues(made, lengths)


def _numbers(address: int, count: int, kind: Kind) -> npt.NDArray[Any]:
    """The numbers at an address of the library, in memory of their own."""
    dtype = np.dtype(kind)
    data: Any = (ctypes.c_char * (count * dtype.itemsize)).from_address(address) if count else b""
    values: npt.NDArray[Any] = np.frombuffer(data, dtype).copy()
    return values


def _strings(address: int, places: Ints) -> npt.NDArray[Any]:
    """The strings between offsets in the bytes at an address of the library."""
    size = int(places[-1])
    data: Any = (ctypes.c_ubyte * size).from_address(address) if size else b""
    return objects_at(np.frombuffer(data, np.uint8), places)


def _parts(memory: native.Memory, rows: int) -> list[_Part]:
    """The lists of all keys."""
    count = ctypes.c_int64()
    parts = memory.library.rs_parts(memory.address, ctypes.byref(count))
    size = _Part.NUMBERS * count.value
    numbers = (ctypes.c_int64 * size).from_address(parts) if size else ()
    described = np.array(numbers, np.int64).reshape(-1, _Part.NUMBERS).tolist()
    return [_Part(memory, place, rows, *one) for place, one in enumerate(described)]


class _Part:
    """The lists of one kind under a key, in the memory of the native library; for a feature list, the lists
    of the steps of `rows` records."""

    NUMBERS = 11

    __slots__ = (
        "_count",
        "_listed",
        "_lists",
        "_memory",
        "_number",
        "_places",
        "_rows",
        "_values",
        "_width",
        "_with_steps",
        "is_list",
        "kind",
        "name",
    )

    def __init__(
        self,
        memory: native.Memory,
        number: int,
        rows: int,
        is_list: int,
        name: int,
        size: int,
        kind: int,
        lists: int,
        width: int,
        listed: int,
        values: int,
        count: int,
        places: int,
        with_steps: int,
    ) -> None:
        self._memory, self._number, self._rows, self._lists = memory, number, rows, lists
        self.is_list, self.name, self.kind = is_list, ctypes.string_at(name, size), NATIVE_KINDS[kind]
        self._width, self._listed, self._values = width, listed, values
        self._count, self._places, self._with_steps = count, places, with_steps

    def array(self) -> ArrowArray:
        pyarrow, flat = arrow(), self._flat()
        if self._width == 1:
            lists = flat
        elif self._width:
            type_ = pyarrow.list_(flat.type, self._width)
            lists = pyarrow.Array.from_buffers(type_, self._lists, [None], children=[flat])
        else:
            lists = self._list_array(flat, self._lists, self._listed, steps=False)
        if not self.is_list:
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
    return sorted({feature.kind for feature in features}, key=NATIVE_KINDS.index)


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
    for kind in NATIVE_KINDS:
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
