"""The page on Spark runs."""

from __future__ import annotations

import pytest

from test_docs import ROOT, blocks, run

pytestmark = [pytest.mark.services, pytest.mark.newest]

PAGE = (ROOT / "docs/spark.md").read_text()


@pytest.mark.long
def test_the_page_on_spark_runs(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run(PAGE, tmp_path)
    assert names["on_spark"].rows("train") == 3750


def test_its_blocks_are_all_seen():
    languages = [language for language, _ in blocks(PAGE)]
    assert (languages.count("python"), languages.count("yaml"), languages.count("console")) == (7, 2, 3)
