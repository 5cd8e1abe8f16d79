"""Shards: how many there are, which rows each has, and their files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from recordspec.errors import RecordError
from recordspec.spec.blocks import block_of_records
from recordspec.spec.schema import Schema
from recordspec.store.manifest import Shard
from recordspec.store.shard_file import ShardFile
from recordspec.store.shards import ShardName, auto_count
from recordspec.wire import framing
from recordspec.wire.strings import Ints, Strings
from recordspec.writing import shuffle
from recordspec.writing.encoding import Words
from recordspec.writing.options import ShardSize, Write


def shard_count(options: Write, size: int, rows: int) -> int:
    """How many shards a split of so many bytes and rows has."""
    shards = options.shards
    if isinstance(shards, ShardSize):
        return max(1, min(rows, round(size / shards.bytes)))
    return auto_count(size, rows) if shards == "auto" else shards


@dataclass(frozen=True, kw_only=True)
class Span:
    """The rows `start` to `stop` of a split, which make one shard (stop is None: all from there on)."""

    file: str
    start: int
    stop: int | None


def spans(split: str, count: int, rows: int | None, options: Write) -> Iterator[Span]:
    """The shards of a split; their rows differ by one at most. Of a single one, `rows` need not be known."""
    bounds = [0, None] if rows is None else [rows * index // count for index in range(count + 1)]
    for index, (start, stop) in enumerate(pairwise(bounds)):
        assert start is not None
        name = ShardName(split=split, index=index, count=count)
        yield Span(file=name.file(options.compression), start=start, stop=stop)


class ShardWriter:
    """Writes the rows of a shard in the layout of the dataset.

    Args:
        name: of the shard, in messages.
    """

    def __init__(self, path: Path, schema: Schema | None, options: Write, name: str) -> None:
        self._file = ShardFile(path, options.compression)
        self._schema, self._block, self._name = schema, options.block, name
        self._waiting: list[Strings] = []  # rows that no block has yet
        self._written = 0  # rows that a block has
        self.rows = 0

    def add(self, records: Strings) -> None:
        """Takes framed records, one a row. Raises RecordError where rows make no block."""
        self.rows += len(records)
        if self._block is None:
            self._file.write(records.buffer.data, len(records), len(records))
            return
        self._waiting.append(records)
        held = Strings.joined(self._waiting) if len(self._waiting) > 1 else records
        whole = len(held) - len(held) % self._block
        self._write_blocks(held.part(0, whole))
        self._waiting = [held.part(whole, len(held))]

    def close(self, name: str) -> Shard:
        """Finishes the file. Raises StoreError, OSError."""
        for rest in self._waiting:
            self._write_blocks(rest)
        return self._file.close(name)

    def abandon(self) -> None:
        """Stops writing: nobody will have the file."""
        self._file.abandon()

    def _write_blocks(self, records: Strings) -> None:
        for start in range(0, len(records), self._block or 1):
            rows = records.part(start, min(start + (self._block or 1), len(records)))
            assert self._schema is not None  # blocks cannot be made without
            try:
                block = block_of_records(self._schema, rows.inner(framing.HEADER_BYTES, framing.FOOTER_BYTES))
            except RecordError as error:
                last = self._written + len(rows) - 1
                placed = error.at(f"{self._name}: rows {self._written} to {last}")
                raise RecordError(placed.problems) from None  # its row is none of the source
            self._file.write(framing.framed(block), 1, len(rows))
            self._written += len(rows)


class DirectSink:
    """A sink for rows that come in their final order: their shards are known, and written at once."""

    def __init__(self, folder: Path, schema: Schema, options: Write, planned: list[Span]) -> None:
        self._folder, self._schema, self._options = folder, schema, options
        # rows too many go to the last: in the end their number is seen to be wrong
        self._planned = [*planned[:-1], replace(planned[-1], stop=None)]
        self._done: list[Shard] = []
        self._row = 0
        self._writer = self._opened()

    def add(
        self, records: Strings, numbers: Words, hashed: shuffle.Hashes | None, splits: Ints | None
    ) -> None:
        start = 0
        while start < len(records):
            last = self._planned[len(self._done)].stop
            stop = len(records) if last is None else min(len(records), start + last - self._row)
            self._writer.add(records.part(start, stop) if (start, stop) != (0, len(records)) else records)
            self._row += stop - start
            start = stop
            if self._row == last:
                self._next()

    def finish(self) -> tuple[Shard, ...]:
        """The shards, once all rows are there."""
        while len(self._done) < len(self._planned) - 1:
            self._next()
        self._close()
        return tuple(self._done)

    def abandon(self) -> None:
        """Stops writing: nobody will have the files."""
        self._writer.abandon()

    def _opened(self) -> ShardWriter:
        file = self._planned[len(self._done)].file
        return ShardWriter(self._folder / file, self._schema, self._options, file)

    def _close(self) -> None:
        self._done.append(self._writer.close(self._planned[len(self._done)].file))

    def _next(self) -> None:
        self._close()
        self._writer = self._opened()
