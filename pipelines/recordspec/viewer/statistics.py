"""Statistics as the page draws them: bars, each with the condition that finds its rows, and short texts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from recordspec import __version__
from recordspec._arrow import arrow
from recordspec.errors import SpecError, StoreError
from recordspec.inspect.columns import is_list_type
from recordspec.inspect.diff import THRESHOLD, Keyed, by_key
from recordspec.inspect.diff_distributions import compare
from recordspec.inspect.feature_names import FeatureNames
from recordspec.inspect.scan import Scanner
from recordspec.inspect.scan_columns import ScanColumn
from recordspec.inspect.stats import formatting
from recordspec.inspect.stats.profile import SHOWN, Profile, profile_all, profile_splits
from recordspec.inspect.stats.summarize import stats_report
from recordspec.inspect.stats.summary import FeatureSummary, SizeSummary, StatsReport
from recordspec.inspect.stats.values import Histogram
from recordspec.locations import LocalPath, Location, output_file, read_text
from recordspec.store.manifest import STATISTICS_FILE
from recordspec.viewer.jobs import JobProgress

# Rows of a split that are looked at before all of them.
_FIRST_ROWS = 2000
# Bytes of statistics that were kept: of 1,000 features of a few splits.
_MOST_BYTES = 64 << 20

Bar = tuple[str, int, "str | None"]


def statistics(
    scanner: Scanner,
    columns: Mapping[str, ScanColumn],
    progress: JobProgress,
    publish: Callable[[dict[str, Any]], None] | None,
) -> dict[str, Any]:
    """The statistics of all rows, which a dataset keeps.

    Args:
        publish: receives those of the first rows, before all are read; None to have only these.

    Returns what `drawn` does, and `first`: how many rows of a split they are of, if not of all.
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
    progress.begin("reading", rows_of(scanner))
    made = {**drawn(stats_report(scanner, profile_splits(scanner, 1, progress)), columns), "first": None}
    if kept is not None:
        kept.write(made)
    return made


@dataclass(frozen=True, kw_only=True)
class Side:
    """Rows that are compared with others.

    Attributes:
        name: for the page.
        scanner: of the files.
        split: of which the rows are; None for all.
        columns: by name.
    """

    name: str
    scanner: Scanner
    split: str | None
    columns: Mapping[str, ScanColumn]


def compared(sides: tuple[Side, Side], progress: JobProgress) -> dict[str, Any]:
    """Two sets of rows by distribution: what `drawn` does of both, and by feature how far apart they are; of
    two whole datasets that have keys, also what became of the rows.
    """
    progress.begin("reading", None)
    before, after = (_profile_of(side, progress) for side in sides)
    reports = [
        stats_report(side.scanner, {side.name: profile})
        for side, profile in zip(sides, (before, after), strict=True)
    ]
    report = StatsReport(splits=tuple(split for one in reports for split in one.splits), shared=())
    names = FeatureNames.of(sides[0].scanner.schema)
    measures = [
        {
            "feature": names.name((measure.feature.endswith("[]"), measure.feature.removesuffix("[]"))),
            "of": measure.measure,
            "distance": measure.distance,
            "at": measure.at,
            "different": measure.different,
        }
        for measure in compare("", before, after, THRESHOLD)
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
        "keys": keys,
    }


def _profile_of(side: Side, progress: JobProgress) -> Profile:
    if side.split is None:
        return profile_all(side.scanner, 1, progress)
    return profile_splits(side.scanner, 1, progress, only=side.split)[side.split]


def rows_of(scanner: Scanner) -> int | None:
    """The number of rows, if the manifest tells it."""
    rows = {} if scanner.manifest is None else {s.file: s.rows for s in scanner.manifest.all_shards}
    counts = [rows.get(path.name) for path in scanner.paths]
    return None if None in counts else sum(count for count in counts if count is not None)


@dataclass(frozen=True)
class _Kept:
    """The statistics that a dataset keeps.

    Attributes:
        path: of their file.
        of: what they are of: other rows, another schema or another version have others.
    """

    path: Location
    of: list[str]

    @classmethod
    def of_dataset(cls, scanner: Scanner) -> _Kept | None:
        """Those of a dataset of this machine, if these are all of its files; else they are not kept."""
        manifest, schema, folder = scanner.manifest, scanner.schema, scanner.paths[0].parent
        if manifest is None or schema is None or not isinstance(folder, LocalPath):
            return None
        if manifest.files != {path.name for path in scanner.paths}:
            return None
        return cls(folder / STATISTICS_FILE, [__version__, manifest.identity, schema.fingerprint])

    def read(self) -> dict[str, Any] | None:
        """The statistics, if they are there and of the same."""
        try:
            stored = json.loads(read_text(self.path, _MOST_BYTES))
        except (StoreError, ValueError, RecursionError):
            return None
        is_same = isinstance(stored, dict) and stored.get("of") == self.of
        made = stored.get("statistics") if is_same else None
        return made if isinstance(made, dict) else None

    def write(self, made: dict[str, Any]) -> None:
        """Keeps statistics; a dataset that may only be read keeps none."""
        with suppress(StoreError, SpecError, OSError), output_file(self.path, force=True) as file:
            file.write_text(json.dumps({"of": self.of, "statistics": made}), encoding="utf-8")


