"""Errors of reading: located at the record and the feature that they come from."""

from __future__ import annotations

import pytest
import tensorflow as tf
from broken_files import (
    SCHEMA,
    changed,
    flip,
    numbers,
    records,
    replace,
    shard,
)

import recordspec as rs


def test_an_error_of_reading_is_located(data):
    path = shard(data, 3)
    place = replace(path, 17, changed(records(path)[17].data, n=[0.5]))
    replace(path, 20, changed(records(path)[20].data, n=None))
    with pytest.raises(rs.RecordError) as caught, rs.locating(SCHEMA, data):
        numbers(rs.read(data, SCHEMA, batch=8, shuffle=50, seed=1))
    assert (
        str(caught.value)
        == f"{place}: features.n: expected 1 int64, got 1 float32 (2 records of this file are corrupt)"
    )
    assert caught.value.row == 17
    assert isinstance(caught.value.__cause__, tf.errors.InvalidArgumentError)


def test_corruption_and_bytes_that_are_no_example_are_located(data):
    place = replace(shard(data, 2), 3, b"\xff\xff")
    with pytest.raises(rs.RecordError) as caught, rs.locating(SCHEMA, data):
        numbers(rs.read(data, SCHEMA, batch=8))
    assert str(caught.value) == f"{place}: expected an Example, got 2 bytes that do not parse"
    path = shard(data, 0)
    flip(path, records(path)[9].offset + 40)
    with pytest.raises(rs.RecordError) as caught, rs.locating(SCHEMA, data):
        numbers(rs.read(data, SCHEMA, batch=8))
    assert str(caught.value).endswith(": expected data that matches its CRC, got other bytes")
    assert isinstance(caught.value.__cause__, tf.errors.DataLossError)


def test_errors_that_no_record_explains_go_on_unchanged(data):
    with pytest.raises(tf.errors.InvalidArgumentError, match="mine"), rs.locating(SCHEMA, data):
        raise tf.errors.InvalidArgumentError(None, None, "mine")
    replace(shard(data, 0), 0, b"\xff\xff")
    with pytest.raises(KeyError), rs.locating(SCHEMA, data):
        raise KeyError


def test_errors_of_fit_are_located(data, tmp_path):
    (tmp_path / "s.yaml").write_text(SCHEMA.dump())
    (tmp_path / "c.yaml").write_text(
        f"schema: s.yaml\ndata: {data}\nread: {{batch: 10}}\nfit: {{inputs: pair, targets: n}}\n"
    )
    place = replace(shard(data, 1), 17, changed(records(shard(data, 1))[17].data, n=[0.5]))
    pipeline = rs.Pipeline.load(tmp_path / "c.yaml")
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    for context in (pipeline.locating(), pipeline.locating("train")):
        with pytest.raises(rs.RecordError) as caught, context:
            model.fit(pipeline.dataset("train"), verbose=0)
        assert str(caught.value) == f"{place}: features.n: expected 1 int64, got 1 float32"
