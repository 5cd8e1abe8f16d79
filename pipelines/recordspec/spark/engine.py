"""The functions of a build whose rows Spark encodes, sorts and writes; the driver alone publishes them.

Where the shards begin follows from counts of the first bytes of `order`, and a closer look at those few where
a shard begins. Spark's own shuffle brings each row to the partition of its shard and sorts it there; a task
writes each.
"""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise

import numpy as np
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sql

from recordspec.errors import RecordspecError
from recordspec.executors import on_cluster
from recordspec.locations import Location, open_file
from recordspec.progress import Progress
from recordspec.remote import RemotePath
from recordspec.spark.spark_jobs import SparkExecutor, SparkJobs, spark_errors, task
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
from recordspec.store.transaction import Transaction
from recordspec.writing.build import BuildSource, check_unchanged, parts_of
from recordspec.writing.build_plan import BuildPlan
from recordspec.writing.failures import SourceError, disk_errors
from recordspec.writing.label_counts import summed_counts
from recordspec.writing.rejects import add_line
from recordspec.writing.row_encoder import PART_BITS, EncodedPart, EncodedParts
from recordspec.writing.sharding import Shards, shards_of_split, take_over

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


def encode(
    encoded: EncodedFrame, plan: BuildPlan, source: BuildSource, frame: DataFrame | None, bar: Progress
) -> Iterator[EncodedPart]:
    """Encodes the rows of a source part by part, or the partitions of a frame. Lists the invalid rows in the
    plan's folder, once all rows are encoded."""
    identity, rejecting = source.identity(), dict[int, EncodedPart]()
    bar.begin("encoding", source.rows)
    with spark_errors(SourceError, plan.name):
        for number, report in enumerate(_reports(encoded, _rows(encoded.jobs, plan, source, frame))):
            if isinstance(report, RecordspecError):
                raise report
            for split, (rows, size) in report.sizes.items():
                encoded.resize(split, rows, size)
                bar.advance(rows, size)
            if report.part.rejected:
                rejecting[number] = report.part
            yield report.part
    check_unchanged(source, identity, plan.name)
    if rejecting:
        _list_rejects(encoded, plan, rejecting)


def _reports(encoded: EncodedFrame, rows: DataFrame) -> Iterator[EncodeReport | RecordspecError]:
    """Computes the rows, some partitions at a time, and yields the reports in the order of the parts."""
    reports = encoded.become(rows).rdd
    context = encoded.jobs.session.sparkContext
    partitions, at_once = reports.getNumPartitions(), _PARTITIONS_AT_ONCE * context.defaultParallelism
    for first in range(0, partitions, at_once):
        some = range(first, min(first + at_once, partitions))
        for (report,) in encoded.jobs.wait(partial(context.runJob, reports, list, some)):
            yield pickle.loads(report)


def _rows(jobs: SparkJobs, plan: BuildPlan, source: BuildSource, frame: DataFrame | None) -> DataFrame:
    plan, folder = plan.for_tasks, os.getcwd()
    if frame is not None:
        return frame.mapInArrow(task(lambda batches: encode_frame(plan, folder, batches)), ROWS)
    with on_cluster(SparkExecutor(jobs)):
        parts = [(pickle.dumps(part),) for part in enumerate(parts_of(source, plan))]
    packed = jobs.frame(parts, "part binary", max(1, min(len(parts), _MOST_PARTITIONS)))
    return packed.mapInArrow(task(lambda batches: encode_parts(plan, folder, batches)), ROWS)


def _list_rejects(encoded: EncodedFrame, plan: BuildPlan, parts: Mapping[int, EncodedPart]) -> None:
    """Lists the invalid rows in the files of their parts."""
    lines = encoded.rows.where(sql.col("split") == REJECT).orderBy("order").select("order", "record")
    with disk_errors(plan.name):
        for order, line in lines.toLocalIterator():
            part = parts[int.from_bytes(order, "big") >> PART_BITS]
            add_line(plan.folder / part.rejects, line.decode())


def duplicate_keys(encoded: EncodedFrame, plan: BuildPlan, parts: EncodedParts) -> tuple[int, int] | None:
    """Finds two rows with the same key, like `DuplicateKeys`."""
    key, number = (sql.substring("order", start + 1, size) for start, size in ((8, 16), (24, 8)))
    keys = encoded.in_splits.select(key.alias("key"), number.alias("number"))
    if plan.base is not None:
        keys = keys.union(_known_keys(encoded.jobs, plan.base.keys))
    several = keys.groupBy("key").count().where("count > 1").orderBy("key").select("key")
    twice = encoded.jobs.wait(several.first)
    if twice is None:
        return None
    ordered = keys.where(sql.col("key") == sql.lit(bytes(twice.key))).orderBy("number")
    rows = encoded.jobs.wait(partial(ordered.take, 2))
    first, second = (int.from_bytes(row.number, "big") for row in rows)
    return first, second


