"""`recordspec check` (`cli.check`): every fault a line, and an exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import fields

import click
import pytest

import recordspec as rs
from examples import example, file_of
from recordspec.integrity.check import CheckReport, UnknownKey, ViolationGroup, check_files
from recordspec.store.shards import File
from recordspec.wire.columns import Place
from recordspec.wire.framing import framed
from recordspec.wire.tfrecord import scan
from shell import on_a_terminal
from shell import run_here as run

YAML = "schema: s\nfeatures: {n: int64, m: int64}\n"


@pytest.fixture
def home(tmp_path):
    """A schema, a config and a dataset of 2 shards of 10 rows."""
    (tmp_path / "s.yaml").write_text(YAML)
    (tmp_path / "c.yaml").write_text("schema: s.yaml\ndata: data\n")
    rows = [{"n": number, "m": 0} for number in range(20)]
    rs.write(rows, rs.Schema.loads(YAML), tmp_path / "data", shards=2)
    return tmp_path


def spoil(home, index: int, number: int) -> int:
    """Replaces a record of a shard by one of other types; gives the byte where it begins."""
    other = rs.Schema.loads(YAML.replace("int64", "float32")).encode({"n": 0.5, "m": 0.5})
    path = home / f"data/train-0000{index}-of-00002.tfrecord"
    records = list(scan(path))
    data = [other if one.number == number else one.data for one in records]
    path.write_bytes(b"".join(map(framed, data)))
    return records[number].offset


@pytest.mark.parametrize(
    "files", [["c.yaml"], ["data"], ["data/train-00000*", "data/train-00001-of-00002.tfrecord"]]
)
def test_what_is_fine_is_said_to_be(home, files):
    done = run("check", *files, cwd=home)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"files": 2, "rows": 20, "invalid": 0, "lost": 0}


def test_every_fault_is_a_line(home):
    byte = spoil(home, 1, 7)
    done = run("check", "data", "--schema", "s.yaml", "--report", "r.json", cwd=home)
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["1 of 20 rows are invalid"]
    common = {"file": "data/train-00001-of-00002.tfrecord", "record": 7, "byte": byte}
    found = {"expected": "1 int64", "got": "1 float32", "hint": ""}
    lines = [{**common, "feature": f"features.{name}", **found} for name in ("n", "m")]
    assert [json.loads(line) for line in done.stdout.splitlines()] == lines
    report = json.loads((home / "r.json").read_text())
    assert (report["rows"], report["invalid"]) == (20, 1)
    assert [fault["examples"] for fault in report["violations"]] == [[line] for line in lines]


def test_of_each_sort_some_are_told_and_all_are_counted(home):
    for index, number in ((0, 1), (0, 2), (1, 0), (1, 5)):
        spoil(home, index, number)
    done = run("check", "data", "--schema", "s.yaml", "--examples", 3, cwd=home)
    assert done.stderr.splitlines()[:2] == ["4 of 20 rows are invalid", "6 of 8 violations are shown"]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["file"][:17], line["record"]) for line in lines if line["feature"] == "features.n"] == [
        ("data/train-00000-", 1),
        ("data/train-00000-", 2),
        ("data/train-00001-", 0),
    ]


def test_a_dataset_is_compared_with_another_spec_than_its_own(home):
    (home / "other.yaml").write_text("schema: s\nfeatures: {n: int64, m: float32}\n")
    done = run("check", "data", "--schema", "other.yaml", "--examples", 1, cwd=home)
    assert done.returncode == 1
    (line,) = map(json.loads, done.stdout.splitlines())
    assert (line["feature"], line["expected"], line["got"]) == ("features.m", "1 float32", "1 int64")
    assert done.stderr.splitlines()[:2] == [
        "20 of 20 rows are invalid",
        "data: features.m.dtype: expected `int64`, as the data was written, got `float32` "
        "(build it again, or read it with its own schema.yaml)",
    ]


def test_records_that_fit_a_spec_with_which_they_were_not_written(home):
    label = "schema: s\nfeatures: {n: int64, m: {kind: label, names: [a, b]}}\n"
    (home / "other.yaml").write_text(label)
    done = run("check", "data", "--schema", "other.yaml", cwd=home)
    assert json.loads(done.stdout) == {"files": 2, "rows": 20, "invalid": 0, "lost": 0}
    assert done.returncode == 1
    assert done.stderr == (
        "data: features.m.kind: expected `fixed_len`, as the data was written, got `label` "
        "(build it again, or read it with its own schema.yaml)\n"
    )


def test_faults_on_a_terminal_stand_below_how_often_they_are(home):
    byte = spoil(home, 1, 7)
    code, shown = on_a_terminal("check", "data", "--schema", "s.yaml", cwd=home, other=subprocess.DEVNULL)
    assert code == 1
    place = f"data/train-00001-of-00002.tfrecord: record 7 at byte {byte}"
    assert click.unstyle(shown).splitlines() == [
        "features.n: wrong kind of list in 1 of 20 rows",
        f"  {place}: features.n: expected 1 int64, got 1 float32",
        "features.m: wrong kind of list in 1 of 20 rows",
        f"  {place}: features.m: expected 1 int64, got 1 float32",
    ]


def test_what_is_no_fault_is_said_too(home):
    (home / "s.yaml").write_text("schema: s\nfeatures: {n: int64}\n")
    (home / "data/manifest.json").unlink()
    done = run("check", "data", "--schema", "s.yaml", cwd=home)
    assert done.returncode == 0
    assert done.stderr == "features.m: not in the spec, in 20 of 20 rows (int64)\n"


def test_tensorflow_is_not_loaded(home):
    code = (
        "import sys; from recordspec.cli import commands; "
        "commands.main(['check', 'c.yaml'], standalone_mode=False); print('tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=home, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["False"], done.stderr


def test_on_a_terminal_it_is_a_sentence(home):
    assert on_a_terminal("check", "c.yaml", cwd=home) == (0, "20 rows of 2 files are valid\r\n")


def test_progress_is_shown_on_a_terminal_and_nowhere_else(home):
    code, shown = on_a_terminal("check", "c.yaml", cwd=home, stream="stderr", other=subprocess.DEVNULL)
    assert code == 0
    assert "checking" in shown
    assert "20 rows" in shown
    assert run("check", "c.yaml", cwd=home).stderr == ""


def test_a_feature_that_no_record_has_is_a_line(home):
    (home / "s.yaml").write_text("schema: s\nfeatures: {nn: {kind: var_len, dtype: int64}, m: int64}\n")
    (home / "data/manifest.json").unlink()
    done = run("check", "data", "--schema", "s.yaml", cwd=home)
    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "file": None,
        "record": None,
        "byte": None,
        "feature": "features.nn",
        "expected": "the key `nn` in any row",
        "got": "none in 20 rows",
        "hint": "did you mean `n`? otherwise: --allow-absent nn",
    }
    assert done.stderr.splitlines()[0] == "0 of 20 rows are invalid, and 1 feature is in no record"
    done = run("check", "data", "--schema", "s.yaml", "--allow-absent", "nn", "--allow-absent", "m", cwd=home)
    assert (done.returncode, json.loads(done.stdout)["invalid"]) == (0, 0)
    done = run("check", "data", "--schema", "s.yaml", "--allow-absent", "n", cwd=home)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "allow_absent: expected one of nn, m, got `n` (did you mean `nn`?)\n"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["s.yaml", "data"], 2, "s.yaml: expected TFRecord files or a config, got a schema (the schema is an argument of its own, `schema` or --schema)"),
        (["data/test-*"], 3, "`data/test-*` matches no file: data has index.bin, manifest.json, schema.yaml, ..."),
        (["other-*/test-*"], 3, "`other-*/test-*` matches no file: no folder matches other-*"),
        (["none.yaml"], 3, "`none.yaml` does not exist: . has c.yaml, data, s.yaml"),
        (["data", "--schema", "none.yaml"], 3, "none.yaml: cannot read: no such file or directory"),
    ],
)  # fmt: skip
def test_what_cannot_be_checked_is_said_in_a_line(home, arguments, status, message):
    done = run("check", *arguments, cwd=home)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.splitlines()[-1] == message


def test_the_places_of_steps_in_messages(tmp_path):
    schema = rs.Schema.loads(
        "schema: s\nrecord: sequence_example\ncontext: {n: int64}\n"
        "sequence: {s: {kind: fixed_len_sequence, dtype: int64}}"
    )
    right, wrong = (
        example({"n": ("int64", [1])}, {"s": [("int64", [1]), ("int64", [2] * many)]}) for many in (1, 2)
    )
    report = check_files([File(path=file_of(tmp_path / "x", [right, right, right, wrong]))], schema)
    (found,) = report.examples
    assert found.problem.path == ("sequence", "s", 1)


def test_reports_are_merged_field_by_field():
    key = ("features", "a")
    values = {
        "files": 1,
        "rows": 2,
        "invalid": 3,
        "lost": 4,
        "readable": 5,
        "groups": {(key, "kind"): ViolationGroup(code="kind", path=key, count=2)},
        "empty": {Place("features", "a"): 6},
        "unknown": {Place("features", "b"): UnknownKey(rows=7, kinds={"int64"})},
        "more": True,
        "repeated": Counter(c=8),
        "present": {Place("features", "a")},
        "absent": (rs.Problem(expected="a", got="b"),),
        "mismatches": (rs.Problem(expected="c", got="d"),),
    }
    assert values.keys() == {field.name for field in fields(CheckReport)}
    report, other = CheckReport(), CheckReport(**values)
    report.merge(other, 3)
    assert report == other
    report.merge(other, 3)
    assert (report.rows, report.groups[key, "kind"].count, report.repeated["c"]) == (4, 4, 16)
