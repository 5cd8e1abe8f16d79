"""Shards: their number, the rows of each, and how they are written.

`write_shards` is a task, as `encode_part` is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np

from recordspec.errors import RecordError
from recordspec.locations import sync_file
from recordspec.schema.row_blocks import blocks_of, rows_of_blocks
from recordspec.schema.schema import Schema
from recordspec.store import key_hashes
from recordspec.store.manifest import INDEX, KEYS, PIECES, Shard
from recordspec.store.shard_file import ShardFile
from recordspec.store.shard_names import ShardName
from recordspec.wire.arrays import Ints, binary_array, buffer_of, offsets, sizes_of
from recordspec.wire.hashes import Words
from recordspec.wire.tfrecord import scan_chunks
from recordspec.writing.build_plan import BuildPlan
from recordspec.writing.encoded_rows import ColumnRows, EncodedRows, RecordRows, joined_columns
from recordspec.writing.failures import disk_errors
from recordspec.writing.sorter import KEY_HASH, RowRange, Run, SortedSplit, Sorter, read_rows
from recordspec.writing.write_options import ShardSize, Write

# The number of records decoded together to become blocks: the intermediate arrays of more leave the caches.
_DECODED_ROWS = 4096
# TensorFlow's guide to input performance recommends files of 100 MB or more. A power of two can be divided
# evenly among most numbers of workers.
_SMALLEST_AUTO = 64 << 20
# The most chunks of rows, and the most shards, of one task. Large tasks save work: the chunks at both ends of
# a task are merged twice. Small tasks save it after a crash: a resumed build keeps only finished tasks.
_CHUNKS_OF_TASK, _SHARDS_OF_TASK = 4, 256

# The bytes of rows that estimate those of all, and how much the estimate may be wrong.
_ESTIMATED_FROM, _MARGIN = 4 << 20, 0.1

# The shards of each split.
Shards = dict[str, tuple[Shard, ...]]


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
        self._waiting: list[ColumnRows] = []  # rows not in a block yet, fewer than a block has
        self._written = 0  # the number of framed rows

    def add(self, rows: EncodedRows) -> None:
        """Adds rows. Raises RecordError if they cannot form a block."""
        if self._block is None:
            self._file.write(buffer_of(rows.records).data, sizes_of(rows.records), len(rows))
            return
        assert self._schema is not None  # blocks need a schema
        step = max(1, len(rows)) if isinstance(rows, ColumnRows) else _DECODED_ROWS
        for start in range(0, len(rows), step):
            some = rows.part(start, min(start + step, len(rows)))
            self._write_whole_blocks(some.as_columns(self._schema), self._block)

    def close(self, name: str) -> Shard:
        """Finishes the file. Raises StoreError, OSError."""
        if self._waiting and (rest := joined_columns(self._waiting)):
            self._write_blocks(rest, len(rest))
        return self._file.close(name)

    def abandon(self) -> None:
        """Stops writing, and discards the file."""
        self._file.abandon()

    def _write_whole_blocks(self, rows: ColumnRows, size: int) -> None:
        """Writes the blocks that rows complete; only the rows of the first are concatenated."""
        start = -sum(map(len, self._waiting)) % size
        if start > len(rows):
            self._waiting.append(rows)
            return
        if self._waiting:
            self._write_blocks(joined_columns([*self._waiting, rows.part(0, start)]), size)
        stop = len(rows) - (len(rows) - start) % size
        if start < stop:
            self._write_blocks(rows.part(start, stop), size)
        self._waiting = [rows.part(stop, len(rows))] if stop < len(rows) else []

    def _write_blocks(self, rows: ColumnRows, size: int) -> None:
        try:
            blocks = blocks_of(rows.schema, rows.sections, size, len(rows) // size, framed=True)
        except RecordError as error:
            first = self._written + (error.row or 0) * size
            placed = error.at(f"{self._name}: rows {first} to {first + size - 1}")
            raise RecordError(placed.problems) from None  # its `row` is not a row of the source
        self._file.write(buffer_of(blocks).data, sizes_of(blocks), len(rows))
        self._written += len(rows)


class DirectShards:
    """A sink that writes rows directly to their shards: rows that come in their final order.

    Args:
        split: the only split.
        planned: the shards of the split.
    """

    def __init__(self, plan: BuildPlan, split: str, planned: list[ShardRange]) -> None:
        self._plan, self._split = plan, split
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

    def finish(self) -> Shards:
        """Finishes the shards, also those without rows."""
        while len(self._done) < len(self._planned) - 1:
            self._next()
        self._close()
        return {self._split: tuple(self._done)}

    def abandon(self) -> None:
        """Stops writing, and discards the files."""
        self._writer.abandon()

    def _open(self) -> ShardWriter:
        plan, file = self._plan, self._planned[len(self._done)].file
        return ShardWriter(
            plan.output / file, plan.schema, plan.options, file, plan.folder / f"{file}{INDEX}"
        )

    def _close(self) -> None:
        self._done.append(self._writer.close(self._planned[len(self._done)].file))

    def _next(self) -> None:
        self._close()
        self._writer = self._open()


class EstimatedShards:
    """A sink for rows that come in their final order, if their number is known, and the number of shards
    depends on their bytes, which the first rows tell.

    If rows of about as many bytes as expected have the same number of shards, they are written directly to
    them; otherwise they are gathered by a sorter.

    Args:
        split: the only split.
        expected: the number of rows.
    """

    def __init__(self, plan: BuildPlan, split: str, expected: int) -> None:
        self._plan, self._split, self._expected = plan, split, expected
        self._bytes = self._rows = self._count = 0
        self._waiting: list[tuple[EncodedRows, Words]] = []
        self._sink: DirectShards | Sorter | None = None

    def add(self, rows: EncodedRows, numbers: Words, hashed: Words | None, splits: Ints | None) -> None:
        self._bytes += int(rows.sizes.sum())
        self._rows += len(rows)
        if self._sink is not None:
            self._sink.add(rows, numbers, None, None)
            return
        self._waiting.append((rows, numbers))
        if self._bytes >= _ESTIMATED_FROM:
            self._sink = self._chosen()

    def final(self) -> DirectShards | Sorter:
        """The sink of all rows. If the estimate was wrong, the rows are read again. Raises OSError."""
        exact = shard_count(self._plan.options, self._bytes, self._rows)
        if isinstance(self._sink, DirectShards) and self._count != exact:
            return self._gathered(self._sink)
        return self._sink or self._chosen()

    def abandon(self) -> None:
        """Stops writing, and discards the files."""
        if isinstance(self._sink, DirectShards):
            self._sink.abandon()

    def _chosen(self) -> DirectShards | Sorter:
        """The sink of the rows, which has those that waited."""
        options, expected = self._plan.options, self._expected
        margin = 0.0 if self._rows == expected else _MARGIN
        size = self._bytes * expected / max(1, self._rows)
        self._count, most = (
            shard_count(options, int(size * (1 + share)), expected) for share in (-margin, margin)
        )
        sink: DirectShards | Sorter
        if self._count == most:
            planned = shard_ranges(self._split + self._plan.suffix, most, expected, options)
            sink = DirectShards(self._plan, self._split, list(planned))
        else:
            sink = Sorter(self._plan, "rows", in_memory=True)
        for rows, numbers in self._waiting:
            sink.add(rows, numbers, None, None)
        self._waiting = []
        return sink

    def _gathered(self, written: DirectShards) -> Sorter:
        """A sorter with the rows of shards, whose files are deleted."""
        sink, first, schema = Sorter(self._plan, "rows", in_memory=True), 0, self._plan.checked_schema
        for shard in written.finish()[self._split]:
            path = self._plan.output / shard.file
            for chunk in scan_chunks(path):
                rows: EncodedRows
                if self._plan.options.block is None:
                    rows = RecordRows(binary_array(chunk.frames, offsets(chunk.sizes)))
                else:
                    sections, counts = rows_of_blocks(schema, chunk.buffer, chunk.starts, chunk.stops)
                    rows = ColumnRows(schema, int(counts.sum()), sections)
                sink.add(rows, np.arange(first, first + len(rows), dtype=np.uint64), None, None)
                first += len(rows)
            path.unlink()
            (self._plan.folder / f"{shard.file}{INDEX}").unlink(missing_ok=True)
        return sink


@dataclass(frozen=True, kw_only=True)
class ShardTask:
    """Consecutive shards to write: their ranges in the split, and the places of their rows in the runs."""

    shards: tuple[ShardRange, ...]
    rows: RowRange


def shard_tasks(
    plan: BuildPlan, runs: tuple[Run, ...], split: str, done: Collection[str], least: int
) -> tuple[tuple[ShardRange, ...], list[ShardTask]]:
    """The shards of a split, and the tasks that write the shards not done.

    There are at least `least` tasks if there are enough shards.
    """
    rows = SortedSplit(plan, runs, split)
    shards = tuple(shards_of_split(plan, split, rows.bytes, rows.rows))
    of_size = max(1, _CHUNKS_OF_TASK * plan.chunk * len(shards) // max(1, rows.bytes))
    most = min(of_size, _SHARDS_OF_TASK, -(-len(shards) // least))
    tasks: list[ShardTask] = []
    for is_done, some in groupby(shards, lambda shard: shard.file in done):
        missing = () if is_done else tuple(some)
        for first in range(0, len(missing), most):
            together = missing[first : first + most]
            wanted = rows.range(together[0].start, together[-1].stop or 0)
            tasks.append(ShardTask(shards=together, rows=wanted))
    return shards, tasks


def shards_of_split(plan: BuildPlan, split: str, size: int, rows: int) -> Iterator[ShardRange]:
    """The shards of a split of `rows` rows; `size` is the bytes of their framed records."""
    if plan.base is not None and not rows:
        return
    yield from shard_ranges(split + plan.suffix, shard_count(plan.options, size, rows), rows, plan.options)


def write_shards(
    plan: BuildPlan, runs: tuple[Run, ...], task: ShardTask, attempt: str
) -> list[tuple[str, Shard]]:
    """Writes shards. Returns each shard with the name of its file in the plan's folder. Raises StoreError."""
    with disk_errors(plan.name):
        rows = RowStream(read_rows(plan.folder, runs, task.rows))
        return [_write_shard(plan, shard, rows, f"{shard.file}.{attempt}") for shard in task.shards]


