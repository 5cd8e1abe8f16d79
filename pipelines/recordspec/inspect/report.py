"""What was found of records that do not fit, or cannot be read: counted, with the first of each sort."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recordspec.errors import Path as Place
from recordspec.errors import Problem, show_path
from recordspec.inspect.fitting import Code

# Keys that no schema has are kept up to so many: data may have a new one in every record.
MOST_UNKNOWN = 1000


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A record that does not fit, or that cannot be read.

    Attributes:
        path: of the file.
        record: its number.
        offset: the byte where it begins; in a compressed file, of the uncompressed ones.
        problem: placed at file and record.
    """

    path: Path
    record: int
    offset: int
    problem: Problem

    def dump(self) -> dict[str, Any]:
        """For JSON, and for a table."""
        place = {"file": str(self.path), "record": self.record, "byte": self.offset}
        return place | dump_problem(self.problem)


def dump_problem(problem: Problem) -> dict[str, str]:
    """For JSON."""
    texts = {"expected": problem.expected, "got": problem.got, "hint": problem.hint}
    return {"feature": show_path(problem.path), **texts}


@dataclass(kw_only=True)
class Group:
    """Faults of one feature and one sort.

    Attributes:
        count: how many rows have any.
        found: what they have instead, a few of all: a kind of list, or numbers of values.
        examples: the first of them.
    """

    code: Code
    path: Place
    count: int = 0
    found: set[str | int] = field(default_factory=set)
    examples: list[Fault] = field(default_factory=list)


@dataclass(kw_only=True)
class Key:
    """What stands under a key.

    Attributes:
        rows: how many have it.
        kinds: of its lists.
    """

    rows: int = 0
    kinds: set[str] = field(default_factory=set)


@dataclass(kw_only=True)
class Report:
    """What was found in files.

    Attributes:
        files: how many they are.
        rows: all that were found, whole or not. What is lost behind a broken length is not among them.
        unfit: the rows that do not fit the schema, or cannot be read.
        lost: rows that should be there, as a manifest says, and are not.
        whole: the rows that can be read at all.
        groups: the faults, by feature and sort.
        empty: features that rows have without any values, and in how many rows.
        unknown: keys that the schema does not have. Reading passes them over.
        more: whether there are more of them than are kept.
        present: keys of the schema that rows have.
        absent: features of the schema with a key that no row has.
    """

    files: int = 0
    rows: int = 0
    unfit: int = 0
    lost: int = 0
    whole: int = 0
    groups: dict[tuple[Place, Code], Group] = field(default_factory=dict)
    empty: dict[Place, int] = field(default_factory=dict)
    unknown: dict[Place, Key] = field(default_factory=dict)
    more: bool = False
    present: set[Place] = field(default_factory=set)
    absent: tuple[Problem, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether all rows can be read, and some have each feature."""
        return not self.groups and not self.absent

    @property
    def faults(self) -> Iterator[Fault]:
        """The first of each sort."""
        return (fault for group in self.groups.values() for fault in group.examples)

    def add(
        self, code: Code, path: Place, count: int, faults: list[Fault], found: Iterable[str | int] = ()
    ) -> None:
        """Counts faults of a feature and keeps these examples."""
        group = self.groups.setdefault((path, code), Group(code=code, path=path))
        group.count += count
        group.examples += faults
        group.found |= set(found)

    def merge(self, other: Report, most: int) -> None:
        """Adds what was found behind it, of the examples of each sort up to so many."""
        self.files += other.files
        self.rows += other.rows
        self.unfit += other.unfit
        self.lost += other.lost
        self.whole += other.whole
        self.present |= other.present
        for group in other.groups.values():
            room = self.room(group.code, group.path, most)
            self.add(group.code, group.path, group.count, group.examples[:room], group.found)
        for path, rows in other.empty.items():
            self.add_empty(path, rows)
        for path, key in other.unknown.items():
            self.add_unknown(path, key.rows, key.kinds)
        self.more |= other.more

    def add_empty(self, path: Place, rows: int) -> None:
        """Counts rows that have a feature without any values."""
        self.empty[path] = self.empty.get(path, 0) + rows

    def add_unknown(self, path: Place, rows: int, kinds: set[str]) -> None:
        """Counts rows that have a key which the schema does not have."""
        if path not in self.unknown and len(self.unknown) >= MOST_UNKNOWN:
            self.more = True
            return
        key = self.unknown.setdefault(path, Key())
        key.rows += rows
        key.kinds |= kinds

    def room(self, code: Code, path: Place, most: int) -> int:
        """How many examples may still be kept, of so many."""
        group = self.groups.get((path, code))
        return most if group is None else most - len(group.examples)

    def dump(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "files": self.files,
            "rows": self.rows,
            "unfit": self.unfit,
            "lost": self.lost,
            "faults": [
                {
                    "feature": show_path(group.path),
                    "fault": group.code,
                    "rows": group.count,
                    "examples": [fault.dump() for fault in group.examples],
                }
                for group in self.groups.values()
            ],
            "absent": [dump_problem(problem) for problem in self.absent],
            "empty": {show_path(path): rows for path, rows in self.empty.items()},
            "unknown": {
                show_path(path): {"rows": key.rows, "kinds": sorted(key.kinds)}
                for path, key in self.unknown.items()
            },
            "more unknown": self.more,
        }
