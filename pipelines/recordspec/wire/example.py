"""Column values to the bytes of `tf.train.Example` and `tf.train.SequenceExample`, in batches.

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

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from recordspec.wire.columns import Cells, Column
from recordspec.wire.pieces import (
    Mask,
    Piece,
    Sizes,
    const,
    field,
    join,
    payload,
    squeeze,
    varint_bytes,
    varints,
    where,
)
from recordspec.wire.strings import Ints, Strings, offsets

_LIST_FIELD = {"bytes": 1, "float32": 2, "int64": 3}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The values of one column for a batch: `present` says which rows have the key at all.

    In a FeatureList, `cells` has one row a step, and `steps`, int64 `[n]`, says how many steps each
    record has.
    """

    column: Column
    cells: Cells
    present: Mask | None = None
    steps: Ints | None = None


def encode(
    features: Iterable[Entry],
    sequence: Iterable[Entry] | None,
    rows: int,
    *,
    head: int = 0,
    tail: int = 0,
) -> Strings:
    """The records of a batch, each with room for `head` bytes before it and `tail` after.

    Args:
        features: the entries of an Example, or of a SequenceExample's context.
        sequence: the entries of the feature lists; None for an Example.
        rows: the number of records.
    """
    pieces = field(1, _entries(features))
    if sequence is not None:
        pieces += field(2, _entries(sequence))
    return join([const(bytes(head)), *pieces, const(bytes(tail))], rows)


def _entries(entries: Iterable[Entry]) -> list[Piece]:
    ordered = sorted(entries, key=lambda entry: entry.column.key.encode())
    return [piece for entry in ordered for piece in _entry(entry)]


def _entry(entry: Entry) -> list[Piece]:
    key = entry.column.key.encode()
    value = _feature(entry) if entry.steps is None else _feature_list(entry, entry.steps)
    pieces = field(1, [const(b"\x0a" + varint_bytes(len(key)) + key), *field(2, value)])
    return pieces if entry.present is None else where(entry.present, pieces)


def _feature(entry: Entry) -> list[Piece]:
    return field(_LIST_FIELD[entry.column.storage], _list(entry.cells, entry.present))


def _feature_list(entry: Entry, steps: Ints) -> list[Piece]:
    """The Features of all the steps, then as many of them as each record has."""
    features = join(field(1, _feature(entry)), entry.cells.rows)
    return [payload(features.buffer, _sizes_of_groups(features.sizes, steps))]


def _list(cells: Cells, present: Mask | None) -> list[Piece]:
    if isinstance(cells.flat, Strings):
        return _bytes_list(cells.flat, cells.lengths)
    packed = _packed(cells.flat, cells.lengths)
    numbers = field(1, [packed])
    some = packed.sizes if isinstance(packed.sizes, int) else packed.sizes > 0
    if isinstance(some, int):
        return numbers if some else []
    # protobuf writes no packed field for an empty list
    full = bool(some.all() if present is None else some[present].all())
    return numbers if full else where(some, numbers)


def _packed(flat: np.ndarray, lengths: Sizes) -> Piece:
    if flat.dtype == np.float32:
        return payload(np.ascontiguousarray(flat, "<f4").view(np.uint8), lengths * 4)
    matrix, sizes = varints(flat.view(np.uint64))
    if isinstance(sizes, int):
        return payload(matrix.reshape(-1), lengths * sizes)
    if isinstance(lengths, int) and lengths == 1:
        return Piece(data=matrix, sizes=sizes, width=matrix.shape[1])
    return payload(squeeze(matrix, sizes), _sizes_of_groups(sizes, lengths))


def _bytes_list(strings: Strings, lengths: Sizes) -> list[Piece]:
    sizes = strings.sizes
    if isinstance(lengths, int) and lengths == 1:
        return field(1, [payload(strings.buffer, _one_size(sizes))])
    values = join(field(1, [payload(strings.buffer, _one_size(sizes))]), len(strings))
    return [payload(values.buffer, _sizes_of_groups(values.sizes, lengths))]


def _one_size(sizes: Ints) -> Sizes:
    """The size that all have, as a number, where they have one."""
    if len(sizes) and (sizes == sizes[0]).all():
        return int(sizes[0])
    return sizes


def _sizes_of_groups(sizes: Ints, lengths: Sizes) -> Sizes:
    """The bytes of each group of `lengths` values in a row."""
    if isinstance(lengths, int):
        return sizes.reshape(-1, lengths).sum(axis=1) if lengths else 0
    return np.diff(offsets(sizes)[offsets(lengths)])
