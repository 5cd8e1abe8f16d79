"""Lists the problems that `verify` and `check` find in files, with their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from recordspec.errors import Problem
from recordspec.integrity.check import check_files
from recordspec.integrity.verify import VerifiedFile, verify
from recordspec.store.expand import Files
from recordspec.store.scan import Scanner
from recordspec.viewer.jobs import JobProgress
from recordspec.viewer.row_pages import NumberedRows, RecordPlace

# The number of listed problems; all are counted.
_MOST = 500
# The number of rows named for each kind of violation.
_EXAMPLES = 20


def problems(
    files: Files,
    scanner: Scanner,
    mismatches: Iterable[Problem],
    rows: NumberedRows,
    progress: JobProgress,
) -> dict[str, Any]:
    """The number of records read, and the problems of files, each with its text and the number of its row, if
    it belongs to a row.

    Args:
        files: the files as given.
        scanner: the scanner of the files.
        mismatches: the differences because of which a given schema cannot read the files.
        rows: all rows of the files.
        progress: receives the number of records.
    """
    # `verify` and `check` both report a corrupt record
    verified = verify(files, progress=progress)
    found = [*_corrupt(verified), *((None, one) for one in mismatches), *_invalid(scanner, progress)]
    unique = list(dict.fromkeys(found))
    progress.begin("counting rows", None)
    listed = unique[:_MOST]
    numbers = rows.numbers_of([place for place, _ in listed if place is not None], progress)
    return {
        "count": len(unique),
        "records": sum(file.integrity.records for file in verified if file.integrity is not None),
        "problems": [
            {"row": None if place is None else numbers.get(place), "text": str(problem)}
            for place, problem in listed
        ],
        "checked": scanner.dataset.schema is not None,
    }


FoundProblem = tuple["RecordPlace | None", Problem]


def _corrupt(verified: Iterable[VerifiedFile]) -> Iterator[FoundProblem]:
    for file in verified:
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
    report = check_files(dataset.files, dataset.schema, examples=_EXAMPLES, jobs=1, progress=progress)
    for example in report.examples:
        yield RecordPlace(example.path, example.record, example.offset), example.problem
    yield from ((None, problem) for problem in report.absent)
