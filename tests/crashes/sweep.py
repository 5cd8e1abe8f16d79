"""Crashes and failures at every point at which a command changes the disk.

    python tests/crashes/sweep.py                     # every point of every command
    python tests/crashes/sweep.py --sample 60         # about 60 points, evenly spread, and the core
    python tests/crashes/sweep.py --sample 60 --run 7 # other points, and the core
    python tests/crashes/sweep.py build append        # every point of these commands

`shim.c` is compiled and loaded with LD_PRELOAD. One process imports recordspec and forks a child for each
point: the child runs a command, and at the n-th call that changes a file below the watched folder the shim
kills it, cuts a write, fails the call or interrupts it. Then the target must be the old or the new dataset,
byte for byte, and the next command must leave nothing but the dataset. A loss of power is computed from the
record of an undisturbed run: data that was not synchronised is lost. Exits with 1 if any point is wrong, and
with 77 if there is no compiler.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import gc
import hashlib
import itertools
import json
import logging
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from disk import Call, Disk, Tree, calls

HERE = Path(__file__).parent

# The modes of a failure at a point, with their numbers in shim.c.
COUNT, KILL, TORN, SHORT, FAIL, DEAD, INTERRUPT = range(7)
MODES = {
    "kill": KILL,
    "torn write": TORN,
    "short write": SHORT,
    "fail": FAIL,
    "fail on": DEAD,
    "ctrl-c": INTERRUPT,
}
WRITES_ONLY = (TORN, SHORT)
POWER = "power loss"

MOST_SECONDS = 120
SKIPPED = 77
# linux/prctl.h: this process adopts the children of a child that has ended.
PR_SET_CHILD_SUBREAPER = 36

# The arguments of a command, or a function.
What = list[str] | Callable[[], None]

# The names of attempts and folders are counted instead of random, so that equal crashes leave equal files,
# and only one of them must be continued. Each process of a trial counts from another number.
NAMES = itertools.count()
FIRST, NEXT, BEFORE = 0, 1 << 20, 2 << 20


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command whose crashes are tried.

    Attributes:
        run: the arguments of the command, or a function.
        before: the name of the state that the command finds.
        again: the command to run after a crash that left the old dataset; by default the same command.
        repeats: whether the next run writes the same files. It does not for an index, which has the times of
            its shards, and for an adopted dataset, whose earlier files stay under their names.
        resume: the command that resumes; None if nothing can be resumed.
        clear: the command to run after a crash that left the new dataset, and the state that it must leave.
        files: whether the target is a set of single files, each replaced independently.
        jobs: the number of processes.
    """

    run: What
    before: str = "empty"
    again: What | None = None
    repeats: bool = True
    resume: list[str] | None = None
    clear: tuple[What, str | None] | None = None
    files: bool = False
    jobs: int = 1


SCHEMA = "schema: s\nfeatures:\n  id: int64\n  text: string\n"
CONFIG = """\
schema: schema.yaml
data: run/data
write:
  source: {{csv: {rows}.csv}}
  key: id
  splits: {{a: 2, b: 1}}
  shards: {shards}
  shuffle: {{seed: 1}}
  invalid: quarantine
{more}"""


def build(config: str, *more: str) -> list[str]:
    return ["build", f"{config}.yaml", *more]


def reshard(*more: str) -> list[str]:
    return ["reshard", "states/source/data", "run/data", "--shards", "2", *more]


