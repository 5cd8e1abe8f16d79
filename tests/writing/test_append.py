"""Rows that are added to a dataset: old shards stay, no key comes twice, `writing.publication` joins both."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import recordspec as rs
from recordspec.store.expand import expand
from recordspec.store.transaction import Transaction

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {id: int64}")
OPTIONS = {"key": "id", "split": {"train": 3, "test": 1}, "shuffle": 2, "shards": 2, "invalid": "quarantine"}


def rows(start: int, stop: int) -> list[dict]:
    return [{"id": number} for number in range(start, stop)]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def read_ids(files) -> list[int]:
    return [int(row["id"]) for row in rs.read(expand(files), SCHEMA)]


@pytest.mark.slow
def test_new_rows_are_new_shards_beside_the_old(tmp_path):
    data = tmp_path / "data"
    rs.write([*rows(0, 300), {"id": "x"}], SCHEMA, data, **OPTIONS)
    old = contents(data)
    for jobs, start in ((1, 300), (2, 400)):
        manifest = rs.write(
            [*rows(start, start + 100), {"id": "y"}], SCHEMA, data, append=True, jobs=jobs, **OPTIONS
        )
    assert [shard.file for shard in manifest.shards("test")] == [
        f"test{more}-0000{index}-of-00002.tfrecord" for more in ("", "-add1", "-add2") for index in (0, 1)
    ]
    now = contents(data)
    for name, data_of in old.items():
        if name.endswith(".tfrecord"):
            assert now[name] == data_of
    assert sorted(read_ids(data)) == list(range(500))
    assert sorted(read_ids(data / "train-*") + read_ids(data / "test-*")) == list(range(500))
    assert manifest.rejected == 3
    assert len(now["rejects.jsonl"].splitlines()) == 3
    assert os.listdir(tmp_path) == ["data"]


def test_a_row_stays_in_the_split_that_it_would_have_had(tmp_path):
    rs.write(rows(0, 1000), SCHEMA, tmp_path / "whole", **OPTIONS)
    rs.write(rows(0, 600), SCHEMA, tmp_path / "data", **OPTIONS)
    rs.write(rows(600, 1000), SCHEMA, tmp_path / "data", append=True, **OPTIONS)
    whole, grown = (rs.Manifest.load(tmp_path / name) for name in ("whole", "data"))
    for split in ("train", "test"):
        paths = [
            [tmp_path / name / shard.file for shard in one.shards(split)]
            for name, one in (("whole", whole), ("data", grown))
        ]
        assert sorted(read_ids(paths[0])) == sorted(read_ids(paths[1]))


def test_a_key_that_is_there_already_is_named_with_its_place(tmp_path):
    data = tmp_path / "data"
    options = {"key": "id", "shards": 2}
    rs.write(rows(0, 10), SCHEMA, data, **options)
    rs.write(rows(10, 20), SCHEMA, data, append=True, **options)
    before = contents(data)
    for number, place in (
        (7, "train-00001-of-00002.tfrecord: row 2"),
        (11, "train-add1-00000-of-00002.tfrecord: row 1"),
    ):
        with pytest.raises(rs.RecordError) as caught:
            rs.write([*rows(20, 25), {"id": number}], SCHEMA, data, append=True, **options)
        assert str(caught.value) == (
            f"row 5: id: expected a key that no other row has, got that of {data}/{place}"
        )
    with pytest.raises(
        rs.RecordError, match="row 1: id: expected a key that no other row has, got that of row 0"
    ):
        rs.write([{"id": 30}, {"id": 30}], SCHEMA, data, append=True, **options)
    assert contents(data) == before
    assert os.listdir(tmp_path) == ["data"]


def test_what_is_added_must_be_of_one_kind(tmp_path):
    data = tmp_path / "data"
    with pytest.raises(rs.StoreError, match="is not a dataset: it has no manifest"):
        rs.write(rows(0, 10), SCHEMA, data, append=True)
    rs.write(rows(0, 10), SCHEMA, data, key="id")
    other = rs.Schema.loads("schema: s\nfeatures: {id: int64, x: float32}")
    with pytest.raises(rs.StoreError) as caught:
        rs.write({"id": [1], "x": [1.0]}, other, data, append=True, split={"a": 1}, compression="gzip")
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["schema", "key", "compression", "splits"]
    assert lines[1] == f'{data}: key: expected ["id"], as the dataset has it, got []'


def test_an_append_that_dies_leaves_the_dataset(tmp_path, monkeypatch):
    data = tmp_path / "data"
    rs.write(rows(0, 10), SCHEMA, data)
    before = contents(data)

    def die(self):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Transaction, "_swap", die)
    with pytest.raises(rs.StoreError, match="cannot write: no space left on device"):
        rs.write({"id": np.arange(10)}, SCHEMA, data, append=True)
    assert contents(data) == before
    assert os.listdir(tmp_path) == ["data"]
