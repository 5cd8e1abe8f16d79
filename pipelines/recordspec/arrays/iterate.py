"""`recordspec.iterate`: batches of NumPy arrays in the one order of an epoch, without TensorFlow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice, pairwise
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from recordspec.arrays.random_access import KeptBlocks, Rows
from recordspec.errors import Problem, SpecError
from recordspec.executors import taken_ahead, threaded_map
from recordspec.locations import AnyPath
from recordspec.order.global_order import Permutation, Share, check_share, whole_numbers
from recordspec.order.lane_order import check_lanes
from recordspec.order.packing import Packs, RowsInPacks
from recordspec.order.position import Opening, Position, no_batch
from recordspec.order.read_options import MEASURED, Batch, Bucket, Read, Shuffle
from recordspec.schema.options import from_python
from recordspec.schema.ragged_array import RaggedArray, SparseArray
from recordspec.schema.schema import Schema, check_data_first
from recordspec.schema.user_functions import check_arguments, naming_features
from recordspec.store.expand import Files, Split
from recordspec.wire.arrays import Ints, offsets

# The groups that are read ahead from a store.
_EXPECTED = 2
# Rows that are filtered or bucketed together.
_SHAPED = 1024


def iterate(
    files: Files | Rows,
    schema: Schema | AnyPath | None = None,
    *,
    split: Split = ...,
    batch: int | None = None,
    shuffle: bool | Mapping[str, Any] = False,
    seed: int = 0,
    epoch: int = 0,
    start: int = 0,
    worker: int = 0,
    workers: int = 1,
    drop_remainder: bool = False,
) -> Iterator[dict[str, Any]]:
    """Yields the batches of one epoch as NumPy values, in the order of `read: {shuffle: {global: true}}` in
    TensorFlow.

    Args:
        files: a path, a folder of shards, a pattern, several of these, or the result of `recordspec.open`.
        schema: the schema of the rows, or its path; by default the schema beside the files.
        split: the split to read; None for all rows. A folder with several splits needs one of the two.
        batch: the rows of a global batch, of all workers together; by default elements are single rows.
        shuffle: whether all rows are permuted; if not, they keep the order of the files. Options such as
            `{"lanes": 240}`, as in a config, choose another permutation.
        seed: the seed of the permutation.
        epoch: the number of the epoch, from 0.
        start: the first global batch; batches before it are skipped without reading them.
        worker, workers: the number of this worker, from 0, and the number of workers. A worker gets rows
            `worker, worker + workers, ...` of each global batch. The global batches are the same for every
            number of workers.
        drop_remainder: whether a smaller last batch is dropped.

    Returns:
        Dicts by feature: arrays `[n, ...]`; a RaggedArray or a SparseArray if rows differ in size. For single
        rows, values without the first axis.

    Raises:
        SpecError: an argument is invalid, or the last batch has fewer rows than there are workers.
        StoreError, RecordError: as for `recordspec.open`; a record is corrupt.

    Example:
        >>> batches = list(rs.iterate("data/points/train-*", batch=4, shuffle=True, seed=17))
        >>> [len(batch["x"]) for batch in batches]
        [4, 4, 4, 3]
    """
    check_data_first(files, "files", "rs.iterate(files, schema)")
    size, epoch, start, workers = whole_numbers(
        batch=(1 if batch is None else batch, 1), epoch=(epoch, 0), start=(start, 0), workers=(workers, 1)
    )
    worker, seed = whole_numbers(worker=(worker, 0), seed=(seed, -1 << 63))
    if isinstance(files, Rows) and isinstance(split, str):
        hint = "give its files to `open`"
        raise SpecError(Problem(path=("split",), expected="none of opened rows", got=f"`{split}`", hint=hint))
    chosen = _shuffle_of(shuffle, seed)
    opened = files if isinstance(files, Rows) else Rows(files, schema, split=split)
    rows = opened._ordered(Read(shuffle=chosen))
    share = _share(rows._epoch_rows, Batch(size=size, drop_remainder=drop_remainder), worker, workers, chosen)
    reader = BatchReader(rows=rows, share=share, seed=None if chosen is None else chosen.seed)
    batches = (decoded for group in reader.groups(epoch, start) for (decoded,) in reader.decoded(*group))
    return batches if batch is not None else ({name: one[0] for name, one in row.items()} for row in batches)


class Group(NamedTuple):
    """Batches that are decoded together.

    Attributes:
        numbers: the numbers of their rows, int64 `[n]`.
        sizes: the number of rows of each, int64 `[b]`.
        windows: the decoded blocks of the pass; None if they are not kept.
        packs: the rows of the packs of each batch; empty if rows are not packed.
    """

    numbers: Ints
    sizes: Ints
    windows: KeptBlocks | None
    packs: Sequence[RowsInPacks] = ()

    @classmethod
    def of(cls, batches: list[Ints], windows: KeptBlocks | None) -> Group:
        """The group of batches of these rows."""
        return cls(np.concatenate(batches), np.array([len(batch) for batch in batches]), windows)


@dataclass(frozen=True, kw_only=True)
class BatchReader:
    """Batches of one worker, as NumPy values.

    Attributes:
        rows: all rows.
        features: the features to decode; None for all.
        share: the part of the worker.
        seed: the seed of the order of all rows; None for the order of the files.
        predicate: selects rows by their features; None keeps all rows.
        bucket: how rows of similar lengths are batched; None if they are not.
        measure: returns the lengths of a feature for the bucket; None for `lengths_of`.
        packs: the order of packs, which `share` divides; None if rows are not packed.
    """

    rows: Rows
    share: Share
    features: tuple[str, ...] | None = None
    seed: int | None = None
    predicate: Callable[..., Any] | None = None
    bucket: Bucket | None = None
    measure: Callable[[Any], Ints] | None = None
    packs: Packs | None = None

    @classmethod
    def of(
        cls,
        read: Read,
        opened: Callable[[], Rows],
        *,
        predicate: Callable[..., Any] | None,
        worker: int,
        workers: int,
        measure: Callable[[Any], Ints] | None,
        packed: Callable[[Rows], Packs] | None = None,
    ) -> BatchReader:
        """The reader of a worker by the options of `read`.

        Args:
            opened: opens the rows, after the options are checked.
            packed: plans the packs of the rows; None if rows are not packed.

        Raises SpecError for options that need TensorFlow, and for an invalid worker.
        """
        check_without_tensorflow(read)
        if predicate is not None:
            check_arguments("filter", predicate, 1, "(features), a bool for each row")
        rows = opened()._ordered(read)
        (workers,) = whole_numbers(workers=(workers, 1))
        packs = None if packed is None else packed(rows)
        units = rows._epoch_rows if packs is None else packs.padded(read.batch)
        share = _share(units, read.batch, worker, workers, read.shuffle)
        if workers > 1 and (predicate is not None or read.bucket is not None):
            expected = "1, as batches depend on the values of rows"
            raise SpecError(Problem(path=("workers",), expected=expected, got=str(workers)))
        return cls(
            rows=rows,
            features=read.features,
            share=share,
            seed=None if read.shuffle is None else read.shuffle.seed,
            predicate=predicate,
            bucket=read.bucket,
            measure=measure,
            packs=packs,
        )

    @property
    def steps(self) -> int | None:
        """The number of batches of a pass; None if it depends on values of rows."""
        return self.share.steps if self.predicate is None and self.bucket is None else None

    @cached_property
    def _wanted(self) -> Rows:
        return self.rows if self.features is None else self.rows.only(self.features)

    def numbers(self, epoch: int, start: int = 0, stopped: Event | None = None) -> Iterator[Ints]:
        """The row numbers of each batch of a pass, from batch `start` on, int64 `[n]`.

        Args:
            stopped: is set when no more rows are needed.
        """
        share, order = self.share, self._order(epoch)
        if self.steps is not None:
            return (order.rows_at(share.positions(step, step + 1)) for step in range(start, self.steps))
        chunks: Iterator[Ints] = (
            order.rows_at(np.arange(first, min(first + _SHAPED, share.rows)))
            for first in range(0, share.rows, _SHAPED)
            if stopped is None or not stopped.is_set()
        )
        if self.predicate is not None:
            chunks = map(self._kept, chunks)
        gathered = self._gathered(chunks) if self.bucket is None else self._bucketed(chunks, self.bucket)
        return islice(gathered, start, None)

    def groups(
        self, epoch: int, start: int = 0, apart: int = 1, stopped: Event | None = None
    ) -> Iterator[Group]:
        """The batches that are decoded together. Takes batch `start`, and every batch at a multiple of
        `apart` after it.
        """
        if self.packs is not None:
            yield from self._expecting(self._packed(self.packs, epoch, range(start, self.share.steps, apart)))
            return
        yield from self._expecting(self._groups(epoch, start, apart, stopped), self._order(epoch))

    def _expecting(self, groups: Iterable[Group], order: Permutation | None = None) -> Iterator[Group]:
        """The groups. What the next ones read begins to come from a store while one is decoded."""
        if self._wanted._is_mapped:
            yield from groups
            return
        waiting = deque[Group]()
        for group in groups:
            self._wanted._expect(group.numbers, order)
            waiting.append(group)
            if len(waiting) > _EXPECTED:
                yield waiting.popleft()
        yield from waiting

    def _groups(self, epoch: int, start: int, apart: int, stopped: Event | None) -> Iterator[Group]:
        """The groups of rows that are not packed."""
        share, order, rows = self.share, self._order(epoch), self._wanted
        windows = rows._windows(rows.schema, order, start * share.batch)
        most = rows._decoded_chunk(windows)
        if self.steps is not None and apart == 1:
            together = max(1, most // -(-share.batch // share.workers))
            for step in range(start, self.steps, together):
                stop = min(step + together, self.steps)
                yield Group(order.rows_at(share.positions(step, stop)), share.sizes(step, stop), windows)
            return
        some: list[Ints] = []
        for batch in islice(self.numbers(epoch, start, stopped), None, None, apart):
            if some and sum(map(len, some)) + len(batch) > most:
                yield Group.of(some, windows)
                some = []
            some.append(batch)
        if some:
            yield Group.of(some, windows)

    def packs_of_step(self, epoch: int, step: int) -> RowsInPacks:
        """The rows in the packs of a step. Raises SpecError for a step beyond the pass."""
        assert self.packs is not None
        epoch, step = whole_numbers(epoch=(epoch, 0), step=(step, 0))
        _check_below(step, self.share.steps)
        return self.packs.at(epoch, self.share.positions(step, step + 1))

    def _packed(self, packs: Packs, epoch: int, steps: range) -> Iterator[Group]:
        """The groups of the batches of packs at `steps`."""
        most, rows_of_batch = (
            self._wanted._decoded_chunk(),
            packs.pieces / max(1, packs.count) * self.share.size,
        )
        together = max(1, int(most / max(1.0, rows_of_batch)))
        windows = self._wanted._recent_blocks(self._wanted.schema)
        for place in range(0, len(steps), together):
            some = [self.share.positions(step, step + 1) for step in steps[place : place + together]]
            found = packs.at(epoch, np.concatenate(some))
            ends = offsets(np.array([len(positions) for positions in some])).tolist()
            parts = [found.part(first, stop) for first, stop in pairwise(ends)]
            yield Group(found.rows, np.array([len(part.rows) for part in parts]), windows, parts)

    def decoded(
        self,
        numbers: Ints,
        sizes: Ints,
        windows: KeptBlocks | None = None,
        packs: Sequence[RowsInPacks] = (),
    ) -> Iterator[tuple[Any, ...]]:
        """Decodes the batches of a group, and yields the features of each, with the rows of its packs."""
        names = self.features
        batches = self._wanted._batches(numbers, sizes, windows)
        found = ({name: batch[name] for name in names or batch} for batch in batches)
        return zip(found, packs, strict=True) if packs else ((batch,) for batch in found)

    @property
    def has_media(self) -> bool:
        """Whether there are images or audio, which several threads decode faster than one."""
        return self._wanted.schema is not None and self._wanted.schema._may_grow

    def _order(self, epoch: int) -> Permutation:
        return self.rows._in_epoch(epoch, self.seed)

    def _kept(self, numbers: Ints) -> Ints:
        assert self.predicate is not None
        predicate = naming_features("filter", self.predicate)
        kept = np.asarray(predicate(_FeaturesOfRows(self.rows, numbers)))
        if kept.dtype != bool or kept.shape != numbers.shape:
            got = f"{kept.dtype.name} {kept.shape}"
            raise SpecError(Problem(path=("filter",), expected="a bool for each row, [n]", got=got))
        chosen: Ints = numbers[kept]
        return chosen

    def _gathered(self, chunks: Iterable[Ints]) -> Iterator[Ints]:
        """Rows in batches of one size."""
        size, waiting = self.share.batch, np.zeros(0, np.int64)
        for chunk in chunks:
            waiting = np.concatenate([waiting, chunk])
            whole = len(waiting) // size * size
            yield from waiting[:whole].reshape(-1, size)
            waiting = waiting[whole:]
        if len(waiting) and not self.share.drop_remainder:
            yield waiting

    def _bucketed(self, chunks: Iterable[Ints], bucket: Bucket) -> Iterator[Ints]:
        """Batches of rows whose lengths lie between the same two boundaries. At the end of the pass,
        yields the remaining rows of each bucket.
        """
        measured = self.rows.only([bucket.by])
        waiting: dict[int, list[int]] = {}
        for chunk in chunks:
            value = measured[chunk][bucket.by]
            lengths = lengths_of(value, bucket.by) if self.measure is None else self.measure(value)
            buckets = np.searchsorted(bucket.boundaries, lengths, "right")
            for row, number in zip(chunk.tolist(), buckets.tolist(), strict=True):
                own = waiting.setdefault(number, [])
                own.append(row)
                if len(own) == self.share.batch:
                    yield np.array(waiting.pop(number))
        if not self.share.drop_remainder:
            yield from (np.array(waiting[number]) for number in sorted(waiting))


@dataclass(frozen=True, kw_only=True)
class Passes:
    """The batches of a config, pass after pass, as NumPy values.

    Attributes:
        reader: reads the batches of a pass.
        finish: converts a batch of features to the inputs, targets and weights of a model.
        start: the position of the first iteration.
        count: the passes of an iteration; None for `repeat: forever`.
        ahead: the batches that a thread prefetches; 0 for none, and for decoding without threads.
        order: the options that determine which rows come next, as in `Position.order`.
    """

    reader: BatchReader
    finish: Callable[..., Any]
    start: Position
    count: int | None
    ahead: int
    order: Mapping[str, Any]

    @cached_property
    def steps(self) -> int:
        """The number of batches of a pass. If it depends on values of rows, all rows are read to count
        them.
        """
        return self.reader.steps or sum(1 for _ in self.reader.numbers(0))

    @property
    def batches(self) -> int | None:
        """The number of batches of an iteration that begins with a pass; None if it is endless."""
        return None if self.count is None else self.steps * self.count

    def check_start(self, manifest: str, restart: Callable[[], None] | None = None) -> None:
        """Checks the position of the first iteration, and tells its watcher of the opening.

        Args:
            manifest: the identity of the dataset's manifest.
            restart: as in `Opening`.

        Raises SpecError if the position is of other options, or of another dataset.
        """
        # Keras asks for the number of steps, even if it depends on the values of rows
        steps = self.reader.steps if restart is None or self.count is None else self.steps
        self.start._begin(
            Opening(passes=self.count, steps=steps, restart=restart),
            workers=1,
            batch=self.reader.share.batch,
            manifest=manifest,
            order=self.order,
        )

    def after(self, position: Position) -> Position:
        """The position of the iteration after the one that begins at `position`."""
        return Position(epoch=position.epoch + (self.count or 1))

    def begin(self, position: Position, first: int = 0, apart: int = 1) -> Iterator[Any]:
        """The batches of an iteration that begins at `position`: number `first` from there, and every
        batch at a multiple of `apart` after it.
        """
        stopped = Event()
        groups = self._groups(position, first, apart, stopped)
        if not self.ahead:
            return (self.finish(*batch) for group in groups for batch in self.reader.decoded(*group))
        return taken_ahead("prefetch", self._made(groups), self.ahead, stopped.set)

    def _made(self, groups: Iterator[Group]) -> Generator[Any]:
        # without media to decode, several threads would wait for each other more than they decode
        threads = None if self.reader.has_media else 1
        # closed at once if an error ends it, since the error keeps the frame alive
        with closing(threaded_map("decode", self.reader.decoded, groups, threads)) as decoded:
            for some in decoded:
                for batch in some:
                    yield self.finish(*batch)

    def _groups(self, position: Position, first: int, apart: int, stopped: Event) -> Iterator[Group]:
        start, epochs = position.step, range(position.epoch, position.epoch + (self.count or 1))
        for epoch in count(position.epoch) if self.count is None else epochs:
            has_none = True
            for group in self.reader.groups(epoch, start + first, apart, stopped):
                has_none = False
                yield group
            if stopped.is_set():
                return
            # from the first batch on, all rows were considered
            if has_none and self.count is None and (start + first == 0 or not self.steps):
                raise SpecError(no_batch())
            if first or apart > 1:  # the first of these batches in the next pass
                left = self.steps - start - first
                first = -left % apart if left > 0 else -left
            start = 0


class _FeaturesOfRows(Mapping[str, Any]):
    """The features of rows; each feature is decoded when it is first accessed."""

    def __init__(self, rows: Rows, numbers: Ints) -> None:
        assert rows.schema is not None
        self._rows, self._numbers, self._schema = rows, numbers, rows.schema
        self._decoded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._schema.outputs:
            raise KeyError(name)
        if name not in self._decoded:
            self._decoded |= self._rows.only([name])[self._numbers]
        return self._decoded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._schema.outputs)

    def __len__(self) -> int:
        return len(self._schema.outputs)


def lengths_of(value: Any, name: str) -> Ints:
    """The number of items per row, int64 `[n]`, which `read.bucket` compares."""
    if isinstance(value, RaggedArray):
        return value.lengths
    if isinstance(value, SparseArray):
        return np.bincount(value.indices[:, 0], minlength=len(value))
    if value.ndim == 1 and value.dtype == object:
        return np.fromiter(map(len, value), np.int64, len(value))
    if value.ndim == 1 and value.dtype.kind in "iu":
        lengths: Ints = value.astype(np.int64)
        return lengths
    dtype = "string" if value.dtype == object else value.dtype.name
    raise SpecError(Problem(path=("read", "bucket", "by"), expected=MEASURED, got=f"`{name}`, {dtype}"))


def _shuffle_of(shuffle: Any, seed: int) -> Shuffle | None:
    """The order that the arguments of `iterate` choose; None for that of the files."""
    if not isinstance(shuffle, Mapping):
        return Shuffle(seed=seed, global_=True) if shuffle else None
    if "seed" in shuffle and seed:
        raise SpecError(Problem(path=("seed",), expected="one seed", got=f"{seed}, and one in `shuffle`"))
    chosen: Shuffle = from_python(Shuffle, {"seed": seed, **shuffle})
    if not chosen.is_elastic:
        expected, hint = "`global: true` or `lanes` without TensorFlow", "`rs.read` has a buffer"
        raise SpecError(Problem(path=("shuffle",), expected=expected, got="a buffer", hint=hint))
    return chosen


def _share(
    rows: int, batch: Batch | None, worker: int, workers: int, shuffle: Shuffle | None = None
) -> Share:
    """The part of a worker. Raises SpecError for an invalid worker."""
    size, drop_remainder = (1, False) if batch is None else (batch.size, batch.drop_remainder)
    share = Share(rows=rows, batch=size, drop_remainder=drop_remainder, worker=worker, workers=workers)
    check_share(share, ("workers",))
    if shuffle is not None and shuffle.lanes is not None:
        check_lanes(share, shuffle.lanes, ("workers",))
    return share


def rows_of_step(
    read: Read, opened: Callable[[], Rows], epoch: int, step: int, worker: int = 0, workers: int = 1
) -> tuple[Rows, Ints]:
    """The rows, and the numbers of the rows of a step, int64 `[n]`.

    Args:
        read: the options of the training, with or without TensorFlow.
        opened: opens the rows, after the options are checked.
        epoch, step: the numbers of the pass, and of the global batch in the pass, both from 0.
        worker, workers: the number of a worker, from 0, and the number of workers.

    Raises SpecError for options with which a step has other rows than the rows of its positions, and for a
    step beyond the pass.
    """
    if read.shuffle is not None and not read.is_global:
        hint = "with a buffer, the order of rows depends on all rows before"
        expected = "`global: true`, or the order of the files"
        raise SpecError(Problem(path=("read", "shuffle"), expected=expected, got="a buffer", hint=hint))
    epoch, step, workers = whole_numbers(epoch=(epoch, 0), step=(step, 0), workers=(workers, 1))
    usual = Read()
    for option in ("interleave", "bucket", "balance", "corrupt"):
        if (value := getattr(read, option)) != getattr(usual, option):
            hint = "with it, the position of a step does not say which rows it has"
            raise SpecError(Problem(path=("read", option), expected="none", got=str(value), hint=hint))
    if read.shuffle is None and workers > 1:
        expected, hint = "1 in the order of the files", "each worker reads its own files or ranges of files"
        raise SpecError(Problem(path=("workers",), expected=expected, got=str(workers), hint=hint))
    rows = opened()._ordered(read)
    share = _share(rows._epoch_rows, read.batch, worker, workers, read.shuffle)
    _check_below(step, share.steps)
    seed = None if read.shuffle is None else read.shuffle.seed
    order = rows._in_epoch(epoch, seed)
    return rows, order.rows_at(share.positions(step, step + 1))


def _check_below(step: int, steps: int) -> None:
    if step >= steps:
        expected = f"a number below {steps}, the batches of an epoch"
        raise SpecError(Problem(path=("step",), expected=expected, got=str(step)))


def check_without_tensorflow(read: Read) -> None:
    """Raises SpecError for options of `read` that need TensorFlow."""
    hints = {
        "service": "its workers run TensorFlow",
        "interleave": "the order of an epoch determines the next row",
        "cache": "files are mapped into memory",
        "corrupt": "`recordspec repair` writes the intact records",
        "balance": "weigh the classes: `Pipeline.class_weights`",
        "augment": "`map` changes images",
    }
    usual = Read()
    problems = [
        Problem(
            path=("read", option), expected="none without TensorFlow", got=_shown(read, option), hint=hint
        )
        for option, hint in hints.items()
        if getattr(read, option) != getattr(usual, option)
    ]
    if read.shuffle is not None and not read.is_global:
        expected, hint = "`global: true` without TensorFlow", "write `shuffle: {global: true, seed: 1}`"
        problems.append(Problem(path=("read", "shuffle"), expected=expected, got="a buffer", hint=hint))
    if read.batch is None:
        problems.append(Problem(path=("read", "batch"), expected="a batch without TensorFlow", got="none"))
    if problems:
        raise SpecError(problems)


def _shown(read: Read, option: str) -> str:
    value = getattr(read, option)
    return f"`{value}`" if isinstance(value, str) else f"`{option}`"
