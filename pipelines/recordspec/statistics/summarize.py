"""Summarizes the profiles of splits, and warns of records and features that look wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from recordspec.errors import counted
from recordspec.schema.dates import date_text
from recordspec.statistics.content import EMPTY, TEXT
from recordspec.statistics.profile import (
    MOST_FEATURES,
    SHOWN,
    TOP,
    AdjacentValues,
    FeatureCounts,
    Profile,
)
from recordspec.statistics.sizes import SizeCounts
from recordspec.statistics.summary import (
    BoxSummary,
    BytesSummary,
    ClassCounts,
    ClassOrder,
    FeatureSummary,
    NumberSummary,
    Scalar,
    SharedRows,
    SizeSummary,
    SplitSummary,
    StatsReport,
    TopValues,
)
from recordspec.statistics.value_counts import (
    BytesValues,
    Frequencies,
    Histogram,
    KindValues,
    NumberValues,
    bin_edges,
    histogram_of,
    inner_edges,
)
from recordspec.store.scan import Scanner
from recordspec.store.shard_names import training_first
from recordspec.tables.feature_names import FeatureKey, FeatureNames
from recordspec.wire.arrays import Ints

if TYPE_CHECKING:
    from recordspec.schema.dates import DateUnit
    from recordspec.schema.schema import Schema

# Features with at most this many distinct values, which occur ten times on average, are labels.
_MOST_CLASSES = 100
_ROWS_OF_A_CLASS = 10


def stats_report(scanner: Scanner, counted: Mapping[str, Profile]) -> StatsReport:
    """The report of the profiles of splits."""
    dataset = scanner.dataset
    files = list(dataset.splits.values())
    splits = tuple(
        _split(name, files.count(name), counted[name], dataset.schema) for name in training_first(counted)
    )
    return StatsReport(splits=splits, shared=tuple(_shared(counted)))


def _shared(counted: Mapping[str, Profile]) -> Iterator[SharedRows]:
    for (split, tally), (other, others) in combinations(counted.items(), 2):
        rows = tally.hashes.shared(others.hashes)
        if rows.value:
            yield SharedRows(splits=(split, other), rows=rows)


def _split(name: str, files: int, tally: Profile, schema: Schema | None) -> SplitSummary:
    known = _known(schema)
    others = sorted(key for key in tally.features if key not in known)
    features = tuple(_feature(key, tally, known) for key in (*known, *others))
    return SplitSummary(
        split=name,
        files=files,
        rows=tally.rows,
        records=tally.sizes.count,
        sizes=size_summary(tally.sizes),
        broken=tally.broken,
        problems=tuple(tally.problems),
        copies=tally.hashes.copies,
        features=features,
        warnings=tuple(_split_warnings(tally)),
    )


Known = Mapping[FeatureKey, tuple[str, "tuple[str, ...]", "DateUnit | None"]]


def _known(schema: Schema | None) -> Known:
    """The name, the class names and the unit of dates of each feature of a schema, by key, in its order."""
    if schema is None:
        return {}
    names = FeatureNames.of(schema)
    keys = ((place.in_steps, column.key) for place, feature in schema._placed for column in feature.columns())
    return {key: (names.name(key), names.classes.get(key, ()), names.dates.get(key)) for key in keys}


def _feature(key: FeatureKey, tally: Profile, known: Known) -> FeatureSummary:
    counted = tally.features.get(key) or FeatureCounts()
    sequence, stored = key
    name, names, date = known.get(key, (stored, (), None))
    in_sections = any(of_sequence for of_sequence, _ in (*tally.features, *known))
    without = 0 if sequence else counted.kinds["none"] + counted.empty
    feature = FeatureSummary(
        section="sequence" if sequence else "context" if in_sections else "features",
        feature=name,
        key=stored,
        records=counted.present - without,
        missing=tally.rows - counted.present,
        no_kind=counted.kinds["none"],
        empty=counted.empty,
        kinds={kind: count for kind, count in sorted(counted.kinds.items()) if kind != "none"},
        lengths=size_summary(counted.lengths),
        steps=size_summary(counted.steps),
        date=date,
    )
    feature = _with_values(feature, counted, names)
    return replace(feature, warnings=tuple(_feature_warnings(feature, in_spec=not known or key in known)))


def _with_values(feature: FeatureSummary, counted: FeatureCounts, names: tuple[str, ...]) -> FeatureSummary:
    """Adds the summary of the values of the most frequent kind."""
    values = counted.of.get(feature.kind)
    if values is None or not values.count:
        return feature
    if isinstance(values, BytesValues):
        feature = replace(feature, strings=bytes_summary(values))
    else:
        feature = replace(feature, numbers=number_summary(values), boxes=box_summary(counted))
    common = top_values(values)
    if values.frequent is None or common is None:
        return replace(feature, common=common)
    has_classes = bool(names) or (counted.is_single and _is_label(values, values.frequent))
    order = counted.order if has_classes and counted.is_single else None
    return replace(
        feature,
        common=common,
        classes=class_counts(values, names) if has_classes else None,
        order=None if order is None else class_order(order, values.frequent),
    )


def _is_label(values: KindValues, frequent: Frequencies) -> bool:
    """Whether values are so few that they look like classes."""
    distinct, count = frequent.distinct.value, sum(frequent.times)
    text = not isinstance(values, BytesValues) or set(values.forms.counts) <= {TEXT, EMPTY}
    few = 2 <= distinct <= _MOST_CLASSES and count >= _ROWS_OF_A_CLASS * distinct
    return frequent.whole and text and few


def size_summary(sizes: SizeCounts) -> SizeSummary | None:
    if not sizes.count:
        return None
    distinct = np.array(sorted(sizes.times), np.int64)
    weights = np.array([sizes.times[size] for size in distinct.tolist()], np.int64)
    return SizeSummary(
        count=sizes.count,
        min=sizes.low,
        median=sizes.quantile(0.5),
        mean=sizes.total / sizes.count,
        max=sizes.high,
        # large sizes are rounded down: the smallest may be below `low`
        histogram=_size_histogram(np.maximum(distinct, sizes.low), sizes.low, sizes.high, weights),
    )


def _size_histogram(distinct: Ints, low: int, high: int, times: Ints) -> Histogram:
    edges = bin_edges(low, high, integers=True)
    seen = np.append(0, np.cumsum(times))
    below = seen[np.searchsorted(distinct, inner_edges(edges, integers=True))]
    return histogram_of(edges, below.tolist(), int(seen[-1]))


def number_summary(counted: NumberValues) -> NumberSummary:
    return NumberSummary(
        count=counted.count,
        nans=counted.nans,
        infinite=counted.infinite,
        zeros=counted.zeros,
        min=counted.low,
        max=counted.high,
        mean=counted.mean,
        deviation=counted.deviation,
        quantiles=counted.quantiles,
        rank_error=counted.rank_error,
        histogram=counted.histogram,
    )


def box_summary(counted: FeatureCounts) -> BoxSummary | None:
    """The summary of boxes; None for another feature."""
    counts = size_summary(counted.lengths.divided(4))
    if counts is None or not counted.boxes:
        return None
    measures = {name: number_summary(values) for name, values in counted.boxes.items()}
    return BoxSummary(counts=counts, measures=measures)


def bytes_summary(counted: BytesValues) -> BytesSummary:
    known = [one for one in counted.forms.media if one is not None]
    measures: defaultdict[str, list[float]] = defaultdict(list)
    for candidate in known:
        for name, value in candidate.measures.items():
            measures[name].append(value)
    sizes = size_summary(counted.sizes)
    assert sizes is not None
    return BytesSummary(
        sizes=sizes,
        forms=_by_count(counted.forms.counts),
        looked_at=len(known),
        modes=_by_count(Counter(one.mode for one in known)),
        measures={name: (min(many), float(np.median(many)), max(many)) for name, many in measures.items()},
    )


def _by_count(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def top_values(counted: KindValues) -> TopValues | None:
    """The frequent values; None for floats."""
    frequent = counted.frequent
    if frequent is None:
        return None
    has_text = not isinstance(counted, BytesValues) or TEXT in counted.forms.counts
    pairs = zip(frequent.values[:TOP], frequent.times[:TOP], strict=True) if has_text else ()
    top = tuple((shown(value), many) for value, many in pairs)
    return TopValues(distinct=frequent.distinct, top=top, others=counted.count - sum(many for _, many in top))


def shown(value: int | bytes) -> int | str:
    """A value as text: the first bytes of a long one, and escapes for invalid UTF-8."""
    if isinstance(value, int):
        return value
    cut = "..." if len(value) > SHOWN else ""
    return value[:SHOWN].decode(errors="backslashreplace") + cut


def class_counts(counted: KindValues, names: tuple[str, ...]) -> ClassCounts:
    """Summarizes the classes of a feature, with or without the names of a spec."""
    counts: list[tuple[Scalar, int]]
    unnamed = 0
    assert counted.frequent is not None
    pairs = zip(counted.frequent.values, counted.frequent.times, strict=True)
    if names:
        times = dict(pairs)
        counts = [(name, times.get(index, 0)) for index, name in enumerate(names)]
        unnamed = counted.count - sum(many for _, many in counts)
    else:  # pairs: distinct long strings may be shown alike
        counts = [(shown(value), count) for value, count in pairs]
    least, most = min(count for _, count in counts), max(count for _, count in counts)
    return ClassCounts(
        counts=tuple(counts),
        named=bool(names),
        unnamed=unnamed,
        imbalance=most / least if least else None,
    )


def class_order(adjacent: AdjacentValues, frequent: Frequencies) -> ClassOrder | None:
    """Summarizes the classes of records with one value each."""
    if not adjacent.pairs:
        return None
    total = sum(frequent.times)
    alike = sum(count * (count - 1) for count in frequent.times)
    return ClassOrder(
        pairs=adjacent.pairs, same=adjacent.same / adjacent.pairs, by_chance=alike / (total * (total - 1))
    )


# The imbalance of classes from which on it is reported.
_IMBALANCE = 20
# Beyond this number, some values that only look like classes are rare by nature.
_FEW = 20
_MOST_NAMED = 3


def _split_warnings(tally: Profile) -> Iterator[str]:
    if tally.broken:
        yield f"{counted(tally.broken, 'record')} cannot be read"
    if tally.unknown_fields:
        of = f"{tally.unknown_fields:,} of {counted(tally.rows, 'row')}"
        yield f"{of} have fields that an Example does not have: if they are other messages, `head` names them"
    if tally.conflicts:
        of = f"{tally.conflicts:,} of {counted(tally.rows, 'row')}"
        yield f"TensorFlow refuses {of}, or reads other values: see `check`"
    copies = tally.hashes.copies
    if copies.value:
        about = "about " * (copies.error > 0)
        yield f"{about}{counted(copies.value, 'row')} of {tally.rows:,} are duplicates of an earlier one"
    if tally.repeated:
        keys = ", ".join(f"`{key}`" for key in sorted(tally.repeated)[:_MOST_NAMED])
        more = ", ..." * (len(tally.repeated) > _MOST_NAMED)
        yield f"records have duplicate keys, of which readers take the last: {keys}{more}"
    if tally.truncated:
        yield f"there are more than {MOST_FEATURES:,} keys: the others are not counted"


def _feature_warnings(feature: FeatureSummary, *, in_spec: bool) -> Iterator[str]:
    if not in_spec:
        yield "is not in the schema"
    yield from _of_presence(feature)
    if len(feature.kinds) > 1:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in feature.kinds.items())
        yield f"has lists of several kinds ({kinds}): the summary is of {feature.kind}"
    if feature.numbers is not None:
        numbers = feature.numbers
        if numbers.nans:
            yield f"has {counted(numbers.nans, 'NaN')} among {numbers.count:,} numbers"
        if numbers.infinite:
            yield f"has {counted(numbers.infinite, 'infinite number')} among {numbers.count:,}"
        is_same = numbers.min == numbers.max and not numbers.nans + numbers.infinite
        if numbers.count > 1 and numbers.min is not None and is_same:
            yield f"is always {numbers.min if feature.date is None else date_text(numbers.min, feature.date)}"
    if feature.strings is not None and feature.common is not None:
        yield from _of_strings(feature)
    if feature.classes is not None:
        yield from _of_classes(feature.classes)
    if feature.order is not None and feature.order.unshuffled:
        yield _of_order(feature.order)


def _of_presence(feature: FeatureSummary) -> Iterator[str]:
    rows = feature.records + feature.missing
    if not feature.place.in_steps:
        rows += feature.no_kind + feature.empty
    if not rows or feature.records:
        return
    if feature.missing == rows:
        yield "is in the schema, and in no record"
    elif feature.kinds:
        yield f"is empty in all of {rows:,} records"
    else:
        yield f"has no value in any of {rows:,} records: its type is unknown"


def _of_strings(feature: FeatureSummary) -> Iterator[str]:
    assert feature.strings is not None
    assert feature.common is not None
    forms, count = feature.strings.forms, feature.strings.sizes.count
    if empty := forms.get(EMPTY):
        yield f"has {counted(empty, 'empty string')} among {count:,}"
    some = {form: many for form, many in forms.items() if form != EMPTY}
    if len(some) > 1:
        listed = ", ".join(f"{many:,} {form}" for form, many in list(some.items())[:_MOST_NAMED])
        yield f"has bytes of several forms: {listed}{', ...' * (len(some) > _MOST_NAMED)}"
    if count > 1 and feature.common.distinct.value == 1:
        always = f"`{feature.common.top[0][0]}`" if feature.common.top else "the same bytes"
        yield f"is always {always}"


def _of_classes(classes: ClassCounts) -> Iterator[str]:
    if classes.unnamed:
        yield f"has {counted(classes.unnamed, 'value')} without a class name"
    never = [name for name, count in classes.counts if not count]
    if never:
        listed = ", ".join(f"`{name}`" for name in never[:_MOST_NAMED])
        more = ", ..." * (len(never) > _MOST_NAMED)
        yield f"never has {len(never):,} of its {len(classes.counts):,} classes: {listed}{more}"
    few = classes.named or len(classes.counts) <= _FEW
    if few and classes.imbalance is not None and classes.imbalance >= _IMBALANCE:
        ratio = f"{classes.imbalance:,.0f}"
        yield f"is imbalanced: its most frequent class is {ratio} times as large as its rarest"


def _of_order(order: ClassOrder) -> str:
    return (
        f"is not shuffled: {order.same:.1%} of adjacent records have the same value; shuffled,"
        f" {order.by_chance:.1%} would (build with `shuffle`, or read with a large shuffle buffer)"
    )