def drawn(report: StatsReport, columns: Mapping[str, ScanColumn]) -> dict[str, Any]:
    """A report for the page.

    Args:
        columns: by name, for the conditions; a feature without one has none.
    """
    features: dict[tuple[str, str], dict[str, Any]] = {}
    for split in report.splits:
        for feature in split.features:
            described = features.setdefault((feature.section, feature.key), _described(feature))
            described["splits"][split.split] = {
                "facts": list(formatting.facts(feature, split)),
                "charts": [
                    {"of": what, "is": kind, "bars": bars}
                    for what, kind, bars in _charts(feature, columns.get(feature.feature))
                ],
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


def _described(feature: FeatureSummary) -> dict[str, Any]:
    stored = "" if feature.key == feature.feature else f", stored as {feature.key}"
    return {"name": feature.feature, "about": f"{feature.kind}, {feature.section}{stored}", "splits": {}}


def _charts(feature: FeatureSummary, column: ScanColumn | None) -> Iterator[tuple[str, str, list[Bar]]]:
    """What a chart is of, whether it is of `counts` or a `histogram`, and its bars."""
    made = _Conditions(feature, column)
    classes, common = feature.classes, feature.common
    has_names = classes is not None and classes.named
    if not has_names and feature.numbers is not None and feature.numbers.histogram is not None:
        yield "values", "histogram", _bars(feature.numbers.histogram, made.of_numbers)
    counts = classes.counts if classes else common.top if common else ()
    if counts and (classes or counts[0][1] > 1):
        bars = [(str(value), times, made.of_value(value)) for value, times in counts]
        what = "classes" if has_names else "different values" if classes else "most frequent values"
        yield what, "counts", bars
    sizes = feature.strings.sizes if feature.strings is not None else None
    spreads: tuple[tuple[str, SizeSummary | None, Callable[[str], str | None]], ...] = (
        ("bytes", sizes, lambda between: made.of_sizes(between)),
        ("lengths of lists", feature.lengths, lambda between: made.of_lengths(between)),
        ("steps", feature.steps, lambda between: None),
    )
    for what, spread, condition in spreads:
        if spread is not None and spread.histogram is not None and spread.min < spread.max:
            yield what, "histogram", _bars(spread.histogram, condition)
    absent = feature.missing + feature.no_kind + feature.empty
    if absent:
        of_column = made.of_missing() if not feature.empty and not feature.no_kind else None
        yield "without a value", "counts", [("missing", absent, of_column)]


def _bars(histogram: Histogram, condition: Callable[[str], str | None]) -> list[Bar]:
    edges = histogram.edges
    last = len(histogram.counts) - 1
    bars = []
    for place, (low, high, count) in enumerate(zip(edges, edges[1:], histogram.counts, strict=False)):
        whole = math.floor(low) != low and low + 0.5 == math.ceil(low) and high + 0.5 == math.ceil(high)
        if whole:
            first, stop = math.ceil(low), math.floor(high)
            text = f"{first:,}" if first == stop else f"{first:,} to {stop:,}"
            between = f"{{}} = {first}" if first == stop else f"{{0}} >= {first} AND {{0}} <= {stop}"
        else:
            text = f"{formatting.figure(low)} to {formatting.figure(high)}"
            between = f"{{0}} >= {_double(low)} AND {{0}} {'<=' if place == last else '<'} {_double(high)}"
        bars.append((text, count, condition(between)))
    return bars


def _double(number: float) -> str:
    text = repr(float(number))
    return text if "e" in text else f"{text}e0"  # without it, SQL takes it for a decimal number


class _Conditions:
    """Conditions in SQL on a column, for the bars of its feature; None where SQL cannot tell."""

    def __init__(self, feature: FeatureSummary, column: ScanColumn | None) -> None:
        self._type = None if column is None else column.type
        self._name = "" if column is None else '"' + column.name.replace('"', '""') + '"'
        self._in_steps = feature.steps is not None

    @property
    def _item(self) -> Any:
        """The type of values, or of items of lists that are in no other; None of others."""
        if self._type is None or not is_list_type(self._type):
            return self._type
        return None if is_list_type(self._type.value_type) or self._in_steps else self._type.value_type

    def of_value(self, value: int | float | str) -> str | None:
        types, item = arrow().types, self._item
        if item is None:
            return None
        if types.is_dictionary(item) or types.is_large_string(item) or types.is_string(item):
            if len(str(value).encode()) > SHOWN:  # of which only the first bytes are known
                return None
            text = "'" + str(value).replace("'", "''") + "'"
            test = f"{{}} = {text}"
        elif types.is_boolean(item):
            test = f"CAST({{}} AS INTEGER) = {value}"
        elif isinstance(value, int) and types.is_integer(item):
            test = f"{{}} = {value}"
        else:
            return None
        return self._has(test)

    def of_numbers(self, between: str) -> str | None:
        types, item = arrow().types, self._item
        if item is None or not (types.is_integer(item) or types.is_floating(item)):
            return None
        return self._has(between)

    def _has(self, test: str) -> str:
        """The condition that a value, or an item of a list, passes a test."""
        if not is_list_type(self._type):
            return test.format(self._name)
        return f"len([item FOR item IN {self._name} IF {test.format('item')}]) > 0"

    def of_sizes(self, between: str) -> str | None:
        types = arrow().types
        if self._type is None:
            return None
        if types.is_large_string(self._type) or types.is_string(self._type):
            return between.format(f"strlen({self._name})")
        if types.is_large_binary(self._type) or types.is_binary(self._type):
            return between.format(f"octet_length({self._name})")
        return None

    def of_lengths(self, between: str) -> str | None:
        return (
            None
            if self._item is None or not is_list_type(self._type)
            else between.format(f"len({self._name})")
        )

    def of_missing(self) -> str | None:
        return None if self._type is None else f"{self._name} IS NULL"
