"""The tasks of Spark's executors, which encode rows where they are, assign them to shards, and write them.

Parts of a config's source, or partitions of a DataFrame, become rows of `split`, `order` and `record`.
`order` has 32 bytes, which compare as a local build compares rows: the order word, the two words of the key's
hash, and the row's number, big-endian.

Errors of the data are results here: Spark would repeat the task of one that is raised. What is raised is the
system's, and worth another attempt.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pyspark import TaskContext

from recordspec import __version__
from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordspecError, State, StoreError
from recordspec.executors import new_attempt, response_of, working_in
from recordspec.locations import Location, sync_file
from recordspec.remote import RemotePath, upload
from recordspec.schema.schema import Schema
from recordspec.store import key_hashes
from recordspec.store.manifest import INDEX, KEYS, PIECES, LabelCounts, Shard
from recordspec.store.remote_transaction import ConflictError
from recordspec.wire import native
from recordspec.wire.arrays import (
    ArrowArray,
    Ints,
    buffer_of,
    offsets,
    rows_array,
    sizes_of,
    strings_array,
    to_binary,
    to_numpy,
)
from recordspec.wire.hashes import Words, sha256_of
from recordspec.writing.build_plan import BuildPlan
from recordspec.writing.copies import ClassChanges, copy_hashes
from recordspec.writing.division import order_of, split_of
from recordspec.writing.encoded_rows import EncodedRows, RecordRows
from recordspec.writing.failures import DiskError, source_errors
from recordspec.writing.row_encoder import PART_BITS, EncodedPart, Encoder
from recordspec.writing.sharding import ShardRange, ShardWriter
from recordspec.writing.sorter import END, EXISTING, KEY_HASH, ORDER, index_of
from recordspec.writing.sources.arrow import table_batches
from recordspec.writing.sources.base import Batches, SourcePart

# Rows beside those of splits, none of which has such a name: the report of a task, and an invalid row's line.
REPORT, REJECT = "/report", "/reject"
ROWS = "split string, order binary, record binary"
ORDER_BYTES = END * 8

log = logging.getLogger("recordspec")


class OtherPackageError(StoreError):
    """An executor has another recordspec than the driver."""


@cache
def package() -> str:
    """The version of recordspec, and the first digits of a hash of its source: a version in development may
    differ under one number."""
    digest, folders = hashlib.sha256(), [files("recordspec")]
    for folder in folders:
        for path in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if path.is_dir():
                folders.append(path)
            elif path.name.endswith(".py"):
                digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return f"recordspec {__version__} of source {digest.hexdigest()[:12]}"


def run_with(drivers: str, task: bytes, batches: Iterable[Any]) -> Iterator[Any]:
    """Runs a pickled task, if the executor has the driver's package: another may write other bytes.

    Raises OtherPackageError.
    """
    if package() != drivers:
        where, expected = f"executor {socket.gethostname()}", f"{drivers}, as the driver has"
        raise OtherPackageError(Problem(where=where, expected=expected, got=package()))
    _report_codec()
    yield from pickle.loads(task)(batches)


@cache
def _report_codec() -> None:
    """Reports once that an executor is slow."""
    if native.missing():
        log.warning("executor %s: %s", socket.gethostname(), native.describe())


class FrameRows:
    """Stands for the rows of a DataFrame: names them in messages."""

    rows = None
    notes: tuple[str, ...] = ()

    def parts(self, schema: Any, extra: tuple[str, ...]) -> Iterator[FramePart]:
        return (FramePart(number, ()) for number in count())

    def identity(self) -> None:
        return None


@dataclass(frozen=True)
class FramePart:
    """A partition of a DataFrame: its number, and Arrow's record batches."""

    number: int
    tables: Iterable[Any]

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        for table in self.tables:
            yield from table_batches(table, {name: name for name in table.schema.names}, schema)

    def place(self, row: int) -> str:
        return f"partition {self.number}, row {row}"


@dataclass(frozen=True)
class EncodeReport:
    """The report of a task on a part that it encoded.

    Attributes:
        part: the numbers of its valid and invalid rows, and the label counts.
        sizes: the rows of each split, and their bytes.
    """

    part: EncodedPart
    sizes: Mapping[str, tuple[int, int]]