def commands() -> dict[str, Command]:
    replaced = (build("new", "--force"), None)
    made: dict[str, Command] = {}
    for jobs in (1, 2):
        how = ("--jobs", str(jobs))
        suffix = "" if jobs == 1 else ", 2 jobs"
        made |= {
            f"build{suffix}": Command(
                run=build("new", *how),
                resume=build("new", "--resume"),
                clear=replaced,
                jobs=jobs,
            ),
            f"build --force{suffix}": Command(
                run=build("new", "--force", *how),
                before="old",
                resume=build("new", "--force", "--resume", *how),
                clear=replaced,
                jobs=jobs,
            ),
            f"build --append{suffix}": Command(
                run=build("more", "--append", *how),
                before="old",
                resume=build("more", "--append", "--resume"),
                clear=(build("old", "--force"), "old"),
                jobs=jobs,
            ),
            f"build --resume{suffix}": Command(
                run=build("new", "--resume", *how),
                before="begun",
                again=build("new"),
                resume=build("new", "--resume"),
                clear=replaced,
                jobs=jobs,
            ),
            f"reshard to blocks{suffix}": Command(
                run=reshard("--blocks", "4", *how),
                resume=reshard("--blocks", "4", "--resume"),
                clear=(reshard("--blocks", "4", "--force"), None),
                jobs=jobs,
            ),
        }
    made |= {
        "build in blocks, gzip": Command(
            run=build("blocks"), resume=build("blocks", "--resume"), clear=(build("blocks", "--force"), None)
        ),
        "build --append to blocks": Command(
            run=build("blocks-more", "--append"),
            before="blocks",
            resume=build("blocks-more", "--append", "--resume"),
            clear=(build("blocks", "--force"), "blocks"),
        ),
        "reshard --force": Command(
            run=reshard("--force"),
            before="old",
            resume=reshard("--force", "--resume"),
            clear=(reshard("--force"), None),
        ),
        "ShardedWriter": Command(run=write_rows, before="old", clear=(write_rows, None)),
        "write, shuffled": Command(run=write_shuffled, before="old", clear=(write_shuffled, None)),
        "repair --force": Command(
            run=["repair", "states/source/data", "--out", "run/data", "--force"],
            before="old",
            clear=(["repair", "states/source/data", "--out", "run/data", "--force"], None),
        ),
        "a file put into a dataset": Command(run=put_beside, before="old", files=True),
        "index": Command(run=["index", "run/data"], before="indexed", files=True, repeats=False),
        "adopt": Command(
            run=["adopt", "run/data", "--schema", "schema.yaml"], before="foreign", files=True, repeats=False
        ),
        "a single file": Command(run=write_file, files=True),
        "infer a schema and a config": Command(
            run=["infer", "old.csv", "--out", "run/s.yaml", "--config", "run/c.yaml"], files=True
        ),
        "stats to a page": Command(
            run=["stats", "states/source/data", "--html", "run/out.html"], before="exported", files=True
        ),
    }
    for form in ("jsonl", "csv", "parquet"):
        made[f"export to {form}"] = Command(
            run=["export", "states/source/data", "--out", f"run/out.{form}", "--force"],
            before="exported",
            files=True,
        )
    return made


def write_rows() -> None:
    """Writes Python rows directly to their shards."""
    import recordspec as rs

    schema = rs.Schema.load("schema.yaml")
    rows = [{"id": number, "text": "x" * number} for number in range(20)]
    with rs.ShardedWriter(schema, "run/data", shards=2, expected=20, force=True) as writer:
        for row in rows:
            writer.write(row)


def write_shuffled() -> None:
    """Writes Python rows that are sorted on the disk."""
    import recordspec as rs

    rows = [{"id": number, "text": "x" * number} for number in range(20)]
    options = {"key": "id", "shuffle": 1, "shards": 2}
    rs.write(rows, rs.Schema.load("schema.yaml"), "run/data", force=True, **options)


def put_beside() -> None:
    from recordspec.store.sidecars import add_sidecars

    add_sidecars(Path("run/data"), {"features.json": "{}\n" * 9, "labels.txt": "a\nb\n"})


def write_file() -> None:
    from recordspec.locations import output_file

    with output_file(Path("run/schema.yaml"), force=False) as begun:
        begun.write_text(SCHEMA)


def lines(numbers: range, bad: int) -> str:
    rows = (f"{'x' if number == bad else number},text of {number}" for number in numbers)
    return "\n".join(["id,text", *rows]) + "\n"


