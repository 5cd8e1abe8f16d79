"""What is wrong with files: what `verify` and `check` find, with the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recordspec.errors import Problem
from recordspec.inspect.check import check
from recordspec.inspect.scan import Scanner
from recordspec.inspect.verify import verify
from recordspec.locations import Location
from recordspec.store.expand import Files
from recordspec.store.shards import compare_schema
from recordspec.viewer.jobs import JobProgress
from recordspec.viewer.rows import NumberedRows

# Problems that are listed; all are counted.
_MOST = 500
# Of each kind of violation, so many rows are named.
_EXAMPLES = 20


def problems(files: Files, scanner: Scanner, rows: NumberedRows, progress: JobProgress) -> dict[str, Any]:
    """The problems of files: each with its text, and the row, if it is of one.

    Args:
        files: as they were named.
        scanner: of them.
        rows: all of them.
        progress: receives the number of records.
    """
    listed = list[dict[str, Any]]()
    seen, count = set(), 0
    places = [*_corrupt(files, progress), *_invalid(scanner, progress)]
    progress.begin("counting rows", None)
    for path, record, problem in places:
        if (path, record, str(problem)) in seen:
            continue  # a corrupt record is found by both
        seen.add((path, record, str(problem)))
        count += 1
        if len(listed) < _MOST:
            row = None if path is None or record is None else rows.number_of(path, record)
            listed.append({"row": row, "text": str(problem)})
    return {"count": count, "problems": listed, "checked": scanner.schema is not None}


FoundProblem = tuple["Location | None", "int | None", Problem]


def _corrupt(files: Files, progress: JobProgress) -> Iterator[FoundProblem]:
    for file in verify(files, progress):
        for problem in file.problems:
            yield None, None, problem
        if file.integrity is not None:
            yield from ((file.integrity.path, loss.record, loss.problem) for loss in file.integrity.losses)


def _invalid(scanner: Scanner, progress: JobProgress) -> Iterator[FoundProblem]:
    """Violations of the schema, if there is one."""
    if scanner.schema is None:
        return
    files, differences = compare_schema(tuple(scanner.paths), scanner.schema, scanner.manifest)
    yield from ((None, None, problem) for problem in differences)
    report = check(files, scanner.schema, examples=_EXAMPLES, jobs=1, progress=progress)
    for example in report.examples:
        yield example.path, example.record, example.problem
    yield from ((None, None, problem) for problem in report.absent)
