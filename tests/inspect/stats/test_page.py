"""The page of `recordspec stats --html`: whole, and harmless whatever is in the records."""

from __future__ import annotations

import html.parser
import json

from examples import example, file_of
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


class Tags(html.parser.HTMLParser):
    """Finds elements that are not closed, and what a page asks for from elsewhere."""

    EMPTY = ("meta", "line", "rect")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        self.outside += [
            f"{name}={value}" for name, value in attributes if name in ("src", "action", "onload")
        ]
        self.outside += [known["href"]] if not known.get("href", "#").startswith("#") else []
        self.ids += [known["id"]] if "id" in known else []
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in self.EMPTY

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_asks_for_nothing(tmp_path):
    labelled(tmp_path / "data", split={"train": 1, "test": 1})
    report = stats(tmp_path / "data")
    text = page(report, "data")
    tags = Tags()
    tags.feed(text)
    assert (tags.open, tags.outside) == ([], [])
    assert len(set(tags.ids)) == len(tags.ids) == 1 + 4
    assert text.count("<svg ") > 4
    assert "<title>values of many in train</title>" in text
    assert "prefers-color-scheme: dark" in text
