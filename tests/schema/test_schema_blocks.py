"""Blocks: many rows in one Example, which plain tf.io reads; their keys are those of `wire.blocks`."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs
from recordspec.schema.row_blocks import records_of_block

SCHEMA = rs.Schema.loads(
    """
schema: s
features:
  age: int64
  point: {dtype: float32, shape: [2]}
  price: {dtype: float32, default: -1.0}
  words: {kind: var_len, dtype: string}
"""
)
COLUMNS = {
    "age": [7, 8, 9],
    "point": np.arange(6, dtype=np.float32).reshape(3, 2),
    "price": [1.5, None, 2.5],
    "words": [["a", "b"], [], ["c"]],
}


def test_plain_tensorflow_reads_a_block():
    block = SCHEMA.encode_block(COLUMNS, 3)

    def ragged(key: str, dtype: tf.DType) -> tf.io.RaggedFeature:
        rows = tf.io.RaggedFeature.RowLengths(f"{key}/lengths")
        return tf.io.RaggedFeature(dtype, value_key=key, partitions=[rows])

    parsed = tf.io.parse_single_example(
        block,
        {
            "age": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
            "point": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
            "price": ragged("price", tf.float32),
            "words": ragged("words", tf.string),
            "/rows": tf.io.FixedLenFeature([], tf.int64),
        },
    )
    assert parsed["/rows"].numpy() == 3
    assert parsed["age"].numpy().tolist() == [7, 8, 9]
    np.testing.assert_array_equal(parsed["point"].numpy(), COLUMNS["point"])
    assert parsed["price"].to_list() == [[1.5], [], [2.5]]
    assert parsed["words"].to_list() == [[b"a", b"b"], [], [b"c"]]


def test_a_block_reads_as_its_rows():
    decoded = SCHEMA.decode_block(SCHEMA.encode_block(COLUMNS, 3))
    assert decoded["price"].numpy().tolist() == [1.5, -1.0, 2.5]
    assert decoded["words"].to_list() == [[b"a", b"b"], [], [b"c"]]


def test_autograph_converts_nothing_of_a_map_over_records_or_blocks(monkeypatch):
    seen = []

    def decoded(*_, **__):
        seen.append(tf.__internal__.autograph.control_status_ctx().status.name)
        return {"age": tf.zeros([2])}

    monkeypatch.setattr("recordspec.schema.decoder._decoded", decoded)
    tf.data.Dataset.from_tensors(SCHEMA.encode_batch(COLUMNS, 3)).map(SCHEMA.decode)
    tf.data.Dataset.from_tensors(SCHEMA.encode_block(COLUMNS, 3)).map(SCHEMA.decode_block)
    assert seen == ["DISABLED", "DISABLED"]


def test_a_block_costs_its_keys_once():
    rows = {"age": [7] * 256, "point": np.zeros((256, 2)), "price": [1.0] * 256, "words": [["a"]] * 256}
    block = SCHEMA.encode_block(rows, 256)
    records = SCHEMA.encode_batch(rows, 256)
    assert len(block) / 256 < 20 < sum(map(len, records)) / 256


def test_a_bad_row_of_a_block_is_named():
    with pytest.raises(rs.RecordError) as caught:
        SCHEMA.encode_block({**COLUMNS, "age": [7, 8.5, 9]}, 3)
    assert caught.value.row == 1
    assert str(caught.value).startswith("row 1: features.age: expected int64, got float 8.5")


def test_keys_that_meet_in_a_block_are_refused():
    schema = rs.Schema.loads("schema: s\nfeatures:\n  x: {kind: var_len, dtype: int64}\n  x/lengths: int64\n")
    with pytest.raises(rs.SpecError) as caught:
        schema.encode_block({"x": [[1], []], "x/lengths": [1, 2]}, 2)
    assert str(caught.value) == "s: expected keys that stay apart in a block, got `x/lengths` twice"


def test_more_rows_than_a_block_has_bytes_are_refused():
    example = tf.train.Example()
    example.features.feature["/rows"].int64_list.value.append(2**40)
    with pytest.raises(rs.RecordError) as caught:
        records_of_block(SCHEMA, example.SerializeToString())
    assert str(caught.value) == "/rows: expected the number of a block's rows, got 1,099,511,627,776"
