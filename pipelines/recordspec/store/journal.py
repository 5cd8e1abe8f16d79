"""The journal of an unfinished build: a line of JSON for each finished task, for `resume` after a crash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recordspec.errors import State, StoreError, see
from recordspec.locations import atomic_write, open_file, sync

FILE = "journal.jsonl"

JournalEntry = dict[str, Any]


class Journal:
    """A file of lines; a line is durable once it has been added.

    Attributes:
        entries: the lines that the file had when it was opened.
    """

    def __init__(self, folder: Path, plan: JournalEntry, name: str) -> None:
        """Reads the journal of a folder, if it has one; `keep` then continues or creates it.

        Raises StoreError if the journal belongs to another plan; `name` is the dataset's name, for the
        message.
        """
        self._path = folder / FILE
        self._plan = plan
        lines = list(_lines(self._path))
        if lines and lines[0] != plan:
            differing = sorted(key for key in plan | lines[0] if plan.get(key) != lines[0].get(key))
            restart = "without resume=True, or --resume, it starts from the beginning"
            hint = f"{restart}; {see('explanation/publishing')}"
            got = f"has an unfinished build of another {', '.join(differing)}"
            raise StoreError(State(where=name, got=got, hint=hint))
        self.entries = lines[1:]

    def keep(self, count: int) -> None:
        """Keeps the first `count` entries, which are still valid, and removes the rest."""
        self.entries = self.entries[:count]
        atomic_write(self._path, b"".join(map(_line, [self._plan, *self.entries])))

    def add(self, entry: JournalEntry) -> None:
        """Appends a line."""
        with self._path.open("ab") as file:
            file.write(_line(entry))
            sync(file)

    def remove(self) -> None:
        """Removes the file, so that the build cannot be resumed."""
        self._path.unlink()


def _line(entry: JournalEntry) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def _lines(path: Path) -> Iterator[JournalEntry]:
    """The lines before the first invalid one: nothing after it can be trusted."""
    if not path.exists():
        return
    with open_file(path) as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            try:
                yield json.loads(line)
            except ValueError:
                return
