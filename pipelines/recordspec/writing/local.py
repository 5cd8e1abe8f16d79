"""Builds on this machine: in this process, or in several."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from recordspec.errors import Problem, WriteError, show_text
from recordspec.executors import Executor, executor
from recordspec.progress import Progress
from recordspec.remote import RemotePath
from recordspec.schema.options import format_bytes
from recordspec.schema.schema import Schema
from recordspec.store.manifest import LabelCounts, Manifest
from recordspec.writing import rejects
from recordspec.writing.build import (
    Build,
    BuildSource,
    Encoding,
    RejectLines,
    Sharding,
    Shards,
    check_unchanged,
    parts_of,
    place_of,
    planned_build,
)
from recordspec.writing.build_plan import BuildPlan
from recordspec.writing.copies import number_copies
from recordspec.writing.failures import DiskError, SourceError, disk_errors, source_errors
from recordspec.writing.publication import Publication
from recordspec.writing.row_encoder import Encoder, PlaceOfRow
from recordspec.writing.sharding import DirectShards, shard_ranges
from recordspec.writing.sorter import Run, Sorter, find_duplicate_keys
from recordspec.writing.sources import base
from recordspec.writing.sources.base import Columns
from recordspec.writing.sources.rows import DictRows
from recordspec.writing.tasks import EncodedPart, encode_part, shard_tasks, write_shards
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
    encode: Callable[..., EncodedPart] = encode_part,
    revise: Callable[[Manifest, Path], Manifest] = lambda manifest, folder: manifest,
    is_sample: bool = False,
) -> Manifest:
    """Builds a dataset on this machine.

    If the source has several parts and can be read again, each part is encoded by a task with a durable
    result, so that an interrupted build can continue. If rows cannot be read again, or their number is
    limited, this process encodes them as they come, unless there are several processes.

    Args:
        schema: the schema of the rows; None if `encode` needs none.
        options: the options of sharding.
        encode: the task that encodes a part of the source.
        revise, is_sample: as for `Publication`.

    Raises the errors of `write`.
    """
    identity = source.identity() if execution.limit is None else None
    publication = partial(Publication, revise=revise, is_sample=is_sample)
    build = planned_build(schema, directory, options, execution, identity=identity, publication=publication)
    return build.run(partial(_stages, source, encode, execution), progress=execution.progress)


@contextmanager
def _stages(
    source: BuildSource, encode: Callable[..., EncodedPart], execution: Execution, build: Build
) -> Iterator[tuple[Encoding, Sharding]]:
    """The stages of a build of a source."""
    with executor(execution.processes, build.plan.name) as pool:
        parts = parts_of(source, build.plan)
        here = pool.in_process and not build.checkpoint.parts and encode is encode_part
        if here and build.checkpoint.is_durable:
            first = list(islice(parts, 2))
            parts, here = chain(first, parts), len(first) < 2
        if not here:
            yield PartEncoding(build, source, parts, encode, pool), LocalSharding(build, pool)
            return
        # the rows of a single part need not be durable: encoding them again takes no longer
        with disk_errors(build.plan.name):
            build.checkpoint.drop()
        build.plan = replace(build.plan, durable=False)
        with row_stages(build, pool, _known_rows(source, execution.limit)) as (encoding, sharding):
            yield SourceEncoding(build, source, parts, execution.limit, encoding), sharding


@contextmanager
def row_stages(build: Build, pool: Executor, expected: int | None) -> Iterator[tuple[RowEncoding, Sharding]]:
    """The stages of a build that encodes rows in this process.

    Rows are written to their shards at once if the shard of each row is known. Otherwise rows wait in memory,
    or on disk if they do not fit.

    Args:
        expected: the number of rows, if known. Another number of rows is an error.
    """
    with disk_errors(build.plan.name):
        sink = _sink(build, expected)
    encoding = RowEncoding(build, sink, expected)
    try:
        yield encoding, LocalSharding(build, pool) if isinstance(sink, Sorter) else sink
    except BaseException:
        build.status.rows = encoding.encoder.taken
        raise
    finally:
        if isinstance(sink, DirectShards):
            sink.abandon()


def _sink(build: Build, expected: int | None) -> Sorter | DirectShards:
    """The receiver of encoded rows: the shards themselves if rows need no sorting and the number of rows of
    each shard is known; else a sorter."""
    plan, options, shards = build.plan, build.plan.options, build.plan.options.shards
    known = shards == 1 or (expected is not None and options.quarantine is None)
    ordered = options.shuffle is None and not options.unique and len(options.weights or ()) == 1
    if not (ordered and known and isinstance(shards, int) and plan.base is None):
        return Sorter(plan, "rows", in_memory=True)
    (split,) = options.weights or {}
    planned = list(shard_ranges(split + plan.suffix, shards, expected, options))
    return DirectShards(plan, build.publication.transaction.partial, split, planned)


def _known_rows(source: BuildSource, limit: int | None) -> int | None:
    """The number of rows to encode, if known."""
    if isinstance(source, DictRows) or source.rows is None:
        return None
    return min(source.rows, limit or source.rows)


class RowEncoding:
    """Encodes rows in this process, as they come.

    Attributes:
        encoder: encodes the rows.
    """

    def __init__(self, build: Build, sink: Sorter | DirectShards, expected: int | None) -> None:
        plan = build.plan
        self.name = plan.name
        self.encoder = Encoder(
            plan,
            sink,
            partial(rejects.add_line, plan.folder / _REJECTS),
            partial(rejects.check, plan.options.quarantine),
        )
        self._build, self._sink, self._expected = build, sink, expected
        self._places: list[PlaceOfRow] = []

    def begin(self, place: PlaceOfRow) -> Encoder:
        """Begins another part of the rows. Returns the encoder of the part.

        Args:
            place: the location of a row of the part for messages.
        """
        self.encoder.begin(len(self._places), place)
        # unless keys must be unique, messages name no row that is already encoded
        self._places.append(place if self._build.plan.options.unique else str)
        return self.encoder

    def encode(self, bar: Progress) -> Iterator[EncodedPart]:
        """Yields the rows given to the encoder, as one part."""
        self.encoder.flush()
        plan, seen = self._build.plan, self.encoder.seen
        if self._expected not in (None, seen):
            raise WriteError(Problem(where=plan.name, expected=f"{self._expected:,} rows", got=f"{seen:,}"))
        with disk_errors(plan.name):
            runs = self._sink.finish(self.encoder.splits) if isinstance(self._sink, Sorter) else ()
        yield EncodedPart.of(self.encoder, runs, _REJECTS)

    def place(self, part: int, row: int) -> str:
        return self._places[part](row)

    def rejected(self) -> RejectLines:
        return _rejected(self._build)


class SourceEncoding:
    """Encodes the rows of a source, or the first of them, in this process, as they come.

    Args:
        limit: the number of rows to encode; None encodes all.
        rows: the encoding of the rows.
    """

    def __init__(
        self, build: Build, source: BuildSource, parts: Iterable[Any], limit: int | None, rows: RowEncoding
    ) -> None:
        self._build, self._source, self._parts, self._limit = build, source, parts, limit
        self._rows = rows
        self.name = base.name_of(source)
        self.place, self.rejected = rows.place, rows.rejected

    def encode(self, bar: Progress) -> Iterator[EncodedPart]:
        bar.begin("encoding", self._source.rows if self._limit is None else self._limit)
        if isinstance(self._source, DictRows):
            self._encode_dicts(self._source, bar)
        else:
            self._encode_batches(bar)
        yield from self._rows.encode(bar)
        _check_unchanged(self._build, self._source)

    def _encode_dicts(self, source: DictRows, bar: Progress) -> None:
        plan, encoder = self._build.plan, self._rows.begin(source.place)
        for row in source_errors(islice(source.read(plan.checked_schema), self._limit), plan.name):
            encoder.add_row(row)
            bar.advance(1)

    def _encode_batches(self, bar: Progress) -> None:
        plan, limit = self._build.plan, self._limit
        for part in self._parts:
            encoder = self._rows.begin(part.place)
            for batch in source_errors(part.batches(plan.checked_schema, plan.options.columns), plan.name):
                if limit is not None and isinstance(batch, Columns):
                    batch = batch.part(0, min(batch.rows, limit - encoder.seen))
                encoder.add(batch, bar.advance)
                if limit == encoder.seen:
                    return


class PartEncoding:
    """Encodes a source part by part. Each part is a task of a pool, with a durable result."""

    def __init__(
        self,
        build: Build,
        source: BuildSource,
        parts: Iterable[Any],
        encode: Callable[..., EncodedPart],
        pool: Executor,
    ) -> None:
        self._build, self._source, self._parts, self._encode = build, source, parts, encode
        self._pool = pool
        self.name = base.name_of(source)

    def encode(self, bar: Progress) -> Iterator[EncodedPart]:
        build, done, noted = self._build, list(self._build.checkpoint.parts), False
        bar.begin("encoding", self._source.rows)
        for part in done:
            bar.advance(part.seen)
            yield part
        missing = islice(enumerate(self._parts), len(done), None)
        encode = partial(self._encode, build.plan)
        if self._pool.in_process:
            encode = partial(encode, advance=bar.advance)
        for part in self._pool.map(encode, missing):
            with disk_errors(build.plan.name):
                build.checkpoint.add_part(part)
                if not noted:
                    noted = _note_space(build.plan, [*build.parts.all, part], self._source.rows)
            yield part
            if not self._pool.in_process:
                bar.advance(part.seen, part.bytes)
        _check_unchanged(build, self._source)

    def place(self, part: int, row: int) -> str:
        if isinstance(self._source, DictRows):  # the rows cannot be read again
            return self._source.place(self._build.parts.before[part] + row)
        return place_of(self._source, self._build.plan, part, row)

    def rejected(self) -> RejectLines:
        return _rejected(self._build)


def _note_space(plan: BuildPlan, parts: Sequence[EncodedPart], rows: int | None) -> bool:
    """Logs a warning, and returns True, if the disk may have no room for the other rows and the shards. The
    other rows are assumed to be as large as the rows of the first parts."""
    encoded, seen = sum(part.bytes for part in parts), sum(part.seen for part in parts)
    if not rows or not seen:
        return False
    needed = encoded * (rows * (1 + plan.as_encoded) - seen) // seen
    if needed <= (free := plan.free):
        return False
    text = "%s: about %s are needed for the other rows and the shards, and %s are free"
    log.warning(text, show_text(plan.name), format_bytes(needed), format_bytes(free))
    return True


def _check_unchanged(build: Build, source: BuildSource) -> None:
    """Raises SourceError, and drops the checkpoint, if the source changed while it was read."""
    try:
        check_unchanged(source, build.checkpoint.identity, build.plan.name)
    except SourceError:
        build.checkpoint.drop()
        raise


def _rejected(build: Build) -> RejectLines:
    """Yields the rejects of all parts, from their files."""
    for part, before in zip(build.parts.all, build.parts.before, strict=False):
        for line in rejects.lines(build.plan.folder / part.rejects):
            yield line, before


class LocalSharding:
    """Merges the runs of encoded rows into shards, by tasks of a pool."""

    def __init__(self, build: Build, pool: Executor) -> None:
        self._build, self._pool = build, pool
        self._runs: tuple[Run, ...] | None = None  # set when copies are moved

    @property
    def runs(self) -> tuple[Run, ...]:
        return self._build.parts.runs if self._runs is None else self._runs

    def duplicate_keys(self) -> tuple[int, int] | None:
        plan = self._build.plan
        known = None if plan.base is None else plan.base.keys
        return find_duplicate_keys(plan.folder, self.runs, plan.budget, known)

    def move_copies(self, bar: Progress) -> LabelCounts:
        if not self._build.plan.options.numbers_copies:
            return {}
        self._runs, changes = number_copies(self._build.plan, self.runs, bar)
        return changes

    def write(self, bar: Progress) -> Shards:
        """Writes the missing shards."""
        build, plan, runs = self._build, self._build.plan, self.runs
        self._check_space()
        bar.begin("writing shards", build.parts.rows)
        splits = tuple(plan.options.weights or sorted({split for run in runs for split in run.counts}))
        done, least = build.checkpoint.shards, 1 if self._pool.in_process else _LEAST_TASKS
        shards, tasks = {}, []
        for split in splits:
            shards[split], missing = shard_tasks(plan, runs, split, done, least)
            tasks += [(task,) for task in missing]
        for written in self._pool.map(partial(write_shards, plan, runs), tasks):
            for file, shard in written:
                build.publication.take_over(plan, file, shard)
                build.checkpoint.add_shard(shard)
                bar.advance(shard.rows, shard.bytes)
        return {split: tuple(done[shard.file] for shard in shards[split]) for split in splits}

    def _check_space(self) -> None:
        """Raises DiskError if the size of the shards is known and the disk has no room for them."""
        build, plan = self._build, self._build.plan
        needed = sum(part.bytes for part in build.parts.all)
        needed -= sum(shard.bytes for shard in build.checkpoint.shards.values())
        if plan.as_encoded and needed > (free := plan.free):
            expected = f"{format_bytes(needed)} free for the shards"
            raise DiskError(Problem(where=plan.name, expected=expected, got=format_bytes(free)))
