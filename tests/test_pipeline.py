"""A config: the dataset that it builds, and what a model gets."""

from __future__ import annotations

import os

import numpy as np
import pytest

import recordspec as rs
from points import CONFIG, ROWS, SCHEMA, load
from recordspec._tf import tf


@pytest.fixture
def pipeline(tmp_path) -> rs.Pipeline:
    pipeline = load(tmp_path)
    pipeline.build(ROWS)
    return pipeline


def test_what_a_model_gets(pipeline):
    dataset = pipeline.dataset("train")
    rows = pipeline.manifest.rows("train")
    assert int(dataset.cardinality()) == pipeline.steps("train") == -(-rows // 16)
    inputs, targets, weights = next(iter(dataset))
    assert inputs.keys() == {"x", "words", "gaps"}
    assert inputs["words"].shape[0] == 16
    assert inputs["words"].dtype == tf.string
    np.testing.assert_array_equal(inputs["gaps"].numpy().sum(axis=1), np.ones(16))
    np.testing.assert_array_equal(inputs["x"].numpy() * 2 + 1, weights.numpy())
    np.testing.assert_array_equal(targets.numpy(), (weights.numpy() - 1) % 2)


def test_every_row_is_in_one_split(pipeline):
    seen = [
        int(weight) - 1
        for split in ("train", "test")
        for _, _, weights in pipeline.dataset(split)
        for weight in weights
    ]
    assert sorted(seen) == list(range(200))


def test_one_input_is_a_tensor_and_no_fit_is_a_dict(tmp_path):
    head = CONFIG.partition("fit:")[0]
    load(tmp_path).build(ROWS)
    images, labels = next(
        iter(load(tmp_path, f"{head}fit:\n  inputs: x\n  targets: label\n").dataset("test"))
    )
    assert images.shape == labels.shape == (16,)
    whole = next(iter(load(tmp_path, head).dataset("test")))
    assert list(whole) == ["id", "x", "words", "gaps", "weight", "label"]


def test_options_replace_those_of_the_file(pipeline):
    rows = pipeline.manifest.rows("train")
    dataset = pipeline.dataset("train", batch={"size": 50, "drop_remainder": True}, shuffle=None)
    assert int(dataset.cardinality()) == rows // 50
    assert pipeline.steps("train", batch=7, repeat=2) == 2 * -(-rows // 7)
    with pytest.raises(rs.SpecError, match=r"batch.size: expected at least 1, got 0"):
        pipeline.dataset("train", batch=0)


def test_a_map_sees_features_before_the_model_does(pipeline):
    def doubled(row: dict) -> dict:
        return {**row, "x": row["x"] * 2}

    inputs, _, weights = next(iter(pipeline.dataset("test", map=doubled)))
    np.testing.assert_array_equal(inputs["x"].numpy(), weights.numpy() - 1)


def test_an_input_function_gives_each_worker_its_share(pipeline):
    seen = []
    for worker in range(3):
        context = tf.distribute.InputContext(3, worker, num_replicas_in_sync=2)
        for _, _, weights in pipeline.input_fn("train")(context):
            assert len(weights) <= 8
            seen += [int(weight) for weight in weights]
    alone = [int(weight) for _, _, weights in pipeline.input_fn("train")() for weight in weights]
    assert sorted(seen) == sorted(alone)
    assert len(seen) == pipeline.manifest.rows("train")


def test_a_batch_that_replicas_do_not_divide_is_refused(pipeline):
    context = tf.distribute.InputContext(1, 0, num_replicas_in_sync=3)
    with pytest.raises(rs.SpecError) as caught:
        pipeline.input_fn("train")(context)
    assert str(caught.value) == "read.batch.size: expected a batch that 3 replicas divide, got 16"


def test_a_strategy_takes_the_input_function(pipeline):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    distributed = strategy.distribute_datasets_from_function(pipeline.input_fn("train"))
    total = sum(int(tf.size(weights)) for _, _, weights in distributed)
    assert total == pipeline.manifest.rows("train")


def test_a_dataset_that_is_not_there_is_named(tmp_path):
    pipeline = load(tmp_path)
    with pytest.raises(rs.StoreError) as caught:
        pipeline.dataset("train")
    assert str(caught.value) == (
        f"`{tmp_path}/data/points/manifest.json` does not exist: `recordspec build CONFIG` builds a dataset, "
        "`recordspec adopt` takes files of other writers"
    )
    pipeline.build(ROWS)
    with pytest.raises(rs.StoreError) as caught:
        pipeline.dataset("tset")
    assert str(caught.value) == "split: expected one of train, test, got `tset` (did you mean `test`?)"


def test_rows_are_needed_where_no_source_is(tmp_path):
    with pytest.raises(rs.SpecError) as caught:
        load(tmp_path).build()
    assert str(caught.value) == (
        "write: expected a source of rows, got none (give rows, or add write.source to the config)"
    )


def test_a_dataset_of_another_spec_is_refused_unless_a_default_stands_in(pipeline, tmp_path):
    schema = tmp_path / "points.yaml"
    schema.write_text(SCHEMA.replace("x: float32", "x: float32\n  new: {dtype: int64, default: 7}"))
    more = rs.Pipeline.load(tmp_path / "config.yaml")
    assert int(more.dataset("train").cardinality()) == more.steps("train")
    schema.write_text(SCHEMA.replace("x: float32", "x: int64").replace("[a, b]", "[b, a]"))
    with pytest.raises(rs.StoreError) as caught:
        rs.Pipeline.load(tmp_path / "config.yaml").dataset("train")
    hint = "(build it again, or read it with its own schema.yaml)"
    assert str(caught.value).splitlines() == [
        f"{tmp_path}/data/points: features.x.dtype: expected `float32`, as the data was written, got `int64` {hint}",
        f'{tmp_path}/data/points: features.label.names: expected `["a", "b"]`, as the data was written, got `["b", "a"]` {hint}',
    ]


def test_a_build_is_refused_and_forced(pipeline):
    before = {
        name.replace("train", "train-v2").replace("test", "test-v2") for name in os.listdir(pipeline.data)
    }
    with pytest.raises(rs.StoreError, match="exists: force=True"):
        pipeline.build(ROWS)
    assert pipeline.build(ROWS[:50], force=True).rows("train") < 50
    assert {*os.listdir(pipeline.data)} == before
    assert pipeline.manifest.rows("train") + pipeline.manifest.rows("test") == 50


def test_splits_that_differ_in_case_alone_are_noted(tmp_path):
    (tmp_path / "s.yaml").write_text("schema: s\nfeatures: {x: int64}\n")
    (tmp_path / "c.yaml").write_text("schema: s.yaml\ndata: data\nwrite: {splits: {column: part}}\n")
    pipeline = rs.Pipeline.load(tmp_path / "c.yaml")
    for parts in (("train", "Train", "test"), ("train", "test")):
        manifest = pipeline.build([{"x": 1, "part": part} for part in parts], force=True)
        assert sorted(manifest.splits) == sorted(parts)
        expected = ["splits: 2 whose names differ in case alone, `Train` and `train`"]
        assert pipeline.notes == (expected if len(parts) == 3 else [])
