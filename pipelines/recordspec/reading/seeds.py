"""The seeds of the passes over a dataset, and the random numbers that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

from recordspec._tf import Dataset, tf
from recordspec.reading.transformations import flat_map
from recordspec.schema.tensors import Tensor

# Any number but 0, which means a random seed to tf.data.
_SEED = 87654321


@dataclass(frozen=True)
class Seeds:
    """The seeds of one pass: int64 scalars in a graph, or None for random ones.

    Attributes:
        files, pools: for the shuffles of files and of pools.
        left_out: for the rows that are dropped to balance classes.
        choices: for the datasets that a mixture draws.
    """

    files: Tensor | None = None
    pools: Tensor | None = None
    left_out: Tensor | None = None
    choices: Tensor | None = None

    @classmethod
    def of(cls, seed: int, pass_seed: Tensor) -> Seeds:
        """The seeds of a pass, from the seed of all passes and the seed of the pass."""
        both = tf.random.experimental.stateless_fold_in(
            pass_seed, tf.constant(seed % (1 << 63), tf.int64), "philox"
        )
        drawn = tf.random.stateless_uniform([4], both, 0, (1 << 31) - 1, tf.int64, alg="philox")
        return cls(*tf.unstack(drawn))


def permuted(places: Tensor, seed: Tensor | None, number: Tensor | int = 0) -> Tensor:
    """Permutes a vector by a seed and a number; at random without a seed.

    Dataset.shuffle combines its seed with that of the program (tf.random.set_seed), and in a graph it is a
    stateful op, which makes checkpoints of iterators impossible (TensorFlow 2.16 and 2.21).
    """
    if seed is None:
        return tf.random.shuffle(places)
    both = tf.stack([seed, tf.cast(number, tf.int64)])
    return tf.random.experimental.stateless_shuffle(places, both, alg="philox")


def chances(count: Tensor, seed: Tensor | None, number: Tensor) -> Tensor:
    """Uniform numbers in [0, 1) for the `count` rows of batch `number`, float64 `[count]`."""
    if seed is None:
        return tf.random.uniform([count], dtype=tf.float64)
    both = tf.stack([seed, tf.cast(number, tf.int64)])
    return tf.random.stateless_uniform([count], both, dtype=tf.float64, alg="philox")


def passes(first: int, count: int | None) -> Dataset:
    """The seeds of `count` passes from pass `first` on, int64 `[2]`, all different.

    Keras starts an iteration for every epoch, and each new iteration continues after the last one. Only
    tf.data's dataset of random numbers both remembers earlier iterations and can be in a checkpoint of an
    iterator. Its n-th pair of numbers is the seed of the n-th pass.
    """
    variant = tf.raw_ops.RandomDatasetV2(
        seed=tf.constant(_SEED, tf.int64),
        seed2=tf.constant(_SEED, tf.int64),
        seed_generator=tf.raw_ops.DummySeedGenerator(),
        output_types=[tf.int64],
        output_shapes=[[]],
        rerandomize_each_iteration=True,
    )
    numbers = tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.int64))
    seeds = numbers.batch(2, drop_remainder=True).take(1)
    for _ in flat_map(tf.data.Dataset.range(first), lambda _: seeds):  # an iterator a seed takes 10 ms
        pass
    # Keras 3.15 makes two iterators an epoch and uses one. A flat_map makes its inner iterators only when it
    # is asked for an element, so an unused iterator does not count as a pass.
    read = flat_map(tf.data.Dataset.range(1), lambda _: seeds)
    return read if count == 1 else read.repeat(count)


def pass_seed(number: int) -> Tensor:
    """The seed of pass `number`, int64 `[2]`."""
    return next(iter(passes(number, 1)))
