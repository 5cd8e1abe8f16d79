"""What was counted, as figures."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.inspect.stats import values
from recordspec.inspect.stats.figures import (
    SHARES,
    Classes,
    Common,
    Histogram,
    Numbers,
    Order,
    Spread,
    Strings,
    Value,
)
from recordspec.inspect.stats.forms import TEXT
from recordspec.inspect.stats.frequent import Frequent
from recordspec.inspect.stats.names import SHOWN
from recordspec.inspect.stats.neighbours import Neighbours
from recordspec.inspect.stats.sample import rank_error
from recordspec.inspect.stats.sizes import Sizes

_BINS = 20
_EXACT = 1 << 53  # a float64 has all whole numbers up to it
_TOP = 20


def spread(sizes: Sizes) -> Spread | None:
    if not sizes.count:
        return None
    held = np.array(sorted(sizes.times), np.float64)
    weights = np.array([sizes.times[size] for size in sorted(sizes.times)], np.int64)
    return Spread(
        count=sizes.count,
        min=sizes.low,
        median=sizes.quantile(0.5),
        mean=sizes.total / sizes.count,
        max=sizes.high,
        histogram=_histogram(held, sizes.low, sizes.high, whole=True, weights=weights),
    )


def numbers(counted: values.Numbers) -> Numbers:
    moments, full = counted.moments, counted.sample.full
    some = moments.low is not None and moments.high is not None
    base = int(moments.low) if counted.frequent is not None and moments.low is not None else 0
    sample = _above(counted.sample.values, base)
    found = np.quantile(sample, SHARES).tolist() if len(sample) and moments.high is not None else []
    quantiles = [min(_at(base, one), moments.high or 0) for one in found]
    return Numbers(
        count=moments.count,
        nans=moments.nans,
        infinite=moments.infinite,
        zeros=moments.zeros,
        min=moments.low,
        max=moments.high,
        mean=moments.mean if some else None,
        deviation=moments.deviation if some else None,
        quantiles=dict(zip(SHARES, quantiles, strict=False)),
        rank_error=rank_error(len(sample)) if full else 0.0,
        histogram=_numbers_histogram(counted, base, sample),
    )


def _above(numbers: npt.NDArray[Any], base: int) -> npt.NDArray[np.float64]:
    """How far numbers are above a whole one: of those beyond 2^53, a float64 tells that, and not them."""
    if numbers.dtype.kind != "i":
        return numbers.astype(np.float64)
    distances: npt.NDArray[np.uint64] = numbers.view(np.uint64) - np.uint64(base % (1 << 64))
    return distances.astype(np.float64)


def _at(base: int, above: float) -> float:
    """The number so far above; the next whole one where a float64 does not tell it."""
    at = base + above
    return base + math.ceil(above) if base and abs(at) >= _EXACT else at


def _numbers_histogram(
    counted: values.Numbers, base: int, sample: npt.NDArray[np.float64]
) -> Histogram | None:
    moments = counted.moments
    if moments.low is None or moments.high is None or not len(sample):
        return None
    whole = counted.frequent is not None
    times = moments.finite / len(sample)
    found = _histogram(sample, moments.low - base, moments.high - base, whole=whole, times=times)
    return replace(found, edges=tuple(_at(base, edge) for edge in found.edges))


def _histogram(
    held: npt.NDArray[np.float64],
    low: float,
    high: float,
    *,
    whole: bool,
    weights: npt.NDArray[np.int64] | None = None,
    times: float = 1.0,
) -> Histogram:
    """Bins of one width; of `whole` numbers that are few, one each. A value stands for so many `times`."""
    if whole:  # a bin has as many of them as another, so that even ones look even
        width = -(-(int(high - low) + 1) // _BINS)
        edges = np.arange(-(-(int(high - low) + 1) // width) + 1) * float(width) + float(low) - 0.5
    elif high == low:
        edges = np.array([low, high], np.float64)
    else:
        edges = np.linspace(float(low), float(high), _BINS + 1)
    if len(edges) > 2:
        counts = np.histogram(np.clip(held, edges[0], edges[-1]), edges, weights=weights)[0]
    else:  # one bin, which may be narrower than a float64 can tell
        counts = np.array([len(held) if weights is None else weights.sum()])
    scaled = np.rint(counts * times).astype(np.int64)
    return Histogram(edges=tuple(edges.tolist()), counts=tuple(scaled.tolist()), exact=times == 1.0)


def strings(counted: values.ByteStrings) -> Strings:
    known = [one for one in counted.forms.media.looked_at if one is not None]
    measures: defaultdict[str, list[float]] = defaultdict(list)
    for one in known:
        for name, value in one.measures.items():
            measures[name].append(value)
    sizes = spread(counted.sizes)
    assert sizes is not None
    return Strings(
        sizes=sizes,
        forms=_by_count(counted.forms.counts),
        looked_at=len(known),
        modes=_by_count(Counter(one.mode for one in known)),
        measures={name: (min(many), float(np.median(many)), max(many)) for name, many in measures.items()},
    )


def _by_count(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def common(counted: values.Values) -> Common | None:
    """The frequent values; None of those that are not counted."""
    if counted.frequent is None:
        return None
    told = not isinstance(counted, values.ByteStrings) or TEXT in counted.forms.counts
    top = tuple((shown(value), many) for value, many in counted.top[: _TOP if told else 0])
    return Common(
        distinct=counted.frequent.distinct,
        top=top,
        short=counted.frequent.short,
        others=counted.count - sum(many for _, many in top),
    )


def shown(value: int | bytes) -> int | str:
    """A value as it is told; of a long one the first bytes, and what is no text as escapes."""
    if isinstance(value, int):
        return value
    cut = "..." if len(value) > SHOWN else ""
    return value[:SHOWN].decode(errors="backslashreplace") + cut


def classes(counted: values.Values, names: tuple[str, ...]) -> Classes:
    """Of a feature that has classes, with the names of a spec or without."""
    counts: list[tuple[Value, int]]
    unnamed = 0
    if names:
        indices = counted.indices if isinstance(counted, values.Numbers) else np.zeros(0, np.int64)
        known = np.zeros(len(names), np.int64)
        known[: len(indices)] = indices[: len(names)]
        counts = list(zip(names, known.tolist(), strict=True))
        unnamed = counted.count - int(known.sum())
    else:  # long ones may be told alike, and are two
        counts = [(shown(value), count) for value, count in counted.top]
    least, most = min(count for _, count in counts), max(count for _, count in counts)
    return Classes(
        counts=tuple(counts),
        named=bool(names),
        unnamed=unnamed,
        imbalance=most / least if least else None,
    )


def order(found: Neighbours, frequent: Frequent) -> Order | None:
    """Of records that have one value each, where all values are counted."""
    if not (found.single and frequent.exact and found.pairs):
        return None
    total = int(frequent.counts.sum())
    alike = sum(count * (count - 1) for count in frequent.counts.tolist())
    return Order(pairs=found.pairs, same=found.same / found.pairs, by_chance=alike / (total * (total - 1)))
