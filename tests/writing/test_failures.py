"""Builds that fail say how far they had come, and publish nothing."""

from __future__ import annotations

import errno
import os
import re
from functools import partial
from types import SimpleNamespace

import pyarrow
import pyarrow.parquet
import pytest
from written_rows import SCHEMA, rows

import recordspec as rs
from recordspec.schema.options import format_bytes
from recordspec.store.shard_file import ShardFile
from recordspec.writing import build_plan
from recordspec.writing.sorter import Sorter
from recordspec.writing.sources.parquet import Parquet


@pytest.mark.parametrize(
    ("error", "kind", "expected"),
    [
        (ValueError("boom"), rs.WriteError, "expected all the rows, got ValueError: boom, after 3,000 rows (nothing was published)"),
        (KeyboardInterrupt(), rs.Interrupted, "interrupted after 3,000 rows (nothing was published)"),
    ],
)  # fmt: skip
def test_a_source_that_fails_publishes_nothing(tmp_path, error, kind, expected):
    def source():
        yield from rows(3000)
        raise error

    with pytest.raises(kind) as caught:
        rs.write(source(), SCHEMA, tmp_path / "data")
    assert str(caught.value) == f"{tmp_path}/data: {expected}"
    assert os.listdir(tmp_path) == []


def test_a_full_disk_names_the_shard(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(ShardFile, "_put", full)
    with pytest.raises(rs.StoreError) as caught:
        rs.write(rows(70), SCHEMA, tmp_path / "data", shards=1)
    # on a busy machine it was told after 64 of the 70 rows
    assert re.fullmatch(
        rf"{tmp_path}/data: cannot write train-00000-of-00001\.tfrecord: no space left on device, after \d+ rows"
        r" \(nothing was published\)",
        str(caught.value),
    )
    assert os.listdir(tmp_path) == []


def test_a_full_disk_publishes_nothing(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Sorter, "finish", full)
    with pytest.raises(rs.StoreError) as caught:
        rs.write(rows(70), SCHEMA, tmp_path / "data", shuffle=1)
    assert str(caught.value) == (
        f"{tmp_path}/data: cannot write: no space left on device, after 70 rows (nothing was published)"
    )
    assert os.listdir(tmp_path) == []


def test_an_exception_in_the_callers_block_is_the_callers(tmp_path):
    def fail() -> None:
        with rs.ShardedWriter(SCHEMA, tmp_path / "data") as writer:
            writer.write(rows(1)[0])
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine") as caught:
        fail()
    note = f"{tmp_path}/data: nothing was published, after 1 row"
    assert getattr(caught.value, "__notes__", [note]) == [note]  # Python 3.10 has no notes
    assert os.listdir(tmp_path) == []


def test_a_disk_without_room_is_noted_early_and_refused_before_the_first_shard(tmp_path, monkeypatch, caplog):
    for part in range(2):
        table = pyarrow.table({"id": range(part, 20_000, 2)})
        pyarrow.parquet.write_table(table, tmp_path / f"{part}.parquet")
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64}")
    source = Parquet(files="*.parquet").open(tmp_path)
    build = partial(rs.write, source, schema, tmp_path / "data", shuffle=1)
    size = build().bytes("train")
    free = [size - 1]
    monkeypatch.setattr(build_plan.shutil, "disk_usage", lambda folder: SimpleNamespace(free=free[0]))
    with pytest.raises(rs.StoreError) as caught:
        build(force=True)
    needed, left = format_bytes(size), format_bytes(size - 1)
    assert str(caught.value) == (
        f"{tmp_path}/data: expected {needed} free for the shards, got {left}, after 20,000 rows"
        " (nothing was published; 20,000 rows are safe: resume=True, or --resume, continues from there)"
    )
    # after the first half, that and all of the shards
    about = format_bytes(size * 3 // 2)
    note = f"{tmp_path}/data: about {about} are needed for the other rows and the shards, and {left} are free"
    assert caplog.messages == [note]
    free[0] = size
    assert build(force=True, resume=True).rows("train") == 20_000
    assert caplog.messages == [note]
    assert build(force=True, compression="gzip").rows("train") == 20_000  # whose size is not known before
