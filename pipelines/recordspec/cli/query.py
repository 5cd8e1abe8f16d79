"""`recordspec query`: SQL over TFRecords."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import click

from recordspec.cli.output import echo, print_json_lines, print_rows, wants_json
from recordspec.cli.shared_options import (
    NAMED_PATTERN,
    PATH,
    force_option,
    grouped,
    json_option,
    schema_option,
)
from recordspec.errors import Problem, SpecError, counted
from recordspec.locations import Location

# The number of rows shown on a terminal.
_SHOWN = 50


@click.command(short_help="Query records with SQL.")
@click.argument("sql")
@click.argument("files", nargs=-1, required=True, metavar="[NAME=]FILES...", type=NAMED_PATTERN)
@click.option("--out", type=PATH, help="FILE.jsonl, .csv or .parquet, instead of printing.")
@force_option
@click.option("--memory", help="Memory of the query, such as 2GiB. [default: 80 % of the machine's]")
@schema_option
@json_option
def query(
    sql: str,
    files: tuple[tuple[str, str], ...],
    out: Location | None,
    force: bool,
    memory: str | None,
    schema: Location | None,
    as_json: bool,
) -> None:
    """Query TFRecord files with SQL, as DuckDB has it.

    \b
      recordspec query "SELECT label, count(*) AS n FROM train GROUP BY ALL" data/digits
      recordspec query "SELECT * FROM a JOIN b USING (image)" a=data/digits b=exported --out both.csv

    NAME=FILES is a table with that name. Of FILES without one, each split is a table with its name; files
    whose names tell no split are the table `records`. The columns are the features, or the keys of the first
    records. A query that names `file`, `record`, `split` or `key` has these columns, too.
    """
    from recordspec.progress import Progress
    from recordspec.schema.schema import given_schema
    from recordspec.tables.sql import named_tables
    from recordspec.tables.sql import query as run_query
    from recordspec.tables.table_writers import json_lines, saving

    if not re.search(r"\s", sql) and Path(sql).exists():
        hint = "SQL is the first argument: `recordspec query SQL FILES`"
        raise SpecError(Problem(where="SQL", expected="a query", got=f"the path `{sql}`", hint=hint))
    in_json = wants_json(as_json)  # before a bar replaces stdout, which is then not a terminal
    with ExitStack() as stack:
        save = None if out is None else stack.enter_context(saving(out, force=force))
        tables = named_tables(grouped(files), sql, given_schema(schema))
        progress = stack.enter_context(Progress())
        progress.begin("reading", None)
        result = stack.enter_context(run_query(sql, tables, memory=memory, progress=progress))
        columns = counted(len(result.schema), "column")
        saved = None if save is None else save(result)
        if saved is None and in_json:
            for batch in result:
                print_json_lines(json_lines(batch))
            return
        lines = (line for batch in result for line in bytes(json_lines(batch)).splitlines())
        rows = [json.loads(line) for line in islice(lines, _SHOWN + 1)]
    if saved is not None:
        echo(f"{counted(saved, 'row')} of {columns} in {out}")
        return
    more = len(rows) > _SHOWN
    footer = f"the first {_SHOWN} rows: --json or --out has all" if more else counted(len(rows), "row")
    print_rows(rows[:_SHOWN], as_json, lambda: footer)
