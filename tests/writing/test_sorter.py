"""Rows are sorted in runs on disk: many that are equal, and two of one key."""

from __future__ import annotations

import numpy as np
import pytest
from test_writing_build import SCHEMA, files, plain, rows

import recordspec as rs
from memory import peak_of
from recordspec.writing import build_plan, sharding, sorter

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("large", [1, sorter._LARGE])
@pytest.mark.parametrize(
    "options", [{}, {"split": {"a": 1, "b": 1}, "shards": 3}, {"layout": {"blocks": 7}}], ids=str
)
def test_many_equal_rows_are_cut_like_any_others(tmp_path, options, large, monkeypatch):
    """Large records are read to their places one by one."""
    monkeypatch.setattr(sorter, "_LARGE", large)
    given = [*([{"id": 1, "tags": [], "steps": []}] * 3000), *plain(rows(500))]
    rs.write(given, SCHEMA, tmp_path / "expected", shuffle=3, **options)
    monkeypatch.setattr(build_plan, "_SMALLEST_BUDGET", 64 << 10)
    largest, merged = [], sorter.merge_chunk

    def watched(*arguments):
        records, index = merged(*arguments)
        largest.append(len(records))
        return records, index

    monkeypatch.setattr(sorter, "merge_chunk", watched)
    rs.write(given, SCHEMA, tmp_path / "data", shuffle=3, memory="1B", **options)
    assert files(tmp_path / "data") == files(tmp_path / "expected")
    assert 10 < max(largest) < 1000


@pytest.mark.parametrize(("count", "spilled"), [(250, False), (400, True)])
def test_rows_stay_in_memory_as_long_as_they_fit(tmp_path, monkeypatch, codec, count, spilled):
    """Half of the memory was the limit. Copies of rows are not copied in memory either."""
    schema = rs.Schema.loads("schema: s\nfeatures: {data: string}")
    given = [{"data": bytes([number % 100]) * 2048} for number in range(count)]
    rs.write(given, schema, tmp_path / "expected", shuffle=3, split={"a": 2, "b": 1}, shards=2)
    monkeypatch.setattr(build_plan, "_SMALLEST_BUDGET", 1 << 20)
    monkeypatch.setattr(build_plan, "_LARGEST_CHUNK", 64 << 10)
    added, runs, unchanged, whole = [], [], sorter.Sorter.add, sorter.Sorter._spill

    def add(self, rows, *arguments):
        added.append(len(rows))
        unchanged(self, rows, *arguments)

    def spill(self):
        runs.append(self._gathered.rows)
        whole(self)

    monkeypatch.setattr(sorter.Sorter, "add", add)
    monkeypatch.setattr(sorter.Sorter, "_spill", spill)
    rs.write(iter(given), schema, tmp_path / "data", shuffle=3, split={"a": 2, "b": 1}, shards=2, memory="1B")
    assert files(tmp_path / "data") == files(tmp_path / "expected")
    assert (sum(runs) > 0, sum(added) > count) == (spilled, spilled)


def test_a_row_is_read_once_however_many_tasks_share_its_chunk(tmp_path, monkeypatch):
    given = plain(rows(4000))
    rs.write(given, SCHEMA, tmp_path / "expected", shuffle=3, shards=60)
    monkeypatch.setattr(build_plan, "_SMALLEST_BUDGET", 128 << 10)
    read, unchanged = [], sorter.SortedRun.read

    def noted(self, folder, start, stop):
        read.append(stop - start)
        return unchanged(self, folder, start, stop)

    monkeypatch.setattr(sorter.SortedRun, "read", noted)
    monkeypatch.setattr(sharding, "_CHUNKS_OF_TASK", 1)
    rs.write(iter(given), SCHEMA, tmp_path / "data", shuffle=3, shards=60, memory="1B")
    assert files(tmp_path / "data") == files(tmp_path / "expected")
    assert 3000 < sum(read) <= 4000  # the last run is in memory


