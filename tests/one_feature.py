"""Schemas of one feature, and the stored and the decoded form of a value."""

from __future__ import annotations

import numpy as np

import recordspec as rs
from recordspec._tf import tf
from recordspec.schema.features.audio import Audio
from recordspec.schema.features.image import Image


def schema(options: str, **setting) -> rs.Schema:
    """A schema of the feature `f`, from its options in YAML."""
    return rs.Schema.loads(f"schema: s\nfeatures:\n  f: {options}\n", **setting)


def image_schema(**options) -> rs.Schema:
    """A schema of the image feature `x`."""
    return rs.Schema(name="s", features=(Image(name="x", **options),))


def audio_schema(**options) -> rs.Schema:
    """A schema of the audio feature `x`."""
    return rs.Schema(name="s", features=(Audio(name="x", **{"sample_rate": 8000, **options}),))


def stored(given: rs.Schema, value) -> bytes:
    """The bytes stored under `x`."""
    (data,) = tf.train.Example.FromString(given.encode({"x": value})).features.feature["x"].bytes_list.value
    return data


def decoded(given: rs.Schema, value) -> np.ndarray:
    """The decoded value of `x`."""
    return given.decode(given.encode({"x": value}))["x"].numpy()
