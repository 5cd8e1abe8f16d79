"""`recordspec.read`: from shards to decoded batches, in one of two orders."""

from __future__ import annotations

import abc
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from recordspec._tf import Dataset, tf
from recordspec.arrays.random_access import Rows
from recordspec.errors import Problem, SpecError, show_text
from recordspec.locations import AnyPath
from recordspec.order.global_order import Share
from recordspec.order.lane_order import check_lanes
from recordspec.order.position import Opening, Position, check_step, no_batch, order_of
from recordspec.order.read_options import Augment, Batch, Interleave, Read, Shuffle
from recordspec.order.read_plan import Plan, WorkerShard, plan_files
from recordspec.reading import filtering, global_shuffle, memory, staged_shards, stages
from recordspec.reading.augmentation import Augmentation
from recordspec.reading.corrupt_records import without_corrupt
from recordspec.reading.global_shuffle import GlobalShuffle
from recordspec.reading.layouts import BlockLayout, DatasetLayout, RowLayout
from recordspec.reading.seeds import Seeds, pass_seed, passes
from recordspec.reading.shuffle_buffer import ShufflePlan
from recordspec.reading.transformations import CALLS, at_least_one, flat_map, map_elements
from recordspec.schema import decoder, row_blocks
from recordspec.schema.options import INVALID, PythonValue, from_python
from recordspec.schema.row_blocks import Handed
from recordspec.schema.schema import Schema
from recordspec.schema.tensors import Tensor, rows_of_batch
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import Files, Split
from recordspec.store.staging import StagingFolder

if TYPE_CHECKING:  # mixtures and packs take 20 ms to import
    from typing_extensions import Unpack

    from recordspec.arrays.mixed_rows import MixedRows
    from recordspec.order.packing import Packs
    from recordspec.order.read_options import ReadOptions


# The most rows that one call filters, balances or buckets.
_SHAPED = 1024
# A worker of a service interleaves 1 / _TURNS of the files, so that files are left for the other workers.
_TURNS = 16
# With more shards to copy before the first batch, a shuffle from a store warns.
_MANY_COPIES = 16


def read(
    files: Files,
    schema: Schema | AnyPath | None = None,
    *,
    split: Split = ...,
    batch: int | Mapping[str, Any] | Batch | None = None,
    shuffle: bool | int | str | Mapping[str, Any] | Shuffle | None = None,
    seed: int | None = None,
    map: Callable[..., Any] | None = None,  # noqa: A002  what tf.data calls it
    filter: Callable[..., Any] | None = None,  # noqa: A002
    start: Position | tuple[int, int] | None = None,
    **options: Unpack[ReadOptions],
) -> Dataset:
    """Returns a tf.data.Dataset of decoded rows: dicts from feature names to tensors.

    Args:
        files: a path, a pattern or a folder of shards, or several of them. Compression is detected.
        schema: the schema of the records, or its path; by default the schema beside the files.
        split: the split to read; None for all rows. A folder with several splits needs one of the two.
        batch: the number of rows per batch, or a `Batch`; by default elements are single rows.
        shuffle: True to shuffle all rows; or the size of the shuffle buffer in rows, or in bytes such as
            "64MiB"; or a `Shuffle`.
        seed: the seed of the shuffle, by default 0.
        map: a function of each decoded element.
        filter: a function from a decoded batch to a bool for each row, true for rows to keep.
        start: the position at which to begin, or its epoch and step, both from 0; earlier batches are
            skipped.
        options: the other fields of `Read`: interleave, bucket, balance, features, augment, cache, repeat,
            prefetch, deterministic, corrupt, service.

    Returns:
        A plain Dataset; its cardinality is known if the files have a manifest. With a shuffle, each iteration
        is the next epoch, in another order.

    Raises:
        SpecError: an option is invalid, there is no such split, or `start` is a position of another batch
            size or dataset.
        StoreError: there are no such files, a folder has several splits and none is named, files differ from
            their manifest, or files have another spec.
        RecordError: a file is not a TFRecord file.

    Example:
        >>> dataset = rs.read("data/points/train-*", batch=4)
        >>> next(iter(dataset))["x"].shape
        TensorShape([4])
    """
    whole = PythonValue(shuffle).as_type(bool)  # also NumPy's
    if whole is True or (whole is INVALID and isinstance(shuffle, (int, np.integer, str))):
        size = {"global": True} if whole is True else {"buffer": shuffle}
        shuffle = {**size, "seed": 0 if seed is None else seed}
    elif seed is not None:
        hint = "`shuffle=True` shuffles all rows"
        raise SpecError(Problem(path=("shuffle",), expected="a shuffle for the seed", got="none", hint=hint))
    chosen = from_python(Read, {"batch": batch, "shuffle": shuffle, **options})
    if chosen.augment is not None and chosen.augment.splits != Augment.splits:
        expected, got = "none, since all files are augmented", ", ".join(chosen.augment.splits)
        raise SpecError(Problem(path=("augment", "splits"), expected=expected, got=got))
    dataset = StoredDataset.asked(files, schema, split, "rs.read")
    schema = dataset.schema_for("rs.read")
    intact = without_corrupt if chosen.corrupt == "skip" else None
    plan = plan_files(dataset, intact=intact)
    named = split if isinstance(split, str) else None
    return build(chosen, schema, plan, split=named, map=map, predicate=filter, start=Position.of(start))


