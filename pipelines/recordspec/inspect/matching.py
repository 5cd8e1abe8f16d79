"""What stands under several keys, and has to go together: row lengths, the indices of sparse values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from recordspec.wire.columns import Column, KeyValues, Ragged, Sparse, of_kind
from recordspec.wire.strings import Ints, Mask, offsets

# Rows that do not go together, and of the row at a place what was expected and what is there.
Unmatched = tuple[Ints, Callable[[int], str], Callable[[int], str]]


def unmatched(
    columns: tuple[Column, ...], held: Mapping[str, tuple[KeyValues, ...]], fits: Mask
) -> Iterator[Unmatched]:
    """Rows, or steps, whose values under several keys do not go together, of those that fit so far."""
    layout, key = columns[0].layout, columns[0].key
    if not isinstance(layout, Ragged | Sparse):
        return
    numbers = {column.key: _numbers(held.get(column.key, ()), column, fits) for column in columns}
    if isinstance(layout, Ragged):
        yield from _lengths(key, layout, numbers, fits)
    else:
        yield from _indices(key, layout, numbers, fits)


@dataclass(frozen=True)
class _Numbers:
    """Of each row, how many values it has; of integers also their sum, the least and the most."""

    counts: Ints
    sums: Ints
    least: Ints
    most: Ints


def _lengths(key: str, layout: Ragged, numbers: Mapping[str, _Numbers], fits: Mask) -> Iterator[Unmatched]:
    """Row lengths that do not add up to what they are lengths of."""
    size = max(1, math.prod(layout.shape))
    for outer, inner in pairwise((*layout.row_lengths, key)):
        counts = numbers[inner].counts // (size if inner == key else 1)
        totals = numbers[outer].sums
        bad = np.flatnonzero(fits & ((totals != counts) | (numbers[outer].least < 0)))
        yield bad, numbered(totals[bad], f" items, as `{outer}` says"), numbered(counts[bad])


def _indices(key: str, layout: Sparse, numbers: Mapping[str, _Numbers], fits: Mask) -> Iterator[Unmatched]:
    """Indices of other numbers than the values, or outside of the tensor."""
    wanted = numbers[key].counts
    for index, size in zip(layout.index_keys, layout.size, strict=True):
        found = numbers[index]
        bad = np.flatnonzero(fits & (found.counts != wanted))
        expected = numbered(wanted[bad], f" indices under `{index}`, one for each value")
        yield bad, expected, numbered(found.counts[bad])
        out = (found.least < 0) | (found.most >= size)
        bad = np.flatnonzero(fits & (found.counts == wanted) & out)
        outside = np.where(found.least[bad] < 0, found.least[bad], found.most[bad])
        within = f"indices from 0 to {size - 1} under `{index}`"
        yield bad, lambda place, one=within: one, numbered(outside)  # type: ignore[misc]


def _numbers(found: tuple[KeyValues, ...], column: Column, fits: Mask) -> _Numbers:
    numbers = _Numbers(*(np.zeros(len(fits), np.int64) for _ in range(4)))
    for held in of_kind(found, column.storage, fits):
        lengths = np.broadcast_to(np.asarray(held.cells.lengths, np.int64), (len(held.rows),))
        numbers.counts[held.rows] = lengths
        some = lengths > 0
        if held.kind == "int64" and some.any():
            starts, rows, flat = offsets(lengths)[:-1][some], held.rows[some], np.asarray(held.cells.flat)
            numbers.sums[rows] = np.add.reduceat(flat, starts)
            numbers.least[rows] = np.minimum.reduceat(flat, starts)
            numbers.most[rows] = np.maximum.reduceat(flat, starts)
    return numbers


def numbered(numbers: Ints, what: str = "") -> Callable[[int], str]:
    """Of the row at a place, its number and what there are so many of."""
    return lambda place: f"{numbers[place]}{what}"
