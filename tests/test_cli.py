"""The command line as a shell sees it: output, exit codes, and no traceback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import recordspec as rs
from recordspec.cli import main
from recordspec.interop import tfds, tfmd
from recordspec.progress import Progress
from recordspec.wire.tfrecord import scan

pytestmark = pytest.mark.slow

ENVIRONMENT = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "COLUMNS": "200"}


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "recordspec", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=ENVIRONMENT)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """What `init` and `build` leave."""
    folder = tmp_path_factory.mktemp("home")
    assert run("init", folder).returncode == 0
    assert run("build", folder / "configs/flowers.yaml").returncode == 0
    return folder


def test_a_newcomer_comes_from_nothing_to_batches(tmp_path):
    first = run("init", "mine", cwd=tmp_path)
    assert first.stdout.splitlines() == [
        "mine/schemas/flowers.yaml",
        "mine/configs/flowers.yaml",
        "mine/raw/flowers.csv",
        "mine/recordspec.schema.json",
    ]
    assert first.stderr == "next: recordspec build mine/configs/flowers.yaml\n"
    build = run("build", "mine/configs/flowers.yaml", cwd=tmp_path)
    splits = {line["split"]: line for line in map(json.loads, build.stdout.splitlines())}
    assert splits["train"]["rows"] + splits["test"]["rows"] == 60
    pipeline = rs.Pipeline.load(tmp_path / "mine/configs/flowers.yaml")
    inputs, targets = next(iter(pipeline.dataset("train")))
    assert inputs["petal_length"].shape == targets.shape == (8,)


def test_init_overwrites_nothing_and_writes_what_is_missing(tmp_path):
    """Of an interrupted one."""
    assert run("init", tmp_path).returncode == 0
    rows, config = tmp_path / "raw/flowers.csv", tmp_path / "configs/flowers.yaml"
    text = rows.read_text()
    rows.unlink()
    assert run("init", tmp_path).returncode == 0
    assert rows.read_text() == text
    config.write_text("mine")
    rows.unlink()
    done = run("init", tmp_path)
    assert done.returncode == 3
    assert done.stderr == f"`{config}` exists: nothing was written\n"
    assert (config.read_text(), rows.exists()) == ("mine", False)


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


def test_lint_tells_problems_and_exits_with_2(home, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("schema: s\nfeatures:\n  a: int46\n")
    fine = home / "schemas/flowers.yaml"
    done = run("lint", fine, bad, home / "configs/flowers.yaml")
    assert done.returncode == 2
    assert done.stdout.splitlines() == [
        f"{fine}: no problems",
        f"{bad}:3:6: features.a: expected a dtype, a kind, or a mapping of options, got `int46` "
        "(did you mean `int64`?)",
        f"{home}/configs/flowers.yaml: no problems",
    ]
    as_json = json.loads(run("lint", bad, "--json").stdout)
    assert as_json["where"] == f"{bad}:3:6"
    assert as_json["path"] == "features.a"
    assert run("lint", tmp_path / "none.yaml").returncode == 3


def test_count_and_head_tell_what_is_there(home):
    data = home / "data/flowers"
    counted = [json.loads(line) for line in run("count", data).stdout.splitlines()]
    assert sum(line["records"] for line in counted) == 60
    shown = [json.loads(line) for line in run("head", data, "-n", "3").stdout.splitlines()]
    assert len(shown) == 3
    assert shown[0]["features"].keys() >= {"id", "petal_length", "species"}


@pytest.mark.tensorflow
def test_explain_shows_what_is_stored(root):
    done = run("explain", root / "schemas/movie_ratings.yaml")
    assert done.stderr == ""  # TensorFlow keeps its log to itself
    rows = list(map(json.loads, done.stdout.splitlines()))
    assert rows[1] == {
        "feature": "Movie",
        "kind": "var_len",
        "stored as": "Movie: BytesList, VarLenFeature",
        "decodes to": "Tensor string (null,)",
        "padded with": '""',
        "bytes": rows[1]["bytes"],
    }
    assert rows[1]["bytes"] > 0


def test_explain_says_a_schema_in_other_languages(root):
    spec = root / "schemas/movie_ratings.yaml"
    python = run("explain", spec, "--as", "python")
    assert python.stdout.startswith("import tensorflow as tf\n")
    assert python.stdout == run("explain", spec, "--python").stdout
    said = run("explain", spec, "--as", "tfmd")
    assert said.stdout == tfmd.dumps(rs.Schema.load(spec))[0]
    assert said.stderr.splitlines() == ["note: schema: not expressed"]
    said = run("explain", spec, "--as", "tfds")
    assert said.stdout == tfds.dumps(rs.Schema.load(spec))[0]
    assert said.stderr.splitlines() == [
        "note: schema: not expressed",
        'note: features."Purchase Price".default: not expressed: TFDS fails at a record without the feature',
    ]


def test_describe_names_its_files_and_is_refused_elsewhere(home):
    data = home / "data/flowers"
    done = run("describe", data)
    names = ["features.json", "species.labels.txt", "dataset_info.json"]
    assert list(map(json.loads, done.stdout.splitlines())) == [
        {"file": str(data / name), "bytes": (data / name).stat().st_size} for name in names
    ]
    assert (
        done.stderr
        == "note: features.sepal_length.default: not expressed: TFDS fails at a record without the feature\n"
    )
    refused = run("describe", home)
    assert refused.returncode == 3
    assert refused.stderr == (
        f"`{home}/manifest.json` does not exist: the dataset was not built, or not by recordspec\n"
    )


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["count", "none"], 3, "`none` does not exist"),
        (["count", "folder"], 3, "`folder` has no TFRecords: folder is empty"),
        (["head", "text"], 1, "text: expected a TFRecord file, got text that begins 'hello there, world'"),
        (["build", "none.yaml"], 3, "none.yaml: cannot read: no such file or directory"),
        (["build", "folder"], 3, "folder: cannot read: is a directory"),
        (["build", "text"], 2, "text:1:1: expected a mapping, got str `hello there, world`"),
        (["explain", "text"], 2, "text:1:1: expected a mapping, got str `hello there, world`"),
        (
            ["head", "text", "-n", "-1"],
            2,
            "Error: Invalid value for '-n': -1 is not in the range 1<=x<=2147483648.",
        ),
        (["bild"], 2, "Error: No such command 'bild' (did you mean `build`?)"),
        (["publish"], 2, "Error: No such command 'publish'."),
    ],
)
def test_what_is_wrong_is_told_in_a_line(tmp_path, arguments, status, message):
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("hello there, world")
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == status
    assert message in done.stderr.splitlines()[-1]
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("head data/flowers -n 60 | head -n 1", 0),
        # of the violations none is judged before the end
        ("check other.yaml data/flowers --examples 60 | true", 141),
        ("check other.yaml data/flowers 2>&1 > violations | true", 141),
    ],
)
def test_a_pipe_that_closes_is_no_error_and_no_success_either(home, command, status):
    (home / "other.yaml").write_text("schema: o\nfeatures: {species: {dtype: float32}, petal_length: int64}")
    command = f"{sys.executable} -m recordspec {command}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=ENVIRONMENT, cwd=home)
    assert (done.returncode, done.stderr) == (status, "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_an_output_that_is_closed_is_no_error(home, closed):
    command = f"{sys.executable} -m recordspec count {home}/data/flowers {closed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=ENVIRONMENT)
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) is (closed == "2>&-")


FULL = "cannot read or write: no space left on device\n"


@pytest.mark.parametrize(
    ("command", "status", "stderr"),
    [
        ("count data/flowers > /dev/full", 3, FULL),
        ("count data/flowers > /dev/full 2>&1", 3, ""),
        ("count data/nothing 2> /dev/full", 3, ""),
        ("count --nothing 2> /dev/full", 2, ""),
    ],
)
def test_an_output_that_is_full_is_an_error(home, command, status, stderr):
    command = f"{sys.executable} -m recordspec {command}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=ENVIRONMENT, cwd=home)
    assert (done.returncode, done.stderr) == (status, stderr)


def test_without_stderr_no_progress_is_shown(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with Progress() as progress:
        progress.begin("rows", 3)
        progress.advance(3)


# A build that says when it is in the midst of its rows, and then waits.
WAITING = """
import signal, sys
from recordspec import cli
from recordspec.writing.sorter import Sorter

