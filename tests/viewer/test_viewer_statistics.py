"""The bars of the page: the condition of each finds as many rows as it says; what a dataset keeps; comparisons."""

from __future__ import annotations

import datetime
import json
import math

import numpy as np
import pytest

import recordspec as rs
from recordspec.statistics.value_counts import bin_edges
from recordspec.store.dataset import StoredDataset
from recordspec.store.scan import Scanner
from recordspec.tables.scan_columns import columns_of
from recordspec.tables.sql import Condition
from recordspec.viewer.distributions import Side, compared, drawn, statistics
from recordspec.viewer.jobs import JobProgress
from some_records import example, sequence_example, write

SCHEMA = """
schema: s
features:
  n: int64
  flag: int64
  half: {dtype: float32, default: 0.0, with_missing: true}
  narrow: {dtype: float32}
  text: {kind: text}
  long: {kind: text}
  side: {kind: label, names: [left, right, "it's"]}
  day: {dtype: int64, date: days}
  few: {kind: var_len, dtype: int64}
  parts: {kind: var_len, dtype: float32}
  tags: {kind: var_len, dtype: string}
  sides: {kind: label, names: [up, down], shape: [null]}
  matrix: {dtype: float32, shape: [2, 2]}
  data: string
  given: {dtype: float32, default: 0.0}
  spots: {kind: box, format: xywh}
"""


def rows():
    draws = np.random.default_rng(3)
    for row in range(700):
        yield {
            "n": row % 50 - 20,
            "flag": int(row % 3 == 0),
            "half": None if row % 7 == 0 else float(draws.normal()),
            "narrow": float(np.float32(0.1) + row % 9 * np.float32(0.1)),
            "text": ('{"a": 1}{0}', 'an "ant"', "it's")[row % 3],
            "long": "x" * (row % 10 * 8),
            "side": row % 3,
            "day": datetime.date(2020, 1, 1 + row % 28),
            "few": list(range(row % 4)),
            "parts": draws.normal(size=row % 3),
            "tags": ["Red", "blue"][: row % 3],
            "sides": [row % 2] * (row % 3),
            "matrix": [[row, 1], [2, 3]],
            "data": b"\xff" * (row % 5),
            "given": None if row % 5 == 0 else 1.5,
            "spots": [[0, 0, 2, 3]] * (row % 3),
        }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("statistics") / "d"
    rs.write(rows(), rs.Schema.loads(SCHEMA), folder, shuffle=None, split={"train": 80, "test": 20})
    return folder


def of(scanner):
    return columns_of(scanner, is_decoded=False, binary=frozenset())


def made(scanner, **options):
    some = []
    whole = statistics(scanner, of(scanner), None, JobProgress(), some.append)
    return some, whole


@pytest.mark.slow
@pytest.mark.newest
def test_the_condition_of_each_bar_finds_its_rows(folder):
    scanner = Scanner.of_rows(StoredDataset.of([*folder.glob("train*")]))
    _, whole = made(scanner)
    charts = {
        (feature["name"], chart["of"]): chart["bars"]
        for feature in whole["features"]
        for chart in feature["splits"]["train"]["charts"]
    }
    have = {place for place, bars in charts.items() if all(where for _, _, where in bars)}
    assert have == {
        ("n", "values"), ("n", "different values"), ("flag", "values"), ("flag", "different values"),
        ("half", "values"), ("half", "without a value"), ("narrow", "values"), ("text", "different values"),
        ("text", "bytes"),  ("long", "bytes"), ("side", "classes"),
        ("few", "values"), ("few", "most frequent values"), ("few", "lengths of lists"), ("parts", "values"),
        ("parts", "lengths of lists"), ("tags", "most frequent values"), ("tags", "lengths of lists"),
        ("sides", "classes"), ("sides", "lengths of lists"), ("data", "bytes"), ("few", "without a value"), ("tags", "without a value"), ("parts", "without a value"), ("sides", "without a value"), ("given", "without a value"), ("given", "values"), ("day", "values"), ("day", "different values"), ("spots", "boxes"), ("spots", "records"),
    }  # fmt: skip
    of_values = {
        ("few", "values"),
        ("parts", "values"),
        ("sides", "classes"),
        ("few", "most frequent values"),
    }
    for place in have:
        for text, count, where in charts[place]:
            found = sum(map(len, Condition(where, scanner).matching(scanner.batches())))
            if place in of_values:  # of which a row may have several
                assert 0 < found <= count or found == count == 0, (place, text, where)
            else:
                assert found == count, (place, text, where)


