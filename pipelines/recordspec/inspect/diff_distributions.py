"""Where the distributions of two datasets differ, feature by feature.

Every distance has one unit: the share of values that would have to be others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.inspect.feature_names import FeatureKey
from recordspec.inspect.stats import formatting
from recordspec.inspect.stats.sketches import Moments, SizeCounts
from recordspec.inspect.stats.summarize import shown
from recordspec.inspect.stats.tally import BytesTally, FeatureTally, NumberTally, SplitTally

# What has no more different values is compared value by value, as classes are; more numbers by their order.
_MOST_CLASSES = 100


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One way in which a feature of two datasets was compared.

    Attributes:
        split: in which; `all` where they have none in common.
        feature: its key; in a feature list with `[]` behind it. Empty of records as a whole.
        measure: what was compared: rows (whether there are any), presence, kinds, lengths, steps, values,
            numbers, sizes, forms, special.
        distance: how far apart it is: a share of records, or of values, from 0 to 1.
        at: where they are furthest apart.
        different: whether the distance is more than the threshold.
    """

    split: str
    feature: str
    measure: str
    distance: float
    at: str
    different: bool


@dataclass(frozen=True)
class Distance:
    """How far apart two distributions are, from 0 to 1, and the value or point where they are furthest."""

    distance: float
    at: Any


def compare(split: str, one: SplitTally, other: SplitTally, threshold: float) -> Iterator[Measure]:
    """Compares every feature of two splits; where one has no rows, only that."""
    if bool(one.rows) != bool(other.rows):
        yield lacking(split, f"no rows in the {'new' if one.rows else 'old'} one")
        return
    for key in sorted({*one.features, *other.features}):
        tallies = (one.features.get(key) or FeatureTally(), other.features.get(key) or FeatureTally())
        for name, found in _compared(tallies, (one.rows, other.rows)):
            yield Measure(
                split=split,
                feature=_name(key),
                measure=name,
                distance=found.distance,
                at=_text(found.at),
                different=found.distance > threshold,
            )


def lacking(split: str, at: str) -> Measure:
    """The measure of a split that only one dataset has, or has rows of."""
    return Measure(split=split, feature="", measure="rows", distance=1.0, at=at, different=True)


def distance_of_counts(
    one: Mapping[Any, float], other: Mapping[Any, float], sizes: tuple[int, int], error: float = 0
) -> Distance:
    """The largest difference of the shares of any value (the L-infinity distance).

    Args:
        one, other: by value, how often it is there.
        sizes: of how many values, not all of which need be counted.
        error: how far off the shares may be; so much of a difference does not count.
    """
    found = Distance(0.0, None)
    for value in sorted({*one, *other}, key=str):
        shares = [
            counts.get(value, 0) / max(size, 1) for counts, size in zip((one, other), sizes, strict=True)
        ]
        difference = abs(shares[0] - shares[1]) - error
        if difference > found.distance:
            found = Distance(difference, value)
    return found


def distance_of_points(
    one: npt.NDArray[Any], other: npt.NDArray[Any], weights: tuple[Any, Any] = (None, None)
) -> Distance:
    """The largest difference of the shares below any point (the Kolmogorov-Smirnov distance).

    Args:
        one, other: points in rising order, none of them empty.
        weights: of each point; None where each counts once.
    """
    points = np.union1d(one, other)
    below = [_below(held, some, points) for held, some in zip((one, other), weights, strict=True)]
    apart = np.abs(below[0] - below[1])
    place = int(np.argmax(apart))
    return Distance(float(apart[place]), points[place].item())


