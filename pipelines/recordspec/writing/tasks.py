"""What a build consists of: parts to encode, then shards to write. No engine is known here.

A task is a function of values that can be pickled; it writes files under names of its own attempt and
returns what is in them. Only who gave the task takes them over: a task may run twice, or die half-way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from recordspec.locations import sync_file
from recordspec.spec.options import parse_bytes
from recordspec.spec.schema import Schema
from recordspec.store import key_hashes
from recordspec.store.manifest import LabelCounts, Shard
from recordspec.store.transaction import Transaction
from recordspec.writing import order
from recordspec.writing.append import Base
from recordspec.writing.encoding import Advance, Encoder
from recordspec.writing.ending import guarded, on_disk
from recordspec.writing.options import Write
from recordspec.writing.order import Cut, Rules
from recordspec.writing.rejects import count
from recordspec.writing.runs import KEY, Run, RunWriter
from recordspec.writing.shards import ShardWriter, Span
from recordspec.writing.sources.base import Part

# Larger ones sort no faster: the caches are smaller than either. A piece is a block that the allocator keeps.
_LARGEST_RUN = 256 << 20
_LARGEST_PIECE = 16 << 20
# What a process has before it has any rows, and for those it is just encoding: Python, NumPy and Arrow.
_PROCESS = 200 << 20
_SMALLEST_BUDGET = 32 << 20
# What each process may use where nobody says so.
_MEMORY = 512 << 20


def allowance(memory: str | None, jobs: int) -> int:
    """The bytes that a build may use; by default 512 MiB for each process. Raises SpecError."""
    return _processes(jobs) * _MEMORY if memory is None else parse_bytes(memory, "memory")


def budget(memory: str | None, jobs: int) -> int:
    """The bytes of rows that each of so many processes may hold, where all may use `memory` together.

    Raises SpecError.
    """
    return max(_SMALLEST_BUDGET, (allowance(memory, jobs) - _processes(jobs) * _PROCESS) // jobs)


def _processes(jobs: int) -> int:
    return jobs + (jobs > 1)  # and the one that gives them work


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What all tasks of a build have in common.

    Attributes:
        schema: what the rows are; records that are only put elsewhere need none.
        options: how they become shards.
        name: of the dataset, in messages.
        folder: where the files of tasks go.
        budget: bytes of rows that a task may hold.
        base: the dataset that rows are added to, if any.
        durable: whether files must last through a power cut as soon as a task is done.
    """

    schema: Schema | None
    options: Write
    name: str
    folder: Path
    budget: int
    durable: bool
    base: Base | None = None

    def added_to(self, transaction: Transaction) -> Plan:
        """The plan of rows that are added to what stands there, whose files are taken over."""
        base = Base.load(transaction.target, self.checked_schema, self.options)
        base.put_into(transaction.staging)
        return replace(self, base=base)

    @property
    def checked_schema(self) -> Schema:
        """The schema, where there must be one."""
        assert self.schema is not None
        return self.schema

    @property
    def rules(self) -> Rules:
        """How rows are ordered."""
        options = self.options
        return Rules(shuffled=options.shuffle is not None, ties=bool(options.keys) and not options.unique)

    @property
    def piece(self) -> int:
        """Bytes that are put in order at once."""
        return min(_LARGEST_PIECE, self.budget // 4)

    def run_writer(self, stem: str) -> RunWriter:
        """A sink that sorts rows as the options say."""
        seed = None if self.options.shuffle is None else self.options.shuffle.seed
        capacity = min(_LARGEST_RUN, self.budget // 2)
        return RunWriter(self.folder, stem, capacity, seed, durable=self.durable)


@dataclass(frozen=True, kw_only=True)
class PartDone:
    """A part that is encoded.

    Attributes:
        rows: how many fit.
        rejected: how many did not.
        runs: where they are.
        rejects: the name of the file that lists those that did not.
        label_counts: the classes of those that fit; empty where nobody counted.
    """

    rows: int
    rejected: int
    runs: tuple[Run, ...]
    rejects: str
    label_counts: LabelCounts

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all its files."""
        return (self.rejects, *(name for run in self.runs for name in (run.name, run.index_name)))

    def is_whole(self, folder: Path) -> bool:
        """Whether all its files are there."""
        listed = count(folder / self.rejects)
        return listed == self.rejected and all(run.is_whole(folder) for run in self.runs)


def encode_part(
    plan: Plan, number: int, part: Part, attempt: str, advance: Advance | None = None
) -> PartDone:
    """Encodes part `number` of a source. Raises RecordError, WriteError, StoreError."""
    stem = f"part-{number:05d}.{attempt}"
    rejects = f"{stem}.rejects"
    sink = plan.run_writer(stem)
    schema = plan.checked_schema
    encoder = Encoder(schema, plan.options, sink, plan.folder / rejects, plan.name)
    encoder.begin(number, part.place)
    for batch in guarded(part.batches(schema, plan.options.columns), plan.name):
        encoder.take(batch, advance)
    with on_disk(plan.name):
        runs = sink.finish(encoder.splits)
        if plan.durable:
            sync_file(plan.folder / rejects)
    return PartDone(
        rows=encoder.rows,
        rejected=encoder.rejected,
        runs=runs,
        rejects=rejects,
        label_counts=encoder.tally.by_split(encoder.splits),
    )


@dataclass(frozen=True, kw_only=True)
class ShardTask:
    """A shard to write: its rows in the runs, and what it is called when it is whole."""

    split: str
    span: Span
    cut: Cut


def write_shard(
    plan: Plan, runs: tuple[Run, ...], task: ShardTask, attempt: str
) -> tuple[ShardTask, str, Shard]:
    """Writes a shard; the name of its file in the plan's folder, and what is in it. Raises StoreError."""
    file = f"{task.span.file}.{attempt}"
    keys = plan.folder / f"{file}.keys"
    with on_disk(plan.name):
        writer = ShardWriter(plan.folder / file, plan.schema, plan.options, task.span.file)
        try:
            for records, index in order.read(plan.folder, runs, task.cut, plan.rules):
                writer.add(records)
                if plan.options.unique:
                    key_hashes.add(keys, index[KEY])
            if plan.durable:
                sync_file(keys)
            return task, file, writer.close(task.span.file)
        except BaseException:
            writer.abandon()
            raise
