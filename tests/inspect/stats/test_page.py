"""The page of `recordspec stats --html`: whole, and harmless whatever is in the records."""

from __future__ import annotations

import json

import pytest

import recordspec as rs
from examples import example, file_of
from fragments import Fragment
from labelled_rows import labelled
from recordspec.inspect.stats import stats
from recordspec.inspect.stats.page import page
from shell import run_here as run


def test_hostile_text_is_shown_harmless(tmp_path):
    evil = "\x1b[31m<script>alert(1)</script>\"'&\u202e"
    records = [example({evil: ("bytes", [evil.encode()]), "n": ("int64", [1])})] * 20
    path = file_of(tmp_path / "evil", records)
    done = run("stats", path, "--html", tmp_path / "none/page.html")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"`{tmp_path}/none` does not exist\n"
    done = run("stats", path, "--html", tmp_path / "page.html")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert json.loads(done.stdout.splitlines()[1])["feature"] == evil
    text = (tmp_path / "page.html").read_text()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "<script" not in text
    assert "\\x1b[31m&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;&amp;\\u202e" in text


def test_the_page_is_whole_and_asks_for_nothing(tmp_path):
    labelled(tmp_path / "data", split={"train": 1, "test": 1})
    report = stats(tmp_path / "data")
    text = page(report, "data")
    ids = Fragment(text).ids
    assert len(set(ids)) == len(ids) == 1 + 4
    assert text.count("<svg ") > 4
    assert "<title>values of many in train</title>" in text
    assert "prefers-color-scheme: dark" in text


# ---- in a notebook ----


def test_a_notebook_shows_a_table_of_each_split_and_the_warnings(tmp_path):
    labelled(tmp_path / "data", split={"train": 1, "test": 1})
    report = rs.stats(tmp_path / "data")
    fragment = Fragment(report._repr_html_())
    names = [summary.feature for summary in report["train"].features]
    assert [row[0] for row in fragment.rows] == ["feature", *names, "feature", *names]
    assert fragment.rows[0] == ["feature", "kind", "no value", "length", "values", "plot"]
    assert fragment.tags.count("svg") == 2 * 4
    assert fragment.tags.count("li") == len(report.warnings)
    assert '; fill: currentColor"><svg ' in report._repr_html_()
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
