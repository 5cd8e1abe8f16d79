"""Several datasets as one: which is drawn, when it ends, and how many there are."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {n: int64, words: {kind: var_len, dtype: int64}}")


@pytest.fixture(scope="module", params=["rows", {"blocks": 16}], ids=["rows", "blocks"])
def folders(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("mixture")
    for name, first, count in (("a", 0, 600), ("b", 1000, 300)):
        rows = [{"n": first + n, "words": [n] * (n % 3)} for n in range(count)]
        rs.write(rows, SCHEMA, folder / name, layout=request.param, shards=2)
    return folder / "a", folder / "b"


def single(folders):
    return [rs.read(folder, SCHEMA) for folder in folders]


def numbers(dataset) -> list[int]:
    return [number for element in dataset for number in np.ravel(element["n"]).tolist()]


def drawn(dataset, count: int) -> Counter:
    return Counter(number // 1000 for number in islice(numbers(dataset), count))


def test_all_have_every_element_once_in_its_order(folders):
    mixed = rs.mix(single(folders), [1, 2], seed=3, end="all")
    assert int(mixed.cardinality()) == 900
    found = numbers(mixed)
    assert [number for number in found if number < 1000] == list(range(600))
    assert [number for number in found if number >= 1000] == list(range(1000, 1300))


def test_elements_are_drawn_by_weight(folders):
    endless = [dataset.repeat() for dataset in single(folders)]
    for weights, expected in [([1, 3], 0.75), (None, 0.5), ([9.5, 0.5], 0.05)]:
        found = drawn(rs.mix(endless, weights, seed=3).take(4000), 4000)
        assert found[1] == pytest.approx(4000 * expected, abs=4 * (4000 * expected * (1 - expected)) ** 0.5)


def test_the_first_that_runs_out_is_the_end(folders):
    mixed = rs.mix(single(folders), [1, 4], seed=3)
    assert int(mixed.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    found = numbers(mixed)
    assert [number for number in found if number >= 1000] == list(range(1000, 1300))
    assert 0 < sum(number < 1000 for number in found) < 150


def test_one_without_an_end_does_not_hide_that_of_another(folders):
    first, second = single(folders)
    mixed = rs.mix([first.repeat(), second], seed=3)
    assert int(mixed.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    assert sum(number >= 1000 for number in numbers(mixed)) == 300
    for end in ("first", "all"):
        endless = rs.mix([first.repeat(), second.repeat()], seed=3, end=end)
        assert int(endless.cardinality()) == tf.data.INFINITE_CARDINALITY
    assert (
        int(rs.mix([first.repeat(), second], seed=3, end="all").cardinality()) == tf.data.INFINITE_CARDINALITY
    )


def test_one_dataset_stays_what_it_is(folders):
    (first, _) = single(folders)
    mixed = rs.mix([first], seed=3)
    assert int(mixed.cardinality()) == 600
    assert numbers(mixed) == list(range(600))


def test_the_draws_are_a_function_of_seed_and_epoch(folders):
    mixed = rs.mix(single(folders), seed=3, end="all")
    epochs = [numbers(mixed) for _ in range(2)]
    assert epochs[0] != epochs[1]
    tf.random.set_seed(5)
    try:
        again = rs.mix(single(folders), seed=3, end="all")
        assert [numbers(again) for _ in range(2)] == epochs
    finally:
        tf.random.set_seed(None)
    assert numbers(rs.mix(single(folders), seed=4, end="all")) != epochs[0]
    assert numbers(rs.mix(single(folders), seed=3, end="all").repeat(2)) == epochs[0] + epochs[1]


def test_datasets_that_shuffle_go_on_to_their_next_epoch(folders):
    mixed = rs.mix(
        [rs.read(folder, SCHEMA, batch=10, shuffle=100, seed=1) for folder in folders], seed=3, end="all"
    )
    assert int(mixed.cardinality()) == 90
    first, second = numbers(mixed), numbers(mixed)
    assert sorted(first) == sorted(second) == [*range(600), *range(1000, 1300)]
    ours = [[number for number in epoch if number < 1000] for epoch in (first, second)]
    assert ours[0] != ours[1]
    assert ours == [
        numbers(dataset) for dataset in [rs.read(folders[0], SCHEMA, batch=10, shuffle=100, seed=1)] * 2
    ]


def test_a_checkpoint_of_the_iterator_goes_on(folders, tmp_path):
    def iterator():
        return iter(rs.mix(single(folders), seed=3, end="all"))

    one = iterator()
    for _ in range(400):
        next(one)
    path = tf.train.Checkpoint(iterator=one).write(str(tmp_path / "kept"))
    rest = numbers(one)
    other = iterator()
    tf.train.Checkpoint(iterator=other).read(path)
    assert numbers(other) == rest
    assert len(rest) == 500


def test_what_cannot_be_mixed_is_named(folders):
    first, second = single(folders)
    hint = "(elements must be of the type that they have in the first dataset)"
    other = second.map(lambda row: {"n": tf.cast(row["n"], tf.int32), "word": row["words"]})
    for datasets, options, expected in [
        ([], {}, ["datasets: expected at least one dataset, got none"]),
        ([first], {"weights": [1, 2]}, ["weights: expected 1 weights, as many as datasets, got 2"]),
        (
            [first, second],
            {"weights": [0, float("nan")]},
            [
                "weights[0]: expected a weight above 0, got 0",
                "weights[1]: expected a weight above 0, got nan",
            ],
        ),
        ([first], {"end": "last"}, ["end: expected one of first, all, got `last`"]),
        (
            [first, other],
            {},
            [
                "datasets[1].n: expected TensorSpec(shape=(), dtype=tf.int64, name=None), "
                f"got TensorSpec(shape=(), dtype=tf.int32, name=None) {hint}",
                "datasets[1].words: expected TensorSpec(shape=(None,), dtype=tf.int64, name=None), "
                f"got none {hint}",
                "datasets[1].word: expected none, "
                f"got TensorSpec(shape=(None,), dtype=tf.int64, name=None) {hint}",
            ],
        ),
    ]:
        with pytest.raises(rs.SpecError) as caught:
            rs.mix(datasets, seed=1, **options)
        assert str(caught.value).splitlines() == expected
    pairs = [dataset.map(lambda row: (row["n"], row["words"])) for dataset in (first, second)]
    with pytest.raises(rs.SpecError, match=r"datasets\[1\]\[1\]: expected Tensor"):
        rs.mix([pairs[0], pairs[1].map(lambda n, words: (n, n))], seed=1)
