"""`recordspec diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from recordspec.cli.output import echo, print_json, print_rows, wants_json
from recordspec.cli.shared_options import PATTERN, jobs_option, json_option, schema_option, spark_option
from recordspec.errors import RecordError, show_path
from recordspec.locations import Location, location

if TYPE_CHECKING:
    from recordspec.schema.schema import Schema
    from recordspec.statistics.diff import Change, Difference, Measure


@click.command(short_help="Compare two schemas or datasets.")
@click.argument("old", type=PATTERN)
@click.argument("new", type=PATTERN)
@schema_option
@click.option(
    "--by",
    type=click.Choice(["key", "distribution"]),
    help="How datasets are compared. [default: by key if both have keys]",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    help="The largest distance at which distributions count as alike. [default: 0.05]",
)
@click.option("--strict", is_flag=True, help="Count compatible changes of a schema as differences.")
@click.option("--all", "everything", is_flag=True, help="Also print small distances.")
@jobs_option
@spark_option
@json_option
def diff(
    old: str,
    new: str,
    schema: Location | None,
    by: str | None,
    threshold: float | None,
    strict: bool,
    everything: bool,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Compare two schemas, or two datasets (folders, files, patterns, configs), OLD and NEW.

    \b
      recordspec diff data/digits/train-00000-of-00002.tfrecord data/digits/train-00001-of-00002.tfrecord
      recordspec diff schemas/digits.yaml schemas/digits.yaml --strict

    For schemas, prints each change, what it breaks, and why. For datasets, prints the rows added, removed,
    moved and changed by key, or else the distance of the distributions of each feature, by split. Exits with
    0 if they are alike, 1 if they differ.
    """
    from recordspec.progress import Progress
    from recordspec.statistics.diff import THRESHOLD
    from recordspec.statistics.diff import diff as diff_of

    schemas = [_schema(path) for path in (old, new)]
    if schemas[0] is not None and schemas[1] is not None:
        difference = diff_of(schemas[0], schemas[1])
    elif schemas != [None, None]:
        raise click.UsageError("a schema is compared with a schema, and a dataset with a dataset")
    else:
        with Progress() as progress:
            difference = diff_of(
                old,
                new,
                schema,
                threshold=THRESHOLD if threshold is None else threshold,
                keys=None if by is None else by == "key",
                jobs=jobs,
                progress=progress,
            )
    _print(difference, as_json, everything)
    return RecordError.exit_code if difference.different or (strict and difference.schema) else 0


def _schema(path: str) -> Schema | None:
    """The schema in a file; None for a config or data."""
    from recordspec.schema.schema import schema_in
    from recordspec.store.expand import is_config

    return schema_in(location(path)) if is_config(path) else None


def _print(difference: Difference, as_json: bool, everything: bool) -> None:
    measures = [_measure(measure) for measure in difference.measures if everything or measure.different]
    keys = [] if difference.keys is None else [vars(difference.keys)]
    tables = [[_change(field) for field in difference.schema], keys, measures]
    for rows in tables:
        if rows:
            print_rows(rows, as_json)
    summary = {"different": difference.different, "measures": len(difference.measures)}
    if wants_json(as_json):
        print_json(summary)
    else:
        echo(_summary(difference))


def _change(change: Change) -> dict[str, Any]:
    return {
        "change": show_path(change.path),
        "old": change.old,
        "new": change.new,
        "breaks": ", ".join(change.breaks) or "nothing",
        "why": change.why,
    }


def _measure(measure: Measure) -> dict[str, Any]:
    return {
        "split": measure.split,
        "feature": measure.feature,
        "measure": measure.measure,
        "distance": round(measure.distance, 4),
        "at": measure.at,
        "different": "yes" if measure.different else "no",
    }


def _summary(difference: Difference) -> str:
    verdict = "different" if difference.different else "alike"
    if not difference.measures:
        return verdict
    apart = sum(measure.different for measure in difference.measures)
    return f"{verdict}: {apart:,} of {len(difference.measures):,} distances are large"
