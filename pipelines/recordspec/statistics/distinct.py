"""How often each value is there, while few differ; then about how many differ. Memory is bounded."""

from __future__ import annotations

import numpy as np

from recordspec._arrow import arrow
from recordspec.statistics.value_counts import EstimatedCount
from recordspec.wire.arrays import ArrowArray, Ints, to_numpy
from recordspec.wire.hashes import Words, of_values

# Hashes that are kept for an estimate: at least half as many, which has a standard error of 1.6 %.
_HASHES = 1 << 13
_WORDS = 1 << 64

# Values, and how often each is there.
Pairs = tuple[ArrowArray, Ints]


class SmallestHashes:
    """Hashes of things, with how many things have each: all of them, or those below a limit, which is lowered
    when they are too many. Of different things any hash is as likely as another.

    Args:
        most: the largest number of different hashes that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most, self._limit = most, _WORDS
        self._hashes, self._times = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._waiting: list[Words] = []
        self._count = 0  # of those that wait: as many as are kept, so that to join them is seldom needed

    def add(self, hashes: Words) -> None:
        """Adds hashes, uint64 `[n]`."""
        hashes = hashes if self._limit == _WORDS else hashes[hashes < np.uint64(self._limit)]
        self._waiting.append(hashes)
        self._count += len(hashes)
        if self._count > self._most:
            self._join()

    @property
    def distinct(self) -> EstimatedCount:
        """The number of different things."""
        self._join()
        return self._of_all(len(self._hashes), self._limit)

    @property
    def copies(self) -> EstimatedCount:
        """The number of things that equal an earlier one."""
        self._join()
        more = self._times - 1
        share = self._limit / _WORDS
        total = int(more.sum())
        # what is not there varies with which hashes are kept, and a frequent one counts as many
        error = (1 - share) ** 0.5 * float(np.square(more, dtype=np.float64).sum()) ** 0.5 / max(total, 1)
        return EstimatedCount(value=round(total / share), error=error)

    def shared(self, other: SmallestHashes) -> EstimatedCount:
        """The number of different things that are in both."""
        self._join()
        other._join()
        limit = min(self._limit, other._limit)
        common = np.intersect1d(self._hashes, other._hashes, assume_unique=True)
        return self._of_all(int(np.searchsorted(common, np.uint64(limit - 1), "right")), limit)

    def _join(self) -> None:
        """Joins hashes that wait with those that are kept, and lowers the limit if they are too many."""
        if not self._waiting:
            return
        hashes, times = _counted(np.concatenate(self._waiting))
        if len(self._hashes):
            hashes, times = _merged(
                np.concatenate([self._hashes, hashes]), np.concatenate([self._times, times])
            )
        if len(hashes) > self._most:
            self._limit = int(hashes[self._most // 2])
            hashes, times = hashes[: self._most // 2], times[: self._most // 2]
        self._hashes, self._times, self._waiting, self._count = hashes.copy(), times.copy(), [], 0

    @staticmethod
    def _of_all(count: int, limit: int) -> EstimatedCount:
        if limit == _WORDS:
            return EstimatedCount(value=count)
        return EstimatedCount(value=round(count * _WORDS / limit), error=1 / max(count, 1) ** 0.5)


def _counted(hashes: Words) -> tuple[Words, Ints]:
    """Different hashes, rising, and how often each is there; NumPy's `unique` takes four times as long."""
    hashes = np.sort(hashes)
    firsts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)])
    return hashes[firsts], np.diff(firsts, append=len(hashes))


def _merged(hashes: Words, times: Ints) -> tuple[Words, Ints]:
    """Different hashes, rising, of some that are there so many times."""
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    firsts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
    return hashes[firsts], np.add.reduceat(times[order], firsts)


def counted_pairs(values: ArrowArray) -> Pairs:
    """Different values, in the order in which they come, and how often each is there."""
    counted = values.value_counts()
    return counted.field(0), to_numpy(counted.field(1))


class ValueCounts:
    """How often each value is there, as long as few differ; of more, about how many differ.

    Args:
        most: the largest number of different values that are counted.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[Pairs] = []
        self._size = 0
        self._hashes: SmallestHashes | None = None

    @property
    def are_few(self) -> bool:
        """Whether each value is counted so far: of what was added last, all may be too many."""
        return self._hashes is None

    @property
    def pairs(self) -> Pairs | None:
        """The values, and how often each is there; None if they are too many. Of no value it is not asked."""
        self._join()
        return self._parts[0] if self._parts else None

    @property
    def distinct(self) -> EstimatedCount:
        """The number of different values."""
        self._join()
        return EstimatedCount(value=self._size) if self._hashes is None else self._hashes.distinct

    def add(self, values: ArrowArray) -> None:
        """Adds values, at least one."""
        if self._hashes is not None:
            self._hashes.add(of_values(values))
            return
        self._parts.append(counted_pairs(values))
        self._size += len(self._parts[-1][0])
        if self._size > 2 * self._most:
            self._join()

    def _join(self) -> None:
        """Joins the counts of parts, and keeps hashes instead if they are too many."""
        if len(self._parts) > 1:
            values, times = zip(*self._parts, strict=True)
            encoded = arrow().concat_arrays(values).dictionary_encode()
            indices, weights = to_numpy(encoded.indices), np.concatenate(times)
            # exact below 2^53
            added = np.bincount(indices, weights, minlength=len(encoded.dictionary)).astype(np.int64)
            self._parts = [(encoded.dictionary, added)]
            self._size = len(added)
        if self._size > self._most:
            self._hashes = SmallestHashes(_HASHES)
            self._hashes.add(of_values(self._parts[0][0]))
            self._parts, self._size = [], 0
