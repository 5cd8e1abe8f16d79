"""Sharing among workers: everything once, and as many batches for each."""

from __future__ import annotations

import dataclasses
import json
import re
from functools import partial
from itertools import islice, product

import pytest

import recordspec as rs
from recordspec._tf import tf
from recordspec.order.read_options import Read
from recordspec.order.read_plan import Plan, WorkerShard, plan_files
from recordspec.reading.dataset import build
from recordspec.schema.options import from_python
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import expand
from recordspec.wire.proto import parse_example
from recordspec.wire.tfrecord import scan

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {n: int64}")
ROWS = 97
FILTER = r"over.<locals>.<lambda> [0-9a-f]{12}"


def keep_rates(folder, workers: int, **options):
    how = from_python(Read, options)
    plans = [
        plan_files(StoredDataset.of(folder, SCHEMA), WorkerShard(workers, worker))
        for worker in range(workers)
    ]
    return [build(how, SCHEMA, what) for what in plans]


def numbers(dataset) -> list[int]:
    return [number for batch in dataset for number in batch["n"].numpy().reshape(-1).tolist()]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The same rows in 1 to 9 shards, by the number of shards."""
    made = {}
    for shards in range(1, 10):
        made[shards] = tmp_path_factory.mktemp("workers") / "data"
        rs.write({"n": list(range(ROWS))}, SCHEMA, made[shards], shards=shards)
    return made


@pytest.mark.parametrize(("shards", "workers"), list(product(range(1, 10), range(1, 6))))
def test_each_record_is_in_the_plan_of_one_worker(folders, shards, workers):
    paths = expand(folders[shards])
    plans = [
        plan_files(StoredDataset(paths, None, SCHEMA), WorkerShard(workers, worker))
        for worker in range(workers)
    ]
    planned = [records(what) for what in plans]
    assert sorted(number for each in planned for number in each) == list(range(ROWS))
    assert [what.others for what in plans] == [tuple(map(len, planned))] * workers
    assert [what.rows for what in plans] == list(map(len, planned))


def records(what: Plan) -> list[int]:
    """The rows that a plan reads."""
    return [
        parse_example(record.data)["n"][0]
        for piece in what.pieces
        for record in islice(scan(piece.path), piece.first, piece.count and piece.first + piece.count)
    ]


MIXED = {"shuffle": {"buffer": 20, "seed": 3}, "interleave": {"cycle": 3, "block": 2}}
# Each number of shards, and each number of workers mixed and in order; all pairs are tried as plans.
PAIRS = [(1, 1), (1, 4), (2, 1), (2, 5), (3, 2), (4, 2), (4, 4), (5, 3), (6, 3), (7, 5), (8, 4), (9, 2)]


@pytest.mark.parametrize(("shards", "workers"), PAIRS)
def test_all_workers_together_have_every_row_once(folders, shards, workers):
    options = MIXED if (shards + workers) % 2 else {}
    datasets = keep_rates(folders[shards], workers, batch=1, **options)
    counts = [int(dataset.cardinality()) for dataset in datasets]
    assert len(set(counts)) == 1
    read = [numbers(dataset) for dataset in datasets]
    assert [len(each) for each in read] == counts
    twice = counts[0] * workers - ROWS
    assert 0 <= twice < 2 * workers
    assert set().union(*read) == set(range(ROWS))
    dropped = keep_rates(folders[shards], workers, batch={"size": 1, "drop_remainder": True}, **options)
    read = [number for dataset in dropped for number in numbers(dataset)]
    assert len(read) == len(set(read)) >= ROWS - 2 * workers


@pytest.mark.parametrize("size", [4, 10])
@pytest.mark.parametrize(("shards", "workers"), PAIRS)
def test_batches_are_as_many_for_every_worker(folders, shards, workers, size):
    for dropped in (False, True):
        datasets = keep_rates(folders[shards], workers, batch={"size": size, "drop_remainder": dropped})
        counts = [int(dataset.cardinality()) for dataset in datasets]
        read = [[len(batch["n"]) for batch in dataset] for dataset in datasets]
        assert [len(each) for each in read] == counts
        assert len(set(counts)) == 1


@pytest.mark.parametrize("workers", range(1, 6))
def test_blocks_are_shared_as_blocks(tmp_path, workers):
    rs.write(
        {"n": list(range(ROWS))},
        SCHEMA,
        tmp_path / "data",
        shards=3,
        layout={"blocks": 5},
    )
    datasets = keep_rates(tmp_path / "data", workers, batch={"size": 1, "drop_remainder": False})
    read = [numbers(dataset) for dataset in datasets]
    assert set().union(*read) == set(range(ROWS))
    assert len({len(each) for each in read}) == 1


def test_files_of_nobody_are_counted_first(tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        for number in range(11):
            writer.write(SCHEMA.encode({"n": number}))
    datasets = keep_rates(tmp_path / "a.tfrecord", 3, batch=2)
    assert [int(dataset.cardinality()) for dataset in datasets] == [2, 2, 2]
    assert sorted({number for dataset in datasets for number in numbers(dataset)}) == list(range(11))


def test_more_workers_than_records_are_refused(tmp_path):
    rs.write({"n": [1, 2]}, SCHEMA, tmp_path / "data")
    with pytest.raises(rs.StoreError) as caught:
        keep_rates(tmp_path / "data", 3, batch=1)
    assert str(caught.value) == f"{tmp_path}/data: expected records for 3 workers, got 2"


@pytest.mark.parametrize("shards", [1, 3])
def test_what_would_give_workers_other_numbers_of_batches_needs_no_end(folders, shards):
    what = plan_files(StoredDataset.of(folders[shards], SCHEMA), WorkerShard(2, 0))
    some = lambda features: features["n"] > 3  # noqa: E731
    with pytest.raises(rs.SpecError) as caught:
        build(from_python(Read, {"batch": 4}), SCHEMA, what, predicate=some)
    assert str(caught.value) == (
        "read.repeat: expected `forever`, since a filter or buckets decide how many batches each worker has, got 1"
    )
    endless = build(from_python(Read, {"batch": 4, "repeat": "forever"}), SCHEMA, what, predicate=some)
    assert min(numbers(endless.take(5))) > 3


@pytest.fixture
def pipeline(tmp_path) -> rs.Pipeline:
    (tmp_path / "s.yaml").write_text("schema: s\nfeatures: {n: int64}\n")
    config = (
        "schema: s.yaml\ndata: data\nwrite: {key: n}\nread: {batch: 12, shuffle: {buffer: 50, seed: 3}}\n"
    )
    (tmp_path / "config.yaml").write_text(config)
    made = rs.Pipeline.load(tmp_path / "config.yaml")
    made.build([{"n": number} for number in range(997)])
    return made


def of_workers(pipeline: rs.Pipeline, workers: int, start=None, **options) -> list[list[list[int]]]:
    """The batches of each worker."""
    contexts = [tf.distribute.InputContext(workers, worker, workers) for worker in range(workers)]
    make = pipeline.input_fn("train", start=start, **options)
    return [[batch["n"].numpy().tolist() for batch in make(context)] for context in contexts]


def test_training_resumes_with_the_same_workers_only(pipeline):
    whole = of_workers(pipeline, 2)
    assert len(whole[0]) == 84
    saved = json.loads(json.dumps(dataclasses.asdict(pipeline.position(0, 20, workers=2))))
    identity = rs.Manifest.load(pipeline.data).identity
    order = saved.pop("order")
    assert saved == {"epoch": 0, "step": 20, "workers": 2, "batch": 6, "manifest": identity}
    saved["order"] = order
    position = rs.Position(**saved)
    assert of_workers(pipeline, 2, position) == [batches[20:] for batches in whole]
    hint = "(with another number of workers, some rows would be read twice and some never)"
    for start, workers, count in ((position, 3, 2), ((0, 20), 3, 1), (position, 1, 2)):
        with pytest.raises(rs.SpecError) as error:
            of_workers(pipeline, workers, start)
        expected = f"expected {workers}, the number of workers that read, got {count} {hint}"
        assert str(error.value).splitlines()[0] == f"start.workers: {expected}"
    assert of_workers(pipeline, 3, (0, 0)) == of_workers(pipeline, 3)  # the beginning fits any
    one = [batch["n"].numpy().tolist() for batch in pipeline.dataset("train")]
    for start in ((0, 20), pipeline.position(0, 20)):
        assert [batch["n"].numpy().tolist() for batch in pipeline.dataset("train", start=start)] == one[20:]
        assert of_workers(pipeline, 1, start) == [one[20:]]


def over(least: int):
    other = object()  # whose text has its address
    return lambda row, unused=object(): row["n"] >= least if other else None  # noqa: B008


# What is read instead, and the option of the order that it changes: as it was, and as it is.
OTHER_ORDERS: dict[str, tuple[dict, str, str, str]] = {
    "seed": ({"shuffle": {"buffer": 30, "seed": 4}}, "seed", "3", "4"),
    "buffer": ({"shuffle": {"buffer": 60, "seed": 3}}, "buffer", "30", "60"),
    "global": ({"shuffle": {"global": True, "seed": 3}}, "global", "none", "True"),
    "in order": ({"shuffle": None}, "seed", "3", "none"),
    "files": ({"interleave": {"block": 1}}, "interleave", "auto, 32", "auto, 1"),
    "all rows": ({"filter": None}, "filter", FILTER, "none"),
    "other rows": ({"filter": over(3)}, "filter", FILTER, FILTER),
    "whole batches": ({"batch": {"size": 12, "drop_remainder": True}}, "drop_remainder", "none", "True"),
}


@pytest.mark.parametrize("name", OTHER_ORDERS)
def test_training_does_not_resume_in_another_order(pipeline, name):
    options, changed, before, now = OTHER_ORDERS[name]
    usual = {"shuffle": {"buffer": 30, "seed": 3}, "filter": over(2)}
    position = rs.Position(**json.loads(json.dumps(dataclasses.asdict(pipeline.position(0, 2, **usual)))))
    # another function of the same code is the same filter, whatever else it refers to
    rest = numbers(pipeline.dataset("train", start=position, **{**usual, "filter": over(2)}))
    assert rest == numbers(pipeline.dataset("train", **usual))[2 * 12 :]
    with pytest.raises(rs.SpecError) as error:
        pipeline.dataset("train", start=position, **usual | options)
    found = {each.path[-1]: (each.got, each.expected) for each in error.value.problems}
    got, expected = found[changed]
    assert re.fullmatch(before, got)
    assert re.fullmatch(f"{now}, as is read", expected)
    assert error.value.problems[0].path == ("start", "order", error.value.problems[0].path[-1])


def test_training_resumes_on_another_backend_and_in_its_split_alone(pipeline):
    rs.write(
        ({"n": n} for n in range(999)),
        pipeline.schema,
        pipeline.data,
        split={"train": 2, "test": 1},
        force=True,
    )
    pipeline = rs.Pipeline.load(pipeline.folder / "config.yaml")
    usual = {"shuffle": {"global": True, "seed": 3}}
    position = pipeline.position(1, 4, **usual)
    rest = numbers(pipeline.dataset("train", start=position, **usual))
    iterated = pipeline.iterate("train", start=position, prefetch=0, **usual)
    assert [number for batch in iterated for number in batch["n"].tolist()] == rest
    for read in (pipeline.dataset, pipeline.iterate):
        with pytest.raises(
            rs.SpecError, match=r"^start\.order\.split: expected train, test, as is read, got"
        ):
            read(["train", "test"], start=position, **usual)


def test_training_does_not_resume_with_another_batch_or_dataset(pipeline, tmp_path):
    start = pipeline.position(1, 2)
    with pytest.raises(rs.SpecError) as error:
        pipeline.dataset("train", start=start, batch=8)
    hint = "(with another batch size, a step begins at another row)"
    assert str(error.value) == f"start.batch: expected 8, the rows per batch that are read, got 12 {hint}"
    assert pipeline.position(1, 2, batch=8).batch == 8
    assert pipeline.position(1, 2, batch=None).batch == 1
    before = pipeline.manifest.identity
    for rows, how in (([{"n": 5000}], {"append": True}), ([{"n": 1}, {"n": 2}], {"force": True})):
        pipeline.build(rows, **how)
        now = pipeline.manifest.identity
        hint = "(the dataset was replaced, rows were added, or it is another dataset)"
        for read in (pipeline.dataset, partial(rs.read, batch=12)):
            with pytest.raises(rs.SpecError) as error:
                read("train" if read == pipeline.dataset else pipeline.data, start=start)
            first = str(error.value).splitlines()[0]
            assert first == f"start.manifest: expected {now[:12]}..., got {before[:12]}... {hint}"
    # a pipeline is bound to the manifest that it has opened
    other = rs.Pipeline.load(tmp_path / "config.yaml")
    start = other.position(1, 0)
    pipeline.build([{"n": 3}], append=True)
    assert other.position(1, 0) == start != pipeline.position(1, 0)
    assert sorted(
        other.dataset("train", start=start).unbatch().map(lambda row: row["n"]).as_numpy_iterator()
    ) == [1, 2]
    with pytest.raises(rs.SpecError, match=r"start\.manifest: expected "):
        pipeline.dataset("train", start=start)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"workers": 0}, "start.workers: expected 1 or more, got 0"),
        ({"batch": 0}, "start.batch: expected 1 or more, got 0"),
        ({"step": -1}, "start.step: expected 0 or more, got -1"),
        ({"manifest": 3}, "start.manifest: expected the SHA-256 of a manifest, got 3"),
    ],
)
def test_a_position_of_no_dataset_is_refused(fields, expected):
    with pytest.raises(rs.SpecError) as error:
        rs.Position(**fields)
    assert str(error.value) == expected
