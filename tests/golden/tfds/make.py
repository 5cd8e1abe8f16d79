"""Writes features.json, label names, records and what TFDS decodes from them, with nothing but TFDS 4.9.

They are committed, so that the tests need no TFDS. Run `python tests/golden/tfds/make.py` only to add to
them, with tensorflow_datasets installed.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

HERE = Path(__file__).parent
F = tfds.features
PIXELS = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)

FEATURES = F.FeaturesDict(
    {
        "image": F.Image(shape=(4, 5, 3), encoding_format="png", doc="a few pixels"),
        "any size": F.Image(shape=(None, None, 1), encoding_format="png"),
        "depth": F.Image(shape=(4, 5, 1), dtype=np.uint16, encoding_format="png"),
        "unsaid": F.Image(shape=(4, 5, 3)),
        "label": F.ClassLabel(names=["cat", "dog", "a bird"]),
        "digit": F.ClassLabel(num_classes=10),
        "labels": F.Sequence(F.ClassLabel(names=["a", "b"])),
        "two labels": F.Sequence(F.ClassLabel(names=["x", "y"]), length=2),
        "caption": F.Text(),
        "words": F.Sequence(F.Text()),
        "number": np.int64,
        "flag": np.bool_,
        "small": F.Scalar(np.uint8),
        "real": F.Tensor(shape=(2, 2), dtype=np.float32),
        "half": F.Tensor(shape=(3,), dtype=np.float16),
        "double": F.Tensor(shape=(), dtype=np.float64),
        "wide": F.Tensor(shape=(2,), dtype=np.uint64),
        "rows": F.Tensor(shape=(None, 2), dtype=np.int32),
        "columns": F.Tensor(shape=(2, None), dtype=np.int64),
        "raw": F.Tensor(shape=(2,), dtype=np.float64, encoding="bytes"),
        "zlib": F.Tensor(shape=(None, 2), dtype=np.int16, encoding="zlib"),
        "list": F.Sequence(np.float32),
        "three": F.Sequence(np.int32, length=3),
        "cells": F.Sequence(F.Tensor(shape=(2,), dtype=np.int64)),
        "nested": F.Sequence(F.Sequence(np.int64)),
        "deep": F.Sequence(F.Sequence(F.Sequence(F.Tensor(shape=(2,), dtype=np.int32)))),
        "maybe": F.Scalar(np.int64, optional=True),
        "objects": F.Sequence(
            {"bbox": F.BBoxFeature(), "kind": F.ClassLabel(names=["car", "tree"]), "score": np.float32}
        ),
        "pixel boxes": F.Sequence(F.BBoxFeature(bbox_format="XYXY")),
        "box": F.BBoxFeature(),
        "inner": {"a": np.int64, "more": {"b": F.Text()}},
        "video": F.Video(shape=(None, 4, 5, 3)),
        "frames": F.Sequence(F.Image(shape=(4, 5, 3), encoding_format="png"), length=2),
        "sound": F.Audio(shape=(None,), dtype=np.int16, sample_rate=8000),
        "translated": F.Translation(languages=["en", "fr"]),
    }
)


def row(index: int) -> dict:
    """Of index 0 lists are empty, and what is optional is missing."""
    count = index
    return {
        "image": PIXELS + index,
        "any size": PIXELS[: index + 1, :, :1],
        "depth": PIXELS[:, :, :1].astype(np.uint16) * 300,
        "unsaid": PIXELS,
        "label": index,
        "digit": 9 - index,
        "labels": ["b", "a"][:count],
        "two labels": ["y", "x"],
        "caption": "é中🙂" * index,
        "words": ["a", "", "ü"][:count],
        "number": -(2**62) + index,
        "flag": bool(index),
        "small": 255 - index,
        "real": np.array([[index, -1], [0.5, 3e38]], np.float32),
        "half": np.array([0.5, -2, 65504], np.float16),
        "double": 0.1 + index,
        "wide": np.array([2**64 - 1, index], np.uint64),
        "rows": np.arange(2 * count, dtype=np.int32).reshape(count, 2),
        "columns": np.arange(2 * count, dtype=np.int64).reshape(2, count),
        "raw": np.array([0.1, -index], np.float64),
        "zlib": np.arange(2 * count, dtype=np.int16).reshape(count, 2) - 1,
        "list": [0.5, 1.5][:count],
        "three": [index, 2, 3],
        "cells": np.arange(2 * count, dtype=np.int64).reshape(count, 2),
        "nested": [[1, 2], [], [3]][: count + 1] if index else [],
        "deep": [[[[1, 2]], []], [], [[[3, 4], [5, 6]]]][: 2 * count],
        "maybe": None if index == 0 else index,
        "objects": [
            {"bbox": F.BBox(0.0, 0.25, 0.5, 1.0), "kind": "tree", "score": 0.5},
            {"bbox": F.BBox(0.5, 0.5, 1.0, 1.0), "kind": "car", "score": 0.25},
        ][:count],
        "pixel boxes": [F.BBox(1.0, 2.0, 30.0, 40.0)] * count,
        "box": F.BBox(0.0, 0.0, 1.0, 0.5),
        "inner": {"a": index, "more": {"b": "deep"}},
        "video": [PIXELS, PIXELS + 1][: count + 1],
        "frames": [PIXELS, PIXELS + index],
        "sound": np.array([0, -5, 1000], np.int16)[: count + 1],
        "translated": {"en": "yes", "fr": "oui"},
    }


def plain(value: object) -> object:
    """A decoded tensor as JSON: bytes as hexadecimal digits, half of a float's digits are not lost."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    return hexed(np.asarray(value.numpy(), object if value.dtype == tf.string else None).tolist())


def hexed(value: object) -> object:
    if isinstance(value, list):
        return [hexed(one) for one in value]
    return value.hex() if isinstance(value, bytes) else value


if __name__ == "__main__":
    FEATURES.save_config(HERE)
    records = [FEATURES.serialize_example(row(index)) for index in range(3)]
    with tf.io.TFRecordWriter(str(HERE / "examples.tfrecord")) as writer:
        for record in records:
            writer.write(record)
    decoded = [plain(FEATURES.deserialize_example(record)) for record in records]
    (HERE / "decoded.json").write_text(json.dumps(decoded) + "\n")
