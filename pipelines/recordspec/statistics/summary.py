"""The types of the report that `stats` returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from recordspec import html
from recordspec.errors import Problem, SpecError, counted, nearest, one_of, show_text
from recordspec.statistics.value_counts import EstimatedCount, Histogram
from recordspec.wire.columns import Kind, Place, Section

if TYPE_CHECKING:
    from recordspec.schema.dates import DateUnit

Scalar = int | float | str


@dataclass(frozen=True, kw_only=True)
class SizeSummary:
    """A summary of sizes: of lists in values, of strings in bytes. The median is within 0.1 %."""

    count: int
    min: int
    median: int
    mean: float
    max: int
    histogram: Histogram | None


@dataclass(frozen=True, kw_only=True)
class NumberSummary:
    """A summary of int64 or float32 values.

    Attributes:
        min, max, mean, deviation, quantiles: statistics of the finite values; quantiles by share.
        rank_error: the measured largest error of the rank of a quantile, as a share; 0 if each value is
            counted.
    """

    count: int
    nans: int
    infinite: int
    zeros: int
    min: float | None
    max: float | None
    mean: float | None
    deviation: float | None
    quantiles: dict[float, float]
    rank_error: float
    histogram: Histogram | None


@dataclass(frozen=True, kw_only=True)
class BytesSummary:
    """Bytes values.

    Attributes:
        sizes: the sizes of the values, in bytes.
        forms: the formats, detected from the first bytes of the values, with counts.
        looked_at: the number of images and audio values with a readable header, in a sample.
        modes: the modes in these headers, with counts.
        measures: the smallest, median and largest `width`, `height` or `seconds` in these headers.
    """

    sizes: SizeSummary
    forms: dict[str, int]
    looked_at: int
    modes: dict[str, int]
    measures: dict[str, tuple[float, float, float]]


@dataclass(frozen=True, kw_only=True)
class BoxSummary:
    """Bounding boxes.

    Attributes:
        counts: the number of boxes of a record.
        measures: `width`, `height` and `area` of boxes, in the unit of their format: pixels, or fractions of
            the image.
    """

    counts: SizeSummary
    measures: dict[str, NumberSummary]


@dataclass(frozen=True, kw_only=True)
class TopValues:
    """Frequent values of a feature.

    Attributes:
        distinct: the number of distinct values.
        top: the most frequent values, with counts; empty for bytes if none of them is text.
        others: the number of the remaining values.
    """

    distinct: EstimatedCount
    top: tuple[tuple[Scalar, int], ...]
    others: int


@dataclass(frozen=True, kw_only=True)
class ClassCounts:
    """A feature with one of a few values per record.

    Attributes:
        counts: the count of each class. If a spec names the classes: of every name, including absent ones.
        named: whether a spec defines the classes; otherwise they are guessed, as they are few.
        unnamed: the number of values without a class name.
        imbalance: the count of the most frequent class divided by the count of the rarest; None if the rarest
            has none.
    """

    counts: tuple[tuple[Scalar, int], ...]
    named: bool
    unnamed: int
    imbalance: float | None


@dataclass(frozen=True, kw_only=True)
class ClassOrder:
    """The classes of consecutive records.

    Attributes:
        pairs: the number of pairs compared.
        same: the share of pairs of the same class.
        by_chance: the share after a shuffle.
    """

    pairs: int
    same: float
    by_chance: float

    @property
    def unshuffled(self) -> bool:
        """Whether the share of equal pairs exceeds chance by more than a tenth of the possible excess, and by
        more than five standard deviations."""
        more = self.same - self.by_chance
        deviation = (self.by_chance * (1 - self.by_chance) / max(self.pairs, 1)) ** 0.5
        return self.pairs >= 20 and more > 0.1 * (1 - self.by_chance) and more > 5 * deviation


@dataclass(frozen=True, kw_only=True)
class FeatureSummary:
    """A feature of the records of a split.

    Attributes:
        section: `features`; for SequenceExamples `context` or `sequence`.
        feature: its name in the spec, or its key if the spec does not have it.
        key: the key under which it is stored.
        records: the number of records that have a value; for a feature list, that have the list.
        missing: the number of records without the key.
        no_kind: the number of records, or steps, that have the key and no list.
        empty: the number of records, or steps, that have a list without a value.
        kinds: the kinds of lists, with counts.
        lengths: the lengths of lists, in values; None if there is no list.
        steps: the numbers of steps of feature lists; None for another feature.
        numbers, strings: the summary of values of the most frequent kind of list.
        boxes: the summary of boxes; None for another feature.
        common: the frequent values; None for floats.
        classes, order: the classes of a label, as guessed or defined by the spec.
        date: the unit, if its integers are dates or times; all numbers are in this unit.
        warnings: warnings about the feature, as text.
    """

    section: Section
    feature: str
    key: str
    records: int
    missing: int
    no_kind: int
    empty: int
    kinds: dict[Kind, int]
    lengths: SizeSummary | None = None
    steps: SizeSummary | None = None
    numbers: NumberSummary | None = None
    strings: BytesSummary | None = None
    boxes: BoxSummary | None = None
    common: TopValues | None = None
    classes: ClassCounts | None = None
    order: ClassOrder | None = None
    date: DateUnit | None = None
    warnings: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        """The section and the key."""
        return Place(self.section, self.key)

    @property
    def kind(self) -> Kind:
        """The most frequent kind of its lists."""
        return max(self.kinds, key=lambda kind: self.kinds[kind], default="none")


@dataclass(frozen=True, kw_only=True)
class SplitSummary:
    """The records of a split.

    Attributes:
        records: the number of records in the files.
        rows: the number of counted rows: one per record, or many per block.
        sizes: the sizes of records, in bytes; None without any.
        broken: the number of records that are corrupt, or not one of TensorFlow's messages.
        problems: the problems of the first broken records.
        copies: the number of rows that equal an earlier row, byte for byte.
        warnings: warnings about the records, as text.

    Example:
        >>> rs.stats("data/points")["train"]["x"].numbers.max
        1.899999976158142
    """

    split: str
    files: int
    records: int
    rows: int
    sizes: SizeSummary | None
    broken: int
    problems: tuple[Problem, ...]
    copies: EstimatedCount
    features: tuple[FeatureSummary, ...]
    warnings: tuple[str, ...]

    def __getitem__(self, feature: str) -> FeatureSummary:
        return _named(feature, {summary.feature: summary for summary in reversed(self.features)})

    def _ipython_key_completions_(self) -> list[str]:
        return list(dict.fromkeys(summary.feature for summary in self.features))


@dataclass(frozen=True, kw_only=True)
class SharedRows:
    """Distinct rows that two splits have in common."""

    splits: tuple[str, str]
    rows: EstimatedCount

    @property
    def warning(self) -> str:
        about = "about " * (self.rows.error > 0)
        rows = f"{self.rows.value:,} row{'s are' if self.rows.value != 1 else ' is'}"
        return f"{about}{rows} both in `{self.splits[0]}` and in `{self.splits[1]}`"


@dataclass(frozen=True, kw_only=True)
class StatsReport:
    """The summary of files.

    Attributes:
        splits: the splits, in order.
        shared: the number of common rows, for each pair of splits with common rows.

    Example:
        >>> report = rs.stats("data/points")
        >>> report
        StatsReport(train: 15 records, test: 5 records)
        >>> report["train"]["inside"].classes.counts
        (('no', 7), ('yes', 8))
    """

    splits: tuple[SplitSummary, ...]
    shared: tuple[SharedRows, ...]

    def __getitem__(self, split: str) -> SplitSummary:
        return _named(split, {summary.split: summary for summary in self.splits})

    def _ipython_key_completions_(self) -> list[str]:
        return [summary.split for summary in self.splits]

    def __repr__(self) -> str:
        splits = [
            f"{split.split}: {counted(split.records, 'record')}" for split in self.splits[: html.MOST_ROWS]
        ]
        more = len(self.splits) - len(splits)
        splits += [f"{more:,} more"] if more else []
        return show_text(f"{type(self).__name__}({', '.join(splits)})")

    def _repr_html_(self) -> str:
        from recordspec.statistics.formatting import notebook_parts

        return html.in_notebook(lambda: notebook_parts(self))

    @property
    def broken(self) -> int:
        """The number of records that could not be read."""
        return sum(split.broken for split in self.splits)

    @property
    def warnings(self) -> tuple[str, ...]:
        """All warnings, each preceded by the name of its split if there are several splits."""
        return tuple(self._warnings())

    def _warnings(self) -> Iterator[str]:
        for split in self.splits:
            place = f"{split.split}: " if len(self.splits) > 1 else ""
            yield from (f"{place}{warning}" for warning in split.warnings)
            for feature in split.features:
                yield from (f"{place}`{feature.feature}` {warning}" for warning in feature.warnings)
        yield from (shared.warning for shared in self.shared)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yields JSON lines: one for each split, followed by its features; then one for each `shared`."""
        for split in self.splits:
            head = _plain(split)
            head["problems"] = [str(problem) for problem in split.problems]
            del head["features"]
            yield head
            for feature in split.features:
                yield {"split": split.split, **_plain(feature)}
        for shared in self.shared:
            yield {**_plain(shared), "warnings": [shared.warning]}


_Summary = TypeVar("_Summary")


def _named(name: str, summaries: dict[str, _Summary]) -> _Summary:
    """The summary with this name. Raises SpecError if there is none."""
    if name not in summaries:
        known, hint = one_of(summaries) or "no name", nearest(str(name), summaries)
        raise SpecError(Problem(expected=known, got=f"`{name}`", hint=hint))
    return summaries[name]


def _plain(value: Any) -> Any:
    """Converts dataclasses to dicts, without fields that are None."""
    if dataclasses.is_dataclass(value):
        fields = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: _plain(one) for name, one in fields if one is not None}
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
