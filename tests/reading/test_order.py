"""The order of rows, through `reading.stages`, `reading.shuffle_buffer` and `reading.transformations`.

It is a function of seed and epoch; reading goes on in it after a break.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import recordspec as rs
from selection import scaled

SCHEMA = rs.Schema.loads("""
schema: s
features:
  n: int64
  words: {kind: var_len, dtype: int64}
  filler: {kind: fixed_len, dtype: string, default: ""}
""")
# Large rows are put in order one by one, others in pools.
FORMS = {"rows": ("rows", 0), "blocks": ({"blocks": 16}, 0), "large": ("rows", 9000)}


def write(folder, form: str, numbers, **options) -> None:
    layout, filler = FORMS[form]
    columns = {
        "n": numbers,
        "words": [[number] * (number % 4) for number in numbers],
        "filler": ["x" * filler] * len(numbers),
    }
    rs.write(columns, SCHEMA, folder, layout=layout, **options)


@pytest.fixture(scope="module", params=FORMS)
def data(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("order") / "data"
    write(folder, request.param, np.arange(1000), shards=7)
    return folder


def numbers(dataset) -> list[list[int]]:
    return [batch["n"].numpy().reshape(-1).tolist() for batch in dataset]


def epochs(data, count: int = 2, **options) -> list[list[list[int]]]:
    dataset = rs.read(data, SCHEMA, **{"batch": 32, "shuffle": 200, "seed": 7, **options})
    return [numbers(dataset) for _ in range(count)]


@pytest.fixture(scope="module")
def expected(data):
    """The first two epochs, read without any other option."""
    return epochs(data)


def test_every_epoch_has_every_row_once_in_an_order_of_its_own(data, expected):
    first, second, third = epochs(data, 3)
    assert [first, second] == expected
    for epoch in (first, second, third):
        assert sorted(number for batch in epoch for number in batch) == list(range(1000))
        assert [len(batch) for batch in epoch] == [32] * 31 + [8]
    assert first != second != third != first
    assert epochs(data, 1, seed=8) != [first]


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_one_file_come_in_another_order_each_epoch(tmp_path, form):
    write(tmp_path / "data", form, np.arange(100), shards=1)
    first, second = epochs(tmp_path / "data")
    other, _ = epochs(tmp_path / "data", seed=8)
    assert first != second
    assert other not in (first, second)


def test_epochs_are_the_same_repeated_or_iterated_anew(data, expected):
    (repeated,) = epochs(data, 1, repeat=2)
    assert repeated == [batch for epoch in expected for batch in epoch]


def test_the_order_is_that_of_any_parallelism(data):
    mixed = {"cycle": 4, "block": 8}
    one_by_one = epochs(data, interleave=mixed)
    for parallel in (1, 2, 16, "auto"):
        assert epochs(data, interleave={**mixed, "parallel": parallel}) == one_by_one, parallel


def test_no_seed_of_the_program_changes_the_order(data, expected):
    tf.keras.utils.set_random_seed(3)
    try:
        assert epochs(data) == expected
    finally:
        tf.random.set_seed(None)


def test_lists_stay_with_their_rows(data):
    for batch in rs.read(data, SCHEMA, batch=32, shuffle=200, seed=7):
        for number, words in zip(batch["n"].numpy().tolist(), batch["words"].to_list(), strict=True):
            assert words == [number] * (number % 4)


def test_an_iterator_that_nobody_reads_is_no_pass(data, expected):
    """Keras makes two for each epoch."""
    dataset = rs.read(data, SCHEMA, batch=32, shuffle=200, seed=7)
    found = []
    for _ in range(2):
        found.append(numbers(iter(dataset)))
        iter(dataset)
    assert found == expected


PLACES = st.tuples(st.integers(0, 3), st.integers(0, 40))


@given(
    st.integers(1, 300),
    st.integers(1, 40),
    st.integers(1, 400),
    PLACES,
    st.sampled_from(sorted(FORMS)),
    st.booleans(),
)
@settings(max_examples=scaled(6))
def test_a_start_gives_what_is_left(tmp_path_factory, rows, batch, buffer, place, form, shuffled):
    folder = tmp_path_factory.mktemp("start") / "data"
    write(folder, form, np.arange(rows), shards=min(rows, 3))
    options = {"batch": batch} | ({"shuffle": buffer, "seed": 5} if shuffled else {})
    steps = -(-rows // batch)
    epoch, step = place[0], place[1] % steps
    whole = rs.read(folder, SCHEMA, **options)
    expected = [numbers(whole) for _ in range(epoch + 2)]
    resumed = rs.read(folder, SCHEMA, **options, start=(epoch, step))
    assert int(resumed.cardinality()) == steps
    assert [numbers(resumed), numbers(resumed)] == [expected[epoch][step:], expected[epoch + 1]]
    repeated = rs.read(folder, SCHEMA, **options, start=(epoch, step), repeat=2)
    assert numbers(repeated) == expected[epoch][step:] + expected[epoch + 1]


IN_A_PROCESS = """
import json, sys
import recordspec as rs
for folder in sys.argv[1:]:
    schema = rs.Schema.load(folder + "/schema.yaml")
    dataset = rs.read(folder, schema, batch=10, shuffle=100, seed=7, start=(2, 57))
    print(json.dumps([batch["n"].numpy().tolist() for batch in dataset]))
