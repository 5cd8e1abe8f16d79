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
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from recordspec.errors import Problem, RecordError
from recordspec.wire import native, proto
from recordspec.wire.arrays import (
    ArrowArray,
    Ints,
    Sizes,
    address_of,
    binary_array,
    buffer_of,
    bytes_in,
    counts_of,
    flat_of,
    is_list,
    items_of,
    lists_in,
    offsets,
    places_of,
    present_in,
    sizes_of,
    storage_of,
    strings_array,
    width_of,
)
from recordspec.wire.columns import Column, Storage
from recordspec.wire.framing import AT_MOST, LARGEST_RECORD, frames
from recordspec.wire.proto import Listed
from recordspec.wire.varints import read_varint, varint_bytes

# Values by key, in the form of `wire.arrays`.
Table = Mapping[str, ArrowArray]

_LIST_FIELD = {"bytes": 1, "float32": 2, "int64": 3}
_UINT64 = (1 << 64) - 1
# Bytes that `rs_fill` may write beyond the records.
_SLACK = 16
# The tag of field 1 with its length, up to 127 bytes.
_SHORT_FIELDS = [bytes([0x0A, size]) for size in range(0x80)]
# The number of sizes per column for which headers are cached.
_MOST_STARTS = 1024


def encode(features: Table, sequence: Table | None, rows: int, *, framed: bool = False) -> ArrowArray:
    """Encodes a batch of records.

    Args:
        features: the values of Examples by key, or of the context of SequenceExamples.
        sequence: the feature lists by key; None for Examples.
        rows: the number of records.
        framed: whether each record is framed.

    Returns the records, `large_binary`. Raises RecordError for a record that would be larger than
    LARGEST_RECORD; before encoding, if its values alone are larger.
    """
    check_sizes((features, sequence or {}), rows)
    features = _in_order(features)
    sequence = None if sequence is None else _in_order(sequence)
    if (library := native.library()) is not None:
        return _encode(library, features, sequence, rows, framed=framed)
    return _by_protobuf(features, sequence, rows, framed=framed)


def sizes(features: Table, sequence: Table | None, rows: int) -> Ints:
    """The size of each framed record of a batch in bytes, int64 `[rows]`. Raises the errors of `encode`."""
    if (library := native.library()) is None:
        return sizes_of(encode(features, sequence, rows, framed=True))
    check_sizes((features, sequence or {}), rows)
    kept: list[Any] = []
    measured, places = _measured(library, features, sequence, rows, kept, framed=True)
    library.rs_fill(measured, None, None)
    return np.diff(places)


def _in_order(table: Table) -> Table:
    return {key: table[key] for key in sorted(table, key=str.encode)}


def _encode(library: Any, features: Table, sequence: Table | None, rows: int, *, framed: bool) -> ArrowArray:
    """Encodes tables in the order of their keys, framed or not. Raises MemoryError, and RecordError for
    the first record that is larger than LARGEST_RECORD.
    """
    kept: list[Any] = []  # the arrays that the library reads
    measured, places = _measured(library, features, sequence, rows, kept, framed=framed)
    size = int(places[rows])
    buffer = np.empty(size + _SLACK, np.uint8)
    if not library.rs_fill(measured, native.at(buffer), native.at(places)):
        raise MemoryError
    return binary_array(buffer[:size], places)


def _measured(
    library: Any, features: Table, sequence: Table | None, rows: int, kept: list[Any], *, framed: bool
) -> tuple[Any, Ints]:
    """The argument of `rs_fill`, which is valid while `kept` holds the arrays that it reads, and the
    offsets of the records, int64 `[rows + 1]`.
    """
    columns = [_column(key, array, kept) for key, array in features.items()]
    columns += [_column_of_steps(key, array, kept) for key, array in (sequence or {}).items()]
    numbers = np.array(columns, np.int64)
    kept.append(numbers)
    places, large = np.empty(rows + 1, np.int64), ctypes.c_int64()
    shape = len(features), -1 if sequence is None else len(sequence), rows
    outputs = native.at(places), ctypes.byref(large)
    measured = library.rs_measure(native.at(numbers), *shape, LARGEST_RECORD, framed, *outputs)
    if measured is None:
        raise MemoryError
    if large.value >= 0:
        library.rs_fill(measured, None, None)
        size = int(places[large.value + 1])
        raise RecordError(Problem(expected=AT_MOST, got=f"{size:,} bytes"), large.value)
    return measured, places


def _column_of_steps(key: str, array: ArrowArray, kept: list[Any]) -> tuple[int, ...]:
    """The numbers that describe a column of feature lists."""
    steps = offsets(counts_of(array))
    kept.append(steps)
    return (*_column(key, items_of(array), kept)[:-1], native.at(steps))


