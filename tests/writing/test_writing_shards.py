"""Shards: how many there are, and how many rows each has."""

from __future__ import annotations

import pytest
from written_rows import SCHEMA, rows

import recordspec as rs
from recordspec.writing.sharding import shard_count
from recordspec.writing.write_options import Write


def test_shards_are_as_many_as_asked_and_differ_by_one_row(tmp_path):
    manifest = rs.write(rows(10), SCHEMA, tmp_path / "a", shards=4)
    assert [shard.rows for shard in manifest.shards("train")] == [2, 3, 2, 3]
    manifest = rs.write(rows(2), SCHEMA, tmp_path / "b", shards=4)
    assert [shard.rows for shard in manifest.shards("train")] == [0, 1, 0, 1]
    size = sum(shard.bytes for shard in manifest.shards("train"))
    manifest = rs.write(rows(2), SCHEMA, tmp_path / "c", shards={"size": f"{size // 2}B"})
    assert [shard.rows for shard in manifest.shards("train")] == [1, 1]
    assert rs.Manifest.load(tmp_path / "c") == manifest


MIB = 1 << 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "rows", "count"),
    [(0, 0, 1), (MIB, 1000, 1), (127 * MIB, 1000, 1), (128 * MIB, 1000, 2), (1000 * MIB, 1000, 8), (1000 * MIB, 3, 3)],
)  # fmt: skip
def test_auto_shards_are_64_to_128_mib(size, rows, count):
    assert shard_count(Write(), size, rows) == count
