"""`recordspec count`, `head`, `show`, `sample` and `export`: the records of TFRecord files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from recordspec.cli.output import (
    echo,
    print_json,
    print_notes,
    print_rows,
    shown,
    size,
    wants_json,
)
from recordspec.cli.shared_options import (
    PATH,
    Command,
    columns_options,
    files_argument,
    force_option,
    json_option,
    query,
    removed_option,
    spark_option,
    where_option,
)
from recordspec.errors import counted
from recordspec.locations import Location

if TYPE_CHECKING:
    from recordspec.tables.show import RecordViewer, Shown

number_option = click.option(
    "-n", "number", type=click.IntRange(1, 1 << 31), default=5, show_default=True, help="Records to show."
)


@click.command(short_help="Count the records of files.")
@files_argument
@spark_option
@json_option
def count(files: tuple[str, ...], as_json: bool) -> None:
    """Count the records of TFRecord files, or of all shards in a folder.

    \b
      recordspec count data/digits
      recordspec count "data/digits/train-*" --json
    """
    from recordspec.progress import Progress
    from recordspec.statistics.count import count as count_records

    with Progress() as progress:
        counts = count_records(files, progress)
    records, total = sum(one.records for one in counts), sum(one.bytes for one in counts)
    print_rows(
        (vars(one) for one in counts),
        as_json,
        lambda: f"{counted(records, 'record')} in {counted(len(counts), 'file')}, {size(total)}",
    )


def _view_options(command: Command) -> Command:
    """Options that select and format values."""
    full = click.option("--full", is_flag=True, help="Do not truncate values.")
    raw = click.option(
        "--raw", is_flag=True, help="Neither truncate nor summarize values; bytes in JSON are base64."
    )
    return columns_options(full(raw(json_option(command))))


@click.command(short_help="Show the first records of files.")
@files_argument
@number_option
@where_option
@_view_options
def head(files: tuple[str, ...], number: int, as_json: bool, **view: Any) -> None:
    """Show the first records of TFRecord files, with or without a schema for them.

    \b
      recordspec head data/digits
      recordspec head "data/digits/train-*" -n 20 --json
    """
    viewer = _viewer(files, **view)
    _print(viewer, viewer.head(number), as_json)


class _OfNumber(click.Command):
    """A command of files and a number. Click takes a single argument as the number, and misses the files."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter:
            message = "expected files and the number of a record: `recordspec show FILES 0`"
            raise click.UsageError(message, ctx) from None


@click.command(cls=_OfNumber, short_help="Show one record by its number.")
@files_argument
@click.argument("number", type=click.IntRange(0))
@removed_option("--record", "`recordspec show FILES NUMBER`")
@_view_options
def show(files: tuple[str, ...], number: int, as_json: bool, **view: Any) -> None:
    """Show one record of TFRecord files by its number, counted from 0 across all files.

    \b
      recordspec show data/digits 0
      recordspec show "data/digits/train-*" 7 --full

    In unpacked blocks, the number is that of a row.
    """
    viewer = _viewer(files, **view)
    _print(viewer, [viewer.show(number)], as_json)


@click.command(short_help="Show a random sample of records.")
@files_argument
@number_option
@click.option("--seed", type=int, default=0, show_default=True, help="Determines the sample.")
@where_option
@_view_options
def sample(files: tuple[str, ...], number: int, seed: int, as_json: bool, **view: Any) -> None:
    """Show a random sample of the records of TFRecord files, each equally likely.

    \b
      recordspec sample data/digits
      recordspec sample "data/digits/train-*" -n 3 --seed 17
    """
    viewer = _viewer(files, **view)
    _print(viewer, viewer.sample(number, seed), as_json)


