"""`recordspec.write`: a source of rows becomes a dataset.

Rows are encoded, sorted if necessary, written as shards, and published atomically.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from recordspec import __version__
from recordspec.errors import (
    Problem,
    RecordError,
    SpecError,
    StoreError,
    WriteError,
    describe,
    show_text,
)
from recordspec.executors import Executor, executor
from recordspec.locations import sync_file
from recordspec.progress import Progress
from recordspec.remote import RemotePath
from recordspec.spec.infer import Inferred
from recordspec.spec.options import from_python, to_builtins
from recordspec.spec.schema import Schema, check_is_schema
from recordspec.store import key_hashes
from recordspec.store.journal import FILE as JOURNAL
from recordspec.store.journal import Journal
from recordspec.store.manifest import KEYS_FILE, REJECTS_FILE, LabelCounts, Manifest, Shard
from recordspec.store.publication import ConflictError, RemoteTransaction, transaction
from recordspec.wire.hashes import Words
from recordspec.writing import rejects
from recordspec.writing.append import ExistingDataset
from recordspec.writing.copies import number_copies
from recordspec.writing.encoder import PART_BITS, Encoder, Place
from recordspec.writing.failures import BuildStatus, DiskError, SourceError, disk_errors, source_errors
from recordspec.writing.label_counts import summed_counts, uneven_classes
from recordspec.writing.options import ByColumn, Write
from recordspec.writing.shards import DirectShards, shard_ranges
from recordspec.writing.sorter import EXISTING, Run, SortedRun, Sorter, find_duplicate_keys
from recordspec.writing.sources import DictRows, Source, base, source_of
from recordspec.writing.sources.base import Columns, leave_out
from recordspec.writing.sources.splits import SplitSources
from recordspec.writing.tasks import BuildPlan, EncodedPart, budget, encode_part, shard_tasks, write_shard

log = logging.getLogger("recordspec")

_WHOLE = (int, np.integer)
# The file that lists the invalid rows that this process encoded.
_LOCAL_REJECTS = "rows.rejects"
# How often appending is repeated for a dataset that others change meanwhile.
_CONFLICTS = 8

Shards = dict[str, tuple[Shard, ...]]


def write(
    schema: Schema | Inferred,
    rows: Any,
    directory: str | os.PathLike[str] | RemotePath,
    *,
    split: Any = "train",
    ignore: Iterable[str] = (),
    jobs: int = 1,
    memory: str | None = None,
    limit: int | None = None,
    allow_empty: bool = False,
    force: bool = False,
    append: bool = False,
    resume: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> Manifest:
    """Writes rows as a sharded dataset, which appears at `directory` as a whole or not at all.

    The same rows and options yield the same bytes, for any number of jobs and any amount of memory.

    Args:
        schema: the schema of the rows; or what `infer` returns for them, whose `left_out` is then ignored.
        rows: an iterable of dicts, a dict of arrays, a pandas or Polars frame, an Arrow table or
            record-batch reader; a dataset of TensorFlow or Hugging Face; a `Source`. A DatasetDict of Hugging
            Face defines the splits.
        directory: a folder that does not exist yet, or its URL in an object store.
        split: the name of the only split; or the weights of several, by name, where a row's split is a
            function of its key; or `{"folds": k}`; or `{"column": name}` for a column with the split.
        ignore: names in the rows to ignore. Other names without a feature are errors: a misspelt name would
            lose values.
        jobs: the number of processes that encode and write. A script that uses several must be importable:
            it calls `write` under `if __name__ == "__main__":`.
        memory: the memory of all processes, such as `"2GiB"`, by default 512 MiB each, of which Python, NumPy
            and Arrow use about 200 MiB. More rows are sorted on disk.
        limit: the number of rows to read, from the first; per split, if splits are predefined.
        allow_empty: whether a source without rows makes a dataset without rows; by default it is an error.
        force: whether a dataset at `directory` is replaced.
        append: whether the rows are added to the dataset at `directory`, in new shards; its
            options must be the same. A key that already exists is an error.
        resume: whether to continue an interrupted build of the same rows, which must come from files.
        progress: whether to show progress on stderr; by default on a terminal.
        options: the fields of `Write`: key, group_by, shards (`"auto"`, a number, `{"size": "128MiB"}`),
            compression, layout (`{"blocks": 256}`), shuffle (a seed), and invalid (`"error"`,
            `"quarantine"`, `{"max_invalid": "20%"}`).

    Returns:
        The manifest of the dataset.

    Raises:
        SpecError: an option is invalid.
        RecordError: a row is invalid; names the first such row. With `invalid="quarantine"`: more rows than
            allowed are invalid, or all of them. Or there are no rows, without `allow_empty`.
        WriteError: the source of the rows failed.
        StoreError: `directory` exists, or cannot be written, or a process was killed.
        Interrupted: Ctrl-C. In all of these cases nothing is published.
    """
    execution = Execution(
        jobs=jobs,
        memory=memory,
        limit=limit,
        allow_empty=allow_empty,
        force=force,
        append=append,
        resume=resume,
        progress=progress,
    )
    schema, source = named_rows(schema, rows, ignore, split, options)
    if resume and source.identity() is None:
        expected = "rows of files, which can be read again"
        raise SpecError(Problem(path=("resume",), expected=expected, got=type(rows).__name__))
    if isinstance(source, SplitSources):
        source, split = given_splits(schema, source, split, options)
        if limit is not None:
            source = replace(source, limit=limit)
            execution = replace(execution, limit=limit * len(source.sources))
    return Build(schema, source, directory, write_options(schema, split, options), execution).run()


def named_rows(
    schema: Schema | Inferred, rows: Any, ignore: Iterable[str], split: Any, options: Mapping[str, Any]
) -> tuple[Schema, Source]:
    """The schema, and the source of the rows without the names to ignore.

    Raises SpecError for a feature among these names.
    """
    left_out = [*ignore]
    if isinstance(schema, Inferred):
        read = write_options(schema.schema, split, options).columns
        left_out += [name for name in schema.left_out if name not in read]
        schema = schema.schema
    check_is_schema(schema)
    features = [name for name in left_out if name in schema.names]
    if features:
        expected, got = "names without a feature", f"the feature `{features[0]}`"
        raise SpecError(Problem(path=("ignore",), expected=expected, got=got))
    return schema, leave_out(source_of(rows), left_out)


def given_splits(
    schema: Schema, source: SplitSources, split: Any, options: Mapping[str, Any]
) -> tuple[SplitSources, ByColumn]:
    """The sources, whose rows say their split in a column, and the option that says so.

    Raises SpecError if `split` asks for other splits.
    """
    if isinstance(split, ByColumn) and split.column == source.column:
        return source, split
    made = write_options(schema, "train", options)
    if split not in ("train", made.splits) or made.group_by is not None:
        option = "split" if made.group_by is None else "group_by"
        hint = "give the rows of one split"
        raise SpecError(Problem(path=(option,), expected="rows without splits", got="rows with", hint=hint))
    source = source.beside((*schema.names, *made.keys))
    return source, ByColumn(column=source.column)


def write_options(schema: Schema, split: Any, options: Mapping[str, Any]) -> Write:
    """The options of a build. Raises SpecError for wrong ones, and for a schema that cannot be written."""
    check_is_schema(schema)
    if schema.shared_keys:
        raise SpecError(schema.shared_keys)
    if "splits" in options:
        expected, hint = "the argument `split`", "it takes a name, or the weights of several"
        raise SpecError(Problem(path=("splits",), expected=expected, got="`splits`", hint=hint))
    splits = {split: 1.0} if isinstance(split, str) else split
    made: Write = from_python(Write, {**options, "splits": splits})
    return made


@dataclass(frozen=True, kw_only=True)
class Execution:
    """The arguments of `write` for executing a build. Except `limit`, they do not change its result."""

    jobs: int = 1
    memory: str | None = None
    limit: int | None = None
    allow_empty: bool = False
    force: bool = False
    append: bool = False
    resume: bool = False
    progress: bool | None = None

    def __post_init__(self) -> None:
        problems = list(self._check())
        if problems:
            raise SpecError(problems)

    def _check(self) -> Iterator[Problem]:
        if not isinstance(self.jobs, _WHOLE) or not 1 <= self.jobs <= 1024:
            yield Problem(path=("jobs",), expected="1 to 1024", got=_shown(self.jobs))
        if self.limit is not None and (not isinstance(self.limit, _WHOLE) or self.limit < 1):
            yield Problem(path=("limit",), expected="a number of rows", got=_shown(self.limit))
        if self.limit is not None and self.resume:
            yield Problem(path=("resume",), expected="a build of all rows", got=f"limit {self.limit}")
        if self.force and self.append:
            yield Problem(path=("append",), expected="either `append` or `force`", got="both")


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, _WHOLE) else describe(value)


class BuildSource(Protocol):
    """The provider of the parts of a build; the task that encodes a part knows more of it."""

    @property
    def rows(self) -> int | None:
        """The number of rows; None if unknown."""

    def parts(self, schema: Any, extra: tuple[str, ...]) -> Iterator[Any]:
        """The parts, in the order of the rows; they have a `place`, as a `SourcePart` has."""

    def identity(self) -> Any:
        """Like `Source`."""


class Build:
    """A build of a dataset, within `with build.begun()`: nothing is published before the end of `finish`.

    Rows of files that have several parts are encoded part by part, each a task whose result is durable: an
    interrupted build can continue.
    Rows that cannot be read again, and a limited number of rows, are encoded by this process as they come,
    unless several processes share them. They are written to their shards directly if these are known;
    otherwise they wait in memory, or on disk if they do not fit.

    Args:
        schema: the schema of the rows; None if `encode` needs none.
        source: the source of the rows; None if `encoder` gets them.
        options: how rows become shards.
        encode: the task that encodes a part of the source.
        revise: completes the manifest; it may write files into the folder that it gets.
        is_sample: whether the dataset is deleted at once: no message tells of it, or refers to its files.
    """

    def __init__(
        self,
        schema: Schema | None,
        source: BuildSource | None,
        directory: str | os.PathLike[str] | RemotePath,
        options: Write,
        execution: Execution,
        *,
        expected: int | None = None,
        encode: Callable[..., EncodedPart] = encode_part,
        revise: Callable[[Manifest, Path], Manifest] = lambda manifest, folder: manifest,
        is_sample: bool = False,
    ) -> None:
        self.execution, self.name, self._is_sample = execution, str(directory), is_sample
        # a limited number of rows are taken one batch after another
        self.jobs = 1 if execution.limit is not None else execution.jobs
        self.source_name = self.name if source is None else base.name_of(source)
        self.status = BuildStatus(name=self.name, quarantines=options.quarantine is not None)
        self._source, self._encode, self._revise = source, encode, revise
        again = source is not None and execution.limit is None
        self._identity = source.identity() if source is not None and again else None
        self._expected = self._known_rows() if expected is None else expected
        self._transaction = transaction(
            directory, force=execution.force, resume=execution.resume, append=execution.append
        )
        self._plan = BuildPlan(
            schema=schema,
            options=options,
            name=self.name,
            folder=self._transaction.work,
            budget=budget(execution.memory, self.jobs),
            durable=self._identity is not None,
        )
        self._journal: Journal | None = None
        self._parts: list[EncodedPart] = []
        self._before = [0]  # rows before each part, and of all
        self._shards: dict[str, Shard] = {}
        self._places: list[Place] = []
        self._encoder: Encoder | None = None
        self._sink: Sorter | DirectShards | None = None

    @contextmanager
    def begun(self) -> Iterator[Build]:
        """The build in its staging folder. An error of the block is annotated with how far it had come."""
        with self.status.annotating(), self._transaction:
            with disk_errors(self.name):
                if self.execution.append:
                    self._plan = self._plan.added_to(self._transaction)
                else:
                    self._plan = replace(self._plan, suffix=self._transaction.shard_suffix)
                self._journal = self._open_journal()
            try:
                yield self
            except BaseException as error:
                self._fail(error)
                raise
            finally:
                if isinstance(self._sink, DirectShards):
                    self._sink.abandon()

    def _fail(self, error: BaseException) -> None:
        """Decides what is kept for a resumed build."""
        status = self.status
        if self._encoder is not None:
            status.rows = self._encoder.taken
        if isinstance(error, (RecordError, SpecError)):
            self._transaction.keep = False  # the next build will be of other rows, or another one
            return
        status.published = self._transaction.published
        if not self._transaction.resumable:  # all is written, and publishing it failed
            status.safe = None
        self._transaction.keep = bool(status.safe)

    def run(self) -> Manifest:
        """Builds and publishes. Raises what `write` raises."""
        show, limit = self.execution.progress, self.execution.limit
        with self.begun(), Progress(show=show) as bar, executor(self.jobs, self.name) as pool:
            bar.begin("encoding", self._input.rows if limit is None else limit)
            parts = self._source_parts()
            here = pool.in_process and not self._parts and self._encode is encode_part
            if here and self._journal is not None:
                some = list(islice(parts, 2))
                parts, here = chain(some, parts), len(some) < 2
            if here:
                self._drop_journal()
                self._encode_here(parts, bar)
            else:
                self._encode_parts(parts, pool, bar)
            return self.finish(pool, bar)

    def _drop_journal(self) -> None:
        """The rows of a single part need not be durable: encoding them again is as fast."""
        if self._journal is not None:
            with disk_errors(self.name):
                (self._plan.folder / JOURNAL).unlink()
            self._journal, self.status.safe = None, None
            self._plan = replace(self._plan, durable=False)

    def begin(self, place: Place) -> Encoder:
        """Begins another part of rows, which messages name by `place`, and returns what encodes it here."""
        if self._encoder is None:
            with disk_errors(self.name):
                self._sink = self._open_sink()
            rejected = partial(rejects.add_line, self._plan.folder / _LOCAL_REJECTS)
            self._encoder = Encoder(
                self._plan.checked_schema,
                self._plan.options,
                self._sink,
                rejected,
                self.name,
                self._check_rejected,
            )
        self._encoder.begin(len(self._places), place)
        # where keys need not be unique no row is named once it is encoded
        self._places.append(place if self._plan.options.unique else str)
        return self._encoder

    def finish(self, pool: Executor, bar: Progress) -> Manifest:
        """Writes the shards of all the rows that were encoded, and publishes them."""
        if self._encoder is not None:
            self._close_encoder(self._encoder)
        self._check_unchanged()
        runs = tuple(run for part in self._parts for run in part.runs)
        self._check_unique(runs)
        rows, rejected = sum(part.rows for part in self._parts), self._join_rejects()
        path = self._transaction.staging / REJECTS_FILE
        rejects.check_some(rows, rejected, path, self.source_name, allow_empty=self.execution.allow_empty)
        with disk_errors(self.name):
            runs, moved = self._number_copies(runs, bar)
            shards = self._write_shards(runs, pool, bar)
        counts = summed_counts([*(part.label_counts for part in self._parts), moved])
        manifest = new_manifest(self._plan, shards, rejected, counts)
        with disk_errors(self.name):
            manifest = self._revise(manifest, self._transaction.staging)
        for _ in range(_CONFLICTS):
            try:
                return self._publish(manifest, bar)
            except ConflictError:
                if self._plan.base is None or not isinstance(self._transaction, RemoteTransaction):
                    raise
                self._add_to_changed(self._transaction, runs)
        return self._publish(manifest, bar)

    def _known_rows(self) -> int | None:
        """The number of rows of the source, if known."""
        if self._source is None or isinstance(self._source, DictRows) or self._source.rows is None:
            return None
        return min(self._source.rows, self.execution.limit or self._source.rows)

    def _encode_here(self, parts: Iterable[Any], bar: Progress) -> None:
        """Encodes the rows of the source in this process, or the first of them."""
        limit, columns = self.execution.limit, self._plan.options.columns
        if isinstance(self._source, DictRows):
            encoder = self.begin(self._source.place)
            for row in source_errors(islice(self._source.read(self._plan.checked_schema), limit), self.name):
                encoder.add_row(row)
                bar.advance(1)
            return
        for part in parts:
            encoder = self.begin(part.place)
            for batch in source_errors(part.batches(self._plan.checked_schema, columns), self.name):
                if limit is not None and isinstance(batch, Columns):
                    batch = batch.part(0, min(batch.rows, limit - encoder.seen))
                encoder.add(batch, bar.advance)
                if limit == encoder.seen:
                    return

    def _open_sink(self) -> Sorter | DirectShards:
        """Rows that need not be put in order go to their shards at once, where these are known."""
        plan, options, shards = self._plan, self._plan.options, self._plan.options.shards
        known = shards == 1 or (self._expected is not None and options.quarantine is None)
        ordered = options.shuffle is None and not options.unique and len(options.weights or ()) == 1
        if not (ordered and known and isinstance(shards, int) and plan.base is None):
            return plan.sorter("rows", in_memory=True)
        (split,) = options.weights or {}
        planned = list(shard_ranges(split + plan.suffix, shards, self._expected, options))
        return DirectShards(self._transaction.staging, plan.checked_schema, options, planned)

    def _close_encoder(self, encoder: Encoder) -> None:
        encoder.flush()
        if self._expected not in (None, encoder.seen):
            got = f"{encoder.seen:,}"
            raise WriteError(Problem(where=self.name, expected=f"{self._expected:,} rows", got=got))
        with disk_errors(self.name):
            runs = self._sink.finish(encoder.splits) if isinstance(self._sink, Sorter) else ()
        self._add(EncodedPart.of(encoder, runs, _LOCAL_REJECTS))

    def _encode_parts(self, parts: Iterable[Any], pool: Executor, bar: Progress) -> None:
        """Has the pool encode the parts of the source, but for those that are done."""
        for part in self._parts:
            bar.advance(part.rows + part.rejected)
        missing = islice(enumerate(parts), len(self._parts), None)
        encode = partial(self._encode, self._plan)
        if pool.in_process:
            encode = partial(encode, advance=bar.advance)
        try:
            for part in pool.map(encode, missing):
                if self._journal is not None:
                    with disk_errors(self.name):
                        self._journal.add({"part": dataclasses.asdict(part)})
                self._add(part)
                self.status.safe = None if self._journal is None else self._before[-1]
                if not pool.in_process:
                    bar.advance(part.rows + part.rejected, part.bytes)
        except RecordError as error:  # of a part, which counts its rows from 0
            row = None if error.row is None else self._before[-1] + error.row
            raise RecordError(error.problems, row) from None

    def _add(self, part: EncodedPart) -> None:
        self._parts.append(part)
        self._before.append(self._before[-1] + part.rows + part.rejected)
        self.status.rows = self._before[-1]
        if part.rejected:
            self._check_rejected(sum(one.rejected for one in self._parts), self._reasons)

    @property
    def _reasons(self) -> list[str]:
        """The locations of the first invalid rows, each with its first problem."""
        return [reason for part in self._parts for reason in part.reasons]

    def _check_rejected(self, rejected: int, reasons: Sequence[str], rows: int | None = None) -> None:
        """Raises RecordError if more rows are invalid than may be.

        Args:
            rows: the number of all rows, once they are read: then a share is judged, and the error names a
                list of all invalid rows.
        """
        how = self._plan.options.quarantine
        limit = None if how is None else how.limit(rows)
        if how is not None and limit is not None and rejected > limit:
            path = None if rows is None or self._is_sample else self._keep_rejects()
            raise rejects.too_many(how, rows, rejected, reasons, path)

    @property
    def _kept_rejects(self) -> Path:
        """The list of the invalid rows of a build that has too many, beside the folder of the dataset."""
        return self._transaction.target.with_name(f"{self._transaction.target.name}.{REJECTS_FILE}")

    def _keep_rejects(self) -> Path | None:
        """Lists all invalid rows of a build that has too many; None if that is impossible."""
        path = self._kept_rejects
        try:
            path.unlink(missing_ok=True)
            rejects.join(self._rejects(), path)
        except OSError:
            return None
        return path

    def _source_parts(self) -> Iterator[Any]:
        parts = self._input.parts(self._plan.schema, self._plan.options.columns)
        return source_errors(parts, self.name)

    @property
    def _input(self) -> BuildSource:
        """The source, where there must be one."""
        assert self._source is not None
        return self._source

    def _check_unchanged(self) -> None:
        """Raises SourceError if the source changed while it was read: parts of it may be older."""
        if self._identity is not None and self._identity != self._input.identity():
            self.status.safe = None
            expected = "a source that does not change"
            problem = Problem(expected=expected, got="one that changed meanwhile")
            raise SourceError(problem.at(self.name))

    def _check_unique(self, runs: tuple[Run, ...]) -> None:
        """Raises RecordError, which names both, where two rows have one key and may not."""
        plan = self._plan
        if not plan.options.unique:
            return
        with disk_errors(self.name):
            found = self._duplicate_keys(runs)
        if found is None:
            return
        first, second = map(self._place, found if found[1] < EXISTING else found[::-1])
        expected = "a key that no other row has"
        problem = Problem(path=plan.options.keys, expected=expected, got=f"that of {first}")
        raise RecordError(problem.at(second))

    def _number_copies(self, runs: tuple[Run, ...], bar: Progress) -> tuple[tuple[Run, ...], LabelCounts]:
        """The runs in which copies have their own places, as `number_copies` returns them."""
        if not self._plan.options.numbers_copies or isinstance(self._sink, DirectShards):
            return runs, {}
        return number_copies(self._plan, runs, bar)

    def _duplicate_keys(self, runs: tuple[Run, ...]) -> tuple[int, int] | None:
        """The numbers of two rows with one key, as `find_duplicate_keys` returns them."""
        known = None if self._plan.base is None else self._plan.base.keys
        return find_duplicate_keys(self._plan.folder, runs, self._plan.budget, known)

    def _place(self, number: int) -> str:
        """The location of a row by its number, for messages."""
        if number >= EXISTING:
            assert self._plan.base is not None
            return self._plan.base.place(number - EXISTING)
        part, row = number >> PART_BITS, number & (1 << PART_BITS) - 1
        if self._places:
            return self._places[part](row)
        if isinstance(self._source, DictRows):  # which cannot be had again
            return self._source.place(self._before[part] + row)
        return str(next(islice(self._source_parts(), part, None)).place(row))

    def _join_rejects(self) -> int:
        """Puts the rejects of all parts together. Raises RecordError for too many."""
        path, rejected = self._transaction.staging / REJECTS_FILE, sum(part.rejected for part in self._parts)
        self._check_rejected(rejected, self._reasons, self._before[-1])
        with disk_errors(self.name):
            path.unlink(missing_ok=True)  # of a build that is resumed
            if self._plan.base is not None:
                self._plan.base.put_rejects_into(self._transaction.staging)
            rejects.join(self._rejects(), path)
        return rejected

    def _rejects(self) -> Iterator[tuple[Mapping[str, Any], int]]:
        """The rejects of all parts, each with the number of the rows before its part."""
        for part, before in zip(self._parts, self._before, strict=False):
            for line in rejects.lines(self._plan.folder / part.rejects):
                yield line, before

    def _write_shards(self, runs: tuple[Run, ...], pool: Executor, bar: Progress) -> Shards:
        """Writes the shards that are not there yet."""
        if isinstance(self._sink, DirectShards):
            (split,) = self._plan.options.weights or {}
            return {split: self._sink.finish()}
        bar.begin("writing shards", sum(part.rows for part in self._parts))
        splits = tuple(self._plan.options.weights or sorted({split for run in runs for split in run.counts}))
        tasks = list(shard_tasks(self._plan, runs, splits))
        missing = [(task,) for task in tasks if task.shard.file not in self._shards]
        for task, file, shard in pool.map(partial(write_shard, self._plan, runs), missing):
            self._take_over(file, shard)
            bar.advance(shard.rows, shard.bytes)
            self._shards[task.shard.file] = shard
        return {
            split: tuple(self._shards[task.shard.file] for task in tasks if task.rows.split == split)
            for split in splits
        }

    def _take_over(self, file: str, shard: Shard) -> None:
        """Puts a shard that is written where it will be published."""
        folder = self._plan.folder
        (folder / file).rename(self._transaction.staging / shard.file)
        keys = folder / f"{file}.keys"
        if keys.exists():
            keys.rename(folder / f"{shard.file}.keys")
        if self._journal is not None:
            self._journal.add({"shard": dataclasses.asdict(shard)})

    def _publish(self, manifest: Manifest, bar: Progress) -> Manifest:
        """Adds what was there before, writes the manifest, and commits."""
        plan, transaction = self._plan, self._transaction
        written, rejected = manifest, manifest.rejected
        if plan.base is not None:
            manifest = plan.base.with_more(manifest)
        with disk_errors(self.name):
            if plan.options.unique:
                parts = _key_hashes(manifest, plan.folder, plan.base)
                sha256 = key_hashes.write(transaction.staging / KEYS_FILE, parts)
                manifest = replace(manifest, keys_sha256=sha256)
            sync_file(transaction.staging / REJECTS_FILE)
            schema = None if plan.schema is None else plan.schema.dump()
            try:
                manifest = transaction.commit(manifest, schema, bar) or manifest
            except StoreError as error:
                if isinstance(error, ConflictError) or any(one.hint for one in error.problems):
                    raise
                raise DiskError(error.problems) from error.__cause__
        with suppress(OSError):
            self._kept_rejects.unlink(missing_ok=True)  # of a build before
        if self._is_sample:
            return manifest
        if rejected:
            rows = rejected + sum(written.rows(split) for split in written.splits)
            path = show_text(f"{transaction.name}/{REJECTS_FILE}")
            log.warning("%s of %s rows are invalid: see %s", f"{rejected:,}", f"{rows:,}", path)
        for difference in uneven_classes(manifest):
            log.warning("%s", show_text(difference))
        return manifest

    def _add_to_changed(self, transaction: RemoteTransaction, runs: tuple[Run, ...]) -> None:
        """Adds the rows to a dataset that another writer has changed since the build began."""
        with disk_errors(self.name):
            transaction.refresh()
            self._plan = self._plan.added_to(transaction)
        self._check_unique(runs)
        self._join_rejects()

    def _open_journal(self) -> Journal | None:
        """The journal, and what it says is done already; None if rows cannot be had again."""
        if self._identity is None:
            return None
        plan = {
            "version": [__version__, base.PART_BYTES],
            "schema": None if self._plan.schema is None else self._plan.schema.dump(),
            "options": to_builtins(self._plan.options),
            "source": self._identity,
            "append": None if self._plan.base is None else self._plan.base.manifest.dump(),
            "dataset to replace": self._plan.suffix,
        }
        journal = Journal(self._plan.folder, json.loads(json.dumps(plan)), self.name)
        journal.keep(sum(1 for _ in takewhile(self._goes_on, journal.entries)))
        self._clear()
        self.status.safe = self._before[-1]
        return journal

    def _clear(self) -> None:
        """Removes what tasks left that did not come to their end."""
        known = {name for part in self._parts for name in part.files}
        known |= {JOURNAL, *(f"{file}.keys" for file in self._shards)}
        for path in self._plan.folder.iterdir():
            if path.name not in known:
                path.unlink()

    def _goes_on(self, entry: Mapping[str, Any]) -> bool:
        """Takes over what the journal says is done, if its files are whole."""
        if "part" in entry:
            runs = tuple(SortedRun(**run) for run in entry["part"]["runs"])
            reasons = tuple(entry["part"].get("reasons", ()))
            part = EncodedPart(**{**entry["part"], "runs": runs, "reasons": reasons})
            whole = part.is_whole(self._plan.folder)
            if whole:
                self._add(part)
            return whole
        shard = Shard(**entry["shard"])
        path, keys = self._transaction.staging / shard.file, self._plan.folder / f"{shard.file}.keys"
        keyed = not self._plan.options.unique or key_hashes.rows(keys) == shard.rows
        if keyed and path.exists() and path.stat().st_size == shard.bytes:
            self._shards[shard.file] = shard
        return True


def new_manifest(plan: BuildPlan, splits: Shards, rejected: int, label_counts: LabelCounts) -> Manifest:
    """The manifest of what was just written."""
    options, schema = plan.options, plan.schema
    return Manifest(
        schema=None if schema is None else schema.name,
        fingerprint=None if schema is None else schema.fingerprint,
        record="example" if schema is None else schema.record,
        compression=options.compression,
        splits=splits,
        key=options.keys,
        shuffle_seed=options.shuffle.seed if options.shuffle else None,
        labels={} if schema is None else _labels(schema),
        label_counts={split: label_counts[split] for split in splits if split in label_counts},
        rejected=rejected,
        block=options.block,
        division=options.division,
    )


def _labels(schema: Schema) -> dict[str, tuple[str, ...]]:
    """The names of the classes by label. The one name for all others is no name of the data."""
    return {
        feature.name: feature.class_names[: -1 if getattr(feature, "oov", "") == "index" else None]
        for _, feature in schema.placed
        if feature.class_names
    }


def _key_hashes(manifest: Manifest, folder: Path, existing: ExistingDataset | None) -> Iterator[Words]:
    """The hashes of the keys of every shard: of old ones as they were, of new ones as they were written."""
    for split, shards in manifest.splits.items():
        old = 0
        if existing is not None:
            starts, old = existing.manifest.starts(), len(existing.manifest.splits.get(split, ()))
            for shard in shards[:old]:
                yield key_hashes.read(existing.keys, starts[shard.file], shard.rows)
        for shard in shards[old:]:
            yield key_hashes.read(folder / f"{shard.file}.keys", 0, shard.rows)
