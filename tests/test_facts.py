"""What the package builds on in TensorFlow: an upgrade must not surprise us."""

from __future__ import annotations

import pytest
import tensorflow as tf


def record(**values: list[int]) -> bytes:
    feature = {
        key: tf.train.Feature(int64_list=tf.train.Int64List(value=value)) for key, value in values.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


SCALAR = {"a": tf.io.FixedLenFeature([], tf.int64, 7)}


def test_a_missing_key_takes_the_default_and_an_empty_list_fails():
    assert int(tf.io.parse_example([record()], SCALAR)["a"][0]) == 7
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.parse_example([record(a=[])], SCALAR)


def test_a_feature_without_a_kind_is_missing():
    unset = tf.train.Example(features=tf.train.Features(feature={"a": tf.train.Feature()}))
    assert int(tf.io.parse_example([unset.SerializeToString()], SCALAR)["a"][0]) == 7


def test_a_context_feature_without_a_kind_is_missing_to_the_parser_of_examples_alone():
    unset = tf.train.SequenceExample(context=tf.train.Features(feature={"a": tf.train.Feature()}))
    data = [unset.SerializeToString()]
    assert int(tf.io.parse_example(data, SCALAR)["a"][0]) == 7
    steps = {"s": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unexpected number of elements"):
        tf.io.parse_sequence_example(data, SCALAR, steps)


def test_parse_example_takes_one_record():
    assert tf.io.parse_example(record(a=[3]), SCALAR)["a"].shape == ()


def test_uniform_inner_rows_are_dense():
    ragged = tf.io.RaggedFeature
    call = ragged(tf.int64, "a", [ragged.UniformRowLength(2)], tf.int64)
    parsed = tf.io.parse_example([record(a=[1, 2, 3, 4]), record()], {"a": call})["a"]
    assert parsed.to_list() == [[[1, 2], [3, 4]], []]
    assert parsed.ragged_rank == 1


def test_row_lengths_that_do_not_add_up_are_seen_with_validate():
    ragged = tf.io.RaggedFeature
    call = ragged(tf.int64, "a", [ragged.RowLengths("n")], tf.int64, validate=True)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.parse_example([record(a=[1, 2, 3], n=[1, 1])], {"a": call})


def test_var_len_drops_empty_steps_at_the_end_and_ragged_does_not():
    feature = tf.train.Feature
    steps = [feature(int64_list=tf.train.Int64List(value=value)) for value in ([1], [])]
    lists = tf.train.FeatureLists(feature_list={"a": tf.train.FeatureList(feature=steps)})
    data = [tf.train.SequenceExample(feature_lists=lists).SerializeToString()]
    sparse = tf.io.parse_sequence_example(data, {}, {"a": tf.io.VarLenFeature(tf.int64)})[1]["a"]
    ragged = tf.io.parse_sequence_example(data, {}, {"a": tf.io.RaggedFeature(tf.int64)})[1]["a"]
    assert sparse.indices.numpy().tolist() == [[0, 0, 0]]
    assert ragged.to_list() == [[[1], []]]


def test_cardinality_that_is_asserted_lasts_through_batches(tmp_path):
    path = str(tmp_path / "x")
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(5):
            writer.write(b"a")
    records = tf.data.TFRecordDataset(path)
    assert int(records.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    known = records.apply(tf.data.experimental.assert_cardinality(5)).shuffle(3).batch(2).prefetch(1)
    assert int(known.cardinality()) == 3


def test_an_example_parses_as_a_sequence_example():
    parsed = tf.train.SequenceExample.FromString(record(a=[3]))
    assert parsed.context.feature["a"].int64_list.value == [3]
    assert not parsed.feature_lists.feature_list


def test_map_fn_with_ragged_outputs_fails_on_no_elements():
    """While this holds, `tensors.one_by_one` handles the empty batch itself."""
    signature = tf.RaggedTensorSpec([None, 2], tf.float32, 0, tf.int64)
    with pytest.raises(ValueError, match="not compatible"):
        tf.map_fn(lambda x: tf.zeros([3, 2]), tf.zeros([0]), fn_output_signature=signature)