@pytest.mark.parametrize("passes", [1, 2, 3])
@pytest.mark.parametrize("word", [0, 2**63 - 1, 2**63, 2**64 // 3, 2**64 // 3 - 1, 2**64 - 1])
def test_rows_of_one_key_are_found_at_the_ends_of_every_range(tmp_path, passes, word):
    """The hash of a key is two words; the search goes over ranges of the first."""
    words = [(word, 5), (7, 1), (9, 5), (8, 1), (word, 5)]
    index = np.zeros((6, len(words)), "<u8")
    index[sorter.KEY_HASH] = np.array(words, np.uint64).T
    index[sorter.NUMBER] = [10, 11, 12, 13, 14]
    (tmp_path / "x.index").write_bytes(index.tobytes())
    run = sorter.SortedRun(name="x", counts={"train": len(words)}, bytes=0)
    budget = -(-len(words) * sorter._DUPLICATES_BYTES // passes)
    assert sorter.find_duplicate_keys(tmp_path, (run,), budget) == (10, 14)
    index[sorter.KEY_HASH][1] = range(len(words))  # all others are equal in one word only
    (tmp_path / "x.index").write_bytes(index.tobytes())
    assert sorter.find_duplicate_keys(tmp_path, (run,), budget) is None


@pytest.mark.parametrize("options", [{}, {"shuffle": 1}, {"group_by": "writer", "split": {"a": 1, "b": 1}}])
def test_two_rows_of_one_key_are_both_named(tmp_path, options):
    names = (*SCHEMA.names, "writer") if "group_by" in options else SCHEMA.names
    given = [{name: row[name] for name in names} for row in rows(2500)]
    given.append({**given[70], **({"writer": "w71"} if "group_by" in options else {})})
    for jobs in (1, 2):
        with pytest.raises(rs.RecordError) as caught:
            rs.write(given, SCHEMA, tmp_path / "data", key="id", jobs=jobs, **options)
        assert str(caught.value) == "row 2500: id: expected a key that no other row has, got that of row 70"


@pytest.mark.parametrize(
    "options",
    [{}, {"split": {"a": 1, "b": 1}, "shards": 2}, {"layout": {"blocks": 3}}, {"key": "id"}],
    ids=str,
)
def test_large_rows_of_many_runs_are_in_the_order_of_one(tmp_path, options, monkeypatch):
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64, data: string}")
    random = np.random.default_rng(0)
    given = [{"id": number, "data": random.bytes(sorter._LARGE)} for number in range(250)]
    given += given[:9] if "key" not in options else []
    rs.write(given, schema, tmp_path / "expected", shuffle=3, **options)
    monkeypatch.setattr(build_plan, "_SMALLEST_BUDGET", 1 << 20)
    pointed, unchanged = [], sorter.MemoryRun.point_to_records

    def point_to_records(run):
        pointed.append(run.order is not None)
        unchanged(run)

    monkeypatch.setattr(sorter.MemoryRun, "point_to_records", point_to_records)
    rs.write(iter(given), schema, tmp_path / "data", shuffle=3, memory="1B", **options)
    assert files(tmp_path / "data") == files(tmp_path / "expected")
    assert sum(pointed) > 1 or "layout" in options


def test_records_that_a_run_lacks_are_an_error(tmp_path):
    run = sorter.SortedRun(name="x.run", counts={"a": 1}, bytes=10)
    (tmp_path / run.index_name).write_bytes(np.array([[0], [0], [0], [0], [10], [0]], "<u8").tobytes())
    (tmp_path / run.name).write_bytes(b"12345")
    with pytest.raises(OSError, match="Input/output error"):
        run.put(tmp_path, np.array([0]), np.zeros(10, np.uint8), np.array([0]))


@pytest.mark.parametrize(("size", "chunks"), [(30, 2), (700, 100), (2500, 300)])
def test_small_runs_in_the_order_of_the_source_share_chunks(tmp_path, size, chunks):
    """Each had a chunk of its own: 10,000 runs took 10,000 times 10,000 places."""
    runs = []
    for number in range(100):
        index = np.zeros((6, 4), "<u8")
        index[sorter.ORDER] = np.arange(4) + 4 * number
        index[sorter.END] = np.arange(1, 5) * size // 4
        index[sorter.START] = index[sorter.END] - size // 4
        (tmp_path / f"{number}.index").write_bytes(index.tobytes())
        runs.append(sorter.SortedRun(name=str(number), counts={"train": 4}, bytes=size))
    readers = [sorter.RunReader(tmp_path, run, "train") for run in runs]
    bounds = sorter._bounds_by_size(readers, 1000)
    assert len(bounds) == pytest.approx(chunks, rel=0.6)
    assert bounds.tolist() == sorted(set(bounds.tolist()))
    starts = np.array([0, *bounds, 400]).astype(int)
    assert (np.diff(starts) * (size // 4)).max() < 1000 + size // 4


def test_the_search_for_keys_of_a_dataset_needs_the_memory_of_its_budget(tmp_path):
    """Parts of the keys were kept while all of them were sorted: twice as much."""
    rows = 2 << 20
    words = np.arange(2 * rows, dtype="<u8") * np.uint64(0x9E3779B97F4A7C15)
    words.tofile(tmp_path / "keys.bin")
    setup = "from pathlib import Path as P\nfrom recordspec.writing.sorter import *"
    code = "print(find_duplicate_keys(P(), (), 1 << 40, P('keys.bin')))"
    found, used = peak_of(code, setup, tmp_path)
    assert found == "None"
    assert used < sorter._DUPLICATES_BYTES * rows + (48 << 20)  # and the rows that are read at once
