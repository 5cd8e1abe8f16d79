"""Shards: their number, the rows of each, and how they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from recordspec.errors import RecordError
from recordspec.progress import Progress
from recordspec.schema.row_blocks import blocks_of
from recordspec.schema.schema import Schema
from recordspec.store.manifest import INDEX, LabelCounts, Shard
from recordspec.store.shard_file import ShardFile
from recordspec.store.shard_names import ShardName
from recordspec.wire.arrays import Ints, buffer_of, sizes_of
from recordspec.wire.hashes import Words
from recordspec.writing.build_plan import BuildPlan
from recordspec.writing.encoded_rows import EncodedRows
from recordspec.writing.write_options import ShardSize, Write

# The number of records decoded together to become blocks: the intermediate arrays of more leave the caches.
_DECODED_ROWS = 4096
# TensorFlow's guide to input performance recommends files of 100 MB or more. A power of two can be divided
# evenly among most numbers of workers.
_SMALLEST_AUTO = 64 << 20


def shard_count(options: Write, size: int, rows: int) -> int:
    """The number of shards of a split with `size` bytes and `rows` rows. `auto` is a power of two that yields
    shards of 64 to 128 MiB, but at most the number of rows."""
    shards = options.shards
    if isinstance(shards, ShardSize):
        return max(1, min(rows, round(size / shards.bytes)))
    if shards != "auto":
        return shards
    return max(1, min(1 << max(0, (size // _SMALLEST_AUTO).bit_length() - 1), rows))


@dataclass(frozen=True, kw_only=True)
class ShardRange:
    """The rows `start` to `stop` of a split, which form one shard. If `stop` is None, the range is open."""

    file: str
    start: int
    stop: int | None


def shard_ranges(split: str, count: int, rows: int | None, options: Write) -> Iterator[ShardRange]:
    """Yields the shards of a split. Their numbers of rows differ by at most one. `rows` may be None if
    `count` is 1."""
    bounds = [0, None] if rows is None else [rows * index // count for index in range(count + 1)]
    for index, (start, stop) in enumerate(pairwise(bounds)):
        assert start is not None
        name = ShardName(split=split, index=index, count=count)
        yield ShardRange(file=name.file(options.compression), start=start, stop=stop)


class ShardWriter:
    """Writes the rows of a shard in the layout of the dataset: as framed rows, or as framed blocks.

    Args:
        name: the name of the shard in messages.
        index: the file of the index of the shard.
    """

    def __init__(self, path: Path, schema: Schema | None, options: Write, name: str, index: Path) -> None:
        self._file = ShardFile(path, options.compression, index)
        self._schema, self._block, self._name = schema, options.block, name
        self._waiting: list[EncodedRows] = []  # rows not in a block yet
        self._written = 0  # the number of framed rows

    def add(self, rows: EncodedRows) -> None:
        """Adds rows. Raises RecordError if they cannot form a block."""
        if self._block is None:
            self._file.write(buffer_of(rows.records).data, sizes_of(rows.records), len(rows))
            return
        step = max(1, len(rows)) if rows.is_decoded else _DECODED_ROWS
        for start in range(0, len(rows), step):
            self._waiting.append(rows.part(start, min(start + step, len(rows))))
            self._write_whole_blocks(self._block)

    def close(self, name: str) -> Shard:
        """Finishes the file. Raises StoreError, OSError."""
        if self._waiting and (rest := EncodedRows.joined(self._waiting)):
            self._write_blocks(rest, len(rest))
        return self._file.close(name)

    def abandon(self) -> None:
        """Stops writing, and discards the file."""
        self._file.abandon()

    def _write_whole_blocks(self, size: int) -> None:
        if sum(map(len, self._waiting)) < size:
            return
        rows = EncodedRows.joined(self._waiting)
        whole = len(rows) - len(rows) % size
        self._write_blocks(rows.part(0, whole), size)
        self._waiting = [rows.part(whole, len(rows))] if whole < len(rows) else []

    def _write_blocks(self, rows: EncodedRows, size: int) -> None:
        assert self._schema is not None  # blocks need a schema
        try:
            blocks = blocks_of(self._schema, rows.sections, size, len(rows) // size, framed=True)
        except RecordError as error:
            first = self._written + (error.row or 0) * size
            placed = error.at(f"{self._name}: rows {first} to {first + size - 1}")
            raise RecordError(placed.problems) from None  # its `row` is not a row of the source
        self._file.write(buffer_of(blocks).data, sizes_of(blocks), len(rows))
        self._written += len(rows)


class DirectShards:
    """Writes rows that come in their final order directly to shards. Is both the sink and the sharding.

    Args:
        folder: the folder of the shards.
        split: the only split.
        planned: the shards of the split.
    """

    def __init__(self, plan: BuildPlan, folder: Path, split: str, planned: list[ShardRange]) -> None:
        self._plan, self._folder, self._split = plan, folder, split
        # excess rows go to the last shard; the number of rows is checked at the end
        self._planned = [*planned[:-1], replace(planned[-1], stop=None)]
        self._done: list[Shard] = []
        self._row = 0
        self._writer = self._open()

    def add(self, rows: EncodedRows, numbers: Words, hashed: Words | None, splits: Ints | None) -> None:
        start = 0
        while start < len(rows):
            last = self._planned[len(self._done)].stop
            stop = len(rows) if last is None else min(len(rows), start + last - self._row)
            self._writer.add(rows.part(start, stop))
            self._row += stop - start
            start = stop
            if self._row == last:
                self._next()

    def duplicate_keys(self) -> None:
        """Finds none: rows with unique keys are sorted, and do not come here."""

    def move_copies(self, bar: Progress) -> LabelCounts:
        return {}  # copies stay in place: rows keep their order, and there is one split

    def write(self, bar: Progress) -> dict[str, tuple[Shard, ...]]:
        while len(self._done) < len(self._planned) - 1:
            self._next()
        self._close()
        return {self._split: tuple(self._done)}

    def abandon(self) -> None:
        """Stops writing, and discards the files."""
        self._writer.abandon()

    def _open(self) -> ShardWriter:
        file = self._planned[len(self._done)].file
        index = self._plan.folder / f"{file}{INDEX}"
        return ShardWriter(self._folder / file, self._plan.schema, self._plan.options, file, index)

    def _close(self) -> None:
        self._done.append(self._writer.close(self._planned[len(self._done)].file))

    def _next(self) -> None:
        self._close()
        self._writer = self._open()
