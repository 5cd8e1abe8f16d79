"""Builds on Spark: the bytes of a local build, of any number of rows.

Rows are encoded where they are: parts of a config's source, or partitions of a DataFrame. Each becomes a row
of `split`, `order` and `record`; `order` has 32 bytes, which compare as a local build compares rows: the
order word, the two words of the key's hash, and the row's number, big-endian. Where the shards begin follows
from counts of the first bytes of `order`, and a closer look at those few where a shard begins. Spark's own
shuffle brings each row to the partition of its shard and sorts it there; a task writes each. The driver alone
publishes.

Functions whose name begins with `_task` run on executors. Errors of the data are results there: Spark would
repeat the task of one that is raised. What is raised is the system's, and worth another attempt.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, count, islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import MissingExtra, Problem, RecordspecError, SpecError, StoreError, missing_package
from recordspec.executors import Executor, SerialExecutor, ThreadPool, new_attempt
from recordspec.locations import Location, open_file, sync_file
from recordspec.progress import Progress
from recordspec.remote import RemotePath
from recordspec.spec.schema import Schema
from recordspec.store import key_hashes
from recordspec.store.journal import Journal
from recordspec.store.manifest import Manifest, Shard
from recordspec.store.publication import ConflictError, RemoteTransaction
from recordspec.wire.framing import FRAME_BYTES
from recordspec.wire.hashes import Words, sha256_of
from recordspec.wire.strings import Ints, Strings, offsets
from recordspec.writing.build import Build, Execution, Shards, write_options
from recordspec.writing.encoder import PART_BITS, EncodedRows, Encoder
from recordspec.writing.failures import DiskError, SourceError, source_errors
from recordspec.writing.options import Write
from recordspec.writing.shards import ShardRange, ShardWriter
from recordspec.writing.sorter import END, EXISTING, KEY, NUMBER, Run, index_of
from recordspec.writing.sources import SourcePart
from recordspec.writing.sources.arrow import check_table, table_batches, to_numpy, to_strings
from recordspec.writing.sources.base import Batches
from recordspec.writing.tasks import BuildPlan, EncodedPart, shards_of_split

try:
    from py4j.protocol import Py4JError
    from pyspark import StorageLevel, TaskContext
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession, Window
    from pyspark.sql import functions as sql
    from pyspark.sql.pandas.types import to_arrow_schema
except ImportError as missing:
    raise missing_package("pyspark", "builds on Spark", "recordspec[spark]", missing) from None

if TYPE_CHECKING:
    from recordspec.pipeline import Pipeline

_T = TypeVar("_T")

# Rows beside those of splits, none of which has such a name: the report of a task, and an invalid row's line.
_REPORT, _REJECT = "/report", "/reject"
_ROWS = "split string, order binary, record binary"
_ORDER_BYTES = END * 8
# The most partitions of a source: Spark's driver keeps a few kilobytes of each for every shuffle.
_MOST_PARTITIONS = 10_000
# Partitions that are encoded, for each core, before their reports are read: an invalid row ends it there.
_PARTITIONS_AT_ONCE = 16
# Bytes of rows that go to a Python worker at once.
_BYTES_AT_ONCE = 16 << 20
_MOST_ROWS = 10_000
# Java's serializer holds 100 cached batches; they have this many rows and 4 MiB at most.
_CACHED_ROWS = 1000
# The hashes of the keys of so many rows that are there already are read at once.
_KEYS_AT_ONCE = 1 << 20
# The most times that shards are uploaded where other writers take their names.
_CONFLICTS = 3
_MASTER = re.compile(r"local(-cluster)?(\[.+\])?|yarn|\w+://.+")
_REFUSED = {
    "jobs": "Spark's executors share the work",
    "memory": "Spark's configuration says how much executors have",
    "limit": "`frame.limit(n)` is a frame of fewer rows",
    "resume": "Spark repeats the tasks that fail",
}


def build(
    pipeline: Pipeline,
    session: SparkSession,
    *,
    source: str | os.PathLike[str] | RemotePath | None = None,
    **options: Any,
) -> Manifest:
    """Builds the dataset of a config on Spark, byte for byte as `Pipeline.build` does.

    Executors read the files of the source, and write to the folder of the dataset, under the paths that they
    have here.

    Args:
        source: a file or folder to read instead of the one that the config names.
        options: allow_empty, force, append and progress, as `recordspec.write` takes them.

    Raises what `recordspec.write` raises, and nothing of Spark's: a job that fails is a StoreError.
    """
    rows, section = pipeline._to_write(None, source)
    pipeline.__dict__.pop("manifest", None)
    return _build(session, None, rows, pipeline.schema, pipeline.data, {**section, **options})


def write(
    frame: DataFrame,
    schema: Schema,
    directory: str | os.PathLike[str] | RemotePath,
    *,
    split: Any = "train",
    **options: Any,
) -> Manifest:
    """Writes the rows of a Spark DataFrame as a sharded dataset, which appears whole or not at all.

    The same rows and options give the bytes that `recordspec.write` gives, whatever the partitions are;
    without a shuffle the order is that of the partitions. A frame must give the same rows when a partition of
    it is computed once more: persist one that does not, such as one with `rand()`.

    Args:
        frame: has a column for each feature, and for each name that the options need.
        directory: a folder that does not exist yet, under a path that executors have too.
        split, options: as `recordspec.write` takes them, but for jobs, memory, limit and resume.

    Raises what `recordspec.write` raises, and nothing of Spark's: a job that fails is a StoreError. A row is
    named by its partition and its number there.
    """
    return _build(frame.sparkSession, frame, FrameRows(), schema, directory, {"split": split, **options})


@contextmanager
def session_at(master: str) -> Iterator[SparkSession]:
    """A Spark session at a master: `local[4]`, or the URL of a cluster.

    Raises SpecError, StoreError, MissingExtra.
    """
    if _MASTER.fullmatch(master) is None:
        hint = "such as local[4], spark://host:7077 or yarn"
        raise SpecError(Problem(expected="a master of Spark", got=f"`{master}`", hint=hint))
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        hint = "install a JRE, and set JAVA_HOME if it is not on the path"
        raise MissingExtra(Problem(expected="Java 17 or later for Spark", got="none", hint=hint))
    if master.startswith("local"):  # the executors are on this machine
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("recordspec").config("spark.log.level", "ERROR")
    with _spark_errors(StoreError, master, "a session of Spark"):
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def _build(
    session: SparkSession,
    frame: DataFrame | None,
    source: Any,
    schema: Schema,
    directory: Any,
    options: dict[str, Any],
) -> Manifest:
    if not hasattr(session, "_jsparkSession"):
        problem = Problem(
            path=("session",), expected="a session with a SparkContext", got="one of Spark Connect"
        )
        raise SpecError(problem)
    for name, hint in _REFUSED.items():
        if name in options:
            expected = "an option of a build on Spark"
            raise SpecError(Problem(path=(name,), expected=expected, got=f"`{name}`", hint=hint))
    how = {name: options.pop(name) for name in Execution.__dataclass_fields__ if name in options}
    written = write_options(schema, options.pop("split"), options)
    if frame is not None:
        _check_frame(frame, schema, written)
    return SparkBuild(session, frame, schema, source, directory, written, Execution(**how)).run()


def _check_frame(frame: DataFrame, schema: Schema, options: Write) -> None:
    try:
        columns = to_arrow_schema(frame.schema)
    except PySparkException as error:
        problem = Problem(path=("frame",), expected="columns that Arrow has", got=_reason(error))
        raise SpecError(problem) from None
    check_table(schema, options.columns, columns)


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
    """What a task tells of a part that it has encoded.

    Attributes:
        part: the number of its rows, and of its invalid ones, and the label counts.
        sizes: by split its rows, and their bytes.
    """

    part: EncodedPart
    sizes: Mapping[str, tuple[int, int]]


class RowBatches:
    """A sink that makes Arrow record batches of encoded rows: `split`, `order` and `record`."""

    def __init__(self, plan: BuildPlan) -> None:
        shuffle, order = plan.options.shuffle, plan.order
        self._seed = None if shuffle is None else shuffle.seed
        self._by_record = order.shuffled and order.ties
        self._rows: list[tuple[Ints, Strings, Strings]] = []
        self._sizes: dict[int, tuple[int, int]] = {}

    def add(self, rows: EncodedRows, numbers: Words, hashed: Words | None, splits: Ints | None) -> None:
        records = rows.records
        index = index_of(records, numbers, hashed, self._seed)
        if self._by_record:
            # of rows with one key the length is compared, as it lies in a frame, and then the record
            index[NUMBER] = (index[END] - np.uint64(FRAME_BYTES)).byteswap()
        order = Strings.rows(np.ascontiguousarray(index[:END].T, ">u8").view(np.uint8))
        splits = np.zeros(len(rows), np.int64) if splits is None else splits
        for split in np.unique(splits).tolist():
            sizes = records.sizes[splits == split]
            known = self._sizes.get(split, (0, 0))
            self._sizes[split] = known[0] + len(sizes), known[1] + int(sizes.sum())
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


def _batch(splits: Any, order: Strings, records: Strings) -> Any:
    columns = [splits, *(_binary(strings) for strings in (order, records))]
    return arrow().RecordBatch.from_arrays(columns, ["split", "order", "record"])


def _binary(strings: Strings) -> Any:
    pyarrow = arrow()
    buffers = [pyarrow.py_buffer(strings.offsets.astype(np.int32)), pyarrow.py_buffer(strings.buffer)]
    return pyarrow.Array.from_buffers(pyarrow.binary(), len(strings), [None, *buffers])


def _lines(name: str, order: list[bytes], lines: list[bytes]) -> Any:
    return _batch(arrow().array([name] * len(order), "string"), Strings.of(order), Strings.of(lines))


def _task_encode_parts(plan: BuildPlan, folder: str, batches: Iterable[Any]) -> Iterator[Any]:
    parts = (pickle.loads(part.as_py()) for batch in batches for part in batch.column(0))
    with _working_in(folder):
        yield from _encoded(plan, parts)


def _task_encode_frame(plan: BuildPlan, folder: str, batches: Iterable[Any]) -> Iterator[Any]:
    number = _partition()
    with _working_in(folder):
        yield from _encoded(plan, [(number, FramePart(number, batches))])


def _partition() -> int:
    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


@contextmanager
def _working_in(folder: str) -> Iterator[None]:
    """Relative paths are those of the driver, if it has this folder in common with the executor."""
    before = os.getcwd()
    with suppress(OSError):
        os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _encoded(plan: BuildPlan, parts: Iterable[tuple[int, SourcePart]]) -> Iterator[Any]:
    """The rows of parts, and a report of each; the report of one that fails is its error, the last row."""
    for number, part in parts:
        sink, lines = RowBatches(plan), list[str]()
        encoder = Encoder(plan.checked_schema, plan.options, sink, lines.append, plan.name)
        encoder.begin(number, part.place)
        rejected = count(number << PART_BITS)
        report: EncodeReport | RecordspecError
        try:
            for batch in source_errors(part.batches(plan.checked_schema, plan.options.columns), plan.name):
                encoder.add(batch)
                yield from sink.taken(encoder.splits)
                if lines:
                    order = [row.to_bytes(8, "big") for row in islice(rejected, len(lines))]
                    yield _lines(_REJECT, order, [line.encode() for line in lines])
                    lines.clear()
            report = EncodeReport(EncodedPart.of(encoder, (), ""), sink.sizes(encoder.splits))
        except RecordspecError as error:
            report = _with_host(error)
        yield _lines(_REPORT, [pickle.dumps(report)], [b""])
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
        split: the name of that.
        key: an integer whose hash is the number of the partition, for Spark.
        skip: how many rows of the partition are before the shard, with the `order` of its first row.
    """

    shard: ShardRange
    split: str
    key: int
    skip: int = 0

    @property
    def rows(self) -> int:
        assert self.shard.stop is not None
        return self.shard.stop - self.shard.start


