"""`recordspec stats`: what it takes."""

from __future__ import annotations

import json

from labelled_rows import LABELLED, labelled
from shell import run_here as run


def test_what_is_wrong_on_the_command_line(tmp_path):
    (tmp_path / "s.yaml").write_text("schema: s\nfeatures: {a: int64}")
    done = run("stats", tmp_path / "s.yaml")
    assert done.returncode == 2
    hint = "(the schema is an argument of its own, `schema` or --schema)"
    assert done.stderr == f"{tmp_path}/s.yaml: expected TFRecord files or a config, got a schema {hint}\n"
    done = run("stats", tmp_path / "none")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"`{tmp_path}/none` does not exist: {tmp_path} has s.yaml\n"


def test_a_config_means_its_data(tmp_path):
    labelled(tmp_path / "data")
    (tmp_path / "s.yaml").write_text(LABELLED)
    (tmp_path / "c.yaml").write_text("schema: s.yaml\ndata: data\n")
    lines = run("stats", tmp_path / "c.yaml").stdout
    assert lines == run("stats", tmp_path / "data").stdout
    assert json.loads(lines.splitlines()[2])["classes"]["counts"] == [["cat", 40], ["dog", 20], ["fox", 0]]
