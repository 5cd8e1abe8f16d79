"""What an unfinished build has done: a line of JSON for each task, so that it can go on after a crash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recordspec.errors import Problem, StoreError
from recordspec.locations import atomic_write, open_file, sync

FILE = "journal.jsonl"

Entry = dict[str, Any]


class Journal:
    """Lines that last through a power cut as soon as they are added.

    Attributes:
        entries: what was there before, in order.
    """

    def __init__(self, folder: Path, plan: Entry, name: str) -> None:
        """Reads the journal of a folder, if there is one; `keep` then goes on with it, or begins one.

        Raises StoreError where the journal there is that of another plan; `name` is the dataset's, in
        the message.
        """
        self._path = folder / FILE
        self._plan = plan
        lines = list(_lines(self._path))
        if lines and lines[0] != plan:
            differing = sorted(key for key in plan | lines[0] if plan.get(key) != lines[0].get(key))
            hint = "without resume=True, or --resume, it starts anew"
            expected = "the build that was begun"
            got = f"another {', '.join(differing)}"
            raise StoreError(Problem(where=name, expected=expected, got=got, hint=hint))
        self.entries = lines[1:]

    def keep(self, count: int) -> None:
        """Goes on behind the first `count` entries, which are true still; the rest is forgotten."""
        self.entries = self.entries[:count]
        atomic_write(self._path, b"".join(map(_line, [self._plan, *self.entries])))

    def add(self, entry: Entry) -> None:
        """Appends a line."""
        with self._path.open("ab") as file:
            file.write(_line(entry))
            sync(file)


def _line(entry: Entry) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def _lines(path: Path) -> Iterator[Entry]:
    """The whole lines; nothing behind the first that is none can be trusted."""
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