"""


@pytest.mark.tensorflow
def test_a_new_process_goes_on_where_another_stopped(tmp_path):
    folders = [tmp_path / form for form in FORMS]
    for folder, form in zip(folders, FORMS, strict=True):
        write(folder, form, np.arange(1000), shards=7)
    command = [sys.executable, "-c", IN_A_PROCESS, *map(str, folders)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert found.returncode == 0, found.stderr
    for folder, line in zip(folders, found.stdout.splitlines()[-len(folders) :], strict=True):
        whole = rs.read(folder, SCHEMA, batch=10, shuffle=100, seed=7)
        third = [numbers(whole) for _ in range(3)][2]
        assert json.loads(line) == third[57:]


def test_a_checkpoint_of_the_iterator_goes_on_too(data, tmp_path):
    def iterator():
        return iter(rs.read(data, SCHEMA, batch=10, shuffle=100, seed=7, repeat=3))

    one = iterator()
    for _ in range(130):
        next(one)
    path = tf.train.Checkpoint(iterator=one).write(str(tmp_path / "kept"))
    rest = numbers(one)
    other = iterator()
    tf.train.Checkpoint(iterator=other).read(path)
    assert numbers(other) == rest
    assert len(rest) == 170


def test_a_start_that_is_none_is_named(data):
    for start, expected in [
        (
            (0, 100),
            "start.step: expected at most 32, the steps of an epoch, got 100 (over all epochs, it is (3, 4))",
        ),
        ((-1, 0), "start.epoch: expected 0 or more, got -1"),
        (5, "start: expected a position, or a pair of epoch and step, got 5"),
    ]:
        for repeat in (1, "forever"):
            with pytest.raises(rs.SpecError) as caught:
                rs.read(data, SCHEMA, batch=32, shuffle=10, seed=1, start=start, repeat=repeat)
            assert str(caught.value) == expected


@pytest.mark.parametrize("repeat", [1, 3, "forever"])
def test_a_start_after_the_last_step_goes_on_with_the_next_epoch(data, repeat):
    """As `position` gives it when an epoch has just ended."""
    options = {"batch": 32, "shuffle": 10, "seed": 1, "repeat": repeat}
    found = rs.read(data, SCHEMA, start=(0, 32), **options)
    next_one = rs.read(data, SCHEMA, start=(1, 0), **options)
    if repeat == 1:
        assert numbers(found) == []
        assert numbers(found) == numbers(next_one)
    else:
        assert numbers(found.take(40)) == numbers(next_one.take(40))


def test_the_count_of_passes_lives_as_long_as_the_dataset(data):
    dataset = rs.read(data, SCHEMA, batch=32, shuffle=200, seed=7).map(lambda features: features)
    gc.collect()
    assert numbers(dataset) != numbers(dataset)


@pytest.mark.parametrize("form", FORMS)
def test_rows_sorted_by_class_are_mixed(tmp_path, form):
    """Neighbours of one class are as many as chance has it, within a tenth."""
    classes, rows = 10, 10_000 if form == "large" else 50_000
    write(tmp_path / "data", form, np.arange(rows) * classes // rows, shards=20, key=None)
    dataset = rs.read(tmp_path / "data", SCHEMA, batch=100, shuffle=rows // 5, seed=1)
    found = [number for batch in numbers(dataset) for number in batch]
    share = np.mean([one == other for one, other in pairwise(found)])
    assert share == pytest.approx(1 / classes, rel=0.1)


@pytest.mark.parametrize(
    ("layout", "shape"),
    [("rows", "shape: [4]"), ("rows", "kind: var_len"), ({"blocks": 16}, "shape: [4]")],
    ids=["rows", "ragged rows", "blocks"],
)
@pytest.mark.parametrize("options", [{}, {"shuffle": 200, "seed": 7}], ids=["in order", "shuffled"])
def test_an_epoch_instantiates_no_function_of_dataset_methods(layout, shape, options, tmp_path, monkeypatch):
    """Each costs milliseconds an epoch, see reading/transformations.py."""
    schema = rs.Schema.loads(f"schema: s\nfeatures: {{n: int64, x: {{dtype: float32, {shape}}}}}")
    rs.write(
        {"n": np.arange(100), "x": np.zeros((100, 4))}, schema, tmp_path / "data", layout=layout, shards=3
    )
    # tf.data.TFRecordDataset, which reads files in turn, is itself a flat_map
    methods = ("map", "interleave", "filter", "scan", "rebatch") + (("flat_map",) if options else ())
    for method in methods:
        monkeypatch.setattr(tf.data.Dataset, method, None)
    dataset = rs.read(tmp_path / "data", schema, batch=32, **options)
    gc.collect()  # functions live as long as the dataset
    monkeypatch.undo()
    assert sorted(number for batch in numbers(dataset) for number in batch) == list(range(100))
