"""`recordspec bench`."""

from __future__ import annotations

from typing import Any

import click

from recordspec.cli.output import print_json, print_rows, quiet_tensorflow, wants_json
from recordspec.cli.shared_options import PATH, json_option
from recordspec.locations import Location


@click.command(short_help="Measure how fast a dataset is read, and what limits it.")
@click.argument("config", type=PATH)
@click.option("--split", default="train", show_default=True, help="The split to read.")
@click.option("--seconds", type=float, default=5.0, show_default=True, help="The time for each stage.")
@click.option("--no-targets", is_flag=True, help="Read the inputs alone, if rows lack the targets.")
@json_option
def bench(config: Location, split: str, seconds: float, no_targets: bool, as_json: bool) -> None:
    """Measure how fast the dataset of CONFIG is read, stage by stage.

    \b
      recordspec bench configs/digits.yaml
      recordspec bench configs/digits.yaml --split validation

    A stage is measured as the pipeline up to it. The limit is the stage that adds most to the time per row.
    """
    from recordspec.pipeline import Pipeline

    pipeline = Pipeline.load(config)
    with quiet_tensorflow(), pipeline.locating(split):
        measured = pipeline.bench(split, seconds=seconds, targets=not no_targets)
    print_rows(map(_row, measured.stages), as_json, lambda: f"\nlimit: {measured.limit}")
    if wants_json(as_json):
        print_json({"limit": measured.limit})


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
