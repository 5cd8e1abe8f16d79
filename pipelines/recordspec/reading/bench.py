"""Measures how fast a dataset is read, stage by stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from recordspec._tf import Dataset, tf
from recordspec.arrays.random_access import Rows
from recordspec.errors import Problem, SpecError, State, StoreError
from recordspec.order.packing import Packs
from recordspec.order.read_options import Read
from recordspec.order.read_plan import Plan
from recordspec.reading import stages
from recordspec.reading.dataset import BufferedOrder, EpochOrder, GlobalOrder, build, elements_of, epoch_order
from recordspec.reading.packed_order import PackedOrder
from recordspec.reading.shuffle_buffer import gathered
from recordspec.reading.transformations import CALLS, map_elements
from recordspec.schema.schema import Schema
from recordspec.schema.tensors import Tensor
from recordspec.store.ranged_files import RangedFiles

# The approximate number of rows that are counted before Python gets the count: a transfer takes 30 us.
_HANDED_OVER = 1024
# Records are read in batches of about this many rows: large enough to hide the cost of a batch.
_BATCH = 128
# The epochs of a store that are measured: later ones read what the disk keeps.
_EPOCHS = 3


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A measurement of the pipeline up to a stage.

    Attributes:
        name: the name of the last stage.
        rows: the number of rows produced.
        bytes: the size of these rows in the files.
        seconds: the wall time.
        cpu: the CPU time of all threads, in seconds.
    """

    name: str
    rows: int
    bytes: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds

    @property
    def cores(self) -> float:
        """CPU seconds per second of wall time."""
        return self.cpu / self.seconds


