"""What the values of a column are: numbers or strings, with how often each is there where that is counted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.inspect.stats.content import ContentTypes
from recordspec.inspect.stats.sizes import SizeCounts
from recordspec.wire.arrays import Ints

# The shares of the quantiles.
SHARES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_BINS = 20
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
    """How often values are there.

    Attributes:
        distinct: the number of different values.
        values, times: the values and how often each is there, of those that are counted; the most frequent
            first. Of a long string, its first bytes and others that tell it from those that begin alike.
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
        count: of all; `nans`, `infinite` (of which `lowest` are minus infinity) and `zeros` of these.
        low, high, mean, deviation: of the finite ones; None without any.
        quantiles: the finite value at each share; empty without any.
        rank_error: by how much the rank of any quantile is off, as a share; 0 if each value is counted.
        histogram: of the finite values.
        points, below: numbers, rising, and how many finite values are below each.
        is_counted: whether each value is counted: then all are points.
        frequent: the values, of integers.
    """

    count: int
    nans: int = 0
    infinite: int = 0
    lowest: int = 0
    zeros: int = 0
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    deviation: float | None = None
    quantiles: dict[float, float]
    rank_error: float = 0.0
    histogram: Histogram | None = None
    points: NumberArray
    below: Ints
    is_counted: bool = True
    frequent: Frequencies | None = None

    @property
    def finite(self) -> int:
        return self.count - self.nans - self.infinite


@dataclass(frozen=True, kw_only=True)
class BytesValues:
    """Bytes values.

    Attributes:
        sizes: in bytes.
        forms: their formats.
        frequent: the values.
        examples: the beginnings of some of them.
    """

    sizes: SizeCounts
    forms: ContentTypes
    frequent: Frequencies
    examples: Sequence[bytes]

    @property
    def count(self) -> int:
        return self.sizes.count


KindValues = NumberValues | BytesValues


def moments_of(values: NumberArray, times: Ints) -> dict[str, Any]:
    """The exact moments of finite values, rising, of which each is there so many times."""
    count, is_float = int(times.sum()), values.dtype.kind == "f"
    if is_float:
        exact = values.astype(np.float64)
        mean = float(exact @ times) / count
        apart = exact - mean
    else:  # float64 has no large integers next to each other
        total = sum(value * many for value, many in zip(values.tolist(), times.tolist(), strict=True))
        mean = total / count
        middle = total // count
        apart = np.array([float(value - middle) for value in values.tolist()])
        apart -= float(apart @ times) / count
    return {
        "zeros": int(times[values == 0].sum()),
        "low": values[0].item(),
        "high": values[-1].item(),
        "mean": mean,
        "deviation": math.sqrt(float((apart * apart) @ times) / count),
    }


def exact_quantiles(values: NumberArray, times: Ints) -> dict[float, float]:
    """By share, the value at this rank, interpolated linearly between two values like `np.quantile`.

    Args:
        values: rising.
        times: how often each is there.
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
            quantiles[share] = _to_number(100 * first + (then - first) * part)
    return quantiles


def _to_number(hundredths: int) -> float:
    """A float of an exact number; an integer, rounded up, where float64 is too coarse."""
    return hundredths / 100 if abs(hundredths) < 100 * _EXACT else -(-hundredths // 100)


def bin_edges(low: float, high: float, *, integers: bool) -> tuple[float, ...]:
    """The edges of a histogram: of integers equally many in a bin, so that a uniform distribution looks
    uniform; one each of few."""
    if not integers:
        return (low, high) if low == high else tuple(np.linspace(low, high, _BINS + 1).tolist())
    first, last = int(low), int(high)
    width = -(-(last - first + 1) // _BINS)
    bins = -(-(last - first + 1) // width)
    return tuple(_to_number(100 * (first + index * width) - 50) for index in range(bins + 1))


def inner_edges(edges: Sequence[float], *, integers: bool) -> list[float]:
    """Between which numbers bins change: a bin has what is below, and not what is equal."""
    return [math.ceil(edge) if integers else edge for edge in edges[1:-1]]


def histogram_of(edges: tuple[float, ...], below: Sequence[int], count: int) -> Histogram:
    """The histogram of values, of which so many are below each inner edge."""
    return Histogram(edges=edges, counts=tuple(np.diff([0, *below, count]).tolist()))


def counted_numbers(values: NumberArray, times: Ints) -> NumberValues:
    """The summary of finite numbers, rising, each of which is there so many times."""
    integers, count = values.dtype.kind != "f", int(times.sum())
    below = np.cumsum(times) - times
    edges = bin_edges(values[0].item(), values[-1].item(), integers=integers)
    inner = np.searchsorted(values, inner_edges(edges, integers=integers), "left")
    order = np.lexsort((values, -times))
    return NumberValues(
        count=count,
        **moments_of(values, times),
        quantiles=exact_quantiles(values, times),
        histogram=histogram_of(edges, np.append(below, count)[inner].tolist(), count),
        points=values,
        below=below,
        frequent=Frequencies(
            distinct=EstimatedCount(value=len(values)),
            values=values[order].tolist(),
            times=times[order].tolist(),
            whole=True,
        )
        if integers
        else None,
    )
