"""How often there is each size: of lists, of strings, of records."""

from __future__ import annotations

from collections import Counter

import numpy as np

from recordspec.wire.strings import Ints

# Sizes are told apart by so many leading bits: below 2,048 each, above within 0.1 % of itself.
_BITS = 11


class Sizes:
    """Counts sizes, each 0 or more. It holds 52 Ki of them at most, as there are no more to tell apart.

    Attributes:
        count, total: how many, and their sum.
        low, high: the smallest and the largest; 0 without any.
        times: by size, how many there are; large ones rounded down to what is told apart.
    """

    def __init__(self) -> None:
        self.count = self.total = self.high = 0
        self._low: int | None = None
        self.times: Counter[int] = Counter()

    @property
    def low(self) -> int:
        return self._low or 0

    def add(self, sizes: int | Ints, count: int) -> None:
        """One size that `count` things have, or those of each, int64 `[count]`."""
        if not count:
            return
        if isinstance(sizes, int):
            self._join(count, sizes * count, sizes, sizes)
            self.times[_rounded(np.array([sizes])).item()] += count
            return
        self._join(count, int(sizes.sum()), int(sizes.min()), int(sizes.max()))
        found, times = np.unique(_rounded(sizes), return_counts=True)
        for size, many in zip(found.tolist(), times.tolist(), strict=True):
            self.times[size] += many

    def merge(self, other: Sizes) -> None:
        if other._low is not None:
            self._join(other.count, other.total, other._low, other.high)
            self.times.update(other.times)

    def quantile(self, share: float) -> int:
        """The smallest size that at least this share of them do not exceed."""
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
    """The sizes with no more than their leading bits."""
    if not len(sizes) or int(sizes.max()) < 1 << _BITS:
        return sizes
    shifts = np.maximum(np.frexp(sizes.astype(np.float64))[1].astype(np.int64) - _BITS, 0)
    rounded: Ints = sizes >> shifts << shifts
    return rounded
