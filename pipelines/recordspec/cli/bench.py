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

    For shards in an object store that are read by ranges, in lanes, the first three epochs are measured: the
    requests, the bytes from the store and from the disk, and the seconds that threads waited for them.
    """
    from recordspec.pipeline import Pipeline

    pipeline = Pipeline.load(config)
    with quiet_tensorflow(), pipeline.locating(split):
        measured = pipeline.bench(split, seconds=seconds, targets=not no_targets)
    if measured.epochs:
        print_rows(map(_epoch_row, measured.epochs), as_json)
        return
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


def _epoch_row(epoch: Any) -> dict[str, Any]:
    return {
        "epoch": epoch.epoch,
        "rows": epoch.rows,
        "of the epoch": f"{epoch.share:.1%}",
        "rows/s": round(epoch.rows / epoch.seconds),
        "CPU s/s": _short(epoch.cpu / epoch.seconds),
        "requests": epoch.requests,
        "MB read": _short(epoch.bytes / 1e6),
        "of the files": f"{epoch.fetched:.1%}",
        "MB from disk": _short(epoch.bytes_kept / 1e6),
        "waited s": _short(epoch.waited),
    }


def _short(value: float) -> float:
    """Rounded to three significant digits."""
    return float(f"{value:.3g}")
