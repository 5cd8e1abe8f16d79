"""Plots as SVG that stands in a page: no script, no outside resource, colours of the page."""

from __future__ import annotations

from html import escape

from recordspec.inspect.stats.figures import Histogram
from recordspec.inspect.stats.wording import figure

_WIDTH, _HEIGHT, _BASE = 300, 80, 18
_GAP = 1


def histogram(found: Histogram, title: str) -> str:
    """Bars, with the first and the last edge below, and all counts for those who do not see them."""
    most = max(max(found.counts), 1)
    width = _WIDTH / len(found.counts)
    bars = "".join(
        _bar(place * width, width, count / most * _HEIGHT)
        for place, count in enumerate(found.counts)
        if count
    )
    low, high = figure(found.edges[0]), figure(found.edges[-1])
    told = "; ".join(
        f"{figure(low)} to {figure(high)}: {count:,}"
        for low, high, count in zip(found.edges, found.edges[1:], found.counts, strict=False)
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + _BASE}" role="img" class="histogram">'
        f"<title>{escape(title)}</title><desc>{escape(told)}</desc>"
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


def share(part: float) -> str:
    """A bar as long as a share, from 0 to 1, is large; beside a number that says the same."""
    return (
        '<svg viewBox="0 0 100 8" class="share" aria-hidden="true" preserveAspectRatio="none">'
        f'<rect x="0" y="0" width="{100 * min(max(part, 0.0), 1.0):.2f}" height="8"/></svg>'
    )