# By split: the number of its first shard, and the `order` of the first row of each of the others, in order.
Bounds = Mapping[str, tuple[int, Any]]


def _task_assign(bounds: Bounds, keys: list[int], batches: Iterable[Any]) -> Iterator[Any]:
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
    return to_strings(column).buffer.view(f"S{_ORDER_BYTES}")


def _task_write(
    plan: BuildPlan, job: str, store: RemotePath | None, shards: list[ShardPartition], batches: Iterable[Any]
) -> Iterator[Any]:
    """Writes the shard of a partition; gives the name of its file, and what is in it."""
    found: tuple[str, Shard] | RecordspecError
    try:
        with _output_folder(plan, store) as folder:
            found = _written(plan, folder, shards[_partition()], batches)
            if store is not None:
                _upload(folder, job, store, *found)
    except DiskError:
        raise
    except RecordspecError as error:
        found = error
    yield arrow().RecordBatch.from_pydict({"shard": [pickle.dumps(found)]})


@contextmanager
def _output_folder(plan: BuildPlan, store: RemotePath | None) -> Iterator[Path]:
    """Where a task writes: the plan's folder, or, where files are uploaded, one of its own."""
    if store is not None:
        with TemporaryDirectory(prefix="recordspec-") as name:
            yield Path(name)
    elif plan.folder.is_dir():
        yield plan.folder
    else:
        expected, got = "a folder that all executors have in common", f"none on {socket.gethostname()}"
        raise StoreError(Problem(where=str(plan.folder), expected=expected, got=got))