def _below(held: npt.NDArray[Any], weights: Any, points: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The share of `held` that is not above each of some points."""
    until = np.searchsorted(held, points, side="right")
    if weights is None:
        shares: npt.NDArray[np.float64] = until / len(held)
        return shares
    total = np.concatenate([[0], np.cumsum(weights)])
    of_weights: npt.NDArray[np.float64] = total[until] / total[-1]
    return of_weights


def _name(key: FeatureKey) -> str:
    sequence, stored = key
    return f"{stored}[]" if sequence else stored


def _text(at: Any) -> str:
    if at is None:
        return ""
    if isinstance(at, tuple):
        return str(shown(at[0]))
    return formatting.figure(at) if isinstance(at, float) else str(at)


def _compared(
    tallies: tuple[FeatureTally, FeatureTally], rows: tuple[int, int]
) -> Iterator[tuple[str, Distance]]:
    one, other = tallies
    presence = [_presence(tally, count) for tally, count in zip(tallies, rows, strict=True)]
    yield "presence", distance_of_counts(presence[0], presence[1], rows)
    kinds = [{kind: count for kind, count in tally.kinds.items() if kind != "none"} for tally in tallies]
    lists = (sum(kinds[0].values()), sum(kinds[1].values()))
    if not all(lists):
        return
    yield "kinds", distance_of_counts(kinds[0], kinds[1], lists)
    for name, sizes in (("lengths", (one.lengths, other.lengths)), ("steps", (one.steps, other.steps))):
        yield from _of_sizes(name, sizes)
    for kind in sorted({*one.of} & {*other.of}):
        yield from _of_kind(one.of[kind], other.of[kind])


def _presence(tally: FeatureTally, rows: int) -> dict[str, int]:
    """How records have, or have not, a value."""
    without = {"missing": rows - tally.present, "without a kind": tally.kinds["none"], "empty": tally.empty}
    if tally.steps.count:
        return {"present": tally.present, "missing": rows - tally.present}
    return {"present": rows - sum(without.values()), **without}


def _of_sizes(name: str, sizes: tuple[SizeCounts, SizeCounts]) -> Iterator[tuple[str, Distance]]:
    if all(one.count for one in sizes):
        points = [np.array(sorted(one.times), np.int64) for one in sizes]
        weights = [
            np.array([one.times[size] for size in held.tolist()], np.int64)
            for one, held in zip(sizes, points, strict=True)
        ]
        yield name, distance_of_points(points[0], points[1], (weights[0], weights[1]))


def _of_kind(one: Any, other: Any) -> Iterator[tuple[str, Distance]]:
    """Values of one kind."""
    if isinstance(one, BytesTally):
        yield from _of_sizes("sizes", (one.sizes, other.sizes))
        counts = (one.sizes.count, other.sizes.count)
        if all(counts):
            yield "forms", distance_of_counts(one.forms.counts, other.forms.counts, counts)
            yield "values", _of_values(one, other, counts)
        return
    counts = (one.moments.count, other.moments.count)
    if not all(counts):
        return
    special = [_special(each.moments) for each in (one, other)]
    if any(any(each.values()) for each in special):
        yield "special", distance_of_counts(special[0], special[1], counts)
    if _are_classes(one) and _are_classes(other):
        yield "values", _of_values(one, other, counts)
    elif len(one.sample.values) and len(other.sample.values):
        yield "numbers", distance_of_points(one.sample.values, other.sample.values)


def _special(moments: Moments) -> dict[str, int]:
    return {
        "NaN": moments.nans,
        "inf": moments.infinite - moments.lowest,
        "-inf": moments.lowest,
    }


def _are_classes(numbers: NumberTally) -> bool:
    frequent = numbers.frequent
    return frequent is not None and frequent.exact and frequent.distinct.value <= _MOST_CLASSES


def _of_values(one: Any, other: Any, counts: tuple[int, int]) -> Distance:
    """Value by value, of those that are frequent."""
    error = sum(each.frequent.short / count for each, count in zip((one, other), counts, strict=True))
    return distance_of_counts(_by_value(one), _by_value(other), counts, error)


def _by_value(counted: Any) -> dict[Any, int]:
    """How often each is there. Of a long string only the beginning is known, and what tells it apart."""
    if isinstance(counted, BytesTally):
        return {(name, code): count for name, code, count in counted.named}
    return dict(counted.top)