def build(
    options: Read,
    schema: Schema,
    plan: Plan,
    *,
    split: str | Sequence[str] | None = None,
    map: Callable[..., Any] | None = None,  # noqa: A002
    predicate: Callable[..., Any] | None = None,
    start: Position | None = None,
    worker: WorkerShard | None = None,
    measures: Mapping[str, Callable[..., Any]] | None = None,
    mixed: Callable[[], MixedRows] | None = None,
    packed: Callable[[Rows], Packs] | None = None,
) -> Dataset:
    """Returns decoded batches, in an order determined by `options` and `plan`.

    Args:
        split: the name of the split, or the names of several; None for files without splits.
        worker: the worker that reads, in a global order; in another order, `plan` has its files.
        measures: by feature, a function from decoded values to the lengths by which rows are bucketed; other
            features are measured by `filtering.lengths_of`.
        mixed: opens the rows of a mixture of datasets; None for the rows of one.
        packed: plans the packs of all rows, for `pack`; `map` takes the elements of a `PackedOrder` then.
    """
    order = epoch_order(
        options,
        schema,
        plan,
        packed,
        split=split,
        predicate=predicate,
        start=start,
        worker=worker,
        measures=measures or {},
        mixed=mixed,
    )
    elements = elements_of(order, map)
    if options.service is not None:
        elements = stages.distributed(stages.untuned(elements), options.service)
    if options.prefetch is not None:
        elements = stages.prefetch(elements, options.prefetch)
    return stages.untuned(elements)


def elements_of(order: EpochOrder, mapped: Callable[..., Any] | None) -> Dataset:
    """The decoded batches of an order, as `mapped` makes them."""
    elements, deterministic = order.batches(), order.options.deterministic
    if not order.decoded:
        elements = map_elements(elements, order.decode, CALLS, deterministic=deterministic)
    return elements if mapped is None else stages.apply(elements, mapped, deterministic=deterministic)


def epoch_order(
    options: Read,
    schema: Schema,
    plan: Plan,
    packed: Callable[[Rows], Packs] | None = None,
    *,
    worker: WorkerShard | None = None,
    mixed: Callable[[], MixedRows] | None = None,
    **others: Any,
) -> EpochOrder:
    """The order of rows that the options choose: packs, the global order, or the order of a buffer and of
    files.

    Args:
        packed: as for `build`.
        worker: the worker of a global order that reads; by default the only one.
        mixed: opens the rows of a mixture, which is read in a global order.
        others: the other attributes of `EpochOrder`.
    """
    if options.pack is not None:
        from recordspec.reading.packed_order import PackedOrder

        if packed is None:
            hint = "`Pipeline.dataset` packs the rows of a config"
            raise SpecError(Problem(path=("pack",), expected="a config", got="files", hint=hint))
        worker = worker or WorkerShard()
        return PackedOrder.of(options, schema, plan, packed, mixed, worker=worker, **others)
    if options.is_global:
        worker = worker or WorkerShard()
        return GlobalOrder(options=options, schema=schema, plan=plan, worker=worker, mixed=mixed, **others)
    return BufferedOrder(options=options, schema=schema, plan=plan, **others)


