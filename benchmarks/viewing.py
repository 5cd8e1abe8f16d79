"""How soon the page of `recordspec view` has its rows, and what its server takes.

    python benchmarks/viewing.py [--gigabytes 10] [--rows 1000000] [--runs 3] [--folder /dev/shm]

Two datasets: shards of records of 100 KB, and many small rows. For each question of the page it prints the
best of the runs, in seconds of the wall clock, and for the server the peak of its memory and its CPU time.
The page asks again until an answer is done: `first` is the answer that has rows, `whole` the last.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

import numpy as np

import recordspec as rs

LARGE = """
schema: large
features:
  number: int64
  data: string
"""
SMALL = """
schema: rides
features:
  number: int64
  fare: float32
  paid: {kind: label, names: [cash, card, other]}
  note: {kind: text}
"""
RECORD = 100_000


def large(gigabytes: float) -> Iterator[dict[str, Any]]:
    draws = np.random.default_rng(1)
    payloads = [draws.bytes(RECORD) for _ in range(32)]
    for number in range(int(gigabytes * 1e9 / RECORD)):
        yield {"number": number, "data": payloads[number % 32]}


def small(rows: int) -> Iterator[dict[str, Any]]:
    fares = np.random.default_rng(2).gamma(2, 8, rows).astype(np.float32)
    for number, fare in enumerate(fares.tolist()):
        yield {"number": number, "fare": fare, "paid": number % 3, "note": f"ride {number}"}


class Viewer:
    """The server, and one who asks it."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "recordspec", "view", str(folder), "--no-browser"]
        begun = time.perf_counter()
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        url = self._process.stdout.readline().strip()
        self.start = time.perf_counter() - begun
        self._base, self._opener = url.partition("?")[0], build_opener(HTTPCookieProcessor())
        self._opener.open(url).read()

    def ask(self, name: str, **asked: Any) -> Any:
        with self._opener.open(f"{self._base}api/{name}?{urlencode(asked)}") as answer:
            return json.loads(answer.read())

    def until(self, is_enough: Callable[[Any], bool], name: str, **asked: Any) -> tuple[float, float]:
        """The seconds to the first answer that is enough, and to the last."""
        begun, first, seen = time.perf_counter(), None, 0
        while True:
            answer = self.ask(name, **asked, seen=seen)
            seen = answer.get("version", 0)
            now = time.perf_counter() - begun
            if first is None and is_enough(answer):
                first = now
            if answer.get("done", True):
                return first if first is not None else now, now

    @property
    def memory(self) -> int:
        """The peak of the memory of the server, in MB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) // 1000

    @property
    def cpu(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def has_rows(answer: Any) -> bool:
    return bool(answer.get("rows"))


def measured(folder: Path, where: str) -> dict[str, float]:
    (folder / "statistics.json").unlink(missing_ok=True)
    viewer = Viewer(folder)
    try:
        seconds = {"start of the server": viewer.start}
        begun = time.perf_counter()
        total = viewer.ask("files")["total"]
        viewer.until(has_rows, "rows", first=0, count=100)
        seconds["first rows, from the page's load"] = time.perf_counter() - begun
        seconds["last rows"] = viewer.until(has_rows, "rows", first=total - 100, count=100)[1]
        found = viewer.until(
            lambda answer: len(answer.get("rows", [])) == 100, "rows", first=0, count=100, where=where
        )
        seconds["filter, first page"], seconds["filter, whole"] = found
        ordered = viewer.until(has_rows, "rows", first=0, count=100, sort="number", descending="")
        seconds["sorted by a column"] = ordered[1]
        counted = viewer.until(lambda answer: answer.get("value") is not None, "statistics")
        seconds["statistics of the first rows"], seconds["statistics of all"] = counted
        return {**seconds, "CPU of all, s": viewer.cpu, "peak memory, MB": viewer.memory}
    finally:
        viewer.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", default="/dev/shm")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name, schema, rows, where in (
            (f"{options.rows:,} small rows", SMALL, small(options.rows), "fare > 60"),
            (
                f"{options.gigabytes:g} GB of records of 100 KB",
                LARGE,
                large(options.gigabytes),
                "number % 7 = 3",
            ),
        ):
            target = Path(folder) / "data"
            rs.write(
                rows, rs.Schema.loads(schema), target, shards=20, shuffle=None, force=True, progress=False
            )
            runs = [measured(target, where) for _ in range(options.runs)]
            print(f"\n{name}")
            for what in runs[0]:
                print(f"  {what:40} {min(run[what] for run in runs):8.2f}")


if __name__ == "__main__":
    main()
