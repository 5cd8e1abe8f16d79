"""The stages of a build whose rows Spark encodes, sorts and writes; the driver alone publishes them.

Where the shards begin follows from counts of the first bytes of `order`, and a closer look at those few where
a shard begins. Spark's own shuffle brings each row to the partition of its shard and sorts it there; a task
writes each.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise

import numpy as np
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sql

from recordspec.errors import RecordspecError
from recordspec.locations import Location, open_file
from recordspec.progress import Progress
from recordspec.remote import RemotePath
from recordspec.spark.jobs import SparkJobs, spark_errors, task
from recordspec.spark.tasks import (
    ORDER_BYTES,
    REJECT,
    REPORT,
    ROWS,
    Bounds,
    EncodeReport,
    MoveReport,
    ShardPartition,
    assign,
    encode_frame,
    encode_parts,
    known_keys,
    move_copies,
    piece_of,
    write_shard,
)
from recordspec.store import key_hashes
from recordspec.store.manifest import INDEX, KEYS, LabelCounts, Shard
from recordspec.store.remote_transaction import ConflictError
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
)
from recordspec.writing.failures import DiskError, SourceError
from recordspec.writing.label_counts import summed_counts
from recordspec.writing.row_encoder import PART_BITS
from recordspec.writing.sources import base
from recordspec.writing.tasks import EncodedPart, shards_of_split

# The most partitions of a source: Spark's driver keeps a few kilobytes of each for every shuffle.
_MOST_PARTITIONS = 10_000
# Partitions that are encoded, for each core, before their reports are read: an invalid row ends it there.
_PARTITIONS_AT_ONCE = 16
# Bytes of rows that go to a Python worker at once.
_BYTES_AT_ONCE = 16 << 20
_MOST_ROWS = 10_000
# The number of existing rows whose key hashes are read at once.
_KEYS_AT_ONCE = 1 << 20
# The most times that shards are uploaded where other writers take their names.
_CONFLICTS = 3


@contextmanager
def spark_stages(
    session: SparkSession, frame: DataFrame | None, source: BuildSource, build: Build
) -> Iterator[tuple[Encoding, Sharding]]:
    """The stages of a build of a source, or of a frame, which the source then names."""
    jobs = SparkJobs(session, build.plan.name)
    with spark_errors(DiskError, build.plan.name), jobs.running():
        rows = EncodedFrame(jobs)
        yield SparkEncoding(build, source, frame, rows), SparkSharding(build, rows)


class EncodedFrame:
    """The encoded rows of a build, which stay on the disks of the executors.

    Attributes:
        jobs: the jobs that compute it.
        rows: `split`, `order` and `record`; among them the reports of tasks, and invalid rows.
        orders: the same without the records: the passes over `order` alone do not read them.
        sizes: the number of rows of each split, and their bytes.
    """

    def __init__(self, jobs: SparkJobs) -> None:
        self.jobs = jobs
        self.sizes: dict[str, tuple[int, int]] = {}
        self.rows: DataFrame
        self.orders: DataFrame

    def become(self, rows: DataFrame) -> DataFrame:
        """Takes these rows instead of those before. Returns the reports of their tasks, to be computed."""
        self.rows = self.jobs.persist(rows)
        self.orders = self.jobs.persist(self.rows.select("split", "order"))
        return self.orders.where(sql.col("split") == REPORT).select("order")

    def resize(self, split: str, rows: int, size: int) -> None:
        """Adds to the number of rows of a split, and to their bytes."""
        before = self.sizes.get(split, (0, 0))
        self.sizes[split] = before[0] + rows, before[1] + size

    @property
    def in_splits(self) -> DataFrame:
        """`split` and `order` of the valid rows."""
        return self.orders.where(~sql.col("split").startswith("/"))


class SparkEncoding:
    """Encodes the rows of a source part by part, or the partitions of a frame."""

    def __init__(
        self, build: Build, source: BuildSource, frame: DataFrame | None, rows: EncodedFrame
    ) -> None:
        self._build, self._source, self._frame, self._rows = build, source, frame, rows
        self._identity = source.identity()
        self.name = base.name_of(source)

    def encode(self, bar: Progress) -> Iterator[EncodedPart]:
        bar.begin("encoding", self._source.rows)
        with spark_errors(SourceError, self._build.plan.name):
            for report in self._reports():
                if isinstance(report, RecordspecError):
                    raise report
                for split, (rows, size) in report.sizes.items():
                    self._rows.resize(split, rows, size)
                    bar.advance(rows, size)
                yield report.part
        check_unchanged(self._source, self._identity, self._build.plan.name)

    def _reports(self) -> Iterator[EncodeReport | RecordspecError]:
        """Computes the rows, some partitions at a time, and yields the reports in the order of the parts."""
        jobs = self._rows.jobs
        reports = self._rows.become(self._encoded()).rdd
        context = jobs.session.sparkContext
        partitions, at_once = reports.getNumPartitions(), _PARTITIONS_AT_ONCE * context.defaultParallelism
        for first in range(0, partitions, at_once):
            some = range(first, min(first + at_once, partitions))
            for (report,) in jobs.wait(partial(context.runJob, reports, list, some)):
                yield pickle.loads(report)

    def _encoded(self) -> DataFrame:
        plan, folder, jobs = self._build.plan.for_tasks, os.getcwd(), self._rows.jobs
        if self._frame is not None:
            return self._frame.mapInArrow(task(lambda batches: encode_frame(plan, folder, batches)), ROWS)
        parts = [(pickle.dumps(part),) for part in enumerate(parts_of(self._source, plan))]
        frame = jobs.frame(parts, "part binary", max(1, min(len(parts), _MOST_PARTITIONS)))
        return frame.mapInArrow(task(lambda batches: encode_parts(plan, folder, batches)), ROWS)

    def place(self, part: int, row: int) -> str:
        return place_of(self._source, self._build.plan, part, row)

    def rejected(self) -> RejectLines:
        parts = self._build.parts
        if not parts.rejected:
            return
        rows = self._rows.rows
        lines = rows.where(sql.col("split") == REJECT).orderBy("order").select("order", "record")
        for order, line in lines.toLocalIterator():
            yield json.loads(line), parts.before[int.from_bytes(order, "big") >> PART_BITS]


class SparkSharding:
    """Sorts the encoded rows by Spark's shuffle; a task writes the shard of each partition."""

    def __init__(self, build: Build, rows: EncodedFrame) -> None:
        self._build, self._rows, self._jobs = build, rows, rows.jobs

    def duplicate_keys(self) -> tuple[int, int] | None:
        key, number = (sql.substring("order", start + 1, size) for start, size in ((8, 16), (24, 8)))
        keys = self._rows.in_splits.select(key.alias("key"), number.alias("number"))
        existing = self._build.plan.base
        if existing is not None:
            keys = keys.union(self._known_keys(existing.keys))
        several = keys.groupBy("key").count().where("count > 1").orderBy("key").select("key")
        twice = self._jobs.wait(several.first)
        if twice is None:
            return None
        ordered = keys.where(sql.col("key") == sql.lit(bytes(twice.key))).orderBy("number")
        rows = self._jobs.wait(partial(ordered.take, 2))
        first, second = (int.from_bytes(row.number, "big") for row in rows)
        return first, second

    def _known_keys(self, path: Location) -> DataFrame:
        rows = key_hashes.rows(path)
        ranges = [(first, min(_KEYS_AT_ONCE, rows - first)) for first in range(0, rows, _KEYS_AT_ONCE)]
        frame = self._jobs.frame(ranges, "first long, rows long", max(1, len(ranges)))
        return frame.mapInArrow(task(lambda batches: known_keys(path, batches)), "key binary, number binary")

    def move_copies(self, bar: Progress) -> LabelCounts:
        """Like `Sharding`. Copies are counted by hash and part: of a frequent row, no task gets all."""
        if not self._build.plan.options.numbers_copies:
            return {}
        key, part = (sql.substring("order", start + 1, size) for start, size in ((8, 16), (24, 3)))
        rows = self._rows.in_splits.withColumn("key", key).withColumn("part", part)
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
        parts = self._jobs.persist(parts)
        if self._jobs.wait(parts.first) is None:
            return {}
        bar.begin("moving copies", None)
        place = sql.row_number().over(Window.partitionBy("split", "key", "part").orderBy("order")) - 1
        copies = (
            rows.join(parts, ["split", "key", "part"])
            .withColumn("copy", sql.col("before") + place)
            .where("copy > 0")
            .select("split", "order", "copy")
        )
        plan = self._build.plan.for_tasks
        joined = self._rows.rows.where(sql.col("split") != REPORT).join(copies, ["split", "order"], "left")
        moved = joined.select("split", "order", "record", "copy").mapInArrow(
            task(lambda batches: move_copies(plan, batches)), ROWS
        )
        changes: list[LabelCounts] = []
        for (data,) in self._jobs.wait(self._rows.become(moved).collect):
            report: MoveReport = pickle.loads(data)
            for split, (gained, size) in report.sizes.items():
                self._rows.resize(split, gained, size)
            changes.append(report.label_counts)
        return summed_counts(changes)

    def write(self, bar: Progress) -> Shards:
        build, sizes = self._build, self._rows.sizes
        splits = tuple(build.plan.options.weights or sorted(sizes))
        planned = [
            (split, shard)
            for split in splits
            for rows, size in [sizes.get(split, (0, 0))]
            for shard in shards_of_split(build.plan, split, size, rows)
        ]
        written: dict[str, list[Shard]] = {split: [] for split in splits}
        if planned:
            bar.begin("writing shards", build.parts.seen)
            keys = _partition_keys(self._jobs.session, len(planned))
            partitions = [
                ShardPartition(shard=shard, split=split, key=key)
                for (split, shard), key in zip(planned, keys, strict=True)
            ]
            for partition, (file, shard) in self._written(*self._cut(partitions)):
                self._take_over(file, shard)
                bar.advance(shard.rows, shard.bytes)
                written[partition.split].append(shard)
        return {split: tuple(shards) for split, shards in written.items()}

    def _written(
        self, bounds: Bounds, partitions: list[ShardPartition]
    ) -> Iterator[tuple[ShardPartition, tuple[str, Shard]]]:
        """Writes the shards; yields the name of the file of each, and what is in it."""
        transaction = self._build.publication.transaction
        for _ in range(_CONFLICTS):
            names = transaction.free_names([partition.shard.file for partition in partitions])
            named = [
                replace(partition, shard=replace(partition.shard, file=names[partition.shard.file]))
                for partition in partitions
            ]
            shards = self._write_once(bounds, named, transaction.store)
            if not any(isinstance(shard, ConflictError) for shard in shards):
                break
        for partition, shard in zip(partitions, shards, strict=True):
            if isinstance(shard, RecordspecError):
                raise shard
            yield partition, shard

    def _take_over(self, file: str, shard: Shard) -> None:
        """Takes over what a task has written: where it uploads shards, what is known of their records."""
        build, options = self._build, self._build.plan.options
        store = build.publication.transaction.store
        if store is None:
            build.publication.take_over(build.plan, file, shard)
            return
        pieces = [KEYS] * (options.unique and shard.rows > 0) + [INDEX] * (options.compression == "none")
        for suffix in pieces:
            piece = piece_of(shard, suffix, self._jobs.id, store)
            with open_file(piece) as there, (build.plan.folder / f"{shard.file}{suffix}").open("wb") as here:
                shutil.copyfileobj(there, here)
            piece.unlink()

    def _cut(self, partitions: list[ShardPartition]) -> tuple[Bounds, list[ShardPartition]]:
        """The first rows of the shards."""
        firsts: dict[str, int] = {}
        for number, partition in enumerate(partitions):
            firsts.setdefault(partition.split, number)
        cuts: dict[str, list[bytes]] = {split: [] for split in firsts}
        partitions = [*partitions]
        for number, order, skip in self._first_rows(partitions):
            cuts[partitions[number].split].append(order)
            partitions[number] = replace(partitions[number], skip=skip)
        return {
            split: (firsts[split], np.array(orders, f"S{ORDER_BYTES}")) for split, orders in cuts.items()
        }, partitions

    def _first_rows(self, partitions: list[ShardPartition]) -> list[tuple[int, bytes, int]]:
        """For each shard but the first of a split with rows, its number, the `order` of its first row, and
        how many rows have that and are before it."""
        wanted = [
            (number, partition)
            for number, (before, partition) in enumerate(pairwise(partitions), 1)
            if before.split == partition.split and partition.split in self._rows.sizes
        ]
        if not wanted:
            return []
        # hashes are uniform; numbers have the part in their first three bytes, then 65,536 rows
        width = 6 if self._build.plan.seed is None else 2 if len(self._rows.sizes) <= 4 else 1
        rows = self._rows.in_splits.withColumn("prefix", sql.substring("order", 1, width))
        counted: dict[str, list[tuple[bytes, int]]] = {}
        for split, prefix, size in self._jobs.wait(rows.groupBy("split", "prefix").count().collect):
            counted.setdefault(split, []).append((bytes(prefix), size))
        starts = {}
        for split, prefixes in counted.items():
            prefixes.sort()
            starts[split] = np.array([0, *accumulate(size for _, size in prefixes)])
        near = []
        for number, partition in wanted:
            split, start = partition.split, partition.shard.start
            place = int(np.searchsorted(starts[split], start, side="right")) - 1
            near.append((number, split, counted[split][place][0], start - int(starts[split][place]) + 1))
        some = self._jobs.session.createDataFrame(near, "number long, split string, prefix binary, row int")
        prefixes_near = sql.broadcast(some.select("split", "prefix").distinct())
        window = Window.partitionBy("split", "prefix").orderBy("order")
        ranked = rows.join(prefixes_near, ["split", "prefix"]).select(
            "split",
            "prefix",
            "order",
            sql.row_number().over(window).alias("row"),
            sql.rank().over(window).alias("rank"),
        )
        firsts = ranked.join(sql.broadcast(some), ["split", "prefix", "row"]).select(
            "number", "order", "row", "rank"
        )
        return sorted(
            (row.number, bytes(row.order), row.row - row.rank) for row in self._jobs.wait(firsts.collect)
        )

    def _write_once(
        self, bounds: Bounds, partitions: list[ShardPartition], store: RemotePath | None
    ) -> list[tuple[str, Shard] | RecordspecError]:
        plan, job = self._build.plan.for_tasks, self._jobs.id
        keys = [partition.key for partition in partitions]
        rows, size = (sum(sizes) for sizes in zip((1, 0), *self._rows.sizes.values(), strict=True))
        at_once = max(1, min(_MOST_ROWS, _BYTES_AT_ONCE * rows // (size + 1)))
        # adaptive execution may put partitions together
        how = {
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(at_once),
        }
        with self._jobs.configured(how):
            assigned = self._rows.rows.where(~sql.col("split").startswith("/")).mapInArrow(
                task(lambda batches: assign(bounds, keys, batches)), "shard int, order binary, record binary"
            )
            sorted_rows = assigned.repartition(len(partitions), "shard").sortWithinPartitions(
                "order", "record"
            )
            shards = sorted_rows.mapInArrow(
                task(lambda batches: write_shard(plan, job, store, partitions, batches)), "shard binary"
            )
            return [pickle.loads(shard) for (shard,) in self._jobs.wait(shards.collect)]


def _partition_keys(session: SparkSession, partitions: int) -> list[int]:
    """For each partition an integer that Spark's `repartition` puts there, by its hash modulo the number."""
    # of 32 times as many integers none is missed: each partition is, with a probability of exp(-32)
    text = f"SELECT transform(sequence(0, {32 * partitions - 1}), key -> pmod(hash(key), {partitions}))"
    (places,) = session.sql(text).collect()[0]
    distinct, keys = np.unique(places, return_index=True)
    assert len(distinct) == partitions
    return [int(key) for key in keys]
