"""`recordspec build`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from recordspec.cli.output import json_option, print_rows, size


@click.command(short_help="Build the dataset that a config defines.")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace the dataset if it exists.")
@click.option("--source", type=click.Path(path_type=Path), help="Read rows here, not where CONFIG says.")
@json_option
def build(config: Path, force: bool, source: Path | None, as_json: bool) -> None:
    """Build the dataset that CONFIG defines.

    \b
      recordspec build configs/digits.yaml
      recordspec build configs/digits.yaml --force --source raw/digits

    It appears whole or not at all. Prints its splits: shards, rows, bytes.
    """
    from recordspec.pipeline import Pipeline

    pipeline = Pipeline.load(config)
    start = time.perf_counter()
    manifest = pipeline.build(force=force, source=source)
    seconds = time.perf_counter() - start
    for note in pipeline.notes:
        click.echo(f"note: {note}", err=True)
    rows = sum(manifest.rows(split) for split in manifest.splits)
    total = sum(manifest.bytes(split) for split in manifest.splits)
    print_rows(
        (
            {
                "split": split,
                "shards": len(shards),
                "rows": manifest.rows(split),
                "bytes": manifest.bytes(split),
            }
            for split, shards in manifest.splits.items()
        ),
        as_json,
        lambda: (
            f"{pipeline.data}: {rows:,} rows, {size(total)}, in {seconds:.1f} s"
            f" ({rows / seconds:,.0f} rows/s)"
        ),
    )
