"""The recipe: shards to decoded batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from recordspec._tf import tf
from recordspec.errors import Problem, SpecError
from recordspec.reading import classes, memory, service, shaping, stages
from recordspec.reading.layouts import Blocks, Layout, Rows, keeps_in_any_batch
from recordspec.reading.options import Balance, Batch, Interleave, Read
from recordspec.reading.order import Position, Seeds, key_of, passes
from recordspec.reading.plan import Plan, plan
from recordspec.reading.pools import Mix
from recordspec.reading.transformations import CALLS, flat_map, map_elements
from recordspec.spec.decoder import alone, batch_spec
from recordspec.spec.options import from_python
from recordspec.spec.schema import Schema
from recordspec.store.shards import Files, expand

Dataset = Any
Function = Callable[..., Any]

# Rows that are looked at together, at most, where some are left out, or where they wait for their like.
_SHAPED = 1024
# Of a service's files, each worker mixes one in so many at a time, so that there are some for the others.
_TURNS = 16


def read(
    schema: Schema,
    files: Files,
    *,
    batch: Any = None,
    shuffle: Any = None,
    seed: int | None = None,
    map: Function | None = None,  # noqa: A002  what tf.data calls it
    filter: Function | None = None,  # noqa: A002
    start: Position | tuple[int, int] | None = None,
    **options: Any,
) -> Any:
    """A tf.data.Dataset of decoded rows: dicts from feature names to tensors.

    Args:
        schema: what the records are.
        files: a path, a pattern, a folder of shards, or several of these. Compression is recognised.
        batch: rows in a batch, or a `Batch`; without it single rows.
        shuffle: rows in the shuffle buffer, its bytes such as "64MiB", or a `Shuffle`; needs a seed.
        seed: of the shuffle.
        map: a function on each decoded element.
        filter: a function of a decoded batch that gives a bool for each row: whether it is kept.
        start: the epoch and the step, both from 0, to begin at, as if all before had been read.
        options: the other fields of `Read`: interleave, bucket, balance, features, cache, repeat,
            prefetch, deterministic, corrupt, service.

    Returns:
        A plain Dataset, whose cardinality is known where a manifest lies beside the files. With a shuffle,
        each iteration is the next epoch, in an order of its own.

    Raises:
        SpecError: an option is wrong.
        StoreError: no such files, or they are not what their manifest says, or of another spec.
        RecordError: a file is no TFRecord file.
    """
    if isinstance(shuffle, (int, str)) and not isinstance(shuffle, bool):
        if seed is None:
            hint = "the order should be one that can be had again"
            raise SpecError(Problem(path=("seed",), expected="a seed to shuffle by", got="none", hint=hint))
        shuffle = {"buffer": shuffle, "seed": seed}
    elif seed is not None:
        hint = "give shuffle as a number of rows"
        raise SpecError(Problem(path=("shuffle",), expected="a buffer for the seed", got="none", hint=hint))
    how = from_python(Read, {"batch": batch, "shuffle": shuffle, **options})
    what = plan(expand(files), schema, corrupt=how.corrupt)
    return build(how, schema, what, map=map, keep=filter, start=Position.of(start))


def build(
    how: Read,
    schema: Schema,
    what: Plan,
    *,
    map: Function | None = None,  # noqa: A002
    keep: Function | None = None,
    start: Position | None = None,
) -> Any:
    """Decoded batches, in an order fixed by `how` and `what`."""
    recipe = Recipe(how=how, schema=schema, plan=what, keep=keep, start=start)
    elements = recipe.batches()
    if not recipe.decoded:
        elements = map_elements(elements, recipe.decode, CALLS, deterministic=how.deterministic)
    if map is not None:
        elements = stages.apply(elements, map, deterministic=how.deterministic)
    if how.service is not None:
        elements = service.distributed(stages.untuned(elements), how.service)
    if how.prefetch is not None:
        elements = stages.prefetch(elements, how.prefetch)
    return stages.untuned(elements)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How the batches of one dataset are read.

    Attributes:
        how: the options.
        schema: of all features.
        plan: what is read.
        keep: tells which rows are kept.
        start: where to begin; None at the first batch of the first pass.
    """

    how: Read
    schema: Schema
    plan: Plan
    keep: Function | None = None
    start: Position | None = None

    def batches(self) -> Dataset:
        """The rows of all passes, in batches, not decoded yet."""
        how = self.how
        memory.check(how, self.plan)
        self._check_service()
        self._check_workers()
        kept = None if how.cache == "none" else memory.cached(self.records(None), how, self.plan)
        alike = how.shuffle is None and how.balance is None  # one pass as another
        if how.service is not None or (alike and self.start is None):
            rows = self._one_pass(kept, Seeds(), None)
            rows = rows if how.passes == 1 else rows.repeat(how.passes)
        else:
            rows = self._numbered_passes(kept)
        return self._counted(rows)

    def mix(self, seeds: Seeds) -> Mix | None:
        """How the rows of a pass are shuffled, if they are."""
        shuffle = self.how.shuffle
        return None if shuffle is None else Mix.of(self.plan, shuffle, seeds)

    @property
    def interleave(self) -> Interleave | None:
        """How files are mixed, if they are."""
        mixed = self.how.interleave or (Interleave() if self.how.shuffle else None)
        if mixed is not None and self.plan.block is not None:
            mixed = replace(mixed, block=1)
        if mixed is not None and self.how.service is not None:
            mixed = _for_service(mixed, len(self.plan.pieces))
        return mixed

    def _check_service(self) -> None:
        """Raises SpecError for what a service cannot do: its rows come in the order of their arrival."""
        if self.how.service is None:
            return
        if self.start is not None:
            got = f"epoch {self.start.epoch}, step {self.start.step}"
            raise SpecError(Problem(path=("start",), expected="none with a service", got=got))
        if len(self.plan.others) > 1:
            expected = "none for several workers, which must have equally many batches"
            raise SpecError(Problem(path=("service",), expected=expected, got=f"`{self.how.service}`"))

    def _check_workers(self) -> None:
        """Raises SpecError where several workers would have other numbers of batches."""
        if self._shapes and len(self.plan.others) > 1 and self.how.passes is not None:
            expected = "`forever`, where a filter or buckets decide how many batches each worker has"
            raise SpecError(Problem(path=("read", "repeat"), expected=expected, got=str(self.how.repeat)))

    @property
    def _shapes(self) -> bool:
        """Whether what is in the rows decides about batches."""
        return any(one is not None for one in (self.keep, self.how.bucket, self.how.balance))

    @property
    def steps(self) -> int | None:
        """Batches of a pass; None where that follows from what is read, or nobody counted the rows."""
        return None if self._shapes else self.plan.batches(self.how.batch)

    @property
    def decoded(self) -> bool:
        """Whether the batches are features already, those asked for and no others."""
        names = self.how.features
        asked = names is None or tuple(names) == tuple(self._layout.schema.outputs)
        return self._layout.early and asked and self.how.batch is not None

    def parse(self, held: Any) -> Any:
        """The columns of rows, from which `decode` makes the features."""
        return self._wanted.parse(held)

    def decode(self, held: Any) -> dict[str, Any]:
        """The features of rows."""
        names = self.how.features
        decoded = self._wanted.decode(held)
        if self.how.batch is None and self.plan.block is not None:
            decoded = alone(self.schema, decoded)
        return decoded if names is None else {name: decoded[name] for name in names}

    @property
    def _wanted(self) -> Layout:
        """Of the features that are decoded."""
        return self._layout if self.how.features is None else self._layout.only(self.how.features)

    @cached_property
    def _layout(self) -> Layout:
        """What features are parsed: those asked for, and those that decide about rows."""
        schema, names = self.schema, self.how.features
        if names is not None:
            asked = () if self.keep is None else shaping.names_asked(schema, self.keep)
            by = [one.by for one in (self.how.bucket, self.how.balance) if one is not None]
            schema = schema.only([*names, *asked, *by])
        early = keeps_in_any_batch(schema)
        if self.plan.block is not None:
            return Blocks(schema, self.plan.block, self.plan.chunk, early)
        return Rows(schema, self.plan.chunk, early and self._gains(schema))

    def _gains(self, schema: Schema) -> bool:
        """Whether rows that may be decoded before they are batched should be: tf.data puts ragged rows into
        other batches one by one, and of large rows a chunk is no more than a batch."""
        batch = self.how.batch
        dense = all(isinstance(spec, tf.TensorSpec) for spec in batch_spec(schema).values())
        return dense and not self._shapes and batch is not None and self.plan.chunk >= 2 * batch.size

    def records(self, seeds: Seeds | None) -> Dataset:
        """The serialized records of a pass: single ones, or vectors of some."""
        return stages.records(self.plan, self.interleave, seeds, deterministic=self.how.deterministic)

    def _numbered_passes(self, kept: Dataset | None) -> Dataset:
        """Passes that know which they are; of records that are kept, or read anew each time."""
        first = self.start or Position()
        broken_off = key_of(first.epoch)

        def one_pass(key: Any) -> Dataset:
            skip = tf.where(tf.reduce_all(key == broken_off), tf.constant(first.step, tf.int64), 0)
            return self._one_pass(kept, self._seeds(key), skip if first.step else None)

        return flat_map(passes(first.epoch, self.how.passes), one_pass)

    def _seeds(self, key: Any) -> Seeds:
        """Those of the pass with this key."""
        shuffle, choice = self.how.shuffle, self.how.choice_seed
        seeds = Seeds() if shuffle is None else Seeds.of(shuffle.seed, key)
        return seeds if choice is None else replace(seeds, left_out=Seeds.of(choice, key).left_out)

    def _one_pass(self, kept: Dataset | None, seeds: Seeds, skip: Any) -> Dataset:
        how = self.how
        mix = self.mix(seeds)
        records = self.records(None if mix is None else seeds) if kept is None else kept
        if self._shapes:
            some = Batch(size=min(_SHAPED, self.plan.chunk))
            rows = self._shaped(self._layout.rows(records, some, mix, None), seeds)
        elif self.plan.uneven:
            rows = self._layout.rows(records, how.batch, mix, None).repeat().take(self.steps)
        else:
            return self._layout.rows(records, how.batch, mix, skip)
        return rows if skip is None else rows.skip(skip)

    def _shaped(self, rows: Dataset, seeds: Seeds) -> Dataset:
        """Without the rows that are not kept, and batched by length if asked to."""
        how = self.how
        if how.balance is not None:
            shares = classes.shares(self._balanced_counts(how.balance))
            rows = shaping.balanced(rows, self._layout, how.balance.by, shares, seeds.left_out)
        if self.keep is not None:
            rows = shaping.kept(rows, self._layout, self.schema, self.keep)
        if how.bucket is not None and how.batch is not None:
            return shaping.bucketed(rows, self._layout, how.bucket, how.batch)
        return self._layout.rebatched(rows, how.batch)

    def _balanced_counts(self, balance: Balance) -> tuple[int, ...]:
        path = ("read", "balance", "by")
        return classes.counts_of(balance.by, self.schema, self.plan.class_counts, self.plan.folder, path)

    def _counted(self, rows: Dataset) -> Dataset:
        """The same batches, of which tf.data knows how many there are."""
        steps, repeated = self.steps, self.how.passes
        if repeated is None:
            return stages.known_cardinality(rows, tf.data.INFINITE_CARDINALITY)
        if steps is None or self.how.service is not None:
            return rows
        missing = 0 if self.start is None else self.start.step
        if missing >= max(1, steps):
            expected = f"a step below {steps}, as one epoch has so many"
            raise SpecError(Problem(path=("start", "step"), expected=expected, got=str(missing)))
        if missing:
            return stages.cut_short(rows, steps * repeated, missing)
        return stages.known_cardinality(rows, steps * repeated)


