"""`recordspec infer`: which files it writes, and which it leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shell import run_here as run

PBTXT = 'feature { name: "n" type: INT presence { min_fraction: 1 } shape {} }'


@pytest.mark.parametrize("options", [("--out", "r.csv"), ("--out", "s.yaml", "--config", "./r.csv")])
def test_the_data_are_not_replaced(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("r.csv").write_text("a\n1\n2\n")
    done = run("infer", "r.csv", *options, "--force")
    said = f"{options[-2]}: expected a file of its own, got `r.csv`, which is among FILES\n"
    assert (done.returncode, done.stderr) == (2, said)
    assert Path("r.csv").read_text() == "a\n1\n2\n"
    both = run("infer", "r.csv", "--out", "y.yaml", "--config", "./y.yaml")
    assert both.stderr.endswith("Error: --out and --config name the same file\n")


def test_a_translated_schema_takes_a_name_and_has_no_config(tmp_path):
    (tmp_path / "x.pbtxt").write_text(PBTXT)
    done = run("infer", "x.pbtxt", "--name", "mine", "--json", cwd=tmp_path)
    text = "schema: mine\nrecord: example\nfeatures: {n: int64}\n"
    assert json.loads(done.stdout) == {"schema": text, "rows": None, "notes": [], "files": []}
    done = run("infer", "x.pbtxt", "--out", "s.yaml", "--config", "c.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "x.pbtxt: expected TFRecords, CSV or Parquet, got a schema "
        "(a config names its rows: infer without --config)\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["x.pbtxt"]


@pytest.mark.parametrize("gone", ["s.yaml", "c.yaml"])
def test_a_half_of_an_interrupted_run_is_completed(gone, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("a,b\n1,2\n")
    arguments = ("infer", "rows.csv", "--out", "s.yaml", "--config", "c.yaml")
    assert run(*arguments).returncode == 0
    whole = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert run(*arguments).stderr == "`s.yaml` exists: nothing was written; --force replaces it\n"
    Path(gone).unlink()
    assert run(*arguments).returncode == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == whole
    Path(gone).unlink()
    (other,) = {"s.yaml", "c.yaml"} - {gone}
    Path(other).write_text("# another\n")
    done = run(*arguments)
    assert (done.returncode, done.stderr) == (
        4,
        f"`{other}` exists: nothing was written; --force replaces it\n",
    )
    assert not Path(gone).exists()
    assert run(*arguments, "--force").returncode == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == whole


@pytest.mark.parametrize("inside", [False, True])
def test_a_config_in_configs_has_its_data_in_data(inside, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path("data/rows")
    folder.mkdir(parents=True)
    Path("configs").mkdir()
    Path("rows.csv").write_text("a,b\n1,2\n")
    (folder / "rows.csv").write_text("a,b\n1,2\n")
    if inside:
        monkeypatch.chdir("configs")
    up = "../" * inside
    config = "c.yaml" if inside else "configs/c.yaml"
    for source, data in [("rows.csv", "../data/rows"), ("data/rows/rows.csv", "../data/rows-2")]:
        done = run("infer", f"{up}{source}", "--out", f"{up}schemas/s.yaml", "--config", config, "--force")
        assert done.returncode == 0, done.stderr
        assert f"\ndata: {data}\n" in (tmp_path / "configs/c.yaml").read_text()
