"""A report as one page of HTML, which needs nothing else, and runs no script.

All that comes from records is escaped: somebody may have put markup into them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files
from typing import Any

from recordspec.errors import show_text
from recordspec.inspect.stats import drawing, wording
from recordspec.inspect.stats.figures import Histogram
from recordspec.inspect.stats.report import Feature, Report, Split

# By section and key: the feature in each split, by its name.
Features = dict[tuple[str, str], dict[str, Feature]]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(report: Report, title: str) -> str:
    """The page, as text."""
    style = files("recordspec.inspect.stats").joinpath("page.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{_text(title)}</title><style>{style}</style></head><body>",
            '<a class="skip" href="#features">to the features</a>',
            f"<header><h1>{_text(title)}</h1></header><main>",
            *_body(report),
            "</main></body></html>\n",
        ]
    )


def _body(report: Report) -> Iterator[str]:
    yield _table(
        "Splits", ("split", "files", "records", "rows", "bytes a record", "copies"), map(_row, report.splits)
    )
    if report.warnings:
        items = "".join(f"<li>{_text(warning)}</li>" for warning in report.warnings)
        yield f'<section class="warnings"><h2>What is odd</h2><ul>{items}</ul></section>'
    features = _by_key(report)
    yield f'<section id="features"><h2>{len(features):,} features</h2>'
    for number, ((section, _), by_split) in enumerate(features.items()):
        yield from _card(
            number, section, by_split, [split for split in report.splits if split.split in by_split]
        )
    yield "</section>"


def _row(split: Split) -> tuple[Any, ...]:
    sizes = "none" if split.sizes is None else wording.of_spread(split.sizes)
    copies = wording.estimate(split.copies)
    return split.split, split.files, split.records, split.rows, sizes, copies


def _by_key(report: Report) -> Features:
    found: Features = {}
    for split in report.splits:
        for feature in split.features:
            found.setdefault((feature.section, feature.key), {})[split.split] = feature
    return found


def _card(number: int, section: str, by_split: dict[str, Feature], splits: list[Split]) -> Iterator[str]:
    first = next(iter(by_split.values()))
    stored = "" if first.key == first.feature else f", stored as {first.key}"
    yield f'<article aria-labelledby="f{number}"><h3 id="f{number}">{_text(first.feature)}'
    yield f' <small>{_text(first.kind)}, {_text(section)}{_text(stored)}</small></h3><div class="splits">'
    for split in splits:
        yield f'<div class="split"><h4>{_text(split.split)}</h4>'
        yield from _of_split(by_split[split.split], split)
        yield "</div>"
    yield "</div></article>"


def _of_split(feature: Feature, split: Split) -> Iterator[str]:
    name = f"{feature.feature} in {split.split}"
    for what, histogram in _histograms(feature):
        yield f"<figure>{drawing.histogram(histogram, show_text(f'{what} of {name}'))}"
        drawn = "" if histogram.exact else ", from a sample"
        yield f"<figcaption>{what}{drawn}</figcaption></figure>"
    facts = "".join(f"<dt>{what}</dt><dd>{_text(fact)}</dd>" for what, fact in _facts(feature, split))
    yield f"<dl>{facts}</dl>"
    counts = feature.classes.counts if feature.classes else feature.common.top if feature.common else ()
    if counts and counts[0][1] > 1:
        yield _counts(counts, max(feature.lengths.count if feature.lengths else 1, 1), feature)
    if feature.warnings:
        yield f'<ul class="warnings">{"".join(f"<li>{_text(one)}</li>" for one in feature.warnings)}</ul>'


def _histograms(feature: Feature) -> Iterator[tuple[str, Histogram]]:
    if feature.numbers is not None and feature.numbers.histogram is not None:
        yield "values", feature.numbers.histogram
    sizes = feature.strings.sizes if feature.strings is not None else None
    for what, spread in (("bytes", sizes), ("lengths of lists", feature.lengths), ("steps", feature.steps)):
        if spread is not None and spread.histogram is not None and spread.min < spread.max:
            yield what, spread.histogram


def _facts(feature: Feature, split: Split) -> Iterator[tuple[str, str]]:
    yield "records", f"{feature.records:,} ({wording.share(feature.records / max(split.rows, 1))})"
    if why := wording.of_presence(feature):
        yield "no value", why
    for what, spread in (("steps", feature.steps), ("lengths", feature.lengths)):
        if spread is not None:
            yield what, wording.of_spread(spread)
    if feature.numbers is not None:
        yield "values", wording.of_numbers(feature.numbers)
        shares = (
            f"{share:.0%}: {wording.figure(value)}" for share, value in feature.numbers.quantiles.items()
        )
        yield "quantiles", ", ".join(shares)
    if feature.strings is not None:
        yield "values", wording.of_strings(feature.strings)
    if feature.common is not None:
        yield "different", wording.estimate(feature.common.distinct)
    if feature.order is not None:
        same, chance = wording.share(feature.order.same), wording.share(feature.order.by_chance)
        yield "neighbours", f"{same} have the same value (shuffled: {chance})"


def _counts(counts: Iterable[tuple[Any, int]], count: int, feature: Feature) -> str:
    rows = "".join(
        f'<tr><th scope="row">{_text(str(value))}</th><td>{times:,}</td>'
        f"<td>{wording.share(times / count)}</td><td>{drawing.share(times / count)}</td></tr>"
        for value, times in counts
    )
    caption = "classes" if feature.classes else "most frequent values"
    head = (
        '<tr><th scope="col">value</th><th scope="col">records</th><th scope="col">share</th><td></td></tr>'
    )
    return f"<details open><summary>{caption}</summary><table>{head}{rows}</table></details>"


def _table(title: str, names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    body = "".join(
        f'<tr><th scope="row">{_text(first)}</th>'
        + "".join(f"<td>{_text(one)}</td>" for one in others)
        + "</tr>"
        for first, *others in rows
    )
    return f"<section><h2>{title}</h2><table><tr>{head}</tr>{body}</table></section>"


def _text(value: Any) -> str:
    """Anything as text of a page, its control characters made visible."""
    return escape(show_text(f"{value:,}" if type(value) is int else str(value)))
