"""`head`, `show`, `sample` and `export` as a shell sees them, on a terminal and in a pipe.

So are `cli.info`, the tables of `cli.output`, and what `statistics.count` counts.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest

import recordspec as rs
from recordspec.wire.framing import framed
from recordspec.wire.proto import _classes
from shell import on_a_terminal

pytestmark = pytest.mark.slow

ENVIRONMENT = {**os.environ, "COLUMNS": "100", "TERM": "xterm"}
SCHEMA = rs.Schema.loads(
    """
schema: s
features:
  time: int64
  x: {dtype: float32, default: 0.0}
  side: {kind: label, names: [left, right], key: s}
  image: {kind: image, shape: [2, 3, 1]}
"""
)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("look")
    rows = [
        {
            "time": 1478559600 + n,
            "side": n % 2,
            "image": np.zeros((2, 3, 1), np.uint8),
            **({"x": 0.1} if n else {}),
        }
        for n in range(6)
    ]
    rs.write(rows, SCHEMA, folder / "data")
    SCHEMA.dump(folder / "s.yaml")
    return folder


def run(home: Path, *arguments: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "recordspec", *map(str, arguments)]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, env=ENVIRONMENT)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def lines(home: Path, *arguments: object) -> list[dict]:
    done = run(home, *arguments)
    assert done.returncode == 0, done.stderr
    return list(map(json.loads, done.stdout.splitlines()))


def terminal(home: Path, *arguments: object, stream: str = "stdout") -> str:
    return on_a_terminal(*arguments, cwd=home, stream=stream, environment=ENVIRONMENT)[1]


def plain(text: str) -> list[str]:
    """Lines without the colours that are ours."""
    return [line.rstrip() for line in click.unstyle(text).splitlines()]


def hostile(
    folder: Path, name: str = "f", key: str = "a\x1b[31m\nb", value: bytes = b"\x1b[2J\x9b\xc2\x9b1m"
) -> Path:
    made = _classes()["Example"]()
    made.features.feature.add(key=key).value.bytes_list.value.append(value)
    made.features.feature.add(key="text\x9b").value.bytes_list.value.append("é\x1b]0;x\x07".encode())
    path = folder / name
    path.write_bytes(framed(made.SerializeToString()))
    return path


def test_records_on_a_terminal(home):
    assert plain(terminal(home, "head", "data", "-n", 2)) == [
        "data/train-00000-of-00001.tfrecord: record 0",
        "  image  <PNG 3x2>",
        "  side   left",
        "  time   1478559600",
        "data/train-00000-of-00001.tfrecord: record 1",
        "  image  <PNG 3x2>",
        "  side   right",
        "  time   1478559601",
        "  x      0.1",
    ]
    assert plain(terminal(home, "show", "data", 1, "--schema", "s.yaml", "--columns", "side,time"))[1:] == [
        "  side  right",
        "  time  1478559601",
    ]
    assert plain(terminal(home, "head", "data", "-n", 1, "--raw", "--columns", "image"))[1].startswith(
        r"  image  \x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
    )


def test_records_in_a_pipe(home):
    name = "data/train-00000-of-00001.tfrecord"
    assert lines(home, "show", "data", 3, "--schema", "s.yaml", "--columns", "x, side") == [
        {"file": name, "record": 3, "features": {"x": 0.1, "side": "right"}}
    ]
    (raw,) = lines(home, "head", "data", "--raw", "--where", "x IS NULL")
    assert base64.b64decode(raw["features"]["image"]).startswith(b"\x89PNG")
    assert [line["record"] for line in lines(home, "sample", "data", "-n", 3, "--seed", 1)] == [0, 1, 4]
    assert [
        line["record"] for line in lines(home, "head", "data", "--where", "s = 1 AND time > 1478559601")
    ] == [3, 5]


def test_a_table_too_wide_for_the_terminal_is_a_list(home, monkeypatch):
    monkeypatch.setitem(ENVIRONMENT, "COLUMNS", "60")
    size = (home / "data/train-00000-of-00001.tfrecord").stat().st_size
    assert plain(terminal(home, "count", "data")) == [
        "data/train-00000-of-00001.tfrecord",
        "  records      6",
        f"  bytes        {size}",
        "  compression  none",
        f"6 records in 1 file, {size} bytes",
    ]
    monkeypatch.setitem(ENVIRONMENT, "COLUMNS", "80")
    assert plain(terminal(home, "count", "data"))[:2] == [
        "file                                records  bytes  compression",
        f"data/train-00000-of-00001.tfrecord        6    {size}  none",
    ]


def test_what_files_hold_on_a_terminal(home):
    shown = plain(terminal(home, "info", "data"))
    assert shown[0].split() == ["file", "records", "bytes", "compression"]
    size = (home / "data/train-00000-of-00001.tfrecord").stat().st_size
    assert shown[1:6] == [
        f"data/train-00000-of-00001.tfrecord        6    {size}  none",
        f"6 records in 1 file, {size} bytes",
        "all read: 6 Example",
        "manifest: schema s, example, layout rows",
        f"  train: 6 rows in 1 shard, {size} bytes",
    ]
    assert [line.split() for line in shown[7:]] == [
        ["key", "records", "kind", "lengths"],
        ["image", "6", "bytes", "1"],
        ["s", "6", "int64", "1"],
        ["time", "6", "int64", "1"],
        ["x", "5", "float32", "1"],
    ]


def test_what_sequence_examples_hold_on_a_terminal(tmp_path):
    schema = rs.Schema.loads(
        "schema: s\nrecord: sequence_example\ncontext: {n: {kind: var_len, dtype: int64}}\n"
        "sequence: {words: text}"
    )
    rows = [{"n": [1] * min(number, 1), "words": ["a"] * number} for number in range(4)]
    rs.write(rows, schema, tmp_path / "data")
    assert [line.split() for line in plain(terminal(tmp_path, "info", "data"))[-3:]] == [
        ["key", "in", "records", "kind", "lengths", "steps"],
        ["n", "context", "4", "int64", "0..1"],
        ["words", "sequence", "4", "bytes", "1", "0..3"],
    ]


def test_what_files_hold_in_a_pipe(home):
    (found,) = lines(home, "info", "data", "-n", 2)
    assert (found["records"], found["looked_at"], found["layout"]) == (6, 2, "rows")
    assert found["features"][3] == {
        "key": "x",
        "sequence": False,
        "records": 1,
        "kinds": {"float32": 1},
        "lengths": [1, 1],
        "steps": None,
    }
    assert found["manifest"]["splits"]["train"]["rows"] == 6
    assert lines(home, "info", "data", "--all")[0]["looked_at"] == 6


@pytest.mark.parametrize(
    "command", [["head"], ["head", "--raw"], ["head", "--json"], ["info"], ["info", "--json"], ["count"]]
)
def test_no_command_for_the_terminal_gets_through(tmp_path, command):
    """Of ESC, BEL and CSI none is in what is told but those of our own colours: in keys, values, names of files."""
    path = hostile(tmp_path, "x\x1b[31m\x9b\udc80")
    told = re.sub(r"\x1b\[(1|0)m", "", terminal(tmp_path, *command, path.name))
    assert "text" in told or command == ["count"]
    assert not set(told) & {"\x1b", "\x07", "\x9b", "\udc80"}


def test_no_command_for_the_terminal_gets_through_in_errors(tmp_path):
    path = hostile(tmp_path, "x\x1b[31m")
    path.write_bytes(path.read_bytes()[:-1])
    told = terminal(tmp_path, "head", path.name, stream="stderr")
    assert told.startswith(r"x\x1b[31m: record 0 at byte 0: expected ")
    told = terminal(tmp_path, "head", hostile(tmp_path), "--columns", "c\x1b[2J", stream="stderr")
    assert told == "columns: expected one of a\\x1b[31m\\nb, text\\x9b, got `c\\x1b[2J`\r\n"


def test_hostile_names_are_json_in_a_pipe(tmp_path):
    path = hostile(tmp_path, "x\x1b[31m\x9b\udc80")
    (shown,) = lines(tmp_path, "head", path.name)
    assert shown["file"] == "x\x1b[31m\x9b\udc80"
    assert shown["features"] == {"a\x1b[31m\nb": "<9 bytes>", "text\x9b": "<8 bytes>"}


def test_other_messages_on_a_terminal(tmp_path):
    (tmp_path / "f").write_bytes(framed(b"\x1a\x03\xff\x1b[") + framed(b"\x1b[2J"))
    expected = "  expected an Example or a SequenceExample, got"
    assert plain(terminal(tmp_path, "head", "f")) == [
        "f: record 0",
        f"{expected} another message of 5 bytes: <5 bytes>",
        "f: record 1",
        f"{expected} 4 bytes that do not parse: <4 bytes>",
    ]
    assert plain(terminal(tmp_path, "show", "f", 0, "--raw"))[1].endswith(r"\x03\xff\x1b[")


def test_blocks_that_cannot_be_taken_apart_are_said_to_be(home, tmp_path):
    rs.write([{"time": n} for n in range(3)], SCHEMA.only(["time"]), tmp_path / "b", layout={"blocks": 2})
    assert lines(tmp_path, "head", "b")[2] == {
        "file": "b/train-00000-of-00001.tfrecord",
        "row": 2,
        "features": {"time": 2},
    }
    (tmp_path / "b/schema.yaml").unlink()
    done = run(tmp_path, "head", "b")
    note = "each record is a block of rows; a schema beside the shards, or --schema, unpacks them\n"
    assert (done.returncode, done.stderr) == (0, note)
    assert json.loads(done.stdout.splitlines()[0])["features"] == {"/rows": 2, "time": [0, 1]}


def test_an_export(home, tmp_path):
    done = run(
        home,
        "export",
        "data",
        "--out",
        tmp_path / "o.csv",
        "--columns",
        "side,x",
        "--schema",
        "s.yaml",
        "--limit",
        2,
    )
    assert json.loads(done.stdout) == {
        "file": f"{tmp_path}/o.csv",
        "rows": 2,
        "columns": ["side", "x"],
        "bytes": 31,
    }
    assert (tmp_path / "o.csv").read_text() == '"side","x"\n"left",\n"right",0.1\n'
    assert terminal(home, "export", "data", "--out", tmp_path / "o.jsonl").startswith(
        "6 rows of 4 columns in "
    )


def test_any_key_can_be_among_the_columns(tmp_path):
    keys = ["a,b", " c ", 'd"e', '"f"', "g"]
    record = _classes()["Example"]()
    for number, key in enumerate(keys):
        record.features.feature.add(key=key).value.int64_list.value.append(number)
    (tmp_path / "f").write_bytes(framed(record.SerializeToString()))
    (shown,) = lines(tmp_path, "head", "f", "--columns", 'g , "a,b"," c ",d"e, """f"""')
    assert list(shown["features"].items()) == [("g", 4), ("a,b", 0), (" c ", 1), ('d"e', 2), ('"f"', 3)]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["show", "data", 6], 2, "record: expected a number from 0 to 5, got 6"),
        (["show", "data"], 2, "Error: expected files and the number of a record: `recordspec show FILES 0`"),
        (["show"], 2, "Error: expected files and the number of a record: `recordspec show FILES 0`"),
        (["query", "data", "SELECT 1"], 2, "SQL: expected a query, got the path `data` (SQL is the first argument: `recordspec query SQL FILES`)"),
        (["check", "data", "--spec", "s.yaml"], 2, "Error: --spec was removed: use `--schema`"),
        (["adopt", "data", "--spec", "s.yaml"], 2, "Error: --spec was removed: use `--schema`"),
        (["reshard", "data", "new", "--spec", "s.yaml"], 2, "Error: --spec was removed: use `--schema`"),
        (["adopt", "data"], 2, "Error: Missing option '--schema'. `recordspec infer FILES --out schema.yaml` writes one."),
        (["head", "data", "--split", "train"], 2, "Error: No such option '--split'."),
        (["head", "data", "--colums", "x"], 2, "Error: No such option '--colums' (did you mean `--columns`?)"),
        (
            ["show", "data", "--record", 6],
            2,
            "Error: --record was removed: use `recordspec show FILES NUMBER`",
        ),
        (["head", "data", "--columns", "tim"], 2, "columns: expected one of time, x, side, image, got `tim` (did you mean `time`?)"),
        (["head", "data", "--where", "tim > 3"], 2, "where: expected a feature, or a key of the first records, got `tim` (did you mean `time`?)"),
        (["head", "data", "--where", "side::INT > 3"], 1, "data/train-00000-of-00001.tfrecord: record 0 at byte 0: where: Could not convert string 'left' to INT32 when casting from source column side"),
        (["head", "data", "--schema", "none.yaml"], 3, "none.yaml: cannot read: no such file or directory"),
        (["export", "data", "--out", "s.yaml"], 2, "out: expected a name that ends in one of .jsonl, .csv, .parquet, got `s.yaml`"),
        (["export", "data", "--out", "none/o.csv"], 3, "none/o.csv: cannot write: no such file or directory"),
        (["info", "s.yaml"], 2, "s.yaml: expected TFRecord files or a config, got a schema (the schema is an argument of its own, `schema` or --schema)"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_a_line(home, arguments, status, message):
    done = run(home, *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.splitlines()[-1] == message
