"""Predefined splits: each has its own source."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from recordspec.errors import RecordError
from recordspec.locations import Location
from recordspec.schema.schema import Schema
from recordspec.writing.sources.base import Batches, Source, SourcePart, leave_out


@dataclass(frozen=True, kw_only=True)
class SplitSources:
    """The rows of several sources, one after another; each source is a split.

    Attributes:
        sources: the sources by the name of the split.
        column: the extra name of the split of each row; no source has it.
        limit: the largest number of rows of each split.
    """

    sources: Mapping[str, Source]
    column: str = "split"
    limit: int | None = None

    @property
    def paths(self) -> tuple[Location, ...]:
        """The files of all sources that have files."""
        return tuple(path for source in self.sources.values() for path in getattr(source, "paths", ()))

    @property
    def rows(self) -> int | None:
        counts = [source.rows for source in self.sources.values()]
        if None in counts:
            return None
        known = [count or 0 for count in counts]
        return sum(known if self.limit is None else (min(count, self.limit) for count in known))

    @cached_property
    def notes(self) -> list[str]:
        return []

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[SplitPart]:
        rest = tuple(name for name in extra if name != self.column)
        for split, source in self.sources.items():
            left = None if self.limit is None else RowsLeft(self.limit)
            for part in source.parts(schema, rest):
                yield SplitPart(split=split, column=self.column, part=part, left=left)
            self.notes.extend(note for note in source.notes if note not in self.notes)

    def identity(self) -> Any:
        identities = [[split, source.identity()] for split, source in self.sources.items()]
        return None if any(one is None for _, one in identities) else identities

    def without(self, names: Collection[str]) -> SplitSources:
        """The rows without the values of the given names."""
        return replace(self, sources={split: leave_out(one, names) for split, one in self.sources.items()})

    def beside(self, names: Collection[str]) -> SplitSources:
        """The source with a `column` that differs from the given names."""
        column = self.column
        while column in names:
            column += "_"
        return replace(self, column=column)


@dataclass
class RowsLeft:
    """The number of rows still to be read from a split, whose parts are read one after another."""

    count: int

    def take(self, rows: int) -> int:
        """Returns how many of `rows` rows are read."""
        taken = min(rows, self.count)
        self.count -= taken
        return taken


@dataclass(frozen=True, kw_only=True)
class SplitPart:
    """A part of a source whose rows are all in one split; `left` limits them."""

    split: str
    column: str
    part: SourcePart
    left: RowsLeft | None = None

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        rest = tuple(name for name in extra if name != self.column)
        if self.left is not None and not self.left.count:
            return
        for batch in self.part.batches(schema, rest):
            rows = 1 if isinstance(batch, RecordError) else batch.rows
            taken = rows if self.left is None else self.left.take(rows)
            if isinstance(batch, RecordError):
                yield batch
            else:
                values = {**batch.part(0, taken).values, self.column: [self.split] * taken}
                yield replace(batch, values=values, rows=taken)
            if self.left is not None and not self.left.count:
                return

    def place(self, row: int) -> str:
        return self.part.place(row)