def _write_shard(plan: BuildPlan, wanted: ShardRange, rows: RowStream, file: str) -> tuple[str, Shard]:
    keys, index_file = plan.folder / f"{file}{KEYS}", plan.folder / f"{file}{INDEX}"
    writer = ShardWriter(plan.folder / file, plan.schema, plan.options, wanted.file, index_file)
    try:
        for some, index in rows.take((wanted.stop or 0) - wanted.start):
            writer.add(some)
            if plan.options.unique:
                key_hashes.add(keys, index[KEY_HASH])
        if plan.durable:
            sync_file(keys)
        return file, writer.close(wanted.file)
    except BaseException:
        writer.abandon()
        raise


class RowStream:
    """Rows that are read once, in order, and divided among shards."""

    def __init__(self, parts: Iterator[tuple[EncodedRows, Words]]) -> None:
        self._parts = parts
        self._rest: tuple[EncodedRows, Words] | None = None

    def take(self, count: int) -> Iterator[tuple[EncodedRows, Words]]:
        """Yields the next `count` rows, with their index."""
        while count > 0:
            rows, index = self._rest or next(self._parts)
            stop = min(count, len(rows))
            left = (rows.part(stop, len(rows)), index[:, stop:])
            self._rest = left if stop < len(rows) else None
            yield rows.part(0, stop), index[:, :stop]
            count -= stop


def take_over(plan: BuildPlan, file: str, shard: Shard) -> None:
    """Takes over a shard, the hashes of its keys, and its index. A task has written them to the plan's folder
    as `file`, `file.keys` and `file.index`."""
    (plan.folder / file).rename(plan.output / shard.file)
    for suffix in PIECES:
        if (piece := plan.folder / f"{file}{suffix}").exists():
            piece.rename(plan.folder / f"{shard.file}{suffix}")