def test_the_first_rows_are_told_before_all_and_a_dataset_keeps_what_was_counted(folder, monkeypatch):
    (folder / "statistics.json").unlink(missing_ok=True)
    scanner = Scanner.of_rows(StoredDataset.of(folder))
    (first,), whole = made(scanner)
    assert (first["first"], whole["first"]) == (2000, None)
    assert [split["rows"] for split in whole["splits"]] == [
        scanner.dataset.manifest.rows(name) for name in ("train", "test")
    ]
    assert json.loads(json.dumps(whole)) == made(scanner)[1]
    assert made(Scanner.of_rows(StoredDataset.of(folder)))[0] == []  # it was kept
    assert rs.Manifest.load(folder) == scanner.dataset.manifest
    kept = json.loads((folder / "statistics.json").read_text())
    assert json.loads(json.dumps(whole)) == kept["statistics"]
    for spoilt in ("{}", "[", json.dumps({**kept, "of": ["other"]}), '"' * 10_000):
        (folder / "statistics.json").write_text(spoilt)
        assert len(made(Scanner.of_rows(StoredDataset.of(folder)))[0]) == 1, spoilt
    (folder / "statistics.json").unlink()
    some = Scanner.of_rows(StoredDataset.of([*folder.glob("train*")]))
    made(some)
    assert not (folder / "statistics.json").exists()
    assert statistics(scanner, of(scanner), None, JobProgress(), None)["first"] == 2000


def test_a_rebuilt_dataset_has_no_old_statistics(tmp_path):
    schema = rs.Schema.loads("{schema: s, features: {n: int64}}")
    rs.write({"n": [1, 2]}, schema, tmp_path / "d")
    assert made(Scanner.of_rows(StoredDataset.of(tmp_path / "d")))[1]["splits"][0]["rows"] == 2
    rs.write({"n": [1, 2, 3]}, schema, tmp_path / "d", force=True)
    assert not (tmp_path / "d" / "statistics.json").exists()


def test_two_sides_are_compared_by_distribution_and_by_key(tmp_path):
    schema = rs.Schema.loads("{schema: s, features: {n: int64, m: float32}}")
    for name, shift in (("a", 0), ("b", 5)):
        several = {"n": [row + shift for row in range(100)], "m": [float(row + shift) for row in range(100)]}
        rs.write(several, schema, tmp_path / name, key="n", shuffle=None)
    sides = [Scanner.of_rows(StoredDataset.of(tmp_path / name)) for name in ("a", "b")]
    old, new = (
        Side(name=name, scanner=s, split=None, columns=of(s)) for name, s in zip("ab", sides, strict=True)
    )
    both = compared((old, new), JobProgress())
    assert [split["name"] for split in both["splits"]] == ["a", "b"]
    assert both["keys"] == {"old": 100, "new": 100, "added": 5, "removed": 5, "moved": 0, "changed": 0}
    (numbers,) = [m for m in both["measures"] if m["key"] == "features/m" and m["of"] == "numbers"]
    assert numbers["distance"] == pytest.approx(0.05, abs=0.011)
    one_split = Side(name="a", scanner=sides[0], split="train", columns=of(sides[0]))
    same = compared((one_split, Side(name="c", scanner=sides[0], split="train", columns={})), JobProgress())
    assert {measure["distance"] for measure in same["measures"]} == {0.0}
    assert same["keys"] is None


