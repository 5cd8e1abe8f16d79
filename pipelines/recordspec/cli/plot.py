"""Charts as PNG, with matplotlib, which is an extra."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from recordspec.errors import missing_package, show_text
from recordspec.locations import output_file

if TYPE_CHECKING:
    from recordspec.reading.bench import Bench
    from recordspec.statistics.summary import FeatureSummary, StatsReport
    from recordspec.statistics.value_counts import Histogram

_COLOUR, _LIMIT = "#8c98a8", "#d9622b"
# For more features there is the HTML page.
_MOST_ROWS = 40


def check_plots() -> None:
    """Raises MissingExtra without matplotlib."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise missing_package("matplotlib", "drawing", "recordspec[plot]", error) from None


def plot(measured: Bench, path: Path, title: str) -> None:
    """Draws rows per second of each stage as bars, as PNG. Raises StoreError if it cannot be written."""
    from matplotlib.figure import Figure

    stages = measured.stages
    figure = Figure(figsize=(8, 0.9 + 0.45 * len(stages)), layout="constrained")
    axes = figure.subplots()
    colours = [_LIMIT if stage.name == measured.limit else _COLOUR for stage in stages]
    bars = axes.barh([stage.name for stage in stages], [stage.rate for stage in stages], color=colours)
    axes.bar_label(bars, [f"{stage.rate:,.0f} ({stage.cores:.1f} cores)" for stage in stages], padding=3)
    axes.margins(x=0.25)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(f"rows/s up to each stage; `{measured.limit}` limits")
    axes.set_title(title, loc="left")
    _save(figure, path)


def plot_report(report: StatsReport, path: Path) -> None:
    """Draws the distributions of numbers, by feature (rows) and split (columns), as PNG.

    The panels of a row have the same scale, so that splits can be compared. Raises StoreError.
    """
    from matplotlib.figure import Figure

    names = {
        feature.key: feature.feature
        for split in report.splits
        for feature in split.features
        if _bars(feature)
    }
    kept = list(names)[:_MOST_ROWS]
    columns = max(len(report.splits), 1)
    figure = Figure(figsize=(4 * columns, 0.6 + 1.6 * max(len(kept), 1)), layout="constrained")
    panels = figure.subplots(max(len(kept), 1), columns, squeeze=False, sharex="row")
    for axes in panels.flat:
        axes.set_axis_off()
    for column, split in enumerate(report.splits):
        for feature in split.features:
            if feature.key in kept and (bars := _bars(feature)) is not None:
                axes = panels[kept.index(feature.key)][column]
                axes.set_axis_on()
                axes.stairs(bars.counts, bars.edges, fill=True, color=_COLOUR)
                axes.set_title(_plain(f"{feature.feature}, {split.split}"), loc="left", fontsize="small")
                axes.spines[["top", "right"]].set_visible(False)
    _save(figure, path)


def _bars(feature: FeatureSummary) -> Histogram | None:
    return None if feature.numbers is None else feature.numbers.histogram


def _plain(text: str) -> str:
    """Text that matplotlib does not parse as formulas."""
    return show_text(text).replace("$", r"\$")


def _save(figure: Any, path: Path) -> None:
    with output_file(path, force=True) as fresh:
        figure.savefig(fresh, format="png", dpi=120)
