"""Builds from Parquet or JSON Lines with one and with two jobs, and a shuffle that exceeds its memory limit.

    python benchmarks/jobs.py [--rows 1000000] [--jobs 1 2] [--runs 5] [--source jsonl]
    python benchmarks/jobs.py --memory 256MiB

Rows are Criteo-like, in a Parquet file with row groups of 65,536, or in a file of JSON Lines. Each run
measures the whole command `recordspec build` in a new process: three splits, shuffled, 16 shards a split.
Runs with different numbers of jobs are interleaved; the first of each is a warm-up, and the best time of the
others is reported. The shards must have equal bytes. CPU time is that of all processes. Memory is the peak of
their summed resident sizes, sampled every 20 ms, so that a shared page counts once a process.

With `--memory` the rows have four times as many bytes as that limit, which is passed to the command; memory
is then the proportional size (PSS), in which a shared page counts once.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow
from pyarrow import parquet

from writing.data import DATASETS, STRINGS
from writing.worker import touch_memory

ROW_GROUP = 65_536
SAMPLE_SECONDS = 0.02
CRITEO = DATASETS["criteo"]
RECORD_BYTES = 784  # of a Criteo-like row
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
CONFIG = """\
schema: schema.yaml
data: data
write:
  source: {SOURCE: rows.SOURCE}
  splits: {train: 8, validation: 1, test: 1}
  shards: 16
  shuffle: {seed: 1}
"""


@dataclass(frozen=True, kw_only=True)
class Build:
    """The measurements of one run."""

    wall: float
    cpu: float
    memory: int


def main() -> None:
    options = arguments()
    rows = options.rows
    if options.memory:
        rows = 4 * bytes_of(options.memory) // RECORD_BYTES
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        prepare(folder, rows, options.source)
        builds = alternate(folder, options)
    print(table(builds, rows, options.source, options.memory))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--source", choices=["parquet", "jsonl"], default="parquet")
    parser.add_argument("--memory", help="an allowance such as 256MiB, for four times as many bytes")
    parser.add_argument("--folder", type=Path, help="where the files are; by default /tmp or $TMPDIR")
    return parser.parse_args()


def bytes_of(size: str) -> int:
    match = re.fullmatch(r"(\d+)(KiB|MiB|GiB)", size)
    if match is None:
        sys.exit(f"--memory: expected a size such as 256MiB, got {size}")
    return int(match[1]) * UNITS[match[2]]


def prepare(folder: Path, rows: int, source: str) -> None:
    """Writes the rows, the schema and the config."""
    columns = {
        name: pyarrow.array(values, pyarrow.binary()).cast(pyarrow.string()) if name in STRINGS else values
        for name, values in CRITEO.make(rows).items()
    }
    table = pyarrow.table(columns)
    if source == "parquet":
        parquet.write_table(table, folder / "rows.parquet", row_group_size=ROW_GROUP)
    else:
        with open(folder / "rows.jsonl", "w") as file:
            for batch in table.to_batches(ROW_GROUP):
                file.writelines(json.dumps(row) + "\n" for row in batch.to_pylist())
    (folder / "schema.yaml").write_text(CRITEO.schema)
    (folder / "config.yaml").write_text(CONFIG.replace("SOURCE", source))


def alternate(folder: Path, options: argparse.Namespace) -> dict[int, list[Build]]:
    """The runs by number of jobs, without warm-ups. Exits if their bytes differ."""
    builds: dict[int, list[Build]] = {jobs: [] for jobs in options.jobs}
    content: dict[int, str] = {}
    for turn in range(options.runs + 1):
        for jobs in options.jobs:
            taken = build(folder, jobs, options.memory)
            content[jobs] = digest(folder / "data")
            settle(folder)
            if turn:
                builds[jobs].append(taken)
    if len(set(content.values())) > 1:
        sys.exit(f"other jobs made other bytes: {content}")
    return builds


def settle(folder: Path) -> None:
    """Deletes the shards, and resets disk and memory for the next run."""
    written = sum(path.stat().st_size for path in (folder / "data").iterdir())
    shutil.rmtree(folder / "data")
    os.sync()
    touch_memory(folder / "memory", 2 * written)


def build(folder: Path, jobs: int, memory: str | None) -> Build:
    """Runs the command once. Exits with its message if it fails."""
    command = [sys.executable, "-m", "recordspec", "build", "config.yaml", "--jobs", str(jobs), "--force"]
    command += ["--memory", memory] if memory else []
    cpu, start = cpu_seconds(), time.perf_counter()
    with open(folder / "output.txt", "w+") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
        watch = Watch(process.pid, proportional=memory is not None)
        code = process.wait()
        wall = time.perf_counter() - start
        watch.stop()
        if code:
            output.seek(0)
            sys.exit(output.read())
    return Build(wall=wall, cpu=cpu_seconds() - cpu, memory=watch.peak)


def cpu_seconds() -> float:
    """CPU seconds of all terminated child processes and their descendants."""
    times = resource.getrusage(resource.RUSAGE_CHILDREN)
    return times.ru_utime + times.ru_stime


class Watch:
    """Samples the memory of a process and of its descendants, in a thread.

    Attributes:
        peak: the peak of their total bytes.
    """

    def __init__(self, pid: int, *, proportional: bool) -> None:
        self.peak = 0
        self._proportional = proportional
        self._root = psutil.Process(pid)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        turn, family = 0, [self._root]
        while not self._ended.wait(SAMPLE_SECONDS):
            if turn % 10 == 0:  # listing all processes costs more than a sample
                family = [self._root, *self._descendants()]
            turn += 1
            self.peak = max(self.peak, sum(self._size(one) for one in family))

    def _descendants(self) -> list[psutil.Process]:
        try:
            return list(self._root.children(recursive=True))
        except psutil.Error:
            return []

    def _size(self, process: psutil.Process) -> int:
        """The size of a process; 0 after it ended."""
        try:
            return int(process.memory_full_info().pss if self._proportional else process.memory_info().rss)
        except (psutil.Error, OSError):
            return 0


def digest(data: Path) -> str:
    """The digest of the names and bytes of all shards."""
    total = hashlib.sha256()
    for path in sorted(data.glob("*.tfrecord*")):
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                total.update(piece)
        total.update(path.name.encode())
    return total.hexdigest()


def table(builds: dict[int, list[Build]], rows: int, source: str, memory: str | None) -> str:
    """The best times, in Markdown, compared with those of the first number of jobs; of memory the maximum."""
    allowed = f" within {memory}" if memory else ""
    lines = [
        f"`recordspec build` of {rows:,} Criteo-like rows from {source}{allowed}: shuffled, three splits, "
        f"16 shards each; {os.cpu_count()} cores\n",
        "| jobs | wall, s | CPU, s | rows/s | peak memory, MiB | wall of the first | CPU of the first |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]
    first = None
    for jobs, runs in builds.items():
        wall, cpu = (min(getattr(run, what) for run in runs) for what in ("wall", "cpu"))
        first = first or (wall, cpu)
        peak = max(run.memory for run in runs) / (1 << 20)
        cells = f"{wall:.1f} | {cpu:.1f} | {rows / wall:,.0f} | {peak:,.0f}"
        cells += f" | {wall / first[0]:.2f} | {cpu / first[1]:.2f}"
        lines.append(f"| {jobs} | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