@dataclass(frozen=True, kw_only=True)
class EpochOrder(abc.ABC):
    """Batches of rows in the order of each epoch.

    Attributes:
        options: the options of reading.
        schema: the schema of all features.
        plan: the files to read.
        split: as for `build`.
        predicate: the filter, a function of a decoded batch; None for no filter.
        start: the first position to read; None for the first batch of the first pass.
        measures: as for `build`.
    """

    options: Read
    schema: Schema
    plan: Plan
    split: str | Sequence[str] | None = None
    predicate: Callable[..., Any] | None = None
    start: Position | None = None
    measures: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    @abc.abstractmethod
    def check(self) -> None:
        """Raises SpecError for options and files that the order does not support."""

    @property
    @abc.abstractmethod
    def steps(self) -> int | None:
        """The number of batches of a pass; None if it depends on values, or if rows were not counted."""

    @abc.abstractmethod
    def positions(self, number: Tensor) -> tuple[Tensor, int]:
        """The position in the pass of the first row of batch `number`, and the distance to the next row."""

    @abc.abstractmethod
    def passes(self) -> Dataset:
        """The rows of all passes, in batches, before decoding."""

    @property
    @abc.abstractmethod
    def block(self) -> int | None:
        """The largest number of rows in a record that is parsed; None if each record is one row."""

    @property
    def replicas(self) -> int:
        """The number of batches of a step."""
        return 1

    @property
    def order_options(self) -> dict[str, Any]:
        """What determines which rows come next, beside the options of reading, as JSON values."""
        return {}

    def datasets_at(self, decoded: Any, of_pass: Tensor, positions: Callable[[Tensor], Tensor]) -> Tensor:
        """The number of the dataset of a decoded row, or of each row of a batch, int64.

        Args:
            of_pass: the seed of the pass, of `seeds.passes`.
            positions: as for `Augmentation.apply`.
        """
        raise NotImplementedError

    @property
    def name_as(self) -> str | None:
        """The feature of the dataset of a row, which is not stored; None if it is not read."""
        return None

    @property
    def mean_rows(self) -> float | None:
        """The mean number of rows of a batch, if its first dimension does not tell it."""
        return None

    def batches(self) -> Dataset:
        """The rows of all passes, in batches, before decoding; the cardinality is stated if it is known.

        With an augmentation, elements are the triples of `stages.numbered`.

        Raises SpecError for options that exclude each other, or if `start` belongs to other options.
        """
        self.check()
        if self.start is not None:
            self.start._begin(
                Opening(passes=self.options.passes, steps=self.steps),
                workers=self.plan.workers,
                batch=1 if self.options.batch is None else self.options.batch.size,
                manifest=self.plan.manifest_identity,
                order=order_of(self.options, self.split, self.predicate) | self.order_options,
            )
        return self._counted(self.passes())

    @property
    def depends_on_values(self) -> bool:
        """Whether batches depend on the values of rows."""
        return any(one is not None for one in (self.predicate, self.options.bucket, self.options.balance))

    @property
    def decoded(self) -> bool:
        """Whether batches are decoded already, and have only the requested features."""
        names = self.options.features
        asked = names is None or tuple(names) == tuple(self.layout.schema.outputs)
        unchanged = asked and not self.needs_positions
        return self.layout.early and unchanged and self.options.batch is not None

    def parse(self, records: Any) -> Any:
        """The parsed columns of serialized rows."""
        return decoder.parse(self._wanted.schema, records)

    def decode(self, *element: Any) -> dict[str, Any]:
        """The decoded features of an element of `batches`."""
        names, records = self.options.features, element[-1]
        decoded = self._wanted.decode(records)
        if self.needs_positions:
            of_pass, number, _ = element
            positions = partial(self._positions_of_rows, number)
            if self.augmentation is not None:
                seed = self.augmentation.seed_of(of_pass, self.plan.worker)
                decoded = self.augmentation.apply(decoded, seed, positions)
        if self.options.batch is None and self.plan.block is not None:
            decoded = decoder.alone(self.schema, decoded)
        if self.name_as is not None:
            decoded = decoded | {self.name_as: self.datasets_at(decoded, of_pass, positions)}
        return decoded if names is None else {name: decoded[name] for name in names}

    @cached_property
    def augmentation(self) -> Augmentation | None:
        """How images are augmented; None if images are not augmented, or the image is not read.

        Raises SpecError if the options do not agree with the schema.
        """
        if self.options.augment is None:
            return None
        made = Augmentation.of(self.options.augment, self.schema)
        return made.among(self._wanted.schema)

    @property
    def needs_positions(self) -> bool:
        """Whether values depend on the positions of rows."""
        return self.augmentation is not None or self.name_as is not None

    def _positions_of_rows(self, number: Tensor, rows: Tensor) -> Tensor:
        """The positions in the pass of the rows of batch `number`, int64 `[rows]`."""
        first, apart = self.positions(number)
        return first + apart * tf.range(rows, dtype=tf.int64)

    @property
    def _wanted(self) -> DatasetLayout:
        """The layout with only the requested features that are stored."""
        return self.layout if self.stored_names is None else self.layout.only(self.stored_names)

    @property
    def stored_names(self) -> list[str] | None:
        """The requested features that are stored, at least one; None for all."""
        if self.options.features is None:
            return None
        names = [name for name in self.options.features if name != self.name_as]
        return names or list(self.schema.names)[:1]

    @cached_property
    def parsed(self) -> Schema:
        """The schema of the features to parse: the requested features, and features that select rows."""
        schema, names = self.schema, self.stored_names
        if names is None:
            return schema
        asked = () if self.predicate is None else filtering.names_asked(schema, self.predicate)
        by = [one.by for one in (self.options.bucket, self.options.balance) if one is not None]
        return schema.only([*names, *asked, *by])

    @cached_property
    def layout(self) -> DatasetLayout:
        """The layout with the features to parse."""
        schema = self.parsed
        early, batch = schema._keeps_in_any_batch, self.options.batch
        if self.block is not None:
            return BlockLayout(schema, self.plan.chunk, early, self.block)
        # Decoding before batching does not pay for ragged rows, which are rebatched one by one, nor for large
        # rows, if a chunk of them is less than two batches.
        dense = all(isinstance(spec, tf.TensorSpec) for spec in decoder.batch_spec(schema).values())
        free = dense and not self.depends_on_values
        gains = free and batch is not None and self.plan.chunk >= 2 * batch.size
        return RowLayout(schema, self.plan.chunk, early and gains)

    def numbered_passes(self, one_pass: Callable[[Tensor, Seeds, Tensor | None], Dataset]) -> Dataset:
        """All passes, each with its own seed.

        Args:
            one_pass: returns the batches of a pass, by the seed of the pass, the seeds of its shuffles, and
                the number of steps to skip, None for none.
        """
        first = self.start or Position()
        broken_off = pass_seed(first.epoch)

        def numbered(of_pass: Any) -> Dataset:
            skip = tf.where(tf.reduce_all(of_pass == broken_off), tf.constant(first.step, tf.int64), 0)
            shuffle, choice = self.options.shuffle, self.options.choice_seed
            seeds = Seeds() if shuffle is None else Seeds.of(shuffle.seed, of_pass)
            if choice is not None:
                seeds = replace(seeds, left_out=Seeds.of(choice, of_pass).left_out)
            rows = one_pass(of_pass, seeds, skip if first.step else None)
            return stages.numbered(rows, skip * self.replicas, of_pass) if self.needs_positions else rows

        return flat_map(passes(first.epoch, self.options.passes), numbered)

    def shaped(self, records: Dataset, shuffle: ShufflePlan | None, seeds: Seeds) -> Dataset:
        """Batches of rows balanced, filtered and bucketed by length, as the options say."""
        options, some = self.options, Batch(size=min(_SHAPED, self.plan.chunk))
        rows = self.layout.rows(records, some, shuffle, None)
        if options.balance is not None:
            label, plan, path = options.balance.by, self.plan, ("read", "balance", "by")
            counts = filtering.class_counts(label, self.schema, plan.class_counts, plan.folder, path)
            rates = filtering.keep_rates(counts)
            rows = filtering.balanced(rows, self.layout, label, rates, seeds.left_out)
        if self.predicate is not None:
            rows = filtering.filtered(rows, self.layout, self.schema, self.predicate)
        if options.bucket is not None and options.batch is not None:
            measure = self.measures.get(options.bucket.by)
            rows = filtering.bucketed(rows, self.layout, options.bucket, options.batch, measure)
        else:
            rows = self.layout.rebatched(rows, options.batch)
        if options.passes is not None or options.service is not None:  # a worker of it may have no batch
            return rows
        return at_least_one(rows, str(no_batch()))

    def _counted(self, rows: Dataset) -> Dataset:
        """Batches with their cardinality stated, if it is known."""
        steps, repeated = self.steps, self.options.passes
        missing = 0 if self.start is None else self.start.step * self.replicas
        check_step(missing, steps)
        if repeated is None and steps == 0:
            raise SpecError(no_batch())
        if repeated is None:
            return stages.known_cardinality(rows, tf.data.INFINITE_CARDINALITY)
        nothing_left = 0 < missing == steps and repeated == 1  # in the first iteration; the next has all
        if steps is None or self.options.service is not None or nothing_left:
            return rows
        if missing:
            return stages.cut_short(rows, steps * repeated, missing)
        return stages.known_cardinality(rows, steps * repeated)


