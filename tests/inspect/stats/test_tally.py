"""What is counted of parts, put together, is what is counted of the whole; and it is what NumPy says."""

from __future__ import annotations

import math
import statistics
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml
from drawn_values import INTS, places
from hypothesis import given, settings
from hypothesis import strategies as st

import recordspec as rs
from examples import example, file_of
from recordspec.inspect import scan
from recordspec.inspect.stats import stats, summarize, tally
from recordspec.inspect.stats.summary import SHARES
from recordspec.inspect.stats.tally import NumberTally
from recordspec.wire import hashes
from recordspec.wire.arrays import strings_array


@given(st.lists(st.binary(max_size=80), max_size=20), st.binary(max_size=80))
def test_a_string_has_one_hash_wherever_it_stands(strings, other):
    alone = [int(hashes.of_strings(strings_array([one]))[0]) for one in strings]
    assert hashes.of_strings(strings_array(strings)).tolist() == alone
    assert hashes.of_strings(strings_array([other, *strings])).tolist()[1:] == alone
    assert len(set(alone)) == len(set(strings))


KINDS = st.one_of(
    st.just(("none", [])),
    st.tuples(st.just("bytes"), st.lists(st.sampled_from([b"", b"a", b"\xff\0", b"b" * 300]), max_size=3)),
    st.tuples(st.just("float32"), st.lists(st.sampled_from([0.0, 0.5, -3.0]), max_size=3)),
    st.tuples(st.just("int64"), st.lists(st.integers(-5, 5), max_size=3)),
)
KEYS = st.sampled_from(["a", "b", "c"])
RECORDS = st.lists(
    st.tuples(st.dictionaries(KEYS, KINDS), st.dictionaries(KEYS, st.lists(KINDS, max_size=3))), max_size=12
)


@pytest.mark.slow
@given(RECORDS, st.integers(1, 400))
@settings(max_examples=150)
def test_files_in_parts_of_any_size_give_the_same_report(tmp_path_factory, rows, size):
    path = file_of(tmp_path_factory.mktemp("rows") / "records", [example(*row) for row in rows])
    whole = stats(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "_RANGE", size)
        assert without_rounding(stats(path)) == without_rounding(whole)


def without_rounding(report) -> list:
    """Sums of floats depend on their order, in the last digits."""
    return [rounded(line) for line in report.lines()]


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 9) + 0.0 if isinstance(value, float) else value


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=30))
@settings(max_examples=50)
def test_quantiles_and_histograms_are_those_of_numpy(tmp_path_factory, values):
    records = [example({"x": ("float32", [value])}) for value in values]
    (split,) = stats(file_of(tmp_path_factory.mktemp("rows") / "records", records)).splits
    found, held = split.features[0].numbers, np.array(values, np.float64)
    assert list(found.quantiles.values()) == np.quantile(held, SHARES).tolist()
    assert sum(found.histogram.counts) == len(values)
    if found.min < found.max:
        counts, edges = np.histogram(held, summarize._BINS)
        assert found.histogram.counts == tuple(counts.tolist())
        assert found.histogram.edges == tuple(edges.tolist())


@pytest.mark.slow
def test_processes_find_what_one_finds(tmp_path, monkeypatch):
    records = [
        example({"n": ("int64", [number % 7]), "s": ("bytes", [b"%d" % (number % 90)])})
        for number in range(900)
    ]
    file_of(tmp_path / "train-00000-of-00001.tfrecord", records)
    file_of(tmp_path / "test-00000-of-00001.tfrecord", records[:50])
    files = sorted(tmp_path.iterdir())
    assert list(stats(files, jobs=2).lines()) == list(stats(files, jobs=1).lines())


def test_many_files_of_one_split_are_one(tmp_path: Path):
    records = [example({"n": ("int64", [number])}) for number in range(20)]
    whole = file_of(tmp_path / "train-00000-of-00001.tfrecord", records)
    (expected,) = stats(whole).splits
    halves = [
        file_of(tmp_path / f"train-0000{half}-of-00002.tfrecord", records[half * 10 : half * 10 + 10])
        for half in (0, 1)
    ]
    (found,) = stats(halves).splits
    assert found.features == expected.features
    assert (found.files, found.rows) == (2, 20)


