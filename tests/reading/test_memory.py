"""Caches, and shuffle buffers in bytes: what fits into memory, and whose rows a cache has."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
import tensorflow as tf
from shaped_rows import ROWS, SCHEMA, numbers, written

import recordspec as rs
from recordspec.reading import memory
from recordspec.store.transaction import locked


@pytest.fixture(scope="module", params=["rows", {"blocks": 32}], ids=["rows", "blocks"])
def data(tmp_path_factory, request):
    return written(tmp_path_factory.mktemp("shaping") / "data", request.param)


@pytest.mark.parametrize("cache", ["memory", "folder"])
@pytest.mark.parametrize("order", [{}, {"shuffle": 100, "seed": 1}])
def test_a_cache_is_read_once_only(tmp_path, cache, order):
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64}")
    rs.write({"n": np.arange(100)}, schema, tmp_path / "data", shards=2)
    where = "memory" if cache == "memory" else str(tmp_path / "cache")
    dataset = rs.read(tmp_path / "data", schema, batch=10, cache=where, **order)
    first = numbers(dataset)
    for path in (tmp_path / "data").glob("train-*"):
        path.unlink()
    second = numbers(dataset)
    assert sorted(first) == sorted(second) == list(range(100))
    assert (first == second) is not bool(order)


@pytest.mark.parametrize("manifest", [True, False])
def test_a_cache_is_of_the_dataset_whatever_size_and_times_its_files_have(tmp_path, manifest):
    schema, data = rs.Schema.loads("schema: s\nfeatures: {n: int64}"), tmp_path / "data"
    times = None
    for first in (0, 27):
        if data.exists():
            shutil.rmtree(data)
        rs.write({"n": np.arange(first, first + 100)}, schema, data, shards=2)
        paths = sorted(data.glob("train-*"))
        times = times or [path.stat().st_mtime_ns for path in paths]
        for path, time in zip(paths, times, strict=True):
            os.utime(path, ns=(time, time))
        if not manifest:
            (data / "manifest.json").unlink()
        for _ in range(2):
            dataset = rs.read(data, schema, batch=10, cache=str(tmp_path / "cache"))
            assert numbers(dataset) == list(range(first, first + 100))
        assert len([*(tmp_path / "cache").glob("*/*.index")]) == 1 + (first > 0)


# In the same order from the same files, but of single records or of several, and not of one size.
ORDERS = {
    "in order": {},
    "shuffled": {"shuffle": 100, "seed": 1},
    "interleaved": {"interleave": {"block": 1}},
}


@pytest.mark.parametrize("text", ["text", "text " * 2048], ids=["small", "large"])
def test_a_cache_is_of_the_order_of_files(tmp_path, text):
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64, text: string}")
    rs.write({"n": np.arange(ROWS), "text": [text] * ROWS}, schema, tmp_path / "data", shards=3)

    def read(cache: str, order: dict) -> list[int]:
        return numbers(rs.read(tmp_path / "data", schema, batch=20, cache=str(tmp_path / cache), **order))

    alone = {name: read(name, order) for name, order in ORDERS.items()}
    assert alone["in order"] == list(range(ROWS)) == sorted(alone["shuffled"]) != alone["interleaved"]
    for _ in range(2):
        assert {name: read("shared", order) for name, order in ORDERS.items()} == alone


# What a process that was killed may leave: the cache is whole when its lockfile is gone.
LEFT = {
    "nothing written": {"_0.lockfile": b""},
    "some data": {"_0.lockfile": b"Created at: 1", "_0.data-00000-of-00001.tempstate123": b"some"},
    "all data": {"_0.lockfile": b"", "_0.data-00000-of-00001": b"all", "_0.index.tempstate12": b""},
    "a first index": {"_0.lockfile": b"", "_0.data-00000-of-00001": b"all", "_0.index": b"one"},
    "a torn index": {"_0.lockfile": b"", ".data-00000-of-00001": b"all", "_0.index": b"one", ".index": b""},
}


@pytest.fixture
def cached(tmp_path):
    """The folder of a cache that was filled, and a function that reads with it."""
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64}")
    rs.write({"n": np.arange(ROWS)}, schema, tmp_path / "data", shards=3)

    def read() -> tf.data.Dataset:
        return rs.read(tmp_path / "data", schema, batch=20, cache=str(tmp_path / "cache"), shuffle=50, seed=1)

    dataset = read()
    (folder,) = (tmp_path / "cache").iterdir()
    iterator = iter(dataset)
    next(iterator)
    assert (folder / "records_0.lockfile").exists()
    del iterator
    assert os.listdir(folder) == []
    assert sorted(numbers(dataset)) == list(range(ROWS))
    assert sorted(os.listdir(folder)) == ["records.data-00000-of-00001", "records.index"]
    return folder, read


@pytest.mark.parametrize("left", LEFT)
def test_a_cache_of_a_killed_process_is_filled_again(cached, left):
    folder, read = cached
    whole = sorted(os.listdir(folder))
    shutil.rmtree(folder)  # with its lock
    folder.mkdir()
    for name, data in LEFT[left].items():
        (folder / f"records{name}").write_bytes(data)
    assert sorted(numbers(read())) == list(range(ROWS))
    assert sorted(os.listdir(folder)) == whole


def test_one_process_at_a_time_fills_a_cache(cached, caplog):
    folder, read = cached
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "records_0.lockfile").touch()
    lock = locked(folder)
    assert sorted(numbers(read())) == list(range(ROWS))
    assert os.listdir(folder) == ["records_0.lockfile"]
    assert caplog.messages == [f"{folder}: another process fills the cache: the dataset is read without it"]
    os.close(lock)
    assert sorted(numbers(read())) == list(range(ROWS))
    lock = locked(folder)
    assert lock is None  # until this process ends
    assert len(os.listdir(folder)) == 2


@pytest.mark.parametrize(
    ("order", "most", "got"),
    [({}, ROWS, "500 rows"), ({"shuffle": 9, "seed": 1}, 18, "18, each of 32 rows")],
    ids=["one by one", "together"],
)
def test_a_cache_in_a_folder_has_so_many_elements(tmp_path, monkeypatch, order, most, got):
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64}")
    rs.write({"n": np.arange(ROWS)}, schema, tmp_path / "data", shards=3)
    options = {"batch": 10, "cache": str(tmp_path / "cache"), **order}
    monkeypatch.setattr(memory, "_MOST_ELEMENTS", most)
    rs.read(tmp_path / "data", schema, **options)
    monkeypatch.setattr(memory, "_MOST_ELEMENTS", most - 1)
    with pytest.raises(rs.SpecError) as caught:
        rs.read(tmp_path / "data", schema, **options)
    hint = "(`memory` has no limit; a shuffle or an interleave makes elements of several rows)"
    assert str(caught.value) == (
        f"read.cache: expected at most {most - 1} elements in a folder, got {got} {hint}"
    )


def test_a_folder_that_is_no_folder_is_named(data, tmp_path):
    (tmp_path / "cache").touch()
    with pytest.raises(rs.StoreError) as caught:
        rs.read(data, SCHEMA, batch=20, cache=str(tmp_path / "cache"))
    assert str(caught.value) == f"{tmp_path}/cache: cannot write: not a directory"


def test_a_buffer_may_be_given_in_bytes(data):
    dataset = rs.read(data, SCHEMA, batch=10, shuffle="20KiB", seed=1)
    assert sorted(numbers(dataset)) == list(range(ROWS))
    with pytest.raises(rs.SpecError, match=r"shuffle.buffer: expected a size such as 128MiB"):
        rs.read(data, SCHEMA, batch=10, shuffle="20 apples", seed=1)


def test_what_cannot_fit_is_refused_with_what_does(data, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 50_000)
    with pytest.raises(rs.SpecError) as caught:
        rs.read(data, SCHEMA, batch=10, shuffle=10_000, seed=1)
    message = str(caught.value)
    assert message.startswith("read.shuffle.buffer: expected at most 39.1 KiB of memory, of 48.8 KiB free")
    fitting = int(message.rsplit("a buffer of ", 1)[1].split(" ")[0].replace(",", ""))
    rs.read(data, SCHEMA, batch=10, shuffle=fitting, seed=1)
    with pytest.raises(rs.SpecError, match=r"read.cache: expected at most"):
        rs.read(data, SCHEMA, batch=10, cache="memory")
