"""Converts statistics to charts for the page: bars with the SQL conditions of their rows, and short texts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recordspec import __version__
from recordspec._arrow import arrow
from recordspec.errors import SpecError, StoreError
from recordspec.locations import Location, output_file, read_text
from recordspec.schema.dates import DateUnit, date_text, is_date
from recordspec.statistics import formatting
from recordspec.statistics.diff import THRESHOLD, Keyed, by_key
from recordspec.statistics.diff_distributions import distances
from recordspec.statistics.profile import SHOWN, Profile, profile_all, profile_splits
from recordspec.statistics.summarize import stats_report
from recordspec.statistics.summary import BoxSummary, FeatureSummary, SizeSummary, StatsReport
from recordspec.statistics.value_counts import Histogram
from recordspec.store.manifest import STATISTICS_FILE
from recordspec.store.scan import Scanner
from recordspec.tables.column_types import is_list_type
from recordspec.tables.feature_names import FeatureKey, FeatureNames
from recordspec.tables.scan_columns import KeyColumn, ScanColumn, type_words
from recordspec.viewer.jobs import JobProgress

# The number of rows of a split that are summarized before all rows.
_FIRST_ROWS = 2000
# The format of the value that `drawn` returns. Change it whenever the value changes.
_FORMAT = "3"
# The largest file of stored statistics, in bytes: enough for 1,000 features of a few splits.
_MOST_BYTES = 64 << 20

Bar = tuple[str, int, "str | None"]
# The types of dates and times in DuckDB.
_SQL_DATES: dict[DateUnit, str] = {
    "days": "DATE",
    "seconds": "TIMESTAMP_S",
    "milliseconds": "TIMESTAMP_MS",
    "microseconds": "TIMESTAMP",
    "nanoseconds": "TIMESTAMP_NS",
}
# Returns a condition in SQL on the value with this name.
Test = Callable[[str], str]


def statistics(
    scanner: Scanner,
    columns: Mapping[str, ScanColumn],
    total: int | None,
    progress: JobProgress,
    publish: Callable[[dict[str, Any]], None] | None,
) -> dict[str, Any]:
    """The statistics of all rows. A local dataset stores them.

    Args:
        scanner: the scanner of the files.
        columns: the columns by name.
        total: the number of rows, if it is known.
        progress: receives the number of rows.
        publish: receives the statistics of the first rows, before all rows are read; None to return only the
            statistics of the first rows.

    Returns the value of `drawn` and `first`: the number of rows summarized in each split, None for all rows.
    """
    kept = _Kept.of_dataset(scanner)
    if kept is not None and (found := kept.read()) is not None:
        return found
    progress.begin("reading the first rows", None)
    first = profile_splits(scanner, 1, progress, most=_FIRST_ROWS)
    some = {**drawn(stats_report(scanner, first), columns), "first": _FIRST_ROWS}
    if publish is None:
        return some
    publish(some)
    progress.begin("reading", total)
    made = {**drawn(stats_report(scanner, profile_splits(scanner, 1, progress)), columns), "first": None}
    if kept is not None:
        kept.write(made)
    return made


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side of a comparison: rows of files.

    Attributes:
        name: the name of the side on the page.
        scanner: the scanner of the files.
        split: the split of the rows; None for all rows.
        columns: the columns by name.
    """

    name: str
    scanner: Scanner
    split: str | None
    columns: Mapping[str, ScanColumn]


def compared(sides: tuple[Side, Side], progress: JobProgress) -> dict[str, Any]:
    """Compares the distributions of two sets of rows.

    Returns the value of `drawn` for both, and the distances of each feature. For two whole datasets with
    keys, also returns the differences of the rows.
    """
    progress.begin("reading", None)
    before, after = (_profile_of(side, progress) for side in sides)
    reports = [
        stats_report(side.scanner, {side.name: profile})
        for side, profile in zip(sides, (before, after), strict=True)
    ]
    report = StatsReport(splits=tuple(split for one in reports for split in one.splits), shared=())
    names = FeatureNames.of(sides[0].scanner.dataset.schema)
    measures: list[dict[str, Any]] = [
        {
            "key": _text_of_key(key),
            "of": what,
            "distance": distance,
            "at": at,
            "different": distance > THRESHOLD,
        }
        for key, what, distance, at in distances(before, after, names)
    ]
    keys = None
    if all(side.split is None for side in sides):
        old, new = (Keyed.of(side.scanner) for side in sides)
        if old is not None and new is not None:
            progress.begin("comparing keys", None)
            keys = asdict(by_key(old, new))
    return {
        **drawn(report, sides[0].columns),
        "measures": sorted(measures, key=lambda measure: -measure["distance"]),
        "empty": [
            side.name for side, profile in zip(sides, (before, after), strict=True) if not profile.rows
        ],
        "keys": keys,
    }


