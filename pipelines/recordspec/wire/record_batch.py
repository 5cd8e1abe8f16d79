"""Decodes many Examples to columns, the inverse of `example.encode`, without TensorFlow.

Records that are not written as usual are parsed by protobuf. Where TensorFlow reads them otherwise,
`RecordBatch.conflicts` says so.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from recordspec.errors import Problem, RecordError
from recordspec.wire import native, proto
from recordspec.wire.columns import (
    LIST_KINDS,
    Cells,
    KeySteps,
    KeyValues,
    Kind,
    only,
    only_steps,
    without_values,
)
from recordspec.wire.proto import Conflict
from recordspec.wire.strings import Bytes, Ints, Mask, Strings, lengths_of

# As the library numbers them; the next number stands for the steps of a feature list.
_KINDS: tuple[Kind, ...] = ("none", *LIST_KINDS)

T = TypeVar("T")


@dataclass(kw_only=True)
class RecordBatch:
    """Records as columns.

    Attributes:
        rows: the number of records.
        features: the values by key; of a SequenceExample, those of the context. A row is in at most one
            `KeyValues` of a key.
        sequence: the feature lists by key, likewise.
        repeated: pairs of a row and a key that it has twice, the last of which counts.
        broken: the problems of rows that are no such messages, and have no values.
        unknown_fields: rows with fields that these messages do not have, which are left out.
        conflicts: rows that TensorFlow refuses, or reads otherwise.
    """

    rows: int
    features: dict[str, tuple[KeyValues, ...]] = field(default_factory=dict)
    sequence: dict[str, tuple[KeySteps, ...]] = field(default_factory=dict)
    repeated: list[tuple[int, str]] = field(default_factory=list)
    broken: dict[int, Problem] = field(default_factory=dict)
    unknown_fields: list[int] = field(default_factory=list)
    conflicts: dict[int, tuple[Conflict, ...]] = field(default_factory=dict)

    @property
    def problems(self) -> Iterator[tuple[int, tuple[Problem, ...]]]:
        """The problems of rows that TensorFlow does not read, or reads otherwise, by row in ascending
        order."""
        for row in sorted({*self.broken, *self.conflicts}):
            conflicts = tuple(conflict.problem for conflict in self.conflicts.get(row, ()))
            yield row, conflicts or (self.broken[row],)


def decode(buffer: Bytes, starts: Ints, stops: Ints, *, sequence: bool | None = False) -> RecordBatch:
    """Decodes the records in a buffer to columns.

    Args:
        buffer: uint8 `[bytes]`.
        starts, stops: where each begins and ends, int64 `[n]`.
        sequence: whether they are SequenceExamples; None if unknown: those with feature lists are.
    """
    library = native.library()
    found, odd = RecordBatch(rows=len(starts)), np.ones(len(starts), np.bool_)
    if library is not None:
        odd = _decode(found, library, buffer, starts, stops, sequence=sequence is not False)
    rows = np.flatnonzero(odd).tolist()
    _parse(found, {row: buffer[starts[row] : stops[row]].data for row in rows}, sequence=sequence)
    return found


def _decode(
    found: RecordBatch, library: Any, buffer: Bytes, starts: Ints, stops: Ints, *, sequence: bool
) -> Mask:
    """Adds the records that are written as usual. Returns which are left out. Raises MemoryError."""
    odd = np.empty(len(starts), np.bool_)
    starts, stops = native.ints(starts), native.ints(stops)
    records = map(native.at, (buffer, starts, stops))
    address = library.rs_decode(*records, len(starts), sequence, native.at(odd))
    if address is None:
        raise MemoryError
    memory = native.Memory(library, address)
    count = ctypes.c_int64()
    parts = library.rs_parts(address, ctypes.byref(count))
    numbers = memory.array(parts, 10 * count.value, np.int64).reshape(-1, 10).tolist()
    for is_list, name, size, number, at, rows, lengths, flat, values, places in numbers:
        key = ctypes.string_at(name, size).decode()
        of_rows, counts = (memory.array(place, rows, np.int64) for place in (at, lengths))
        if number == len(_KINDS):
            found.sequence[key] = (KeySteps(of_rows, counts, ()),)
            continue
        kind = _KINDS[number]
        if kind == "bytes":
            offsets = memory.array(places, int(counts.sum()) + 1, np.int64)
            decoded: Any = Strings(memory.array(flat, values, np.uint8), offsets)
        else:
            decoded = Strings.of([]) if kind == "none" else memory.array(flat, values, kind)
        one = KeyValues(kind, of_rows, Cells(flat=decoded, lengths=counts, rows=rows))
        if is_list:
            (steps,) = found.sequence[key]
            found.sequence[key] = (replace(steps, values=(*steps.values, one)),)
        else:
            found.features[key] = (*found.features.get(key, ()), one)
    return odd


def only_rows(batch: RecordBatch, rows: Mask) -> RecordBatch:
    """The batch without the values of all other rows, and without keys that none of these rows has."""
    features = {
        key: tuple(one for values in many if len((one := only(values, rows)).rows))
        for key, many in batch.features.items()
    }
    sequence = {
        key: tuple(kept for steps in many if len((kept := only_steps(steps, rows)).rows))
        for key, many in batch.sequence.items()
    }
    return replace(
        batch,
        features={key: many for key, many in features.items() if many},
        sequence={key: many for key, many in sequence.items() if many},
    )


def _parse(found: RecordBatch, records: Mapping[int, memoryview], *, sequence: bool | None) -> None:
    """Adds records that protobuf parses one by one."""
    features: dict[str, dict[int, proto.Listed]] = {}
    lists: dict[str, dict[int, list[proto.Listed]]] = {}
    for row, data in records.items():
        try:
            entries = proto.entries(data, sequence=sequence)
        except RecordError as error:
            found.broken[row] = error.problems[0]
            continue
        if entries.unknown_fields:
            found.unknown_fields.append(row)
        if entries.conflicts:
            found.conflicts[row] = entries.conflicts
        twice = (*_sort(entries.features, row, features), *_sort(entries.lists, row, lists))
        found.repeated += [(row, key) for key in twice]
    for key, values in features.items():
        rows = np.fromiter(values, np.int64, len(values))
        found.features[key] = found.features.get(key, ()) + _key_values(rows, list(values.values()))
    for key, many in lists.items():
        rows = np.fromiter(many, np.int64, len(many))
        every = list(chain.from_iterable(many.values()))
        made = KeySteps(rows, lengths_of(list(many.values())), _key_values(np.arange(len(every)), every))
        found.sequence[key] = (*found.sequence.get(key, ()), made)


def _sort(entries: list[tuple[str, T]], row: int, by_key: dict[str, dict[int, T]]) -> list[str]:
    """Adds the entries of a row by key. Returns the keys that it has twice."""
    twice = []
    for key, value in entries:
        rows = by_key.setdefault(key, {})
        if row in rows:
            twice.append(key)
        rows[row] = value
    return twice


def _key_values(rows: Ints, features: list[proto.Listed]) -> tuple[KeyValues, ...]:
    """The values of features that protobuf parsed, by kind."""
    kinds = np.array([feature.kind for feature in features])
    found = []
    for kind in ("none", *LIST_KINDS):
        places = np.flatnonzero(kinds == kind)
        if len(places) and kind == "none":
            found.append(without_values(kind, rows[places]))
        elif len(places):
            lists = [features[place].values for place in places.tolist()]
            values = list(chain.from_iterable(lists))
            flat: Any = Strings.of(values) if kind == "bytes" else np.array(values, kind)
            found.append(
                KeyValues(kind, rows[places], Cells(flat=flat, lengths=lengths_of(lists), rows=len(places)))
            )
    return tuple(found)
