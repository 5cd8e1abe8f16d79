"""No text from files, records, names or arguments is a command to a terminal, or turns its direction of writing (`errors`)."""

from __future__ import annotations

import ast
import json
import logging
import re
import shutil
from pathlib import Path

import pytest

import recordspec as rs
from recordspec import cli
from recordspec.errors import show_json, show_text
from recordspec.interop import tfds, tfmd
from recordspec.schema.yaml_text import dump

pytestmark = pytest.mark.slow

# The direction of writing, no width at all, a title of the window, a character that NumPy's C strings end at.
EVIL = "a\u202eb\u2066c\u200bd\u200fe\x1b]0;t\x07f\x9bg\ufeffh\U000e0041i"
SHOWN = r"a\u202eb\u2066c\u200bd\u200fe\x1b]0;t\x07f\x9bg\ufeffh\U000e0041i"
IN_JSON = r"a\u202eb\u2066c\u200bd\u200fe\u001b]0;t\u0007f\u009bg\ufeffh\udb40\udc41i"
FOLDER = "\u202efolder\x1b[2J\u2028"


def test_what_is_not_seen_is_escaped():
    assert show_text(EVIL) == SHOWN
    assert show_text("a\nb") == "a\\nb"
    assert show_text("\u0645\u062b\u0644 \u65e5\u672c e\u0301") == "\u0645\u062b\u0644 \u65e5\u672c e\u0301"
    assert show_json(json.dumps({"\n": EVIL}, indent=1, ensure_ascii=False)) == f'{{\n "\\n": "{IN_JSON}"\n}}'
    assert str(rs.Problem(where=EVIL, path=(EVIL,), expected=EVIL, got=EVIL, hint=EVIL)).isprintable()


def test_schemas_in_text_keep_their_meaning():
    label = {"kind": "label", "names": [EVIL, "\u2028", "a\u00a0b", "c"], "description": f"{EVIL}\n{EVIL}"}
    spec = rs.Schema.loads(dump({"schema": "s", "features": {EVIL: label}}))
    assert all(map(str.isprintable, spec.dump().splitlines()))
    assert rs.Schema.loads(spec.dump()) == spec
    for language in (tfds, tfmd):
        text = language.dumps(spec)[0]
        assert all(map(str.isprintable, text.split("\n")))
        back = language.loads(text)[0].names[EVIL]
        assert back.description == spec.names[EVIL].description