def _profile_of(side: Side, progress: JobProgress) -> Profile:
    if side.split is None:
        return profile_all(side.scanner, 1, progress)
    return profile_splits(side.scanner, 1, progress, only=side.split)[side.split]


@dataclass(frozen=True)
class _Kept:
    """The file in which a dataset stores its statistics.

    Attributes:
        path: the path of the file.
        of: the format, the version, and the identities of the rows and the schema. Stored statistics are
            valid only if all of them are equal.
    """

    path: Location
    of: list[str]

    @classmethod
    def of_dataset(cls, scanner: Scanner) -> _Kept | None:
        """The file of a local dataset, if the scanner has all of its shards; otherwise None."""
        dataset = scanner.dataset
        manifest, schema, folder = dataset.manifest, dataset.schema, dataset.folder
        if manifest is None or schema is None or not dataset.is_whole or not isinstance(folder, Path):
            return None
        return cls(folder / STATISTICS_FILE, [_FORMAT, __version__, manifest.identity, schema.fingerprint])

    def read(self) -> dict[str, Any] | None:
        """The stored statistics; None if there are none, or they are not valid for this dataset."""
        try:
            stored = json.loads(read_text(self.path, _MOST_BYTES), parse_constant=_no_constant)
            return stored["statistics"] if stored["of"] == self.of and _fits(stored["statistics"]) else None
        except (StoreError, SpecError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return None  # another program wrote the file

    def write(self, made: dict[str, Any]) -> None:
        """Stores statistics. Does nothing for a read-only dataset."""
        text = json.dumps({"of": self.of, "statistics": made})
        if len(text) > _MOST_BYTES:
            return
        with suppress(StoreError, SpecError, OSError), output_file(self.path, force=True) as file:
            file.write_text(text, encoding="utf-8")


def _no_constant(name: str) -> None:
    raise ValueError(name)  # NaN and infinities are not valid JSON


def _fits(made: Any) -> bool:
    """Whether stored statistics have the structure that `drawn` returns: the page does not check it. May
    raise if they do not."""
    features, names = made["features"], {split["name"] for split in made["splits"]}
    charts = [
        chart
        for feature in features
        for name, split in feature["splits"].items()
        if name in names and split["facts"] is not None and split["warnings"] is not None
        for chart in split["charts"]
    ]
    return (
        all(isinstance(feature[part], str) for feature in features for part in ("key", "name", "about"))
        and all(isinstance(feature["column"], (str, type(None))) for feature in features)
        and all(
            isinstance(split["rows"], int) and isinstance(split["title"], str) for split in made["splits"]
        )
        and all(
            isinstance(text, str) and isinstance(count, int) and isinstance(where, (str, type(None)))
            for chart in charts
            for text, count, where in chart["bars"]
        )
        and all(isinstance(made[part], list) for part in ("warnings", "problems"))
    )


def drawn(report: StatsReport, columns: Mapping[str, ScanColumn]) -> dict[str, Any]:
    """Converts a report for the page.

    Args:
        report: the report.
        columns: the columns by name, for the conditions; a feature without a column has no conditions.
    """
    features: dict[FeatureKey, dict[str, Any]] = {}
    by_key = {key: column for column in columns.values() for key in _keys_of(column)}
    for split in report.splits:
        for feature in split.features:
            key = _key_of(feature)
            column = by_key.get(key)
            described = features.setdefault(key, _described(feature, column))
            described["splits"][split.split] = {
                "facts": list(formatting.facts(feature, split)),
                "charts": list(_charts(feature, column, split.rows)),
                "warnings": feature.warnings,
            }
    return {
        "splits": [
            {
                "name": split.split,
                "rows": split.rows,
                "title": formatting.title(split),
                "copies": split.copies.value,
            }
            for split in report.splits
        ],
        "warnings": report.warnings,
        "problems": [str(problem) for split in report.splits for problem in split.problems],
        "features": list(features.values()),
    }


def _key_of(feature: FeatureSummary) -> FeatureKey:
    return feature.place.in_steps, feature.key


def _keys_of(column: ScanColumn) -> Iterator[FeatureKey]:
    """The key under which the values of a column are stored; none if there are several keys."""
    if isinstance(column, KeyColumn):
        yield column.key
    elif len(column.features) == 1 and len(column.features[0].feature.columns()) == 1:
        of_table = column.features[0]
        yield of_table.place.in_steps, of_table.feature.columns()[0].key


def _described(feature: FeatureSummary, column: ScanColumn | None) -> dict[str, Any]:
    section = f", {feature.section}" if feature.section != "features" else ""
    stored = "" if feature.key == feature.feature else f", stored as {feature.key}"
    words = "date" if feature.date is not None else feature.kind if feature.boxes is None else "boxes"
    return {
        "key": _text_of_key(_key_of(feature)),
        "name": feature.feature,
        "column": None if column is None else column.name,
        "about": f"{words if column is None else type_words(column)}{section}{stored}",
        "splits": {},
    }


def _text_of_key(key: FeatureKey) -> str:
    """A key as text. The page only compares it."""
    return f"{'sequence' if key[0] else 'features'}/{key[1]}"


def _charts(feature: FeatureSummary, column: ScanColumn | None, rows: int) -> Iterator[dict[str, Any]]:
    """The charts of a feature: the subject, the type (`counts` or `histogram`), the bars, and for counts
    their total."""
    made, date = _Conditions(feature, column), feature.date
    absent = feature.missing + feature.no_kind + feature.empty
    if feature.boxes is not None:
        yield from _charts_of_boxes(feature.boxes, made)
        if absent:
            bar = ("without boxes", absent, made.of_missing(feature))
            yield {"of": "records", "is": "counts", "bars": [bar], "in": "rows", "whole": rows}
        return
    classes, common = feature.classes, feature.common
    has_names = classes is not None and classes.named
    if not has_names and feature.numbers is not None and feature.numbers.histogram is not None:
        histogram = feature.numbers.histogram
        yield _histogram("values", histogram, made.of_numbers, of_integers=feature.kind == "int64", date=date)
    counts = classes.counts if classes else common.top if common else ()
    others = classes.unnamed if classes else common.others if common else 0
    if counts and (classes or counts[0][1] > 1):
        is_single = feature.lengths is None or feature.lengths.max <= 1
        yield {
            "of": "classes" if has_names else "different values" if classes else "most frequent values",
            "is": "counts",
            "bars": [
                (formatting.value_text(value, date), times, made.of_value(value)) for value, times in counts
            ],
            "in": "rows" if is_single else "values",
            "whole": others + sum(times for _, times in counts),
        }
    sizes = feature.strings.sizes if feature.strings is not None else None
    spreads: tuple[tuple[str, SizeSummary | None, Callable[[Test], str | None]], ...] = (
        ("bytes", sizes, made.of_sizes),
        ("lengths of lists", feature.lengths, made.of_lengths),
        ("steps", feature.steps, lambda test: None),
    )
    for what, spread, condition in spreads:
        if spread is not None and spread.histogram is not None and spread.min < spread.max:
            yield _histogram(what, spread.histogram, condition)
    if absent:
        bar = ("missing", absent, made.of_missing(feature))
        yield {"of": "without a value", "is": "counts", "bars": [bar], "in": "rows", "whole": rows}


def _charts_of_boxes(boxes: BoxSummary, made: _Conditions) -> Iterator[dict[str, Any]]:
    counts = boxes.counts.histogram
    if counts is not None:
        yield _histogram("boxes", counts, made.of_boxes)
    for name, measure in boxes.measures.items():
        if measure.histogram is not None:
            yield _histogram(name, measure.histogram, lambda test: None, of_integers=False)


def _histogram(
    what: str,
    histogram: Histogram,
    condition: Callable[[Test], str | None],
    *,
    of_integers: bool = True,
    date: DateUnit | None = None,
) -> dict[str, Any]:
    """A chart with a bar for each bin, the edges of the bins, on the axis that all splits share, and the
    texts of the ends of this axis."""
    edges, last = histogram.edges, len(histogram.counts) - 1
    bars: list[Bar] = []
    for place, (low, high, count) in enumerate(zip(edges, edges[1:], histogram.counts, strict=False)):
        if date is not None:
            text, test = _dates(low, high, date, with_high=place == last)
        else:
            text, test = (_integers if of_integers else _floats)(low, high, with_high=place == last)
        bars.append((text, count, condition(test)))
    ends = (math.ceil(edges[0]), math.floor(edges[-1])) if of_integers else (edges[0], edges[-1])
    texts = [formatting.number_text(end, date) for end in ends]
    return {"of": what, "is": "histogram", "bars": bars, "edges": edges, "ends": texts}


def _first_and_last(low: float, high: float, *, with_high: bool) -> tuple[int, int]:
    """The first and the last integer of a bin. Its edges lie halfway between integers, or are integers that
    are too large for halves."""
    return math.ceil(low), math.floor(high) - (high % 1 == 0 and not with_high)


def _dates(low: float, high: float, unit: DateUnit, *, with_high: bool) -> tuple[str, Test]:
    """The text of a bin of dates or times, and the test whether a value is in it."""
    first, last = (date_text(end, unit) for end in _first_and_last(low, high, with_high=with_high))
    if first == last:
        return first, lambda value: f"{value} = {_SQL_DATES[unit]} '{first}'"
    text = f"{first} to {last}"
    return (
        text,
        lambda value: f"{value} >= {_SQL_DATES[unit]} '{first}' AND {value} <= {_SQL_DATES[unit]} '{last}'",
    )


def _integers(low: float, high: float, *, with_high: bool) -> tuple[str, Test]:
    """The text of a bin of integers, and the test whether a value is in it. The test compares integers, not
    floats: from 2^53 on, a float cannot hold every integer."""
    between = low % 1 == high % 1 == 0.5
    first, stop = _first_and_last(low, high, with_high=with_high)
    if first == stop:
        return f"{first:,}", lambda value: f"{value} = {first}"
    text = f"{first:,} to {stop:,}" if between else f"{formatting.figure(low)} to {formatting.figure(high)}"
    return text, lambda value: f"{value} >= {first} AND {value} <= {stop}"


def _floats(low: float, high: float, *, with_high: bool) -> tuple[str, Test]:
    text, below = f"{formatting.figure(low)} to {formatting.figure(high)}", "<=" if with_high else "<"
    return text, lambda value: f"{value} >= {_double(low)} AND {value} {below} {_double(high)}"


def _double(number: float) -> str:
    text = repr(float(number))
    return text if "e" in text else f"{text}e0"  # without an exponent, SQL reads a decimal number


class _Conditions:
    """Conditions in SQL on a column, for the bars of its feature; None if SQL cannot express a condition."""

    def __init__(self, feature: FeatureSummary, column: ScanColumn | None) -> None:
        self._type = None if column is None else column.type
        self._name = "" if column is None else '"' + column.name.replace('"', '""') + '"'
        self._in_steps, self._date, self._numbers = feature.steps is not None, feature.date, feature.numbers

    @property
    def _item(self) -> Any:
        """The type of values, or of the items of flat lists; None for nested lists and feature lists."""
        if self._type is None or not is_list_type(self._type):
            return self._type
        return None if is_list_type(self._type.value_type) or self._in_steps else self._type.value_type

    def of_value(self, value: int | float | str) -> str | None:
        types, item = arrow().types, self._item
        if item is None:
            return None
        if types.is_dictionary(item) or types.is_large_string(item) or types.is_string(item):
            if len(str(value).encode()) > SHOWN:  # only its first bytes are known
                return None
            text = "'" + str(value).replace("'", "''") + "'"
            return self._has(lambda item: f"{item} = {text}")
        if types.is_boolean(item):
            return self._has(lambda item: f"CAST({item} AS INTEGER) = {value}")
        if isinstance(value, int) and types.is_integer(item):
            return self._has(lambda item: f"{item} = {value}")
        if isinstance(value, int) and self._date is not None and self._is_date(item):
            unit = self._date
            return self._has(lambda item: f"{item} = {_SQL_DATES[unit]} '{date_text(value, unit)}'")
        return None

    def of_numbers(self, between: Test) -> str | None:
        types, item = arrow().types, self._item
        if item is None or not (types.is_integer(item) or types.is_floating(item) or self._is_date(item)):
            return None
        return self._has(between)

    def _is_date(self, item: Any) -> bool:
        """Whether SQL can compare values with dates as text: all of them are in the years 1 to 9999."""
        numbers, date = self._numbers, self._date
        if date is None or numbers is None or not arrow().types.is_temporal(item):
            return False
        return all(end is not None and is_date(end, date) for end in (numbers.min, numbers.max))

    def _has(self, test: Test) -> str:
        """The condition that a value, or at least one item of a list, passes a test."""
        if not is_list_type(self._type):
            return test(self._name)
        return f"len([item FOR item IN {self._name} IF {test('item')}]) > 0"

    def of_sizes(self, between: Test) -> str | None:
        types = arrow().types
        if self._type is None:
            return None
        if types.is_large_string(self._type) or types.is_string(self._type):
            return between(f"strlen({self._name})")
        if types.is_large_binary(self._type) or types.is_binary(self._type):
            return between(f"octet_length({self._name})")
        return None

    def of_lengths(self, between: Test) -> str | None:
        return None if self._item is None or not is_list_type(self._type) else between(f"len({self._name})")

    def of_boxes(self, between: Test) -> str | None:
        return None if self._type is None or self._in_steps else between(f"len({self._name})")

    def of_missing(self, feature: FeatureSummary) -> str | None:
        """The condition of rows without a value. A list without a value is missing or empty."""
        if self._type is None or self._in_steps:
            return None
        if is_list_type(self._type):
            return f"({self._name} IS NULL OR len({self._name}) = 0)"
        return f"{self._name} IS NULL" if not feature.empty and not feature.no_kind else None
