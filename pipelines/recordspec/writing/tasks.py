"""The tasks of a build: encode a part, write shards. Tasks are independent of the executor.

A task is a function of values that can be pickled. It writes files with the attempt in their names, and
returns a description of them. A task may run twice, or die half-way: only its caller takes the files over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from recordspec.locations import sync_file
from recordspec.store import key_hashes
from recordspec.store.manifest import INDEX, KEYS, LabelCounts, Shard
from recordspec.wire.hashes import Words
from recordspec.writing.build_plan import BuildPlan
from recordspec.writing.encoded_rows import EncodedRows
from recordspec.writing.failures import disk_errors, source_errors
from recordspec.writing.rejects import add_line, lines
from recordspec.writing.row_encoder import Advance, Encoder, no_progress
from recordspec.writing.sharding import ShardRange, ShardWriter, shard_count, shard_ranges
from recordspec.writing.sorter import (
    KEY_HASH,
    RowRange,
    Run,
    SortedRun,
    SortedSplit,
    Sorter,
    read_rows,
)
from recordspec.writing.sources.base import SourcePart

# The most chunks of rows, and the most shards, of one task. Large tasks save work: the chunks at both ends of
# a task are merged twice. Small tasks save it after a crash: a resumed build keeps only finished tasks.
_CHUNKS_OF_TASK, _SHARDS_OF_TASK = 4, 256


@dataclass(frozen=True, kw_only=True)
class EncodedPart:
    """An encoded part of a source.

    Attributes:
        rows: the number of valid rows.
        rejected: the number of invalid rows.
        runs: the runs of the valid rows.
        rejects: the name of the file that lists the invalid rows.
        label_counts: the classes of the valid rows; empty if they are not counted.
        reasons: the locations of the first invalid rows, each with its first problem.
    """

    rows: int
    rejected: int
    runs: tuple[Run, ...]
    rejects: str
    label_counts: LabelCounts
    reasons: tuple[str, ...] = ()

    @classmethod
    def of(cls, encoder: Encoder, runs: tuple[Run, ...], rejects: str) -> EncodedPart:
        """The part encoded by an encoder, with its files."""
        return cls(
            rows=encoder.rows,
            rejected=encoder.rejected,
            runs=runs,
            rejects=rejects,
            label_counts=encoder.classes.by_split(encoder.splits),
            reasons=encoder.reasons,
        )

    @property
    def seen(self) -> int:
        """The number of rows, valid or not."""
        return self.rows + self.rejected

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all files of the part."""
        return (self.rejects, *(name for run in self._stored for name in (run.name, run.index_name)))

    @property
    def bytes(self) -> int:
        """The bytes of the records on disk."""
        return sum(run.bytes for run in self._stored)

    def is_whole(self, folder: Path) -> bool:
        """Whether all files of the part exist and are complete."""
        listed = sum(1 for _ in lines(folder / self.rejects))
        return listed == self.rejected and all(run.is_whole(folder) for run in self._stored)

    @property
    def _stored(self) -> list[SortedRun]:
        return [run for run in self.runs if isinstance(run, SortedRun)]


def encode_part(
    plan: BuildPlan, number: int, part: SourcePart, attempt: str, advance: Advance = no_progress
) -> EncodedPart:
    """Encodes part `number` of a source. Raises RecordError, WriteError, StoreError."""
    stem = f"part-{number:05d}.{attempt}"
    rejects = f"{stem}.rejects"
    sink = Sorter(plan, stem)
    encoder = Encoder(plan, sink, partial(add_line, plan.folder / rejects))
    encoder.begin(number, part.place)
    for batch in source_errors(part.batches(plan.checked_schema, plan.options.columns), plan.name):
        encoder.add(batch, advance)
    with disk_errors(plan.name):
        runs = sink.finish(encoder.splits)
        if plan.durable:
            sync_file(plan.folder / rejects)
    return EncodedPart.of(encoder, runs, rejects)


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
        rows = RowStream(read_rows(plan.folder, plan.schema, runs, task.rows))
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
