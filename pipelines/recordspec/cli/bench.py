"""`recordspec bench`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from recordspec.cli.options import PATH, json_option
from recordspec.cli.output import print_json, print_rows, quiet_tensorflow, wants_json
from recordspec.locations import Location

if TYPE_CHECKING:
    from recordspec.reading.bench import Bench
    from recordspec.reading.shuffle_quality import Classes, Neighbours


@click.command(short_help="Measure how fast a dataset is read, and what limits it.")
@click.argument("config", type=PATH)
@click.option("--split", default="train", show_default=True, help="The split to read.")
@click.option("--seconds", type=float, default=5.0, show_default=True, help="The time for each stage.")
@json_option
def bench(config: Location, split: str, seconds: float, as_json: bool) -> None:
    """Measure how fast the dataset of CONFIG is read, stage by stage, and how well it is shuffled.

    \b
      recordspec bench configs/digits.yaml
      recordspec bench configs/digits.yaml --split validation

    A stage is measured as the pipeline up to it. The limit is the stage that adds most to the time per row.
    Advice is given only if it was measured to be faster.
    """
    from recordspec.pipeline import Pipeline

    pipeline = Pipeline.load(config)
    with quiet_tensorflow():
        measured = pipeline.bench(split, seconds=seconds)
    print_rows(map(_row, measured.stages), as_json, lambda: "\n".join(_lines(measured)))
    if wants_json(as_json):
        print_json(_summary(measured))


def _row(stage: Any) -> dict[str, Any]:
    return {
        "stage": stage.name,
        "rows/s": round(stage.rate),
        "MB/s": _short(stage.bytes / stage.seconds / 1e6),
        "CPU s/s": _short(stage.cores),
        "us/row": _short(1e6 / stage.rate),
    }


def _short(value: float) -> float:
    """Rounded to three significant digits."""
    return float(f"{value:.3g}")


def _summary(measured: Bench) -> dict[str, Any]:
    return {
        "limit": measured.limit,
        "advice": [vars(advice) for advice in measured.advice],
        "neighbours": None if measured.neighbours is None else vars(measured.neighbours),
        "classes": None if measured.classes is None else vars(measured.classes),
    }


def _lines(measured: Bench) -> list[str]:
    advice = [str(one) for one in measured.advice] or ["no option that was tried makes it faster"]
    lines = [f"\nlimit: {measured.limit}", *advice]
    if measured.neighbours is not None:
        lines.append(_of_neighbours(measured.neighbours))
    if measured.classes is not None:
        lines.append(_of_classes(measured.classes))
    return lines


def _of_neighbours(neighbours: Neighbours) -> str:
    return (
        f"neighbours are {neighbours.apart:,.0f} rows apart on disk"
        f" (a perfect shuffle: {neighbours.apart_by_chance:,.0f});"
        f" {neighbours.adjacent:.2%} were neighbours there"
        f" (a perfect shuffle: {neighbours.adjacent_by_chance:.2%})"
    )


def _of_classes(classes: Classes) -> str:
    return (
        f"{classes.same:.1%} of neighbours have the same `{classes.label}`"
        f" (a perfect shuffle: {classes.same_by_chance:.1%}; on disk: {classes.same_on_disk:.1%};"
        f" of {classes.rows:,} rows)"
    )