# Running a command.


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code, or minus the number of the signal, and its messages."""

    code: int
    stderr: str


class World:
    """A folder with the files that commands read (`states`, configs) and change (`run`)."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.run, self.states = folder, folder / "run", folder / "states"
        self.whole: set[int] = set()  # the states from which commands have continued correctly
        self.shim = ctypes.CDLL(None)
        self.shim.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.shim.crash_arm.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_long]
        self.shim.crash_disarm.restype = ctypes.c_long
        self.shim.crash_record.restype = ctypes.c_void_p
        self.states.mkdir()
        (self.states / "empty").mkdir()
        (folder / "schema.yaml").write_text(SCHEMA)
        # below a few hundred bytes, so that a small file has several parts
        for name, numbers, bad in (
            ("old", range(9), 4),
            ("new", range(20, 44), 30),
            ("more", range(50, 62), 55),
        ):
            (folder / f"{name}.csv").write_text(lines(numbers, bad))
            (folder / f"{name}.yaml").write_text(CONFIG.format(rows=name, shards=2, more=""))
        (folder / "source.yaml").write_text(CONFIG.format(rows="new", shards=1, more=""))
        blocks = "  layout: {blocks: 4}\n  compression: gzip\n"
        for name, rows in (("blocks", "new"), ("blocks-more", "more")):
            text = CONFIG.format(rows=rows, shards=2, more=blocks)
            (folder / f"{name}.yaml").write_text(text)
        os.chdir(folder)
        self._make_states()

    def _make_states(self) -> None:
        # in this process, so that its children have imported all they need
        self.reset("empty")
        with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
            logging.disable()
            ended(build("blocks"))
            ended(build("blocks", "--force"))
            ended(["reshard", "run/data", "run/other", "--blocks", "0"])
            logging.disable(logging.NOTSET)
        for name in ("old", "source", "blocks"):
            self.reset("empty")
            self._do(build(name))
            self.run.rename(self.states / name)
        self.reset("old")
        self._do(["index", "run/data"])
        (self.run / "data/index.bin").write_text("{}")
        self.run.rename(self.states / "indexed")
        self.reset("source")
        for path in (self.run / "data").iterdir():
            if path.suffix != ".tfrecord":
                path.unlink()
        self.run.rename(self.states / "foreign")
        self.reset("empty")
        for form in ("jsonl", "csv", "parquet", "html"):
            (self.run / f"out.{form}").write_text("old\n")
        self.run.rename(self.states / "exported")
        # a build that was killed after it had written some of its shards
        self.reset("empty")
        self._do(build("new"))
        whole = int(self.shim.crash_disarm())
        self.reset("empty")
        self.forked(build("new"), KILL, whole * 3 // 5, BEFORE)
        self.run.rename(self.states / "begun")

    def _do(self, arguments: list[str]) -> None:
        outcome = self.forked(arguments)
        if outcome.code:
            raise SystemExit(f"{arguments}: exit code {outcome.code}\n{outcome.stderr}")

    def reset(self, state: str) -> None:
        shutil.rmtree(self.run, ignore_errors=True)
        shutil.copytree(self.states / state, self.run, symlinks=True)

    def record(self) -> list[Call]:
        size = ctypes.c_size_t()
        start = self.shim.crash_record(ctypes.byref(size))
        return list(calls(ctypes.string_at(start, size.value)))

    def forked(self, what: What, mode: int = COUNT, at: int = 0, names: int = FIRST) -> Outcome:
        """Runs a command in a child, in a process group of its own."""
        sys.stdout.flush()
        self.shim.crash_arm(os.fsencode(self.run), mode, at)
        child = os.fork()
        if not child:
            self._child(what, names)
        with contextlib.suppress(OSError):  # the child has done it, or is gone
            os.setpgid(child, child)
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # its workers, which have its lock until they are gone
            while True:
                os.waitpid(-child, 0)
        self.shim.crash_disarm()
        return Outcome(os.waitstatus_to_exitcode(status), (self.folder / "stderr").read_text())

    def _child(self, what: What, names: int) -> None:
        global NAMES
        code, NAMES = 70, itertools.count(names)
        try:
            os.setpgid(0, 0)
            gc.disable()
            for handle, name in ((1, "stdout"), (2, "stderr")):
                os.dup2(os.open(self.folder / name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), handle)
            faulthandler.register(signal.SIGALRM, file=2, chain=True)
            signal.alarm(MOST_SECONDS)  # kills a command that hangs, and says where
            signal.signal(signal.SIGINT, signal.default_int_handler)
            code = ended(what)
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)


