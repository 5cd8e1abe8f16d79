"""Compares the distributions of two datasets, feature by feature.

Every distance has the same unit: the share of values that differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.inspect.stats import formatting
from recordspec.inspect.stats.sketches import Moments, SizeCounts
from recordspec.inspect.stats.summarize import shown
from recordspec.inspect.stats.tally import BytesTally, FeatureTally, NumberTally, SplitTally

# Up to this many distinct values are compared one by one, like classes; more numbers by their order.
_MOST_CLASSES = 100


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One way in which a feature of two datasets was compared.

    Attributes:
        split: in which; `all` where they have none in common.
        feature: its key; in a feature list with `[]` after it. Empty of records as a whole.
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
class Frequencies:
    """A distribution of values that have no order.

    Attributes:
        counts: by value, how often it is there.
        size: of how many values, not all of which need be counted.
        error: how far off the shares may be; so much of a difference does not count.
    """

    counts: Mapping[Any, float]
    size: int
    error: float = 0

    def distance(self, other: Frequencies) -> tuple[float, Any]:
        """The largest difference of the shares of any value (the L-infinity distance), and that value."""
        largest: tuple[float, Any] = 0.0, None
        for value in sorted({*self.counts, *other.counts}, key=str):
            shares = [one.counts.get(value, 0) / max(one.size, 1) for one in (self, other)]
            difference = abs(shares[0] - shares[1]) - self.error - other.error
            if difference > largest[0]:
                largest = difference, value
        return largest


@dataclass(frozen=True)
class WeightedPoints:
    """A distribution of numbers.

    Attributes:
        points: in rising order, at least one.
        weights: how often each is there.
    """

    points: npt.NDArray[Any]
    weights: npt.NDArray[Any]

    @classmethod
    def of(cls, sizes: SizeCounts) -> WeightedPoints:
        by_size = sorted(sizes.times.items())
        return cls(np.array([size for size, _ in by_size]), np.array([times for _, times in by_size]))

    def distance(self, other: WeightedPoints) -> tuple[float, Any]:
        """The largest difference of the shares below any point (the Kolmogorov-Smirnov distance), and that
        point."""
        points = np.union1d(self.points, other.points)
        apart = np.abs(self._below(points) - other._below(points))
        place = int(np.argmax(apart))
        return float(apart[place]), points[place].item()

    def _below(self, points: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The share that is not above each of some points."""
        total = np.concatenate([[0], np.cumsum(self.weights)])
        shares: npt.NDArray[np.float64] = (
            total[np.searchsorted(self.points, points, side="right")] / total[-1]
        )
        return shares


def compare(split: str, split_tally: SplitTally, other: SplitTally, threshold: float) -> Iterator[Measure]:
    """Compares every feature of two splits; where one has no rows, only that."""
    if bool(split_tally.rows) != bool(other.rows):
        yield lacking(split, f"no rows in the {'new' if split_tally.rows else 'old'} one")
        return
    for key in sorted({*split_tally.features, *other.features}):
        old, new = (
            _distributions(tally.features.get(key) or FeatureTally(), tally.rows)
            for tally in (split_tally, other)
        )
        both = {place: (found, new[place]) for place, found in old.items() if place in new}
        for (name, kind), (before, after) in both.items():
            if name == "numbers" and ("values", kind) in both:
                continue  # classes are compared value by value, not by their order
            if name == "special" and not (before.counts or after.counts):
                continue
            distance, at = before.distance(after)
            yield Measure(
                split=split,
                feature=f"{key[1]}[]" if key[0] else key[1],
                measure=name,
                distance=distance,
                at=_text(at),
                different=distance > threshold,
            )


def lacking(split: str, at: str) -> Measure:
    """The measure of a split that only one dataset has, or has rows of."""
    return Measure(split=split, feature="", measure="rows", distance=1.0, at=at, different=True)


def _text(at: Any) -> str:
    if at is None:
        return ""
    if isinstance(at, tuple):
        return str(shown(at[0]))
    return formatting.figure(at) if isinstance(at, float) else str(at)


def _distributions(tally: FeatureTally, rows: int) -> dict[tuple[str, str], Any]:
    """The Frequencies and WeightedPoints of a feature to compare, by measure and kind of values."""
    distributions: dict[tuple[str, str], Any] = {("presence", ""): Frequencies(_presence(tally, rows), rows)}
    kinds = {kind: count for kind, count in tally.kinds.items() if kind != "none"}
    if not any(kinds.values()):
        return distributions
    distributions["kinds", ""] = Frequencies(kinds, sum(kinds.values()))
    for name, sizes in (("lengths", tally.lengths), ("steps", tally.steps)):
        if sizes.count:
            distributions[name, ""] = WeightedPoints.of(sizes)
    for kind, values in sorted(tally.of.items()):
        count = values.count
        if not count:
            continue
        error = 0 if values.frequent is None else values.frequent.short / count
        if isinstance(values, BytesTally):
            distributions["sizes", kind] = WeightedPoints.of(values.sizes)
            distributions["forms", kind] = Frequencies(values.forms.counts, count)
            # of a long string only the first bytes and the hash are known
            by_value = {(name, code): times for name, code, times in values.named}
            distributions["values", kind] = Frequencies(by_value, count, error)
            continue
        distributions["special", kind] = Frequencies(_special(values.moments), count)
        if _are_classes(values):
            distributions["values", kind] = Frequencies(dict(values.top), count, error)
        if len(sample := np.sort(values.sample.values)):
            distributions["numbers", kind] = WeightedPoints(sample, np.ones(len(sample), np.int64))
    return distributions


def _presence(tally: FeatureTally, rows: int) -> dict[str, int]:
    """The presence of a feature in records."""
    without = {"missing": rows - tally.present, "without a kind": tally.kinds["none"], "empty": tally.empty}
    if tally.steps.count:
        return {"present": tally.present, "missing": rows - tally.present}
    return {"present": rows - sum(without.values()), **without}


def _special(moments: Moments) -> dict[str, int]:
    counts = {"NaN": moments.nans, "inf": moments.infinite - moments.lowest, "-inf": moments.lowest}
    return {name: count for name, count in counts.items() if count}


def _are_classes(numbers: NumberTally) -> bool:
    frequent = numbers.frequent
    return frequent is not None and frequent.exact and frequent.distinct.value <= _MOST_CLASSES