@dataclass(frozen=True, kw_only=True)
class EpochRead:
    """A measurement of an epoch whose rows are read from a store by ranges.

    Attributes:
        epoch: the number of the epoch, from 0.
        rows: the number of rows produced.
        share: these rows, as a share of the rows of the epoch: the last epoch may be cut short.
        seconds, cpu: as for `Stage`.
        waited: the seconds in which threads waited for ranges, all threads together.
        requests: the number of requests.
        bytes: the bytes of their answers.
        fetched: `bytes`, as a share of the bytes of all files.
        bytes_kept: the bytes that were read from the disk instead.
    """

    epoch: int
    rows: int
    share: float
    seconds: float
    cpu: float
    waited: float
    requests: int
    bytes: int
    fetched: float
    bytes_kept: int


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The measurements of a dataset.

    Attributes:
        stages: the pipeline up to each stage; the last is the whole pipeline.
        limit: the name of the stage that adds most to the time per row.
        epochs: for objects that are read by ranges, the whole pipeline by epoch, in the place of `stages`.
    """

    stages: tuple[Stage, ...]
    limit: str
    epochs: tuple[EpochRead, ...] = ()


def bench(
    options: Read,
    schema: Schema,
    plan: Plan,
    *,
    map: Callable[..., Any] | None = None,  # noqa: A002  what tf.data calls it
    predicate: Callable[..., Any] | None = None,
    seconds: float = 5.0,
    measures: Mapping[str, Callable[..., Any]] | None = None,
    packed: Callable[[Rows], Packs] | None = None,
) -> Bench:
    """Runs the pipeline up to each stage for `seconds`, or in whole passes if a pass takes less time.

    A first run, which reads the files into the page cache, is not counted. The option `cache` is ignored, and
    `measures` and `packed` are as for `build`. If rows are read from a store by ranges, the first three
    epochs are measured instead, or as many as begin within `seconds`; the last is cut short.

    Raises:
        SpecError: `seconds` is not above 0.
        StoreError: there are no rows.
    """
    if not seconds > 0:
        raise SpecError(Problem(path=("seconds",), expected="more than 0", got=str(seconds)))
    options = replace(options, cache="none")
    order = epoch_order(options, schema, plan, packed, predicate=predicate, measures=measures or {})
    if isinstance(order, GlobalOrder | PackedOrder) and order.plan.pieces[0].remote is not None:
        order = replace(order, options=replace(options, repeat=1))
        return Bench(stages=(), limit="", epochs=tuple(_epochs(order, map, seconds)))
    whole = build(options, schema, plan, map=map, predicate=predicate, measures=measures, packed=packed)
    prefixes = [*_prefixes(order, map), ("whole", _counts(order, whole))]
    _timed(prefixes[0][1], plan, seconds)
    measured = tuple(_stage(name, counts, plan, seconds) for name, counts in prefixes)
    return Bench(stages=measured, limit=_limit(measured))


def _epochs(
    order: GlobalOrder | PackedOrder, mapped: Callable[..., Any] | None, seconds: float
) -> Iterator[EpochRead]:
    files = order.rows._files
    total = order.packs.pieces if isinstance(order, PackedOrder) else order.share.rows
    assert isinstance(files, RangedFiles)
    counts, begin = stages.untuned(_counts(order, elements_of(order, mapped))), _clocks()
    size = files.stored
    for epoch in range(_EPOCHS):
        start, before, rows = _clocks(), files.counters, 0.0
        for number in counts.as_numpy_iterator():
            rows += number.sum()
            if _since(begin)[0] > seconds:
                break
        (wall, cpu), now = _since(start), files.counters
        yield EpochRead(
            epoch=epoch,
            rows=round(rows),
            share=float(rows / total),
            seconds=wall,
            cpu=cpu,
            waited=now.waited - before.waited,
            requests=now.requests - before.requests,
            bytes=now.bytes_read - before.bytes_read,
            fetched=(now.bytes_read - before.bytes_read) / max(1, size),
            bytes_kept=now.bytes_kept - before.bytes_kept,
        )
        if _since(begin)[0] > seconds:
            return


def _prefixes(order: EpochOrder, mapped: Callable[..., Any] | None) -> Iterator[tuple[str, Dataset]]:
    """The pipeline up to each stage, as a dataset of the numbers of rows that come out."""
    options, plan, augmented = order.options, order.plan, order
    order = replace(order, options=replace(options, augment=None))
    at_once = max(1, _BATCH // (plan.block or 1))
    files = BufferedOrder(options=order.options, schema=order.schema, plan=plan)
    records = gathered(files.records(None), at_once)
    records = map_elements(records, lambda batch: _rows_of(batch, plan))
    yield "read", records.batch(_HANDED_OVER // _BATCH)
    decoded = batches = order.batches()
    counts = partial(_counts, order)
    parsed = plan.block is not None or order.decoded or options.pack is not None
    early = ["parse"] * parsed + ["decode"] * order.decoded
    yield ", ".join([*early, "shuffle" if options.shuffle else "batch"]), counts(batches)
    if not parsed:
        parse = map_elements(batches, order.parse, CALLS, deterministic=options.deterministic)
        yield "parse", counts(parse)
    if not order.decoded:
        decoded = map_elements(batches, order.decode, CALLS, deterministic=options.deterministic)
        yield "decode", counts(decoded)
    if augmented.augmentation is not None:
        decoded = map_elements(
            augmented.batches(), augmented.decode, CALLS, deterministic=options.deterministic
        )
        yield "augment", counts(decoded)
    if mapped is not None:
        mapped_rows = stages.apply(decoded, mapped, deterministic=options.deterministic)
        yield "map", counts(mapped_rows)


def _rows_of(records: Tensor, plan: Plan) -> Tensor:
    """The number of rows of records, float64.

    Blocks are counted with their mean size, as the last block of a file may be smaller.
    """
    count = tf.cast(tf.size(records), tf.float64)
    if plan.block is None:
        return count
    blocks = sum(-(-(piece.rows or 0) // plan.block) for piece in plan.pieces)
    return count * (plan.rows or 0) / max(1, blocks)


def _counts(order: EpochOrder, elements: Dataset) -> Dataset:
    """The number of rows of each element, `[k]` for k elements."""
    batch, mean = order.options.batch, order.mean_rows

    def count(*element: Any) -> Tensor:
        value = tf.nest.flatten(element)[0]
        if mean is not None:
            return tf.constant(mean, tf.float64)
        if batch is None:
            return tf.constant(1, tf.int64)
        if isinstance(value, tf.RaggedTensor):
            return tf.cast(value.nrows(), tf.int64)
        shape = value.dense_shape if isinstance(value, tf.sparse.SparseTensor) else tf.shape(value, tf.int64)
        return shape[0]

    rows = 1 if batch is None else batch.size
    return map_elements(elements, count).batch(max(1, _HANDED_OVER // rows))


def _stage(name: str, counts: Dataset, plan: Plan, seconds: float) -> Stage:
    rows, wall, cpu = _timed(stages.untuned(counts), plan, seconds)
    size = sum(piece.path.stat().st_size for piece in plan.pieces)
    return Stage(name=name, rows=rows, bytes=size * rows // (plan.rows or 1), seconds=wall, cpu=cpu)


def _timed(counts: Dataset, plan: Plan, seconds: float) -> tuple[int, float, float]:
    """The number of rows, and the seconds of wall time and of CPU time that they took.

    A pass that takes longer than `seconds` is measured from its first batch on, without the time that fills
    buffers. Shorter passes are repeated, and measured from beginning to end.
    """
    begin = _clocks()
    numbers = counts.as_numpy_iterator()
    rows = next(numbers, np.zeros(1)).sum()
    if not rows:
        raise StoreError(State(where=str(plan.pieces[0].path.parent), got="has no rows to read"))
    first, before = _clocks(), rows
    for number in numbers:
        rows += number.sum()
        if _clocks()[0] - first[0] > seconds:
            return round(rows - before), *_since(first)
    passes = 1
    while _since(begin)[0] * (passes + 1) / passes < seconds:
        rows += sum(number.sum() for number in counts.as_numpy_iterator())
        passes += 1
    return round(rows), *_since(begin)


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _since(start: tuple[float, float]) -> tuple[float, float]:
    """Wall seconds and CPU seconds."""
    wall, cpu = _clocks()
    return wall - start[0], cpu - start[1]


def _limit(measured: tuple[Stage, ...]) -> str:
    """The stage that adds most to the time per row, except `whole`, which only adds prefetching."""
    times = [0.0, *(stage.seconds / stage.rows for stage in measured)]
    added = {stage.name: now - before for stage, (before, now) in zip(measured, pairwise(times), strict=True)}
    del added["whole"]
    return max(added, key=added.__getitem__)
