"""Mixes tf.data datasets by weight. `recordspec.pipeline.mixture` mixes datasets at rest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal

from recordspec._tf import Dataset, tf
from recordspec.errors import Path, Problem, SpecError, one_of
from recordspec.reading.seeds import Seeds, chances, passes
from recordspec.reading.stages import known_cardinality
from recordspec.reading.transformations import flat_map, map_elements
from recordspec.schema.tensors import Tensor, without_autograph

# The number of choices that one call draws.
_AT_ONCE = 1024
_ENDS = ("first", "all")


def mix(
    datasets: Sequence[Dataset],
    weights: Sequence[float] | None = None,
    *,
    seed: int,
    end: Literal["first", "all"] = "first",
) -> Dataset:
    """Returns a tf.data.Dataset that draws a dataset by weight for each element, and yields its next one.

        dataset = recordspec.mix([ours.dataset("train"), theirs.dataset("train")], [0.8, 0.2], seed=17)

    The draws are a function of the seed and the epoch, and independent of `tf.random.set_seed`.
    Each iteration is the next epoch, of the mixture and of its datasets.

    Since each element depends on all before, a mixture of tf.data datasets neither begins at a step, nor says
    which rows a step had, nor has the same batches for any number of workers. A mixture of pipelines does.

    Args:
        datasets: datasets with elements of the same type. Batches are not mixed: to mix rows within batches,
            mix unbatched datasets, and batch the mixture. Datasets with a `start` are not supported, as
            their first pass is shorter: to resume, use a `tf.train.Checkpoint` of the iterator.
        weights: the relative frequency of each dataset; equal by default.
        seed: the seed of the draws.
        end: with "first", the mixture ends when an exhausted dataset is drawn; with "all", when all datasets
            are exhausted: until then, the remaining datasets are drawn by the same weights.

    Returns:
        A plain Dataset. With "all", its cardinality is the sum of the datasets' cardinalities, if known.

    Raises:
        SpecError: an argument is invalid, or the types of the elements differ.

    Example:
        >>> parts = [pipeline.dataset("train"), pipeline.dataset("test")]
        >>> sum(1 for _ in rs.mix(parts, [0.8, 0.2], seed=17, end="all"))
        6
    """
    datasets = tuple(datasets)
    weights = (1.0,) * len(datasets) if weights is None else tuple(weights)
    problems = list(_check(datasets, weights, end))
    if problems:
        raise SpecError(problems)
    counts = [int(dataset.cardinality()) for dataset in datasets]
    drawn = list(datasets)
    endless = [count == tf.data.INFINITE_CARDINALITY for count in counts]
    if end == "first" and any(endless) and not all(endless):
        # tf.data takes a mixture as infinite if one of its datasets is: the filter hides the cardinality
        drawn = [dataset.filter(without_autograph(lambda *_: tf.constant(True))) for dataset in datasets]
    choices = flat_map(passes(0, 1), lambda of_pass: _choices(weights, Seeds.of(seed, of_pass).choices))
    mixed = tf.data.Dataset.choose_from_datasets(drawn, choices, stop_on_empty_dataset=end == "first")
    # with "first", the number of elements follows from the draws
    known = min(counts) >= 0 and (len(counts) == 1 or end == "all")
    return known_cardinality(mixed, sum(counts)) if known else mixed


def _choices(weights: Sequence[float], seed: Tensor) -> Dataset:
    """An infinite dataset of drawn indices of datasets."""
    bounds = tf.constant([bound / sum(weights) for bound in accumulate(weights)][:-1], tf.float64)

    def some(number: Tensor) -> Tensor:
        return tf.searchsorted(bounds, chances(_AT_ONCE, seed, number), side="right", out_type=tf.int64)

    return map_elements(tf.data.Dataset.counter(), some).unbatch()


def _check(datasets: Sequence[Dataset], weights: Sequence[float], end: str) -> Iterator[Problem]:
    if not datasets:
        yield Problem(path=("datasets",), expected="at least one dataset", got="none")
        return
    if end not in _ENDS:
        yield Problem(path=("end",), expected=one_of(_ENDS), got=f"`{end}`")
    if len(weights) != len(datasets):
        expected = f"{len(datasets)} weights, as many as datasets"
        yield Problem(path=("weights",), expected=expected, got=str(len(weights)))
    for place, weight in enumerate(weights):
        if not 0 < weight < math.inf:
            yield Problem(path=("weights", place), expected="a weight above 0", got=str(weight))
    first = dict(_flat(datasets[0].element_spec))
    for place, dataset in enumerate(datasets):
        other = dict(_flat(dataset.element_spec))
        for path in dict.fromkeys((*first, *other)):
            expected, got = str(first.get(path, "none")), str(other.get(path, "none"))
            if first.get(path) != other.get(path):
                hint = "elements must be of the type that they have in the first dataset"
                yield Problem(path=("datasets", place, *path), expected=expected, got=got, hint=hint)


def _flat(spec: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yields the types within nested tuples and mappings, each with its path."""
    if isinstance(spec, Mapping):
        parts: Any = spec.items()
    elif isinstance(spec, tuple):
        parts = enumerate(spec)
    else:
        yield path, spec
        return
    for name, part in parts:
        yield from _flat(part, (*path, name))
