"""Compares the distributions of two datasets, feature by feature.

Every distance has the same unit: the share of values that differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.statistics import formatting
from recordspec.statistics.profile import FeatureCounts, Profile
from recordspec.statistics.sizes import SizeCounts
from recordspec.statistics.summarize import shown
from recordspec.statistics.value_counts import BytesValues, Frequencies, NumberValues
from recordspec.tables.feature_names import FeatureKey, FeatureNames

# The shares of the quantiles between which numbers are counted. If there are many distinct numbers, a
# distance is too small by at most the share between two adjacent quantiles.
PERCENTILES = tuple(percent / 100 for percent in range(1, 100))
# Up to this many distinct numbers are compared one by one, like classes; more are compared by their order.
_MOST_CLASSES = 100


@dataclass(frozen=True, kw_only=True)
class Measure:
    """The distance of one feature in two datasets, by one measure.

    Attributes:
        split: the split; `all` if the datasets have no split in common.
        feature: the key of the feature, followed by `[]` in a feature list; empty for records as a whole.
        measure: the compared property: rows (whether there are any), presence, kinds, lengths, steps, values,
            numbers, sizes, forms, special.
        distance: the distance, as a share of records or of values, from 0 to 1.
        at: the value at which the distributions differ most.
        different: whether the distance exceeds the threshold.
    """

    split: str
    feature: str
    measure: str
    distance: float
    at: str
    different: bool


@dataclass(frozen=True)
class Shares:
    """A categorical distribution: of values that have no order.

    Attributes:
        counts: the count of each counted value.
        size: the number of all values, counted or not.
        most: the largest possible count of a value that is not counted.
    """

    counts: Mapping[Any, int]
    size: int
    most: float = 0

    def distance(self, other: Shares) -> tuple[float, Any]:
        """The L-infinity distance (the largest difference of the shares of a value), and that value. If not
        every value is counted, the distance is a lower bound."""
        largest: tuple[float, Any] = 0.0, None
        for value in sorted({*self.counts, *other.counts}, key=str):
            lows = [one.counts.get(value, 0) / max(one.size, 1) for one in (self, other)]
            highs = [one.counts.get(value, one.most) / max(one.size, 1) for one in (self, other)]
            difference = max(lows[0] - highs[1], lows[1] - highs[0])
            if difference > largest[0]:
                largest = difference, value
        return largest


@dataclass(frozen=True)
class Cumulative:
    """A cumulative distribution of numbers.

    Attributes:
        points: numbers in ascending order, at least one.
        below: the share of numbers below each point, float64.
        whole: whether every number is a point.
    """

    points: npt.NDArray[Any]
    below: npt.NDArray[np.float64]
    whole: bool = True

    @classmethod
    def of(cls, points: npt.NDArray[Any], times: npt.NDArray[Any]) -> Cumulative:
        """The distribution of numbers, `times` being the count of each."""
        return cls(points, (np.cumsum(times) - times) / times.sum())

    @classmethod
    def of_sizes(cls, sizes: SizeCounts) -> Cumulative:
        by_size = sorted(sizes.times.items())
        return cls.of(np.array([size for size, _ in by_size]), np.array([times for _, times in by_size]))

    def distance(self, other: Cumulative) -> tuple[float, Any]:
        """The Kolmogorov-Smirnov distance (the largest difference of the shares up to a point), and that
        point. If not every number is a point, the distance is a lower bound."""
        points = np.union1d(self.points, other.points)
        (low, high), (other_low, other_high) = self._below(points), other._below(points)
        apart = np.maximum(low - other_high, other_low - high)
        place = int(np.argmax(apart))
        return max(float(apart[place]), 0.0), points[max(place - 1, 0)].item()  # below the next

    def _below(self, points: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The lower and upper bounds of the share of numbers below each of `points`."""
        high = np.append(self.below, 1.0)[np.searchsorted(self.points, points, "left")]
        if self.whole:
            return high, high
        return np.insert(self.below, 0, 0.0)[np.searchsorted(self.points, points, "right")], high


def compare(
    split: str,
    split_tally: Profile,
    other: Profile,
    threshold: float,
    names: FeatureNames,
) -> Iterator[Measure]:
    """Compares every feature of two splits. If only one of them has rows, only this difference is returned.

    Args:
        names: the names of classes, and the units of dates.
    """
    if bool(split_tally.rows) != bool(other.rows):
        yield lacking(split, f"no rows in the {'new' if split_tally.rows else 'old'} one")
        return
    for key, name, distance, at in distances(split_tally, other, names):
        yield Measure(
            split=split,
            feature=f"{key[1]}[]" if key[0] else key[1],
            measure=name,
            distance=distance,
            at=at,
            different=distance > threshold,
        )


