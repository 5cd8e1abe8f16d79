"""A build whose rows are encoded, sorted and written by Spark, and published by the driver alone.

Where the shards begin follows from counts of the first bytes of `order`, and a closer look at those few where
a shard begins. Spark's own shuffle brings each row to the partition of its shard and sorts it there; a task
writes each.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np
from py4j.protocol import Py4JError
from pyspark import StorageLevel, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sql

from recordspec.errors import Problem, RecordspecError, StoreError
from recordspec.executors import Executor, SerialExecutor, ThreadPool, new_attempt
from recordspec.locations import Location, open_file
from recordspec.progress import Progress
from recordspec.remote import RemotePath
from recordspec.spark.tasks import (
    ORDER_BYTES,
    REJECT,
    REPORT,
    ROWS,
    Bounds,
    EncodeReport,
    MoveReport,
    OtherPackageError,
    ShardPartition,
    assign,
    encode_frame,
    encode_parts,
    keys_of,
    known_keys,
    move_copies,
    package,
    run_with,
    write_shard,
)
from recordspec.spec.schema import Schema
from recordspec.store import key_hashes
from recordspec.store.journal import Journal
from recordspec.store.manifest import LabelCounts, Manifest, Shard
from recordspec.store.publication import ConflictError, RemoteTransaction
from recordspec.writing.build import Build, Execution, Shards
from recordspec.writing.encoder import PART_BITS
from recordspec.writing.failures import DiskError, SourceError
from recordspec.writing.label_counts import summed_counts
from recordspec.writing.options import Write
from recordspec.writing.sorter import Run
from recordspec.writing.tasks import BuildPlan, shards_of_split

_T = TypeVar("_T")

# The most partitions of a source: Spark's driver keeps a few kilobytes of each for every shuffle.
_MOST_PARTITIONS = 10_000
# Partitions that are encoded, for each core, before their reports are read: an invalid row ends it there.
_PARTITIONS_AT_ONCE = 16
# Bytes of rows that go to a Python worker at once.
_BYTES_AT_ONCE = 16 << 20
_MOST_ROWS = 10_000
# Java's serializer holds 100 cached batches; they have this many rows and 4 MiB at most.
_CACHED_ROWS = 1000
# The number of existing rows whose key hashes are read at once.
_KEYS_AT_ONCE = 1 << 20
# The most times that shards are uploaded where other writers take their names.
_CONFLICTS = 3


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
        errors = spark_errors(DiskError, self.name)
        with self.begun(), Progress(show=self.execution.progress) as bar, errors, self._jobs():
            bar.begin("encoding", self._input.rows)
            with spark_errors(SourceError, self.name):
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
        """Runs a job in a thread: a Ctrl-C during a call of py4j would break its connection, and
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
        reports = self._orders.where(sql.col("split") == REPORT).select("order").rdd
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
            return self._frame.mapInArrow(_task(lambda batches: encode_frame(plan, folder, batches)), ROWS)
        parts = [(pickle.dumps(part),) for part in enumerate(self._source_parts())]
        slices = max(1, min(len(parts), _MOST_PARTITIONS))
        frame = self._session.createDataFrame(
            self._session.sparkContext.parallelize(parts, slices), "part binary"
        )
        return frame.mapInArrow(_task(lambda batches: encode_parts(plan, folder, batches)), ROWS)

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
        lines = self._rows.where(sql.col("split") == REJECT).orderBy("order").select("order", "record")
        for order, line in lines.toLocalIterator():
            yield json.loads(line), self._before[int.from_bytes(order, "big") >> PART_BITS]

    def _in_splits(self) -> DataFrame:
        return self._orders.where(~sql.col("split").startswith("/"))

    def _number_copies(self, runs: tuple[Run, ...], bar: Progress) -> tuple[tuple[Run, ...], LabelCounts]:
        """Moves copies. They are counted by hash and part: of a frequent row, no task gets all."""
        if not self._plan.options.numbers_copies:
            return runs, {}
        key, part = (sql.substring("order", start + 1, size) for start, size in ((8, 16), (24, 3)))
        rows = self._in_splits().withColumn("key", key).withColumn("part", part)
        of_key = Window.partitionBy("split", "key")
        before = of_key.orderBy("part").rowsBetween(Window.unboundedPreceding, -1)
        parts = (
            rows.groupBy("split", "key", "part")
            .count()
            .withColumn("total", sql.sum("count").over(of_key))
            .where("total > 1")
            .withColumn("before", sql.coalesce(sql.sum("count").over(before), sql.lit(0)))
            .select("split", "key", "part", "before")
        )
        parts = self._persist(parts)
        if self._await(parts.first) is None:
            return runs, {}
        bar.begin("moving copies", None)
        place = sql.row_number().over(Window.partitionBy("split", "key", "part").orderBy("order")) - 1
        copies = (
            rows.join(parts, ["split", "key", "part"])
            .withColumn("copy", sql.col("before") + place)
            .where("copy > 0")
            .select("split", "order", "copy")
        )
        plan = self._task_plan
        joined = self._rows.where(sql.col("split") != REPORT).join(copies, ["split", "order"], "left")
        moved = joined.select("split", "order", "record", "copy").mapInArrow(
            _task(lambda batches: move_copies(plan, batches)), ROWS
        )
        self._rows = self._persist(moved)
        self._orders = self._persist(self._rows.select("split", "order"))
        reports = self._orders.where(sql.col("split") == REPORT).select("order")
        changes: list[LabelCounts] = []
        for (data,) in self._await(reports.collect):
            report: MoveReport = pickle.loads(data)
            for split, gained in report.sizes.items():
                rows_, size = self._sizes.get(split, (0, 0))
                self._sizes[split] = rows_ + gained[0], size + gained[1]
            changes.append(report.label_counts)
        return runs, summed_counts(changes)

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
        return frame.mapInArrow(_task(lambda batches: known_keys(path, batches)), "key binary, number binary")

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
            partitions = [
                ShardPartition(shard=shard, split=split, key=key)
                for (split, shard), key in zip(planned, keys, strict=True)
            ]
            for task, (file, shard) in self._written(*self._cut(partitions)):
                self._take_over(file, shard)
                bar.advance(shard.rows, shard.bytes)
                written[task.split].append(shard)
        return {split: tuple(shards) for split, shards in written.items()}

    def _written(
        self, bounds: Bounds, partitions: list[ShardPartition]
    ) -> Iterator[tuple[ShardPartition, tuple[str, Shard]]]:
        """Writes the shards; returns the name of the file of each, and what is in it."""
        store, named = None, partitions
        for _ in range(_CONFLICTS):
            if isinstance(self._transaction, RemoteTransaction):
                store = self._transaction.remote
                names = self._transaction.free_names([task.shard.file for task in partitions])
                files = [replace(task.shard, file=names[task.shard.file]) for task in partitions]
                named = [replace(task, shard=shard) for task, shard in zip(partitions, files, strict=True)]
            found = self._write_once(bounds, named, store)
            if not any(isinstance(shard, ConflictError) for shard in found):
                break
        for task, shard in zip(partitions, found, strict=True):
            if isinstance(shard, RecordspecError):
                raise shard
            yield task, shard

    def _take_over(self, file: str, shard: Shard) -> None:
        if not isinstance(self._transaction, RemoteTransaction):
            super()._take_over(file, shard)
        elif self._plan.options.unique and shard.rows:
            keys = keys_of(shard, self._job, self._transaction.remote)
            with open_file(keys) as there, (self._plan.folder / f"{shard.file}.keys").open("wb") as here:
                shutil.copyfileobj(there, here)
            keys.unlink()

    def _cut(self, partitions: list[ShardPartition]) -> tuple[Bounds, list[ShardPartition]]:
        """The first rows of the shards."""
        firsts: dict[str, int] = {}
        for number, task in enumerate(partitions):
            firsts.setdefault(task.split, number)
        cuts: dict[str, list[bytes]] = {split: [] for split in firsts}
        partitions = [*partitions]
        for number, order, skip in self._first_rows(partitions):
            cuts[partitions[number].split].append(order)
            partitions[number] = replace(partitions[number], skip=skip)
        return {
            split: (firsts[split], np.array(found, f"S{ORDER_BYTES}")) for split, found in cuts.items()
        }, partitions

    def _first_rows(self, partitions: list[ShardPartition]) -> list[tuple[int, bytes, int]]:
        """For each shard but the first of a split with rows, its number, the `order` of its first row, and
        how many rows have that and are before it."""
        wanted = [
            (number, task)
            for number, (before, task) in enumerate(pairwise(partitions), 1)
            if before.split == task.split and task.split in self._sizes
        ]
        if not wanted:
            return []
        # hashes are uniform; numbers have the part in their first three bytes, then 65,536 rows
        width = 6 if self._plan.options.shuffle is None else 2 if len(self._sizes) <= 4 else 1
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
        self, bounds: Bounds, partitions: list[ShardPartition], store: RemotePath | None
    ) -> list[tuple[str, Shard] | RecordspecError]:
        plan, job, keys = self._task_plan, self._job, [task.key for task in partitions]
        rows, size = (sum(sizes) for sizes in zip((1, 0), *self._sizes.values(), strict=True))
        at_once = max(1, min(_MOST_ROWS, _BYTES_AT_ONCE * rows // (size + 1)))
        # adaptive execution may put partitions together
        how = {
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(at_once),
        }
        with _configured(self._session, how):
            assigned = self._rows.where(~sql.col("split").startswith("/")).mapInArrow(
                _task(lambda batches: assign(bounds, keys, batches)), "shard int, order binary, record binary"
            )
            sorted_rows = assigned.repartition(len(partitions), "shard").sortWithinPartitions(
                "order", "record"
            )
            shards = sorted_rows.mapInArrow(
                _task(lambda batches: write_shard(plan, job, store, partitions, batches)), "shard binary"
            )
            return [pickle.loads(shard) for (shard,) in self._await(shards.collect)]


def _task(task: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    """The task as executors run it: they compare their package with this one before they unpickle it."""
    drivers, pickled = package(), cloudpickle.dumps(task)
    return lambda batches: run_with(drivers, pickled, batches)


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
def spark_errors(
    kind: type[StoreError] | type[SourceError], name: str, expected: str = "Spark's jobs to the end"
) -> Iterator[None]:
    """Raises an error of Spark's as one of these."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        if other := _OTHER_PACKAGE.search(str(error)):
            where, expected, got = other.groups()
            raise StoreError(Problem(where=where, expected=expected, got=got)) from None
        raise kind(Problem(where=name, expected=expected, got=reason(error))) from None


_OTHER_PACKAGE = re.compile(rf"{OtherPackageError.__name__}: (.+?): expected (.+?), got (.+)")
_RAISED = re.compile(r"^[\w.]*?(\w+(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE)


def reason(error: Exception) -> str:
    """Spark's message of an error, without tracebacks: for Python code, the last line."""
    text = str(error)
    python = text.partition("Traceback (most recent call last)")[2]
    found = _RAISED.findall(python) if python else ()
    if found:
        return f"{found[-1][0]}: {found[-1][1]}"
    java = _RAISED.findall(text)
    return java[0][1] if java else text.strip().partition("\n")[0]