def test_small_files_are_counted_together_as_they_are_alone(tmp_path: Path, monkeypatch):
    for number in range(12):
        records = [
            example({"n": ("int64", [row % 3]), "s": ("bytes", [b"%d" % number])}) for row in range(number)
        ]
        if number % 5 == 4:
            records += [b"\xff" * number, example({"n": ("int64", [7])}) * 2]
        split = "test" if number in (5, 6) else "train"
        file_of(tmp_path / f"{split}-{number:05d}-of-00012.tfrecord", records)
    files = sorted(tmp_path.iterdir())
    together = without_rounding(stats(files))
    assert any("record 9 at byte" in str(line) for line in together)
    for module, name, size in [
        (tally, "_GROUP_BYTES", 0),
        (scan, "_SMALL_BYTES", 0),
        (scan, "_MOST_SMALL", 2),
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, size)
            assert without_rounding(stats(files)) == together


LARGE = [2**62 + 2, 2**62 + 3, 2**62 + 7, 2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1, 2**52 + 1, 0, -5]


@given(st.lists(st.sampled_from(LARGE), min_size=1, max_size=50), st.integers(0, 4))
@settings(max_examples=100)
def test_numbers_that_no_float_tells_are_told(numbers, near):
    values = np.array([LARGE[near] + one % 5 for one in range(len(numbers))] if near < 3 else numbers)
    counted = NumberTally("int64")
    counted.add(values, places(len(values)))
    found = summarize.number_summary(counted)
    assert all(found.min <= one <= found.max for one in found.quantiles.values())
    if len(set(values.tolist())) == 1:
        assert set(found.quantiles.values()) == {found.min}
    if near < 3:
        edges, counts = found.histogram.edges, found.histogram.counts
        assert list(edges) == list(range(int(values.min()), int(values.max()) + 2))
        assert list(counts) == [int((values == edge).sum()) for edge in edges[:-1]]


def summary_of(values: np.ndarray) -> summarize.NumberSummary:
    counted = NumberTally("int64")
    counted.add(values, places(len(values)))
    return summarize.number_summary(counted)


def check_integers(values: list[int]) -> None:
    """Compares with the exact percentiles of the standard library, and with bins counted one by one."""
    found = summary_of(np.array(values, np.int64))
    percentiles = statistics.quantiles(values, n=100, method="inclusive")
    for share, one in found.quantiles.items():
        expected = percentiles[round(share * 100) - 1]
        assert one == expected if abs(expected) < 1 << 52 else 0 <= one - expected < 1 << 11
    assert found.rank_error == 0.0
    edges = found.histogram.edges
    counts = [sum(math.ceil(low) <= one < high for one in values) for low, high in pairwise(edges)]
    assert list(found.histogram.counts) == counts
    assert sum(counts) == len(values)


def test_one_far_integer_leaves_the_quantiles_of_the_others():
    near, least, most = [*range(1, 101)], -(2**63), 2**63 - 1
    quantiles = summary_of(np.array([*near, least])).quantiles
    assert list(quantiles.values()) == [1, 5, 25, 50, 75, 95, 99]
    for far in ([least], [most], [least, most], [least] * 3, [most] * 40, [2**53 + 1], [-(2**62)]):
        check_integers([*near, *far])
        check_integers([*(one - 50 for one in near), *far])
    # more than are sampled
    values = np.concatenate([np.arange(100_000), np.full(1000, least), np.full(1000, most)])
    found, ordered = summary_of(values), np.sort(values)
    assert 0 < found.rank_error < 0.013
    for share, one in found.quantiles.items():
        rank = np.searchsorted(ordered, int(one)) / len(values)
        assert abs(rank - share) <= found.rank_error


@given(INTS.filter(lambda values: len(values) > 1))
@settings(max_examples=200)
def test_the_quantiles_and_bins_of_any_integers_are_exact(values):
    check_integers(values)


def test_each_of_many_classes_is_counted(tmp_path):
    names = [f"c{index}" for index in range(6000)]
    schema = rs.Schema.loads(
        yaml.safe_dump({"schema": "s", "features": {"y": {"kind": "label", "names": names}}})
    )
    records = [example({"y": ("int64", [index])}) for index in range(1, 6000)] * 2
    for part in range(2):
        file_of(
            tmp_path / f"x-0000{part}-of-00002.tfrecord",
            records[part::2] + [example({"y": ("int64", [7000])})],
        )
    ((found,),) = (split.features for split in stats(tmp_path, schema).splits)
    assert set(found.classes.counts) == {("c0", 0), *((name, 2) for name in names[1:])}
    assert found.classes.unnamed == 2
    assert found.warnings[:2] == (
        "has 2 values without a class name",
        "never has 1 of its 6,000 classes: `c0`",
    )
