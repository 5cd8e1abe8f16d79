"""Summaries as short texts, and in a notebook."""

from __future__ import annotations

import pytest

import recordspec as rs
from examples import example, file_of
from fragments import Fragment
from labelled_rows import labelled, only
from recordspec.statistics.formatting import of_values, sparkline
from recordspec.statistics.stats import stats


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
    assert str(error.value) == "expected one of test, train, got `trian` (did you mean `train`?)"
