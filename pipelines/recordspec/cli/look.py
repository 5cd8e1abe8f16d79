"""`recordspec count` and `recordspec head`: what is in TFRecord files."""

from __future__ import annotations

from typing import Any

import click

from recordspec.cli.output import json_option, print_json, print_rows, shown, size, wants_json

files_argument = click.argument("files", nargs=-1, required=True)


@click.command(short_help="How many records files have.")
@files_argument
@json_option
def count(files: tuple[str, ...], as_json: bool) -> None:
    """Count the records of TFRecord files, or of all shards in a folder.

    \b
      recordspec count data/digits
      recordspec count "data/digits/train-*" --json
    """
    from recordspec.inspect.count import count as count_records
    from recordspec.progress import Progress

    with Progress() as progress:
        counted = count_records(files, progress)
    records, total = sum(one.records for one in counted), sum(one.bytes for one in counted)
    print_rows(
        (vars(one) for one in counted),
        as_json,
        lambda: f"{records:,} records in {len(counted)} files, {size(total)}",
    )


@click.command(short_help="The first records of files.")
@files_argument
@click.option("-n", "number", type=click.IntRange(1, 1 << 31), default=5, show_default=True, help="How many.")
@json_option
def head(files: tuple[str, ...], number: int, as_json: bool) -> None:
    """Show the first records of TFRecord files, with or without a spec for them.

    \b
      recordspec head data/digits
      recordspec head "data/digits/train-*" -n 20 --json
    """
    from recordspec.inspect.head import head as first_records

    for record in first_records(files, number):
        if wants_json(as_json):
            print_json(record)
        else:
            _print_record(record)


def _print_record(record: dict[str, Any]) -> None:
    click.secho(f"{record['file']}: record {record['record']}", bold=True)
    values = {**record["features"], **record.get("sequence", {})}
    width = max((len(key) for key in values), default=0)
    for key, value in values.items():
        # data as it is: 1478559600 is a time and 17031320600 a place, not counts to be read aloud
        text = str(value) if isinstance(value, int) else value
        click.echo(f"  {shown(key):{width}}  {shown(text)}")
