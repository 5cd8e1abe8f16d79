"""Measures how well a shuffle mixes rows, by the distances and the classes of consecutive rows."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recordspec._tf import tf
from recordspec.order.read_options import Batch
from recordspec.reading import stages
from recordspec.reading.dataset import Recipe, build
from recordspec.reading.seeds import Seeds, pass_seed
from recordspec.reading.shuffle_buffer import ShufflePlan, gathered, rows_of_pools, shuffled

# The most rows whose places are compared: more would not change the figures.
_MOST_ROWS = 2_000_000
# The batches in which labels are read: the order of rows does not depend on them.
_LABELS = Batch(size=1024)


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The distances on disk of rows that are read one after the other.

    Attributes:
        rows: the number of rows compared, from the start of the first pass.
        adjacent: the share of pairs that follow each other on disk, in either order.
        adjacent_by_chance: the share after a shuffle of all rows.
        apart: the mean distance on disk of a pair.
        apart_by_chance: the mean distance after a shuffle of all rows.
    """

    rows: int
    adjacent: float
    adjacent_by_chance: float
    apart: float
    apart_by_chance: float


@dataclass(frozen=True, kw_only=True)
class Classes:
    """The classes of rows that are read one after the other.

    Attributes:
        label: the feature with the classes.
        rows: the number of rows compared, from the start of the first pass.
        same: the share of pairs of the same class, as rows are read.
        same_on_disk: the share in the order of the files.
        same_by_chance: the share after a perfect shuffle: the sum of the squares of the classes' shares.
    """

    label: str
    rows: int
    same: float
    same_on_disk: float
    same_by_chance: float


def neighbours(recipe: Recipe) -> Neighbours | None:
    """Computed without reading; None if the rows were not counted, or are fewer than two."""
    total = recipe.plan.rows
    if total is None or total < 2:
        return None
    if recipe.share is not None:
        seen = recipe.order.rows_at(0, np.arange(min(total, _MOST_ROWS)))
    else:
        batches = places(recipe).rebatch(1 << 16).take(-(-_MOST_ROWS >> 16)).as_numpy_iterator()
        seen = np.concatenate(list(batches))
    apart = np.abs(np.diff(seen))
    return Neighbours(
        rows=len(seen),
        adjacent=float(np.mean(apart == 1)),
        adjacent_by_chance=2 / total,
        apart=float(np.mean(apart)),
        apart_by_chance=(total + 1) / 3,
    )


def places(recipe: Recipe) -> Any:
    """A Dataset of the places on disk of the rows of the first pass, int64 `[n]`, in shuffled order.

    Places count through all files. They follow from the options and the plan, without filter and buckets.
    """
    options, plan = recipe.options, recipe.plan
    if options.shuffle is None:
        raise ValueError("rows that are not shuffled stay in the places where they are")
    shuffle = ShufflePlan.of(plan, options.shuffle, Seeds.of(options.shuffle.seed, pass_seed(0)))
    firsts = stages.places(plan, recipe.interleave, shuffle.seeds, deterministic=options.deterministic)
    if shuffle.large:
        return gathered(shuffled(firsts, shuffle), _LABELS.size)
    size, ends = plan.block or 1, tf.constant(plan.ends, tf.int64)

    def held(pool: Any) -> tuple[Any, Any]:
        end = tf.gather(ends, tf.searchsorted(ends, pool, side="right"))
        rows = tf.ragged.range(pool, tf.minimum(pool + size, end)).flat_values
        return rows, tf.size(rows)

    pools = gathered(firsts, -(-shuffle.buffer // size))
    return rows_of_pools(pools, held, tf.identity, tf.size, shuffle=shuffle, first=None)


def classes(recipe: Recipe, label: str, seconds: float) -> Classes | None:
    """Computed from the rows that are read in `seconds`, in each order; None for fewer than two."""
    only = replace(
        recipe.options, features=(label,), batch=_LABELS, bucket=None, cache="none", repeat=1, service=None
    )
    read = _values(replace(recipe, options=only), label, seconds)
    if len(read) < 2:
        return None
    on_disk = replace(recipe, options=replace(only, shuffle=None, interleave=None))
    keep_rates = np.unique(read, return_counts=True)[1] / len(read)
    return Classes(
        label=label,
        rows=len(read),
        same=_same(read),
        same_on_disk=_same(_values(on_disk, label, seconds)),
        same_by_chance=float(np.sum(keep_rates**2)),
    )


def _values(recipe: Recipe, label: str, seconds: float) -> Any:
    """The classes of the rows that are read in `seconds`, int64 `[n]`."""
    dataset = build(recipe.options, recipe.schema, recipe.plan, predicate=recipe.predicate)
    end = time.perf_counter() + seconds
    labels_read = [np.zeros(0, np.int64)]
    for batch in dataset.as_numpy_iterator():
        labels_read.append(batch[label])
        if time.perf_counter() > end:
            break
    return np.concatenate(labels_read)


def _same(values: Any) -> float:
    return float(np.mean(values[1:] == values[:-1]))
