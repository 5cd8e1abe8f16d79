"""Encodes batches of column values as `tf.train.Example` and `tf.train.SequenceExample`.

The messages (tensorflow/core/example/feature.proto and example.proto):

    Example         { Features features = 1; }
    SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }
    Features        { map<string, Feature> feature = 1; }          a map entry: { key = 1; value = 2; }
    FeatureLists    { map<string, FeatureList> feature_list = 1; }
    FeatureList     { repeated Feature feature = 1; }
    Feature         { oneof: BytesList = 1; FloatList = 2; Int64List = 3; }  each { repeated value = 1; }

Keys are written in the order of their UTF-8 bytes, and numbers packed, so that equal rows give equal
bytes. (Protobuf promises no order for a map.)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from recordspec.errors import Problem, RecordError
from recordspec.wire.columns import Cells, Column, Storage
from recordspec.wire.framing import AT_MOST, LARGEST_RECORD
from recordspec.wire.pieces import (
    MessagePart,
    VaryingPart,
    after,
    field,
    header,
    join,
    numbers,
    payload,
    total,
    where,
)
from recordspec.wire.strings import Ints, Mask, Sizes, Strings, offsets, one_size, ranges
from recordspec.wire.varints import packed, varint_bytes, varints

_LIST_FIELD = {"bytes": 1, "float32": 2, "int64": 3}
_UINT64 = (1 << 64) - 1
# Field 1 of a stated length, up to 127 bytes.
_SHORT_FIELDS = [bytes([0x0A, size]) for size in range(0x80)]
# The number of sizes per column for which headers are cached.
_MOST_STARTS = 1024


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The values of one column for a batch; `present` marks the rows that have the key.

    In a FeatureList, `cells` has one row a step, and `steps`, int64 `[n]`, is the number of steps of each
    record.
    """

    column: Column
    cells: Cells
    present: Mask | None = None
    steps: Ints | None = None

    def part(self, start: int, stop: int) -> Entry:
        """The values of rows `start` to `stop`."""
        present = None if self.present is None else self.present[start:stop]
        if self.steps is None:
            return Entry(column=self.column, cells=self.cells.part(start, stop), present=present)
        steps = self.steps[start:stop]
        first = int(self.steps[:start].sum())
        cells = self.cells.part(first, first + int(steps.sum()))
        return Entry(column=self.column, cells=cells, present=present, steps=steps)

    def take(self, rows: Ints) -> Entry:
        """The values of these rows, in this order."""
        present = None if self.present is None else self.present[rows]
        if self.steps is None:
            return Entry(column=self.column, cells=self.cells.take(rows), present=present)
        steps = self.steps[rows]
        cells = self.cells.take(ranges(offsets(self.steps)[rows], steps))
        return Entry(column=self.column, cells=cells, present=present, steps=steps)

    @classmethod
    def joined(cls, many: Sequence[Entry]) -> Entry:
        """The values of several batches in one column, one after the other."""
        first = many[0]
        present, steps = None, None
        if any(entry.present is not None for entry in many):
            masks = [(entry.present, np.ones(entry.cells.rows, np.bool_)) for entry in many]
            present = np.concatenate([every if some is None else some for some, every in masks])
        if first.steps is not None:
            steps = np.concatenate([entry.steps for entry in many if entry.steps is not None])
        cells = Cells.joined(entry.cells for entry in many)
        return cls(column=first.column, cells=cells, present=present, steps=steps)


def encode(
    features: Iterable[Entry],
    sequence: Iterable[Entry] | None,
    rows: int,
    *,
    head: int = 0,
    tail: int = 0,
) -> Strings:
    """Encodes a batch of records, each with room for `head` bytes before it and `tail` after.

    Args:
        features: the entries of an Example, or of a SequenceExample's context.
        sequence: the entries of the feature lists; None for an Example.
        rows: the number of records.

    Raises RecordError for a record that would be larger than LARGEST_RECORD, before it is encoded if
    its values alone are larger.
    """
    features, sequence = tuple(features), None if sequence is None else tuple(sequence)
    check_sizes((*features, *(sequence or ())), rows)
    parts = field(1, _entries(features))
    if sequence is not None:
        parts += field(2, _entries(sequence))
    records = join([bytes(head), *parts, bytes(tail)], rows)
    if len(records.buffer) > LARGEST_RECORD:
        sizes = records.sizes - head - tail
        row = int(np.argmax(sizes > LARGEST_RECORD))
        if sizes[row] > LARGEST_RECORD:
            raise RecordError(Problem(expected=AT_MOST, got=f"{sizes[row]:,} bytes"), row)
    return records


