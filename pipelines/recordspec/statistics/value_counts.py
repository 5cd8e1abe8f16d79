"""Statistics of the values of a column: moments, quantiles, histograms and counts of values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec._arrow import arrow
from recordspec.statistics.content import ContentTypes
from recordspec.statistics.sizes import SizeCounts
from recordspec.wire.arrays import Ints, take
from recordspec.wire.arrays import is_arrow as is_arrow_array

# The shares of the quantiles.
SHARES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_BINS = 20
# The size of a sample. The ranks of its quantiles are off by about 0.5 %.
SAMPLE = 1 << 14
# Up to _FEW_BOUNDS bounds are compared one by one; _AT_ONCE values fit into the cache.
_FEW_BOUNDS = 100
_AT_ONCE = 1 << 15
_EXACT = 1 << 52  # below it, float64 has every multiple of 0.5

NumberArray = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class EstimatedCount:
    """A count, exact or estimated.

    Attributes:
        error: its standard error, as a share of it; 0 if it is exact.
    """

    value: int
    error: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """The number of values between consecutive edges; the last bin includes its upper edge.

    Attributes:
        edges: the edges of the bins, one more than there are counts.
        counts: the number of values in each bin.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Frequencies:
    """The counts of values.

    Attributes:
        distinct: the number of distinct values.
        values, times: the counted values, with their counts, the most frequent first. A long string is
            replaced by its first bytes and its hash.
        whole: whether every value is counted.
    """

    distinct: EstimatedCount
    values: Sequence[Any]
    times: Sequence[int]
    whole: bool


@dataclass(frozen=True, kw_only=True)
class NumberValues:
    """Int64 or float32 values.

    Attributes:
        count: the number of values, finite or not.
        nans, infinite, lowest, zeros: the number of values that are NaN, infinite, minus infinity, or zero;
            `infinite` includes `lowest`.
        low, high, mean, deviation: statistics of the finite values; None without a finite value.
        quantiles: the finite value at each share; empty without a finite value.
        rank_error: the largest error of the rank of a quantile, as a share; 0 if each value is counted.
        histogram: the histogram of the finite values.
        points, below: ascending numbers, and the number of finite values below each.
        is_counted: whether each value is counted: then `points` holds every value.
        frequent: the counts of integers; None for floats.
    """

    count: int
    nans: int
    infinite: int
    lowest: int
    zeros: int
    low: float | None
    high: float | None
    mean: float | None
    deviation: float | None
    quantiles: dict[float, float]
    rank_error: float
    histogram: Histogram | None
    points: NumberArray
    below: Ints
    is_counted: bool
    frequent: Frequencies | None

    @property
    def finite(self) -> int:
        return self.count - self.nans - self.infinite


@dataclass(frozen=True, kw_only=True)
class BytesValues:
    """Bytes values.

    Attributes:
        sizes: the sizes of the values, in bytes.
        forms: the formats of the values.
        frequent: the counts of the values.
    """

    sizes: SizeCounts
    forms: ContentTypes
    frequent: Frequencies

    @property
    def count(self) -> int:
        return self.sizes.count


KindValues = NumberValues | BytesValues


def _moments(values: NumberArray, times: Ints) -> tuple[float, float]:
    """The exact mean and standard deviation of finite values, `times` being the count of each; the mean of
    integers as in `_quotient`."""
    count, is_float = int(times.sum()), values.dtype.kind == "f"
    if is_float:
        exact = values.astype(np.float64)
        mean = float(exact @ times) / count
        apart = exact - mean
    else:  # float64 rounds large adjacent integers to one value
        total = sum(value * many for value, many in zip(values.tolist(), times.tolist(), strict=True))
        mean = _quotient(total, count)
        middle = total // count
        apart = np.array([float(value - middle) for value in values.tolist()])
        apart -= float(apart @ times) / count
    return mean, math.sqrt(float((apart * apart) @ times) / count)


