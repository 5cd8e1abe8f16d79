"""The command line as a shell sees it (`__main__`): output, exit codes, `progress`, and no traceback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import pytest

import recordspec as rs
from recordspec.cli import main
from recordspec.progress import Progress
from shell import ENVIRONMENT, run

pytestmark = pytest.mark.slow


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


def test_count_and_head_tell_what_is_there(home):
    data = home / "data/flowers"
    counted = [json.loads(line) for line in run("count", data).stdout.splitlines()]
    assert sum(line["records"] for line in counted) == 60
    shown = [json.loads(line) for line in run("head", data, "-n", "3").stdout.splitlines()]
    assert len(shown) == 3
    assert shown[0]["features"].keys() >= {"id", "petal_length", "species"}


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["count", "none"], 3, "`none` does not exist"),
        (["count", "folder"], 3, "`folder` has no TFRecords: folder is empty"),
        (["head", "text"], 1, "text: expected a TFRecord file, got text that begins 'hello there, world'"),
        (["build", "none.yaml"], 3, "none.yaml: cannot read: no such file or directory"),
        (["build", "folder"], 2, "folder: expected the file of a feature spec or of a config, got a folder"),
        (["build", "text"], 2, "text:1:1: expected a mapping, got str `hello there, world`"),
        (["explain", "text"], 2, "text:1:1: expected a mapping, got str `hello there, world`"),
        (
            ["head", "text", "-n", "-1"],
            2,
            "Error: Invalid value for '-n': -1 is not in the range 1<=x<=2147483648.",
        ),
        (["bild"], 2, "Error: No such command 'bild' (did you mean `build`?)"),
        (["publish"], 2, "Error: No such command 'publish'."),
        (
            ["describe", "data"],
            2,
            "Error: `recordspec describe` was removed: use `recordspec export DATA --as tfds`",
        ),
        (["language"], 2, "Error: `recordspec language` was removed: use `recordspec docs language`"),
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
        ("check data/flowers --schema other.yaml --examples 60 | true", 141),
        ("check data/flowers --schema other.yaml 2>&1 > violations | true", 141),
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