# For each command, what is run with it in a folder of such names.
RUNS = {
    "adopt": ("adopt data --schema schema.yaml --out adopted-{evil}", "adopt data --schema schema.yaml", "adopt {evil}")
    + ("adopt --split {evil}=data/* --schema schema.yaml --out adopted-{evil}", "adopt x --schema {evil}"),
    "bench": (),  # it needs TensorFlow; what it prints goes the way of all others
    "build": ("build config.yaml", "build config.yaml --force", "build config.yaml --dry-run")
    + ("build config.yaml --force --source {evil}.csv", "build {evil}", "build broken.yaml")
    + ("build config.yaml --force --source bad.csv", "build config.yaml --force --source short.csv"),
    "check": ("check config.yaml", "check data --schema other.yaml", "check {evil} --schema schema.yaml", "check schema.yaml"),
    "count": ("count data", "count data/*", "count {evil}"),
    "diff": ("diff data moved --schema schema.yaml", "diff data moved --by distribution --all")
    + ("diff schema.yaml other.yaml", "diff {evil} data"),
    "docs": ("docs {evil}", "docs stores", "docs language"),
    "doctor": (),  # it prints nothing that was given, and needs TensorFlow
    "explain": ("explain schema.yaml --python", "explain schema.yaml --as tfmd")
    + ("explain schema.yaml --as tfds", "explain {evil}", "explain broken.yaml"),
    "export": ("export data --out {evil}.jsonl", "export data --out {evil}.csv --columns {evil}")
    + ("export data --out {evil}.jsonl", "export data --out x.{evil}", "export data --out {evil}/x.csv")
    + ("export data --as croissant", "export data --as card", "export data --as tfds", "export {evil} --as card"),
    "head": ("head data", "head data --full", "head data --raw", "head data --columns {evil}s", "head text")
    + ("head data --where '{evil} > 3'", "head data --schema schema.yaml", "head notes/*", "head data -n {evil}"),
    "index": ("index data", "index {evil}"),
    "infer": ("infer rows.csv", "infer data/*", "infer schema.pbtxt", "infer rows.csv --out {evil}.yaml")
    + ("infer rows.csv --out {evil}.yaml", "infer {evil}"),
    "info": ("info data", "info cut-{evil}", "info {evil}"),
    "init": ("init {evil}", "init {evil}"),
    "view": ("view {evil}", "view data --schema {evil}"),
    "leaks": ("leaks data", "leaks data moved=data", "leaks data --columns {evil}s --json", "leaks {evil}")
    + ("leaks cut-{evil}",),
    "lint": ("lint config.yaml schema.yaml broken.yaml {evil}",),
    "query": ("query 'FROM d' d=data", "query 'DESCRIBE d' d=data", "query 'FROM d' d=data --json")
    + ("query 'SELECT \"{evil}s\" FROM d' d=data", "query 'FROM {evil}' d=data", "query '{evil}' d=data")
    + ("query 'FROM d' d=data --out {evil}.csv", "query 'FROM d' d={evil}", "query 'FROM d' d=cut-{evil}"),
    "repair": ("repair cut-{evil} --out saved-{evil}", "repair cut-{evil} --out saved-{evil}", "repair {evil} --out x"),
    "reshard": ("reshard data other-{evil} --shards 2", "reshard data other-{evil}", "reshard {evil} x"),
    "sample": ("sample data -n 2", "sample {evil}"),
    "show": ("show data 0", "show data 999", "show {evil} 0", "show data --record 0"),
    "stats": ("stats data", "stats config.yaml", "stats cut-{evil}", "stats data --html {evil}.html")
    + ("stats data --html {evil}/x.html",),
    "sweep": ("sweep {evil}", "sweep s3://bucket/{evil}", "sweep hdfs://host/{evil}"),
    "verify": ("verify data", "verify cut-{evil}", "verify data cut-{evil} changed", "verify {evil}"),
    "which": ("which config.yaml --step 0 --split {evil}", "which {evil} --step 0"),
}  # fmt: skip


@pytest.fixture
def evil_folder(tmp_path, monkeypatch) -> Path:
    """A folder whose name, files, features, labels and values are such text."""
    folder = tmp_path / FOLDER
    folder.mkdir()
    monkeypatch.chdir(folder)
    spec = {
        "schema": EVIL,
        "features": {
            EVIL: "string",
            f"{EVIL}1": {"kind": "label", "names": [EVIL, "b"]},
            "number": "float32",
        },
    }
    Path("schema.yaml").write_text(dump(spec))
    schema = rs.Schema.load("schema.yaml")
    Path("schema.pbtxt").write_text(tfmd.dumps(schema)[0])
    other = {"schema": "other", "features": {EVIL: "int64", f"{EVIL}2": "int64"}}
    Path("other.yaml").write_text(dump(other))
    Path("broken.yaml").write_text(
        dump({"schema": EVIL, EVIL: 1, "features": {EVIL: {"kind": EVIL}, f"{EVIL}2": EVIL}})
    )
    config = {
        "schema": "schema.yaml",
        "data": f"data-{EVIL}",
        "write": {"source": {"csv": "rows.csv"}, "shards": 1, "invalid": "quarantine"},
    }
    Path("config.yaml").write_text(dump(config))
    header = f'"{EVIL}","{EVIL}1",number,"{EVIL} nobody wants"\n'
    lines = [f'"{EVIL}","{EVIL if row % 3 else "b"}",{row},x\n' for row in range(40)]
    Path("rows.csv").write_text(header + "".join(lines) + f'"{EVIL}","{EVIL}x",1,x\n')
    Path("bad.csv").write_text(header + f'"{EVIL}","{EVIL}x","{EVIL}",x\n')
    Path("short.csv").write_text(f'"{EVIL}"\n"{EVIL}"\n')
    rows = [{EVIL: f"{EVIL}{row}", f"{EVIL}1": EVIL, "number": row} for row in range(40)]
    rs.write(rows, schema, "data", key=EVIL)
    rs.write([{**row, "number": row["number"] + 100} for row in rows[:30]], schema, "moved", key=EVIL)
    shutil.copytree("moved", "changed")
    (shard,) = Path("changed").glob("*.tfrecord")
    shard.write_bytes(shard.read_bytes()[:-5])
    shutil.copyfile(shard, f"cut-{EVIL}")
    Path("notes").mkdir()
    Path(f"notes/{EVIL}").write_text("nothing")
    Path("text").write_text(EVIL)
    return folder


