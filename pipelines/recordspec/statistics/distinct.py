"""Counts values exactly while few are distinct, then estimates their number, in bounded memory."""

from __future__ import annotations

import numpy as np

from recordspec._arrow import arrow
from recordspec.statistics.value_counts import EstimatedCount
from recordspec.wire.arrays import ArrowArray, Ints, to_numpy
from recordspec.wire.hashes import Words, of_values

# The hashes kept for an estimate. At least half as many remain, for a standard error of 1.6 %.
_HASHES = 1 << 13
_WORDS = 1 << 64

# Values and their counts.
Pairs = tuple[ArrowArray, Ints]


class SmallestHashes:
    """A k-minimum-values sketch: keeps the smallest hashes and their counts.

    It keeps all hashes below a limit, which is lowered if there are too many. Hashes must be uniform.

    Args:
        most: the largest number of distinct hashes that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most, self._limit = most, _WORDS
        self._hashes, self._times = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._waiting: list[Words] = []
        self._count = 0  # the number of waiting hashes: they are merged once they exceed `most`, thus seldom

    def add(self, hashes: Words) -> None:
        """Adds hashes, uint64 `[n]`."""
        hashes = hashes if self._limit == _WORDS else hashes[hashes < np.uint64(self._limit)]
        self._waiting.append(hashes)
        self._count += len(hashes)
        if self._count > self._most:
            self._join()

    def merge(self, other: SmallestHashes) -> None:
        """Adds the hashes of another sketch; `other` changes, too."""
        self._join()
        other._join()
        self._limit = min(self._limit, other._limit)
        hashes, times = _merged(
            np.concatenate([self._hashes, other._hashes]), np.concatenate([self._times, other._times])
        )
        self._keep(hashes, times)

    @property
    def distinct(self) -> EstimatedCount:
        """The number of distinct hashes added."""
        self._join()
        return self._of_all(len(self._hashes), self._limit)

    @property
    def copies(self) -> EstimatedCount:
        """The number of hashes that equal an earlier one."""
        self._join()
        more = self._times - 1
        share = self._limit / _WORDS
        total = int(more.sum())
        # the error comes from the hashes above the limit; a hash with many copies adds all of them to it
        error = (1 - share) ** 0.5 * float(np.square(more, dtype=np.float64).sum()) ** 0.5 / max(total, 1)
        return EstimatedCount(value=round(total / share), error=error)

    def shared(self, other: SmallestHashes) -> EstimatedCount:
        """The number of distinct hashes that both sketches have seen."""
        self._join()
        other._join()
        limit = min(self._limit, other._limit)
        common = np.intersect1d(self._hashes, other._hashes, assume_unique=True)
        return self._of_all(int(np.searchsorted(common, np.uint64(limit - 1), "right")), limit)

    def _join(self) -> None:
        """Merges the waiting hashes with the kept hashes, and lowers the limit if there are too many."""
        if not self._waiting:
            return
        hashes, times = _counted(np.concatenate(self._waiting))
        if len(self._hashes):
            hashes, times = _merged(
                np.concatenate([self._hashes, hashes]), np.concatenate([self._times, times])
            )
        self._waiting, self._count = [], 0
        self._keep(hashes, times)

    def _keep(self, hashes: Words, times: Ints) -> None:
        """Keeps distinct hashes below the limit, which is lowered if there are too many."""
        if self._limit < _WORDS:
            below = int(np.searchsorted(hashes, np.uint64(self._limit)))
            hashes, times = hashes[:below], times[:below]
        if len(hashes) > self._most:
            self._limit = int(hashes[self._most // 2])
            hashes, times = hashes[: self._most // 2], times[: self._most // 2]
        self._hashes, self._times = hashes.copy(), times.copy()

    @staticmethod
    def _of_all(count: int, limit: int) -> EstimatedCount:
        if limit == _WORDS:
            return EstimatedCount(value=count)
        return EstimatedCount(value=round(count * _WORDS / limit), error=1 / max(count, 1) ** 0.5)


def _counted(hashes: Words) -> tuple[Words, Ints]:
    """Distinct hashes in ascending order, with their counts. NumPy's `unique` takes four times as long."""
    hashes = np.sort(hashes)
    firsts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)])
    return hashes[firsts], np.diff(firsts, append=len(hashes))


def _merged(hashes: Words, times: Ints) -> tuple[Words, Ints]:
    """Distinct hashes in ascending order, with the sums of their counts."""
    if not len(hashes):
        return hashes, times
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    firsts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
    return hashes[firsts], np.add.reduceat(times[order], firsts)


def counted_pairs(values: ArrowArray) -> Pairs:
    """Distinct values in the order of their first occurrence, with their counts."""
    counted = values.value_counts()
    return counted.field(0), to_numpy(counted.field(1))


class ValueCounts:
    """Counts each value while few are distinct; estimates the number of distinct values once there are more.

    Args:
        most: the largest number of distinct values that are counted.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[Pairs] = []
        self._size = 0
        self._hashes: SmallestHashes | None = None

    @property
    def are_few(self) -> bool:
        """Whether each value is counted so far. The values added last may still turn out to be too many."""
        return self._hashes is None

    @property
    def pairs(self) -> Pairs | None:
        """The values and their counts; None if there are too many distinct values. Needs at least one
        value."""
        self._join()
        return self._parts[0] if self._parts else None

    @property
    def distinct(self) -> EstimatedCount:
        """The number of distinct values."""
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

    def merge(self, other: ValueCounts) -> None:
        """Adds the counts of the values that follow; `other` changes, too."""
        self._join()
        other._join()
        if self._hashes is None and other._hashes is not None:
            self._estimate()
        if self._hashes is None:
            self._parts += other._parts
            self._size += other._size
            self._join()
        else:
            if other._hashes is None:
                other._estimate()
            assert other._hashes is not None
            self._hashes.merge(other._hashes)

    def _join(self) -> None:
        """Merges the counts of parts, and switches to hashes if there are too many distinct values."""
        if len(self._parts) > 1:
            values, times = zip(*self._parts, strict=True)
            encoded = arrow().concat_arrays(values).dictionary_encode()
            indices, weights = to_numpy(encoded.indices), np.concatenate(times)
            # exact below 2^53
            added = np.bincount(indices, weights, minlength=len(encoded.dictionary)).astype(np.int64)
            self._parts = [(encoded.dictionary, added)]
            self._size = len(added)
        if self._size > self._most:
            self._estimate()

    def _estimate(self) -> None:
        """Switches to hashes, if there are any values. The counts of parts are merged."""
        self._hashes = SmallestHashes(_HASHES)
        for values, _ in self._parts:
            self._hashes.add(of_values(values))
        self._parts, self._size = [], 0
