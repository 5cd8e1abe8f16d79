"""`recordspec leaks`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from recordspec.cli.output import echo, print_json, print_rows, wants_json
from recordspec.cli.shared_options import (
    NAMED_PATTERN,
    grouped,
    json_option,
    names_in,
    schema_option,
    spark_option,
)
from recordspec.errors import RecordError
from recordspec.locations import Location

if TYPE_CHECKING:
    from recordspec.statistics.leaks import Leak


@click.command(short_help="Find rows in several splits, or several times in one.")
@click.argument("files", nargs=-1, required=True, metavar="[NAME=]FILES...", type=NAMED_PATTERN)
@click.option("--columns", metavar="A,B", help="Rows with the same values of these features are the same.")
@click.option("--memory", help="Memory of the search, such as 2GiB. [default: 80 % of the machine's]")
@schema_option
@spark_option
@json_option
def leaks(
    files: tuple[tuple[str, str], ...],
    columns: str | None,
    memory: str | None,
    schema: Location | None,
    as_json: bool,
) -> int:
    """Find rows that are in several splits, or several times in one.

    \b
      recordspec leaks data/digits
      recordspec leaks train="data/digits/train-*" rest="data/digits/validation-*"

    Rows are the same if their bytes are, or their key, or the features that --columns names. NAME=FILES is a
    split with that name; FILES have the splits of the dataset. Exits with 1 if there are any.
    """
    from recordspec.progress import Progress
    from recordspec.statistics.leaks import leaks as leaks_of

    with Progress() as progress:
        progress.begin("reading", None)
        leaking = leaks_of(
            grouped(files), schema, columns=names_in(columns or ""), memory=memory, progress=progress
        )
    if wants_json(as_json):
        for leak in leaking:
            print_json(vars(leak))
    elif leaking:
        print_rows(map(_row, leaking), as_json)
        if any(leak.told_apart for leak in leaking):
            echo(
                "The build told copies of a row apart, and gave each a split of its own:"
                " `key: {unique: false}` keeps them in one."
            )
    else:
        echo("No row is there twice.")
    return RecordError.exit_code if leaking else 0


def _row(leak: Leak) -> dict[str, Any]:
    first, second = (f"{file.rpartition('/')[2]}: record {record}" for file, record in leak.places)
    where = (
        f"in {leak.splits[0]} and {leak.splits[1]}" if len(leak.splits) > 1 else f"twice in {leak.splits[0]}"
    )
    return {"by": leak.by, "rows": leak.rows, "where": where, "first": first, "and": second}
