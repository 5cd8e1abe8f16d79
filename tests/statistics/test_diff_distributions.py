"""`recordspec diff` by distribution."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import example, file_of
from recordspec.errors import RecordError
from recordspec.statistics.diff import diff
from recordspec.statistics.diff_distributions import Cumulative, Shares


def records(rng: np.random.Generator, count: int, shift: float = 0.0, share: float = 0.5) -> list[bytes]:
    made = []
    for value, choice in zip(rng.normal(shift, 1, count), rng.random(count), strict=True):
        features = {"x": ("float32", [float(value)]), "c": ("bytes", [b"a" if choice < share else b"b"])}
        if value > 1:
            features["rare"] = ("int64", [int(choice * 1000)])
        made.append(example(features))
    return made


def large(old: Path, new: Path, **options) -> set[tuple[str, str]]:
    found = diff(old, new, **options)
    assert found.different == any(measure.different for measure in found.measures)
    return {(measure.feature, measure.measure) for measure in found.measures if measure.different}


def test_distributions_that_moved(tmp_path):
    rng = np.random.default_rng(7)
    same = [file_of(tmp_path / f"same{index}", records(rng, 4000)) for index in range(2)]
    shifted = file_of(tmp_path / "shifted", records(rng, 4000, shift=0.5))
    other = file_of(tmp_path / "other", records(rng, 4000, share=0.7))
    assert large(same[0], same[1], threshold=0.1) == set()
    assert large(same[0], shifted, threshold=0.1) == {("x", "numbers"), ("rare", "presence")}
    assert large(same[0], other, threshold=0.1) == {("c", "values")}
    assert large(same[0], other, threshold=0.3) == set()


def test_infinity_that_became_negative(tmp_path):
    old, new = (
        file_of(tmp_path / str(value), [example({"x": ("float32", [value])})] * 1000)
        for value in (float("inf"), float("-inf"))
    )
    assert large(old, new) == {("x", "special")}
    assert {measure.at for measure in diff(old, new).measures if measure.different} <= {"inf", "-inf"}
    assert large(new, new) == set()


def test_numbers_that_are_not_finite_leave_the_others_alike(tmp_path):
    values = [number / 10 for number in range(100)]
    files = [
        file_of(tmp_path / name, [example({"x": ("float32", [value])}) for value in some])
        for name, some in (("old", values), ("new", values + [float("nan")] * 100))
    ]
    measures = {one.measure: one.distance for one in diff(*files).measures if one.feature == "x"}
    assert measures["numbers"] == 0
    assert measures["special"] == 0.5


def test_a_difference_counts_from_the_threshold_on(tmp_path):
    files = [
        file_of(tmp_path / str(many), [example({"n": ("int64", [int(row < many)])}) for row in range(100)])
        for many in (50, 54, 56)
    ]
    assert large(files[0], files[1]) == set()
    assert large(files[0], files[2]) == {("n", "values")}


def test_what_is_not_counted_is_no_difference():
    some = Shares({"a": 60}, 100, most=25)
    assert some.distance(Shares({"a": 60, "b": 40}, 100)) == (pytest.approx(0.15), "b")
    assert some.distance(Shares({"a": 60, "b": 20}, 100, most=20)) == (0, None)
    assert Shares({"a": 60}, 100).distance(Shares({"a": 40}, 100, most=10)) == (pytest.approx(0.2), "a")


def test_the_distance_between_bounds_is_what_it_is_at_least():
    whole = Cumulative.of(np.array([1, 2, 3, 4]), np.array([1, 1, 1, 1]))
    known = Cumulative(np.array([1, 3]), np.array([0.0, 0.25]), whole=False)
    assert known.distance(whole) == (0.25, 2)
    assert whole.distance(known) == (0.25, 2)
    # below 2 there may be as many as below 3
    assert Cumulative(np.array([1, 3]), np.array([0.0, 0.5]), whole=False).distance(whole) == (0.0, 1)


def test_no_rows_are_another_dataset_than_some(tmp_path):
    some, nothing = (file_of(tmp_path / str(count), [example({})] * count) for count in (3, 0))
    (measure,) = diff(some, nothing).measures
    assert (measure.measure, measure.at, measure.different) == ("rows", "no rows in the new one", True)
    (measure,) = diff(nothing, some).measures
    assert (measure.measure, measure.at, measure.different) == ("rows", "no rows in the old one", True)
    assert diff(nothing, nothing).measures == ()


def test_a_split_that_is_gone(tmp_path):
    for folder, splits in (("old", ("train", "test")), ("new", ("train",))):
        (tmp_path / folder).mkdir()
        for split in splits:
            file_of(tmp_path / folder / f"{split}-00000-of-00001.tfrecord", [example({"n": ("int64", [1])})])
    found = [one for one in diff(tmp_path / "old", tmp_path / "new").measures if one.different]
    assert [(one.split, one.measure, one.at) for one in found] == [
        ("test", "rows", "no such split in the new one")
    ]
    found = [one for one in diff(tmp_path / "new", tmp_path / "old").measures if one.different]
    assert [(one.split, one.measure, one.at) for one in found] == [
        ("test", "rows", "no such split in the old one")
    ]


def test_long_strings_that_begin_alike_are_told_apart(tmp_path):
    begin = b"s3://bucket/" + b"x" * 70
    files = [
        file_of(tmp_path / name, [example({"s": ("bytes", [begin + end])}) for end in ends] * 100)
        for name, ends in (("old", (b"a", b"b")), ("new", (b"c", b"d")))
    ]
    assert large(files[0], files[1]) == {("s", "values")}
    (values,) = (one for one in diff(files[0], files[1]).measures if one.measure == "values")
    assert (values.distance, values.at) == (0.5, f"{begin[:64].decode()}...")


def test_what_moved_beside_values(tmp_path):
    nan = float("nan")
    old = [example({"k": ("int64", [1]), "l": ("float32", [0.5] * 2), "n": ("float32", [0.5])}, {})] * 200
    new = [example({"k": ("float32", [1]), "l": ("float32", [0.5] * 3), "n": ("float32", [nan])}, {})] * 200
    steps = [
        example({}, {"s": [("bytes", [b"a"])] * 2}),
        example({}, {"s": [("bytes", [b"\x89PNG\r\n\x1a\n"])] * 5}),
    ]
    old_path, new_path = file_of(tmp_path / "old", old), file_of(tmp_path / "new", new)
    assert large(old_path, new_path) == {("k", "kinds"), ("l", "lengths"), ("n", "special")}
    old_path = file_of(tmp_path / "old", steps[:1] * 200)
    new_path = file_of(tmp_path / "new", steps[1:] * 200)
    assert large(old_path, new_path) == {
        ("s[]", "steps"),
        ("s[]", "sizes"),
        ("s[]", "forms"),
        ("s[]", "values"),
    }


def test_records_that_cannot_be_read_are_no_difference_but_an_error(tmp_path):
    path = file_of(tmp_path / "bad", [example({"n": ("int64", [1])}), b"\x0b"])
    with pytest.raises(RecordError) as error:
        diff(path, path)
    assert str(error.value) == (
        f"{path}: record 1 at byte {path.stat().st_size - 17}: expected an Example or a SequenceExample, "
        "got 1 byte that does not parse"
    )


@pytest.mark.slow
@given(st.lists(st.integers(0, 20), min_size=1), st.lists(st.integers(0, 20), min_size=1))
def test_the_distance_of_points_is_that_of_kolmogorov_and_smirnov(one, other):
    stats = pytest.importorskip("scipy.stats")
    held = [Cumulative.of(*np.unique(some, return_counts=True)) for some in (one, other)]
    assert held[0].distance(held[1])[0] == pytest.approx(stats.ks_2samp(one, other).statistic)


@given(st.lists(st.sampled_from("abc"), min_size=1), st.lists(st.sampled_from("abc"), min_size=1))
def test_the_distance_of_counts_is_the_largest_of_any_share(one, other):
    counts = [Shares({value: some.count(value) for value in some}, len(some)) for some in (one, other)]
    distance, _ = counts[0].distance(counts[1])
    apart = {value: abs(one.count(value) / len(one) - other.count(value) / len(other)) for value in "abc"}
    assert distance == max(apart.values())


def test_a_distance_of_the_threshold_is_no_difference(tmp_path):
    files = [
        file_of(tmp_path / str(many), [example({"n": ("int64", [int(row < many)])}) for row in range(4)])
        for many in (2, 3)
    ]
    assert not diff(*files, threshold=0.25).different
    assert diff(*files, threshold=0.24).different
