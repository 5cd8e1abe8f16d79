"""`recordspec verify` and `repair`: what they print, and their exit codes."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

import recordspec as rs
from frames_by_hand import frame, head
from recordspec.cli.integrity import _age
from shell import run_here as run


def test_the_command_line_tells_it_and_exits_with_1(tmp_path):
    fine, bad = tmp_path / "fine", tmp_path / "bad"
    fine.write_bytes(frame(b"a") * 3)
    bad.write_bytes(frame(b"a") + head(2**60) + frame(b"b") * 2)
    done = run("verify", fine)
    assert done.returncode == 0
    nothing = {"corrupt": 0, "recovered": 0, "bytes lost": 0, "rows lost": 0, "losses": [], "not listed": 0}
    assert json.loads(done.stdout) == {
        "file": str(fine),
        "records": 3,
        **nothing,
        "intact": True,
        "problems": [],
    }
    done = run("verify", fine, bad)
    assert done.returncode == 1
    loss = {"record": 1, "byte": 17, "to": 29, "expected": f"{2**60:,} bytes of data and its CRC", "got": "the end of the file"}  # fmt: skip
    found = {"file": str(bad), "records": 1, "corrupt": 0, "recovered": 2, "bytes lost": 12, "rows lost": None, "losses": [loss], "not listed": 0}  # fmt: skip
    assert json.loads(done.stdout.splitlines()[1]) == {**found, "intact": False, "problems": []}
    done = run("repair", bad, "--out", tmp_path / "saved")
    assert done.returncode == 0
    assert done.stderr == "note: no manifest: the files have none beside them that can be read\n"
    assert json.loads(done.stdout) == {**found, "shard": "bad", "saved": 3}
    assert run("verify", tmp_path / "none").stderr.startswith(f"`{tmp_path}/none` does not exist")


def test_a_file_that_cannot_be_read_is_an_error_of_the_system(unprivileged, command):
    folder, as_nobody = unprivileged
    schema, data = rs.Schema.loads("schema: s\nfeatures: {a: int64}"), folder / "data"
    rs.write([{"a": number} for number in range(8)], schema, data, shards=2)
    assert command("verify", data)[0] == 0
    shard = data / "train-00001-of-00002.tfrecord"
    shard.chmod(0)
    with as_nobody():
        code, out, err = command("verify", data)
    assert (code, err) == (3, f"{shard}: cannot read: permission denied\n")
    told = [json.loads(line) for line in out.splitlines()]
    assert [one["intact"] for one in told] == [True, False]
    assert told[1] == {
        "file": str(shard),
        "intact": False,
        "problems": [{"got": "cannot read: permission denied"}],
    }


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("12h", 43_200), ("7d", 604_800)])
def test_the_units_of_an_age(text, seconds):
    assert _age(None, None, text) == timedelta(seconds=seconds)


def test_adopt_writes_a_config_that_reads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    schema = rs.Schema.loads("schema: s\nfeatures: {x: float32, label: {kind: label, names: [a, b]}}\n")
    schema.dump(tmp_path / "s.yaml")
    rs.write({"x": [0.5, 1.5], "label": [0, 1]}, schema, "theirs", progress=False)
    for name in ("manifest.json", "schema.yaml"):
        (tmp_path / "theirs" / name).unlink()
    done = run("adopt", "theirs", "--schema", "s.yaml", "--config", "configs/c.yaml")
    assert done.returncode == 0, done.stderr
    text = Path("configs/c.yaml").read_text()
    assert text.splitlines()[1:4] == ["schema: ../s.yaml", "data: ../theirs", "read:"]
    assert rs.lint("configs/c.yaml") == ()
    pipeline = rs.Pipeline.load("configs/c.yaml")
    assert (pipeline.manifest.rows("train"), pipeline.config.fit.targets) == (2, "label")
    done = run("adopt", "theirs", "--schema", "s.yaml", "--out", "links", "--config", "configs/c.yaml")
    assert done.stderr == "`configs/c.yaml` exists: nothing was adopted; --force replaces it\n"
    assert not Path("links").exists()
    arguments = ("--schema", "configs/c.yaml", "--config", "configs/c.yaml", "--force")  # its own schema
    assert run("adopt", "theirs", "--out", "links", *arguments).returncode == 0
    assert Path("configs/c.yaml").read_text().splitlines()[1:3] == [
        "schema: ../s.yaml",
        "data: ../links",
    ]
