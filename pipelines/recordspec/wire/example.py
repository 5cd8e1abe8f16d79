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

import ctypes
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from recordspec.errors import Problem, RecordError
from recordspec.wire import native, proto
from recordspec.wire.columns import Cells, Column, Storage
from recordspec.wire.framing import AT_MOST, LARGEST_RECORD, frames
from recordspec.wire.proto import Listed
from recordspec.wire.strings import Ints, Mask, Sizes, Strings, offsets, ranges
from recordspec.wire.varints import read_varint, varint_bytes

_LIST_FIELD = {"bytes": 1, "float32": 2, "int64": 3}
_UINT64 = (1 << 64) - 1
# What `rs_fill` may write after the records.
_SLACK = 16
# Bytes of a string: finding the place of one takes ctypes 0.6 us, copying so many as long.
_LARGE = 4096
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
    framed: bool = False,
) -> Strings:
    """Encodes a batch of records.

    Args:
        features: the entries of an Example, or of a SequenceExample's context.
        sequence: the entries of the feature lists; None for an Example.
        rows: the number of records.
        framed: whether each is in its frame.

    Raises RecordError for a record that would be larger than LARGEST_RECORD, before it is encoded if
    its values alone are larger.
    """
    features, sequence = tuple(features), None if sequence is None else tuple(sequence)
    check_sizes((*features, *(sequence or ())), rows)
    ordered = None if sequence is None else _in_order(sequence)
    if (library := native.library()) is not None:
        return _encode(library, _in_order(features), ordered, rows, framed=framed)
    return _by_protobuf(_in_order(features), ordered, rows, framed=framed)


def _encode(
    library: Any, features: Sequence[Entry], sequence: Sequence[Entry] | None, rows: int, *, framed: bool
) -> Strings:
    """The records of entries in the order of their keys, framed or not. Raises MemoryError, and RecordError
    for the first that is larger than LARGEST_RECORD."""
    held: list[Any] = []  # arrays that the library reads
    columns = np.array([_column(entry, held) for entry in (*features, *(sequence or ()))], np.int64)
    places, large = np.empty(rows + 1, np.int64), ctypes.c_int64()
    shape = len(features), -1 if sequence is None else len(sequence), rows
    found = native.at(places), ctypes.byref(large)
    measured = library.rs_measure(native.at(columns), *shape, LARGEST_RECORD, framed, *found)
    if measured is None:
        raise MemoryError
    if large.value >= 0:
        library.rs_fill(measured, None, None)
        size = int(places[large.value + 1])
        raise RecordError(Problem(expected=AT_MOST, got=f"{size:,} bytes"), large.value)
    size = int(places[rows])
    buffer = np.empty(size + _SLACK, np.uint8)
    if not library.rs_fill(measured, native.at(buffer), native.at(places)):
        raise MemoryError
    return Strings(buffer[:size], places)


def _column(entry: Entry, held: list[Any]) -> tuple[int, ...]:
    """The ten numbers of a column, whose arrays are added to `held`."""

    def at(array: Any) -> int:
        held.append(array)
        return native.at(array)

    key, cells = entry.column.key.encode(), entry.cells
    flat, width, ends = cells.flat, cells.lengths, 0
    if not isinstance(width, int):
        ends, width = at(offsets(width)), -1
    values = places = parts = 0
    if isinstance(flat, Strings):
        places = at(native.ints(flat.offsets))
        if flat.is_lazy and _are_large(flat):
            strings: Any = flat.views()
            pointers = (ctypes.c_char_p * len(flat))(*strings)
            held.append(pointers)
            parts = ctypes.addressof(pointers)
        else:
            values = at(flat.buffer)
    else:
        values = at(np.ascontiguousarray(flat, entry.column.storage))
    present = 0 if entry.present is None else at(np.ascontiguousarray(entry.present, np.bool_))
    steps = 0 if entry.steps is None else at(offsets(entry.steps))
    kind = _LIST_FIELD[entry.column.storage]
    return (
        at(np.frombuffer(key, np.uint8)),
        len(key),
        kind,
        width,
        ends,
        values,
        places,
        parts,
        present,
        steps,
    )


def _are_large(strings: Strings) -> bool:
    """Whether it is cheaper to look up where each is than to join them first."""
    return int(strings.offsets[-1]) > _LARGE * len(strings) and set(map(type, strings.views())) == {bytes}


def _by_protobuf(
    features: Sequence[Entry], sequence: Sequence[Entry] | None, rows: int, *, framed: bool
) -> Strings:
    """The same without the library, record by record."""
    columns = [(entry.column.key, _values_of(entry, rows)) for entry in features]
    lists = None if sequence is None else [(entry.column.key, _values_of(entry, rows)) for entry in sequence]
    records = []
    for row in range(rows):
        values = [(key, found[row]) for key, found in columns if found[row] is not None]
        steps = None if lists is None else [(key, found[row]) for key, found in lists]
        record = proto.serialize(values, steps)
        if len(record) > LARGEST_RECORD:
            raise RecordError(Problem(expected=AT_MOST, got=f"{len(record):,} bytes"), row)
        records.append(record)
    return frames(records) if framed else Strings.of(records)


def _values_of(entry: Entry, rows: int) -> list[Any]:
    """The list of each row, or the lists of its steps; None where the key is absent."""
    kind, cells = entry.column.storage, entry.cells
    flat = list(cells.flat) if isinstance(cells.flat, Strings) else cells.flat.tolist()
    lists = [Listed(kind, flat[start:stop]) for start, stop in pairwise(offsets(cells.counts).tolist())]
    if entry.steps is not None:
        return [lists[start:stop] for start, stop in pairwise(offsets(entry.steps).tolist())]
    present = [True] * rows if entry.present is None else entry.present.tolist()
    return [found if here else None for found, here in zip(lists, present, strict=True)]


def _in_order(entries: Iterable[Entry]) -> list[Entry]:
    """The entries in the order of their keys."""
    return sorted(entries, key=lambda entry: entry.column.key.encode())


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
    record = encode([entry], None, 1)[0]
    return record[read_varint(record, 1)[1] :]


def encode_record(features: Iterable[bytes], sequence: Iterable[Entry] | None) -> bytes | None:
    """Encodes a record like `encode`, from encoded features in the order of their keys; None if too large."""
    data = b"".join(features)
    record = b"\x0a" + varint_bytes(len(data)) + data
    if sequence is not None:
        record += encode([], sequence, 1)[0].removeprefix(b"\x0a\x00")
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


@lru_cache(maxsize=4096)
def _start_of_size(key: str, storage: Storage, size: int) -> bytes:
    """The bytes before a list of this size in its map entry."""
    name = key.encode()
    list_header = bytes([_LIST_FIELD[storage] << 3 | 2]) + varint_bytes(size)
    value = b"\x12" + varint_bytes(len(list_header) + size) + list_header
    entry = b"\x0a" + varint_bytes(len(name)) + name + value
    return b"\x0a" + varint_bytes(len(entry) + size) + entry


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