def _upload(folder: Path, job: str, store: RemotePath, file: str, shard: Shard) -> None:
    """Uploads a shard and the hashes of its keys. Another attempt has the same bytes. Raises StoreError."""
    keys = folder / f"{file}.keys"
    try:
        free = (store / shard.file).upload(folder / file, shard.sha256)
        if keys.exists():
            _keys_of(shard, job, store).upload(keys, sha256_of(keys))
    except StoreError as error:  # another attempt may have more luck
        raise DiskError(error.problems) from None
    if not free:
        expected, got = "no file of this name", "one of another writer"
        raise ConflictError(Problem(where=str(store / shard.file), expected=expected, got=got))


def _keys_of(shard: Shard, job: str, store: RemotePath) -> RemotePath:
    """Where the hashes of the keys of a shard are until the driver has them."""
    return store / f"{shard.file}.{job}.keys"


def _written(
    plan: BuildPlan, folder: Path, task: ShardPartition, batches: Iterable[Any]
) -> tuple[str, Shard]:
    name = task.shard.file
    file = f"{name}.{new_attempt()}"
    keys = folder / f"{file}.keys"
    writer = ShardWriter(folder / file, plan.schema, plan.options, name)
    try:
        skip, left = task.skip, task.rows
        for batch in batches:
            assert bool((to_numpy(batch.column(0)) == task.key).all()), "rows of another shard"
            start, stop = min(skip, batch.num_rows), min(skip + left, batch.num_rows)
            skip, left = skip - start, left - (stop - start)
            if start < stop:
                part = batch.slice(start, stop - start)
                records = to_strings(part.column(2))
                # a copy, in which the rows are framed
                records = Strings(records.buffer.copy(), records.offsets)
                writer.add(EncodedRows(plan.schema, len(records), records=records))
                if plan.options.unique:
                    words = to_strings(part.column(1)).buffer.view(">u8").reshape(-1, END)
                    key_hashes.add(keys, words[:, KEY].T)
        if left:
            hint = "does the frame give other rows each time? persist it"
            expected, got = f"{task.rows:,} rows", f"{task.rows - left:,}"
            raise StoreError(Problem(where=name, expected=expected, got=got, hint=hint))
        sync_file(keys)
        return file, writer.close(name)
    except BaseException:
        writer.abandon()
        raise


