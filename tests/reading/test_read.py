"""`recordspec.read`: every record once, in an order that the seed fixes, of known cardinality."""

from __future__ import annotations

import json

import pytest
import tensorflow as tf

import recordspec as rs
from recordspec.reading.dataset import build
from recordspec.reading.options import Read
from recordspec.reading.plan import Share, plan
from recordspec.spec.from_python import from_python
from recordspec.store.shards import expand

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {n: int64, words: {kind: var_len, dtype: string}}")
ROWS = 100


@pytest.fixture(params=["none", "gzip"])
def data(tmp_path, request):
    rows = [{"n": index, "words": ["w"] * (index % 3)} for index in range(ROWS)]
    rs.write(SCHEMA, rows, tmp_path / "data", shards=4, compression=request.param)
    return tmp_path / "data"


def numbers(dataset) -> list[int]:
    return [number for batch in dataset for number in batch["n"].numpy().reshape(-1).tolist()]


def test_without_options_records_come_one_by_one_in_order(data):
    dataset = rs.read(SCHEMA, data)
    assert dataset.element_spec == SCHEMA.element_spec()
    assert int(dataset.cardinality()) == ROWS
    assert numbers(dataset) == list(range(ROWS))


def test_batches_have_the_type_that_the_schema_says(data):
    dataset = rs.read(SCHEMA, data, batch=32)
    assert dataset.element_spec == SCHEMA.batch_spec()
    assert int(dataset.cardinality()) == 4
    assert numbers(dataset) == list(range(ROWS))
    dropped = rs.read(SCHEMA, data, batch={"size": 32, "drop_remainder": True})
    assert dropped.element_spec["n"] == SCHEMA.batch_spec(32)["n"]
    assert int(dropped.cardinality()) == 3


def test_a_shuffle_is_fixed_by_its_seed_and_other_in_every_epoch(data):
    def epochs(seed: int, **options) -> list[list[int]]:
        dataset = rs.read(SCHEMA, data, batch=7, shuffle=50, seed=seed, **options)
        return [numbers(dataset), numbers(dataset)]

    first, second = epochs(7)
    assert sorted(first) == sorted(second) == list(range(ROWS))
    assert first != second
    assert first != list(range(ROWS))
    assert epochs(7) == [first, second]
    assert epochs(8)[0] != first


@pytest.mark.parametrize(
    "options",
    [
        {"interleave": {"cycle": 2, "block": 3}},
        {"interleave": {"parallel": 2}},
        {"interleave": {"parallel": "auto"}, "deterministic": False},
        {"cache": "memory"},
        {"prefetch": 0},
        {"shuffle": 10, "seed": 1, "cache": "memory"},
    ],
)
def test_every_stage_keeps_every_record(data, options):
    dataset = rs.read(SCHEMA, data, batch=16, **options)
    assert int(dataset.cardinality()) == 7
    assert sorted(numbers(dataset)) == list(range(ROWS))


def test_repeat_counts(data):
    thrice = rs.read(SCHEMA, data, batch=30, repeat=3)
    assert int(thrice.cardinality()) == 12
    assert [len(batch["n"]) for batch in thrice] == [30, 30, 30, 10] * 3
    endless = rs.read(SCHEMA, data, batch=30, repeat="forever")
    assert int(endless.cardinality()) == tf.data.INFINITE_CARDINALITY
    assert len(numbers(endless.take(5))) == 130


def test_a_map_sees_the_decoded_batch(data):
    dataset = rs.read(SCHEMA, data, batch=50, map=lambda row: {"n": row["n"] * 2})
    assert numbers(dataset) == list(range(0, 2 * ROWS, 2))


