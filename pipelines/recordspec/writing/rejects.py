"""Lists invalid rows in `rejects.jsonl`, each with its place and all its problems."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from recordspec.errors import Problem, RecordError, State, counted
from recordspec.locations import open_file
from recordspec.writing.write_options import Quarantine

# The number of reasons in a message.
_SHOWN = 3


class Rejects:
    """Writes one line of JSON per invalid row: its number and location in the source, and its problems.

    Args:
        take: receives each line.
        check: receives, after each row, the number of rows so far and `reasons`; it may raise.

    Attributes:
        count: the number of rows.
        reasons: the locations of the first rows, each with its first problem.
    """

    def __init__(self, take: Callable[[str], None], check: Callable[[int, list[str]], None] | None) -> None:
        self._take, self._check = take, check
        self.count, self.reasons = 0, list[str]()

    def add(self, row: int, place: str, problems: list[str]) -> None:
        """Adds a row. Raises the errors of `check`."""
        self._take(json.dumps({"row": row, "place": place, "problems": problems}))
        self.count += 1
        if len(self.reasons) < _SHOWN:
            self.reasons.append(f"{place}: {problems[0]}")
        if self._check is not None:
            self._check(self.count, self.reasons)


def check(
    how: Quarantine | None,
    rejected: int,
    reasons: Sequence[str],
    *,
    rows: int | None = None,
    keep: Callable[[], Path | None] = lambda: None,
) -> None:
    """Raises RecordError if more rows are invalid than are allowed.

    Args:
        how: the limit; None if there is no limit, for instance because any invalid row is an error.
        rejected: the number of invalid rows so far.
        reasons: the reasons of the first invalid rows.
        rows: the number of all rows; None until all are read. A limit that is a share needs it.
        keep: writes a file that lists all invalid rows, if possible, and returns it.
    """
    limit = None if how is None else how.limit(rows)
    if limit is None or rejected <= limit:
        return
    of_all, got, more = "", f"at least {limit + 1:,}", "20%"
    if rows is not None:
        of_all, got, more = f" of {rows:,}", f"{rejected:,}", f"{-(-100 * rejected // rows)}%"
    path = keep()
    listed = "" if path is None else f"; all are in {path}"
    hint = f"{'; '.join(reasons[:_SHOWN])}{listed}; `invalid: {{max_invalid: {more}}}` allows more"
    raise RecordError(
        Problem(expected=f"at most {counted(limit, 'invalid row')}{of_all} ({how})", got=got, hint=hint)
    )


def add_line(path: Path, line: str) -> None:
    """Appends a line to a file of rejects."""
    # opened for each line: lines are few, and a dataset without invalid rows gets no file
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def check_some(rows: int, rejected: int, path: Path, source: str, *, allow_empty: bool) -> None:
    """Raises RecordError for a dataset without rows.

    Args:
        rows: the number of valid rows.
        rejected: the number of invalid rows, listed in the file `path`. If there are any, one must be valid.
        source: the name of the source in messages.
        allow_empty: whether the source may have no rows at all.
    """
    if not rows and not rejected and not allow_empty:
        hint = "allow_empty=True, or --allow-empty, builds a dataset without rows"
        raise RecordError(State(where=source, got="has no rows", hint=hint))
    if rejected and not rows:
        (last,) = deque(lines(path), maxlen=1)
        hint = f"the last is {last['place']}: {last['problems'][0]}"
        raise RecordError(Problem(expected="at least one valid row", got="none", hint=hint))


def lines(path: Path) -> Iterable[dict[str, Any]]:
    """Yields the lines of a file of rejects; no line if the file does not exist."""
    if path.exists():
        with open_file(path) as file:
            yield from map(json.loads, file)


def join(files: Iterable[tuple[Path, int]], path: Path) -> None:
    """Writes the lines of all parts to one file, from a file of each part and the number of rows before the
    part."""
    joined = Rejects(partial(add_line, path), None)
    for file, before in files:
        for line in lines(file):
            joined.add(before + line["row"], line["place"], line["problems"])
