"""A summary as HTML, one page of it or parts of a notebook, with charts as SVG: no script, and nothing from
outside.

All text from records is escaped: it may contain markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files
from typing import Any

from recordspec.errors import show_text
from recordspec.html import MOST_ROWS, Markup, heading, items, listing, others, table, text
from recordspec.inspect.stats import formatting
from recordspec.inspect.stats.summary import FeatureSummary, SplitSummary, StatsReport
from recordspec.inspect.stats.values import Histogram

# By section and key: the feature in each split, by its name.
Features = dict[tuple[str, str], dict[str, FeatureSummary]]

# Of a notebook: folds may be many.
_MOST_SPLITS = 4
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(report: StatsReport, title: str) -> str:
    """The page, as text."""
    style = files("recordspec.inspect.stats").joinpath("page.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{text(title)}</title><style>{style}</style></head><body>",
            '<a class="skip" href="#features">to the features</a>',
            f"<header><h1>{text(title)}</h1></header><main>",
            *_body(report),
            "</main></body></html>\n",
        ]
    )


def notebook_parts(report: StatsReport) -> Iterator[Markup]:
    """What a notebook shows of a report: a table for each of the first splits, and the warnings."""
    for split in report.splits[:_MOST_SPLITS]:
        yield heading(formatting.title(split))
        rows = [formatting.row(feature) for feature in split.features]
        for feature, row in zip(split.features[:MOST_ROWS], rows, strict=False):
            if row["plot"] and feature.numbers is not None and feature.numbers.histogram is not None:
                chart = histogram_chart(feature.numbers.histogram, show_text(f"values of {feature.feature}"))
                row["plot"] = Markup(f'<div style="width: 10em; fill: currentColor">{chart}</div>')
        names = tuple(rows[0]) if rows else ()
        yield listing(names, [tuple(row.values()) for row in rows], "feature")
        yield items(split.problems)
    yield others([split.split for split in report.splits[_MOST_SPLITS:]], "split")
    if report.warnings:
        yield heading("Warnings")
        yield items(report.warnings[:MOST_ROWS])
        yield others(report.warnings[MOST_ROWS:], "warning")


def _body(report: StatsReport) -> Iterator[str]:
    yield _table(
        "Splits", ("split", "files", "records", "rows", "bytes a record", "copies"), map(_row, report.splits)
    )
    if report.warnings:
        items = "".join(f"<li>{text(warning)}</li>" for warning in report.warnings)
        yield f'<section class="warnings"><h2>Warnings</h2><ul>{items}</ul></section>'
    features = _by_key(report)
    yield f'<section id="features"><h2>{len(features):,} features</h2>'
    for number, ((section, _), by_split) in enumerate(features.items()):
        yield from _card(
            number, section, by_split, [split for split in report.splits if split.split in by_split]
        )
    yield "</section>"


def _row(split: SplitSummary) -> tuple[Any, ...]:
    sizes = "none" if split.sizes is None else formatting.of_spread(split.sizes)
    copies = formatting.estimate(split.copies)
    return split.split, split.files, split.records, split.rows, sizes, copies


def _by_key(report: StatsReport) -> Features:
    features: Features = {}
    for split in report.splits:
        for feature in split.features:
            features.setdefault((feature.section, feature.key), {})[split.split] = feature
    return features


def _card(
    number: int, section: str, by_split: dict[str, FeatureSummary], splits: list[SplitSummary]
) -> Iterator[str]:
    first = next(iter(by_split.values()))
    stored = "" if first.key == first.feature else f", stored as {first.key}"
    yield f'<article aria-labelledby="f{number}"><h3 id="f{number}">{text(first.feature)}'
    yield f' <small>{text(first.kind)}, {text(section)}{text(stored)}</small></h3><div class="splits">'
    for split in splits:
        yield f'<div class="split"><h4>{text(split.split)}</h4>'
        yield from _of_split(by_split[split.split], split)
        yield "</div>"
    yield "</div></article>"


def _of_split(feature: FeatureSummary, split: SplitSummary) -> Iterator[str]:
    name = f"{feature.feature} in {split.split}"
    for what, histogram in _histograms(feature):
        yield f"<figure>{histogram_chart(histogram, show_text(f'{what} of {name}'))}"
        yield f"<figcaption>{what}</figcaption></figure>"
    facts = "".join(f"<dt>{what}</dt><dd>{text(fact)}</dd>" for what, fact in _facts(feature, split))
    yield f"<dl>{facts}</dl>"
    counts = feature.classes.counts if feature.classes else feature.common.top if feature.common else ()
    if counts and counts[0][1] > 1:
        yield _counts(counts, max(feature.lengths.count if feature.lengths else 1, 1), feature)
    if feature.warnings:
        warnings = "".join(f"<li>{text(warning)}</li>" for warning in feature.warnings)
        yield f'<ul class="warnings">{warnings}</ul>'


def _histograms(feature: FeatureSummary) -> Iterator[tuple[str, Histogram]]:
    if feature.numbers is not None and feature.numbers.histogram is not None:
        yield "values", feature.numbers.histogram
    sizes = feature.strings.sizes if feature.strings is not None else None
    for what, spread in (("bytes", sizes), ("lengths of lists", feature.lengths), ("steps", feature.steps)):
        if spread is not None and spread.histogram is not None and spread.min < spread.max:
            yield what, spread.histogram


def _facts(feature: FeatureSummary, split: SplitSummary) -> Iterator[tuple[str, str]]:
    yield "records", f"{feature.records:,} ({formatting.share(feature.records / max(split.rows, 1))})"
    if why := formatting.of_presence(feature):
        yield "no value", why
    for what, spread in (("steps", feature.steps), ("lengths", feature.lengths)):
        if spread is not None:
            yield what, formatting.of_spread(spread)
    if feature.numbers is not None:
        yield "values", formatting.of_numbers(feature.numbers)
        shares = (
            f"{share:.0%}: {formatting.figure(value)}" for share, value in feature.numbers.quantiles.items()
        )
        yield "quantiles", ", ".join(shares)
    if feature.strings is not None:
        yield "values", formatting.of_strings(feature.strings)
    if feature.common is not None:
        yield "different", formatting.estimate(feature.common.distinct)
    if feature.order is not None:
        same, chance = formatting.share(feature.order.same), formatting.share(feature.order.by_chance)
        yield "neighbours", f"{same} have the same value (shuffled: {chance})"


def _counts(counts: Iterable[tuple[Any, int]], count: int, feature: FeatureSummary) -> str:
    rows = "".join(
        f'<tr><th scope="row">{text(str(value))}</th><td>{times:,}</td>'
        f"<td>{formatting.share(times / count)}</td><td>{_share_bar(times / count)}</td></tr>"
        for value, times in counts
    )
    caption = "classes" if feature.classes else "most frequent values"
    head = (
        '<tr><th scope="col">value</th><th scope="col">records</th><th scope="col">share</th><td></td></tr>'
    )
    return f"<details open><summary>{caption}</summary><table>{head}{rows}</table></details>"


def _table(title: str, names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    return f"<section><h2>{title}</h2>{table(names, rows)}</section>"


_WIDTH, _HEIGHT, _BASE = 300, 80, 18
_GAP = 1


def histogram_chart(histogram: Histogram, title: str) -> str:
    """Bars, with the first and the last edge below, and all counts for those who do not see them."""
    most = max(max(histogram.counts), 1)
    width = _WIDTH / len(histogram.counts)
    bars = "".join(
        _bar(place * width, width, count / most * _HEIGHT)
        for place, count in enumerate(histogram.counts)
        if count
    )
    low, high = formatting.figure(histogram.edges[0]), formatting.figure(histogram.edges[-1])
    description = "; ".join(
        f"{formatting.figure(low)} to {formatting.figure(high)}: {count:,}"
        for low, high, count in zip(histogram.edges, histogram.edges[1:], histogram.counts, strict=False)
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + _BASE}" role="img" class="histogram">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
        f'{bars}<line x1="0" x2="{_WIDTH}" y1="{_HEIGHT}" y2="{_HEIGHT}" class="axis"/>'
        f'<text x="0" y="{_HEIGHT + _BASE - 4}">{escape(low)}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + _BASE - 4}" text-anchor="end">{escape(high)}</text></svg>'
    )


def _bar(x: float, width: float, height: float) -> str:
    height = max(height, 0.7)  # one that is there is seen
    shown = max(width - _GAP, 0.5)
    return (
        f'<rect x="{x + _GAP / 2:.2f}" y="{_HEIGHT - height:.2f}" width="{shown:.2f}" height="{height:.2f}"/>'
    )


def _share_bar(part: float) -> str:
    """A bar as long as a share, from 0 to 1, is large; beside a number that says the same."""
    return (
        '<svg viewBox="0 0 100 8" class="share" aria-hidden="true" preserveAspectRatio="none">'
        f'<rect x="0" y="0" width="{100 * min(max(part, 0.0), 1.0):.2f}" height="8"/></svg>'
    )
