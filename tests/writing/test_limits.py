"""Many runs, few open files; counts that are wrong; datasets without rows, and with strange files."""

from __future__ import annotations

import resource
import shutil

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs
from recordspec.store import known_keys
from recordspec.writing.sources import base
from recordspec.writing.sources.csv import Csv

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {id: int64}")


@pytest.fixture
def few_files():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize("options", [{}, {"key": "id", "shuffle": 1}], ids=str)
def test_more_runs_than_files_may_be_open(tmp_path, few_files, monkeypatch, options):
    monkeypatch.setattr(base, "PART_BYTES", 100)
    (tmp_path / "rows.csv").write_text("id\n" + "\n".join(map(str, range(10_000))) + "\n")
    source = Csv(path="rows.csv").open(tmp_path)
    assert len(list(source.parts(SCHEMA, ()))) > 400
    assert rs.write(SCHEMA, source, tmp_path / "data", shards=3, **options).rows("train") == 10_000


@pytest.mark.parametrize("shards", [1, 2])
def test_more_rows_than_expected_are_an_error(tmp_path, shards):
    with (
        pytest.raises(rs.WriteError) as caught,
        rs.ShardedWriter(SCHEMA, tmp_path / "data", shards=shards, expected=2) as writer,
    ):
        writer.write_columns({"id": np.arange(3)}, 3)
    assert str(caught.value) == f"{tmp_path}/data: expected 2 rows, got 3"


def test_rows_are_added_to_a_dataset_without_any(tmp_path):
    rs.write(SCHEMA, [], tmp_path / "data", key="id")
    manifest = rs.write(SCHEMA, [{"id": 1}], tmp_path / "data", key="id", append=True)
    assert [shard.rows for shard in manifest.shards("train")] == [0, 1]


def test_keys_that_were_cut_are_no_keys(tmp_path):
    rs.write(SCHEMA, {"id": np.arange(10)}, tmp_path / "data", key="id")
    keys = tmp_path / "data/keys.bin"
    keys.write_bytes(keys.read_bytes()[:40])
    with pytest.raises(rs.StoreError) as caught:
        rs.write(SCHEMA, [{"id": 1}], tmp_path / "data", key="id", append=True)
    expected = "key: expected the keys of 10 rows in `keys.bin`, got 2"
    assert str(caught.value) == f"{tmp_path}/data: {expected}"
    manifest = rs.reshard(tmp_path / "data", tmp_path / "new")
    assert manifest.keys_sha256 is None
    assert not (tmp_path / "new/keys.bin").exists()


def test_known_keys_are_looked_at_some_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(known_keys, "_AT_ONCE", 3)
    rs.write(SCHEMA, {"id": np.arange(10)}, tmp_path / "data", key="id", shards=2)
    with pytest.raises(rs.RecordError) as caught:
        rs.write(SCHEMA, [{"id": 8}], tmp_path / "data", key="id", append=True)
    old = f"{tmp_path}/data/train-00001-of-00002.tfrecord: row 3"
    assert str(caught.value) == f"row 0: id: expected a key that no other row has, got that of {old}"


def test_a_file_that_is_none_of_the_dataset_is_not_resharded_with_it(tmp_path):
    rs.write(SCHEMA, {"id": np.arange(10)}, tmp_path / "data")
    path = tmp_path / "data/foreign.tfrecord"
    shutil.copy(tmp_path / "data/train-00000-of-00001.tfrecord", path)
    with pytest.raises(rs.StoreError) as caught:
        rs.reshard(f"{tmp_path}/data/*.tfrecord", tmp_path / "new")
    assert str(caught.value) == f"{path}: expected shards that the manifest names, got another one"


PAIR = "{dtype: int64, shape: [2]}"


@pytest.mark.parametrize(
    ("feature", "values", "message"),
    [
        (PAIR, [[1, 2, 3], [4]], "expected 2 int64, got 3 int64"),
        (PAIR, [[1, 2], []], "expected 2 int64, got none"),
        (PAIR, [[1.5, 2.5]], "expected 2 int64, got 2 float32"),
        ("{dtype: float32, shape: [2]}", [[1, 2]], "expected 2 float32, got 2 int64"),
        ("{dtype: string}", [[1]], "expected 1 string, got 1 int64"),
        ("{dtype: int64, shape: [2], default: [7, 8]}", [[], [1]], "expected 2 int64, got 1 int64"),
        ("{kind: var_len, dtype: int64}", [[], [1.0]], "expected any number of int64, got 1 float32"),
    ],
)
def test_records_that_are_none_of_the_schema_make_no_block(tmp_path, feature, values, message):
    """Laid end to end, their values would pass for those of other rows."""
    with tf.io.TFRecordWriter(str(tmp_path / "old.tfrecord")) as writer:
        for row in values:
            kind = tf.train.Feature()
            if row:
                name = "float_list" if isinstance(row[0], float) else "int64_list"
                getattr(kind, name).value.extend(row)
            features = tf.train.Features(feature={"x": kind})
            writer.write(tf.train.Example(features=features).SerializeToString())
    schema = rs.Schema.loads(f"schema: s\nfeatures: {{x: {feature}}}")
    with pytest.raises(rs.RecordError) as caught:
        rs.reshard(tmp_path / "old.tfrecord", tmp_path / "new", schema=schema, layout={"blocks": 4})
    assert str(caught.value) == f"features.x: {message}"