def _task_known_keys(path: Location, batches: Iterable[Any]) -> Iterator[Any]:
    """The hashes of the keys of rows that a dataset has already, by their first numbers, and the numbers."""
    for batch in batches:
        for first, rows in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            hashed = key_hashes.read(path, first, rows)
            numbers = np.arange(first, first + rows, dtype=np.uint64) + np.uint64(EXISTING)
            words = np.column_stack([hashed, numbers]).astype(">u8").view(np.uint8)
            columns = [
                _binary(Strings.rows(np.ascontiguousarray(part))) for part in (words[:, :16], words[:, 16:])
            ]
            yield arrow().RecordBatch.from_arrays(columns, ["key", "number"])


class SparkBuild(Build):
    """A build whose rows are encoded, sorted and written by the executors of a Spark session."""

    def __init__(
        self,
        session: SparkSession,
        frame: DataFrame | None,
        schema: Schema,
        source: Any,
        directory: Any,
        options: Write,
        execution: Execution,
    ) -> None:
        super().__init__(schema, source, directory, options, execution)
        self._session, self._frame, self._job = session, frame, new_attempt()
        self._sizes: dict[str, tuple[int, int]] = {}
        self._rows: DataFrame  # split, order and record
        self._orders: DataFrame  # without the record
        self._persisted: list[DataFrame] = []
        self._thread: ThreadPool

    def run(self) -> Manifest:
        errors = _spark_errors(DiskError, self.name)
        with self.begun(), Progress(show=self.execution.progress) as bar, errors, self._jobs():
            bar.begin("encoding", self._input.rows)
            with _spark_errors(SourceError, self.name):
                self._encode_all(bar)
            return self.finish(SerialExecutor(), bar)

    def _open_journal(self) -> Journal | None:
        return None  # Spark repeats what fails; nothing is kept for another build

    @contextmanager
    def _jobs(self) -> Iterator[None]:
        """Spark's jobs of the block form a group, which is cancelled if it raises."""
        context, group = self._session.sparkContext, f"recordspec-{self._job}"
        self._thread = ThreadPool("recordspec-spark")
        self._await(partial(context.setJobGroup, group, f"recordspec: {self.name}", interruptOnCancel=True))
        try:
            with _configured(
                self._session, {"spark.sql.inMemoryColumnarStorage.batchSize": str(_CACHED_ROWS)}
            ):
                yield
        except BaseException:
            with suppress(Exception):
                context.cancelJobGroup(group)
            raise
        finally:
            with suppress(Exception):
                for frame in self._persisted:
                    frame.unpersist()
            self._thread.close()

    def _await(self, job: Callable[[], _T]) -> _T:
        """Runs a job in a thread: a Ctrl-C in the midst of a call of py4j's would break its connection, and
        leave the job running."""
        return self._thread.submit(job).result()

    def _persist(self, frame: DataFrame) -> DataFrame:
        self._persisted.append(frame.persist(StorageLevel.DISK_ONLY))
        return frame

    def _encode_all(self, bar: Progress) -> None:
        """Encodes the rows, which stay on the disks of the executors, and takes the reports."""
        self._rows = self._persist(self._encoded_frame())
        # the passes over `order` alone do not read the records
        self._orders = self._persist(self._rows.select("split", "order"))
        context = self._session.sparkContext
        reports = self._orders.where(sql.col("split") == _REPORT).select("order").rdd
        partitions, at_once = reports.getNumPartitions(), _PARTITIONS_AT_ONCE * context.defaultParallelism
        for first in range(0, partitions, at_once):
            some = range(first, min(first + at_once, partitions))
            for (report,) in self._await(partial(context.runJob, reports, list, some)):
                self._take_report(pickle.loads(report), bar)

    @property
    def _task_plan(self) -> BuildPlan:
        """The plan without the manifest that rows are added to, which may be large."""
        return replace(self._plan, base=None)

    def _encoded_frame(self) -> DataFrame:
        plan, folder = self._task_plan, os.getcwd()
        if self._frame is not None:
            return self._frame.mapInArrow(lambda batches: _task_encode_frame(plan, folder, batches), _ROWS)
        parts = [(pickle.dumps(part),) for part in enumerate(self._source_parts())]
        slices = max(1, min(len(parts), _MOST_PARTITIONS))
        frame = self._session.createDataFrame(
            self._session.sparkContext.parallelize(parts, slices), "part binary"
        )
        return frame.mapInArrow(lambda batches: _task_encode_parts(plan, folder, batches), _ROWS)

    def _take_report(self, report: EncodeReport | RecordspecError, bar: Progress) -> None:
        if isinstance(report, RecordspecError):
            row = getattr(report, "row", None)
            if row is not None:
                report.row = self._before[-1] + row  # type: ignore[attr-defined]
            raise report
        for split, (rows, size) in report.sizes.items():
            known = self._sizes.get(split, (0, 0))
            self._sizes[split] = known[0] + rows, known[1] + size
            bar.advance(rows, size)
        self._add(report.part)

    def _rejects(self) -> Iterator[tuple[Mapping[str, Any], int]]:
        if not any(part.rejected for part in self._parts):
            return
        lines = self._rows.where(sql.col("split") == _REJECT).orderBy("order").select("order", "record")
        for order, line in lines.toLocalIterator():
            yield json.loads(line), self._before[int.from_bytes(order, "big") >> PART_BITS]

    def _in_splits(self) -> DataFrame:
        return self._orders.where(~sql.col("split").startswith("/"))

    def _duplicate_keys(self, runs: tuple[Run, ...]) -> tuple[int, int] | None:
        key, number = (sql.substring("order", start + 1, size) for start, size in ((8, 16), (24, 8)))
        keys = self._in_splits().select(key.alias("key"), number.alias("number"))
        if self._plan.base is not None:
            keys = keys.union(self._known_keys(self._plan.base.keys))
        several = keys.groupBy("key").count().where("count > 1").orderBy("key").select("key")
        twice = self._await(several.first)
        if twice is None:
            return None
        ordered = keys.where(sql.col("key") == sql.lit(bytes(twice.key))).orderBy("number")
        rows = self._await(partial(ordered.take, 2))
        first, second = (int.from_bytes(row.number, "big") for row in rows)
        return first, second

    def _known_keys(self, path: Location) -> DataFrame:
        rows = key_hashes.rows(path)
        ranges = [(first, min(_KEYS_AT_ONCE, rows - first)) for first in range(0, rows, _KEYS_AT_ONCE)]
        session = self._session
        frame = session.createDataFrame(
            session.sparkContext.parallelize(ranges, max(1, len(ranges))), "first long, rows long"
        )
        return frame.mapInArrow(lambda batches: _task_known_keys(path, batches), "key binary, number binary")

    def _write_shards(self, runs: tuple[Run, ...], pool: Executor, bar: Progress) -> Shards:
        splits = tuple(self._plan.options.weights or sorted(self._sizes))
        planned = [
            (split, shard)
            for split in splits
            for rows, size in [self._sizes.get(split, (0, 0))]
            for shard in shards_of_split(self._plan, split, size, rows)
        ]
        written: dict[str, list[Shard]] = {split: [] for split in splits}
        if planned:
            bar.begin("writing shards", self._before[-1])
            keys = _partition_keys(self._session, len(planned))
            tasks = [
                ShardPartition(shard=shard, split=split, key=key)
                for (split, shard), key in zip(planned, keys, strict=True)
            ]
            for task, (file, shard) in self._written(*self._cut(tasks)):
                self._take_over(file, shard)
                bar.advance(shard.rows, shard.bytes)
                written[task.split].append(shard)
        return {split: tuple(shards) for split, shards in written.items()}

    def _written(
        self, bounds: Bounds, tasks: list[ShardPartition]
    ) -> Iterator[tuple[ShardPartition, tuple[str, Shard]]]:
        """Writes the shards; gives the name of the file of each, and what is in it."""
        store, named = None, tasks
        for _ in range(_CONFLICTS):
            if isinstance(self._transaction, RemoteTransaction):
                store = self._transaction.remote
                names = self._transaction.free_names([task.shard.file for task in tasks])
                files = [replace(task.shard, file=names[task.shard.file]) for task in tasks]
                named = [replace(task, shard=shard) for task, shard in zip(tasks, files, strict=True)]
            found = self._write_once(bounds, named, store)
            if not any(isinstance(shard, ConflictError) for shard in found):
                break
        for task, shard in zip(tasks, found, strict=True):
            if isinstance(shard, RecordspecError):
                raise shard
            yield task, shard

    def _take_over(self, file: str, shard: Shard) -> None:
        if not isinstance(self._transaction, RemoteTransaction):
            super()._take_over(file, shard)
        elif self._plan.options.unique and shard.rows:
            keys = _keys_of(shard, self._job, self._transaction.remote)
            with open_file(keys) as there, (self._plan.folder / f"{shard.file}.keys").open("wb") as here:
                shutil.copyfileobj(there, here)
            keys.unlink()

    def _cut(self, tasks: list[ShardPartition]) -> tuple[Bounds, list[ShardPartition]]:
        """Where the shards begin."""
        firsts: dict[str, int] = {}
        for number, task in enumerate(tasks):
            firsts.setdefault(task.split, number)
        cuts: dict[str, list[bytes]] = {split: [] for split in firsts}
        tasks = [*tasks]
        for number, order, skip in self._first_rows(tasks):
            cuts[tasks[number].split].append(order)
            tasks[number] = replace(tasks[number], skip=skip)
        return {
            split: (firsts[split], np.array(found, f"S{_ORDER_BYTES}")) for split, found in cuts.items()
        }, tasks

    def _first_rows(self, tasks: list[ShardPartition]) -> list[tuple[int, bytes, int]]:
        """Of each shard but the first of a split that has rows: its number, the `order` of its first row, and
        how many rows have that and are before it."""
        wanted = [
            (number, task)
            for number, (before, task) in enumerate(pairwise(tasks), 1)
            if before.split == task.split and task.split in self._sizes
        ]
        if not wanted:
            return []
        # hashes are uniform; numbers have the part in their first three bytes, then 65,536 rows
        width = 6 if not self._plan.order.shuffled else 2 if len(self._sizes) <= 4 else 1
        rows = self._in_splits().withColumn("prefix", sql.substring("order", 1, width))
        counted: dict[str, list[tuple[bytes, int]]] = {}
        for split, prefix, found in self._await(rows.groupBy("split", "prefix").count().collect):
            counted.setdefault(split, []).append((bytes(prefix), found))
        starts = {}
        for split, prefixes in counted.items():
            prefixes.sort()
            starts[split] = np.array([0, *accumulate(found for _, found in prefixes)])
        near = []
        for number, task in wanted:
            place = int(np.searchsorted(starts[task.split], task.shard.start, side="right")) - 1
            row = task.shard.start - int(starts[task.split][place])
            near.append((number, task.split, counted[task.split][place][0], row + 1))
        session = self._session
        some = session.createDataFrame(near, "number long, split string, prefix binary, row int")
        prefixes_near = sql.broadcast(some.select("split", "prefix").distinct())
        window = Window.partitionBy("split", "prefix").orderBy("order")
        ranked = rows.join(prefixes_near, ["split", "prefix"]).select(
            "split",
            "prefix",
            "order",
            sql.row_number().over(window).alias("row"),
            sql.rank().over(window).alias("rank"),
        )
        found = ranked.join(sql.broadcast(some), ["split", "prefix", "row"]).select(
            "number", "order", "row", "rank"
        )
        return sorted(
            (row.number, bytes(row.order), row.row - row.rank) for row in self._await(found.collect)
        )

    def _write_once(
        self, bounds: Bounds, tasks: list[ShardPartition], store: RemotePath | None
    ) -> list[tuple[str, Shard] | RecordspecError]:
        plan, job, keys = self._task_plan, self._job, [task.key for task in tasks]
        rows, size = (sum(sizes) for sizes in zip((1, 0), *self._sizes.values(), strict=True))
        at_once = max(1, min(_MOST_ROWS, _BYTES_AT_ONCE * rows // (size + 1)))
        # adaptive execution may put partitions together
        how = {
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(at_once),
        }
        with _configured(self._session, how):
            assigned = self._rows.where(~sql.col("split").startswith("/")).mapInArrow(
                lambda batches: _task_assign(bounds, keys, batches), "shard int, order binary, record binary"
            )
            sorted_rows = assigned.repartition(len(tasks), "shard").sortWithinPartitions("order", "record")
            shards = sorted_rows.mapInArrow(
                lambda batches: _task_write(plan, job, store, tasks, batches), "shard binary"
            )
            return [pickle.loads(shard) for (shard,) in self._await(shards.collect)]


def _partition_keys(session: SparkSession, partitions: int) -> list[int]:
    """For each partition an integer that Spark's `repartition` puts there, by its hash modulo the number."""
    # of 32 times as many integers none is missed: each partition is, with a probability of exp(-32)
    text = f"SELECT transform(sequence(0, {32 * partitions - 1}), key -> pmod(hash(key), {partitions}))"
    (places,) = session.sql(text).collect()[0]
    found, keys = np.unique(places, return_index=True)
    assert len(found) == partitions
    return [int(key) for key in keys]


@contextmanager
def _configured(session: SparkSession, options: Mapping[str, str]) -> Iterator[None]:
    """Options of the session for a block."""
    before = {name: session.conf.get(name, None) for name in options}
    try:
        for name, value in options.items():
            session.conf.set(name, value)
        yield
    finally:
        with suppress(Exception):  # Spark may be gone
            for name, value in before.items():
                session.conf.unset(name) if value is None else session.conf.set(name, value)


@contextmanager
def _spark_errors(
    kind: type[StoreError] | type[SourceError], name: str, expected: str = "Spark's jobs to the end"
) -> Iterator[None]:
    """Raises an error of Spark's as one of these."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise kind(Problem(where=name, expected=expected, got=_reason(error))) from None


_RAISED = re.compile(r"^[\w.]*?(\w+(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE)


def _reason(error: Exception) -> str:
    """What Spark says of an error, without the traces: that of Python code is its last line."""
    text = str(error)
    python = text.partition("Traceback (most recent call last)")[2]
    found = _RAISED.findall(python) if python else ()
    if found:
        return f"{found[-1][0]}: {found[-1][1]}"
    java = _RAISED.findall(text)
    return java[0][1] if java else text.strip().partition("\n")[0]
