"""`recordspec check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recordspec.cli.output import echo, print_json, wants_json
from recordspec.cli.shared_options import (
    LOCAL_PATH,
    PATH,
    files_argument,
    jobs_option,
    json_option,
    removed_option,
    spark_option,
)
from recordspec.errors import RecordError, counted, show_path
from recordspec.locations import Location

if TYPE_CHECKING:
    from recordspec.integrity.check import CheckReport


@click.command(short_help="Check every record against a schema.")
@files_argument
@removed_option("--spec", "`--schema`")
@click.option("--schema", type=PATH, help="A schema, or a config with one; by default that of FILES.")
@click.option(
    "--examples",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Records to print for each kind of violation; all are counted.",
)
@click.option(
    "--allow-absent",
    metavar="FEATURE",
    multiple=True,
    help="A feature that may be in no record, such as a new one with a default. Repeatable.",
)
@click.option("--report", type=LOCAL_PATH, help="Write a report as JSON to this file.")
@jobs_option
@spark_option
@json_option
def check(
    files: tuple[str, ...],
    schema: Location | None,
    examples: int,
    allow_absent: tuple[str, ...],
    report: Path | None,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Check every record of FILES (a config, paths, folders, patterns) against their schema, or another.

    \b
      recordspec check configs/digits.yaml
      recordspec check 'data/digits/train-*' --schema schemas/digits.yaml --examples 3

    The schema of FILES is that of the config, or the one beside the files. Prints each violation with its
    shard, byte and feature, and the expected and the actual value. Exits with 1 if a record is invalid, if a
    feature of the schema is in no record, or if a dataset was written with another schema.
    """
    from recordspec.integrity.check import check as compare
    from recordspec.locations import output_file
    from recordspec.progress import Progress

    with Progress() as progress:
        checked = compare(
            files, schema, examples=examples, allow_absent=allow_absent, jobs=jobs, progress=progress
        )
    if report is not None:
        with output_file(report, force=True) as begun:
            begun.write_text(json.dumps(checked.dump(), indent=1) + "\n")
    if checked.valid:
        _print_valid(checked, as_json)
    else:
        _print_violations(checked, as_json)
        echo(f"{checked.invalid:,} of {checked.rows:,} rows are invalid{_rest(checked)}", err=True)
    for line in (*checked.mismatches, *_notes(checked)):
        echo(line, err=True)
    return 0 if checked.valid and not checked.mismatches else RecordError.exit_code


def _print_valid(report: CheckReport, as_json: bool) -> None:
    if wants_json(as_json):
        print_json({"files": report.files, "rows": report.rows, "invalid": 0, "lost": 0})
    else:
        echo(f"{counted(report.rows, 'row')} of {counted(report.files, 'file')} are valid")


def _print_violations(report: CheckReport, as_json: bool) -> None:
    """Prints examples: as JSON lines, or on a terminal by group, with its title and count."""
    from recordspec.integrity.check import TITLES, dump_problem

    if wants_json(as_json):
        for example in report.examples:
            print_json(example.dump())
        for problem in report.absent:
            print_json({"file": None, "record": None, "byte": None} | dump_problem(problem))
        return
    for group in report.groups.values():
        where = f"{show_path(group.path)}: " if group.path else ""
        title = f"{where}{TITLES[group.code]} in {group.count:,} of {counted(report.rows, 'row')}"
        echo(title, bold=True)
        for example in group.examples:
            echo(f"  {example.problem}")
    for problem in report.absent:
        echo(problem)


def _rest(report: CheckReport) -> str:
    """Errors other than invalid rows."""
    lost = f", and {report.lost:,} are lost" if report.lost else ""
    if not report.absent:
        return lost
    are = "is" if len(report.absent) == 1 else "are"
    return f"{lost}, and {counted(len(report.absent), 'feature')} {are} in no record"


def _notes(report: CheckReport) -> list[str]:
    """Notes on findings that are not violations."""
    shown = sum(len(group.examples) for group in report.groups.values())
    total = sum(group.count for group in report.groups.values())
    notes = [f"{shown:,} of {total:,} violations are shown"] if shown < total else []
    notes += [
        f"{show_path(path)}: without any values in {rows:,} of {report.rows:,} rows"
        for path, rows in report.empty.items()
    ]
    notes += [
        f"{show_path((key,))}: twice or more in {rows:,} of {report.rows:,} rows, of which the last counts"
        for key, rows in report.repeated.items()
    ]
    for path, key in report.unknown.items():
        kinds = ", ".join(sorted(key.kinds))
        notes.append(f"{show_path(path)}: not in the spec, in {key.rows:,} of {report.rows:,} rows ({kinds})")
    if report.more:
        notes.append(f"more than {len(report.unknown):,} keys are not in the spec")
    return notes