def ended(what: What) -> int:
    """The exit code of a command."""
    import recordspec as rs
    from recordspec import cli

    try:
        if not callable(what):
            sys.argv = ["recordspec", *what]
            cli.main()
        what()
    except SystemExit as done:
        return int(done.code or 0)
    except rs.RecordspecError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except (rs.Interrupted, KeyboardInterrupt) as error:
        print(str(error) or "interrupted", file=sys.stderr)
        return 130
    return 0


def tree(folder: Path) -> Tree:
    """The files below a folder, by their paths in it; folders have a slash at their end."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name + "/" * path.is_dir()] = b"" if path.is_dir() else path.read_bytes()
    return found


# Judging the files that a crash has left.

# Text that may precede the message on stderr.
WARNINGS = re.compile(r".*: an unfinished build is discarded \(--resume would continue it\)$")
MESSAGE = re.compile(r"\S+: (expected .+, got .+|cannot .+: .+)$")
OWNER, JOURNAL = "owner.json", ".data.partial/work/journal.jsonl"
VERSION = re.compile(r"-v\d+(?=(-add\d+)?-\d{5}-of-)")
OF_PROCESS = re.compile(r"(?<=\.partial\.)\w+\.\d+(?=\.)")


class WrongStateError(Exception):
    """A crash has left neither the old nor the new state."""


@dataclass
class Trial:
    """A command, and the states that its crashes may leave."""

    world: World
    command: Command
    old: Tree = field(init=False)
    new: Tree = field(init=False)
    calls: list[Call] = field(init=False)
    count: int = field(init=False)

    def __post_init__(self) -> None:
        self.world.reset(self.command.before)
        self.start = tree(self.world.run)
        self.old = published(self.start)
        outcome = self.world.forked(self.command.run)
        self.count, self.calls = int(self.world.shim.crash_disarm()), self.world.record()
        self.new = tree(self.world.run)
        if outcome.code:
            raise SystemExit(f"{self.command.run}: exit code {outcome.code}\n{outcome.stderr}")
        if [name for name in self.new if name.startswith(".")]:
            raise SystemExit(f"{self.command.run} leaves {sorted(self.new)}")
        check_hashes(self.new)

    def points(self, mode: str) -> list[int]:
        if mode == POWER:
            return list(range(len(self.calls) + 1))
        if self.command.jobs > 1 and MODES[mode] in (SHORT, DEAD):  # they are the same in any process
            return []
        writes_only = MODES[mode] in WRITES_ONLY
        if len(self.calls) != self.count:
            raise SystemExit(f"{self.command.run}: {len(self.calls)} of {self.count} calls are recorded")
        return [at for at, call in enumerate(self.calls, 1) if not writes_only or call.size > 1]

    def check(self, mode: str, at: int) -> None:
        """Raises WrongStateError."""
        if mode == POWER:
            self._check_power(at)
            return
        self.world.reset(self.command.before)
        outcome = self.world.forked(self.command.run, MODES[mode], at)
        left = tree(self.world.run)
        if MODES[mode] in (KILL, TORN):
            if outcome.code not in (-signal.SIGKILL, 0):
                raise WrongStateError(f"exit code {outcome.code}: {outcome.stderr}")
        else:
            self._check_end(outcome, left, MODES[mode])
        self._check_next()

    def _check_end(self, outcome: Outcome, left: Tree, mode: int) -> None:
        """Checks the end of a command that was not killed."""
        text = outcome.stderr
        now = without_owner(left)
        if outcome.code == 0:
            if now != published(self.new):
                raise WrongStateError(f"exit code 0, but not the new dataset: {difference(now, self.new)}")
            return
        expected = 130 if mode == INTERRUPT else 3
        if outcome.code != expected or mode == SHORT:
            raise WrongStateError(f"exit code {outcome.code}: {text}")
        told = [line for line in text.splitlines() if not WARNINGS.match(line)]
        if len(told) != 1 or (mode != INTERRUPT and not MESSAGE.match(told[0])):
            raise WrongStateError(f"message: {text}")
        if "nothing was published" in text and now != self.old:
            raise WrongStateError(f"it was published, but the message is: {text}")
        if "--resume" in text and JOURNAL not in left:
            raise WrongStateError(f"nothing to resume; the message is: {text}")
        if mode != DEAD and now == self.old and "--resume" not in text:
            # Ctrl-C may leave only a folder that is being made, and has no name yet
            more = {name for name in left if mode != INTERRUPT or not OF_PROCESS.search(name)}
            if JOURNAL in left and JOURNAL in self.start:  # a build that is not resumed yet stays as it was
                more = {name for name in more if not name.startswith(".data.partial/work/")}
            if more - set(self.start):
                raise WrongStateError(f"left: {difference(left, self.start)}; the message is: {text}")

    def _check_power(self, at: int) -> None:
        disk = Disk(self.world.run, self.start)
        for call in self.calls[:at]:
            disk.do(call)
        for state in disk.lost():
            restore(self.world.run, state)
            self._check_next()
            if at == len(self.calls) and without_owner(state) != published(self.new):
                raise WrongStateError(f"not the new dataset when it is done: {difference(state, self.new)}")

    def _check_next(self) -> None:
        """Checks that the state is whole, and that the next command leaves nothing but the dataset."""
        left = tree(self.world.run)
        if self.command.files:
            self._check_files(left)
            return
        now = without_owner(left)
        if now == published(self.new) and self.command.clear is not None:
            what, state = self.command.clear
            expected = self.new if state is None else tree(self.world.states / state)
            self._check_leaves(what, left, expected, replaces=True)
        elif now == self.old:
            if self.command.resume is not None:
                self._check_leaves(self.command.resume, left, self.new, resumes=True)
            self._check_leaves(self.command.again or self.command.run, left, self.new)
        else:
            raise WrongStateError(f"neither the old nor the new dataset: {difference(now, self.new)}")

    def _check_files(self, left: Tree) -> None:
        """Checks that each file is the old or the new one, and that the next run leaves only new files."""
        for name, data in left.items():
            hidden = re.search(r"(^|/)\.", name)  # a file that was begun
            if not hidden and data not in (self.start.get(name), self.new.get(name)):
                raise WrongStateError(f"{name} is neither the old nor the new file: {data!r}")
        for name in self.start:
            if name not in left:
                raise WrongStateError(f"{name} is gone")
        if "data/manifest.json" in left:
            check_hashes(left)
        if self.command.repeats and published(left) != published(self.new):
            self._check_leaves(self.command.run, left, self.new)

    def _check_leaves(
        self, what: What, left: Tree, expected: Tree, *, resumes: bool = False, replaces: bool = False
    ) -> None:
        """Checks that a command turns the files into a state. A combination that was tried before is skipped.

        The shards of a dataset that replaces another have other names than the shards of the state.
        """
        name = " ".join(what) if isinstance(what, list) else what.__name__
        # of an unfinished build, only a command that resumes it reads more than names
        found = frozenset(
            (OF_PROCESS.sub("", path), OWNER not in path and (resumes or path[0] != ".") and data)
            for path, data in left.items()
        )
        key = hash((name, found))
        if key in self.world.whole:
            return
        if tree(self.world.run) != left:
            restore(self.world.run, left)
        outcome = self.world.forked(what, names=NEXT)
        given = tree(self.world.run)
        if replaces:
            given, expected = without_versions(given), without_versions(expected)
        if outcome.code or given != expected:
            text = f"exit code {outcome.code}, {difference(given, expected)}: {outcome.stderr}"
            raise WrongStateError(f"then `{name}`: {text}")
        self.world.whole.add(key)


def published(found: Tree) -> Tree:
    """The files visible to a reader."""
    return {name: data for name, data in found.items() if not name.startswith(".")}


def without_owner(found: Tree) -> Tree:
    """The files without the one that a writer leaves if it dies right after publishing."""
    return {name: data for name, data in published(found).items() if name != f"data/{OWNER}"}


def without_versions(found: Tree) -> Tree:
    """The files, with the shard names of a first build."""
    renamed = {VERSION.sub("", name): data for name, data in found.items()}
    if (manifest := renamed.get("data/manifest.json")) is not None:
        data = json.loads(VERSION.sub("", manifest.decode()))
        del data["sha256"]
        renamed["data/manifest.json"] = json.dumps(data).encode()
    if (report := renamed.get("data/repair.json")) is not None:
        renamed["data/repair.json"] = VERSION.sub("", report.decode()).encode()
    return renamed


def restore(folder: Path, state: Tree) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in state.items():
        if name.endswith("/"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)


def difference(found: Tree, expected: Tree) -> str:
    said = [f"{name} is missing" for name in expected if name not in found]
    said += [f"{name} is foreign" for name in found if name not in expected]
    said += [f"{name} differs" for name in found if name in expected and found[name] != expected[name]]
    return ", ".join(said) or "no difference"


def check_hashes(found: Tree) -> None:
    """Checks the files of a dataset against its manifest. The manifest has no hashes of adopted files."""
    if "data/manifest.json" not in found:
        return
    manifest = json.loads(found["data/manifest.json"])
    hashes = {
        shard["file"]: shard["sha256"] for split in manifest["splits"].values() for shard in split
    } | manifest.get("beside", {})
    for name, sha256 in hashes.items():
        data = found.get(f"data/{name}")
        is_known = sha256 or "adopted" not in manifest
        if data is None or (is_known and hashlib.sha256(data).hexdigest() != sha256):
            raise WrongStateError(f"data/{name} is not what the manifest says")


# The sweep.


@dataclass(frozen=True, order=True)
class Point:
    """A trial: a command, the mode of the failure, and the number of the call at which it happens."""

    command: str
    mode: str
    at: int


@dataclass(frozen=True)
class Sample:
    """The points that a run tries: an evenly spread part, and the core.

    Attributes:
        size: the approximate number of points; 0 for all.
        run: the number of the run. It shifts the spread part.
    """

    size: int
    run: int

    def points(self, trials: dict[str, Trial]) -> list[Point]:
        points = [
            Point(name, mode, at)
            for name, trial in trials.items()
            for mode in (*MODES, POWER)
            for at in trial.points(mode)
        ]
        if not self.size:
            return points
        fixed = core(trials)
        step = max(1, len(points) // max(1, self.size - len(fixed)))
        spread = points[self.run % step :: step]
        return spread + sorted(fixed.difference(spread))


def core(trials: dict[str, Trial]) -> set[Point]:
    """The points of every run: for each command, the first call of each kind, in one mode.

    The modes alternate, so that each kind of call is tried in each mode by several commands.
    """
    points = set()
    for number, (name, trial) in enumerate(trials.items()):
        first = {call.name: at for at, call in reversed([*enumerate(trial.calls, 1)])}
        for turn, at in enumerate(first.values(), number):
            modes = [mode for mode in (*MODES, POWER) if at in trial.points(mode)]
            points.add(Point(name, modes[turn % len(modes)], at))
    return points


def sweep(names: list[str], sample: Sample, claims: Path) -> Iterator[dict[str, object]]:
    """Tries the points of a sample that no other process has claimed."""
    from recordspec import executors
    from recordspec.writing.sources import base

    base.PART_BYTES = 120
    executors._ALONE = 0.0
    uuid.uuid4 = lambda: uuid.UUID(int=next(NAMES) << 80)
    tempfile._get_candidate_names = lambda: (f"{number:08}" for number in NAMES)  # type: ignore[attr-defined]
    spawned = multiprocessing.get_context
    multiprocessing.get_context = lambda method=None: spawned("fork")  # type: ignore[assignment]
    with tempfile.TemporaryDirectory(prefix="recordspec-crashes-", dir=memory()) as folder:
        world = World(Path(folder).resolve())
        known = commands()
        gc.freeze()  # a collection in a child would copy the pages of all that is loaded
        trials = {name: Trial(world, known[name]) for name in names}
        for point in claimed(sample.points(trials), claims):
            wrong = None
            try:
                trials[point.command].check(point.mode, point.at)
            except WrongStateError as error:
                wrong = str(error).replace(str(world.folder), "")
            yield {"command": point.command, "mode": point.mode, "at": point.at, "wrong": wrong}


def claimed(points: list[Point], claims: Path) -> Iterator[Point]:
    """The points of this process. All points of a command, with any number of jobs, belong to one process,
    which knows the states it has tried. The commands with the most points come first."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(point.command.partition(", ")[0], []).append(point)
    for name, group in sorted(groups.items(), key=lambda item: -len(item[1])):
        with contextlib.suppress(FileExistsError):
            (claims / name).touch(exist_ok=False)
            yield from group


