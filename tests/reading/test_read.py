"""`recordspec.read`: every record once, in an order that the seed fixes, of known cardinality."""

from __future__ import annotations

import pytest
import tensorflow as tf

import recordspec as rs

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
    assert int(rs.read(SCHEMA, data, batch=30, repeat=3).cardinality()) == 10
    endless = rs.read(SCHEMA, data, batch=30, repeat="forever")
    assert int(endless.cardinality()) == tf.data.INFINITE_CARDINALITY
    assert len(numbers(endless.take(5))) == 150


def test_a_map_sees_the_decoded_batch(data):
    dataset = rs.read(SCHEMA, data, batch=50, map=lambda row: {"n": row["n"] * 2})
    assert numbers(dataset) == list(range(0, 2 * ROWS, 2))


def test_without_a_manifest_the_cardinality_is_unknown(data):
    (data / "manifest.json").unlink()
    dataset = rs.read(SCHEMA, data)
    assert int(dataset.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    assert numbers(dataset) == list(range(ROWS))


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
        ({"seed": 1}, "shuffle: expected a buffer for the seed, got none (give shuffle as a number of records)"),
        ({"interleave": {"cycles": 2}}, "interleave: expected one of cycle, block, parallel, got `cycles` (did you mean `cycle`?)"),
        ({"prefetch": -1}, "prefetch: expected at least 0, or auto, got -1"),
        ({"repeat": 0}, "repeat: expected at least 1, or forever, got 0"),
        ({"bacth": 3}, "expected one of batch, shuffle, interleave, cache, repeat, prefetch, deterministic, got `bacth` (did you mean `batch`?)"),
    ],
)  # fmt: skip
def test_an_option_that_is_wrong_is_named(data, options, expected):
    with pytest.raises(rs.SpecError) as caught:
        rs.read(SCHEMA, data, **options)
    assert str(caught.value) == expected