def entry_encoder(column: Column) -> Callable[[Sequence[Any]], bytes]:
    """A function from the values of one record, int, float or bytes, of which there are some, to its entry.

    Encodes a row like `encode`, without NumPy, which takes ten times as long for a single row.
    """
    starts: dict[int, bytes] = {}
    as_bytes = _AS_BYTES[column.storage]

    def entry(values: Sequence[Any]) -> bytes:
        data = as_bytes(values)
        start = starts.get(len(data))
        if start is None:
            start = _start_of_size(column.key, column.storage, len(data))
            if len(starts) < _MOST_STARTS:
                starts[len(data)] = start
        return start + data

    return entry


def _delimited_values(values: Sequence[bytes]) -> bytes:
    if len(values) == 1:
        value = values[0]
        size = len(value)
        return (b"\x0a" + varint_bytes(size) if size > 0x7F else _SHORT_FIELDS[size]) + value
    return b"".join([b"\x0a" + varint_bytes(len(value)) + value for value in values])


def _packed_floats(values: Sequence[float]) -> bytes:
    data = struct.pack(f"<{len(values)}f", *values)
    return b"\x0a" + varint_bytes(len(data)) + data


def _packed_ints(values: Sequence[int]) -> bytes:
    if len(values) == 1:
        data = varint_bytes(values[0] & _UINT64)
        return _SHORT_FIELDS[len(data)] + data
    data = b"".join([varint_bytes(value & _UINT64) for value in values])
    return b"\x0a" + varint_bytes(len(data)) + data


_AS_BYTES: dict[Storage, Callable[[Sequence[Any]], bytes]] = {
    "bytes": _delimited_values,
    "float32": _packed_floats,
    "int64": _packed_ints,
}


def encode_entry(entry: Entry) -> bytes:
    """An entry of one record."""
    return join(_entry(entry), 1)[0]


def encode_record(features: Iterable[bytes], sequence: Iterable[Entry] | None) -> bytes | None:
    """Encodes a record like `encode`, from encoded features in the order of their keys; None if too large."""
    data = b"".join(features)
    record = b"\x0a" + varint_bytes(len(data)) + data
    if sequence is not None:
        record += join(field(2, _entries(sequence)), 1)[0]
    return record if len(record) <= LARGEST_RECORD else None


def check_sizes(entries: Sequence[Entry], rows: int) -> None:
    """Raises RecordError for the first record whose values alone are larger than LARGEST_RECORD."""
    found = oversized(entries, rows)
    if found is not None:
        row, size, hint = found
        raise RecordError(Problem(expected=AT_MOST, got=f"{size:,} bytes", hint=hint), row)


def oversized(entries: Sequence[Entry], rows: int) -> tuple[int, int, str] | None:
    """The first record whose values alone have more bytes than LARGEST_RECORD: its number, the least bytes
    that its values take, and the key that has most of them. Nothing is encoded."""
    if sum(least_bytes(entry.cells.flat) for entry in entries) <= LARGEST_RECORD:
        return None  # all the records together
    each = np.array([_least_sizes(entry, rows) for entry in entries])
    sizes = each.sum(axis=0)
    if not (sizes > LARGEST_RECORD).any():
        return None
    row = int(np.argmax(sizes > LARGEST_RECORD))
    most = int(each[:, row].argmax())
    return row, int(sizes[row]), f"`{entries[most].column.key}` has {each[most, row]:,} of them"


def least_bytes(flat: np.ndarray | Strings) -> int:
    """Bytes that values take at least: a varint has one or more."""
    if isinstance(flat, Strings):
        return int(flat.offsets[-1])
    return len(flat) * (4 if flat.dtype == np.float32 else 1)


