"""A build that was broken off, at whatever moment and by whatever, goes on to the bytes of one that was not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from test_writing_build import files

import recordspec as rs
from recordspec.store.journal import Journal
from recordspec.writing.sources import base
from recordspec.writing.sources.csv import Csv

pytestmark = pytest.mark.slow

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {id: int64, text: string}")
OPTIONS = {"key": "id", "split": {"a": 3, "b": 1}, "shuffle": 1, "shards": 3, "invalid": "quarantine"}
PART = 5000

# Builds, and is broken off when the journal gets its line number `line`.
BUILD = """
import multiprocessing, os, signal, sys
from multiprocessing import resource_tracker
from pathlib import Path
import recordspec as rs
from recordspec import executors
from recordspec.store.journal import Journal
from recordspec.writing.sources import base
from recordspec.writing.sources.csv import Csv

executors._ALONE = 0.0

def main(folder, how, line, jobs, resume):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored
    base.PART_BYTES = {part}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore it
    added, add = 0, Journal.add

    def breaking(self, entry):
        nonlocal added
        add(self, entry)
        added += 1
        if added == line:
            if how == "worker":
                os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)
            elif how == "tracker":
                os.kill(resource_tracker._resource_tracker._pid, signal.SIGKILL)
            elif how == "terminal":
                os.killpg(0, signal.SIGINT)
            elif how == "disk":
                import resource
                resource.setrlimit(resource.RLIMIT_FSIZE, (1000, -1))
            else:
                os.kill(os.getpid(), getattr(signal, how))

    Journal.add = breaking
    schema = rs.Schema.loads({schema!r})
    source = Csv(files="rows.csv").open(Path(folder))
    try:
        rs.write(source, schema, Path(folder, "data"), jobs=jobs, resume=resume, **{options!r})
    except (rs.RecordspecError, rs.Interrupted) as error:
        print(error, file=sys.stderr)
        sys.exit(9)

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), "resume" in sys.argv)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("script") / "build.py"
    path.write_text(BUILD.format(part=PART, schema=SCHEMA.dump(), options=OPTIONS))
    return path


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What an undisturbed build gives: parts of a source are cut alike in any process."""
    folder = tmp_path_factory.mktemp("expected")
    make_rows(folder)
    rs.write(source(folder), SCHEMA, folder / "data", **OPTIONS)
    return {name: data for name, data in files(folder / "data").items() if name != "rejects.jsonl"}


def make_rows(folder: Path) -> None:
    lines = [f'{number},"text of, {number}"' for number in range(2000)]
    lines[1500] = "x,bad"
    (folder / "rows.csv").write_text("\n".join(["id,text", *lines]) + "\n")


def source(folder: Path):
    return Csv(files="rows.csv").open(folder)


def run(script: Path, folder: Path, how: str, line: int, *more: str) -> subprocess.CompletedProcess:
    command = [sys.executable, script, folder, how, str(line), *more]
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, start_new_session=True
    )


@pytest.fixture
def resume(monkeypatch):
    """Goes on with a build in this process, which knows nothing of the one that was broken off."""
    monkeypatch.setattr(base, "PART_BYTES", PART)
    return lambda folder, jobs: rs.write(
        source(folder), SCHEMA, folder / "data", jobs=jobs, resume=True, **OPTIONS
    )


def finished(folder: Path) -> dict[str, bytes]:
    made = files(folder / "data")
    line = json.loads(made.pop("rejects.jsonl"))
    assert (line["row"], line["place"]) == (1500, f"{folder}/rows.csv:1502")
    assert sorted(os.listdir(folder)) == ["data", "rows.csv"]
    return made


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("line", [1, 4, 8, 11, 13])
def test_killed_and_resumed_it_gives_the_same_bytes(tmp_path, script, resume, expected, jobs, line):
    make_rows(tmp_path)
    killed = run(script, tmp_path, "SIGKILL", line, jobs)
    assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, "")
    assert not (tmp_path / "data").exists()
    resume(tmp_path, jobs=1)
    assert finished(tmp_path) == expected


@pytest.mark.parametrize(
    ("how", "jobs", "message"),
    [
        ("SIGINT", "1", "interrupted after "),
        ("SIGINT", "2", "interrupted after "),
        ("terminal", "2", "interrupted after "),
        ("worker", "2", "expected 2 processes to the end, got one that died "),
        ("disk", "1", "cannot write: file too large, after "),
    ],
)
def test_what_is_done_is_kept_for_resume(tmp_path, script, resume, expected, how, jobs, message):
    make_rows(tmp_path)
    broken = run(script, tmp_path, how, 5, jobs)
    assert broken.returncode == 9, broken.stderr
    # Python 3.13 may say on the next lines that it ignored an error of the pool that broke
    line, *more = broken.stderr.splitlines()
    assert not more or (how == "worker" and more[0].startswith("Exception ignored in"))
    assert line.startswith(f"{tmp_path}/data: {message}")
    if how != "worker":
        assert line.endswith("rows are safe: resume=True, or --resume, continues from there)")
    resume(tmp_path, jobs=2)
    assert finished(tmp_path) == expected


def test_a_process_of_python_that_was_killed_is_not_needed(tmp_path, script, expected):
    """The first child of a build with several jobs: who looks for its workers may find it instead."""
    make_rows(tmp_path)
    done = run(script, tmp_path, "tracker", 5, "2")
    message = f"1 of 2,000 rows are invalid: see {tmp_path}/data/rejects.jsonl\n"
    assert (done.returncode, done.stderr) == (0, message)
    assert finished(tmp_path) == expected


def test_parts_that_are_done_are_not_encoded_again(tmp_path, script, monkeypatch):
    make_rows(tmp_path)
    run(script, tmp_path, "SIGKILL", 6, "1")
    monkeypatch.setattr(base, "PART_BYTES", PART)
    added = []
    monkeypatch.setattr(Journal, "add", lambda self, entry: added.append(next(iter(entry))))
    rs.write(source(tmp_path), SCHEMA, tmp_path / "data", resume=True, **OPTIONS)
    parts = len(list(source(tmp_path).parts(SCHEMA, ())))
    assert added.count("part") == parts - 6


def test_a_run_that_lost_its_file_is_made_again(tmp_path, script, resume, expected):
    make_rows(tmp_path)
    run(script, tmp_path, "SIGKILL", 5, "1")
    lost = sorted((tmp_path / ".data.partial/work").glob("part-00002*.run"))
    assert len(lost) == 1
    lost[0].write_bytes(b"")
    resume(tmp_path, jobs=1)
    assert finished(tmp_path) == expected


def test_another_build_cannot_go_on_with_it(tmp_path, script, caplog):
    make_rows(tmp_path)
    run(script, tmp_path, "SIGKILL", 5, "1")
    with (tmp_path / "rows.csv").open("a") as file:
        file.write("5000,more\n")
    with pytest.raises(rs.StoreError) as caught:
        rs.write(source(tmp_path), SCHEMA, tmp_path / "data", resume=True, **{**OPTIONS, "shards": 2})
    assert str(caught.value) == (
        f"`{tmp_path}/data` has an unfinished build of another options, source, version: "
        "without resume=True, or --resume, it starts from the beginning; see `recordspec docs explanation/publishing`"
    )
    rs.write([{"id": 1, "text": ""}], SCHEMA, tmp_path / "other")
    (tmp_path / "other").rename(tmp_path / "data")
    with pytest.raises(rs.StoreError, match="build of another dataset to replace, source, version: "):
        rs.write(source(tmp_path), SCHEMA, tmp_path / "data", resume=True, force=True, **OPTIONS)
    shutil.rmtree(tmp_path / "data")
    assert (tmp_path / ".data.partial/work/journal.jsonl").exists()
    caplog.clear()
    rs.write(source(tmp_path), SCHEMA, tmp_path / "data", **OPTIONS)
    assert caplog.messages[0] == (
        f"{tmp_path}/data: an unfinished build is discarded (--resume would continue it)"
    )
    assert sorted(os.listdir(tmp_path)) == ["data", "rows.csv"]


def test_there_may_be_nothing_to_resume(tmp_path, expected):
    make_rows(tmp_path)
    rs.write(source(tmp_path), SCHEMA, tmp_path / "data", resume=True, **OPTIONS)
    assert finished(tmp_path) == expected


def test_a_row_that_is_wrong_leaves_nothing(tmp_path):
    make_rows(tmp_path)
    with pytest.raises(rs.RecordError):
        rs.write(source(tmp_path), SCHEMA, tmp_path / "data", jobs=2, **{**OPTIONS, "invalid": "error"})
    assert os.listdir(tmp_path) == ["rows.csv"]
