"""Where the distributions of two datasets differ, feature by feature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordspec.inspect.diff import distances
from recordspec.inspect.diff.distances import Distance
from recordspec.inspect.stats import wording
from recordspec.inspect.stats.figuring import shown
from recordspec.inspect.stats.moments import Moments
from recordspec.inspect.stats.sizes import Sizes
from recordspec.inspect.stats.tally import FeatureTally, Key, Tally
from recordspec.inspect.stats.values import ByteStrings, Numbers

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
        chance: the distance that two draws of the same may have.
        at: where they are furthest apart.
        different: whether the distance is more than the threshold, and more than chance.
    """

    split: str
    feature: str
    measure: str
    distance: float
    chance: float
    at: str
    different: bool


def compare(split: str, one: Tally, other: Tally, threshold: float) -> Iterator[Measure]:
    """Every feature of two splits, in every way that there is; of one without rows, only that."""
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
                chance=found.chance,
                at=_told(found.at),
                different=found.distance > max(threshold, found.chance),
            )


def lacking(split: str, at: str) -> Measure:
    """A split that only one of them has, or has rows of. No chance explains that."""
    return Measure(split=split, feature="", measure="rows", distance=1.0, chance=0.0, at=at, different=True)


def _name(key: Key) -> str:
    sequence, stored = key
    return f"{stored}[]" if sequence else stored


def _told(at: Any) -> str:
    if at is None:
        return ""
    if isinstance(at, tuple):
        return str(shown(at[0]))
    return wording.figure(at) if isinstance(at, float) else str(at)


def _compared(
    tallies: tuple[FeatureTally, FeatureTally], rows: tuple[int, int]
) -> Iterator[tuple[str, Distance]]:
    one, other = tallies
    presence = [_presence(tally, count) for tally, count in zip(tallies, rows, strict=True)]
    yield "presence", distances.of_counts(presence[0], presence[1], rows, rows)
    kinds = [{kind: count for kind, count in tally.kinds.items() if kind != "none"} for tally in tallies]
    lists = (sum(kinds[0].values()), sum(kinds[1].values()))
    if not all(lists):
        return
    rows = (min(rows[0], lists[0]), min(rows[1], lists[1]))  # of records without one, chance does not depend
    yield "kinds", distances.of_counts(kinds[0], kinds[1], lists, rows)
    for name, sizes in (("lengths", (one.lengths, other.lengths)), ("steps", (one.steps, other.steps))):
        yield from _of_sizes(name, sizes, rows)
    for kind in sorted({*one.of} & {*other.of}):
        yield from _of_kind(one.of[kind], other.of[kind], rows)


def _presence(tally: FeatureTally, rows: int) -> dict[str, int]:
    """How records have, or have not, a value."""
    without = {"missing": rows - tally.present, "without a kind": tally.kinds["none"], "empty": tally.empty}
    if tally.steps.count:
        return {"present": tally.present, "missing": rows - tally.present}
    return {"present": rows - sum(without.values()), **without}


def _of_sizes(name: str, sizes: tuple[Sizes, Sizes], rows: tuple[int, int]) -> Iterator[tuple[str, Distance]]:
    if all(one.count for one in sizes):
        points = [np.array(sorted(one.times), np.int64) for one in sizes]
        weights = [
            np.array([one.times[size] for size in held.tolist()], np.int64)
            for one, held in zip(sizes, points, strict=True)
        ]
        yield name, distances.of_points(points[0], points[1], (weights[0], weights[1]), rows)


def _of_kind(one: Any, other: Any, rows: tuple[int, int]) -> Iterator[tuple[str, Distance]]:
    """Values of one kind."""
    if isinstance(one, ByteStrings):
        yield from _of_sizes("sizes", (one.sizes, other.sizes), rows)
        counts = (one.sizes.count, other.sizes.count)
        if all(counts):
            yield "forms", distances.of_counts(one.forms.counts, other.forms.counts, counts, rows)
            yield "values", _of_values(one, other, counts, rows)
        return
    counts = (one.moments.count, other.moments.count)
    if not all(counts):
        return
    special = [_special(each.moments) for each in (one, other)]
    if any(any(each.values()) for each in special):
        yield "special", distances.of_counts(special[0], special[1], counts, rows)
    if _are_classes(one) and _are_classes(other):
        yield "values", _of_values(one, other, counts, rows)
    elif len(one.sample.values) and len(other.sample.values):
        drawn = [min(len(each.sample.values), count) for each, count in zip((one, other), rows, strict=True)]
        held = (one.sample.values, other.sample.values)
        yield "numbers", distances.of_points(held[0], held[1], (None, None), (drawn[0], drawn[1]))


def _special(moments: Moments) -> dict[str, int]:
    return {
        "NaN": moments.nans,
        "inf": moments.infinite - moments.lowest,
        "-inf": moments.lowest,
    }


def _are_classes(numbers: Numbers) -> bool:
    frequent = numbers.frequent
    return frequent is not None and frequent.exact and frequent.distinct.value <= _MOST_CLASSES


def _of_values(one: Any, other: Any, counts: tuple[int, int], rows: tuple[int, int]) -> Distance:
    """Value by value, of those that are frequent."""
    short = sum(each.frequent.short / count for each, count in zip((one, other), counts, strict=True))
    return distances.of_counts(_by_value(one), _by_value(other), counts, rows, short)


def _by_value(counted: Any) -> dict[Any, int]:
    """How often each is there. Of a long string only the beginning is known, and what tells it apart."""
    if isinstance(counted, ByteStrings):
        return {(name, code): count for name, code, count in counted.named}
    return dict(counted.top)