class RowBatches:
    """A sink that makes Arrow record batches of encoded rows: `split`, `order` and `record`."""

    def __init__(self, plan: BuildPlan) -> None:
        self._seed = plan.seed
        self._rows: list[tuple[Ints, ArrowArray, ArrowArray]] = []
        self._sizes: dict[int, tuple[int, int]] = {}

    def add(self, rows: EncodedRows, numbers: Words, hashed: Words | None, splits: Ints | None) -> None:
        records = rows.records
        sizes = sizes_of(records)
        index = index_of(sizes, numbers, hashed, self._seed)
        order = rows_array(np.ascontiguousarray(index[:END].T, ">u8").view(np.uint8))
        splits = np.zeros(len(rows), np.int64) if splits is None else splits
        for split in np.unique(splits).tolist():
            of_split = sizes[splits == split]
            known = self._sizes.get(split, (0, 0))
            self._sizes[split] = known[0] + len(of_split), known[1] + int(of_split.sum())
        self._rows.append((splits, order, records))

    def taken(self, splits: list[str]) -> Iterator[Any]:
        """The rows so far, whose splits have these names."""
        rows, self._rows = self._rows, []
        names = arrow().array(splits, "string")
        for numbers, order, records in rows:
            yield _batch(names.take(arrow().array(numbers)), order, records)

    def sizes(self, splits: list[str]) -> dict[str, tuple[int, int]]:
        """The rows of each split, and their bytes with room for their frames."""
        return {splits[number]: size for number, size in self._sizes.items()}


def _batch(splits: Any, order: ArrowArray, records: ArrowArray) -> Any:
    columns = [splits, *(_binary(strings) for strings in (order, records))]
    return arrow().RecordBatch.from_arrays(columns, ["split", "order", "record"])


def _binary(strings: ArrowArray) -> Any:
    return strings.cast(arrow().binary())


def _lines(name: str, order: list[bytes], lines: list[bytes]) -> Any:
    return _batch(arrow().array([name] * len(order), "string"), strings_array(order), strings_array(lines))


def run_tasks(function: Callable[..., Any], folder: str, tasks: Iterable[bytes]) -> Iterator[bytes]:
    """The results of pickled tasks, or their errors, pickled."""
    with working_in(folder):
        for pickled in tasks:
            yield bytes(response_of(function, (*pickle.loads(pickled), new_attempt())))


def encode_parts(plan: BuildPlan, folder: str, batches: Iterable[Any]) -> Iterator[Any]:
    parts = (pickle.loads(part.as_py()) for batch in batches for part in batch.column(0))
    with working_in(folder):
        yield from _encoded(plan, parts)


def encode_frame(plan: BuildPlan, folder: str, batches: Iterable[Any]) -> Iterator[Any]:
    number = _partition()
    with working_in(folder):
        yield from _encoded(plan, [(number, FramePart(number, batches))])


def _partition() -> int:
    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def _encoded(plan: BuildPlan, parts: Iterable[tuple[int, SourcePart]]) -> Iterator[Any]:
    """The rows of parts, and a report of each; the report of one that fails is its error, the last row."""
    for number, part in parts:
        sink, lines = RowBatches(plan), list[str]()
        encoder = Encoder(plan, sink, lines.append)
        encoder.begin(number, part.place)
        rejected = count(number << PART_BITS)
        report: EncodeReport | RecordspecError
        try:
            for batch in source_errors(part.batches(plan.checked_schema, plan.options.columns), plan.name):
                encoder.add(batch)
                yield from sink.taken(encoder.splits)
                if lines:
                    order = [row.to_bytes(8, "big") for row in islice(rejected, len(lines))]
                    yield _lines(REJECT, order, [line.encode() for line in lines])
                    lines.clear()
            report = EncodeReport(
                EncodedPart.of(encoder, (), f"part-{number:05d}.rejects"), sink.sizes(encoder.splits)
            )
        except RecordspecError as error:
            report = _with_host(error)
        yield _lines(REPORT, [pickle.dumps(report)], [b""])
        if isinstance(report, RecordspecError):
            return


def _with_host(error: RecordspecError) -> RecordspecError:
    """The error with a hint where a file is not there: on another machine it may be."""
    if isinstance(error.__cause__, FileNotFoundError):
        hint = f"on executor {socket.gethostname()}: all of them need it under this path"
        error = type(error)([replace(problem, hint=hint) for problem in error.problems])
    return error


