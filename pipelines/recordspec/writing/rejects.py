"""Invalid rows are listed in `rejects.jsonl`, each with its place and all that is wrong with it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from recordspec.errors import Problem, RecordError
from recordspec.locations import open_file


class Rejects:
    """Writes one line of JSON per invalid row: its number and location in the source, and its problems.

    Args:
        take: receives a line.
        most: the largest number of rows; None for any number.
    """

    def __init__(self, take: Callable[[str], None], most: int | None) -> None:
        self._take, self._most = take, most
        self.count = 0

    def add(self, row: int, place: str, problems: list[str]) -> None:
        """Adds a row. Raises RecordError if there are more than `most`."""
        if self.count == self._most:
            expected = f"at most {self._most} invalid rows (max_invalid)"
            got, hint = str(self._most + 1), f"the last is {place}: {problems[0]}"
            raise RecordError(Problem(expected=expected, got=got, hint=hint), row)
        self._take(json.dumps({"row": row, "place": place, "problems": problems}))
        self.count += 1


def add_line(path: Path, line: str) -> None:
    """Appends a line to a file of rejects."""
    # opened for each: they are few, and a dataset without any has no such file
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
        raise RecordError(Problem(where=source, expected="at least one row", got="none", hint=hint))
    if rejected and not rows:
        (last,) = deque(lines(path), maxlen=1)
        hint = f"the last is {last['place']}: {last['problems'][0]}"
        raise RecordError(Problem(expected="at least one valid row", got="none", hint=hint))


def lines(path: Path) -> Iterable[dict[str, Any]]:
    """The lines of a file of rejects; none where there is no file."""
    if path.exists():
        with open_file(path) as file:
            yield from map(json.loads, file)


def join(parts: Iterable[tuple[Mapping[str, Any], int]], path: Path, most: int | None) -> None:
    """Writes the rejects of all parts as one file; each comes with the number of the rows before its part.

    Raises RecordError if they are more than `most`.
    """
    joined = Rejects(partial(add_line, path), most)
    for line, before in parts:
        joined.add(before + line["row"], line["place"], line["problems"])
