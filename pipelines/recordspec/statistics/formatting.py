"""Formats parts of a summary as short texts for tables, pages and notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from recordspec.errors import counted
from recordspec.html import MOST_ROWS, Markup, heading, items, listing, others
from recordspec.schema.dates import date_text, span_text
from recordspec.statistics.summary import (
    BytesSummary,
    ClassCounts,
    FeatureSummary,
    NumberSummary,
    Scalar,
    SizeSummary,
    SplitSummary,
    StatsReport,
    TopValues,
)
from recordspec.statistics.value_counts import EstimatedCount, Histogram

if TYPE_CHECKING:
    from recordspec.schema.dates import DateUnit

# Splits that a notebook shows: folds may be many.
_MOST_SPLITS = 4
_LEVELS = " ▁▂▃▄▅▆▇█"


def title(split: SplitSummary) -> str:
    """The records of a split, in a line."""
    sizes = "" if split.sizes is None else f", {of_spread(split.sizes)} bytes each"
    rows = "" if split.rows + split.broken == split.records else f" with {split.rows:,} rows"
    files = f"{counted(split.files, 'file')}"
    return f"{split.split}: {split.records:,} records{rows} in {files}{sizes}"


def row(feature: FeatureSummary) -> dict[str, str]:
    """A feature as a row of a table, by column."""
    plotted = feature.numbers if feature.boxes is None else feature.boxes.counts
    lengths = feature.steps or (feature.lengths if feature.boxes is None else feature.boxes.counts)
    return {
        "feature": feature.feature,
        "kind": feature.kind,
        "no value": of_presence(feature),
        "length": "" if lengths is None else of_spread(lengths),
        "values": of_values(feature),
        "plot": sparkline(plotted.histogram) if plotted is not None and plotted.histogram else "",
    }


def figure(value: float) -> str:
    """A number with few significant digits; integers unchanged."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"


def value_text(value: Scalar, date: DateUnit | None) -> str:
    """A value as it is stored, but for a date or a time, which is one.

    Args:
        date: the unit, if integers are dates or times.
    """
    return str(value) if date is None or isinstance(value, str) else date_text(value, date)


def number_text(value: float, date: DateUnit | None) -> str:
    """A number with few significant digits; a date or a time as one."""
    return figure(value) if date is None else date_text(value, date)


def share(part: float) -> str:
    """A share in percent: a small one is not rounded to 0 %, nor a large one to 100 %."""
    if 0 < part < 0.0005:
        return "<0.1%"
    return ">99.9%" if 0.9995 < part < 1 else f"{part:.1%}"


def estimate(count: EstimatedCount) -> str:
    return f"{count.value:,}" if not count.error else f"about {count.value:,}"