def _least_sizes(entry: Entry, rows: int) -> Ints:
    """Bytes that the values of each record take at least, int64 `[rows]`."""
    cells = entry.cells
    each = cells.flat.sizes if isinstance(cells.flat, Strings) else least_bytes(cells.flat[:1])
    sizes = sizes_of_groups(each, cells.lengths)
    if entry.steps is not None:
        sizes = sizes_of_groups(sizes, entry.steps)
    return np.broadcast_to(np.asarray(sizes, np.int64), (rows,))


def _entries(entries: Iterable[Entry]) -> list[MessagePart]:
    ordered = sorted(entries, key=lambda entry: entry.column.key.encode())
    return [part for entry in ordered for part in _entry(entry)]


def _entry(entry: Entry) -> list[MessagePart]:
    column, cells = entry.column, entry.cells
    if entry.present is not None:  # the entry of only the rows that have the key
        lengths = cells.counts[entry.present]
        cells = Cells(flat=cells.flat, lengths=lengths, rows=len(lengths))
        return [where(entry.present, _entry(Entry(column=column, cells=cells)))]
    values = _list(cells)
    if entry.steps is not None:
        features = join(field(1, field(_LIST_FIELD[column.storage], values)), cells.rows)
        grouped = numbers(features.buffer, sizes_of_groups(features.each, entry.steps))
        return _map_entry(column.key, [grouped])
    size = total(values)
    if isinstance(size, int):
        return [_start_of_size(column.key, column.storage, size), *values]
    return [*_start_of_sizes(column.key, column.storage, size), *values]


def _map_entry(key: str, value: list[MessagePart]) -> list[MessagePart]:
    name = key.encode()
    return field(1, after(b"\x0a" + varint_bytes(len(name)) + name, field(2, value)))


@lru_cache(maxsize=4096)
def _start_of_size(key: str, storage: Storage, size: int) -> bytes:
    (start,) = _start_of_sizes(key, storage, size)
    assert isinstance(start, bytes)
    return start


def _start_of_sizes(key: str, storage: Storage, sizes: Sizes) -> list[MessagePart]:
    """The bytes before lists of these sizes in their map entries."""
    values = VaryingPart(data=np.empty(0, np.uint8), sizes=sizes, width=0)
    return _map_entry(key, field(_LIST_FIELD[storage], [values]))[:-1]


def _list(cells: Cells) -> list[MessagePart]:
    lengths = one_size(cells.lengths)
    if isinstance(cells.flat, Strings):
        data = field(1, [payload(cells.flat)])
        if isinstance(lengths, int) and lengths == 1:
            return data
        joined = join(data, len(cells.flat))
        return [numbers(joined.buffer, sizes_of_groups(joined.each, lengths))]
    if isinstance(lengths, int):
        return field(1, [_packed(cells.flat, lengths)]) if lengths else []
    values, some = _packed(cells.flat, lengths), lengths > 0
    if bool(some.all()) or not isinstance(values, VaryingPart):
        return field(1, [values])
    # protobuf writes no packed field for an empty list
    sizes = values.sizes if isinstance(values.sizes, int) else values.sizes[some]
    return [where(some, header(1, sizes)), values]


def _packed(flat: np.ndarray, lengths: Sizes) -> MessagePart:
    """The numbers of each record end to end."""
    if flat.dtype == np.float32:
        return numbers(np.ascontiguousarray(flat, "<f4").view(np.uint8), lengths * 4)
    values = flat.view(np.uint64)
    if isinstance(lengths, int) and lengths == 1:
        matrix, sizes = varints(values)
        return VaryingPart(data=matrix, sizes=sizes, width=matrix.shape[1])
    return numbers(*packed(values, lengths))


def sizes_of_groups(sizes: Sizes, lengths: Sizes) -> Sizes:
    """The sum of the sizes in each group of `lengths` values."""
    if isinstance(sizes, int):
        return sizes * lengths
    if isinstance(lengths, int):
        return sizes.reshape(-1, lengths).sum(axis=1, dtype=np.int64) if lengths else 0
    sums = np.zeros(len(lengths), np.int64)
    some = lengths > 0  # reduceat knows no empty groups
    sums[some] = np.add.reduceat(sizes, offsets(lengths)[:-1][some], dtype=np.int64)
    return sums