def memory() -> str | None:
    """A folder in memory, if there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help=f"of {', '.join(commands())}")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="about that many points")
    parser.add_argument(
        "--run", type=int, default=0, metavar="N", help="shifts the sample: each run tries other points"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--claims", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.commands or list(commands())
    if unknown := set(names) - set(commands()):
        parser.error(f"no such command: {', '.join(sorted(unknown))}")
    if options.claims is not None:
        for result in sweep(names, Sample(options.sample, options.run), options.claims):
            print(json.dumps(result), flush=True)
        return 0
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="recordspec-shim-") as folder:
        sample = Sample(options.sample, options.run)
        results = list(swept(compiled(Path(folder)), names, sample, options.processes))
    return report(results, time.monotonic() - start)


def compiled(folder: Path) -> Path:
    """The shim as a shared library. Exits with 77 if there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        print("crash tests need Linux and a C compiler: cc, gcc or clang", file=sys.stderr)
        raise SystemExit(SKIPPED)
    shim = folder / "shim.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", shim, HERE / "shim.c", "-ldl", "-lpthread"], check=True
    )
    return shim


def swept(shim: Path, names: list[str], sample: Sample, processes: int) -> Iterator[dict[str, Any]]:
    """The results of several processes, each of which tries some of the points."""
    # Output of LD_PRELOAD, and warnings about forks of a process with threads, are not messages.
    environment = {**os.environ, "LD_PRELOAD": str(shim), "PYTHONWARNINGS": "ignore"}
    claims = shim.with_name("claims")
    claims.mkdir()
    part = ("--sample", str(sample.size), "--run", str(sample.run))
    command = [sys.executable, __file__, *names, *part, "--claims", str(claims)]
    outputs = [shim.with_name(f"part-{part}.jsonl") for part in range(processes)]
    running = []
    for path in outputs:
        with path.open("w") as output:  # a pipe that is full would stop a process until its turn
            running.append(subprocess.Popen(command, env=environment, stdout=output))
    codes = [process.wait() for process in running]
    if any(codes):
        raise SystemExit(3)
    for path in outputs:
        yield from map(json.loads, path.read_text().splitlines())


def report(results: list[dict[str, Any]], seconds: float) -> int:
    """Prints the points of each command, and the errors."""
    tried = Counter(result["command"] for result in results)
    wrong = [result for result in results if result["wrong"]]
    failed = Counter(result["command"] for result in wrong)
    for name in (name for name in commands() if tried[name]):
        print(f"{name:28} {tried[name]:6,} points, {failed[name]} wrong")
    for result in wrong:
        print(f"{result['command']}: {result['mode']} at call {result['at']}: {result['wrong']}")
    modes = Counter(result["mode"] for result in results)
    print(
        f"{len(results):,} points ({', '.join(f'{modes[mode]:,} {mode}' for mode in modes)}) in {seconds:.0f} s"
    )
    print(f"wrong: {len(wrong)}")
    return 1 if wrong or not results else 0


if __name__ == "__main__":
    sys.exit(main())
