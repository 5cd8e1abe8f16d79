"""`recordspec stats`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from recordspec.cli.output import echo, print_json, print_rows, wants_json
from recordspec.cli.shared_options import (
    LOCAL_PATH,
    files_argument,
    jobs_option,
    json_option,
    schema_option,
    spark_option,
)
from recordspec.errors import RecordError, State, StoreError
from recordspec.locations import Location, output_file

if TYPE_CHECKING:
    from recordspec.statistics.summary import StatsReport


@click.command(short_help="Summarize the values of features, with warnings.")
@files_argument
@schema_option
@click.option("--html", type=LOCAL_PATH, help="Write a page with charts to this file.")
@jobs_option
@spark_option
@json_option
def stats(
    files: tuple[str, ...],
    schema: Location | None,
    html: Path | None,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Summarize each feature of the records in FILES (a config, paths, folders, patterns), by split.

    \b
      recordspec stats data/digits
      recordspec stats configs/digits.yaml --html stats.html

    Prints presence, lengths, distributions, frequent values, labels and their order, and duplicates, in
    bounded memory: for large data, quantiles and distinct values are estimates, and marked as such. Exits
    with 1 if a record cannot be read.
    """
    from recordspec.progress import Progress
    from recordspec.statistics.stats import stats as stats_of

    if html is not None and not html.parent.is_dir():  # before the counting, which may take long
        raise StoreError(State(where=str(html.parent), got="does not exist"))
    with Progress() as progress:
        report = stats_of(files, schema, jobs=jobs, progress=progress)
    if html is not None:
        from recordspec.viewer.offline import page

        with output_file(html, force=True) as fresh:
            fresh.write_text(page(report, " ".join(files)), encoding="utf-8")
    _print(report, as_json)
    for split in report.splits:
        for problem in split.problems:
            echo(problem, err=True)
    return RecordError.exit_code if report.broken else 0


def _print(report: StatsReport, as_json: bool) -> None:
    if wants_json(as_json):
        for line in report.lines():
            print_json(line)
        return
    from recordspec.statistics import formatting

    for split in report.splits:
        echo(formatting.title(split), bold=True)
        print_rows(map(formatting.row, split.features), as_json)
        echo()
    for warning in report.warnings:
        echo(f"! {warning}")
