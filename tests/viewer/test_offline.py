"""The page of `recordspec stats --html`: whole, and harmless whatever is in the records."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256

from examples import example, file_of
from labelled_rows import labelled
from recordspec.statistics.stats import stats
from recordspec.viewer.offline import SCRIPTS, page
from shell import run_here as run


def data_of(text: str):
    (data,) = re.findall(r'<script type="application/json" id="data">(.*)</script>', text)
    return json.loads(data)


def test_hostile_text_is_data_only(tmp_path):
    evil = "\x1b[31m</script><script>alert(1)</script>\"'&\u202e"
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
    assert "alert(1)<" not in text
    assert text.count("<script") == text.count("</script>") == 1 + len(SCRIPTS)
    assert data_of(text)["statistics"]["features"][0]["name"] == evil


def test_the_page_has_its_data_and_runs_only_its_own_scripts(tmp_path):
    labelled(tmp_path / "data", split={"train": 1, "test": 1})
    report = stats(tmp_path / "data")
    text = page(report, "a <title>\u202e")
    assert "<title>a &lt;title&gt;\\u202e</title>" in text
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    hashes = [f"'sha256-{b64encode(sha256(part.encode()).digest()).decode()}'" for part in (*scripts, style)]
    assert policy == (f"default-src 'none'; script-src {' '.join(hashes[:-1])}; style-src {hashes[-1]}")
    statistics = data_of(text)["statistics"]
    names = {feature["name"] for feature in statistics["features"]}
    assert names == {feature.feature for split in report.splits for feature in split.features}
    assert "src=" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
