"""The recipe: shards to decoded batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from recordspec._tf import tf
from recordspec.errors import Problem, SpecError
from recordspec.reading import memory, shaping, stages
from recordspec.reading.layouts import Blocks, Layout, Mix, Rows
from recordspec.reading.options import Batch, Interleave, Read
from recordspec.reading.order import Position, Seeds, key_of, passes, plain
from recordspec.reading.plan import Plan, plan
from recordspec.spec.decoder import alone
from recordspec.spec.options import from_python
from recordspec.spec.schema import Schema
from recordspec.store.shards import Files, expand

Dataset = Any
Function = Callable[..., Any]

# Rows that are looked at together where some are left out, or where they wait for their like.
_SHAPED = Batch(size=1024)


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
        shuffle: rows in the shuffle buffer, its bytes such as "256MiB", or a `Shuffle`; needs a seed.
        seed: of the shuffle.
        map: a function on each decoded element.
        filter: a function of a decoded batch that gives a bool for each row: whether it is kept.
        start: the epoch and the step, both from 0, to begin at, as if all before had been read.
        options: the other fields of `Read`: interleave, bucket, features, cache, repeat, prefetch,
            deterministic, corrupt, service.

    Returns:
        A plain Dataset, whose cardinality is known where a manifest lies beside the files. With a shuffle,
        each iteration is the next epoch, in an order of its own.

    Raises:
        SpecError: an option is wrong.
        StoreError: no such files, or they are not what their manifest says, or of another spec.
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
    return build(how, schema, plan(expand(files), schema), map=map, keep=filter, start=Position.of(start))


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
    elements = stages.apply(recipe.batches(), plain(recipe.decode), deterministic=how.deterministic)
    if map is not None:
        elements = stages.apply(elements, map, deterministic=how.deterministic)
    if how.service is not None:
        elements = stages.distributed(elements, how.service)
    return elements if how.prefetch is None else stages.prefetch(elements, how.prefetch)


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
        if how.service is not None and self.start is not None:
            expected = "the beginning: with a service rows come in the order of their arrival"
            raise SpecError(Problem(path=("start",), expected=expected, got=str(self.start)))
        kept = None if how.cache == "none" else memory.cached(self._records(None), how, self.plan)
        if how.service is not None or (how.shuffle is None and self.start is None):
            seeds = None if how.shuffle is None else Seeds()
            rows = self._one_pass(self._records(seeds) if kept is None else kept, seeds, None)
            rows = rows if how.passes == 1 else rows.repeat(how.passes)
        else:
            rows = self._numbered_passes(kept)
        return self._counted(rows)

    def records(self) -> Dataset:
        """The serialized records of a pass, in the order in which the files are read; nothing is shuffled."""
        return self._records(None)

    def places(self) -> Dataset:
        """Where each row of the first pass is on disk, int64 `[n]`, in the order in which it is read.

        Counted over all files, and known from the options and the plan alone, without filter and buckets.
        """
        how = self.how
        seeds = None if how.shuffle is None else Seeds.of(how.shuffle.seed, key_of(0))
        records = stages.places(self.plan, self._interleave, seeds, deterministic=how.deterministic)
        held = self._layout.places().rows(records, _SHAPED, self._mix(seeds), None)
        return held.map(plain(lambda held: tf.nest.flatten(held)[0]))

    @property
    def steps(self) -> int | None:
        """Batches of a pass; None where that follows from what is read, or nobody counted the rows."""
        shaped = self.keep is not None or self.how.bucket is not None
        return None if shaped else self.plan.batches(self.how.batch)

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
            by = () if self.how.bucket is None else (self.how.bucket.by,)
            schema = schema.only([*names, *asked, *by])
        return Rows(schema) if self.plan.block is None else Blocks(schema, self.plan.block)

    def _records(self, seeds: Seeds | None) -> Dataset:
        return stages.records(self.plan, self._interleave, seeds, deterministic=self.how.deterministic)

    @property
    def _interleave(self) -> Interleave | None:
        mixed = self.how.interleave or (Interleave() if self.how.shuffle else None)
        if mixed is not None and self.plan.block is not None:
            mixed = replace(mixed, block=1)
        return mixed

    def _mix(self, seeds: Seeds | None) -> Mix | None:
        if self.how.shuffle is None or seeds is None:
            return None
        return Mix(buffer=self.plan.buffer(self.how.shuffle), seeds=seeds)

    def _numbered_passes(self, kept: Dataset | None) -> Dataset:
        """Passes that know which they are; of records that are kept, or read anew each time."""
        first = self.start or Position()

        broken_off = key_of(first.epoch)

        def one_pass(key: Any) -> Dataset:
            seeds = None if self.how.shuffle is None else Seeds.of(self.how.shuffle.seed, key)
            skip = tf.where(tf.reduce_all(key == broken_off), tf.constant(first.step, tf.int64), 0)
            records = self._records(seeds) if kept is None else kept
            return self._one_pass(records, seeds, skip if first.step else None)

        return passes(first.epoch, self.how.passes).flat_map(plain(one_pass))

    def _one_pass(self, records: Dataset, seeds: Seeds | None, skip: Any) -> Dataset:
        how = self.how
        mix = self._mix(seeds)
        if self.keep is not None or how.bucket is not None:
            rows = self._shaped(self._layout.rows(records, _SHAPED, mix, None))
        elif self.plan.uneven:
            rows = self._layout.rows(records, how.batch, mix, None).repeat().take(self.steps)
        else:
            return self._layout.rows(records, how.batch, mix, skip)
        return rows if skip is None else rows.skip(skip)

    def _shaped(self, rows: Dataset) -> Dataset:
        """Without the rows that are not kept, and batched by length if asked to."""
        how = self.how
        if self.keep is not None:
            rows = shaping.kept(rows, self._layout, self.schema, self.keep)
        if how.bucket is not None and how.batch is not None:
            return shaping.bucketed(rows, self._layout, how.bucket, how.batch)
        return self._layout.rebatched(rows, how.batch)

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


def per_replica(how: Read, replicas: int) -> Read:
    """The same, with the global batch divided among replicas. Raises SpecError if it does not divide."""
    if how.batch is None:
        raise SpecError(Problem(path=("read", "batch"), expected="a batch to divide", got="none"))
    if how.batch.size % replicas:
        expected = f"a batch that {replicas} replicas divide"
        raise SpecError(Problem(path=("read", "batch", "size"), expected=expected, got=str(how.batch.size)))
    return replace(how, batch=replace(how.batch, size=how.batch.size // replicas))
