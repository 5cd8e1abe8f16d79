"""Summaries as short texts."""

from __future__ import annotations

from labelled_rows import labelled, only
from recordspec.inspect.stats import stats
from recordspec.inspect.stats.formatting import of_values, sparkline


def test_figures_in_words(tmp_path):
    _, features = only(stats(labelled(tmp_path / "data")))
    assert of_values(features["kind"]) == "3 classes: cat 66.7%, dog 33.3%, fox 0.0%"
    assert (
        of_values(features["id"])
        == "0 to 59, median 29.5, mean 29.5, deviation 17.32, 1.7% zeros; 60 different"
    )
    assert sparkline(features["id"].numbers.histogram) == "█" * 20
