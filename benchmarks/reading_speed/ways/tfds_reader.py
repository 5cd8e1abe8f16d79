"""TensorFlow Datasets: `builder_from_directory` on files that its `SequentialWriter` wrote.

As its guide to performance has it: files shuffled, then rows in a buffer, then batches, made ahead.
"""

from __future__ import annotations

import tensorflow as tf
import tensorflow_datasets as tfds

from reading_speed.data import BATCH, Given
from reading_speed.draining import passes
from reading_speed.ways import Run


def prepare(given: Given) -> Run:
    builder = tfds.builder_from_directory(given.folder / "tfds")
    rows = builder.as_dataset(split="train", shuffle_files=given.shuffle > 0)
    if given.shuffle:
        rows = rows.shuffle(given.shuffle)
    ragged = any(None in spec.shape for spec in rows.element_spec.values())
    batches = rows.ragged_batch(BATCH) if ragged else rows.batch(BATCH)
    return passes(batches.prefetch(tf.data.AUTOTUNE), given)
