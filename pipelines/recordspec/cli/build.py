"""`recordspec build` and `reshard`: commands that write datasets."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from recordspec.cli.output import print_notes, print_rows, size, wants_json
from recordspec.cli.shared_options import PATH, PATTERN, build_options, json_option, removed_option
from recordspec.errors import Problem, SpecError
from recordspec.locations import Location
from recordspec.wire.compression import CODECS

if TYPE_CHECKING:
    from recordspec.store.manifest import Manifest

# The shares of classes are printed for labels of at most this many classes; JSON has all counts.
_LISTED_CLASSES = 10


@click.command(short_help="Build the dataset that a config defines.")
@click.argument("config", type=PATH)
@click.option("--append", is_flag=True, help="Add the rows to the dataset, in new shards.")
@click.option("--if-missing", is_flag=True, help="Do nothing if CONFIG has built the dataset already.")
@click.option("--dry-run", is_flag=True, help="Print an estimate from a sample; build nothing.")
@click.option("--limit", type=int, help="The most rows to read; per split, if splits are predefined.")
@click.option("--allow-empty", is_flag=True, help="Build a dataset without rows if the source has none.")
@click.option("--source", type=PATH, help="Read rows from here instead of the source in CONFIG.")
@click.option("--spark", metavar="MASTER", help="Build on Spark: local[4], or the URL of a master.")
@build_options
@json_option
def build(
    config: Location,
    if_missing: bool,
    dry_run: bool,
    source: Location | None,
    spark: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Build the dataset that CONFIG defines.

    \b
      recordspec build configs/digits.yaml
      recordspec build configs/digits.yaml --force --jobs 4

    The dataset is published as a whole or not at all. Prints the shards, rows and bytes of its splits. Exits
    with 4 if the dataset exists; with --if-missing, only if it was built from another config. The source, its
    columns, the number of shards and invalid rows are not compared, as a dataset does not have them.

    An invalid row is an error; with `invalid: quarantine` in CONFIG such rows are left out and listed in
    `rejects.jsonl`, up to 5 % of the rows, or 10 rows. `invalid: {max_invalid: 20%}` allows more.
    """
    from recordspec.pipeline import Pipeline
    from recordspec.wire import native

    if if_missing:
        for name, value in {**options, "source": source}.items():
            if name in ("force", "append", "limit", "source") and value:
                raise click.UsageError(f"--if-missing compares CONFIG with the dataset: without --{name}")
    pipeline = Pipeline.load(config)
    if if_missing and (existing := pipeline.existing()) is not None:
        _print_splits(existing, as_json, f"{pipeline.data} exists: nothing was built")
        return
    if dry_run:
        if spark is not None:
            hint = "the estimate is made on this machine"
            raise SpecError(Problem(where="--dry-run", expected="no --spark", got=f"`{spark}`", hint=hint))
        _print_estimate(pipeline.estimate(source=source, **options), as_json)
        return
    start = time.perf_counter()
    if spark is None:
        manifest = pipeline.build(source=source, **options)
    else:
        from recordspec.spark import build, session_at

        asked = {name: value for name, value in options.items() if value not in (None, False)}
        if asked["jobs"] == 1:
            del asked["jobs"]
        with session_at(spark) as session:
            manifest = build(pipeline, session, source=source, **asked)
    _print_built(manifest, pipeline.data, start, as_json)
    print_notes([*pipeline.notes, *([native.describe()] if native.missing() else [])])


