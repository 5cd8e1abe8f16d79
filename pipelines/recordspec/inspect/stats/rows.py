"""The rows of files, a chunk at a time: each record is one, or a block that holds many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recordspec.errors import Problem
from recordspec.inspect.apart import taken_apart
from recordspec.wire.hashes import Words, of_records, splitmix64
from recordspec.wire.strings import Bytes, Ints
from recordspec.wire.tfrecord import Chunk, Damage, RecordRange, salvage

if TYPE_CHECKING:
    from recordspec.spec.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Part:
    """Records that are read together.

    Attributes:
        path: of the file.
        file: its number among all files.
        split: that it belongs to.
        stretch: of the file; None for all of it.
        blocks: what its records hold, where they hold many rows; None where each is a row.
    """

    path: Path
    file: int
    split: str
    stretch: RecordRange | None
    blocks: Schema | None


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows that follow each other.

    Attributes:
        part: that they are of.
        chunk: the records that they were in.
        buffer: uint8 `[bytes]`.
        starts, stops: of each in the buffer, as a record, int64 `[n]`.
        records: of each, the place of its record in the chunk, int64 `[n]`.
    """

    part: Part
    chunk: Chunk
    buffer: Bytes
    starts: Ints
    stops: Ints
    records: Ints

    @cached_property
    def places(self) -> Words:
        """A hash of where each stands among all rows of all files: the same in any parts."""
        numbers = (self.records + self.chunk.number).astype(np.uint64)
        of_records = splitmix64(numbers + splitmix64(np.array([self.part.file], np.uint64)))
        if self.part.blocks is None:
            return of_records
        firsts = np.searchsorted(self.records, self.records)
        return splitmix64(of_records + (np.arange(len(self.records)) - firsts).astype(np.uint64))

    @property
    def hashes(self) -> Words:
        """Of the bytes of each, uint64 `[n]`."""
        return of_records(self.buffer, self.starts, self.stops)

    def first(self, count: int) -> Rows:
        """So many of them, from the first."""
        return replace(
            self, starts=self.starts[:count], stops=self.stops[:count], records=self.records[:count]
        )

    def place(self, row: int) -> str:
        """How messages name the record of a row."""
        return f"{self.part.path}: {self.chunk.place(int(self.records[row]))}"


def read(part: Part) -> Iterator[Rows | Problem]:
    """The rows of a part, and a problem in the place of each record that has none to give.

    Raises StoreError where the file cannot be opened.
    """
    for found in salvage(part.path, part.stretch):
        if isinstance(found, Damage):
            yield found.problem
        elif part.blocks is not None:
            yield from _of_blocks(part, part.blocks, found)
        else:
            records = np.arange(len(found.starts))
            yield Rows(
                part=part,
                chunk=found,
                buffer=found.buffer,
                starts=found.starts,
                stops=found.stops,
                records=records,
            )


def _of_blocks(part: Part, schema: Schema, chunk: Chunk) -> Iterator[Rows | Problem]:
    found = taken_apart(schema, part.path, chunk)
    yield from (error.problems[0] for error in found.broken)
    if len(found.broken) < len(chunk):
        yield Rows(
            part=part,
            chunk=chunk,
            buffer=found.rows.buffer,
            starts=found.rows.offsets[:-1],
            stops=found.rows.offsets[1:],
            records=found.records,
        )
