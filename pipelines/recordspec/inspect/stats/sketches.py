"""Sketches: statistics of values in bounded memory, which can be merged."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.wire.arrays import Ints
from recordspec.wire.hashes import Words, splitmix64

_ALL = 2.0**64


@dataclass(frozen=True, kw_only=True)
class EstimatedCount:
    """A count, exact or estimated.

    Attributes:
        error: its standard error, as a share of it; 0 if it is exact.
    """

    value: int
    error: float = 0.0


class BottomK:
    """The things with the smallest hashes of those that were added, at most `size` of them.

    What has one of the smallest hashes of all has one of the smallest of any part, so nothing of it is lost,
    and the same are kept in whatever parts and order they come. Where the hashes are those of places, these
    are a random sample: all there are, as long as they are no more than its size.
    """

    def __init__(self, size: int, dtype: npt.DTypeLike) -> None:
        self._size = size
        self._hashes: Words = np.zeros(0, np.uint64)
        self._held: npt.NDArray[Any] = np.zeros(0, dtype)
        self.limit: np.uint64 | None = None  # the first hash that is out
        self._more: list[tuple[Words, npt.NDArray[Any]]] = []
        self._waiting = 0

    def add(self, hashes: Words, values: npt.NDArray[Any]) -> None:
        """Things, and their hashes."""
        if self.limit is not None:
            kept = hashes < self.limit
            hashes, values = hashes[kept], values[kept]
        self._more.append((hashes, values))
        self._waiting += len(hashes)
        if self._waiting > self._size:
            self._settle()

    def merge(self, other: BottomK) -> None:
        """Adds what another has kept."""
        other._settle()
        if other.limit is not None and (self.limit is None or other.limit < self.limit):
            self._settle()
            self._cut(other.limit)
        self.add(other._hashes, other._held)

    @property
    def values(self) -> npt.NDArray[Any]:
        """The kept items, in the order of the hashes."""
        self._settle()
        return self._held

    @property
    def full(self) -> bool:
        """Whether some of what was added is not kept."""
        self._settle()
        return self.limit is not None

    def _settle(self) -> None:
        """Merges the added hashes, and drops the excess."""
        if not self._more:
            return
        hashes = np.concatenate([self._hashes, *(some for some, _ in self._more)])
        values = np.concatenate([self._held, *(some for _, some in self._more)])
        self._more, self._waiting = [], 0
        order = np.argsort(hashes)
        self._hashes, self._held = self._joined(hashes[order], values[order])
        if len(self._hashes) > self._size:
            self._cut(self._hashes[self._size])

    def _joined(self, hashes: Words, values: npt.NDArray[Any]) -> tuple[Words, npt.NDArray[Any]]:
        """The items to keep, from items in the order of their hashes, which may be equal."""
        return hashes, values

    def _cut(self, limit: np.uint64) -> None:
        self.limit = limit
        kept = int(np.searchsorted(self._hashes, limit))
        self._hashes, self._held = self._hashes[:kept], self._held[:kept]


class KMinimumValues(BottomK):
    """The smallest hashes of those that were added, and how often each was.

    The number of distinct ones is estimated from the range of the kept hashes (Bar-Yossef et al. 2002, "k
    minimum values").
    """

    def __init__(self, size: int) -> None:
        super().__init__(size, np.int64)

    def _joined(self, hashes: Words, values: npt.NDArray[Any]) -> tuple[Words, npt.NDArray[Any]]:
        hashes, firsts = np.unique(hashes, return_index=True)
        return hashes, np.add.reduceat(values, firsts) if len(firsts) else values

    def count(self, hashes: Words) -> None:
        """Adds hashes, each once."""
        self.add(hashes, np.ones(len(hashes), np.int64))

    @property
    def hashes(self) -> Words:
        """The smallest, rising; `values` is how often each was added."""
        self._settle()
        return self._hashes

    @property
    def distinct(self) -> EstimatedCount:
        """The number of distinct items added."""
        return self._estimate(len(self.hashes))

    @property
    def repeated(self) -> EstimatedCount:
        """The number of duplicates added."""
        return self._estimate(int(self.values.sum()) - len(self.hashes))

    def shared(self, other: KMinimumValues) -> EstimatedCount:
        """The number of distinct items added to both."""
        common = np.intersect1d(self.hashes, other.hashes, assume_unique=True)
        limits = [limit for limit in (self.limit, other.limit) if limit is not None]
        if not limits:
            return EstimatedCount(value=len(common))
        limit = min(limits)
        return _scaled(int(np.searchsorted(common, limit)), limit)

    def _estimate(self, below_limit: int) -> EstimatedCount:
        return EstimatedCount(value=below_limit) if self.limit is None else _scaled(below_limit, self.limit)


def _scaled(count: int, limit: np.uint64) -> EstimatedCount:
    """Estimates a total from the number of hashes below a limit."""
    share = (int(limit) or 1) / _ALL
    return EstimatedCount(value=round(count / share), error=1 / sqrt(max(count, 1)))


# Up to this many distinct values, each is counted. Beyond, their number is an estimate with a standard
# error of 1.6 %, and the count of a value may be too low by one in this many.
MOST_VALUES = 1 << 12


class FrequentValues:
    """Counts values, which are distinguished by 64-bit hashes.

    If there are too many, it drops rare ones like Misra and Gries (1982): whenever a value is dropped,
    so are `MOST_VALUES` others, so that no count is too low by more than 1/4,096 of all. Such counts can be
    merged (Agarwal et al., "Mergeable summaries", 2012).

    Attributes:
        codes: the hashes of the counted values, ascending.
        counts: the lower bound of each count.
        short: the largest error by which a count may be too low.
    """

    def __init__(self, size: int = MOST_VALUES) -> None:
        self._size = size
        self.codes: Words = np.zeros(0, np.uint64)
        self.counts: Ints = np.zeros(0, np.int64)
        self.short = 0
        self._others: KMinimumValues | None = None  # of all values, once some were dropped

    def add(self, codes: Words) -> Words:
        """Counts values. Returns those that are new."""
        distinct, counts = np.unique(codes, return_counts=True)
        return self._take(distinct, counts.astype(np.int64, copy=False))

    def merge(self, other: FrequentValues) -> Words:
        """Adds the counts of another. Returns the values that are new."""
        if other._others is not None and self._others is None:
            self._others = self._hashed()
        self.short += other.short
        new = self._take(other.codes, other.counts, counted=other._others is not None)
        if other._others is not None and self._others is not None:
            self._others.merge(other._others)
        return new

    @property
    def exact(self) -> bool:
        """Whether every value is counted."""
        return self._others is None

    @property
    def distinct(self) -> EstimatedCount:
        """The number of distinct values."""
        return EstimatedCount(value=len(self.codes)) if self._others is None else self._others.distinct

    def _take(self, words: Words, counts: Ints, counted: bool = False) -> Words:
        if self._others is not None and not counted:
            self._others.count(splitmix64(words))
        places = np.searchsorted(self.codes, words)
        known = (
            self.codes[np.minimum(places, max(len(self.codes) - 1, 0))] == words if len(self.codes) else False
        )
        if np.all(known):
            self.counts[places] += counts
            return words[:0]
        old = self.codes
        self.codes, back = np.unique(np.concatenate([old, words]), return_inverse=True)
        both = np.concatenate([self.counts, counts])
        self.counts = np.bincount(back, both).astype(np.int64)
        self._drop()
        return np.setdiff1d(self.codes, old, assume_unique=True)

    def _drop(self) -> None:
        """Drops the excess."""
        if len(self.codes) <= self._size:
            return
        if self._others is None:
            self._others = self._hashed()
        place = len(self.counts) - self._size - 1
        most = int(np.partition(self.counts, place)[place])
        kept = self.counts > most
        self.codes, self.counts = self.codes[kept], self.counts[kept] - most
        self.short += most

    def _hashed(self) -> KMinimumValues:
        hashed = KMinimumValues(self._size)
        hashed.count(splitmix64(self.codes))
        return hashed


# The size of a sample in which the ranks of all quantiles are within `rank_error` at once.
SAMPLE_SIZE = 1 << 14
_CERTAIN = 0.99


def rank_error(size: int, certain: float = _CERTAIN) -> float:
    """The largest error of the ranks of a sample of this size, as a share (Dvoretzky, Kiefer and
    Wolfowitz 1956, with the constant of Massart 1990)."""
    return math.sqrt(math.log(2 / (1 - certain)) / (2 * size))


# The leading bits that distinguish sizes: exactly below 2,048, within 0.1 % above.
_BITS = 11


class SizeCounts:
    """Counts sizes, each 0 or more, in at most 52 Ki entries, the number of sizes that it distinguishes.

    Attributes:
        count, total: their number and their sum.
        low, high: the smallest and the largest; 0 without any.
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
        """The sizes of several things, int64 `[n]`."""
        if not len(sizes):
            return
        low, high = int(sizes.min()), int(sizes.max())
        self._join(len(sizes), int(sizes.sum()), low, high)
        if low == high:  # which is quickly counted
            self.times[_rounded(sizes[:1]).item()] += len(sizes)
            return
        rounded, times = np.unique(_rounded(sizes), return_counts=True)
        for size, many in zip(rounded.tolist(), times.tolist(), strict=True):
            self.times[size] += many

    def merge(self, other: SizeCounts) -> None:
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
    """The sizes truncated to their leading bits."""
    if not len(sizes) or int(sizes.max()) < 1 << _BITS:
        return sizes
    shifts = np.maximum(np.frexp(sizes.astype(np.float64))[1].astype(np.int64) - _BITS, 0)
    rounded: Ints = sizes >> shifts << shifts
    return rounded


NumberArray = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class _FloatSums:
    """Sums of floats in float64, joined as Chan, Golub and LeVeque (1983) do.

    Attributes:
        squares: of the distances from the mean, summed.
    """

    count: int
    mean: float
    squares: float

    @classmethod
    def of(cls, numbers: NumberArray) -> _FloatSums:
        exact = numbers.astype(np.float64)
        mean = float(exact.mean())
        exact -= mean
        return cls(count=len(exact), mean=mean, squares=float(exact @ exact))

    def joined(self, other: _FloatSums) -> _FloatSums:
        total, apart = self.count + other.count, other.mean - self.mean
        return _FloatSums(
            count=total,
            mean=self.mean + apart * other.count / total,
            squares=self.squares + other.squares + apart * apart * self.count * other.count / total,
        )

    @property
    def variance(self) -> float:
        return self.squares / self.count


@dataclass(frozen=True, kw_only=True)
class _IntegerSums:
    """The exact sum of integers, and the squares of their distances from the mean, summed in float64.

    Integers are subtracted before they are rounded: float64 has no large ones next to each other.
    """

    count: int
    sum: int
    squares: float

    @classmethod
    def of(cls, numbers: Ints, low: int, high: int) -> _IntegerSums:
        """The sums of numbers from `low` to `high`."""
        above = numbers.view(np.uint64) - np.uint64(low % 2**64)
        exact = above.astype(np.float64)
        exact -= exact.mean()
        total = len(numbers) * low + _sum_of(above, high - low)
        return cls(count=len(numbers), sum=total, squares=float(exact @ exact))

    def joined(self, other: _IntegerSums) -> _IntegerSums:
        count, product = self.count + other.count, self.count * other.count
        apart = (other.sum * self.count - self.sum * other.count) / product  # rounded once
        return _IntegerSums(
            count=count,
            sum=self.sum + other.sum,
            squares=self.squares + other.squares + apart * apart * product / count,
        )

    @property
    def mean(self) -> float:
        return self.sum / self.count

    @property
    def variance(self) -> float:
        return self.squares / self.count


def _sum_of(numbers: Words, largest: int) -> int:
    """The exact sum of unsigned integers."""
    if largest * len(numbers) < 2**64:
        return int(numbers.sum())
    high = numbers >> np.uint64(32)
    return (int(high.sum()) << 32) + int((numbers & np.uint64(2**32 - 1)).sum())


class Moments:
    """Moments of the numbers that were added, all int64 or all float32.

    Mean and deviation are those of finite numbers, in float64. The mean of integers is exact until it is
    rounded, and so are the differences in their deviation.

    Attributes:
        count: the number of values.
        finite: the number of values that are neither NaN nor infinite.
        nans, infinite, zeros: the number of these values.
        lowest: the number of values that are minus infinity.
        low, high: the smallest and the largest finite value; None without any.
    """

    def __init__(self) -> None:
        self.count = self.finite = self.nans = self.infinite = self.lowest = self.zeros = 0
        self.low: float | None = None
        self.high: float | None = None
        self._sums: Any = None  # _FloatSums or _IntegerSums of the finite values

    @property
    def mean(self) -> float:
        """The mean of the finite values."""
        return 0.0 if self._sums is None else float(self._sums.mean)

    @property
    def deviation(self) -> float:
        """The standard deviation, of the numbers themselves (not of what they were drawn from)."""
        return math.nan if self._sums is None else sqrt(self._sums.variance)

    def add(self, numbers: NumberArray) -> npt.NDArray[np.bool_] | None:
        """Counts numbers. Returns which are finite; None if all are."""
        self.count += len(numbers)
        self.zeros += len(numbers) - int(np.count_nonzero(numbers))
        finite = None
        if numbers.dtype.kind == "f" and not (known := np.isfinite(numbers)).all():
            nans = int(np.count_nonzero(np.isnan(numbers)))
            self.nans += nans
            self.infinite += len(numbers) - int(np.count_nonzero(known)) - nans
            self.lowest += int(np.count_nonzero(np.isneginf(numbers)))
            finite, numbers = known, numbers[known]
        if len(numbers):
            low, high = numbers.min().item(), numbers.max().item()
            of_floats = numbers.dtype.kind == "f"
            sums = _FloatSums.of(numbers) if of_floats else _IntegerSums.of(numbers, low, high)
            self._join(sums, low, high)
        return finite

    def merge(self, other: Moments) -> None:
        self.count += other.count
        self.nans += other.nans
        self.infinite += other.infinite
        self.lowest += other.lowest
        self.zeros += other.zeros
        if other.low is not None and other.high is not None:
            self._join(other._sums, other.low, other.high)

    def _join(self, sums: Any, low: float, high: float) -> None:
        """Finite numbers, of which this is known."""
        self._sums = sums if self._sums is None else self._sums.joined(sums)
        self.finite = self._sums.count
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)


class AdjacentValues:
    """Counts pairs of consecutive values, and pairs of equal ones.

    Attributes:
        pairs, same: the numbers of pairs.
        single: whether no record had several values, which is required for the comparison.
    """

    def __init__(self) -> None:
        self.pairs = self.same = 0
        self.single = True
        self._first: int | None = None
        self._last: int | None = None

    def add(self, codes: Words) -> None:
        """The values of records that follow those that were added before, one each."""
        if not len(codes):
            return
        self._join(int(codes[0]), int(codes[-1]))
        self.pairs += len(codes) - 1
        self.same += int((codes[1:] == codes[:-1]).sum())

    def merge(self, other: AdjacentValues) -> None:
        """The same of records that follow."""
        self.single &= other.single
        if other._first is not None and other._last is not None:
            self._join(other._first, other._last)
            self.pairs += other.pairs
            self.same += other.same

    def _join(self, first: int, last: int) -> None:
        if self._last is None:
            self._first = first
        else:
            self.pairs += 1
            self.same += self._last == first
        self._last = last
