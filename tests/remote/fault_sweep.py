"""Faults at every request of every command on a store. `test_faults.py` runs some of them, this file all.

    python tests/remote/fault_sweep.py            # every fault of every command on GCS
    python tests/remote/fault_sweep.py s3 build   # every fault of one command on S3

A command must end with the same result as without a fault, or with a clear error that names the URL. The
published dataset must be the old one or the new one, whole. The command must succeed when it is repeated.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from faulty_proxy import Fault
from servers import SECRET, SESSION, Server, fresh_stores, start

import recordspec as rs
from recordspec import cli, remote
from recordspec.remote import RemotePath
from recordspec.wire.hashes import sha256_of

SCHEMA = rs.Schema.loads("schema: s\nfeatures:\n  id: int64\n  text: string\n")
OPTIONS: dict[str, Any] = {"key": "id", "split": {"train": 3, "test": 1}, "shuffle": 2, "shards": 2}
FEW = {
    "max_retries": 2,
    "retry_timeout": timedelta(seconds=5),
    "backoff": {"init_backoff": timedelta(milliseconds=5)},
}
ALWAYS = 1_000_000
# The faults from a request on: once, or always.
FAULTS: dict[str, Callable[[], Fault]] = {
    "500": lambda: Fault("status", status=500),
    "429": lambda: Fault("status", status=429),
    "503 always": lambda: Fault("status", status=503, times=ALWAYS),
    "403 always": lambda: Fault(
        "status", status=403, times=ALWAYS, body=b"<Error><Code>AccessDenied</Code></Error>"
    ),
    "no bucket": lambda: Fault(
        "status", status=404, times=ALWAYS, body=b"<Error><Code>NoSuchBucket</Code></Error>"
    ),
    "no object": lambda: Fault("status", status=404, body=b"<Error><Code>NoSuchKey</Code></Error>"),
    "drop": lambda: Fault("drop"),
    "drop always": lambda: Fault("drop", times=ALWAYS),
    "lost answer": lambda: Fault("lost answer"),
    "lost answers": lambda: Fault("lost answer", times=ALWAYS),
    "cut": lambda: Fault("cut"),
    "flip": lambda: Fault("flip"),
}
# A dataset without its keys is compared by values; `verify` reports that the keys are missing.
WITHOUT = {("diff", "no object")}
CONFIG = """\
schema: schema.yaml
data: data
write: {source: {csv: rows.csv}, key: id, splits: {train: 3, test: 1}, shards: 2, shuffle: {seed: 2}}
"""

Files = dict[str, tuple[bytes, str | None]]


@dataclass(frozen=True)
class Command:
    """A command on a folder of a store.

    Attributes:
        run: runs the command; returns its output or the rows it reads, None for a command that writes.
        rows: the rows of the dataset before and after.
    """

    run: Callable[[RemotePath, Path], Any]
    before: int | None = 40
    after: int | None = None


def rows(start: int, stop: int) -> list[dict[str, Any]]:
    return [{"id": number, "text": f"row {number}"} for number in range(start, stop)]


def _said(*arguments: object) -> str:
    """The output of a command. Raises ValueError with its output on both streams if it fails."""
    out, err = io.StringIO(), io.StringIO()
    old, sys.argv = sys.argv, ["recordspec", *map(str, arguments)]
    stdout = os.dup(1)  # a command closes it after an error of the system
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
    except SystemExit as end:
        if end.code:
            raise ValueError(err.getvalue() + out.getvalue()) from None
    finally:
        sys.argv = old
        os.dup2(stdout, 1)
        os.close(stdout)
    return out.getvalue()


def _read(place: RemotePath, work: Path, **options: Any) -> list[int]:
    dataset = rs.read(
        place / "data",
        SCHEMA,
        split="train",
        batch=8,
        staging={"folder": str(work / "copies"), "size": "1MiB"},
        **options,
    )
    return [number for batch in dataset for number in batch["id"].numpy().tolist()]


def _written(place: RemotePath, start: int, stop: int, **how: Any) -> None:
    rs.write(rows(start, stop), SCHEMA, place / "data", **OPTIONS, **how)


def _exported(place: RemotePath, work: Path) -> bytes:
    _said("export", place / "data", "--out", work / "out.jsonl", "--force")
    return (work / "out.jsonl").read_bytes()


COMMANDS: dict[str, Command] = {
    "write": Command(lambda place, work: _written(place, 0, 40), None, 40),
    "force": Command(lambda place, work: _written(place, 0, 60, force=True), 40, 60),
    "append": Command(lambda place, work: _written(place, 40, 60, append=True), 40, 60),
    "build": Command(lambda place, work: _said("build", place / "config.yaml", "--json") and None, None, 40),
    "read": Command(_read),
    "shuffle": Command(lambda place, work: _read(place, work, shuffle=16, seed=1, repeat=2)),
    "export": Command(_exported),
    **{
        name: Command(lambda place, work, name=name, more=more: _said(name, *(place / one for one in more)))
        for name, more in {
            "count": ["data"],
            "verify": ["data"],
            "info": ["data"],
            "head": ["data"],
            "stats": ["data"],
            "check": ["data"],
            "diff": ["data", "data"],
            "lint": ["config.yaml"],
        }.items()
    },
}


_sweeps = itertools.count()


class FaultSweep:
    """Trials on one server.

    Attributes:
        trials: the number of trials, by command and fault.
        wrong: the errors, one line each.
    """

    def __init__(self, server: Server, work: Path) -> None:
        self.server, self.work = server, work
        self.trials: Counter[tuple[str, str]] = Counter()
        self.ends: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._numbers = itertools.count()
        self._name = f"sweep-{next(_sweeps)}"
        self._states: dict[int | None, Files] = {}
        self._results: dict[str, Any] = {}

    def requests(self, name: str) -> int:
        """The requests of a command without a fault."""
        place = self._prepared(COMMANDS[name])
        with self.server.proxy.failing():
            COMMANDS[name].run(place, self._fresh())
        return len(self.server.proxy.log)

    def run(self, name: str, kinds: list[str], step: int = 1, first: int = 0) -> None:
        """Runs trials of a command, with each fault at every `step`-th request from `first` on."""
        count = self.requests(name)
        for kind, number in itertools.product(kinds, range(first, count, step)):
            if (name, kind) not in WITHOUT:
                self.trial(name, kind, number)

    def trial(self, name: str, kind: str, number: int) -> None:
        """Runs a command with a fault at a request, and then without a fault."""
        command, fault = COMMANDS[name], FAULTS[kind]()
        place, work = self._prepared(command), self._fresh()
        expected = None if command.after is not None else self._expected(name, place, work)
        fault.skip = number

        def fail(what: str) -> None:
            self.wrong.append(f"{self.server.scheme} {name}, {kind} at request {number}: {what}")

        with self.server.proxy.failing(fault):
            found, problem = self._run(command, place, work, fail)
        if not fault.done:
            self.ends["not reached"] += 1
            return
        self.trials[name, kind] += 1
        self.ends["right" if problem is None else "error"] += 1
        if problem is not None:
            self._check_message(problem, place, fail)
        elif command.after is None and found != expected:
            fail(f"gave {found!r:.200}, not {expected!r:.200}")
        published = None if command.after is None else self._published(command, place, fail)
        # without any answer it cannot be told whether the manifest was written
        if kind == "lost answers" and published == command.after is not None:
            return
        if command.after is not None and (problem is None) != (published == command.after):
            fail(f"told {problem or 'nothing'!r:.300}, published {published} rows")
        elif problem is not None:
            self._repeat(command, place, expected, fail)

    def _repeat(
        self, command: Command, place: RemotePath, expected: Any, fail: Callable[[str], None]
    ) -> None:
        """Runs a failed command again, without a fault."""
        again, problem = self._run(command, place, self._fresh(), fail)
        if problem is not None:
            fail(f"repeated: {problem}")
        elif command.after is None and again != expected:
            fail(f"repeated: gave {again!r:.200}")
        elif command.after is not None and self._published(command, place, fail) != command.after:
            fail("repeated: not published")

    @staticmethod
    def _run(
        command: Command, place: RemotePath, work: Path, fail: Callable[[str], None]
    ) -> tuple[Any, str | None]:
        """The result of a command, and its error."""
        try:
            return command.run(place, work), None
        except (rs.RecordspecError, ValueError) as error:
            return None, str(error)
        except Exception as error:
            if type(error).__module__.startswith("tensorflow."):  # of an iterator, which raises no other
                return None, str(error)
            fail(f"raised {type(error).__name__}: {error}")
            return None, str(error)

    @staticmethod
    def _check_message(said: str, place: RemotePath, fail: Callable[[str], None]) -> None:
        if str(place.root) not in said:
            fail(f"does not name the URL: {said}")
        if any(
            one in said for one in ("Traceback", "panicked", "Debug source", "Generic {", SECRET, SESSION)
        ):
            fail(f"not clear: {said[:1000]}")

    @staticmethod
    def _published(command: Command, place: RemotePath, fail: Callable[[str], None]) -> int | None:
        """The rows of the dataset, after a check of its files; None if there is no dataset."""
        if not (place / "data/manifest.json").exists():
            if command.before is not None:
                fail("the dataset is gone")
            return None
        manifest = rs.Manifest.load(place / "data")
        for shard in manifest.all_shards:
            if sha256_of(place / "data" / shard.file) != shard.sha256:
                fail(f"{shard.file} is another file")
        schema = rs.Schema.load(place / "data" / manifest.name_of("schema.yaml"))
        count = sum(manifest.rows(split) for split in manifest.splits)
        if schema.fingerprint != manifest.fingerprint or count not in (command.before, command.after):
            fail(f"published {count} rows")
        return count

    def _expected(self, name: str, place: RemotePath, work: Path) -> Any:
        if name not in self._results:
            self._results[name] = COMMANDS[name].run(place, work)
            self._fresh()
        return self._results[name]

    def _prepared(self, command: Command) -> RemotePath:
        """A folder with the old dataset, the config and the rows; a new folder for a command that writes."""
        if command.before not in self._states:
            self._states[command.before] = self._state(command.before)
        if command.after is None:
            return RemotePath.parse(f"{self.server.root}/{self._name}/state-{command.before}")
        place = RemotePath.parse(f"{self.server.root}/{self._name}/trial-{next(self._numbers)}")
        for name, (data, sha256) in self._states[command.before].items():
            remote._put(
                place / name, data, mode="overwrite", attributes={} if sha256 is None else {"sha256": sha256}
            )
        return place

    def _state(self, count: int | None) -> Files:
        place = RemotePath.parse(f"{self.server.root}/{self._name}/state-{count}")
        remote.create(place / "schema.yaml", SCHEMA.dump().encode())
        remote.create(place / "config.yaml", CONFIG.encode())
        lines = "".join(f"{row['id']},{row['text']}\n" for row in rows(0, 40))
        remote.create(place / "rows.csv", f"id,text\n{lines}".encode())
        if count is not None:
            _written(place, 0, count)
        found = {}
        for one, _ in remote.walk(place):
            uploaded = remote.uploaded(one)
            found[str(one.relative_to(place))] = (one.read_bytes(), uploaded[0] if uploaded else None)
        return found

    def _fresh(self) -> Path:
        """A folder without copies of shards: a command would read them in place of the shards in the
        store."""
        shutil.rmtree(self.work / "copies", ignore_errors=True)
        return self.work


@contextlib.contextmanager
def few_retries() -> Iterator[None]:
    """A context in which requests are repeated only twice, soon: a permanent fault is reported at once."""
    retries, before = remote.RETRIES, dict(remote._RETRY)
    remote._RETRY.update(FEW)
    remote.RETRIES = 2
    try:
        with fresh_stores():
            yield
    finally:
        remote._RETRY.update(before)
        remote.RETRIES = retries


def main() -> None:
    given = sys.argv[1:]
    scheme = given.pop(0) if given and given[0] in ("s3", "gs", "az") else "gs"
    with tempfile.TemporaryDirectory() as folder, few_retries():
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        server = start(scheme, Path(folder))
        os.environ.update(server.environment)
        sweep = FaultSweep(server, Path(folder))
        for name in given or COMMANDS:
            before = len(sweep.wrong)
            sweep.run(name, [*FAULTS])
            print(
                name,
                sum(many for (one, _), many in sweep.trials.items() if one == name),
                "faults",
                flush=True,
            )
            for line in sweep.wrong[before:]:
                print("  ", line)
        server.close()
    print(f"{sum(sweep.trials.values())} faults, {dict(sweep.ends)}, {len(sweep.wrong)} wrong")
    sys.exit(bool(sweep.wrong))


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    main()
