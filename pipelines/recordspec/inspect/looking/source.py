"""The records of files, in order: many at once, or single ones by number. Of block shards, their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recordspec.errors import Problem, RecordError, SpecError
from recordspec.inspect.apart import are_blocks, taken_apart
from recordspec.inspect.index import records
from recordspec.store.files import schema_beside
from recordspec.store.manifest import Manifest, find
from recordspec.store.shards import Files, expand
from recordspec.wire import file_types, framing, proto, tfrecord
from recordspec.wire.record_batch import RecordBatch, decode
from recordspec.wire.strings import Bytes, Ints, Strings
from recordspec.wire.tfrecord import Chunk, Record

if TYPE_CHECKING:
    from recordspec.spec.schema import Schema

# So many records of each file tell what the others are like.
FIRST = 1000


@dataclass(frozen=True, kw_only=True)
class Part:
    """Records of a file, or rows of its blocks, in a buffer.

    Attributes:
        path: of the file.
        numbers: of each in the file, int64 `[n]`.
        buffer: uint8 `[bytes]`.
        starts, stops: of each in the buffer, int64 `[n]`.
        offsets: the byte of the file (or of what it inflates to) where each record begins; None of rows.
    """

    path: Path
    numbers: Ints
    buffer: Bytes
    starts: Ints
    stops: Ints
    offsets: Ints | None

    def __len__(self) -> int:
        return len(self.numbers)

    def at(self, which: Ints) -> Part:
        """Some of them."""
        kept = None if self.offsets is None else self.offsets[which]
        return replace(
            self,
            numbers=self.numbers[which],
            starts=self.starts[which],
            stops=self.stops[which],
            offsets=kept,
        )

    def data(self, index: int) -> bytes:
        return self.buffer[self.starts[index] : self.stops[index]].tobytes()

    def place(self, index: int) -> str:
        """How messages name it."""
        number = int(self.numbers[index])
        if self.offsets is None:
            return f"{self.path}: row {number}"
        return f"{self.path}: {framing.place(number, int(self.offsets[index]))}"

    def error_of_list(self, decoded: RecordBatch) -> RecordError | None:
        """The error of the first ExampleListWithContext, whose features are no columns."""
        for row in sorted(decoded.broken):
            found = proto.list_with_context(self.data(row))
            if found is not None:
                return RecordError(found.problem.at(self.place(row)), row)
        return None

    def decode(self) -> RecordBatch:
        return decode(self.buffer, self.starts, self.stops, sequence=None)


class Source:
    """The records that some files hold together.

    Args:
        files: paths, folders or patterns.
        schema: of the records; without one, blocks are taken apart by the schema that lies beside them.
        taken_apart: whether blocks are, where there is a schema.

    Raises StoreError without files.
    """

    def __init__(self, files: Files, schema: Schema | None = None, *, taken_apart: bool = True) -> None:
        self.paths = expand(files)
        self._given, self._taken_apart = schema, taken_apart
        self._counts: dict[Path, int] = {}
        self._blocks: dict[Path, bool] = {}

    @cached_property
    def manifest(self) -> Manifest | None:
        """What lies beside the files, where they lie in one folder."""
        return find(self.paths)

    @cached_property
    def schema(self) -> Schema | None:
        """What the records are, as far as somebody says so."""
        if self._given is not None:
            return self._given
        return schema_beside(self.paths[0].parent, self.manifest)

    def are_blocks(self, path: Path) -> bool:
        """Whether a record of a file holds many rows: as the manifest says, or the first of them."""
        if path not in self._blocks:
            self._blocks[path] = are_blocks(path, self.manifest)
        return self._blocks[path]

    def schema_of(self, path: Path) -> Schema | None:
        """What the blocks of a file are taken apart by, if they are."""
        return self.schema if self._taken_apart and self.are_blocks(path) else None

    def parts(self) -> Iterator[Part]:
        """All of them. Raises RecordError where one cannot be read, behind those before it."""
        for path in self.paths:
            yield from self.parts_of(path)

    def starts(self, most: int | None = FIRST) -> Iterator[Part]:
        """The first `most` of each file; None means all."""
        for path in self.paths:
            yield from _first(self.parts_of(path), most)

    def count(self, path: Path) -> int:
        """How many a file has."""
        if path not in self._counts:
            rows = self.schema_of(path) is not None
            self._counts[path] = sum(map(len, self.parts_of(path))) if rows else tfrecord.count(path)
        return self._counts[path]

    def pick(self, numbers: Sequence[int]) -> Iterator[Part]:
        """Those of these numbers, rising, counted through all the files; each alone. Nothing behind the last
        of them need be whole.

        Raises SpecError for a number that none has.
        """
        first = 0
        left = list(numbers)
        for path in self.paths if left and left[0] >= 0 else ():
            for part in self._picked(path, [number - first for number in left]):
                yield part
                del left[0]
            if not left:
                return
            first += self.count(path)
        if left:
            total = sum(map(self.count, self.paths))
            expected = f"a number from 0 to {total - 1}" if total else "a record"
            got = str(left[0] if left[0] < 0 else left[-1]) if total else "files without any"
            raise SpecError(Problem(path=("record",), expected=expected, got=got))

    def _picked(self, path: Path, numbers: list[int]) -> Iterator[Part]:
        """Those of one file, as far as it has them."""
        if self.schema_of(path) is None and file_types.compression_of(path) == "none":
            with suppress(SpecError):  # the others are in the files behind
                yield from (_part_of_record(path, record) for record in records(path, numbers))
            return
        count = 0
        for part in self.parts_of(path):
            wanted = np.flatnonzero(np.isin(part.numbers, numbers))
            yield from (part.at(wanted[place : place + 1]) for place in range(len(wanted)))
            count += len(part)
            if count > numbers[-1]:
                return
        self._counts[path] = count

    def parts_of(self, path: Path) -> Iterator[Part]:
        """Those of one file."""
        schema = self.schema_of(path)
        number = 0
        for chunk in tfrecord.scan_chunks(path):
            if schema is None:
                part = _part(path, chunk)
            else:
                part = _part_of_rows(path, _rows(schema, path, chunk), number)
            yield part
            number += len(part)


def _first(parts: Iterator[Part], most: int | None) -> Iterator[Part]:
    left = most
    for part in parts:
        if left is None:
            yield part
            continue
        yield part.at(np.arange(min(left, len(part))))
        left -= len(part)
        if left <= 0:
            return


def _part(path: Path, chunk: Chunk) -> Part:
    return Part(
        path=path,
        numbers=np.arange(len(chunk.starts)) + chunk.number,
        buffer=chunk.buffer,
        starts=chunk.starts,
        stops=chunk.stops,
        offsets=chunk.offsets,
    )


def _part_of_record(path: Path, record: Record) -> Part:
    return Part(
        path=path,
        numbers=np.array([record.number]),
        buffer=np.frombuffer(record.data, np.uint8),
        starts=np.array([0]),
        stops=np.array([len(record.data)]),
        offsets=np.array([record.offset]),
    )


def _part_of_rows(path: Path, rows: Strings, number: int) -> Part:
    return Part(
        path=path,
        numbers=np.arange(len(rows)) + number,
        buffer=rows.buffer,
        starts=rows.offsets[:-1],
        stops=rows.offsets[1:],
        offsets=None,
    )


def _rows(schema: Schema, path: Path, chunk: Chunk) -> Strings:
    """The rows of all blocks of a chunk. Raises RecordError where they are none of the schema."""
    found = taken_apart(schema, path, chunk)
    if found.broken:
        raise found.broken[0]
    return found.rows
