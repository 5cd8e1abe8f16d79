"""`recordspec check`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from recordspec.cli.output import json_option, print_json, print_rows, quiet_tensorflow, wants_json
from recordspec.errors import RecordError, show_path


@click.command(short_help="Every record that cannot be read, and why.")
@click.argument("spec", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1)
@click.option(
    "--max-faults",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Stop after so many records that cannot be read.",
)
@json_option
def check(spec: Path, files: tuple[str, ...], max_faults: int, as_json: bool) -> int:
    """Read and decode every record of FILES (paths, folders, patterns) with SPEC, a schema or a config.

    \b
      recordspec check configs/digits.yaml
      recordspec check schemas/digits.yaml 'data/digits/train-*' --max-faults 5

    A config's own shards are checked if no files are given. Every record that cannot be read is told with
    its shard, its byte, the feature, and what was found. Exits with 1 if there is one.
    """
    from recordspec.config import load_any
    from recordspec.progress import Progress
    from recordspec.reading.faults import check_all
    from recordspec.reading.plan import known
    from recordspec.store.shards import expand

    config, schema = load_any(spec)
    to_check = known(expand(files or _data(spec, config)), schema)
    with quiet_tensorflow() as stderr, Progress(stream=stderr) as progress:
        found = check_all(to_check, schema, max_faults, progress)
    if found.faults:
        print_rows((row for fault in found.faults for row in _rows(fault)), as_json)
        stopped = " (stopped there)" if len(found.faults) == max_faults else ""
        told = f"records with faults: {len(found.faults):,}{stopped}, without: {found.records:,}"
        click.echo(told, err=True)
        return RecordError.exit_code
    if wants_json(as_json):
        print_json({"files": len(to_check), "records": found.records, "faults": 0})
    else:
        click.echo(f"{found.records:,} records of {len(to_check):,} files are fine")
    return 0


def _data(spec: Path, config: Any) -> Path:
    """The shards that a config is about."""
    if config is None:
        raise click.UsageError(f"{spec} is a schema: name FILES to check")
    return Path(os.path.normpath(spec.parent / config.data))


def _rows(fault: Any) -> Iterator[dict[str, Any]]:
    for problem in fault.problems:
        yield {
            "file": str(fault.path),
            "record": fault.record,
            "byte": fault.offset,
            "feature": show_path(problem.path),
            "expected": problem.expected,
            "got": problem.got,
            "hint": problem.hint,
            "rows lost": fault.rows,
        }