@dataclass(frozen=True, kw_only=True)
class ShardPartition:
    """A shard, and the partition that has its rows.

    Attributes:
        shard: its rows among those of its split.
        split: the name of the split.
        key: an integer whose hash is the number of the partition, for Spark.
        skip: the number of rows of the partition before the shard, with the `order` of its first row.
    """

    shard: ShardRange
    split: str
    key: int
    skip: int = 0

    @property
    def rows(self) -> int:
        assert self.shard.stop is not None
        return self.shard.stop - self.shard.start


@dataclass(frozen=True)
class MoveReport:
    """The report of a task on the copies of rows that it moved.

    Attributes:
        sizes: by split, how many rows it gained, and their bytes: below 0 if it lost them.
        label_counts: how many rows of each class it gained.
    """

    sizes: Mapping[str, tuple[int, int]]
    label_counts: LabelCounts


def move_copies(plan: BuildPlan, batches: Iterable[Any]) -> Iterator[Any]:
    """Gives rows with a number of a copy in their fourth column their own `order`, and their own split."""
    pyarrow, options = arrow(), plan.options
    names = list(options.weights or ())
    changes, sizes = ClassChanges(plan.schema, names), np.zeros((len(names), 2), np.int64)
    for batch in batches:
        numbers = to_numpy(batch.column(3).fill_null(0)).astype(np.uint64)
        kept, moved = (
            batch.take(pyarrow.array(rows))
            for rows in (np.flatnonzero(numbers == 0), np.flatnonzero(numbers))
        )
        yield pyarrow.RecordBatch.from_arrays(kept.columns[:3], ["split", "order", "record"])
        if not moved.num_rows:
            continue
        words = buffer_of(to_binary(moved.column(1))).view(">u8").reshape(-1, END).astype(np.uint64)
        words[:, KEY_HASH] = copy_hashes(words[:, KEY_HASH], numbers[numbers > 0])
        if plan.seed is not None:
            words[:, ORDER] = order_of(words[:, KEY_HASH], plan.seed)
        splits, records = moved.column(0), to_binary(moved.column(2))
        if options.spreads_copies and options.weights:
            old = to_numpy(pyarrow.compute.index_in(splits, pyarrow.array(names))).astype(np.int64)
            new = split_of(words[:, KEY_HASH], options.weights)
            changes.add(RecordRows(records), old, new)
            sized = np.column_stack([np.ones(len(records), np.int64), sizes_of(records)])
            np.subtract.at(sizes, old, sized)
            np.add.at(sizes, new, sized)
            splits = pyarrow.array(names, "string").take(pyarrow.array(new))
        order = rows_array(np.ascontiguousarray(words, ">u8").view(np.uint8))
        yield _batch(splits, order, records)
    gained = {name: (rows, size) for name, (rows, size) in zip(names, sizes.tolist(), strict=True)}
    report = MoveReport(gained, changes.by_split())
    yield _lines(REPORT, [pickle.dumps(report)], [b""])


# By split: the number of its first shard, and the `order` of the first row of each of the others, in order.
Bounds = Mapping[str, tuple[int, Any]]


def assign(bounds: Bounds, keys: list[int], batches: Iterable[Any]) -> Iterator[Any]:
    """Puts before each row the key of its shard. A row whose `order` is a bound goes to both sides of it."""
    pyarrow, key_of = arrow(), np.array(keys, np.int32)
    for batch in batches:
        names = batch.column(0).dictionary_encode()
        numbers = to_numpy(names.indices)
        order = _orders(batch.column(1))
        low, high = np.zeros((2, batch.num_rows), np.int64)
        for number, name in enumerate(names.dictionary.to_pylist()):
            rows, (first, cuts) = np.flatnonzero(numbers == number), bounds[name]
            low[rows] = first + np.searchsorted(cuts, order[rows])
            high[rows] = first + np.searchsorted(cuts, order[rows], side="right")
        times = high - low + 1
        rows = np.repeat(np.arange(batch.num_rows), times)
        shards = np.arange(len(rows)) - np.repeat(offsets(times)[:-1], times) + low[rows]
        taken = batch if len(rows) == batch.num_rows else batch.take(pyarrow.array(rows))
        columns = [pyarrow.array(key_of[shards]), taken.column(1), taken.column(2)]
        yield pyarrow.RecordBatch.from_arrays(columns, ["shard", "order", "record"])


