"""Parts of a summary as short texts: for a table, and for a page."""

from __future__ import annotations

from collections.abc import Iterator

from recordspec.inspect.stats.sketches import EstimatedCount
from recordspec.inspect.stats.summary import (
    BytesSummary,
    ClassCounts,
    FeatureSummary,
    Histogram,
    NumberSummary,
    Scalar,
    SizeSummary,
    TopValues,
)

_LEVELS = " ▁▂▃▄▅▆▇█"


def figure(value: float) -> str:
    """A number with few significant digits; integers unchanged."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"


def share(part: float) -> str:
    """A share in percent: a small one is not rounded to 0 %, nor a large one to 100 %."""
    if 0 < part < 0.0005:
        return "<0.1%"
    return ">99.9%" if 0.9995 < part < 1 else f"{part:.1%}"


def estimate(found: EstimatedCount) -> str:
    return f"{found.value:,}" if not found.error else f"about {found.value:,}"


def sparkline(found: Histogram) -> str:
    """A histogram of one line."""
    most = max(max(found.counts), 1)
    return "".join(_LEVELS[-(-count * (len(_LEVELS) - 1) // most)] for count in found.counts)


def of_spread(found: SizeSummary) -> str:
    if found.min == found.max:
        return f"{found.min:,}"
    return f"{found.min:,} to {found.max:,}, median {found.median:,}, mean {figure(found.mean)}"


def of_presence(feature: FeatureSummary) -> str:
    """The reasons why records have no value."""
    found = {"without": feature.missing, "with no kind set": feature.no_kind, "empty": feature.empty}
    return ", ".join(f"{count:,} {what}" for what, count in found.items() if count)


def of_values(feature: FeatureSummary) -> str:
    """The values of a feature, in a line."""
    return "; ".join(_of_values(feature))


def _of_values(feature: FeatureSummary) -> Iterator[str]:
    if feature.classes is not None:
        yield of_classes(feature.classes)
        return
    if feature.numbers is not None:
        yield of_numbers(feature.numbers)
    if feature.strings is not None:
        yield of_strings(feature.strings)
    if feature.common is not None:
        yield of_common(feature.common, 3)


def of_numbers(found: NumberSummary) -> str:
    if found.min is None or found.max is None or found.mean is None or found.deviation is None:
        return "no finite number"
    if found.min == found.max:
        return figure(found.min)
    text = f"{figure(found.min)} to {figure(found.max)}, median {figure(found.quantiles[0.5])}"
    text += f", mean {figure(found.mean)}, deviation {figure(found.deviation)}"
    return text + (f", {share(found.zeros / found.count)} zeros" if found.zeros else "")


def of_strings(found: BytesSummary) -> str:
    forms = ", ".join(found.forms) if len(found.forms) < 4 else f"{', '.join(list(found.forms)[:3])}, ..."
    text = f"{forms} of {of_spread(found.sizes)} bytes"
    measures = (
        f"{name} {figure(low)}" if low == high else f"{name} {figure(low)} to {figure(high)}"
        for name, (low, _, high) in found.measures.items()
    )
    return ", ".join([text, *measures])


def of_common(found: TopValues, most: int) -> str:
    """The number of distinct values, and the first of them."""
    count = found.others + sum(times for _, times in found.top)
    text = f"{estimate(found.distinct)} different"
    if found.distinct.value >= count or not found.top or found.top[0][1] * 1000 < count:
        return text  # none is frequent
    return f"{text}: {_top(found.top, count, most)}"


def of_classes(found: ClassCounts) -> str:
    count = found.unnamed + sum(times for _, times in found.counts)
    ordered = tuple(sorted(found.counts, key=lambda pair: -pair[1]))
    what = "classes" if found.named else "different"
    return f"{len(found.counts):,} {what}: {_top(ordered, count, 3)}"


def _top(counts: tuple[tuple[Scalar, int], ...], count: int, most: int) -> str:
    listed = ", ".join(f"{value} {share(times / max(count, 1))}" for value, times in counts[:most])
    return listed + ", ..." * (len(counts) > most)
