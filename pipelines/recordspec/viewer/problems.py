"""What is wrong with files: what `verify` and `check` find, with the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recordspec.errors import Problem
from recordspec.integrity.check import check
from recordspec.integrity.verify import verify
from recordspec.store.expand import Files
from recordspec.store.scan import Scanner
from recordspec.viewer.jobs import JobProgress
from recordspec.viewer.row_pages import NumberedRows, RecordPlace

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
    # both find a corrupt record
    unique = list(dict.fromkeys([*_corrupt(files, progress), *_invalid(scanner, progress)]))
    progress.begin("counting rows", None)
    listed = unique[:_MOST]
    numbers = rows.numbers_of([place for place, _ in listed if place is not None], progress)
    return {
        "count": len(unique),
        "problems": [
            {"row": None if place is None else numbers.get(place), "text": str(problem)}
            for place, problem in listed
        ],
        "checked": scanner.dataset.schema is not None,
    }


FoundProblem = tuple["RecordPlace | None", Problem]


def _corrupt(files: Files, progress: JobProgress) -> Iterator[FoundProblem]:
    for file in verify(files, progress):
        for problem in file.problems:
            yield None, problem
        if file.integrity is not None:
            path = file.integrity.path
            for loss in file.integrity.losses:
                yield RecordPlace(path, loss.record, loss.offset), loss.problem


def _invalid(scanner: Scanner, progress: JobProgress) -> Iterator[FoundProblem]:
    """Violations of the schema, if there is one."""
    dataset = scanner.dataset
    if dataset.schema is None:
        return
    yield from ((None, problem) for problem in dataset.mismatches)
    report = check(dataset.files, dataset.schema, examples=_EXAMPLES, jobs=1, progress=progress)
    for example in report.examples:
        yield RecordPlace(example.path, example.record, example.offset), example.problem
    yield from ((None, problem) for problem in report.absent)