def _orders(column: Any) -> Any:
    """The column `order`, as NumPy's bytes, which compare as they do."""
    return buffer_of(to_binary(column)).view(f"S{ORDER_BYTES}")


def write_shard(
    plan: BuildPlan, job: str, store: RemotePath | None, shards: list[ShardPartition], batches: Iterable[Any]
) -> Iterator[Any]:
    """Writes the shard of a partition; returns the name of its file, and what is in it."""
    written: tuple[str, Shard] | RecordspecError
    try:
        with _output_folder(plan, store) as folder:
            written = _written(plan, folder, shards[_partition()], batches)
            if store is not None:
                _upload(folder, job, store, *written)
    except DiskError:
        raise
    except RecordspecError as error:
        written = error
    yield arrow().RecordBatch.from_pydict({"shard": [pickle.dumps(written)]})


@contextmanager
def _output_folder(plan: BuildPlan, store: RemotePath | None) -> Iterator[Path]:
    """The folder of a task: that of the plan, or a separate one if files are uploaded."""
    if store is not None:
        with TemporaryDirectory(prefix="recordspec-") as name:
            yield Path(name)
    elif plan.folder.is_dir():
        yield plan.folder
    else:
        got, hint = f"does not exist on {socket.gethostname()}", "all executors need it under this path"
        raise StoreError(State(where=str(plan.folder), got=got, hint=hint))


def _upload(folder: Path, job: str, store: RemotePath, file: str, shard: Shard) -> None:
    """Uploads a shard, and the hashes of its keys and its index. Another attempt has the same bytes. Raises
    StoreError."""
    try:
        free = upload(store / shard.file, folder / file, shard.sha256)
        for suffix in PIECES:
            if (piece := folder / f"{file}{suffix}").exists():
                upload(piece_of(shard, suffix, job, store), piece, sha256_of(piece))
    except StoreError as error:  # another attempt may have more luck
        raise DiskError(error.problems) from None
    if not free:
        raise ConflictError(State(where=str(store / shard.file), got="was written by another writer"))


def piece_of(shard: Shard, suffix: str, job: str, store: RemotePath) -> RemotePath:
    """The file of the key hashes of a shard, or of its index, until the driver reads it."""
    return store / f"{shard.file}.{job}{suffix}"


def _written(
    plan: BuildPlan, folder: Path, task: ShardPartition, batches: Iterable[Any]
) -> tuple[str, Shard]:
    name = task.shard.file
    file = f"{name}.{new_attempt()}"
    keys = folder / f"{file}{KEYS}"
    writer = ShardWriter(folder / file, plan.schema, plan.options, name, folder / f"{file}{INDEX}")
    try:
        skip, left = task.skip, task.rows
        for batch in batches:
            assert bool((to_numpy(batch.column(0)) == task.key).all()), "rows of another shard"
            start, stop = min(skip, batch.num_rows), min(skip + left, batch.num_rows)
            skip, left = skip - start, left - (stop - start)
            if start < stop:
                part = batch.slice(start, stop - start)
                records = to_binary(part.column(2))
                writer.add(RecordRows(records))
                if plan.options.unique:
                    words = buffer_of(to_binary(part.column(1))).view(">u8").reshape(-1, END)
                    key_hashes.add(keys, words[:, KEY_HASH].T)
        if left:
            hint = "does the frame give other rows each time? persist it"
            expected, got = f"{task.rows:,} rows", f"{task.rows - left:,}"
            raise StoreError(Problem(where=name, expected=expected, got=got, hint=hint))
        sync_file(keys)
        return file, writer.close(name)
    except BaseException:
        writer.abandon()
        raise


def known_keys(path: Location, batches: Iterable[Any]) -> Iterator[Any]:
    """The hashes of the keys of rows that a dataset has already, by their first numbers, and the numbers."""
    for batch in batches:
        for first, rows in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            hashed = key_hashes.read(path, first, rows)
            numbers = np.arange(first, first + rows, dtype=np.uint64) + np.uint64(EXISTING)
            words = np.column_stack([hashed, numbers]).astype(">u8").view(np.uint8)
            columns = [
                _binary(rows_array(np.ascontiguousarray(part))) for part in (words[:, :16], words[:, 16:])
            ]
            yield arrow().RecordBatch.from_arrays(columns, ["key", "number"])
