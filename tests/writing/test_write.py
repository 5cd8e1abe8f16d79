"""`recordspec.write`: the same rows in any form give the same dataset, and a failure gives none."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
from written_rows import SCHEMA, files, rows

import recordspec as rs
from recordspec._tf import tf
from recordspec.wire.tfrecord import scan


def by_hand(row: dict) -> tf.train.Example:
    made = tf.train.Feature
    feature = {
        "id": made(int64_list=tf.train.Int64List(value=[row["id"]])),
        "a name": made(bytes_list=tf.train.BytesList(value=[row["a name"].encode()])),
        "tags": made(int64_list=tf.train.Int64List(value=row["tags"])),
        "kind": made(int64_list=tf.train.Int64List(value=["ab".index(row["kind"])])),
    }
    if row["on"] is not None:
        feature["on"] = made(float_list=tf.train.FloatList(value=[row["on"]]))
    return tf.train.Example(features=tf.train.Features(feature=feature))


@pytest.mark.parametrize("count", [0, 1, 64, 65, 2048, 5000])
def test_every_record_is_that_of_a_hand(tmp_path, count):
    manifest = rs.write(rows(count), SCHEMA, tmp_path / "data", shards=3, allow_empty=True)
    records = [
        record.data for shard in manifest.shards("train") for record in scan(tmp_path / "data" / shard.file)
    ]
    assert list(map(tf.train.Example.FromString, records)) == list(map(by_hand, rows(count)))
    assert manifest.rows("train") == count


def test_rows_columns_and_frames_give_the_same_dataset(tmp_path):
    given_rows = rows(3000)
    frame = pd.DataFrame(given_rows)
    columns = {
        "id": frame["id"].to_numpy(),
        "on": [row["on"] for row in given_rows],
        "a name": frame["a name"].to_numpy(object),
        "tags": [np.array(row["tags"], np.int64) for row in given_rows],
        "kind": np.arange(3000) % 2,
    }
    frame["on"] = frame["on"].astype("Float64")
    forms = {"rows": given_rows, "iterator": iter(given_rows), "columns": columns, "frame": frame}
    for name, one in forms.items():
        rs.write(one, SCHEMA, tmp_path / name, shards=2)
    with rs.ShardedWriter(SCHEMA, tmp_path / "writer", shards=2) as writer:
        for row in given_rows:
            writer.write(row)
    expected = files(tmp_path / "rows")
    for name in ("iterator", "columns", "frame", "writer"):
        assert files(tmp_path / name) == expected, name


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_compression_changes_the_files_and_not_the_records(tmp_path, compression):
    manifest = rs.write(rows(100), SCHEMA, tmp_path / "data", compression=compression)
    path = tmp_path / "data" / manifest.shards("train")[0].file
    kind = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}[compression]
    assert [tf.train.Example.FromString(one.numpy()) for one in tf.data.TFRecordDataset(str(path), kind)] == [
        by_hand(row) for row in rows(100)
    ]


def test_columns_that_do_not_belong_together_are_refused():
    for columns, expected in [
        ({"id": [1, 2]}, "rows: id: expected 3 values, got 2"),
        ({"idd": [1, 2, 3]}, "expected names of `rows`, got `idd` (did you mean `id`?)"),
    ]:
        with pytest.raises(rs.SpecError) as caught:
            SCHEMA.encode_batch(columns, 3)
        assert str(caught.value) == expected


def test_a_key_that_comes_twice_is_refused(tmp_path):
    with pytest.raises(rs.RecordError) as caught:
        rs.write([*rows(300), rows(8)[7]], SCHEMA, tmp_path / "data", key="id")
    assert str(caught.value) == "row 300: id: expected a key that no other row has, got that of row 7"
    assert os.listdir(tmp_path) == []


def test_the_row_that_does_not_fit_is_named_across_batches(tmp_path):
    bad = [*rows(4321), {**rows(1)[0], "id": "x", "tags": 7}]
    for form in (bad, iter(bad)):
        with pytest.raises(rs.RecordError) as caught:
            rs.write(form, SCHEMA, tmp_path / "data")
        assert str(caught.value).splitlines() == [
            "row 4321: features.id: expected int64, got str 'x'",
            "row 4321: features.tags: expected a list of int64, got int 7",
        ]
        assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"shards": 0}, "shards: expected 1 to 99999, got 0"),
        ({"shards": "many"}, "shards: expected auto, a whole number or a mapping of size, got str 'many'"),
        ({"shards": {"size": "9 apples"}}, "shards.size: expected a size such as 128MiB (B, KiB, MiB, GiB), got `9 apples`"),
        ({"compression": "gz"}, "compression: expected one of none, gzip, zlib, got str 'gz'"),
        ({"shard": 2}, "shard: expected one of key, splits, group_by, shards, compression, layout, shuffle, invalid, got `shard` (did you mean `shards`?)"),
        ({"split": {"train": 0}}, "splits.train: expected a weight above 0, got 0.0"),
        ({"split": "a/b"}, "splits.a/b: expected a split's name of letters, digits, _, . and -, got `a/b`"),
    ],
)  # fmt: skip
def test_an_option_that_is_wrong_is_named(tmp_path, options, expected):
    with pytest.raises(rs.SpecError) as caught:
        rs.write(rows(1), SCHEMA, tmp_path / "data", **options)
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"id": [1], "on": [1.0, 2.0]}, "on: expected 1 rows, got 2 (`id` has so many)"),
        ({"idd": [1]}, "expected names of `rows`, got `idd` (did you mean `id`?)"),
        ({"id": 1}, "id: expected an array or a list, got int 1"),
        ("rows.csv", "rows: expected an iterable of dicts, a dict of arrays, a frame, or an Arrow table, got str 'rows.csv' (a config's `write: {source: ...}` names files)"),
    ],
)  # fmt: skip
def test_rows_of_another_form_are_named(tmp_path, given, expected):
    with pytest.raises(rs.SpecError) as caught:
        rs.write(given, SCHEMA, tmp_path / "data")
    assert str(caught.value) == expected


def test_two_features_on_one_key_can_be_read_and_not_written(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {a: int64, b: {dtype: int64, key: a}}")
    with pytest.raises(rs.SpecError) as caught:
        rs.write([], schema, tmp_path / "data")
    assert str(caught.value) == "s: features.b.key: expected a distinct key, got `a`, which `a` writes"