def _known_keys(jobs: SparkJobs, path: Location) -> DataFrame:
    rows = key_hashes.rows(path)
    ranges = [(first, min(_KEYS_AT_ONCE, rows - first)) for first in range(0, rows, _KEYS_AT_ONCE)]
    frame = jobs.frame(ranges, "first long, rows long", max(1, len(ranges)))
    return frame.mapInArrow(task(lambda batches: known_keys(path, batches)), "key binary, number binary")


def _move_copies(encoded: EncodedFrame, plan: BuildPlan, bar: Progress) -> LabelCounts:
    """Gives each copy of a row its own place in the order, and its own split. Copies are counted by hash and
    part: of a frequent row, no task gets all. Returns the changes of the label counts."""
    key, part = (sql.substring("order", start + 1, size) for start, size in ((8, 16), (24, 3)))
    rows = encoded.in_splits.withColumn("key", key).withColumn("part", part)
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
    parts = encoded.jobs.persist(parts)
    if encoded.jobs.wait(parts.first) is None:
        return {}
    bar.begin("moving copies", None)
    place = sql.row_number().over(Window.partitionBy("split", "key", "part").orderBy("order")) - 1
    copies = (
        rows.join(parts, ["split", "key", "part"])
        .withColumn("copy", sql.col("before") + place)
        .where("copy > 0")
        .select("split", "order", "copy")
    )
    plan = plan.for_tasks
    joined = encoded.rows.where(sql.col("split") != REPORT).join(copies, ["split", "order"], "left")
    moved = joined.select("split", "order", "record", "copy").mapInArrow(
        task(lambda batches: move_copies(plan, batches)), ROWS
    )
    changes: list[LabelCounts] = []
    for (data,) in encoded.jobs.wait(encoded.become(moved).collect):
        report: MoveReport = pickle.loads(data)
        for split, (gained, size) in report.sizes.items():
            encoded.resize(split, gained, size)
        changes.append(report.label_counts)
    return summed_counts(changes)


def shard(
    encoded: EncodedFrame, transaction: Transaction, plan: BuildPlan, parts: EncodedParts, *, bar: Progress
) -> tuple[Shards, LabelCounts]:
    """Sorts the encoded rows by Spark's shuffle; a task writes the shard of each partition."""
    moved = _move_copies(encoded, plan, bar) if plan.options.numbers_copies else {}
    splits = tuple(plan.options.weights or sorted(encoded.sizes))
    planned = [
        (split, wanted)
        for split in splits
        for rows, size in [encoded.sizes.get(split, (0, 0))]
        for wanted in shards_of_split(plan, split, size, rows)
    ]
    written: dict[str, list[Shard]] = {split: [] for split in splits}
    if planned:
        bar.begin("writing shards", parts.seen)
        keys = _partition_keys(encoded.jobs.session, len(planned))
        partitions = [
            ShardPartition(shard=wanted, split=split, key=key)
            for (split, wanted), key in zip(planned, keys, strict=True)
        ]
        bounds, partitions = _cut(encoded, plan, partitions)
        for partition, (file, made) in _written(encoded, transaction, plan, bounds, partitions):
            if transaction.store is None:
                take_over(plan, file, made)
            else:
                _fetch_pieces(plan, made, encoded.jobs.id, transaction.store)
            bar.advance(made.rows, made.bytes)
            written[partition.split].append(made)
    return {split: tuple(shards) for split, shards in written.items()}, moved


def _written(
    encoded: EncodedFrame,
    transaction: Transaction,
    plan: BuildPlan,
    bounds: Bounds,
    partitions: list[ShardPartition],
) -> Iterator[tuple[ShardPartition, tuple[str, Shard]]]:
    """Writes the shards; yields the name of the file of each, and what is in it."""
    for _ in range(_CONFLICTS):
        names = transaction.free_names([partition.shard.file for partition in partitions])
        named = [
            replace(partition, shard=replace(partition.shard, file=names[partition.shard.file]))
            for partition in partitions
        ]
        shards = _write_once(encoded, plan, bounds, named, transaction.store)
        if not any(isinstance(shard, ConflictError) for shard in shards):
            break
    for partition, shard in zip(partitions, shards, strict=True):
        if isinstance(shard, RecordspecError):
            raise shard
        yield partition, shard


