"""Counts sizes in bounded memory."""

from __future__ import annotations

from collections import Counter

import numpy as np

from recordspec.wire.arrays import Ints

# The leading bits that distinguish sizes: exactly below 2,048, within 0.1 % above.
_BITS = 11


class SizeCounts:
    """Counts sizes, each 0 or more, in at most 52 Ki entries, the number of sizes that it distinguishes.

    Attributes:
        count, total: the number and the sum of the sizes.
        low, high: the smallest and the largest size; 0 if there are none.
        times: the counts by size; large sizes are rounded down to the leading bits.
    """

    def __init__(self) -> None:
        self.count = self.total = self.high = 0
        self._low: int | None = None
        self.times: Counter[int] = Counter()

    @property
    def low(self) -> int:
        return self._low or 0

    def add(self, sizes: Ints) -> None:
        """Adds sizes, int64 `[n]`."""
        if not len(sizes):
            return
        first = int(sizes[0])
        if (sizes == first).all():  # equal sizes are counted quickly
            self._join(len(sizes), len(sizes) * first, first, first)
            self.times[_rounded(sizes[:1]).item()] += len(sizes)
            return
        self._join(len(sizes), int(sizes.sum()), int(sizes.min()), int(sizes.max()))
        rounded, times = np.unique(_rounded(sizes), return_counts=True)
        for size, many in zip(rounded.tolist(), times.tolist(), strict=True):
            self.times[size] += many

    def merge(self, other: SizeCounts) -> None:
        if other._low is not None:
            self._join(other.count, other.total, other._low, other.high)
            self.times.update(other.times)

    def divided(self, by: int) -> SizeCounts:
        """The counts of the sizes, each divided by `by` and rounded down."""
        made = SizeCounts()
        if self.count:
            made._join(self.count, self.total // by, self.low // by, self.high // by)
        for size, times in self.times.items():
            made.times[size // by] += times
        return made

    def quantile(self, share: float) -> int:
        """The smallest size that is not exceeded by at least this share of the sizes."""
        seen = 0
        for size, times in sorted(self.times.items()):
            seen += times
            if seen >= share * self.count:
                return max(size, self.low)
        return self.high

    def _join(self, count: int, total: int, low: int, high: int) -> None:
        self.count += count
        self.total += total
        self._low = low if self._low is None else min(self._low, low)
        self.high = max(self.high, high)


def _rounded(sizes: Ints) -> Ints:
    """The sizes truncated to their leading bits."""
    if not len(sizes) or int(sizes.max()) < 1 << _BITS:
        return sizes
    shifts = np.maximum(np.frexp(sizes.astype(np.float64))[1].astype(np.int64) - _BITS, 0)
    rounded: Ints = sizes >> shifts << shifts
    return rounded
