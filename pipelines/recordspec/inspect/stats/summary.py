"""What was counted of files, as a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from recordspec.inspect.looking.naming import Naming
from recordspec.inspect.stats import figuring, remarks
from recordspec.inspect.stats.figures import Common
from recordspec.inspect.stats.forms import EMPTY, TEXT
from recordspec.inspect.stats.parts import Source
from recordspec.inspect.stats.report import Feature, Report, Shared, Split
from recordspec.inspect.stats.tally import FeatureTally, Key, Tally
from recordspec.inspect.stats.values import MOST_INDICES, ByteStrings, Values

if TYPE_CHECKING:
    from recordspec.spec.schema import Schema

# What has no more different values, each ten times on average, is taken for a label.
_MOST_CLASSES = 100
_ROWS_OF_A_CLASS = 10


def report(source: Source, counted: Mapping[str, Tally]) -> Report:
    """A report of what was counted of each split."""
    files = list(source.splits.values())
    splits = tuple(_split(name, files.count(name), tally, source.schema) for name, tally in counted.items())
    return Report(splits=splits, shared=tuple(_shared(counted)))


def _shared(counted: Mapping[str, Tally]) -> Iterator[Shared]:
    for (one, tally), (other, others) in combinations(counted.items(), 2):
        rows = tally.hashes.shared(others.hashes)
        if rows.value:
            yield Shared(splits=(one, other), rows=rows)


def _split(name: str, files: int, tally: Tally, schema: Schema | None) -> Split:
    known = _known(schema)
    keys = [*tally.features, *(key for key in known if key not in tally.features)]
    features = tuple(_feature(key, tally, known) for key in sorted(keys))

    return Split(
        split=name,
        files=files,
        rows=tally.rows,
        records=tally.sizes.count,
        sizes=figuring.spread(tally.sizes),
        broken=tally.broken,
        problems=tuple(tally.problems),
        copies=tally.hashes.repeated,
        features=features,
        warnings=tuple(remarks.of_split(tally)),
    )


Known = Mapping[Key, tuple[str, tuple[str, ...]]]


def _known(schema: Schema | None) -> Known:
    """By key, the names of the features of a schema, and of their classes."""
    if schema is None:
        return {}
    naming = Naming.of(schema)
    keys = (
        (section == "sequence", column.key)
        for section, feature in schema.placed
        for column in feature.columns()
    )
    return {key: (naming.name(key), naming.classes.get(key, ())) for key in keys}


def _feature(key: Key, tally: Tally, known: Known) -> Feature:
    counted = tally.features.get(key) or FeatureTally()
    sequence, stored = key
    name, names = known.get(key, (stored, ()))
    in_sections = any(of_sequence for of_sequence, _ in (*tally.features, *known))
    without = 0 if sequence else counted.kinds["none"] + counted.empty
    feature = Feature(
        section="sequence" if sequence else "context" if in_sections else "features",
        feature=name,
        key=stored,
        records=counted.present - without,
        missing=tally.rows - counted.present,
        no_kind=counted.kinds["none"],
        empty=counted.empty,
        kinds={kind: count for kind, count in sorted(counted.kinds.items()) if kind != "none"},
        lengths=figuring.spread(counted.lengths),
        steps=figuring.spread(counted.steps),
    )
    feature = _with_values(feature, counted, names)
    return replace(feature, warnings=tuple(remarks.of_feature(feature, in_spec=not known or key in known)))


def _with_values(feature: Feature, counted: FeatureTally, names: tuple[str, ...]) -> Feature:
    """With the figures of its values, of the kind that most of its lists have."""
    values = None if feature.kind == "none" else counted.of.get(feature.kind)
    if values is None or not values.count:
        return feature
    if isinstance(values, ByteStrings):
        feature = replace(feature, strings=figuring.strings(values))
    else:
        feature = replace(feature, numbers=figuring.numbers(values))
    common = figuring.common(values)
    if values.frequent is None or common is None:
        return replace(feature, common=common)
    has_classes = 0 < len(names) <= MOST_INDICES or (counted.neighbours.single and _is_label(values, common))
    return replace(
        feature,
        common=common,
        classes=figuring.classes(values, names) if has_classes else None,
        order=figuring.order(counted.neighbours, values.frequent) if has_classes else None,
    )


def _is_label(values: Values, common: Common) -> bool:
    """Whether values are so few that they look like classes."""
    if values.frequent is None or not values.frequent.exact:
        return False
    distinct, count = common.distinct.value, int(values.frequent.counts.sum())
    text = not isinstance(values, ByteStrings) or set(values.forms.counts) <= {TEXT, EMPTY}
    return text and 2 <= distinct <= _MOST_CLASSES and count >= _ROWS_OF_A_CLASS * distinct
