"""TFDS, in and out: its files are read as it reads them, and it opens what we describe."""

from __future__ import annotations

import json
from pathlib import Path

import tensorflow as tf

from instances import CASES
from recordspec.foreign import tfds

GOLDEN = Path(__file__).parents[1] / "golden/tfds"
EXAMPLES = [case for case in CASES if case.section == "features"]


def plain(value):
    """A tensor as JSON, its bytes as hexadecimal digits."""
    if isinstance(value, tf.SparseTensor):
        value = tf.sparse.to_dense(value)
    if isinstance(value, tf.RaggedTensor):
        return hexed(value.to_list())
    array = value.numpy()
    return hexed(array if isinstance(array, bytes) else array.tolist())


def hexed(value):
    if isinstance(value, list):
        return [hexed(one) for one in value]
    return value.hex() if isinstance(value, bytes) else value


def nested(flat: dict) -> dict:
    """`{"a/b": 1}` as `{"a": {"b": 1}}`, which TFDS gives."""
    found: dict = {}
    for name, value in flat.items():
        *folders, last = name.split("/")
        at = found
        for folder in folders:
            at = at.setdefault(folder, {})
        at[last] = value
    return found


def records(path: Path) -> list[bytes]:
    return [record.numpy() for record in tf.data.TFRecordDataset(str(path))]


def test_what_tfds_wrote_is_read_as_tfds_reads_it():
    schema, _ = tfds.load(GOLDEN)
    found = [
        nested({name: plain(value) for name, value in schema.decode(record).items()})
        for record in records(GOLDEN / "examples.tfrecord")
    ]
    expected = json.loads((GOLDEN / "decoded.json").read_text())
    for row, other in zip(found, expected, strict=True):
        # what the notes say is read otherwise
        assert row.pop("columns") == [one for many in other.pop("columns") for one in many]
        assert [number % 2**64 for number in row.pop("wide")] == other.pop("wide")
        assert row == other
