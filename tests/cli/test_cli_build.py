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
    assert refused.returncode == 3
    assert refused.stdout == ""
    assert refused.stderr.endswith("exists: force=True, or --force, replaces it\n")
    assert run("build", config, "--force").returncode == 0


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
