"""TFRecords that others wrote, read with specs of ours: tensor for tensor what plain tf.io gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs
from third_party_data import DATA, needs_data

ROOT = Path(__file__).parents[1]

pytestmark = needs_data


def assert_equal(ours: dict, theirs: dict) -> None:
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value.numpy(), theirs[name].numpy(), err_msg=name)


def test_taxi():
    integers = (
        "trip_start_month",
        "trip_start_hour",
        "trip_start_day",
        "trip_start_timestamp",
    )
    areas = ("pickup_community_area", "pickup_census_tract")
    as_floats = ("dropoff_community_area", "dropoff_census_tract")
    floats = (
        "fare",
        "trip_miles",
        "tips",
        "pickup_latitude",
        "pickup_longitude",
        "dropoff_latitude",
        "dropoff_longitude",
    )
    by_hand = {name: tf.io.FixedLenFeature([], tf.int64, -1) for name in areas}
    by_hand |= {name: tf.io.FixedLenFeature([], tf.int64) for name in integers}
    by_hand |= {name: tf.io.FixedLenFeature([], tf.float32, 0.0) for name in floats}
    by_hand |= {name: tf.io.FixedLenFeature([], tf.float32, -1.0) for name in ("trip_seconds", *as_floats)}
    by_hand |= {name: tf.io.FixedLenFeature([], tf.string, "") for name in ("payment_type", "company")}
    files = sorted(map(str, (DATA / "taxi").glob("*.gz")))
    plain = (
        tf.data.TFRecordDataset(files, "GZIP").batch(20_000).map(lambda x: tf.io.parse_example(x, by_hand))
    )
    # what was exact in the CSV file, these files hold as floats
    text = (ROOT / "schemas/taxi.yaml").read_text()
    for name in as_floats:
        assert f"{name}: {{dtype: int64, default: -1}}" in text
        text = text.replace(
            f"{name}: {{dtype: int64, default: -1}}", f"{name}: {{dtype: float32, default: -1.0}}"
        )
    ours = rs.read(files, rs.Schema.loads(text), batch=20_000)
    (expected,), (found,) = plain, ours
    assert len(found["fare"]) == 15_000
    assert int((found["company"] == b"").numpy().sum()) == 5140
    assert_equal({name: found[name] for name in by_hand}, expected)
    assert found.keys() == expected.keys()


def test_sequences():
    schema = rs.Schema.loads(
        """\
schema: sequences
record: sequence_example
context:
  i: {dtype: int64, default: -1}
  f: {dtype: float32, default: .nan}
sequence:
  s: {kind: fixed_len_sequence, dtype: string}
"""
    )
    # tf.io's parser of SequenceExamples takes no default for a Feature without a kind
    context = {"i": tf.io.VarLenFeature(tf.int64), "f": tf.io.VarLenFeature(tf.float32)}
    sequence = {"s": tf.io.FixedLenSequenceFeature([], tf.string)}
    files = str(DATA / "sequence/data-00000-of-00001.tfrecord.gz")
    records = tf.data.TFRecordDataset(files, "GZIP").batch(20_000)
    (expected,) = records.map(lambda x: tf.io.parse_sequence_example(x, context, sequence)[:2])
    (found,) = rs.read(files, schema, batch=20_000)
    gaps = {"i": -1, "f": float("nan")}
    dense = {name: tf.sparse.to_dense(expected[0][name], gap)[:, 0] for name, gap in gaps.items()}
    assert_equal(found, dense | expected[1])
    assert int((found["i"] == -1).numpy().sum()) == 1500
    assert found["s"].shape == (15_000, 2)


def test_mnist():
    schema = rs.Schema.loads(
        """\
schema: mnist
features:
  pixels: {dtype: float32, shape: [28, 28], key: image_floats}
  digit: {dtype: int64, key: image_class}
"""
    )
    by_hand = {
        "image_floats": tf.io.FixedLenFeature([28, 28], tf.float32),
        "image_class": tf.io.FixedLenFeature([], tf.int64),
    }
    file = str(DATA / "mnist/mnist.tfrecord")
    (expected,) = tf.data.TFRecordDataset(file).batch(2000).map(lambda x: tf.io.parse_example(x, by_hand))
    (found,) = rs.read(file, schema, batch=2000)
    assert_equal(found, {"pixels": expected["image_floats"], "digit": expected["image_class"]})
    assert found["pixels"].shape == (1000, 28, 28)


@pytest.mark.parametrize(("kind", "lists"), [("text", False), ("{kind: var_len, dtype: string}", True)])
def test_sequences_through_kinds_that_mean_something(kind, lists):
    """What a row lacks is an empty list; a step is a text, or a list of one."""
    schema = rs.Schema.loads(
        f"""\
schema: sequences
record: sequence_example
context:
  i: {{kind: var_len, dtype: int64, as: dense, max_length: 1, pad: -1, with_length: true}}
  f: {{kind: tensor, dtype: float32, shape: [null]}}
sequence:
  s: {kind}
"""
    )
    (found,) = rs.read(DATA / "sequence/data-00000-of-00001.tfrecord.gz", schema, batch=20_000)
    numbers = np.arange(15_000)
    missing = found["i_length"].numpy() == 0
    assert missing.sum() == 1500
    np.testing.assert_array_equal(found["i"].numpy()[:, 0], np.where(missing, -1, numbers))
    assert found["f"].to_list() == [
        [] if gone else [float(one)] for one, gone in zip(numbers, missing, strict=True)
    ]
    texts = [[b"%d" % one, b"%d" % (one + 1)] for one in numbers]
    steps = found["s"]
    if lists:
        assert set(steps.values.row_lengths().numpy()) == {1}
        steps = steps.with_values(steps.flat_values)  # `to_list` of lists in lists takes half a minute
    assert steps.to_list() == texts


def test_mnist_through_kinds_that_mean_something(tmp_path):
    text = """\
schema: mnist
features:
  pixels: {kind: tensor, dtype: float32, shape: [28, 28, 1], key: image_floats}
  digit: {kind: label, names: ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"], key: image_class}
"""
    schema = rs.Schema.loads(text)
    file = DATA / "mnist/mnist.tfrecord"
    by_hand = {
        "image_floats": tf.io.FixedLenFeature([28, 28, 1], tf.float32),
        "image_class": tf.io.FixedLenFeature([], tf.int64),
    }
    (expected,) = (
        tf.data.TFRecordDataset(str(file)).batch(2000).map(lambda x: tf.io.parse_example(x, by_hand))
    )
    (found,) = rs.read(file, schema, batch=2000)
    assert_equal(found, {"pixels": expected["image_floats"], "digit": expected["image_class"]})
    assert schema.names["digit"].names_of(found["digit"][:3]).numpy().tolist() == [
        b"%d" % digit for digit in expected["image_class"][:3].numpy()
    ]
    # written anew, as raw half floats
    small = text.replace("dtype: float32", "dtype: float16, encoding: raw")
    rows = {name: value.numpy() for name, value in found.items()}
    rs.write(rows, rs.Schema.loads(small), tmp_path / "small")
    (again,) = rs.read(tmp_path / "small", rs.Schema.loads(small), batch=2000)
    np.testing.assert_array_equal(again["pixels"].numpy(), rows["pixels"].astype(np.float16))
    np.testing.assert_array_equal(again["digit"].numpy(), rows["digit"])