def test_without_a_manifest_the_cardinality_is_unknown(data):
    (data / "manifest.json").unlink()
    dataset = rs.read(SCHEMA, data)
    assert int(dataset.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    assert numbers(dataset) == list(range(ROWS))


def test_shards_that_are_missing_or_foreign_are_named(data):
    shards = sorted(data.glob("train-*"))
    strange = data / shards[0].name.replace("train", "test")
    strange.write_bytes(b"")
    with pytest.raises(rs.StoreError) as caught:
        rs.read(SCHEMA, data)
    assert str(caught.value) == f"{strange}: expected shards that the manifest names, got another one"
    with pytest.raises(rs.StoreError) as caught:
        rs.read(SCHEMA, strange)
    assert (
        str(caught.value)
        == f"{strange}: expected a shard that the manifest beside it names, got another file"
    )
    strange.unlink()
    shards[1].unlink()
    with pytest.raises(rs.StoreError) as caught:
        rs.read(SCHEMA, data)
    assert str(caught.value) == f"{shards[1]}: expected a shard that the manifest names, got no file"
    (data / "manifest.json").unlink()
    with pytest.raises(rs.StoreError) as caught:
        rs.read(SCHEMA, data)
    assert (
        str(caught.value) == f"{data}/train-00001-of-00004.tfrecord: expected 4 shards, got this one missing"
    )


def test_a_shard_of_another_size_than_the_manifest_says_is_refused(data):
    shard = sorted(data.glob("train-*"))[0]
    size = shard.stat().st_size
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(rs.StoreError) as caught:
        rs.read(SCHEMA, data)
    assert str(caught.value) == (
        f"{shard}: expected {size:,} bytes, as the manifest says, got {size - 1:,} (build the dataset again)"
    )


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (
            "features: {n: float32}",
            "features.n.dtype: expected `int64`, as the data was written, got `float32`",
        ),
        (
            "features: {n: {kind: var_len, dtype: int64}}",
            "features.n.kind: expected `fixed_len`, as the data was written, got `var_len`",
        ),
        (
            "features: {n: {dtype: int64, shape: [1]}}",
            "features.n.shape: expected `[]`, as the data was written, got `[1]`",
        ),
        ("features: {m: int64}", "features.m: expected a feature that the data has, got none of this name"),
        ("record: sequence_example\ncontext: {n: int64}", "record: expected example, got sequence_example"),
    ],
)
def test_data_of_another_spec_is_refused(data, wanted, expected):
    with pytest.raises(rs.StoreError) as caught:
        rs.read(rs.Schema.loads(f"schema: s\n{wanted}"), data)
    hint = "(build it again, or read it with its own schema.yaml)"
    assert str(caught.value) == f"{data}: {expected} {hint}"


@pytest.mark.parametrize(
    ("names", "where", "expected", "got"),
    [
        ([*range(40), "x", *range(41, 99)], "[40]", "40", "x"),
        (range(98), "[98]", "98", "null"),
        ("ab", "[0]", "0", "a"),
    ],
)
def test_of_many_classes_the_first_that_differs_is_told(tmp_path, names, where, expected, got):
    text = "schema: s\nfeatures: {label: {kind: label, names: %s}}"
    schema, other = (rs.Schema.loads(text % json.dumps(list(map(str, some)))) for some in (range(99), names))
    rs.write(schema, [{"label": "7"}], tmp_path / "data", progress=False)
    with pytest.raises(rs.StoreError) as caught:
        rs.read(other, tmp_path / "data")
    message = f"features.label.names{where}: expected `{expected}`, as the data was written, got `{got}` "
    assert str(caught.value).partition(": ")[2].startswith(message)


def test_fewer_features_or_new_ones_with_a_default_are_read(data):
    fewer = rs.Schema.loads("schema: s\nfeatures: {n: int64, new: {dtype: string, default: x}}")
    (batch,) = rs.read(fewer, data, batch=ROWS)
    assert batch["n"].numpy().tolist() == list(range(ROWS))
    assert set(batch["new"].numpy()) == {b"x"}


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize("ahead", [0, 1])
def test_workers_have_every_record_once_whatever_order_they_read_in(data, workers, ahead):
    how = from_python(Read, {"batch": 8, "shuffle": {"buffer": 30, "seed": 1}})
    seen = []
    for worker in range(workers):
        dataset = build(how, SCHEMA, plan(expand(data), SCHEMA, Share(workers, worker)))
        if worker:  # in another epoch than the first
            for _ in range(ahead):
                numbers(dataset)
        found = numbers(dataset)
        assert int(dataset.cardinality()) == -(-len(found) // 8)
        seen += found
    assert set(seen) == set(range(ROWS))
    assert len(seen) < ROWS + workers


def test_some_of_the_shards_have_their_own_cardinality(data):
    shard = sorted(data.glob("train-*"))[1]
    assert int(rs.read(SCHEMA, shard).cardinality()) == 25


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"batch": 0}, "batch.size: expected at least 1, got 0"),
        ({"batch": "8"}, "batch: expected a mapping of size, drop_remainder or null, got str '8'"),
        ({"batch": True}, "batch: expected a mapping of size, drop_remainder or null, got bool True"),
        ({"shuffle": 10}, "seed: expected a seed to shuffle by, got none (the order should be one that can be had again)"),
        ({"seed": 1}, "shuffle: expected a buffer for the seed, got none (give shuffle as a number of rows)"),
        ({"interleave": {"cycles": 2}}, "interleave: expected one of cycle, block, parallel, got `cycles` (did you mean `cycle`?)"),
        ({"prefetch": -1}, "prefetch: expected at least 0, or auto, got -1"),
        ({"repeat": 0}, "repeat: expected at least 1, or forever, got 0"),
        ({"bacth": 3}, "expected one of batch, shuffle, interleave, bucket, balance, features, cache, repeat, prefetch, deterministic, corrupt, service, got `bacth` (did you mean `batch`?)"),
    ],
)  # fmt: skip
def test_an_option_that_is_wrong_is_named(data, options, expected):
    with pytest.raises(rs.SpecError) as caught:
        rs.read(SCHEMA, data, **options)
    assert str(caught.value) == expected
