"""The order of an epoch: a permutation of all rows, in which each position is computed independently.

The permutation is a function of (seed, epoch, position). Global batch t of B rows has positions `t * B` to
`(t + 1) * B`. Worker w of W has rows `w, w + W, ...` of each batch. Hence a training can resume at any step
or with other workers, and the rows of a step are known.

Datasets and trainings outlive a release: tests pin the orders.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from recordspec.errors import Problem, SpecError
from recordspec.wire.arrays import Ints, offsets
from recordspec.wire.permutation import mixed, permuted

# Rows in a window of blocks, at least, if all blocks have the largest size.
WINDOW_ROWS = 1 << 14


class Permutation(Protocol):
    """The order of the rows of an epoch."""

    def rows_at(self, positions: Ints) -> Ints:
        """The rows at the given positions, int64 `[n]`."""


class FileOrder:
    """The order of the files: row i is at position i."""

    def rows_at(self, positions: Ints) -> Ints:
        return positions


@dataclass(frozen=True)
class RowOrder:
    """A permutation of rows.

    Attributes:
        rows: the number of rows.
        key: selects the permutation.
    """

    rows: int
    key: int

    def rows_at(self, positions: Ints) -> Ints:
        return permuted(positions, self.rows, self.key)


class BlockOrder:
    """A permutation of blocks, and of the rows within windows of consecutive permuted blocks.

    It is an exact permutation, but rows of a block stay close to each other. Memory holds a few numbers for
    each block.

    Args:
        sizes: the rows of each block, int64 `[b]`.
        key: selects the permutation.
        window: the rows of a window, at least, if all blocks have the largest size; by default `WINDOW_ROWS`.
    """

    def __init__(self, sizes: Ints, key: int, window: int | None = None) -> None:
        self._key = key
        self._order = permuted(np.arange(len(sizes)), len(sizes), mixed(key, 0))
        self._first_rows = offsets(sizes)[:-1][self._order]
        self._positions = offsets(sizes[self._order])
        self._together = max(1, -(-(window or WINDOW_ROWS) // int(sizes.max(initial=1))))
        self._windows = np.append(self._positions[: -1 : self._together], self._positions[-1])

    @property
    def windows(self) -> Ints:
        """The number of the window of each block, int64 `[b]`."""
        numbers = np.empty(len(self._order), np.int64)
        numbers[self._order] = np.arange(len(self._order)) // self._together
        return numbers

    def rows_at(self, positions: Ints) -> Ints:
        places = positions.copy()
        windows = np.searchsorted(self._windows, positions, "right") - 1
        for window in np.unique(windows).tolist():
            own = windows == window
            first, stop = self._windows[window : window + 2].tolist()
            key = mixed(self._key, 1 + window)
            places[own] = first + permuted(positions[own] - first, stop - first, key)
        blocks = np.searchsorted(self._positions, places, "right") - 1
        rows: Ints = self._first_rows[blocks] + places - self._positions[blocks]
        return rows


def permutation(rows: int, seed: int | None, epoch: int, blocks: Ints | None = None) -> Permutation:
    """The order of an epoch.

    Args:
        rows: the number of rows.
        seed: the seed of all epochs; None for the order of the files.
        epoch: the number of the epoch, from 0.
        blocks: the rows of each block, int64 `[b]`; None if rows are not in blocks.
    """
    if seed is None:
        return FileOrder()
    key = mixed(seed, epoch)
    return RowOrder(rows, key) if blocks is None else BlockOrder(blocks, key)


@dataclass(frozen=True, kw_only=True)
class Share:
    """A worker's part of each global batch: rows `worker, worker + workers, ...`.

    Attributes:
        rows: the number of rows of an epoch.
        batch: the rows of a global batch.
        drop_remainder: whether a smaller last batch is dropped.
        worker, workers: the number of this worker, from 0, and the number of workers.
        replicas: the replicas per worker. A worker's rows of a global batch are those of its first replica,
            then those of the next, as if each replica were a worker.
    """

    rows: int
    batch: int
    drop_remainder: bool = False
    worker: int = 0
    workers: int = 1
    replicas: int = 1

    @property
    def steps(self) -> int:
        """The number of global batches."""
        return self.rows // self.batch if self.drop_remainder else -(-self.rows // self.batch)

    @property
    def last(self) -> int:
        """The rows of the last global batch."""
        return min(self.batch, self.rows - (self.steps - 1) * self.batch) if self.steps else self.batch

    def positions(self, step: int, stop: int) -> Ints:
        """The positions of this worker's rows in global batches `step` to `stop`, int64 `[n]`."""
        places = np.arange(step * self.batch, min(stop * self.batch, self.rows))
        replica, parts = places % self.batch % self.parts, self.parts
        places = places[replica // self.replicas == self.worker]
        if self.replicas > 1:
            places = places[np.lexsort((places, places % self.batch % parts, places // self.batch))]
        mine: Ints = places
        return mine

    def positions_in(self, batch: Any) -> tuple[Any, int]:
        """The position of the first row in a batch of one replica, and the distance from one row to the next.

        Args:
            batch: the batch number within this worker, an integer or a tensor of integers.
        """
        step, replica = batch // self.replicas, batch % self.replicas
        return step * self.batch + self.worker * self.replicas + replica, self.parts

    @property
    def parts(self) -> int:
        """The parts of a global batch: one for each replica of each worker."""
        return self.workers * self.replicas

    @property
    def size(self) -> int:
        """The largest number of rows of this worker, or of each of its replicas, in a global batch."""
        return -(-(self.batch - self.worker * self.replicas) // self.parts)

    def sizes(self, step: int, stop: int) -> Ints:
        """The rows of this worker in each of the batches `step` to `stop`, int64 `[stop - step]`."""
        whole = np.minimum(self.rows - np.arange(step, stop) * self.batch, self.batch)
        sizes: Ints = -(-(whole - self.worker) // self.workers)
        return sizes


def check_share(share: Share, path: tuple[str, ...]) -> None:
    """Raises SpecError for an invalid worker number, and if some workers would have no row in a global
    batch.
    """
    if not 0 <= share.worker < share.workers:
        expected = f"a number from 0 to {share.workers - 1}"
        raise SpecError(Problem(path=("worker",), expected=expected, got=str(share.worker)))
    fewest = min(share.batch, share.last)
    if share.replicas > 1 and fewest < share.batch:
        expected = f"whole batches of {share.batch} for {share.parts} replicas"
        hint = "drop_remainder drops the last"
        raise SpecError(Problem(path=path, expected=expected, got=f"a last one of {fewest}", hint=hint))
    if fewest < share.parts:
        hint = "drop_remainder drops it" if share.batch >= share.parts else "a larger batch"
        expected, got = "a row of every batch for each worker", f"{fewest} for {share.parts}"
        raise SpecError(Problem(path=path, expected=expected, got=got, hint=hint))


def whole_numbers(**bounded: tuple[Any, int]) -> tuple[int, ...]:
    """Converts arguments to int; each is given with its minimum. Raises SpecError with all arguments that
    are too small or not whole numbers of 64 bits.
    """
    problems, numbers = [], []
    for name, (value, least) in bounded.items():
        try:
            number = None if isinstance(value, bool) else operator.index(value)
        except TypeError:
            number = None
        if number is None or not least <= number < 1 << 63:
            expected = "a whole number of 64 bits" if least < 0 else f"a whole number of at least {least}"
            problems.append(Problem(path=(name,), expected=expected, got=repr(value)))
        else:
            numbers.append(number)
    if problems:
        raise SpecError(problems)
    return tuple(numbers)