def wait(*_, **__):
    print("encoding", flush=True)
    sys.stdin.read()

Sorter.add = wait
signal.signal(signal.SIGINT, signal.default_int_handler)  # who started the tests may ignore it
cli.main()
"""


def test_ctrl_c_leaves_nothing_and_exits_with_130(tmp_path):
    run("init", tmp_path)
    command = [sys.executable, "-c", WAITING, "build", str(tmp_path / "configs/flowers.yaml")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=ENVIRONMENT) as build:
        assert build.stdout.readline() == "encoding\n"
        build.send_signal(signal.SIGINT)
        _, stderr = build.communicate()
    message = f"{tmp_path}/data/flowers: interrupted after 0 rows (nothing was published)\n"
    assert (build.returncode, stderr) == (130, message)
    assert os.listdir(tmp_path / "data") == []


def test_the_records_of_a_build_are_those_of_its_rows(home):
    files = sorted((home / "data/flowers").glob("*.tfrecord"))
    assert sum(1 for file in files for _ in scan(file)) == 60


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(shell, monkeypatch, capsys):
    def completed(instruction: str, **variables: str) -> str:
        for name, value in {"_RECORDSPEC_COMPLETE": f"{shell}_{instruction}", **variables}.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as done:
            main()
        assert done.value.code == 0
        return capsys.readouterr().out

    assert "_recordspec_completion" in completed("source")
    command = {"COMP_WORDS": "recordspec bu", "COMP_CWORD": "bu" if shell == "fish" else "1"}
    assert re.findall(r"\b(build|bench)\b", completed("complete", **command)) == ["build"]
    option = {"COMP_WORDS": "recordspec build --jo", "COMP_CWORD": "--jo" if shell == "fish" else "2"}
    assert "--jobs" in completed("complete", **option)


def test_docs_shows_the_pages_of_the_documentation(capsys):
    listed = run("docs")
    assert '{"page": "building", "title": "Building datasets"}' in listed.stdout.splitlines()
    assert run("docs", "docs/building.md").stdout == run("docs", "building").stdout
    assert run("docs", "building").stdout.startswith("# Building datasets\n")
    for page in map(json.loads, listed.stdout.splitlines()):
        shown = run("docs", page["page"])
        assert shown.returncode == 0
        assert not {"{{", ":::", "```{"} & set(shown.stdout.split())
    wrong = run("docs", "bulding")
    assert wrong.returncode == 2
    assert wrong.stderr == (
        "expected a page that `recordspec docs` lists, got `bulding` (did you mean `building`?)\n"
    )
