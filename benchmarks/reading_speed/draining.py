"""A pass over a tf.data.Dataset of batches, in a graph: what Python costs for a batch is not in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from reading_speed.data import Given
from reading_speed.ways import Run


def passes(dataset: tf.data.Dataset, given: Given) -> Run:
    """Counts rows, and sums up the column; all others are made too, as tf.data knows no lazy ones."""

    def add(state: tuple[Any, Any], batch: Any) -> tuple[Any, Any]:
        rows, total = _of_column(batch[given.summed])
        return state[0] + rows, state[1] + total

    @tf.function
    def one_pass() -> tuple[Any, Any]:
        return dataset.reduce((np.int64(0), np.int64(0)), add)

    def run() -> tuple[int, int]:
        rows, total = one_pass()
        return int(rows), int(total)

    return run


def counts(batches: tf.data.Dataset) -> Run:
    """Counts the records in batches of them."""

    @tf.function
    def one_pass() -> Any:
        return batches.reduce(np.int64(0), lambda rows, batch: rows + tf.size(batch, tf.int64))

    return lambda: (int(one_pass()), None)


def _of_column(value: Any) -> tuple[Any, Any]:
    """Rows and sum of a batch."""
    ragged = isinstance(value, tf.RaggedTensor)
    rows = value.nrows() if ragged else tf.shape(value, tf.int64)[0]
    flat = value.flat_values if ragged else value
    numbers = tf.strings.length(flat) if flat.dtype == tf.string else flat
    return tf.cast(rows, tf.int64), tf.reduce_sum(tf.cast(numbers, tf.int64))