@click.command(short_help="Write the records of files to other shards.")
@click.argument("files", nargs=-1, required=True, type=PATTERN)
@click.argument("folder", type=PATH)
@click.option(
    "--shards", help="Shards of each split: a number, a size such as 128MiB, or auto (the default)."
)
@click.option("--compression", type=click.Choice(list(CODECS)), help="[default: that of the files]")
@click.option("--shuffle", type=int, metavar="SEED", help="Shuffle all rows.")
@click.option("--blocks", type=int, metavar="ROWS", help="Rows per record; 0 for one row per record.")
@removed_option("--spec", "`--schema`")
@click.option("--schema", type=PATH, help="The schema of the records, required for blocks.")
@build_options
@json_option
def reshard(
    files: tuple[str, ...],
    folder: Location,
    schema: Location | None,
    blocks: int | None,
    shards: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Write the records of FILES (a config, paths, folders, patterns) to other shards, in FOLDER.

    \b
      recordspec reshard data/digits data/digits-8 --shards 8
      recordspec reshard 'old/*.tfrecord' data/new --shards 128MiB --compression gzip --shuffle 7

    Neither the bytes of records nor the splits change. Each CRC is checked.
    """
    from recordspec.schema.schema import Schema
    from recordspec.writing.reshard import reshard

    chosen = {name: value for name, value in options.items() if value is not None}
    if shards is not None:
        chosen["shards"] = _shards(shards)
    if blocks is not None:
        chosen["layout"] = {"blocks": blocks} if blocks else "rows"
    loaded = None if schema is None else Schema.load(schema)
    start = time.perf_counter()
    _print_built(reshard(files, folder, schema=loaded, **chosen), folder, start, as_json)


def _shards(text: str) -> Any:
    if text.isdecimal():
        return int(text)
    return text if text == "auto" else {"size": text}


def _print_built(manifest: Manifest, folder: Location, start: float, as_json: bool) -> None:
    """Prints the splits of a built dataset, and the time of the build."""
    from recordspec.wire import native

    seconds = time.perf_counter() - start
    rows = sum(manifest.rows(split) for split in manifest.splits)
    total = sum(manifest.bytes(split) for split in manifest.splits)
    summary = (
        f"{folder}: {rows:,} rows, {size(total)}, in {seconds:.1f} s"
        f" ({rows / seconds:,.0f} rows/s, {total / seconds / 1e6:,.1f} MB/s) by {native.describe()}"
        f"{f', {manifest.rejected:,} rejected' if manifest.rejected else ''}"
    )
    _print_splits(manifest, as_json, summary)


def _print_splits(manifest: Manifest, as_json: bool, summary: str) -> None:
    """Prints the splits of a dataset with the shares of their classes, and a line below them."""
    from recordspec.writing.label_counts import classes_by_name

    json_wanted, classes = wants_json(as_json), classes_by_name(manifest)
    print_rows(
        (
            {
                "split": split,
                "shards": len(shards),
                "rows": manifest.rows(split),
                "bytes": manifest.bytes(split),
                "smallest": min((shard.bytes for shard in shards), default=0),
                "largest": max((shard.bytes for shard in shards), default=0),
                **({"classes": classes[split]} if json_wanted and classes.get(split) else {}),
            }
            for split, shards in manifest.splits.items()
        ),
        as_json,
        lambda: "\n".join([*_shares(classes), summary]),
    )


def _shares(classes: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Iterator[str]:
    """Lines with the shares of the classes of each split, for labels of few classes."""
    for label in dict.fromkeys(label for by_label in classes.values() for label in by_label):
        for split, by_label in classes.items():
            counts = by_label.get(label, {})
            if sum(counts.values()) and len(counts) <= _LISTED_CLASSES:
                shares = (f"{name} {count / sum(counts.values()):.1%}" for name, count in counts.items())
                yield f"{label} in {split}: {', '.join(shares)}"


def _print_estimate(estimate: Any, as_json: bool) -> None:
    print_rows(
        (
            {"split": split, "shards": shards, "rows": rows, "bytes": total}
            for split, (shards, rows, total) in estimate.splits.items()
        ),
        as_json,
        lambda: (
            f"{'about ' if estimate.about else ''}{estimate.rows:,} rows; needs"
            f" {size(estimate.disk)} of disk, of which {size(estimate.disk_free)} are free, and up to"
            f" {size(estimate.memory)} of memory;"
            f" estimated from {estimate.sampled:,} rows, nothing was built"
        ),
    )
