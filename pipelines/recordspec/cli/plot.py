"""Drawing what was measured, with matplotlib, which is an extra."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recordspec.errors import Problem, StoreError, missing_extra

if TYPE_CHECKING:
    from recordspec.reading.bench import Bench

_COLOUR, _LIMIT = "#8c98a8", "#d9622b"


def check_plots() -> None:
    """Raises MissingExtra without matplotlib."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise missing_extra("matplotlib", "plot", "drawing", error) from None


def plot(measured: Bench, path: Path, title: str) -> None:
    """Bars of rows a second, one for each stage, as PNG. Raises StoreError if it cannot be written."""
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
    try:
        figure.savefig(path, format="png", dpi=120)
    except OSError as error:
        got = error.strerror or str(error)
        raise StoreError(Problem(where=str(path), expected="a file to write", got=got)) from None