def test_without_columns_no_bar_has_a_condition(folder):
    report = drawn(rs.stats(folder), {})
    wheres = [
        bar[2]
        for f in report["features"]
        for s in f["splits"].values()
        for c in s["charts"]
        for bar in c["bars"]
    ]
    assert len(wheres) > 50
    assert set(wheres) == {None}


def charts_of(path, schema=None):
    scanner = Scanner.of_rows(StoredDataset.of(path, schema))
    report = drawn(rs.stats(path, schema), of(scanner))
    for feature in report["features"]:
        for chart in feature["splits"]["all"]["charts"]:
            for bar in chart["bars"]:
                yield scanner, feature["key"], chart["of"], bar


@pytest.mark.parametrize(
    ("values", "ends"),
    [([0.5, 3.25, 9.5], ["0.5", "9.5"]), ([2.5, 2.5], ["2.5", "2.5"]), ([1, 10], ["1", "10"])],
)
def test_the_ends_of_an_axis_are_integers_for_integers_only(tmp_path, values, ends):
    report = drawn(rs.stats(write(tmp_path / "x", *(example(x=[value]) for value in values))), {})
    (chart,) = [chart for chart in report["features"][0]["splits"]["all"]["charts"] if "ends" in chart]
    assert chart["ends"] == ends


def test_bins_of_floats_whose_edges_lie_between_integers(tmp_path):
    path = write(tmp_path / "x", *(example(x=[0.5 + row % 21]) for row in range(210)))
    for scanner, _, _, (text, count, where) in charts_of(path):
        assert sum(map(len, Condition(where, scanner).matching(scanner.batches()))) == count, text


def test_lists_that_are_not_there_are_found(tmp_path):
    schema = rs.Schema.loads("{schema: s, features: {n: int64, few: {kind: var_len, dtype: int64}}}")
    records = [example(n=[row], **({"few": [1] * (row % 3)} if row % 5 else {})) for row in range(100)]
    path = write(tmp_path / "x", *records)
    (bar,) = [(s, bar) for s, key, of_chart, bar in charts_of(path, schema) if of_chart == "without a value"]
    scanner, (_, count, where) = bar
    assert sum(map(len, Condition(where, scanner).matching(scanner.batches()))) == count == 47


def test_a_feature_of_the_context_and_one_of_steps_with_its_name_are_told_apart(tmp_path):
    records = [sequence_example({"x": [[row * 7]] * 3}, x=[row]) for row in range(40)]
    path = write(tmp_path / "x", *records)
    wheres = {key: bar[2] for _, key, of_chart, bar in charts_of(path) if of_chart == "values"}
    assert wheres["sequence/x"] is None
    assert '"x"' in wheres["features/x"]


@pytest.mark.parametrize("low", [-(2**63), 2**52 - 300, 2**62])
def test_bars_of_large_integers_find_the_rows_that_they_count(tmp_path, low):
    """A float has no integers from 2^53 on."""
    values = [low, 2**63 - 1, *[2**62 + 1] * 10, *range(2**53, 2**53 + 40), low + 700, low + 701]
    values += [math.ceil(edge) for edge in bin_edges(low, 2**63 - 1, integers=True)[1:-1]]
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64}")
    rs.write([{"n": value} for value in values], schema, tmp_path / "data", shuffle=None)
    scanner = Scanner.of_rows(StoredDataset.of([*(tmp_path / "data").glob("train*.tfrecord")]))
    _, whole = made(scanner)
    (feature,) = whole["features"]
    (chart,) = [chart for chart in feature["splits"]["train"]["charts"] if chart["of"] == "values"]
    for text, count, where in chart["bars"]:
        assert sum(map(len, Condition(where, scanner).matching(scanner.batches()))) == count, (text, where)
    assert sum(count for _, count, _ in chart["bars"]) == len(values)
