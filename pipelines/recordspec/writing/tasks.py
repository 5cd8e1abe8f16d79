"""The tasks of a build: encode a part, write a shard. They are independent of the executor.

A task is a function of values that can be pickled; it writes files under names of its own attempt and
returns what is in them. Only the caller of the task adopts them: a task may run twice, or die half-way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from recordspec.locations import sync_file
from recordspec.spec.options import parse_bytes
from recordspec.spec.schema import Schema
from recordspec.store import key_hashes
from recordspec.store.manifest import LabelCounts, Shard
from recordspec.store.transaction import Transaction
from recordspec.writing.append import ExistingDataset
from recordspec.writing.encoder import Advance, Encoder
from recordspec.writing.failures import disk_errors, source_errors
from recordspec.writing.options import Write
from recordspec.writing.rejects import add_line, lines
from recordspec.writing.shards import ShardRange, ShardWriter, shard_count, shard_ranges
from recordspec.writing.sorter import (
    KEY,
    RowRange,
    Run,
    SortedRun,
    SortedSplit,
    Sorter,
    read_rows,
)
from recordspec.writing.sources.base import SourcePart

# Larger ones sort no faster: the caches are smaller than either. A chunk is a block that the allocator keeps.
_LARGEST_RUN = 256 << 20
_LARGEST_CHUNK = 16 << 20
# The memory of a process without rows, and for the rows being encoded: Python, NumPy and Arrow.
_PROCESS = 200 << 20
_SMALLEST_BUDGET = 32 << 20
# The default memory of each process.
_MEMORY = 512 << 20


def allowance(memory: str | None, jobs: int) -> int:
    """The bytes that a build may use; by default 512 MiB for each process. Raises SpecError."""
    return _processes(jobs) * _MEMORY if memory is None else parse_bytes(memory, "memory")


def budget(memory: str | None, jobs: int) -> int:
    """The bytes of rows that each process may hold, if all may use `memory` together.

    Raises SpecError.
    """
    return max(_SMALLEST_BUDGET, (allowance(memory, jobs) - _processes(jobs) * _PROCESS) // jobs)


def _processes(jobs: int) -> int:
    return jobs + (jobs > 1)  # and the one that gives them work


@dataclass(frozen=True, kw_only=True)
class BuildPlan:
    """The common arguments of all tasks of a build.

    Attributes:
        schema: the schema of the rows; records that are only copied need none.
        options: how rows become shards.
        name: the name of the dataset in messages.
        folder: the folder of the files of tasks.
        budget: the bytes of rows that a task may hold.
        durable: whether files must survive a power failure as soon as a task is done.
        base: the dataset to which rows are appended, if any.
        suffix: the suffix of the split in the names of shards, if a dataset is replaced or added to.
    """

    schema: Schema | None
    options: Write
    name: str
    folder: Path
    budget: int
    durable: bool
    base: ExistingDataset | None = None
    suffix: str = ""

    def added_to(self, transaction: Transaction) -> BuildPlan:
        """The plan of rows that are appended to an existing dataset, whose files are kept."""
        base = ExistingDataset.load(
            transaction.dataset, transaction.existing, self.checked_schema, self.options
        )
        base.put_into(transaction.staging)
        return replace(self, base=base, suffix=base.suffix(transaction.shard_suffix))

    @property
    def checked_schema(self) -> Schema:
        """The schema, where there must be one."""
        assert self.schema is not None
        return self.schema

    @property
    def chunk(self) -> int:
        """Bytes that are put in order at once."""
        return min(_LARGEST_CHUNK, self.budget // 4)

    def sorter(self, stem: str, *, in_memory: bool = False) -> Sorter:
        """A sink that sorts rows as the options say."""
        seed = None if self.options.shuffle is None else self.options.shuffle.seed
        capacity = min(_LARGEST_RUN, self.budget // 2)
        return Sorter(
            self.folder,
            stem,
            capacity,
            seed,
            durable=self.durable,
            in_memory=in_memory,
            as_columns=in_memory and self.options.block is not None,
        )


@dataclass(frozen=True, kw_only=True)
class EncodedPart:
    """A part whose rows are encoded.

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
        """The rows that an encoder has encoded, and their files."""
        return cls(
            rows=encoder.rows,
            rejected=encoder.rejected,
            runs=runs,
            rejects=rejects,
            label_counts=encoder.classes.by_split(encoder.splits),
            reasons=encoder.reasons,
        )

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all its files."""
        return (self.rejects, *(name for run in self._stored for name in (run.name, run.index_name)))

    @property
    def bytes(self) -> int:
        """The bytes of the records on disk."""
        return sum(run.bytes for run in self._stored)

    def is_whole(self, folder: Path) -> bool:
        """Whether all its files are there."""
        listed = sum(1 for _ in lines(folder / self.rejects))
        return listed == self.rejected and all(run.is_whole(folder) for run in self._stored)

    @property
    def _stored(self) -> list[SortedRun]:
        return [run for run in self.runs if isinstance(run, SortedRun)]


def encode_part(
    plan: BuildPlan, number: int, part: SourcePart, attempt: str, advance: Advance | None = None
) -> EncodedPart:
    """Encodes part `number` of a source. Raises RecordError, WriteError, StoreError."""
    stem = f"part-{number:05d}.{attempt}"
    rejects = f"{stem}.rejects"
    sink = plan.sorter(stem)
    schema = plan.checked_schema
    encoder = Encoder(schema, plan.options, sink, partial(add_line, plan.folder / rejects), plan.name)
    encoder.begin(number, part.place)
    for batch in source_errors(part.batches(schema, plan.options.columns), plan.name):
        encoder.add(batch, advance)
    with disk_errors(plan.name):
        runs = sink.finish(encoder.splits)
        if plan.durable:
            sync_file(plan.folder / rejects)
    return EncodedPart.of(encoder, runs, rejects)


@dataclass(frozen=True, kw_only=True)
class ShardTask:
    """A shard to write: its place among those of its split, and its rows in the runs."""

    shard: ShardRange
    rows: RowRange


def shard_tasks(plan: BuildPlan, runs: tuple[Run, ...], splits: tuple[str, ...]) -> Iterator[ShardTask]:
    """The shards of every split."""
    shuffled = plan.options.shuffle is not None
    for split in splits:
        rows = SortedSplit(plan.folder, runs, split, shuffled=shuffled, chunk=plan.chunk)
        for shard in shards_of_split(plan, split, rows.bytes, rows.rows):
            yield ShardTask(shard=shard, rows=rows.range(shard.start, shard.stop or 0))


def shards_of_split(plan: BuildPlan, split: str, size: int, rows: int) -> Iterator[ShardRange]:
    """The shards of a split whose rows have these bytes, with room for their frames."""
    if plan.base is not None and not rows:
        return
    yield from shard_ranges(split + plan.suffix, shard_count(plan.options, size, rows), rows, plan.options)


def write_shard(
    plan: BuildPlan, runs: tuple[Run, ...], task: ShardTask, attempt: str
) -> tuple[ShardTask, str, Shard]:
    """Writes a shard; the name of its file in the plan's folder, and what is in it. Raises StoreError."""
    file = f"{task.shard.file}.{attempt}"
    keys = plan.folder / f"{file}.keys"
    with disk_errors(plan.name):
        writer = ShardWriter(plan.folder / file, plan.schema, plan.options, task.shard.file)
        try:
            for rows, index in read_rows(plan.folder, plan.schema, runs, task.rows):
                writer.add(rows)
                if plan.options.unique:
                    key_hashes.add(keys, index[KEY])
            if plan.durable:
                sync_file(keys)
            return task, file, writer.close(task.shard.file)
        except BaseException:
            writer.abandon()
            raise
