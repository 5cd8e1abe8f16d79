"""Configs: each problem with its line."""

from __future__ import annotations

import pytest

import recordspec as rs
from points import CONFIG, load


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("data: data/points", "dat: x", ["2:1: dat: expected one of schema, data, write, read, fit, description, got `dat` (did you mean `data`?)"]),
        ("batch: {size: 16}", "batch: {size: 16, dorp_remainder: true}", ["9:21: read.batch.dorp_remainder: expected one of size, drop_remainder, got `dorp_remainder` (did you mean `drop_remainder`?)"]),
        ("batch: {size: 16}", "batch: 0", ["9:10: read.batch.size: expected at least 1, got 0"]),
        ("shards: 2", "shards: lots", ["6:11: write.shards: expected auto, a whole number or a mapping of size, got `lots`"]),
        ("targets: label", "targets: labl", ["13:12: fit.targets: expected one of id, x, words, gaps, weight, label, got `labl` (did you mean `label`?)"]),
        ("key: id", "key: id\n  source: {csv: a.csv, tfrecord: b}", ["5:11: write.source: expected one of csv, jsonl, json, parquet, image_folder, audio_folder, tensor_folder, coco, voc, yolo, labelme, cvat, webdataset, tfrecord, got several"]),
        ("key: id", "source: {csv: {path: a.csv}}", ["4:18: write.source.csv.path: expected `files`, got `path` (renamed)"]),
        ("key: id", "source: {image_folder: {path: a}}", ["4:27: write.source.image_folder.path: expected `folder`, got `path` (renamed)"]),
        ("key: id", "source: {cvs: a.csv}", ["4:12: write.source.cvs: expected one of csv, jsonl, json, parquet, image_folder, audio_folder, tensor_folder, coco, voc, yolo, labelme, cvat, webdataset, tfrecord, got `cvs` (did you mean `csv`?)"]),
        ("splits: {train: 3, test: 1}", "splits: {train: -3}", ["5:19: write.splits.train: expected a weight above 0, got -3.0"]),
        ("shuffle: {seed: 1}\nread", "shuffle: {}\nread", ["7:12: write.shuffle: expected the key `seed`, got none"]),
        ("batch: {size: 16}", "prefetch: 2", ["9:3: read: expected a batch to fit on, got none (Keras takes batches)"]),
    ],
)  # fmt: skip
def test_a_problem_in_a_config_has_its_place(tmp_path, old, new, expected):
    assert old in CONFIG
    with pytest.raises(rs.SpecError) as caught:
        load(tmp_path, CONFIG.replace(old, new))
    assert str(caught.value).splitlines() == [f"{tmp_path}/config.yaml:{line}" for line in expected]


def test_a_schema_is_no_config(tmp_path):
    load(tmp_path)
    with pytest.raises(rs.SpecError) as error:
        rs.Pipeline.load(tmp_path / "points.yaml")
    assert str(error.value) == (
        f"{tmp_path}/points.yaml: expected a config, got a feature spec "
        "(a config names it as its `schema`; `recordspec init` writes both)"
    )


def test_a_config_is_no_schema(tmp_path):
    load(tmp_path)
    with pytest.raises(rs.SpecError) as error:
        rs.Schema.load(tmp_path / "config.yaml")
    assert str(error.value) == (
        f"{tmp_path}/config.yaml: expected a feature spec, got a config "
        "(its `schema` names the schema; `rs.Pipeline.load` loads a config)"
    )


def test_problems_of_the_schema_are_those_of_its_file(tmp_path):
    (tmp_path / "points.yaml").write_text("schema: s\nfeatures: {a: int46}")
    (tmp_path / "config.yaml").write_text("schema: points.yaml\ndata: data\n")
    with pytest.raises(rs.SpecError) as caught:
        rs.Pipeline.load(tmp_path / "config.yaml")
    assert str(caught.value).startswith(f"{tmp_path}/points.yaml:2:15: features.a: expected a dtype")
    (tmp_path / "points.yaml").unlink()
    with pytest.raises(rs.SpecError) as caught:
        rs.Pipeline.load(tmp_path / "config.yaml")
    assert str(caught.value) == (
        f"{tmp_path}/config.yaml:1:9: schema: `{tmp_path}/points.yaml` does not exist ({tmp_path} has config.yaml)"
    )