def at_a_glance(how: Read, rows: int) -> Read:
    """How so many rows of all files are read at once: what takes time or memory is not done."""
    if rows < 1:
        raise SpecError(Problem(path=("rows",), expected="at least 1", got=str(rows)))
    return Read(
        batch=Batch(size=rows),
        interleave=Interleave(block=1),
        features=how.features,
        corrupt=how.corrupt,
        prefetch=None,
    )


def _for_service(how: Interleave, pieces: int) -> Interleave:
    """How each worker of a service mixes its files.

    A sequential interleave of shuffled files makes every worker read all of them (TensorFlow 2.16 to 2.21).
    A parallel one opens three times its cycle ahead, which the other workers then have no part in.
    """
    cycle = max(1, pieces // _TURNS) if how.cycle == "auto" else how.cycle
    return replace(how, cycle=cycle, parallel=how.parallel or "auto")


def per_replica(how: Read, replicas: int) -> Read:
    """The same, with the global batch divided among replicas. Raises SpecError if it does not divide."""
    if how.batch is None:
        raise SpecError(Problem(path=("read", "batch"), expected="a batch to divide", got="none"))
    if how.batch.size % replicas:
        expected = f"a batch that {replicas} replicas divide"
        raise SpecError(Problem(path=("read", "batch", "size"), expected=expected, got=str(how.batch.size)))
    return replace(how, batch=replace(how.batch, size=how.batch.size // replicas))
