"""The shuffle buffer: pools of rows that are permuted and passed on together.

Passing single records between the stages of tf.data costs more than the shuffle itself: on 2 cores, reading
records of 784 bytes took 4.4 us of CPU time a row with `shuffle(10_000)`, and 2.6 us in pools of 10,000. For
large rows, the copies into pools cost more, so large rows are shuffled one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recordspec._tf import Dataset, tf
from recordspec.order.read_options import Shuffle
from recordspec.order.read_plan import Plan
from recordspec.reading.seeds import Seeds, permuted
from recordspec.reading.transformations import CALLS, flat_map, map_elements, rebatch
from recordspec.schema.tensors import Tensor, without_autograph

# Rows before they are decoded: string `[n]`, or a dict of tensors of n rows each. A single row is string
# `[]`, or a dict of n = 1.
SerializedRows = Any

# The number of pools of blocks that are decoded at a time. Memory grows in proportion.
_AT_ONCE = 2
# The pools in memory: pools being decoded, one that is being read, and one that is being passed on.
_POOLS = 2 + _AT_ONCE


@dataclass(frozen=True, kw_only=True)
class ShufflePlan:
    """How the rows of a pass are shuffled.

    Attributes:
        buffer: the number of rows of a pool; without pools, of the buffer of a `Dataset.shuffle`.
        seeds: the seeds of the shuffles.
        large: whether rows are so large that they are shuffled one by one, without pools.
    """

    buffer: int
    seeds: Seeds
    large: bool

    @classmethod
    def of(cls, plan: Plan, shuffle: Shuffle, seeds: Seeds) -> ShufflePlan:
        """How the rows of a plan are shuffled."""
        return cls(buffer=plan.buffer(shuffle), seeds=seeds, large=plan.large and plan.block is None)

    @property
    def buffers(self) -> int:
        """The largest number of buffers in memory."""
        return 1 if self.large else _POOLS


def together(rows: Dataset) -> bool:
    """Whether an element is a batch of rows."""
    return any(spec.shape.rank for spec in tf.nest.flatten(rows.element_spec))


def gathered(rows: Dataset, size: int, *, drop_remainder: bool = False) -> Dataset:
    """Batches of `size` rows, from single rows or from batches."""
    if together(rows):
        return rebatch(rows, size, drop_remainder=drop_remainder)
    return rows.batch(size, drop_remainder=drop_remainder)


def shuffled(rows: Dataset, shuffle: ShufflePlan) -> Dataset:
    """Shuffles single rows in a shuffle buffer, without a copy."""
    if shuffle.seeds.pools is None:
        return rows.shuffle(shuffle.buffer)
    variant = tf.raw_ops.ShuffleDataset(  # Dataset.shuffle: see `permuted`
        input_dataset=tf.data.experimental.to_variant(rows),
        buffer_size=tf.constant(shuffle.buffer, tf.int64),
        seed=shuffle.seeds.pools,
        seed2=tf.ones([], tf.int64),  # both 0 would mean a random seed
        reshuffle_each_iteration=False,
        output_types=[rows.element_spec.dtype],
        output_shapes=[rows.element_spec.shape],
    )
    return tf.data.experimental.from_variant(variant, rows.element_spec)


def rows_of_pools(
    pools: Dataset,
    read_pool: Callable[[Tensor], tuple[SerializedRows, Tensor]],
    made: Callable[[SerializedRows], SerializedRows],
    counted: Callable[[Tensor], Tensor],
    *,
    shuffle: ShufflePlan | None,
    first: Tensor | None,
) -> Dataset:
    """The rows of each pool, from row `first` of all pools on.

    Args:
        pools: vectors of serialized records.
        read_pool: returns the rows of a pool, and their number.
        made: a function that is applied to the rows of a pool.
        counted: returns only the number of rows, which is faster.
        shuffle: how rows are permuted; None for the order of the pool.
        first: the number of rows to skip; None for none.
    """

    def rows(number: Tensor, pool: Tensor, left_out: Tensor | None = None) -> SerializedRows:
        records, count = read_pool(pool)
        if shuffle is None and left_out is None:
            return made(records)
        return made(taken(records, _places(count, shuffle, number, left_out)))

    calls = CALLS if shuffle is None else _AT_ONCE
    return map_elements(_numbered(pools, counted, shuffle, first), rows, calls)


def drawn(
    pools: Dataset,
    size: int,
    made: Callable[[Tensor], SerializedRows],
    *,
    shuffle: ShufflePlan,
    first: Tensor | None,
) -> Dataset:
    """Applies `made` to `size` records of a permuted pool at a time, starting at row `first` of all pools.

    The records are gathered `size` at a time, so that they are still in the caches when they are decoded.
    """

    def in_order(number: Tensor, pool: Tensor, left_out: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return pool, _places(tf.size(pool), shuffle, number, left_out)

    def parts(pool: Tensor, places: Tensor) -> Dataset:
        whole = tf.data.Dataset.from_tensors(pool).repeat()
        return tf.data.Dataset.zip((whole, rebatch(tf.data.Dataset.from_tensors(places), size)))

    def some(pool: Tensor, places: Tensor) -> SerializedRows:
        return made(tf.gather(pool, places))

    ordered = map_elements(_numbered(pools, tf.size, shuffle, first), in_order).prefetch(1)
    return map_elements(flat_map(ordered, parts), some, CALLS)


def _places(count: Tensor, shuffle: ShufflePlan | None, number: Tensor, left_out: Tensor | None) -> Tensor:
    """The order in which the rows of a pool are taken, without the first `left_out`."""
    places = tf.range(count)
    if shuffle is not None:
        places = permuted(places, shuffle.seeds.pools, number)
    return places if left_out is None else places[left_out:]


def _numbered(
    pools: Dataset, counted: Callable[[Tensor], Tensor], shuffle: ShufflePlan | None, first: Tensor | None
) -> Dataset:
    """The number of each pool, the pool, and, with `first`, the number of its rows before that row."""
    if first is None and (shuffle is None or shuffle.seeds.pools is None):
        # a tf.data service divides its sources among workers: an enumeration would be divided, too
        return map_elements(pools, lambda pool: (tf.zeros([], tf.int64), pool))
    numbered = pools.enumerate()
    return numbered if first is None else _from(numbered, first, counted)


def _from(numbered: Dataset, row: Tensor, counted: Callable[[Tensor], Tensor]) -> Dataset:
    """The pools from the pool that holds `row` on, each with the number of its rows before `row`."""

    def measured(before: Tensor, pool: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        number, records = pool
        after = before + tf.cast(counted(records), tf.int64)
        return after, (number, records, tf.maximum(row - before, 0), after)

    scanned = numbered.scan(tf.zeros([], tf.int64), without_autograph(measured))
    scanned = scanned.filter(without_autograph(lambda number, records, left_out, after: after > row))
    return map_elements(scanned, lambda number, records, left_out, after: (number, records, left_out))


def taken(records: SerializedRows, places: Tensor) -> SerializedRows:
    """The rows at `places`."""
    return tf.nest.map_structure(lambda value: tf.gather(value, places), records)
