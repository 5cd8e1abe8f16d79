"""The index of the offsets of records: exact for every size, small, and bound to its shard."""

from __future__ import annotations

import gzip
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import recordspec as rs
from recordspec import StoreError
from recordspec.integrity.indexing import index as write_index
from recordspec.locations import location
from recordspec.store.index import CHUNK, GROUP, IndexWriter, of_bytes, of_dataset
from recordspec.store.manifest import Manifest
from recordspec.wire.compression import CODECS
from selection import scaled

SCHEMA = rs.Schema.loads("{schema: s, features: {a: int64, b: text}}")
ROWS = [{"a": number, "b": "x" * (number % 50)} for number in range(100)]


def index_of(sizes: list[int], at_once: int = 1000):
    writer = IndexWriter()
    for start in range(0, len(sizes), at_once):
        writer.add(np.array(sizes[start : start + at_once], np.int64))
    return of_bytes(writer.close(sum(sizes), "ab" * 32))


@given(
    st.lists(
        st.one_of(st.integers(16, 20), st.integers(16, 70_000), st.integers(1 << 31, 1 << 32)), max_size=300
    ),
    st.integers(1, 300),
)
@example([1 << 32, 16], 1)
@settings(max_examples=scaled(100))
def test_offsets_are_sums_of_sizes(sizes, at_once):
    index = index_of(sizes, at_once)
    sums = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    assert index.offsets(np.arange(len(sizes) + 1)).tolist() == sums.tolist()
    assert [index.frame(number) for number in range(len(sizes))] == [*pairwise(sums.tolist())]
    assert (index.records, index.bytes, index.sha256) == (len(sizes), sum(sizes), "ab" * 32)


@pytest.mark.parametrize(
    "count", [*(GROUP + step for step in (-1, 0, 1)), *(CHUNK + step for step in (-1, 0, 1))]
)
def test_groups_and_chunks_end_where_they_should(count):
    sizes = (16 + np.arange(count) * 7919 % 5000).tolist()
    index, sums = index_of(sizes), [0, *np.cumsum(sizes).tolist()]
    assert index.offsets(np.arange(count + 1)).tolist() == sums
    assert [index.frame(number) for number in range(count)] == [*pairwise(sums)]


def test_an_index_is_small():
    count = 100_000
    assert len(index_of([180] * count).data) < 0.2 * count
    sizes = (1300 + np.random.default_rng(1).integers(-400, 400, count)).tolist()
    assert len(index_of(sizes).data) < 2.3 * count


@pytest.mark.parametrize("layout", ["rows", {"blocks": 7}])
@pytest.mark.parametrize("jobs", [1, 2])
def test_every_build_writes_the_index_of_its_shards(tmp_path, layout, jobs):
    options = {"layout": layout, "shards": 3, "jobs": jobs, "key": "a", "progress": False}
    manifest = rs.write(ROWS, SCHEMA, tmp_path / "data", split={"train": 0.8, "test": 0.2}, **options)
    check(tmp_path / "data", manifest)
    more = [{"a": number, "b": "y"} for number in range(100, 150)]
    manifest = rs.write(
        more, SCHEMA, tmp_path / "data", append=True, split={"train": 0.8, "test": 0.2}, **options
    )
    check(tmp_path / "data", manifest)
    check(tmp_path / "again", rs.reshard(tmp_path / "data", tmp_path / "again", shards=2, progress=False))


def check(folder, manifest: Manifest) -> None:
    """The offsets are where frames begin, as the plainest reader finds them."""
    for file, index in of_dataset(location(folder), manifest).items():
        data, starts = (folder / file).read_bytes(), [0]
        while starts[-1] < len(data):
            starts.append(starts[-1] + 16 + int.from_bytes(data[starts[-1] : starts[-1] + 8], "little"))
        assert index.offsets(np.arange(index.records + 1)).tolist() == starts
    assert of_dataset(location(folder), manifest).keys() == manifest.files


def test_rows_are_added_to_a_dataset_of_an_older_release(tmp_path):
    options = {"key": "a", "progress": False}
    manifest = rs.write(ROWS, SCHEMA, tmp_path / "data", **options)
    (tmp_path / "data/index.bin").unlink()
    (tmp_path / "data/manifest.json").write_text(replace(manifest, index_sha256=None).dump())
    manifest = rs.write([{"a": 1000, "b": ""}], SCHEMA, tmp_path / "data", append=True, **options)
    check(tmp_path / "data", manifest)


def test_compressed_shards_have_one_with_restart_points(tmp_path):
    options = {"key": "a", "compression": "gzip", "progress": False}
    manifest = rs.write(ROWS, SCHEMA, tmp_path / "data", **options)
    built = (tmp_path / "data/index.bin").read_bytes()
    write_index(tmp_path / "data")
    assert (tmp_path / "data/index.bin").read_bytes() == built
    for name, index in of_dataset(location(tmp_path / "data"), manifest).items():
        stored = (tmp_path / "data" / name).read_bytes()
        assert CODECS["gzip"].restarts(memoryview(stored)) == index.restarts[:-1].tolist()
        assert (index.bytes, index.size) == (len(stored), len(gzip.decompress(stored)))
    # without one, as an older release has written it, rows are added, and there is still none
    (tmp_path / "data/index.bin").unlink()
    (tmp_path / "data/manifest.json").write_text(replace(manifest, index_sha256=None).dump())
    more = rs.write([{"a": 1000, "b": ""}], SCHEMA, tmp_path / "data", append=True, **options)
    assert more.index_sha256 is None
    assert of_dataset(location(tmp_path / "data"), more) == {}


def test_an_index_of_other_shards_is_an_error(tmp_path):
    manifests = [
        rs.write(rows, SCHEMA, tmp_path / name, progress=False)
        for name, rows in (("a", ROWS), ("b", [{**row, "a": 7} for row in ROWS]))
    ]
    other = (tmp_path / "b/index.bin").read_bytes()
    (tmp_path / "a/index.bin").write_bytes(other)
    with pytest.raises(StoreError) as caught:
        of_dataset(location(tmp_path / "a"), manifests[0])
    hint = "`recordspec index` makes it again"
    assert str(caught.value) == f"`{tmp_path}/a/index.bin` was changed after it was written: {hint}"
    with pytest.raises(StoreError) as caught:
        of_dataset(location(tmp_path / "a"), replace(manifests[0], index_sha256=manifests[1].index_sha256))
    assert str(caught.value) == f"`{tmp_path}/a/index.bin` is the index of other shards: {hint}"
    cut = replace(manifests[0], index_sha256=sha256(other[:-9]).hexdigest())
    (tmp_path / "a/index.bin").write_bytes(other[:-9])
    with pytest.raises(StoreError, match="is not an index, or was changed after it was written"):
        of_dataset(location(tmp_path / "a"), cut)
