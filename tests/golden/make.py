"""Writes the golden files with nothing but tf.train.Example and tf.io.TFRecordWriter.

They are committed for two reasons: a round trip that is wrong at both ends is noticed, and old files decode
forever. Run `python tests/golden/make.py` only to add to them.
"""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image

HERE = Path(__file__).parent
IMAGE = np.arange(12, dtype=np.uint8).reshape(2, 2, 3) * 20


def ints(*values: int) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def floats(*values: float) -> tf.train.Feature:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def texts(*values: bytes) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def png() -> bytes:
    stream = io.BytesIO()
    Image.fromarray(IMAGE).save(stream, "png")
    return stream.getvalue()


def examples() -> list[tf.train.Example]:
    full = {
        "scalar": ints(-7),
        "shaped": floats(1.5, -2.0, 0.0, float("inf")),
        "defaulted": ints(5),
        "words": texts(b"a", "é".encode(), b""),
        "steps": floats(1, 2, 3, 4, 5, 6),
        "lists": ints(1, 2, 3),
        "lists/row_lengths": ints(2, 0, 1),
        "boxes": floats(0, 0, 1, 1),
        "sparse": floats(0.5, 0.25),
        "sparse/indices": ints(1, 7),
        "bytes": ints(0, 255),
        "raw": texts(struct.pack("<2Q", 2**64 - 1, 1)),
        "class": ints(1),
        "caption": texts("中🙂".encode()),
        "picture": texts(png()),
        "unknown": floats(9),
    }
    bare = {
        **full,
        "defaulted": tf.train.Feature(),
        "words": texts(),
        "steps": floats(),
        "lists": ints(),
        "lists/row_lengths": ints(),
        "boxes": floats(),
        "sparse": floats(),
        "sparse/indices": ints(),
        "class": ints(0),
    }
    return [tf.train.Example(features=tf.train.Features(feature=feature)) for feature in (full, bare)]


def sequence_examples() -> list[tf.train.SequenceExample]:
    made = []
    for steps in (3, 0, 1):
        lists = {
            "tokens": tf.train.FeatureList(feature=[ints(step + 1) for step in range(steps)]),
            "vectors": tf.train.FeatureList(feature=[floats(step, -step) for step in range(steps)]),
            "tags": tf.train.FeatureList(feature=[texts(*[b"t"] * step) for step in range(steps)]),
            "class": tf.train.FeatureList(feature=[ints(step % 2) for step in range(steps)]),
        }
        made.append(
            tf.train.SequenceExample(
                context=tf.train.Features(feature={"length": ints(steps)}),
                feature_lists=tf.train.FeatureLists(feature_list=lists),
            )
        )
    return made


if __name__ == "__main__":
    for name, records in (("examples", examples()), ("sequence_examples", sequence_examples())):
        with tf.io.TFRecordWriter(str(HERE / f"{name}.tfrecord")) as writer:
            for record in records:
                writer.write(record.SerializeToString(deterministic=True))
