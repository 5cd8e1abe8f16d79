"""Sharing among workers: everything once, and as many batches for each."""

from __future__ import annotations

from itertools import product

import pytest
import tensorflow as tf

import recordspec as rs
from recordspec.reading.dataset import build
from recordspec.reading.options import Read
from recordspec.reading.plan import Share, plan
from recordspec.spec.from_python import from_python
from recordspec.store.shards import expand

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {n: int64}")
ROWS = 97


def shares(folder, workers: int, **options):
    how = from_python(Read, options)
    plans = [plan(expand(folder), SCHEMA, Share(workers, worker)) for worker in range(workers)]
    return [build(how, SCHEMA, what) for what in plans]


def numbers(dataset) -> list[int]:
    return [number for batch in dataset for number in batch["n"].numpy().reshape(-1).tolist()]


@pytest.fixture(scope="module", params=range(1, 10))
def data(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("workers") / "data"
    rows = {"n": list(range(ROWS))}
    rs.write(SCHEMA, rows, folder, shards=request.param)
    return folder


MIXED = {"shuffle": {"buffer": 20, "seed": 3}, "interleave": {"cycle": 3, "block": 2}}


@pytest.mark.parametrize("workers", range(1, 6))
def test_all_workers_together_have_every_row_once(data, workers):
    shards = len(expand(data))
    options = MIXED if (shards + workers) % 2 else {}  # each number of either is tried with both
    datasets = shares(data, workers, batch=1, **options)
    counts = [int(dataset.cardinality()) for dataset in datasets]
    assert len(set(counts)) == 1
    read = [numbers(dataset) for dataset in datasets]
    assert [len(each) for each in read] == counts
    twice = counts[0] * workers - ROWS
    assert 0 <= twice < 2 * workers
    assert set().union(*read) == set(range(ROWS))
    dropped = shares(data, workers, batch={"size": 1, "drop_remainder": True}, **options)
    read = [number for dataset in dropped for number in numbers(dataset)]
    assert len(read) == len(set(read)) >= ROWS - 2 * workers


@pytest.mark.parametrize(("workers", "size"), list(product(range(1, 6), [4, 10])))
def test_batches_are_as_many_for_every_worker(data, workers, size):
    for dropped in (False, True):
        datasets = shares(data, workers, batch={"size": size, "drop_remainder": dropped})
        counts = [int(dataset.cardinality()) for dataset in datasets]
        read = [[len(batch["n"]) for batch in dataset] for dataset in datasets]
        assert [len(each) for each in read] == counts
        assert len(set(counts)) == 1


@pytest.mark.parametrize("workers", range(1, 6))
def test_blocks_are_shared_as_blocks(tmp_path, workers):
    rs.write(
        SCHEMA,
        {"n": list(range(ROWS))},
        tmp_path / "data",
        shards=3,
        layout={"blocks": 5},
    )
    datasets = shares(tmp_path / "data", workers, batch={"size": 1, "drop_remainder": False})
    read = [numbers(dataset) for dataset in datasets]
    assert set().union(*read) == set(range(ROWS))
    assert len({len(each) for each in read}) == 1


def test_files_of_nobody_are_counted_first(tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        for number in range(11):
            writer.write(SCHEMA.encode({"n": number}))
    datasets = shares(tmp_path / "a.tfrecord", 3, batch=2)
    assert [int(dataset.cardinality()) for dataset in datasets] == [2, 2, 2]
    assert sorted({number for dataset in datasets for number in numbers(dataset)}) == list(range(11))


def test_more_workers_than_records_are_refused(tmp_path):
    rs.write(SCHEMA, {"n": [1, 2]}, tmp_path / "data")
    with pytest.raises(rs.StoreError) as caught:
        shares(tmp_path / "data", 3, batch=1)
    assert str(caught.value) == f"{tmp_path}/data: expected records for 3 workers, got 2"


def test_what_would_give_workers_other_numbers_of_batches_needs_no_end(data):
    what = plan(expand(data), SCHEMA, Share(2, 0))
    some = lambda features: features["n"] > 3  # noqa: E731
    with pytest.raises(rs.SpecError) as caught:
        build(from_python(Read, {"batch": 4}), SCHEMA, what, keep=some)
    assert str(caught.value) == (
        "read.repeat: expected `forever`, where a filter or buckets decide how many batches each worker has, got 1"
    )
    endless = build(from_python(Read, {"batch": 4, "repeat": "forever"}), SCHEMA, what, keep=some)
    assert min(numbers(endless.take(5))) > 3
