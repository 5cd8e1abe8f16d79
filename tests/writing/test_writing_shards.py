"""Shards: how many there are, and how many rows each has."""

from __future__ import annotations

import numpy as np
import pytest
from written_rows import SCHEMA, files, rows

import recordspec as rs
from recordspec.writing import sharding
from recordspec.writing.sharding import shard_count
from recordspec.writing.sorter import Sorter
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


@pytest.mark.parametrize("options", [{}, {"layout": {"blocks": 16}}, {"compression": "gzip"}], ids=str)
@pytest.mark.parametrize(
    ("lengths", "gathered"),
    [([40] * 3000, 0), ([8] * 1000 + [72] * 2000, 1), ([23] * 3000, 1), ([40] * 20, 0)],
    ids=["alike", "larger later", "close to one more", "few"],
)
def test_rows_of_a_known_number_go_to_their_shards_directly(
    tmp_path, monkeypatch, codec, options, lengths, gathered
):
    """They were gathered, since the number of shards follows from their bytes; an estimate may be wrong."""
    monkeypatch.setattr(sharding, "_SMALLEST_AUTO", 20_000)
    monkeypatch.setattr(sharding, "_ESTIMATED_FROM", 10_000)
    sorters, unchanged = [], Sorter.__init__

    def noted(self, *arguments, **given):
        sorters.append(self)
        unchanged(self, *arguments, **given)

    monkeypatch.setattr(Sorter, "__init__", noted)
    schema = rs.Schema.loads("schema: s\nfeatures: {id: {kind: var_len, dtype: int64}}")
    given = [np.arange(length) for length in lengths]
    manifest = rs.write({"id": given}, schema, tmp_path / "known", **options)
    assert len(sorters) == gathered
    assert rs.write(({"id": one} for one in given), schema, tmp_path / "unknown", **options) == manifest
    assert files(tmp_path / "known") == files(tmp_path / "unknown")
    assert (len(manifest.shards("train")) > 1) == (len(given) > 20)


MIB = 1 << 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "rows", "count"),
    [(0, 0, 1), (MIB, 1000, 1), (127 * MIB, 1000, 1), (128 * MIB, 1000, 2), (1000 * MIB, 1000, 8), (1000 * MIB, 3, 3)],
)  # fmt: skip
def test_auto_shards_are_64_to_128_mib(size, rows, count):
    assert shard_count(Write(), size, rows) == count