def _fetch_pieces(plan: BuildPlan, shard: Shard, job: str, store: RemotePath) -> None:
    """Moves the hashes of the keys of a shard, and its index, from the store to the plan's folder."""
    keyed = plan.options.unique and shard.rows > 0
    for suffix in [KEYS] * keyed + [INDEX]:
        piece = piece_of(shard, suffix, job, store)
        with open_file(piece) as there, (plan.folder / f"{shard.file}{suffix}").open("wb") as here:
            shutil.copyfileobj(there, here)
        piece.unlink()


def _cut(
    encoded: EncodedFrame, plan: BuildPlan, partitions: list[ShardPartition]
) -> tuple[Bounds, list[ShardPartition]]:
    """The first rows of the shards."""
    firsts: dict[str, int] = {}
    for number, partition in enumerate(partitions):
        firsts.setdefault(partition.split, number)
    cuts: dict[str, list[bytes]] = {split: [] for split in firsts}
    partitions = [*partitions]
    for number, order, skip in _first_rows(encoded, plan, partitions):
        cuts[partitions[number].split].append(order)
        partitions[number] = replace(partitions[number], skip=skip)
    return {
        split: (firsts[split], np.array(orders, f"S{ORDER_BYTES}")) for split, orders in cuts.items()
    }, partitions


def _first_rows(
    encoded: EncodedFrame, plan: BuildPlan, partitions: list[ShardPartition]
) -> list[tuple[int, bytes, int]]:
    """For each shard but the first of a split with rows, its number, the `order` of its first row, and
    how many rows have that and are before it."""
    wanted = [
        (number, partition)
        for number, (before, partition) in enumerate(pairwise(partitions), 1)
        if before.split == partition.split and partition.split in encoded.sizes
    ]
    if not wanted:
        return []
    # hashes are uniform; numbers have the part in their first three bytes, then 65,536 rows
    width = 6 if plan.seed is None else 2 if len(encoded.sizes) <= 4 else 1
    rows = encoded.in_splits.withColumn("prefix", sql.substring("order", 1, width))
    counted: dict[str, list[tuple[bytes, int]]] = {}
    for split, prefix, size in encoded.jobs.wait(rows.groupBy("split", "prefix").count().collect):
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
    some = encoded.jobs.session.createDataFrame(near, "number long, split string, prefix binary, row int")
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
        (row.number, bytes(row.order), row.row - row.rank) for row in encoded.jobs.wait(firsts.collect)
    )


def _write_once(
    encoded: EncodedFrame,
    plan: BuildPlan,
    bounds: Bounds,
    partitions: list[ShardPartition],
    store: RemotePath | None,
) -> list[tuple[str, Shard] | RecordspecError]:
    plan, job = plan.for_tasks, encoded.jobs.id
    keys = [partition.key for partition in partitions]
    rows, size = (sum(sizes) for sizes in zip((1, 0), *encoded.sizes.values(), strict=True))
    at_once = max(1, min(_MOST_ROWS, _BYTES_AT_ONCE * rows // (size + 1)))
    # adaptive execution may put partitions together
    how = {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(at_once),
    }
    with encoded.jobs.configured(how):
        assigned = encoded.rows.where(~sql.col("split").startswith("/")).mapInArrow(
            task(lambda batches: assign(bounds, keys, batches)), "shard int, order binary, record binary"
        )
        sorted_rows = assigned.repartition(len(partitions), "shard").sortWithinPartitions("order", "record")
        shards = sorted_rows.mapInArrow(
            task(lambda batches: write_shard(plan, job, store, partitions, batches)), "shard binary"
        )
        return [pickle.loads(shard) for (shard,) in encoded.jobs.wait(shards.collect)]


def _partition_keys(session: SparkSession, partitions: int) -> list[int]:
    """For each partition an integer that Spark's `repartition` puts there, by its hash modulo the number."""
    # of 32 times as many integers none is missed: each partition is, with a probability of exp(-32)
    text = f"SELECT transform(sequence(0, {32 * partitions - 1}), key -> pmod(hash(key), {partitions}))"
    (places,) = session.sql(text).collect()[0]
    distinct, keys = np.unique(places, return_index=True)
    assert len(distinct) == partitions
    return [int(key) for key in keys]