def test_every_command_is_driven():
    assert set(RUNS) == set(cli.commands.list_commands(None))


# What styles a line, and nothing else: bold, a colour, and their end.
STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("terminal", [False, True, "narrow"], ids=["pipe", "terminal", "narrow"])
def test_no_command_lets_such_text_through(terminal, evil_folder, command, monkeypatch, caplog):
    monkeypatch.setenv("COLUMNS", "30" if terminal == "narrow" else "300")
    told = 0
    for run in (run for runs in RUNS.values() for run in runs):
        words = [word.strip("'").format(evil=EVIL) for word in re.findall(r"'[^']*'|\S+", run)]
        status, out, err = command(*words, terminal=bool(terminal))
        assert status in (0, 1, 2, 3, 4), run
        for line in (STYLE.sub("", out) + err).split("\n"):
            assert line.isprintable(), (run, line)
        told += (SHOWN in out + err) or (IN_JSON in out + err) or terminal == "narrow"
    assert told > 50
    for record in caplog.records:
        assert all(map(str.isprintable, record.getMessage().split("\n"))), record


@pytest.mark.parametrize(
    "arguments",
    [[EVIL], ["head", f"--{EVIL}"], ["head", "data", "-n", EVIL], ["index", "x", "--format", EVIL]],
)
def test_what_click_repeats_of_an_argument_is_escaped(arguments, command):
    status, out, err = command(*arguments, terminal=True)
    assert (status, out) == (2, "")
    assert SHOWN in err or repr(SHOWN)[1:-1] in err
    assert all(map(str.isprintable, err.split("\n")))


def test_logs_are_escaped(tmp_path, caplog):
    schema = rs.Schema.loads("schema: s\nfeatures: {a: int64}")
    with caplog.at_level(logging.WARNING):
        rs.write([{"a": 1}, {"a": "x"}], schema, tmp_path / EVIL, invalid="quarantine")
    assert caplog.messages == [f"1 of 2 rows are invalid: see {tmp_path}/{SHOWN}/rejects.jsonl"]


def test_files_keep_the_exact_text(evil_folder, command):
    assert command("export", "data", "--out", "out.jsonl")[0] == 0
    first = json.loads(Path("out.jsonl").read_text(encoding="utf-8").split("\n")[0])
    assert first[f"{EVIL}1"] == EVIL  # the name of a class
    assert first[EVIL].startswith(EVIL)
    assert command("infer", "rows.csv", "--out", "found.yaml")[0] == 0
    assert f"{EVIL}1" in rs.Schema.load("found.yaml").names


PRINTING = {"click.echo", "click.secho", "print", "sys.stdout.write", "sys.stderr.write", "console.print"}


def test_commands_print_in_one_place():
    """Whoever prints otherwise may forget to escape."""
    found = set()
    for file in Path(cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in PRINTING:
                found.add((file.name, ast.unparse(node.func)))
    # what tables print is escaped there, since they are given to rich
    assert found == {("output.py", "click.echo"), ("output.py", "console.print")}
