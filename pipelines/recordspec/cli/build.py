"""`recordspec build`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recordspec.cli.choosing import PATH
from recordspec.cli.output import json_option, print_notes, print_rows, size

if TYPE_CHECKING:
    from recordspec.store.manifest import Manifest


@click.command(short_help="Build the dataset that a config defines.")
@click.argument("config", type=PATH)
@click.option("--force", is_flag=True, help="Replace the dataset if it exists.")
@click.option("--append", is_flag=True, help="Add the rows to the dataset, in shards of their own.")
@click.option("--resume", is_flag=True, help="Go on with a build that was broken off.")
@click.option("--dry-run", is_flag=True, help="Print what would be written, from a sample; build nothing.")
@click.option("--limit", type=int, help="Take so many rows and no more.")
@click.option("--allow-empty", is_flag=True, help="Build a dataset without rows if the source has none.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes that share the work.")
@click.option("--memory", help="What they may use together, such as 2GiB; by default 512MiB each.")
@click.option("--source", type=PATH, help="Read rows here, not where CONFIG says.")
@json_option
def build(config: Path, dry_run: bool, source: Path | None, as_json: bool, **how: Any) -> None:
    """Build the dataset that CONFIG defines.

    \b
      recordspec build configs/digits.yaml
      recordspec build configs/digits.yaml --force --jobs 4

    It appears whole or not at all. Prints its splits: shards, rows, bytes.
    """
    from recordspec.pipeline import Pipeline

    pipeline = Pipeline.load(config)
    if dry_run:
        _print_plan(pipeline.plan(source=source, **how), as_json)
        return
    with print_dataset(pipeline.data, as_json) as printed:
        printed(pipeline.build(source=source, **how))
    print_notes(pipeline.notes)


@contextmanager
def print_dataset(folder: Path, as_json: bool) -> Iterator[Callable[[Manifest], None]]:
    """A context that is given the manifest of what was built in it, and prints that, and how long it took."""
    built: list[Manifest] = []
    start = time.perf_counter()
    yield built.append
    seconds = time.perf_counter() - start
    (manifest,) = built
    rows = sum(manifest.rows(split) for split in manifest.splits)
    total = sum(manifest.bytes(split) for split in manifest.splits)
    print_rows(
        (
            {
                "split": split,
                "shards": len(shards),
                "rows": manifest.rows(split),
                "bytes": manifest.bytes(split),
                "smallest": min((shard.bytes for shard in shards), default=0),
                "largest": max((shard.bytes for shard in shards), default=0),
            }
            for split, shards in manifest.splits.items()
        ),
        as_json,
        lambda: (
            f"{folder}: {rows:,} rows, {size(total)}, in {seconds:.1f} s"
            f" ({rows / seconds:,.0f} rows/s, {total / seconds / 1e6:,.1f} MB/s)"
            f"{f', {manifest.rejected:,} rejected' if manifest.rejected else ''}"
        ),
    )


def _print_plan(plan: Any, as_json: bool) -> None:
    print_rows(
        (
            {"split": split, "shards": shards, "rows": rows, "bytes": total}
            for split, (shards, rows, total) in plan.splits.items()
        ),
        as_json,
        lambda: (
            f"{'about ' if plan.about else ''}{plan.rows:,} rows; needs {size(plan.disk)} of disk, of which"
            f" {size(plan.disk_free)} are free, and up to {size(plan.memory)} of memory;"
            f" told from {plan.sampled:,} rows, nothing was built"
        ),
    )
