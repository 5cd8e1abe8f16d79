"""A pass over a tf.data.Dataset of batches in a graph, without the cost of Python a batch.

Timed passes only count the rows: the cost of using the values is not part of reading.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from reading_speed.data import Given
from reading_speed.ways import Run


def passes(dataset: tf.data.Dataset, given: Given) -> Run:
    """Counts rows, and sums the column as a check; tf.data computes all features in any case."""

    def count(rows: Any, batch: Any) -> Any:
        return rows + _rows(batch[given.summed])

    def add(state: tuple[Any, Any], batch: Any) -> tuple[Any, Any]:
        return count(state[0], batch), state[1] + _sum(batch[given.summed])

    @tf.function
    def counted() -> Any:
        return dataset.reduce(np.int64(0), count)

    @tf.function
    def summed() -> tuple[Any, Any]:
        return dataset.reduce((np.int64(0), np.int64(0)), add)

    def run(check: bool) -> tuple[int, int | None]:
        if not check:
            return int(counted()), None
        rows, total = summed()
        return int(rows), int(total)

    return run


def counts(batches: tf.data.Dataset) -> Run:
    """Counts the records of batches."""

    @tf.function
    def one_pass() -> Any:
        return batches.reduce(np.int64(0), lambda rows, batch: rows + tf.size(batch, tf.int64))

    return lambda check: (int(one_pass()), None)


def _rows(value: Any) -> Any:
    ragged = isinstance(value, tf.RaggedTensor)
    return tf.cast(value.nrows() if ragged else tf.shape(value, tf.int64)[0], tf.int64)


def _sum(value: Any) -> Any:
    flat = value.flat_values if isinstance(value, tf.RaggedTensor) else value
    numbers = tf.strings.length(flat) if flat.dtype == tf.string else flat
    return tf.reduce_sum(tf.cast(numbers, tf.int64))
