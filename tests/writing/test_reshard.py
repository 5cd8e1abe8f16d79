"""`recordspec.reshard`: the same records in other shards, to the byte what a build would have made."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_writing_build import SCHEMA, files, plain, rows

import recordspec as rs
from recordspec._tf import tf
from recordspec.schema.options import format_bytes
from recordspec.wire.tfrecord import scan
from recordspec.writing import build_plan, reshard

pytestmark = pytest.mark.slow

SPLITS = {"train": 3, "test": 1}


@pytest.mark.parametrize("key", [None, "id"])
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {"shards": 5},
        {"shards": 3, "compression": "gzip", "shuffle": 5},
        {"layout": {"blocks": 100}, "shards": {"size": "10KiB"}},
    ],
    ids=str,
)
def test_a_dataset_becomes_what_a_build_makes(tmp_path, key, jobs, options):
    given = plain(rows(2000))
    rs.write(given, SCHEMA, tmp_path / "old", key=key, split=SPLITS, shards=2)
    rs.write(given, SCHEMA, tmp_path / "built", key=key, split=SPLITS, **options)
    rs.reshard(tmp_path / "old", tmp_path / "new", jobs=jobs, **options)
    assert files(tmp_path / "new") == files(tmp_path / "built")
    rs.reshard(tmp_path / "new", tmp_path / "back", compression="none", layout="rows", shards=2)
    back, old = files(tmp_path / "back"), files(tmp_path / "old")
    if "shuffle" not in options:
        assert back == old


def test_files_of_others_keep_their_bytes(tmp_path):
    for index in range(2):
        with tf.io.TFRecordWriter(str(tmp_path / f"x-{index}.tfrecord")) as writer:
            for number in range(10):
                writer.write(f"no Example {index} {number}".encode())
    manifest = rs.reshard(sorted(glob.glob(f"{tmp_path}/*.tfrecord")), tmp_path / "new", shards=3)
    assert [shard.rows for shard in manifest.shards("train")] == [6, 7, 7]
    read = tf.data.TFRecordDataset(sorted(glob.glob(f"{tmp_path}/new/*.tfrecord")))
    assert [record.numpy() for record in read] == [
        f"no Example {index} {number}".encode() for index in range(2) for number in range(10)
    ]
    assert manifest.schema is None
    assert "schema.yaml" not in os.listdir(tmp_path / "new")
    with pytest.raises(rs.SpecError, match="schema: expected a schema to make blocks by, got none"):
        rs.reshard(tmp_path / "new", tmp_path / "blocks", layout={"blocks": 2})


def test_a_bad_record_is_named_and_nothing_is_published(tmp_path):
    rs.write(plain(rows(20)), SCHEMA, tmp_path / "old")
    path = tmp_path / "old/train-00000-of-00001.tfrecord"
    data = bytearray(path.read_bytes())
    offset = list(scan(path))[7].offset
    data[offset + 20] ^= 1
    path.write_bytes(data)
    with pytest.raises(rs.RecordError) as caught:
        rs.reshard(tmp_path / "old", tmp_path / "new")
    expected = f"{path}: record 7 at byte {offset:,}: expected data that matches its CRC, got other bytes"
    assert str(caught.value) == expected
    assert os.listdir(tmp_path) == ["old"]


def test_rejected_rows_and_labels_go_along(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {kind: {kind: label, names: [a, b]}}")
    rs.write([{"kind": "a"}, {"kind": "c"}], schema, tmp_path / "old", invalid="quarantine")
    manifest = rs.reshard(tmp_path / "old", tmp_path / "new", shards=2)
    assert (manifest.rejected, manifest.labels) == (1, {"kind": ("a", "b")})
    assert (Path(tmp_path) / "new/rejects.jsonl").read_text() == (tmp_path / "old/rejects.jsonl").read_text()


def test_an_option_of_a_build_alone_is_refused(tmp_path):
    rs.write(plain(rows(2)), SCHEMA, tmp_path / "old")
    with pytest.raises(rs.SpecError, match="expected one of shards, compression, layout, shuffle, got `key`"):
        rs.reshard(tmp_path / "old", tmp_path / "new", key="id")


@pytest.mark.parametrize(
    ("options", "times"), [({}, 2), ({"compression": "gzip"}, 1), ({"layout": {"blocks": 10}}, 1)], ids=str
)
def test_a_disk_without_room_is_refused_before_the_first_row(tmp_path, monkeypatch, options, times):
    """Records are gathered in runs, and written again as shards; smaller ones may have room."""
    old = rs.write(plain(rows(20_000)), SCHEMA, tmp_path / "old")
    size = sum(shard.bytes for shard in old.all_shards)
    free = [times * size - 1]
    monkeypatch.setattr(build_plan.shutil, "disk_usage", lambda folder: SimpleNamespace(free=free[0]))
    with monkeypatch.context() as patch:
        patch.setattr(reshard, "build_locally", None)
        with pytest.raises(rs.StoreError) as caught:
            rs.reshard(tmp_path / "old", tmp_path / "new/data", **options)
    needed, left = format_bytes(times * size), format_bytes(times * size - 1)
    expected = f"{needed} free for the records and the shards"
    assert str(caught.value) == f"{tmp_path}/new/data: expected {expected}, got {left}"
    assert os.listdir(tmp_path) == ["old"]
    free[0] += 1
    assert rs.reshard(tmp_path / "old", tmp_path / "new/data", **options).rows("train") == 20_000


def test_of_compressed_records_the_need_is_unknown(tmp_path, monkeypatch):
    rs.write(plain(rows(20)), SCHEMA, tmp_path / "old", compression="gzip")
    monkeypatch.setattr(build_plan.shutil, "disk_usage", lambda folder: SimpleNamespace(free=0))
    assert rs.reshard(tmp_path / "old", tmp_path / "new").rows("train") == 20