def distances(
    split_tally: Profile, other: Profile, names: FeatureNames
) -> Iterator[tuple[FeatureKey, str, float, str]]:
    """The distances of every feature of two splits: the key, the measure, the distance, and the value at
    which the distributions differ most."""
    for key in sorted({*split_tally.features, *other.features}):
        old, new = (
            _distributions(tally.features.get(key) or FeatureCounts(), tally.rows)
            for tally in (split_tally, other)
        )
        both = {place: (found, new[place]) for place, found in old.items() if place in new}
        for (name, kind), (before, after) in both.items():
            if name == "numbers" and ("values", kind) in both:
                continue  # classes are compared value by value, not by their order
            if name == "special" and not (before.counts or after.counts):
                continue
            distance, at = before.distance(after)
            is_value = name in ("numbers", "values")
            yield key, name, distance, _value_text(at, key, names) if is_value else _text(at)


def lacking(split: str, at: str) -> Measure:
    """The measure of a split that only one dataset has, or that has rows in only one dataset."""
    return Measure(split=split, feature="", measure="rows", distance=1.0, at=at, different=True)


def _value_text(at: Any, key: FeatureKey, names: FeatureNames) -> str:
    """A value as text: a class by its name, and a date as one."""
    date, classes = names.dates.get(key), names.classes.get(key, ())
    if at is not None and date is not None:
        return formatting.number_text(at, date)
    return classes[at] if isinstance(at, int) and 0 <= at < len(classes) else _text(at)


def _text(at: Any) -> str:
    if at is None:
        return ""
    if isinstance(at, bytes):
        return str(shown(at))
    return formatting.figure(at) if isinstance(at, float) else str(at)


def _distributions(tally: FeatureCounts, rows: int) -> dict[tuple[str, str], Any]:
    """The Shares and Cumulatives of a feature to compare, by measure and kind of values."""
    distributions: dict[tuple[str, str], Any] = {("presence", ""): Shares(_presence(tally, rows), rows)}
    kinds = {kind: count for kind, count in tally.kinds.items() if kind != "none"}
    if not any(kinds.values()):
        return distributions
    distributions["kinds", ""] = Shares(kinds, sum(kinds.values()))
    for name, sizes in (("lengths", tally.lengths), ("steps", tally.steps)):
        if sizes.count:
            distributions[name, ""] = Cumulative.of_sizes(sizes)
    for kind, values in sorted(tally.of.items()):
        count = values.count
        if not count:
            continue
        if isinstance(values, BytesValues):
            distributions["sizes", kind] = Cumulative.of_sizes(values.sizes)
            distributions["forms", kind] = Shares(values.forms.counts, count)
            distributions["values", kind] = _shares(values.frequent, count)
            continue
        distributions["special", kind] = Shares(_special(values), count)
        frequent = values.frequent
        if frequent is not None and frequent.whole and frequent.distinct.value <= _MOST_CLASSES:
            distributions["values", kind] = _shares(frequent, count)
        if values.finite:
            below = values.below / values.finite
            distributions["numbers", kind] = Cumulative(values.points, below, values.is_counted)
    return distributions


def _shares(frequent: Frequencies, count: int) -> Shares:
    times = dict(zip(frequent.values, frequent.times, strict=True))
    if frequent.whole:
        return Shares(times, count)
    distinct = frequent.distinct
    # all uncounted occurrences may be of one value, but of none more than of the rarest counted value
    most = count - sum(times.values()) - distinct.value * (1 - 2 * distinct.error) + len(times) + 1
    return Shares(times, count, max(0.0, min([most, *times.values()])))


def _presence(tally: FeatureCounts, rows: int) -> dict[str, int]:
    """The number of records in which a feature is present, missing, without a kind, or empty."""
    without = {"missing": rows - tally.present, "without a kind": tally.kinds["none"], "empty": tally.empty}
    if tally.steps.count:
        return {"present": tally.present, "missing": rows - tally.present}
    return {"present": rows - sum(without.values()), **without}


def _special(numbers: NumberValues) -> dict[str, int]:
    counts = {"NaN": numbers.nans, "inf": numbers.infinite - numbers.lowest, "-inf": numbers.lowest}
    return {name: count for name, count in counts.items() if count}
