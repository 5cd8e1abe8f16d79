"""Builds on this machine: in this process, or in several."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any

from recordspec.errors import Problem, WriteError, show_text
from recordspec.executors import Executor, SerialExecutor, executor
from recordspec.progress import Progress
from recordspec.remote import RemotePath
from recordspec.schema.options import format_bytes
from recordspec.schema.schema import Schema
from recordspec.store.manifest import LabelCounts, Manifest
from recordspec.writing import rejects
from recordspec.writing.build import BuildSource, check_unchanged, parts_of, place_of, planned_build
from recordspec.writing.build_plan import BuildPlan
from recordspec.writing.checkpoint import Checkpoint
from recordspec.writing.copies import number_copies
from recordspec.writing.failures import BuildStatus, DiskError, SourceError, disk_errors, source_errors
from recordspec.writing.row_encoder import EncodedPart, EncodedParts, Encoder, PlaceOfRow, encode_part
from recordspec.writing.sharding import (
    DirectShards,
    EstimatedShards,
    Shards,
    shard_ranges,
    shard_tasks,
    take_over,
    write_shards,
)
from recordspec.writing.sorter import Sorter, find_duplicate_keys
from recordspec.writing.sources import base
from recordspec.writing.sources.base import Columns
from recordspec.writing.sources.rows import DictRows
from recordspec.writing.write_options import Execution, Write

log = logging.getLogger("recordspec")

# The least number of tasks of a split with which several processes are loaded evenly.
_LEAST_TASKS = 16
# The file that lists the invalid rows found by this process.
_REJECTS = "rows.rejects"


def build_locally(
    schema: Schema | None,
    source: BuildSource,
    directory: str | os.PathLike[str] | RemotePath,
    options: Write,
    execution: Execution,
    *,
    task: Callable[..., EncodedPart] = encode_part,
    **how: Any,
) -> Manifest:
    """Builds a dataset on this machine.

    If the source has several parts and can be read again, each part is encoded by a task with a durable
    result, so that an interrupted build can continue. If rows cannot be read again, or their number is
    limited, this process encodes them as they come, unless there are several processes.

    Args:
        schema: the schema of the rows; None if `task` needs none.
        options: the options of sharding.
        task: encodes a part of the source.
        how: other attributes of `Build`.

    Raises the errors of `write`.
    """
    limit = execution.limit
    identity = source.identity() if limit is None else None
    unlimited = replace(execution, limit=None, jobs=execution.processes)
    build = planned_build(schema, directory, options, unlimited, identity=identity, **how)
    with (
        build.begun() as plan,
        Progress(show=execution.progress) as bar,
        executor(execution.processes, plan.name) as pool,
    ):
        complete = partial(
            build.complete, source=base.name_of(source), duplicate_keys=duplicate_keys, bar=bar
        )
        checkpoint, parts = build.checkpoint, parts_of(source, plan)
        here = pool.in_process and not checkpoint.parts and task is encode_part
        if here and checkpoint.is_durable:
            first = list(islice(parts, 2))
            parts, here = chain(first, parts), len(first) < 2
        if not here:
            return complete(
                plan,
                encode(plan, source, parts, pool, checkpoint, bar, task),
                place=partial(place_of, source, plan),
                shard=partial(shard, pool=pool, checkpoint=checkpoint, bar=bar),
            )
        # the rows of a single part need not be durable: encoding them again takes no longer
        with disk_errors(plan.name):
            checkpoint.drop()
        plan = replace(plan, durable=False)
        with row_encoding(plan, build.status, _known_rows(source, limit)) as rows:
            encoded = _encode_here(plan, source, parts, limit, rows, identity, bar)
            return complete(plan, encoded, place=rows.place, shard=partial(rows.shard, bar=bar))


def encode(
    plan: BuildPlan,
    source: BuildSource,
    parts: Iterable[Any],
    pool: Executor,
    checkpoint: Checkpoint,
    bar: Progress,
    task: Callable[..., EncodedPart] = encode_part,
) -> Iterator[EncodedPart]:
    """Encodes the parts of a source by tasks of a pool, except for the parts that the checkpoint has already.
    Yields each part, in the order of the source."""
    done, noted = list(checkpoint.parts), False
    rows, size = sum(part.seen for part in done), sum(part.bytes for part in done)
    bar.begin("encoding", source.rows)
    for part in done:
        bar.advance(part.seen)
        yield part
    call = partial(task, plan, advance=bar.advance) if pool.in_process else partial(task, plan)
    for part in pool.map(call, islice(enumerate(parts), len(done), None)):
        rows, size = rows + part.seen, size + part.bytes
        with disk_errors(plan.name):
            checkpoint.add_part(part)
            noted = noted or _note_space(plan, size, rows, source.rows)
        yield part
        if not pool.in_process:
            bar.advance(part.seen, part.bytes)
    try:
        check_unchanged(source, checkpoint.identity, plan.name)
    except SourceError:
        checkpoint.drop()
        raise


def duplicate_keys(plan: BuildPlan, parts: EncodedParts) -> tuple[int, int] | None:
    """Finds two rows with the same key, in runs of this machine."""
    known = None if plan.base is None else plan.base.keys
    return find_duplicate_keys(plan.folder, parts.runs, plan.budget, known)


def shard(
    plan: BuildPlan, parts: EncodedParts, *, pool: Executor, checkpoint: Checkpoint, bar: Progress
) -> tuple[Shards, LabelCounts]:
    """Merges the runs of encoded rows into shards by tasks of a pool, except for the shards that the
    checkpoint has already."""
    numbers = plan.options.numbers_copies
    runs, moved = number_copies(plan, parts.runs, bar) if numbers else (parts.runs, {})
    done = checkpoint.shards
    _check_space(plan, sum(part.bytes for part in parts.all) - sum(one.bytes for one in done.values()))
    bar.begin("writing shards", parts.rows)
    splits = tuple(plan.options.weights or sorted({split for run in runs for split in run.counts}))
    least = 1 if pool.in_process else _LEAST_TASKS
    planned, tasks = {}, []
    for split in splits:
        planned[split], missing = shard_tasks(plan, runs, split, done, least)
        tasks += [(task,) for task in missing]
    for written in pool.map(partial(write_shards, plan, runs), tasks):
        for file, made in written:
            take_over(plan, file, made)
            checkpoint.add_shard(made)
            bar.advance(made.rows, made.bytes)
    return {split: tuple(done[wanted.file] for wanted in planned[split]) for split in splits}, moved


def _note_space(plan: BuildPlan, encoded: int, seen: int, rows: int | None) -> bool:
    """Logs a warning, and returns True, if the disk may have no room for the other rows and the shards. The
    other rows are assumed to be as large as the first `seen` rows, which have `encoded` bytes."""
    if not rows or not seen:
        return False
    needed = encoded * (rows * (1 + plan.as_encoded) - seen) // seen
    if needed <= (free := plan.free):
        return False
    text = "%s: about %s are needed for the other rows and the shards, and %s are free"
    log.warning(text, show_text(plan.name), format_bytes(needed), format_bytes(free))
    return True


def _check_space(plan: BuildPlan, needed: int) -> None:
    """Raises DiskError if the size of the shards is known and the disk has no room for them."""
    if plan.as_encoded and needed > (free := plan.free):
        expected = f"{format_bytes(needed)} free for the shards"
        raise DiskError(Problem(where=plan.name, expected=expected, got=format_bytes(free)))


class RowEncoding:
    """Encodes rows in this process, as they come.

    Rows are written to their shards at once if the shard of each row is known. Otherwise rows wait in memory,
    or on disk if they do not fit.

    Args:
        expected: the number of rows, if known. Another number of rows is an error.

    Attributes:
        encoder: encodes the rows.
    """

    def __init__(self, plan: BuildPlan, expected: int | None) -> None:
        self._plan, self._expected = plan, expected
        with disk_errors(plan.name):
            self._sink = _sink(plan, expected)
        add_reject = partial(rejects.add_line, plan.folder / _REJECTS)
        check = partial(rejects.check, plan.options.quarantine)
        self.encoder = Encoder(plan, self._sink, add_reject, check)
        self._places: list[PlaceOfRow] = []

    def begin(self, place: PlaceOfRow) -> Encoder:
        """Begins another part of the rows. Returns the encoder of the part.

        Args:
            place: the location of a row of the part for messages.
        """
        self.encoder.begin(len(self._places), place)
        # unless keys must be unique, messages name no row that is already encoded
        self._places.append(place if self._plan.options.unique else str)
        return self.encoder

    def finish(self) -> EncodedPart:
        """Encodes the rows that wait. Returns all rows, as one part."""
        self.encoder.flush()
        name, seen = self._plan.name, self.encoder.seen
        if self._expected not in (None, seen):
            raise WriteError(Problem(where=name, expected=f"{self._expected:,} rows", got=f"{seen:,}"))
        with disk_errors(name):
            if isinstance(self._sink, EstimatedShards):
                self._sink = self._sink.final()
            runs = self._sink.finish(self.encoder.splits) if isinstance(self._sink, Sorter) else ()
        return EncodedPart.of(self.encoder, runs, _REJECTS)

    def place(self, part: int, row: int, before: int) -> str:
        """The location of a row, like `PlaceInPart`."""
        return self._places[part](row)

    def shard(self, plan: BuildPlan, parts: EncodedParts, *, bar: Progress) -> tuple[Shards, LabelCounts]:
        """Writes the shards, or finishes the shards that have the rows already."""
        if isinstance(self._sink, DirectShards):
            # copies stay in place: rows keep their order, and there is one split
            return self._sink.finish(), {}
        return shard(plan, parts, pool=SerialExecutor(), checkpoint=Checkpoint(), bar=bar)

    def abandon(self) -> None:
        """Discards unfinished shards."""
        if not isinstance(self._sink, Sorter):
            self._sink.abandon()


@contextmanager
def row_encoding(plan: BuildPlan, status: BuildStatus, expected: int | None) -> Iterator[RowEncoding]:
    """Encodes rows in this process, within the block. If the block raises, the status gets their number."""
    rows = RowEncoding(plan, expected)
    try:
        yield rows
    except BaseException:
        status.rows = rows.encoder.taken
        raise
    finally:
        rows.abandon()


def _sink(plan: BuildPlan, expected: int | None) -> Sorter | DirectShards | EstimatedShards:
    """The receiver of encoded rows: the shards themselves if rows need no sorting and the number of rows of
    each shard is known, or can be estimated; else a sorter."""
    options, shards = plan.options, plan.options.shards
    expected = None if options.quarantine is not None else expected
    ordered = options.shuffle is None and not options.unique and len(options.weights or ()) == 1
    if not ordered or plan.base is not None or (expected is None and shards != 1):
        return Sorter(plan, "rows", in_memory=True)
    (split,) = options.weights or {}
    if not isinstance(shards, int):
        assert expected is not None
        return EstimatedShards(plan, split, expected)
    return DirectShards(plan, split, list(shard_ranges(split + plan.suffix, shards, expected, options)))


def _known_rows(source: BuildSource, limit: int | None) -> int | None:
    """The number of rows to encode, if known."""
    if isinstance(source, DictRows) or source.rows is None:
        return None
    return min(source.rows, limit or source.rows)


def _encode_here(
    plan: BuildPlan,
    source: BuildSource,
    parts: Iterable[Any],
    limit: int | None,
    rows: RowEncoding,
    identity: Any,
    bar: Progress,
) -> Iterator[EncodedPart]:
    """Encodes the first `limit` rows of a source in this process, as they come. Yields one part."""
    bar.begin("encoding", source.rows if limit is None else limit)
    if isinstance(source, DictRows):
        _encode_dicts(plan, source, limit, rows.begin(source.place), bar)
    else:
        _encode_batches(plan, parts, limit, rows, bar)
    yield rows.finish()
    check_unchanged(source, identity, plan.name)


def _encode_dicts(
    plan: BuildPlan, source: DictRows, limit: int | None, encoder: Encoder, bar: Progress
) -> None:
    for row in source_errors(islice(source.read(plan.checked_schema), limit), plan.name):
        encoder.add_row(row)
        bar.advance(1)


def _encode_batches(
    plan: BuildPlan, parts: Iterable[Any], limit: int | None, rows: RowEncoding, bar: Progress
) -> None:
    for part in parts:
        encoder = rows.begin(part.place)
        for batch in source_errors(part.batches(plan.checked_schema, plan.options.columns), plan.name):
            if limit is not None and isinstance(batch, Columns):
                batch = batch.part(0, min(batch.rows, limit - encoder.seen))
            encoder.add(batch, bar.advance)
            if limit == encoder.seen:
                return