def _column(key: str, array: ArrowArray, kept: list[Any]) -> tuple[int, ...]:
    """The ten numbers that describe a column. Adds its arrays to `kept`."""

    def at(values: Any) -> int:
        kept.append(values)
        return native.at(values)

    name, width, ends, present = np.frombuffer(key.encode(), np.uint8), 1, 0, 0
    if isinstance(array, list):
        strings = flat_of(array)
        parts = (ctypes.c_char_p * len(strings))(*strings)
        kept.append(parts)
        if is_list(array):
            width, ends = -1, at(offsets(counts_of(array)))
        places, kind = at(offsets(sizes_of(strings))), _LIST_FIELD["bytes"]
        return (at(name), len(name), kind, width, ends, 0, places, ctypes.addressof(parts), 0, 0)
    kept.append(array)
    if array.null_count:
        present = at(present_in(array))
    start = array.offset
    if is_list(array):
        fixed = width_of(array)
        if fixed is None:
            width, ends, start = -1, at(places_of(array)), 0
        else:
            width, start = fixed, start * fixed
        array = array.values
        start += array.offset
    values, places = address_of(array, start)
    return (at(name), len(name), _LIST_FIELD[storage_of(array)], width, ends, values, places, 0, present, 0)


def _by_protobuf(features: Table, sequence: Table | None, rows: int, *, framed: bool) -> ArrowArray:
    """`_encode` without the library, record by record."""
    columns = [(key, list(_lists(array))) for key, array in features.items()]
    steps = None if sequence is None else [(key, _steps(array)) for key, array in sequence.items()]
    records = []
    for row in range(rows):
        values = [(key, found[row]) for key, found in columns if found[row] is not None]
        lists = None if steps is None else [(key, found[row]) for key, found in steps]
        record = proto.serialize(values, lists)
        if len(record) > LARGEST_RECORD:
            raise RecordError(Problem(expected=AT_MOST, got=f"{len(record):,} bytes"), row)
        records.append(record)
    return frames(records) if framed else strings_array(records)


def _lists(array: ArrowArray) -> Iterable[Any]:
    """The `Listed` of each row; None if the key is absent."""
    kind = storage_of(array)
    return (None if values is None else Listed(kind, values) for values in lists_in(array))


def _steps(array: ArrowArray) -> list[list[Any]]:
    """The lists of each row's steps."""
    lists = list(_lists(items_of(array)))
    return [lists[start:stop] for start, stop in pairwise(offsets(counts_of(array)).tolist())]


def entry_encoder(column: Column) -> Callable[[Sequence[Any]], bytes]:
    """Returns a function that encodes the values of one record, a non-empty sequence of int, float or bytes,
    to its entry.

    Encodes a row like `encode`, but without NumPy, which takes ten times as long for a single row.
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


def encode_entry(key: str, array: ArrowArray) -> bytes:
    """Encodes an entry of one record."""
    (record,) = bytes_in(encode({key: array}, None, 1))
    return record[read_varint(record, 1)[1] :]


def encode_record(features: Iterable[bytes], sequence: Table | None) -> bytes | None:
    """Encodes a record like `encode`, from encoded features in the order of their keys. Returns None if
    it is too large.
    """
    data = b"".join(features)
    record = b"\x0a" + varint_bytes(len(data)) + data
    if sequence is not None:
        record += bytes_in(encode({}, sequence, 1))[0].removeprefix(b"\x0a\x00")
    return record if len(record) <= LARGEST_RECORD else None


def check_sizes(tables: Iterable[Table], rows: int) -> None:
    """Raises RecordError for the first record whose values alone are larger than LARGEST_RECORD."""
    too_long = oversized(tables, rows)
    if too_long is not None:
        row, size, hint = too_long
        raise RecordError(Problem(expected=AT_MOST, got=f"{size:,} bytes", hint=hint), row)


def oversized(tables: Iterable[Table], rows: int) -> tuple[int, int, str] | None:
    """The first record whose values alone have more bytes than LARGEST_RECORD: its number, the minimum
    size of its values in bytes, and a hint with its largest key. Nothing is encoded.
    """
    columns = [(key, array) for table in tables for key, array in table.items()]
    if sum(least_bytes(array) for _, array in columns) <= LARGEST_RECORD:
        return None  # even all the records together are small enough
    each = np.array([_least_sizes(array) for _, array in columns])
    sizes = each.sum(axis=0)
    if not (sizes > LARGEST_RECORD).any():
        return None
    row = int(np.argmax(sizes > LARGEST_RECORD))
    most = int(each[:, row].argmax())
    return row, int(sizes[row]), f"`{columns[most][0]}` has {each[most, row]:,} of them"


def least_bytes(array: ArrowArray) -> int:
    """The minimum number of bytes for the values of a column: a varint has one or more."""
    while is_list(array):
        array = items_of(array)
    if storage_of(array) == "bytes":
        return sum(map(len, array)) if isinstance(array, list) else len(buffer_of(array))
    return len(array) * (4 if storage_of(array) == "float32" else 1)


def _least_sizes(array: ArrowArray) -> Ints:
    """The minimum number of bytes for the values of each record, int64 `[rows]`."""
    if not is_list(array):
        if storage_of(array) == "bytes":
            return sizes_of(array)
        return np.full(len(array), least_bytes(array[:1]))
    sizes = _least_sizes(items_of(array))
    return np.asarray(sizes_of_groups(sizes, counts_of(array)))


@lru_cache(maxsize=4096)
def _start_of_size(key: str, storage: Storage, size: int) -> bytes:
    """The bytes before a list of `size` bytes in its map entry."""
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
    some = lengths > 0  # reduceat does not support empty groups
    sums[some] = np.add.reduceat(sizes, offsets(lengths)[:-1][some], dtype=np.int64)
    return sums
