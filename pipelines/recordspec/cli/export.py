"""`recordspec export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from recordspec.cli.choosing import PATH, columns_options, files_argument, query, where_option
from recordspec.cli.output import counted, echo, json_option, print_json, size, wants_json


@click.command(short_help="Records as jsonl, csv or parquet.")
@files_argument
@click.option("--out", required=True, type=PATH, help="FILE.jsonl, .csv or .parquet")
@click.option("--limit", type=click.IntRange(1), help="So many records at most.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@where_option
@columns_options
@json_option
def export(
    files: tuple[str, ...], out: Path, limit: int | None, force: bool, as_json: bool, **chosen: Any
) -> None:
    """Write the records of TFRecord files to a file of another format, which its name says.

    \b
      recordspec export data/digits --out digits.parquet
      recordspec export "data/digits/train-*" --out labels.csv --columns label --limit 1000

    A column holds single values where every record has one, else lists; what is missing is null.
    """
    from recordspec.inspect.export import export as export_records
    from recordspec.progress import Progress

    done = export_records(files, out, query(**chosen), limit=limit, force=force, progress=Progress())
    if wants_json(as_json):
        print_json(vars(done))
    else:
        held = f"{counted(done.rows, 'row')} of {counted(len(done.columns), 'column')}"
        echo(f"{held} in {done.file}, {size(done.bytes)}")