class BufferedOrder(EpochOrder):
    """The order of the files, or of shuffled files whose rows pass through a shuffle buffer.

    Several workers read files, or ranges of files, of their own.
    """

    def check(self) -> None:
        memory.check(self.options, self.plan)
        service, several = self.options.service, len(self.plan.others) > 1
        if service is not None and self.start is not None:  # rows come in order of arrival
            got = f"epoch {self.start.epoch}, step {self.start.step}"
            raise SpecError(Problem(path=("start",), expected="none with a service", got=got))
        if service is not None and several:
            expected = "none for several workers, since they must have equally many batches"
            raise SpecError(Problem(path=("service",), expected=expected, got=f"`{service}`"))
        if self.depends_on_values and several and self.options.passes is not None:
            expected = "`forever`, since a filter or buckets decide how many batches each worker has"
            raise SpecError(Problem(path=("read", "repeat"), expected=expected, got=str(self.options.repeat)))

    @property
    def steps(self) -> int | None:
        return None if self.depends_on_values else self.plan.batches(self.options.batch)

    def positions(self, number: Tensor) -> tuple[Tensor, int]:
        return number * (1 if self.options.batch is None else self.options.batch.size), 1

    @property
    def block(self) -> int | None:
        return self.plan.block

    def passes(self) -> Dataset:
        options, kept = self.options, None
        if options.cache != "none":
            kept = memory.cached(self.records(None), options, self.interleave, self.plan)
        # whether all passes are equal
        alike = options.shuffle is None and options.balance is None and self.augmentation is None
        if options.service is not None or (alike and self.start is None):
            rows = self._one_pass(kept, Seeds(), None)
            return rows if options.passes == 1 else rows.repeat(options.passes)
        return self.numbered_passes(lambda _, seeds, skip: self._one_pass(kept, seeds, skip))

    def _one_pass(self, kept: Dataset | None, seeds: Seeds, skip: Tensor | None) -> Dataset:
        """A pass from batch `skip` on, of cached records or of files that each pass reads again."""
        options = self.options
        shuffle = None if options.shuffle is None else ShufflePlan.of(self.plan, options.shuffle, seeds)
        records = self.records(None if shuffle is None else seeds) if kept is None else kept
        if self.depends_on_values:
            rows = self.shaped(records, shuffle, seeds)
        elif self.plan.uneven:
            rows = self.layout.rows(records, options.batch, shuffle, None).repeat().take(self.steps)
        else:
            return self.layout.rows(records, options.batch, shuffle, skip)
        return rows if skip is None else rows.skip(skip)

    def records(self, seeds: Seeds | None) -> Dataset:
        """The serialized records of a pass, string `[]` or `[k]`."""
        folder, deterministic = self._staging, self.options.deterministic
        return stages.records(self.plan, self.interleave, seeds, deterministic=deterministic, staging=folder)

    @property
    def interleave(self) -> Interleave | None:
        """How files are interleaved; None if they are read one after the other."""
        mixed = self.options.interleave or (Interleave() if self.options.shuffle else None)
        if mixed is not None and self.plan.block is not None:
            mixed = replace(mixed, block=1)
        if mixed is not None and self.options.service is not None:
            # A sequential interleave of shuffled files makes each worker read them all (TensorFlow 2.16 and
            # 2.21). A parallel interleave opens three times its cycle ahead, and other workers then cannot
            # read the open files.
            cycle = max(1, len(self.plan.pieces) // _TURNS) if mixed.cycle == "auto" else mixed.cycle
            mixed = replace(mixed, cycle=cycle, parallel=mixed.parallel or "auto")
        return mixed

    @cached_property
    def _staging(self) -> StagingFolder | None:
        """The folder to which the shards of an object store are copied; None for local files."""
        remote = [piece.remote for piece in self.plan.pieces if piece.remote is not None]
        options, mixed = self.options.staging, self.interleave
        if not remote:
            return None
        if options == "tensorflow":
            staged_shards.check_tensorflow(remote)
            return None
        if self.options.service is not None:
            hint = "its workers have no copies; `staging: tensorflow` reads gs:// without"
            expected = "none with data in an object store"
            raise SpecError(
                Problem(
                    path=("read", "service"), expected=expected, got=f"`{self.options.service}`", hint=hint
                )
            )
        cycle = 1 if mixed is None else stages.MOST_OPEN if mixed.cycle == "auto" else mixed.cycle
        if mixed is not None and mixed.parallel:
            cycle *= 3  # a parallel interleave opens three times its cycle, and each file holds its copy
        staged_shards.check_room(self.plan.pieces, cycle, options.size)
        first = min(cycle, len(remote))
        if self.options.shuffle is not None and first > _MANY_COPIES:
            hint = (
                "`shuffle: {lanes: 240}` reads ranges of shards, `interleave: {cycle: 4}` copies fewer first"
            )
            text = f"the first batch waits for copies of {first} shards from {remote[0].parent} ({hint})"
            warnings.warn(show_text(text), stacklevel=2)
        return staged_shards.folder_of(options, self.plan.pieces)


@dataclass(frozen=True, kw_only=True)
class GlobalOrder(EpochOrder):
    """A permutation of all rows, without a buffer. Worker w of W has rows `w, w + W, ...` of each batch.

    Attributes:
        worker: the worker that reads.
        mixed: opens the rows of a mixture; None for the rows of one dataset.
    """

    worker: WorkerShard
    mixed: Callable[[], MixedRows] | None = None

    def check(self) -> None:
        global_shuffle.check(self.options, self.plan)
        shuffle = self.options.shuffle
        if shuffle is not None and shuffle.lanes is not None:
            check_lanes(self.share, shuffle.lanes, global_shuffle.LANES_PATH)
        if self.depends_on_values and self.share.parts > 1:
            expected = "none for several workers, since batches depend on the values of rows"
            named = {"filter": self.predicate, "bucket": self.options.bucket, "balance": self.options.balance}
            got = ", ".join(name for name, value in named.items() if value is not None)
            raise SpecError(Problem(path=global_shuffle.PATH, expected=expected, got=got))

    @property
    def steps(self) -> int | None:
        return None if self.depends_on_values else self.share.steps * self.replicas

    @property
    def replicas(self) -> int:
        return self.share.replicas

    def positions(self, number: Tensor) -> tuple[Tensor, int]:
        # the same for any number of workers
        return self.share.positions_in(number)

    @property
    def block(self) -> int | None:
        # rows come in blocks of the rows that are read together
        return None if self.plan.block is None and self._handed is None else self.rows._chunk()

    @cached_property
    def _handed(self) -> tuple[Handed, ...] | None:
        """The arrays that Python hands over; None for records, which a graph parses."""
        if self.plan.block is not None:
            return row_blocks.handed(self.parsed, self.rows._row_bytes)
        if self.options.batch is None or self.plan.large:  # strings would be copied as often
            return None
        made = row_blocks.handed(self.parsed, self.rows._row_bytes)
        # records are batched, where ragged rows would be rebatched one by one
        return None if any(one.shape is None for one in made or ()) else made

    def passes(self) -> Dataset:
        return self.numbered_passes(self._one_pass)

    def _one_pass(self, of_pass: Tensor, seeds: Seeds, skip: Tensor | None) -> Dataset:
        """A pass from global batch `skip` on."""
        options, share, first = self.options, self.share, 0 if skip is None else skip
        if self.depends_on_values:
            return self.shaped(self._shuffle.records(of_pass, 0), None, seeds).skip(first)
        batch = None
        if options.batch is not None:
            batch = Batch(size=share.size, drop_remainder=share.drop_remainder)
        return self.layout.rows(self._shuffle.records(of_pass, first), batch, None, None)

    @cached_property
    def share(self) -> Share:
        """The part of this worker in each global batch."""
        batch = self.options.batch or Batch(size=1)
        return Share(
            rows=self.rows._epoch_rows,
            batch=batch.size,
            # if the values of rows decide batches, all rows are read
            drop_remainder=batch.drop_remainder and not self.depends_on_values,
            **vars(self.worker),
        )

    @property
    def order_options(self) -> dict[str, Any]:
        return self.rows._order_options

    @property
    def name_as(self) -> str | None:
        from recordspec.arrays import mixed_rows

        named = self.rows.plan.options.name_as if isinstance(self.rows, mixed_rows.MixedRows) else None
        names = self.options.features
        return named if names is None or named in names else None

    def datasets_at(self, decoded: Any, of_pass: Tensor, positions: Callable[[Tensor], Tensor]) -> Tensor:
        alone = self.options.batch is None
        places = positions(tf.ones([], tf.int64) if alone else rows_of_batch(next(iter(decoded.values()))))
        # not stateful, as equal arguments give equal numbers
        numbers = tf.numpy_function(self._shuffle.datasets_at, [of_pass, places], tf.int64, stateful=False)
        return tf.ensure_shape(numbers, [None])[0] if alone else tf.ensure_shape(numbers, [None])

    @cached_property
    def rows(self) -> Rows:
        """The rows of all workers."""
        if self.mixed is not None:
            return self.mixed()
        return Rows._of(self.plan.dataset(self.schema))._ordered(self.options)

    @cached_property
    def _shuffle(self) -> GlobalShuffle:
        shuffle = self.options.shuffle
        assert shuffle is not None
        chunk = self.plan.chunk if self.block is None else None
        return GlobalShuffle(self.rows, self.parsed, shuffle.seed, self.share, self._handed, chunk)


def at_a_glance(options: Read, rows: int) -> Read:
    """Returns options that read `rows` rows of all files as one batch, without slow or large stages."""
    if rows < 1:
        raise SpecError(Problem(path=("rows",), expected="at least 1", got=str(rows)))
    return Read(
        batch=Batch(size=rows),
        interleave=Interleave(block=1) if options.pack is None else None,
        features=options.features,
        augment=options.augment,
        pack=options.pack,
        corrupt=options.corrupt,
        prefetch=None,
    )


def per_replica(options: Read, replicas: int) -> Read:
    """The options with the global batch divided among replicas.

    Raises SpecError if the size of the batch is not a multiple of `replicas`.
    """
    if options.batch is None:
        raise SpecError(Problem(path=("read", "batch"), expected="a batch to divide", got="none"))
    size = options.batch.size
    if size % replicas:
        expected = f"a batch that {replicas} replicas divide"
        raise SpecError(Problem(path=("read", "batch", "size"), expected=expected, got=str(size)))
    return replace(options, batch=replace(options.batch, size=size // replicas))


def of_worker(options: Read, workers: int, number: int, replicas: int) -> tuple[Read, WorkerShard]:
    """The options and the part of a worker, if `replicas` replicas of all workers share a batch.

    In a global order, the batch stays the batch of all replicas.

    Raises SpecError for a batch that the replicas cannot divide.
    """
    if not options.divides_batches:
        return per_replica(options, replicas), WorkerShard(workers, number)
    if options.batch is None:
        raise SpecError(Problem(path=("read", "batch"), expected="a batch to divide", got="none"))
    if replicas > workers:  # all replicas have batches of one size
        per_replica(options, replicas)
    return options, WorkerShard(workers, number, replicas // workers)
