"""Pools: many rows that are put in order together, and handed on together.

Handing over single records between the stages of tf.data costs more than the shuffle itself: on 2 cores,
reading records of 784 bytes took 4.4 us of CPU time a row with `shuffle(10_000)`, and 2.6 us in pools of as
many. Of large rows the copies into pools cost more, so these are put in order one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recordspec._tf import tf
from recordspec.reading.options import Shuffle
from recordspec.reading.order import Seeds, permuted
from recordspec.reading.plan import Plan
from recordspec.reading.transformations import CALLS, flat_map, map_elements, rebatch, without_autograph

Dataset = Any
Tensor = Any
# String `[n]`, or a dict of tensors with n rows each; a single row is string `[]`, or one of n = 1.
Held = Any

# Pools of blocks that are decoded at a time; as many cores as there are would take as much memory.
_AT_ONCE = 2
# Pools that are in memory: those, one that is being read, and one that is being handed on.
_POOLS = 2 + _AT_ONCE


@dataclass(frozen=True, kw_only=True)
class Mix:
    """How the rows of a pass are put in order.

    Attributes:
        buffer: rows of a pool, or that wait where there are no pools.
        seeds: of the shuffles.
        large: whether rows are so large that they are better put in order without pools, one by one.
    """

    buffer: int
    seeds: Seeds
    large: bool

    @classmethod
    def of(cls, plan: Plan, shuffle: Shuffle, seeds: Seeds) -> Mix:
        """How the rows of a plan are shuffled."""
        return cls(buffer=plan.buffer(shuffle), seeds=seeds, large=plan.large and plan.block is None)

    @property
    def buffers(self) -> int:
        """How many of them are in memory at most."""
        return 1 if self.large else _POOLS


def together(rows: Dataset) -> bool:
    """Whether an element is several rows."""
    return any(spec.shape.rank for spec in tf.nest.flatten(rows.element_spec))


def gathered(rows: Dataset, size: int, *, drop_remainder: bool = False) -> Dataset:
    """Records or held rows, single ones or some together, in batches of `size`."""
    if together(rows):
        return rebatch(rows, size, drop_remainder=drop_remainder)
    return rows.batch(size, drop_remainder=drop_remainder)


def shuffled(rows: Dataset, mix: Mix) -> Dataset:
    """Single rows, each taken at random of those that wait: nothing is copied, and each waits once."""
    if mix.seeds.pools is None:
        return rows.shuffle(mix.buffer)
    variant = tf.raw_ops.ShuffleDataset(  # Dataset.shuffle: see `permuted`
        input_dataset=tf.data.experimental.to_variant(rows),
        buffer_size=tf.constant(mix.buffer, tf.int64),
        seed=mix.seeds.pools,
        seed2=tf.ones([], tf.int64),  # both 0 would be chance
        reshuffle_each_iteration=False,
        output_types=[rows.element_spec.dtype],
        output_shapes=[rows.element_spec.shape],
    )
    return tf.data.experimental.from_variant(variant, rows.element_spec)


def rows_of_pools(
    pools: Dataset,
    held: Callable[[Tensor], tuple[Held, Tensor]],
    counted: Callable[[Tensor], Tensor],
    *,
    mix: Mix | None,
    first: Tensor | None,
) -> Dataset:
    """The rows of each pool, from row `first` of all pools on.

    Args:
        pools: vectors of serialized records.
        held: gives the rows of a pool, and how many they are.
        counted: tells how many they are, and looks at nothing else.
        mix: how they are put in order; None for the order of the pool.
        first: rows that are passed over; None for none.
    """

    def rows(number: Tensor, pool: Tensor, left_out: Tensor | None = None) -> Held:
        found, count = held(pool)
        if mix is None and left_out is None:
            return found
        return taken(found, _places(count, mix, number, left_out))

    calls = CALLS if mix is None else _AT_ONCE
    return map_elements(_numbered(pools, counted, mix, first), rows, calls)


def drawn(
    pools: Dataset, size: int, made: Callable[[Tensor], Held], *, mix: Mix, first: Tensor | None
) -> Dataset:
    """What is made of `size` records of a pool at a time, each a row, from row `first` of all pools on.

    Only so many are copied at a time, and they are looked at while they are in the caches.
    """

    def in_order(number: Tensor, pool: Tensor, left_out: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return pool, _places(tf.size(pool), mix, number, left_out)

    def parts(pool: Tensor, places: Tensor) -> Dataset:
        whole = tf.data.Dataset.from_tensors(pool).repeat()
        return tf.data.Dataset.zip((whole, rebatch(tf.data.Dataset.from_tensors(places), size)))

    def some(pool: Tensor, places: Tensor) -> Held:
        return made(tf.gather(pool, places))

    ordered = map_elements(_numbered(pools, tf.size, mix, first), in_order).prefetch(1)
    return map_elements(flat_map(ordered, parts), some, CALLS)


def _places(count: Tensor, mix: Mix | None, number: Tensor, left_out: Tensor | None) -> Tensor:
    """Where in a pool its rows are taken from, one after the other."""
    places = tf.range(count)
    if mix is not None:
        places = permuted(places, mix.seeds.pools, number)
    return places if left_out is None else places[left_out:]


def _numbered(
    pools: Dataset, counted: Callable[[Tensor], Tensor], mix: Mix | None, first: Tensor | None
) -> Dataset:
    """The number of each pool, the pool, and from row `first` on how many of its rows are before it."""
    if first is None and (mix is None or mix.seeds.pools is None):
        # a service divides what it is given among its workers: the numbers of an enumeration, too
        return map_elements(pools, lambda pool: (tf.zeros([], tf.int64), pool))
    numbered = pools.enumerate()
    return numbered if first is None else _from(numbered, first, counted)


def _from(numbered: Dataset, row: Tensor, counted: Callable[[Tensor], Tensor]) -> Dataset:
    """The pools from the one on that has this row, each with how many of its rows are before it."""

    def measured(before: Tensor, pool: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        number, records = pool
        after = before + tf.cast(counted(records), tf.int64)
        return after, (number, records, tf.maximum(row - before, 0), after)

    found = numbered.scan(tf.zeros([], tf.int64), without_autograph(measured))
    found = found.filter(without_autograph(lambda number, records, left_out, after: after > row))
    return map_elements(found, lambda number, records, left_out, after: (number, records, left_out))


def taken(held: Held, places: Tensor) -> Held:
    """Some of the held rows."""
    if isinstance(held, dict):
        return {name: tf.gather(value, places) for name, value in held.items()}
    return tf.gather(held, places)