def sparkline(histogram: Histogram) -> str:
    """A histogram of one line."""
    most = max(max(histogram.counts), 1)
    return "".join(_LEVELS[-(-count * (len(_LEVELS) - 1) // most)] for count in histogram.counts)


def of_spread(sizes: SizeSummary) -> str:
    if sizes.min == sizes.max:
        return f"{sizes.min:,}"
    return f"{sizes.min:,} to {sizes.max:,}, median {sizes.median:,}, mean {figure(sizes.mean)}"


def of_presence(feature: FeatureSummary) -> str:
    """The reasons why records have no value."""
    counts = {"without": feature.missing, "with no kind set": feature.no_kind, "empty": feature.empty}
    if feature.boxes is not None:
        counts = {"without boxes": sum(counts.values())}
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)


def of_values(feature: FeatureSummary) -> str:
    """The values of a feature, in a line."""
    return "; ".join(_of_values(feature))


def _of_values(feature: FeatureSummary) -> Iterator[str]:
    if feature.classes is not None:
        yield of_classes(feature.classes, feature.date)
        return
    if feature.boxes is not None:
        for name, measure in feature.boxes.measures.items():
            if measure.min is not None and measure.max is not None:
                low, high = figure(measure.min), figure(measure.max)
                yield f"{name} {low}" if low == high else f"{name} {low} to {high}"
        return
    if feature.numbers is not None:
        yield of_numbers(feature.numbers, feature.date)
    if feature.strings is not None:
        yield of_strings(feature.strings)
    if feature.common is not None:
        yield of_common(feature.common, 3, feature.date)


def of_numbers(numbers: NumberSummary, date: DateUnit | None = None) -> str:
    if numbers.min is None or numbers.max is None or numbers.mean is None or numbers.deviation is None:
        return "no finite number"
    if numbers.min == numbers.max:
        return number_text(numbers.min, date)
    ends = f"{number_text(numbers.min, date)} to {number_text(numbers.max, date)}"
    text = f"{ends}, median {number_text(numbers.quantiles[0.5], date)}"
    if date is not None:
        return f"{text}, mean {date_text(numbers.mean, date)}, deviation {span_text(numbers.deviation, date)}"
    text += f", mean {figure(numbers.mean)}, deviation {figure(numbers.deviation)}"
    return text + (f", {share(numbers.zeros / numbers.count)} zeros" if numbers.zeros else "")


def of_strings(strings: BytesSummary) -> str:
    forms = (
        ", ".join(strings.forms) if len(strings.forms) < 4 else f"{', '.join(list(strings.forms)[:3])}, ..."
    )
    text = f"{forms} of {of_spread(strings.sizes)} bytes"
    measures = (
        f"{name} {figure(low)}" if low == high else f"{name} {figure(low)} to {figure(high)}"
        for name, (low, _, high) in strings.measures.items()
    )
    return ", ".join([text, *measures])


def of_common(top: TopValues, most: int, date: DateUnit | None = None) -> str:
    """The number of distinct values, and the first of them."""
    count = top.others + sum(times for _, times in top.top)
    text = f"{estimate(top.distinct)} different"
    if top.distinct.value >= count or not top.top or top.top[0][1] * 1000 < count:
        return text  # none is frequent
    return f"{text}: {_top(top.top, count, most, date)}"


def of_classes(classes: ClassCounts, date: DateUnit | None = None) -> str:
    count = classes.unnamed + sum(times for _, times in classes.counts)
    ordered = tuple(sorted(classes.counts, key=lambda pair: -pair[1]))
    what = "classes" if classes.named else "different"
    return f"{len(classes.counts):,} {what}: {_top(ordered, count, 3, date)}"


def _top(counts: tuple[tuple[Scalar, int], ...], count: int, most: int, date: DateUnit | None) -> str:
    pairs = ((value_text(value, date), times) for value, times in counts[:most])
    listed = ", ".join(f"{text} {share(times / max(count, 1))}" for text, times in pairs)
    return listed + ", ..." * (len(counts) > most)


def facts(feature: FeatureSummary, split: SplitSummary) -> Iterator[tuple[str, str]]:
    """The facts of a feature of a split, each a title and a short text."""
    yield "records", f"{feature.records:,} ({share(feature.records / max(split.rows, 1))})"
    if why := of_presence(feature):
        yield "no value", why
    if feature.boxes is not None:
        yield "boxes", of_spread(feature.boxes.counts)
        for name, measure in feature.boxes.measures.items():
            yield name, of_numbers(measure)
        return
    for what, spread in (("steps", feature.steps), ("lengths", feature.lengths)):
        if spread is not None:
            yield what, of_spread(spread)
    is_label = feature.classes is not None and feature.classes.named  # whose indices say nothing
    if feature.numbers is not None and not is_label:
        yield "values", of_numbers(feature.numbers, feature.date)
        quantiles = feature.numbers.quantiles.items()
        shares = (f"{share:.0%}: {number_text(value, feature.date)}" for share, value in quantiles)
        yield "quantiles", ", ".join(shares)
    if feature.strings is not None:
        yield "values", of_strings(feature.strings)
    if feature.common is not None:
        yield "different", estimate(feature.common.distinct)
    if feature.order is not None:
        same, chance = share(feature.order.same), share(feature.order.by_chance)
        yield "neighbours", f"{same} have the same value (shuffled: {chance})"


def notebook_parts(report: StatsReport) -> Iterator[Markup]:
    """The parts of a report in a notebook: a table for each of the first splits, and the warnings."""
    for split in report.splits[:_MOST_SPLITS]:
        yield heading(title(split))
        rows = [row(feature) for feature in split.features]
        names = tuple(rows[0]) if rows else ()
        yield listing(names, [tuple(row.values()) for row in rows], "feature")
        yield items(split.problems)
    yield others([split.split for split in report.splits[_MOST_SPLITS:]], "split")
    if report.warnings:
        yield heading("Warnings")
        yield items(report.warnings[:MOST_ROWS])
        yield others(report.warnings[MOST_ROWS:], "warning")
