"""`recordspec docs`: the pages of the documentation."""

from __future__ import annotations

import json

import pytest

from shell import run

pytestmark = pytest.mark.slow


def test_docs_shows_the_pages_of_the_documentation(capsys):
    listed = run("docs")
    assert '{"page": "building", "title": "Building datasets"}' in listed.stdout.splitlines()
    assert run("docs", "docs/building.md").stdout == run("docs", "building").stdout
    assert run("docs", "building").stdout.startswith("# Building datasets\n")
    for page in map(json.loads, listed.stdout.splitlines()):
        shown = run("docs", page["page"])
        assert shown.returncode == 0
        assert not {"{{", ":::", "```{"} & set(shown.stdout.split())
    wrong = run("docs", "bulding")
    assert wrong.returncode == 2
    assert wrong.stderr == (
        "expected a page that `recordspec docs` lists, got `bulding` (did you mean `building`?)\n"
    )