@click.command(short_help="Export records to a table, or files that describe a dataset.")
@files_argument
@click.option("--out", type=PATH, help="Write records to FILE.jsonl, .csv or .parquet.")
@click.option(
    "--as",
    "description",
    type=click.Choice(["croissant", "card", "tfds"]),
    help="Describe a dataset for Croissant, the Hugging Face Hub, or TensorFlow Datasets.",
)
@click.option("--limit", type=click.IntRange(1), help="The most records to write.")
@force_option
@where_option
@columns_options
@spark_option
@json_option
def export(
    files: tuple[str, ...],
    out: Location | None,
    description: Any,
    limit: int | None,
    force: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Write the records of TFRecord files to a file in the format of its suffix; or, with --as, files that
    describe the dataset in a folder to other programs, beside its shards.

    \b
      recordspec export data/digits --out digits.parquet
      recordspec export data/digits --as croissant

    A column has single values if every record has one, else lists. Missing values are null.

    With --spark, executors write a folder --out of files in the format of its suffix: a file for each file of
    records, or for 64 MiB of a large one, such as digits.parquet/part-00000-of-00012.parquet.

    --as croissant writes croissant.json, metadata of the standard Croissant 1.0; --as card writes README.md,
    a dataset card with the head of the Hugging Face Hub; --as tfds writes the files with which
    tfds.builder_from_directory("data/digits") opens the dataset. They come from the manifest and the schema;
    no record is read. Notes on stderr list what they do not express. Files of another origin are not
    replaced.
    """
    from recordspec.interop import export as exporting

    selected = query(**options)
    how: dict[str, Any] = {
        "out": out,
        "schema": selected.schema,
        "columns": selected.columns,
        "where": selected.where,
        "limit": limit,
        "force": force,
    }
    if description is not None:
        described = exporting.export(files[0] if len(files) == 1 else files, as_=description, **how)
        rows = [{"file": file, "bytes": os.path.getsize(file)} for file in described.files]
        print_rows(rows, as_json)
        print_notes(described.notes)
        return
    if out is None:
        raise click.UsageError("name a file to write with --out, or a description with --as")
    from recordspec.progress import Progress

    done = exporting.export(files, progress=Progress(), **how)
    if wants_json(as_json):
        print_json(vars(done))
    else:
        content = f"{counted(done.rows, 'row')} of {counted(len(done.columns), 'column')}"
        echo(f"{content} in {done.file}, {size(done.bytes)}")


def _viewer(files: tuple[str, ...], full: bool, raw: bool, **options: Any) -> RecordViewer:
    from recordspec.tables.show import RecordViewer

    return RecordViewer(files, query(**options), "raw" if raw else "full" if full else "short")


def _print(viewer: RecordViewer, records: Iterable[Shown], as_json: bool) -> None:
    for note in viewer.notes:
        echo(note, err=True)
    for record in records:
        if wants_json(as_json):
            print_json(record)
            continue
        number = "row" if "row" in record else "record"
        echo(f"{record['file']}: {number} {record[number]}", bold=True)
        for line in _lines(record):
            echo(f"  {line}")


def _lines(record: Shown) -> Iterator[str]:
    if "problem" in record:
        yield f"{record['problem']}: {shown(record['bytes'])}"
    else:
        yield from _values(record)
    for problem in record.get("tensorflow", ()):
        yield shown(problem)


def _values(record: Shown) -> Iterator[str]:
    values = [*record["features"].items(), *record.get("sequence", {}).items()]
    width = max((len(shown(key)) for key, _ in values), default=0)
    for key, value in values:
        # without commas: 1478559600 is a time and 17031320600 a place, not a count
        text = str(value) if isinstance(value, int) else value
        yield f"{shown(key):{width}}  {shown(text)}"
    for key in record.get("repeated", ()):
        yield f"(duplicate key: {shown(key)}; the last counts)"


@click.command(short_help="List the rows that a step of training saw.")
@click.argument("config", type=PATH)
@click.option("--epoch", type=click.IntRange(0), default=0, show_default=True, help="The pass, from 0.")
@click.option("--step", type=click.IntRange(0), required=True, help="The global batch, from 0.")
@click.option("--split", default="train", show_default=True, help="The split that was trained on.")
@click.option("--seed", type=int, help="Of a global shuffle that was asked for in Python.")
@click.option("--worker", type=click.IntRange(0), default=0, show_default=True, help="The worker, from 0.")
@click.option(
    "--workers", type=click.IntRange(1), default=1, show_default=True, help="The number of workers."
)
@json_option
def which(
    config: Location,
    epoch: int,
    step: int,
    split: str,
    seed: int | None,
    worker: int,
    workers: int,
    as_json: bool,
) -> None:
    """List the rows that a step of training saw: file, record and key.

    \b
      recordspec which configs/digits.yaml --epoch 1 --step 3 --seed 17
      recordspec which configs/digits.yaml --step 0 --seed 17 --worker 1 --workers 2

    CONFIG reads with `shuffle: {global: true}`, or in the order of the files: then the rows of a step are a
    function of the seed, the epoch and the step, and nothing is read but their keys.
    """
    from recordspec.order.read_options import Shuffle
    from recordspec.pipeline import Pipeline

    pipeline = Pipeline.load(config)
    shuffle = pipeline.config.read.shuffle if seed is None else Shuffle(seed=seed, global_=True)
    rows = pipeline.which(epoch, step, split, worker=worker, workers=workers, shuffle=shuffle)
    print_rows(rows, as_json, lambda: counted(len(rows), "row"))
