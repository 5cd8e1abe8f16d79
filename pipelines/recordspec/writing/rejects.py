"""Rows that do not fit, set aside with their reasons: `rejects.jsonl`."""

from __future__ import annotations

import json
import os
from pathlib import Path

from recordspec.errors import Problem, RecordError


class Rejects:
    """One line of JSON a row: its number in the source, its place there, and all that is wrong with it."""

    def __init__(self, path: Path, most: int | None) -> None:
        self._path, self._most = path, most
        self._last = ""
        self.count = 0

    def add(self, row: int, place: str, error: RecordError) -> None:
        """Takes a row. Raises RecordError if it is one more than `most` (None: any number)."""
        self._last = str(error.at(place).problems[0])
        if self.count == self._most:
            hint = f"the last is {self._last}"
            expected = f"at most {self._most} invalid rows (max_invalid)"
            raise RecordError(Problem(expected=expected, got=str(self.count + 1), hint=hint), row)
        problems = [str(problem) for problem in error.at("").problems]
        line = {"row": row, "place": place, "problems": problems}
        # opened for each: they are few, and a dataset without any has no such file
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.count += 1

    def close(self, accepted: int) -> None:
        """Flushes the file to the disk. Raises RecordError where rows were rejected and none accepted."""
        if self.count and not accepted:
            hint = f"the last is {self._last}"
            raise RecordError(Problem(expected="at least one row that fits", got="none", hint=hint))
        if self.count:
            with self._path.open("a") as file:
                os.fsync(file.fileno())
