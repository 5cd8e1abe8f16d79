"""tf.data graphs written by hand: as tutorials have them, and as fast as they could be made.

`hand` was the fastest where files are local; the others are what is said to be faster.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from reading_speed.data import BATCH, Given, shapes
from reading_speed.draining import passes
from reading_speed.ways import Run
from reading_speed.ways.parsing import decoded, parse_dict

AUTOTUNE = tf.data.AUTOTUNE
HANDED_OVER = 64
READ_BUFFER = 1 << 20


def single(given: Given) -> Run:
    """A record parsed by each call of a parallel map."""
    spec = parse_dict(given)
    rows = _shuffled(tf.data.TFRecordDataset(given.files("rows")), given)
    rows = rows.map(lambda record: tf.io.parse_single_example(record, spec), AUTOTUNE)
    ragged = (None,) in shapes(given.dataset).values()
    return passes((rows.ragged_batch(BATCH) if ragged else rows.batch(BATCH)).prefetch(AUTOTUNE), given)


def hand(given: Given) -> Run:
    """Files one after another, a batch parsed by one call."""
    records = tf.data.TFRecordDataset(given.files("rows"), buffer_size=READ_BUFFER)
    return passes(_parsed(_shuffled(records, given), given), given)


def hand_interleaved(given: Given) -> Run:
    """Files at the same time, records handed over 64 at a time."""
    names = tf.data.Dataset.from_tensor_slices(given.files("rows"))
    parts = names.interleave(
        lambda name: tf.data.TFRecordDataset(name, buffer_size=READ_BUFFER).batch(HANDED_OVER),
        num_parallel_calls=AUTOTUNE,
    )
    if given.shuffle:
        return passes(_parsed(_shuffled(parts.unbatch(), given), given), given)
    return passes(_mapped(parts.rebatch(BATCH), given), given)


def hand_unordered(given: Given) -> Run:
    """Files at the same time, in any order, as the guide to performance has it."""
    records = tf.data.TFRecordDataset(given.files("rows"), num_parallel_reads=AUTOTUNE)
    options = tf.data.Options()
    options.deterministic = False
    return passes(_parsed(_shuffled(records.with_options(options), given), given), given)


def _shuffled(records: Any, given: Given) -> Any:
    return records.shuffle(given.shuffle) if given.shuffle else records


def _parsed(records: Any, given: Given) -> Any:
    return _mapped(records.batch(BATCH), given)


def _mapped(batches: Any, given: Given) -> Any:
    spec = parse_dict(given)

    def parse(batch: Any) -> dict[str, Any]:
        return decoded(tf.io.parse_example(batch, spec), given)

    return batches.map(parse, AUTOTUNE).prefetch(AUTOTUNE)
