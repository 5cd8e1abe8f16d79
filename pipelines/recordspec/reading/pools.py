"""Pools: many rows that are put in order together, and handed on together.

Handing over single records between the stages of tf.data costs more than the shuffle itself: on 2 cores,
reading records of 784 bytes took 4.4 us of CPU time a row with `shuffle(10_000)`, and 2.6 us in pools of as
many.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recordspec._tf import tf
from recordspec.reading.order import Seeds, permuted, plain

Dataset = Any
Tensor = Any
# String `[n]`, or a dict of tensors with n rows each; a single row is string `[]`, or one of n = 1.
Held = Any

# Calls at a time of what decodes many rows, and shares out the work of each itself. AUTOTUNE begins with one,
# and raises it only in the course of seconds.
CALLS = min(16, max(2, os.cpu_count() or 1))
# Pools that are put in order at a time; as many cores as there are would take as much memory.
_AT_ONCE = 2
# Pools that are in memory: those, one that is being read, and one that is being handed on.
HELD = 2 + _AT_ONCE


@dataclass(frozen=True, kw_only=True)
class Mix:
    """How the rows of a pass are put in order.

    Attributes:
        buffer: rows of a pool.
        seeds: of the shuffles.
    """

    buffer: int
    seeds: Seeds


def together(rows: Dataset) -> bool:
    """Whether an element is several rows."""
    return any(spec.shape.rank for spec in tf.nest.flatten(rows.element_spec))


def gathered(rows: Dataset, size: int, *, drop_remainder: bool = False) -> Dataset:
    """Records or held rows, single ones or some together, in batches of `size`."""
    if together(rows):
        return rows.rebatch(size, drop_remainder=drop_remainder)
    return rows.batch(size, drop_remainder=drop_remainder)


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

    def rows(number: Tensor | int, pool: Tensor, left_out: Tensor | None = None) -> Held:
        found, count = held(pool)
        if mix is None and left_out is None:
            return found
        places = tf.range(count)
        if mix is not None:
            places = permuted(places, mix.seeds.pools, number)
        return taken(found, places if left_out is None else places[left_out:])

    calls = CALLS if mix is None else _AT_ONCE
    if first is None and (mix is None or mix.seeds.pools is None):
        # a service divides what it is given among its workers: the numbers of an enumeration, too
        return pools.map(plain(lambda pool: rows(0, pool)), calls, deterministic=True)
    numbered = pools.enumerate()
    if first is not None:
        numbered = _from(numbered, first, counted)
    return numbered.map(plain(rows), calls, deterministic=True)


def _from(numbered: Dataset, row: Tensor, counted: Callable[[Tensor], Tensor]) -> Dataset:
    """The pools from the one on that has this row, each with how many of its rows are before it."""

    def measured(before: Tensor, pool: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        number, records = pool
        after = before + tf.cast(counted(records), tf.int64)
        return after, (number, records, tf.maximum(row - before, 0), after)

    found = numbered.scan(tf.zeros([], tf.int64), plain(measured))
    found = found.filter(plain(lambda number, records, left_out, after: after > row))
    return found.map(plain(lambda number, records, left_out, after: (number, records, left_out)))


def taken(held: Held, places: Tensor) -> Held:
    """Some of the held rows."""
    if isinstance(held, dict):
        return {name: tf.gather(value, places) for name, value in held.items()}
    return tf.gather(held, places)