def exact_quantiles(values: NumberArray, times: Ints) -> dict[float, float]:
    """The quantile at each share, interpolated linearly between two values like `np.quantile`.

    Args:
        values: the values in ascending order.
        times: the count of each value.
    """
    seen = np.cumsum(times)
    last = int(seen[-1]) - 1
    quantiles: dict[float, float] = {}
    for share in SHARES:
        # exact: no share is finer than a hundredth
        rank, part = divmod(round(share * 100) * last, 100)
        first, then = (
            values[np.searchsorted(seen, min(place, last), "right")].item() for place in (rank, rank + 1)
        )
        if values.dtype.kind == "f":
            quantiles[share] = first + (then - first) * (part / 100)
        else:
            quantiles[share] = _quotient(100 * first + (then - first) * part, 100)
    return quantiles


def _quotient(total: int, count: int) -> float:
    """Divides two integers. Returns an integer, rounded up, if float64 is too coarse for the quotient."""
    return total / count if abs(total) < count * _EXACT else -(-total // count)


def bin_edges(low: float, high: float, *, integers: bool) -> tuple[float, ...]:
    """The edges of a histogram. Each bin has equally many integers, so that a uniform distribution looks
    uniform; few integers get one bin each."""
    if not integers:
        return (low, high) if low == high else tuple(np.linspace(low, high, _BINS + 1).tolist())
    first, last = int(low), int(high)
    width = -(-(last - first + 1) // _BINS)
    bins = -(-(last - first + 1) // width)
    return tuple(_quotient(100 * (first + index * width) - 50, 100) for index in range(bins + 1))


def inner_edges(edges: Sequence[float], *, integers: bool) -> list[float]:
    """The edges between bins. A bin excludes its upper edge."""
    return [math.ceil(edge) if integers else edge for edge in edges[1:-1]]


def histogram_of(edges: tuple[float, ...], below: Sequence[int], count: int) -> Histogram:
    """The histogram of `count` values, `below` being the number of values below each inner edge."""
    return Histogram(edges=edges, counts=tuple(np.diff([0, *below, count]).tolist()))


class Sample:
    """A random sample of values, reproducible by its seed. It holds every value while there are few.

    Args:
        size: the size of the sample; it may hold up to twice as many values.
        seed: the seed of the draws.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size, self._step, self._random = size, 1, np.random.default_rng(seed)
        self._parts: list[Any] = []

    @property
    def is_whole(self) -> bool:
        """Whether the sample holds all values."""
        return self._step == 1

    @property
    def values(self) -> Any:
        """The values, in NumPy or Arrow, as they were added."""
        if len(self._parts) != 1:
            is_arrow = is_arrow_array(self._parts[0]) if self._parts else False
            self._parts = [(arrow().concat_arrays if is_arrow else np.concatenate)(self._parts)]
        return self._parts[0]

    def add(self, values: Any) -> None:
        """Adds values, at least one, in NumPy or Arrow."""
        if self._step > 1:
            some = self._random.binomial(len(values), 1 / self._step)
            values = _take(values, self._random.integers(0, len(values), some))
        else:
            values = _copied(values)  # a view would keep the whole buffer in memory
        self._parts.append(values)
        self._make_room()

    def merge(self, other: Sample) -> None:
        """Adds a sample of the values that follow; `other` changes, too."""
        for some, step in ((self, other._step), (other, self._step)):
            while some._step < step:
                some._halve()
        self._parts += other._parts
        self._make_room()

    def _make_room(self) -> None:
        while sum(map(len, self._parts)) > 2 * self._size:
            self._halve()

    def _halve(self) -> None:
        if self._parts:
            whole = self.values
            self._parts = [_take(whole, np.flatnonzero(self._random.random(len(whole)) < 0.5))]
        self._step *= 2


def _take(values: Any, places: Ints) -> Any:
    return take(values, places) if is_arrow_array(values) else values[places]


def _copied(values: Any) -> Any:
    return arrow().concat_arrays([values, values[:0]]) if is_arrow_array(values) else values.copy()


class NumberCounter:
    """Counts numbers: in one pass if the sample holds all of them, otherwise in two passes.

    Attributes:
        count: the number of finite values.
        nans, infinite, lowest, zeros, low, high: as in NumberValues.
        sum: the sum of the finite values; exact for integers.
        sample: a random sample of the finite values.
    """

    def __init__(self, kind: str, seed: int) -> None:
        self._is_float = kind == "float32"
        self.count = self.nans = self.infinite = self.lowest = self.zeros = 0
        self.low: Any = None
        self.high: Any = None
        self.sum: Any = 0
        self.sample = Sample(SAMPLE, seed)
        self._bounds = np.zeros(0, kind)
        self._below: Ints = np.zeros(0, np.int64)
        self._quantiles: dict[float, Any] = {}
        self._squares = 0.0

    def add(self, values: NumberArray) -> None:
        """Adds values in the first pass."""
        finite = self.finite(values)
        if len(finite) < len(values):
            nans = int(np.count_nonzero(np.isnan(values)))
            self.nans += nans
            self.infinite += len(values) - len(finite) - nans
            self.lowest += int(np.count_nonzero(np.isneginf(values)))
        if not len(finite):
            return
        self.count += len(finite)
        self.zeros += len(finite) - int(np.count_nonzero(finite))
        low, high = finite.min().item(), finite.max().item()
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)
        self.sum += float(finite.sum(dtype=np.float64)) if self._is_float else _exact_sum(finite)
        self.sample.add(finite)

    def merge(self, other: NumberCounter) -> None:
        """Adds what was counted of the values that follow, in the first pass."""
        for name in ("count", "nans", "infinite", "lowest", "zeros", "sum"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.low is not None:
            self.low = other.low if self.low is None else min(self.low, other.low)
            self.high = other.high if self.high is None else max(self.high, other.high)
        self.sample.merge(other.sample)

    def merge_again(self, other: NumberCounter) -> None:
        """Adds what was counted of the values that follow, in the second pass."""
        self._below = self._below + other._below
        self._squares += other._squares

    def again(self) -> NumberCounter:
        """A counter for the second pass of a part of the values, which has counted nothing."""
        made = copy(self)
        made.sample, made._below, made._squares = Sample(SAMPLE, 0), np.zeros_like(self._below), 0.0
        return made

    def finite(self, values: NumberArray) -> NumberArray:
        """The finite values among `values`."""
        if not self._is_float:
            return values
        finite = np.isfinite(values)
        return values if finite.all() else values[finite]

    def find_bounds(self, shares: Sequence[float]) -> None:
        """Finds the bounds below which the second pass counts: the edges of bins, and the quantiles of the
        sample."""
        sample = np.sort(self.sample.values)
        at = sample[[round(share * (len(sample) - 1)) for share in shares]]
        self._quantiles = dict(zip(shares, at.tolist(), strict=True))
        if self._is_float:
            with np.errstate(over="ignore"):  # infinity is after the largest
                after = np.nextafter(at, np.float32(np.inf))
        else:
            after = np.minimum(at, np.iinfo(np.int64).max - 1) + 1
        self._bounds = np.unique(np.concatenate([self._edges, at, after]))
        self._below = np.zeros(len(self._bounds), np.int64)

    @property
    def _edges(self) -> NumberArray:
        """The inner edges of bins. For floats, each is rounded up to a float32: equally many values are below
        it."""
        edges = inner_edges(
            bin_edges(self.low, self.high, integers=not self._is_float), integers=not self._is_float
        )
        if not self._is_float:
            return np.array(edges, np.int64)
        exact = np.array(edges, np.float64)
        near = exact.astype(np.float32)
        return np.where(near < exact, np.nextafter(near, np.float32(np.inf)), near)

    def count_below(self, values: NumberArray) -> None:
        """Counts the values below each bound, and sums the squared deviations, in the second pass."""
        finite = self.finite(values)
        middle = self.sum / self.count if self._is_float else self.sum // self.count
        for start in range(0, len(finite), _AT_ONCE):
            some = finite[start : start + _AT_ONCE]
            if len(self._bounds) > _FEW_BOUNDS:
                self._below += np.searchsorted(np.sort(some), self._bounds)
            else:  # 0.1 to 0.2 ns each, and sorting takes 18 to 36 ns
                self._below += [np.count_nonzero(some < bound) for bound in self._bounds]
            # integers are subtracted before they are rounded: float64 rounds large adjacent ones to one value
            exact = not self._is_float and self.high - self.low < 1 << 63
            apart = np.subtract(some, middle, dtype=np.int64 if exact else np.float64)
            self._squares += float(np.square(apart, dtype=np.float64).sum())

    def summary_of(
        self, values: NumberArray, times: Ints, frequent: Frequencies | None = None
    ) -> NumberValues:
        """The summary if every finite value is counted.

        Args:
            values: the distinct finite values, in ascending order; at least one.
            times: the count of each value.
            frequent: the counts of integers.
        """
        below = np.cumsum(times) - times
        edges = bin_edges(values[0].item(), values[-1].item(), integers=not self._is_float)
        inner = np.searchsorted(values, inner_edges(edges, integers=not self._is_float), "left")
        mean, deviation = _moments(values, times)
        return self._summary(
            mean=mean,
            deviation=deviation,
            quantiles=exact_quantiles(values, times),
            rank_error=0.0,
            histogram=histogram_of(edges, np.append(below, self.count)[inner].tolist(), self.count),
            points=values,
            below=below,
            is_counted=True,
            frequent=frequent,
        )

    def summary(self, frequent: Frequencies | None = None) -> NumberValues:
        """The summary after the second pass, if not every value is counted; or of no finite value."""
        if not self.count:
            return self._summary(
                mean=None,
                deviation=None,
                quantiles={},
                rank_error=0.0,
                histogram=None,
                points=self._bounds,
                below=self._below,
                is_counted=True,
                frequent=None,
            )
        edges, below = bin_edges(self.low, self.high, integers=not self._is_float), self._below
        inner = below[np.searchsorted(self._bounds, self._edges)]
        at = np.array(list(self._quantiles.values()), self._bounds.dtype)
        ranks = [
            np.append(below, self.count)[np.searchsorted(self._bounds, at, side)] / self.count
            for side in ("left", "right")
        ]
        shares = np.array(list(self._quantiles))
        off = np.maximum(ranks[0] - shares, shares - ranks[1]).max()
        rest = 0.0 if self._is_float else self.sum % self.count / self.count  # exact
        return self._summary(
            mean=self.sum / self.count if self._is_float else _quotient(self.sum, self.count),
            deviation=math.sqrt(max(self._squares / self.count - rest * rest, 0.0)),
            quantiles=self._quantiles,
            rank_error=max(float(off), 0.0),
            histogram=histogram_of(edges, inner.tolist(), self.count),
            points=self._bounds,
            below=below,
            is_counted=False,
            frequent=frequent,
        )

    def _summary(self, **second: Any) -> NumberValues:
        """The summary of the counts of the first pass, with `second`, the other fields."""
        return NumberValues(
            count=self.count + self.nans + self.infinite,
            nans=self.nans,
            infinite=self.infinite,
            lowest=self.lowest,
            zeros=self.zeros,
            low=self.low,
            high=self.high,
            **second,
        )


def _exact_sum(numbers: Ints) -> int:
    """The exact sum of int64 integers: the upper and lower 32 bits are summed apart, so neither overflows."""
    return (int((numbers >> 32).sum()) << 32) + int((numbers & 0xFFFFFFFF).sum())
