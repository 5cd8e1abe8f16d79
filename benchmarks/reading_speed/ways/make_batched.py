"""`tf.data.experimental.make_batched_features_dataset`, over one pass.

With its defaults: one reader, two parsers. Tuned, as its documentation says: readers and parsers by AUTOTUNE,
in any order. As a parallel interleave hands over one record at a time, which costs more than it gains on a
local disk, it is there with one reader too.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from reading_speed.data import BATCH, Given
from reading_speed.draining import passes
from reading_speed.ways import Run
from reading_speed.ways.parsing import parse_dict

AUTOTUNE = tf.data.AUTOTUNE


def defaults(given: Given) -> Run:
    return _reading(given)


def tuned(given: Given) -> Run:
    return _reading(given, reader_num_threads=AUTOTUNE, parser_num_threads=AUTOTUNE, sloppy_ordering=True)


def tuned_with_one_reader(given: Given) -> Run:
    return _reading(given, reader_num_threads=1, parser_num_threads=AUTOTUNE)


def _reading(given: Given, **options: Any) -> Run:
    dataset = tf.data.experimental.make_batched_features_dataset(
        given.files("rows"),
        BATCH,
        parse_dict(given),
        num_epochs=1,
        shuffle=given.shuffle > 0,
        shuffle_buffer_size=given.shuffle or 1,
        **options,
    )
    return passes(dataset, given)
