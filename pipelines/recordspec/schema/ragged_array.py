"""Values of NumPy of batches in which rows differ, and how columns are converted to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from recordspec.schema.values import Array, BadValue
from recordspec.wire.arrays import ArrowArray, Ints, Mask, counts_of, flat_of, objects_in, offsets
from recordspec.wire.columns import Column, Fixed, Ragged, Sparse, VarLen
from recordspec.wire.columns import Sequence as Steps


@dataclass(frozen=True, eq=False)
class RaggedArray:
    """Rows of different lengths, one after another.

    Attributes:
        values: the items of all rows, `[m, ...]`; rows of items that are lists themselves are a RaggedArray.
        lengths: the number of items of each row, int64 `[n]`.
        dense_rows: whether the items of each row have one size, as the pixels of an image have: a row is then
            an array.

    Example:
        >>> import numpy as np
        >>> array = rs.RaggedArray(np.array([1, 2, 3]), np.array([2, 0, 1]))
        >>> [row.tolist() for row in array]
        [[1, 2], [], [3]]
    """

    values: Any
    lengths: Ints
    dense_rows: bool = False

    def __iter__(self) -> Iterator[Any]:
        return (self._row(start, stop) for start, stop in pairwise(offsets(self.lengths).tolist()))

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> Any:
        start = int(self.lengths[:row].sum())
        return self._row(start, start + int(self.lengths[row]))

    def _row(self, start: int, stop: int) -> Any:
        if not isinstance(self.values, RaggedArray):
            return self.values[start:stop]
        inner: Any = self.values.part(start, stop)
        if not self.dense_rows:
            return inner
        sizes, items = list[int](), inner
        while isinstance(items, RaggedArray):
            sizes.append(int(items.lengths[0]) if len(items) else 0)
            items = items.values
        return items.reshape(len(inner), *sizes, *items.shape[1:])

    @property
    def flat(self) -> Array:
        """The values of all rows, and of all lists in them, `[m, ...]`.

        Example:
            >>> import numpy as np
            >>> rs.RaggedArray(np.array([1, 2, 3]), np.array([2, 0, 1])).flat.tolist()
            [1, 2, 3]
        """
        flat: Array = self.values.flat if isinstance(self.values, RaggedArray) else self.values
        return flat

    def with_flat(self, flat: Array) -> RaggedArray:
        """The same lists of other values, `[m, ...]`.

        Example:
            >>> import numpy as np
            >>> rs.RaggedArray(np.array([1, 2, 3]), np.array([2, 0, 1])).with_flat(np.array([4, 5, 6]))[0]
            array([4, 5])
        """
        values = self.values.with_flat(flat) if isinstance(self.values, RaggedArray) else flat
        return replace(self, values=values)

    def part(self, start: int, stop: int) -> RaggedArray:
        """Rows `start` to `stop`.

        Example:
            >>> import numpy as np
            >>> rs.RaggedArray(np.array([1, 2, 3]), np.array([2, 0, 1])).part(1, 3).lengths.tolist()
            [0, 1]
        """
        first = int(self.lengths[:start].sum())
        last = first + int(self.lengths[start:stop].sum())
        values = self.values
        items = values.part(first, last) if isinstance(values, RaggedArray) else values[first:last]
        return RaggedArray(items, self.lengths[start:stop], self.dense_rows)

    def masked(self, kept: Mask) -> RaggedArray:
        """The items for which `kept` is true, bool `[m]`, in their rows.

        Example:
            >>> import numpy as np
            >>> rs.RaggedArray(np.array([1, 2, 3]), np.array([2, 1])).masked(np.array([True, False, True]))[0]
            array([1])
        """
        lengths = np.diff(offsets(kept.astype(np.int64))[offsets(self.lengths)])
        values = self.values
        if isinstance(values, RaggedArray):
            items = values.masked(np.repeat(kept, values.lengths))
            return RaggedArray(replace(items, lengths=values.lengths[kept]), lengths)
        return RaggedArray(values[kept], lengths)

    def to_dense(self, pad: Any = None, length: int | None = None) -> Array:
        """The rows in one array, the shorter ones padded.

        Args:
            pad: the padding; None for zero or the empty string.
            length: the size of all rows; None for that of the longest.

        Raises BadValue for a row that is longer than `length`.

        Example:
            >>> import numpy as np
            >>> rs.RaggedArray(np.array([1, 2, 3]), np.array([2, 0, 1])).to_dense(-1).tolist()
            [[1, 2], [-1, -1], [3, -1]]
        """
        values = self.values.to_dense(pad) if isinstance(self.values, RaggedArray) else self.values
        longest = int(self.lengths.max(initial=0))
        if length is not None and longest > length:
            row = int(np.argmax(self.lengths > length))
            raise BadValue(row, f"at most {length} items (max_length)", str(self.lengths[row]))
        size = longest if length is None else length
        filler: Any = (b"" if values.dtype == object else 0) if pad is None else pad
        dense = np.full((len(self), size, *values.shape[1:]), _as_stored(filler), values.dtype)
        dense[np.arange(size) < self.lengths[:, None]] = values
        return dense


def _as_stored(value: Any) -> Any:
    """A padding or a default of an option, whose text is bytes."""
    if isinstance(value, (list, tuple)):
        return [_as_stored(item) for item in value]
    return value.encode() if isinstance(value, str) else value


@dataclass(frozen=True, eq=False)
class SparseArray:
    """Values at some places of a dense array; the others are zero, or the empty string.

    Attributes:
        indices: the place of each, int64 `[k, d]`; in a batch the row first. They rise.
        values: `[k]`.
        shape: of the dense array.

    Example:
        >>> import numpy as np
        >>> rs.SparseArray(np.array([[0, 2]]), np.array([5]), (1, 4)).to_dense().tolist()
        [[0, 0, 5, 0]]
    """

    indices: Ints
    values: Array
    shape: tuple[int, ...]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, row: int) -> SparseArray:
        own = self.indices[:, 0] == range(len(self))[row]  # from the end if negative; IndexError if none
        return SparseArray(self.indices[own, 1:], self.values[own], self.shape[1:])

    def to_dense(self, pad: Any = None) -> Array:
        """The dense array.

        Args:
            pad: the value of the other places; None for zero or the empty string.

        Example:
            >>> import numpy as np
            >>> rs.SparseArray(np.array([[1]]), np.array([5]), (3,)).to_dense().tolist()
            [0, 5, 0]
        """
        filler: Any = (b"" if self.values.dtype == object else 0) if pad is None else pad
        dense = np.full(self.shape, _as_stored(filler), self.values.dtype)
        dense[tuple(self.indices.T)] = self.values
        return dense


def divided(value: Any, sizes: Ints) -> list[Any]:
    """A batch in parts of so many rows each."""
    bounds = offsets(sizes)
    if isinstance(value, RaggedArray):
        parts = divided(value.values, np.diff(offsets(value.lengths)[bounds]))
        lengths = [value.lengths[start:stop] for start, stop in pairwise(bounds.tolist())]
        return [RaggedArray(*both, value.dense_rows) for both in zip(parts, lengths, strict=True)]
    if isinstance(value, SparseArray):
        places = np.searchsorted(value.indices[:, 0], bounds).tolist()
        made = []
        for row, size, (start, stop) in zip(bounds.tolist(), sizes.tolist(), pairwise(places), strict=False):
            indices = value.indices[start:stop] - np.array([row, *[0] * (len(value.shape) - 1)])
            made.append(SparseArray(indices, value.values[start:stop], (size, *value.shape[1:])))
        return made
    return [value[start:stop] for start, stop in pairwise(bounds.tolist())]


def values_of(array: ArrowArray) -> Array:
    """The values of all rows of a column, end to end: numbers, or an array of bytes."""
    flat = flat_of(array)
    return flat if isinstance(flat, np.ndarray) else objects_in(flat if len(flat) else [])


def dense(array: ArrowArray, shape: tuple[int, ...] = (), default: Any = None) -> tuple[Array, Mask]:
    """The values of a column of one cell a row, `[n, *shape]`, and which rows have none, bool `[n]`.

    Args:
        default: the value of these, of `shape`.
    """
    if 0 in shape:  # nothing is stored
        return np.zeros((len(array), *shape), values_of(array).dtype), np.zeros(len(array), bool)
    values, missing = values_of(array).reshape(-1, *shape), counts_of(array) == 0
    if not missing.any():
        return values, missing
    filled = np.empty((len(array), *shape), values.dtype)
    filled[~missing] = values
    filler = (
        [_as_stored(item) for item in default] if isinstance(default, (list, tuple)) else _as_stored(default)
    )
    filled[missing] = filler
    return filled, missing


def ragged(array: ArrowArray | RaggedArray, cell: tuple[int, ...] = ()) -> RaggedArray:
    """The values of a column of any number of cells a row."""
    if isinstance(array, RaggedArray):
        return array
    size = int(np.prod(cell))
    return RaggedArray(values_of(array).reshape(-1, *cell), counts_of(array) // max(1, size))


def parsed(column: Column, columns: Mapping[str, ArrowArray]) -> Any:
    """The values of a column, as `tf.io` parses a batch: dense, ragged or sparse, by its layout."""
    array, layout = columns[column.key], column.layout
    if isinstance(layout, Fixed):
        return dense(array, layout.shape, layout.default)[0]
    if isinstance(layout, Steps):
        return ragged(array, layout.shape).to_dense(layout.pad)
    if isinstance(layout, Ragged):
        return nested(array, [columns[key] for key in layout.row_lengths], layout.shape)
    if isinstance(layout, Sparse):
        return sparse(array, [columns[key] for key in layout.index_keys], layout.size)
    assert isinstance(layout, VarLen)
    values = ragged(array)
    return values if layout.ragged else listed(values)


def nested(array: ArrowArray, lengths: Sequence[ArrowArray], cell: tuple[int, ...] = ()) -> RaggedArray:
    """The values of a column in nested lists, with the columns of their lengths, outermost first."""
    values = ragged(array, cell)
    if not lengths:
        return values
    inner: Any = values.values
    for level in reversed(lengths):
        inner = RaggedArray(inner, values_of(level).astype(np.int64, copy=False))
    return RaggedArray(inner, counts_of(lengths[0]))


def sparse(array: ArrowArray, indices: Sequence[ArrowArray], size: tuple[int, ...]) -> SparseArray:
    """The values of a column with the columns of their indices."""
    rows = np.repeat(np.arange(len(array)), counts_of(array))
    places = np.column_stack([rows, *(values_of(one).astype(np.int64, copy=False) for one in indices)])
    order = np.lexsort(places.T[::-1])
    return SparseArray(places[order], values_of(array)[order], (len(array), *size))


def listed(values: RaggedArray) -> SparseArray:
    """Rows of different lengths as `tf.io.VarLenFeature` parses them."""
    rows = np.repeat(np.arange(len(values)), values.lengths)
    within = np.arange(len(rows)) - offsets(values.lengths)[rows]
    longest = int(values.lengths.max(initial=0))
    return SparseArray(np.column_stack([rows, within]), values.values, (len(values), longest))
