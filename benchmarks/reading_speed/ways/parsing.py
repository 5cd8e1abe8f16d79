"""The parse dictionary of a dataset, as one would write it by hand."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from reading_speed.data import Given, shapes

DTYPES = {"int": tf.int64, "float": tf.float32, "bytes": tf.string}
TOKENS = 512


def parse_dict(given: Given) -> dict[str, Any]:
    """`FixedLenFeature`, and `RaggedFeature` for lists of any length."""
    found = shapes(given.dataset)
    return {name: _feature(DTYPES[kind], found[name], given) for name, kind in given.dataset.kinds.items()}


def _feature(dtype: tf.DType, shape: tuple[int | None, ...], given: Given) -> Any:
    if shape == (None,):
        return tf.io.RaggedFeature(dtype)
    return tf.io.FixedLenFeature([] if given.raw else shape, dtype)


def decoded(features: dict[str, Any], given: Given) -> dict[str, Any]:
    """Of raw tokens the integers, of a batch; the others are parsed already."""
    if not given.raw:
        return features
    tokens = tf.io.decode_raw(features[given.summed], tf.int64)
    return {given.summed: tf.ensure_shape(tokens, [None, TOKENS])}
