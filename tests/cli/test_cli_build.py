"""`recordspec build`: what is refused, and what is published."""

from __future__ import annotations

import json

import pytest

from recordspec.wire.tfrecord import scan
from shell import run

pytestmark = pytest.mark.slow


def test_build_is_refused_then_forced(home):
    config = home / "configs/flowers.yaml"
    refused = run("build", config)
    assert refused.returncode == 4
    assert refused.stdout == ""
    assert refused.stderr.endswith("exists: force=True, or --force, replaces it\n")
    assert run("build", config, "--force").returncode == 0


def test_a_missing_dataset_is_built_once(tmp_path):
    run("init", tmp_path)
    config, data = tmp_path / "configs/flowers.yaml", tmp_path / "data/flowers"
    first = run("build", config, "--if-missing")
    assert first.returncode == 0
    (tmp_path / "raw/flowers.csv").unlink()  # it is not read
    again = run("build", config, "--if-missing")
    assert (again.returncode, again.stdout) == (0, first.stdout)
    for old, new, said in (
        ("  shards: 2", "  shards: 2\n  compression: gzip", '`compression` is "none", not "gzip"'),
        ("train: 80", "train: 90", '`splits` is {"splits": {"train": 80.0'),
        (
            "  key: id",
            "  key: {names: id, unique: false}",
            '`key` is {"unique": true}, not {"unique": false}',
        ),
    ):
        text = config.read_text()
        config.write_text(text.replace(old, new))
        assert config.read_text() != text
        other = run("build", config, "--if-missing")
        assert (other.returncode, other.stdout) == (4, "")
        got = "exists, and was built from another config, of which"
        assert other.stderr.startswith(f"`{data}` {got} {said}")
        assert other.stderr.endswith(": force=True, or --force, replaces it\n")
        config.write_text(text)
    schema = tmp_path / "schemas/flowers.yaml"
    schema.write_text(schema.read_text().replace("id: int64", "id: {dtype: int64, default: 0}"))
    other = run("build", config, "--if-missing")
    assert (other.returncode, "`schema` is another one: force" in other.stderr) == (4, True)
    refused = run("build", config, "--if-missing", "--limit", "5")
    assert refused.stderr.endswith("--if-missing compares CONFIG with the dataset: without --limit\n")
    schema.write_text(schema.read_text().replace("id: {dtype: int64, default: 0}", "id: int64"))
    next(data.glob("train-*")).unlink()
    assert run("build", config, "--if-missing").returncode == 1


def test_build_takes_its_rows_from_elsewhere(home, tmp_path):
    (tmp_path / "few.csv").write_text("\n".join((home / "raw/flowers.csv").read_text().splitlines()[:11]))
    build = run("build", home / "configs/flowers.yaml", "--force", "--source", "few.csv", cwd=tmp_path)
    assert sum(json.loads(line)["rows"] for line in build.stdout.splitlines()) == 10
    assert run("build", home / "configs/flowers.yaml", "--force").returncode == 0


def test_build_of_a_bad_row_names_it_and_publishes_nothing(tmp_path):
    run("init", tmp_path)
    rows = tmp_path / "raw/flowers.csv"
    rows.write_text(rows.read_text().replace("\n7,", "\nseven,"))
    done = run("build", tmp_path / "configs/flowers.yaml")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0].endswith("raw/flowers.csv:8: features.id: expected int64, got `seven`")
    assert done.stderr.splitlines()[1].endswith(
        "nothing was published, after 6 rows (`invalid: quarantine` leaves out invalid rows; see `recordspec docs building`)"
    )
    assert not (tmp_path / "data/flowers").exists()


def test_build_of_no_rows_is_an_error_unless_they_are_allowed(tmp_path):
    run("init", tmp_path)
    rows = tmp_path / "raw/flowers.csv"
    rows.write_text(rows.read_text().splitlines()[0] + "\n")
    config = tmp_path / "configs/flowers.yaml"
    for flags in ((), ("--dry-run",)):
        done = run("build", config, *flags)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.splitlines()[0].endswith(
            "raw/flowers.csv` has no rows: allow_empty=True, or --allow-empty, builds a dataset without rows"
        )
    assert not (tmp_path / "data/flowers").exists()
    done = run("build", config, "--allow-empty")
    assert done.returncode == 0
    assert {json.loads(line)["rows"] for line in done.stdout.splitlines()} == {0}


def test_the_records_of_a_build_are_those_of_its_rows(home):
    files = sorted((home / "data/flowers").glob("*.tfrecord"))
    assert sum(1 for file in files for _ in scan(file)) == 60
