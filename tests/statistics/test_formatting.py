"""Summaries as short texts, and in a notebook."""

from __future__ import annotations

import pytest

import recordspec as rs
from examples import example, file_of
from fragments import Fragment
from labelled_rows import labelled, only
from recordspec.statistics import formatting
from recordspec.statistics.formatting import of_values, sparkline
from recordspec.statistics.stats import stats
from recordspec.store.shard_names import training_first
from recordspec.tables.show import RecordViewer


def test_figures_in_words(tmp_path):
    _, features = only(stats(labelled(tmp_path / "data")))
    assert of_values(features["kind"]) == "3 classes: cat 66.7%, dog 33.3%, fox 0.0%"
    assert (
        of_values(features["id"])
        == "0 to 59, median 29.5, mean 29.5, deviation 17.32, 1.7% zeros; 60 different"
    )
    assert sparkline(features["id"].numbers.histogram) == "█" * 20


def test_a_notebook_shows_a_table_of_each_split_and_the_warnings(tmp_path):
    labelled(tmp_path / "data", split={"train": 1, "test": 1})
    report = rs.stats(tmp_path / "data")
    fragment = Fragment(report._repr_html_())
    names = [summary.feature for summary in report["train"].features]
    assert [row[0] for row in fragment.rows] == ["feature", *names, "feature", *names]
    assert fragment.rows[0] == ["feature", "kind", "no value", "length", "values", "plot"]
    assert fragment.tags.count("li") == len(report.warnings)
    assert "█" in "".join(row[5] for row in fragment.rows)
    assert repr(report).startswith("StatsReport(")


def test_hostile_names_are_escaped_in_a_notebook_and_further_features_are_named(tmp_path):
    evil = "\x1b[31m<script>alert(1)</script>\"'&\u202e\n"
    features = {evil: ("bytes", [evil.encode()])} | {f"n{number:02}": ("int64", [1]) for number in range(25)}
    path = file_of(tmp_path / "evil", [example(features)] * 20)
    text = rs.stats(path)._repr_html_()
    fragment = Fragment(text)
    assert len(fragment.rows) == 1 + 20
    assert fragment.rows[1][0] == "\\x1b[31m<script>alert(1)</script>\"'&\\u202e\\n"
    assert "<summary>6 features more</summary>n19, n20, n21, n22, n23, n24</details>" in text


def test_splits_and_features_are_indexed_by_name(tmp_path):
    labelled(tmp_path / "data", split={"train": 1, "test": 1})
    report = rs.stats(tmp_path / "data")
    train = report["train"]
    assert set(report._ipython_key_completions_()) == {"train", "test"}
    assert [train[name].feature for name in train._ipython_key_completions_()] == [
        summary.feature for summary in train.features
    ]
    with pytest.raises(rs.SpecError) as error:
        report["trian"]
    assert str(error.value) == "expected one of train, test, got `trian` (did you mean `train`?)"


DATES = """
schema: s
features:
  z: {dtype: int64, date: days}
  a: {dtype: int64, date: seconds}
"""


def test_dates_are_dates(tmp_path):
    schema = rs.Schema.loads(DATES)
    for name, year in (("old", 2023), ("new", 2024)):
        days = [f"{year}-{month:02}-01" for month in range(1, 13)]
        rows = [{"z": day, "a": f"{day}T12:00:00"} for day in days]
        rs.write(rows, schema, tmp_path / name, shuffle=None, split="all")
    (split,) = rs.stats(tmp_path / "old").splits
    assert [feature.feature for feature in split.features] == ["z", "a"]  # in the order of the schema
    z, a = (formatting.row(feature)["values"] for feature in split.features)
    ends = "2023-01-01 to 2023-12-01, median 2023-06-16, mean 2023-06-16, deviation 105 days"
    assert z == f"{ends}; 12 different"
    assert a.startswith("2023-01-01 12:00:00 to 2023-12-01 12:00:00, median 2023-06-16 ")
    assert "2023-01-04" in dict(formatting.facts(split["z"], split))["quantiles"]
    assert split["z"].numbers.min == 19358
    assert {line.get("date") for line in rs.stats(tmp_path / "old").lines()} == {None, "days", "seconds"}
    (shown,) = RecordViewer(tmp_path / "old").head(1)
    assert shown["features"] == {"a": "2023-01-01 12:00:00", "z": "2023-01-01"}
    (raw,) = RecordViewer(tmp_path / "old", style="raw").head(1)
    assert raw["features"] == {"a": 19358 * 86400 + 43200, "z": 19358}
    measures = rs.diff(tmp_path / "old", tmp_path / "new").measures
    assert {m.feature: m.at for m in measures if m.measure == "values"} == {
        "a": "2023-01-01 12:00:00",
        "z": "2023-01-01",
    }


def test_boxes_are_counted_and_measured(tmp_path):
    schema = rs.Schema.loads("{schema: s, features: {b: {kind: box, format: xywh}}}")
    rows = [{"b": [[0, 0, 10, 20]] * count} for count in (0, 1, 3)]
    rs.write(rows, schema, tmp_path / "d", shuffle=None, split="all")
    (split,) = rs.stats(tmp_path / "d").splits
    row = formatting.row(split["b"])
    assert row["no value"] == "1 without boxes"
    assert row["length"] == "0 to 3, median 1, mean 1.333"
    assert row["values"] == "width 10; height 20; area 200"
    assert dict(formatting.facts(split["b"], split))["boxes"] == row["length"]


def test_the_class_at_which_labels_differ_most_is_named(tmp_path):
    schema = rs.Schema.loads("{schema: s, features: {side: {kind: label, names: [left, right]}}}")
    for name, sides in (("old", ["left", "right"]), ("new", ["left", "left"])):
        rs.write({"side": sides * 20}, schema, tmp_path / name, split="all")
    (measure,) = [m for m in rs.diff(tmp_path / "old", tmp_path / "new").measures if m.measure == "values"]
    assert (measure.at, measure.distance) == ("left", 0.5)


def test_training_comes_first():
    splits = ["extra", "test", "dev", "Train"]
    assert training_first(splits) == ["Train", "dev", "test", "extra"]
