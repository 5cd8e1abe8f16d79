"""Builds on Spark of two sizes: rows/s, and the memory of the driver and of an executor.

    python benchmarks/spark.py [--rows 2000000 20000000] [--shards 64] [--folder DIR]

Rows are Criteo-like, made by the job itself, 250,000 a partition; the build shuffles them into 64 shards on
the disk. Spark is `local-cluster[2,1,1024]`: two executors of one core and 1 GiB, each a JVM with a Python
worker. Each size is built once in a new process. Time is that of the build, without that of the session's
start. Memory is the peak of summed resident sizes, sampled every 50 ms: of the driver, Python and its JVM;
and of the larger of the two executors, its JVM, Python's daemon and workers.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parent
PARTITION = 250_000
BATCH = 8192
SAMPLE_SECONDS = 0.05
EXECUTOR = "CoarseGrainedExecutorBackend"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 20_000_000])
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--folder", type=Path, help="where the files are; by default /tmp or $TMPDIR")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.rows[0], options.shards, options.folder)))
        return
    print("| rows | GB | wall, s | rows/s | driver, MiB (Python, JVM) | executor, MiB (JVM, Python) |")
    print("|--:|--:|--:|--:|--:|--:|")
    for rows in options.rows:
        found = alone(rows, options.shards, options.folder)
        driver, executor = (
            "{:,.0f} ({:,.0f}, {:,.0f})".format(*found[name]) for name in ("driver", "executor")
        )
        speed = rows / found["wall"]
        cells = (
            f"{rows:,}",
            f"{found['bytes'] / 1e9:.1f}",
            f"{found['wall']:.0f}",
            f"{speed:,.0f}",
            driver,
            executor,
        )
        print(f"| {' | '.join(cells)} |", flush=True)


def alone(rows: int, shards: int, folder: Path | None) -> dict[str, Any]:
    """Measures a build in a new process, in a folder of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        command = [sys.executable, __file__, "--one", "--rows", str(rows), "--shards", str(shards)]
        done = subprocess.run([*command, "--folder", name], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(done.returncode)
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


def measured(rows: int, shards: int, folder: Path) -> dict[str, Any]:
    """Builds in this process."""
    warnings.simplefilter("ignore")
    # executors import `writing.data`
    os.environ["PYTHONPATH"] = f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    import recordspec as rs
    from recordspec import spark
    from writing.data import DATASETS

    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("benchmark")
    for name, value in (
        ("spark.local.dir", str(folder)),
        ("spark.ui.enabled", "false"),
        ("spark.ui.showConsoleProgress", "false"),
        ("spark.log.level", "ERROR"),
    ):
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    frame = session.range(0, rows, 1, max(2, -(-rows // PARTITION))).mapInArrow(criteo_rows, columns())
    schema = rs.Schema.loads(DATASETS["criteo"].schema)
    watch = Watch()
    start = time.perf_counter()
    manifest = spark.write(frame, schema, folder / "data", shuffle=1, shards=shards)
    wall = time.perf_counter() - start
    watch.stop()
    session.stop()
    assert manifest.rows("train") == rows
    shutil.rmtree(folder / "data")
    return {
        "wall": wall,
        "bytes": manifest.bytes("train"),
        "driver": watch.driver,
        "executor": watch.executor,
    }


def columns() -> str:
    from writing.data import FLOATS, STRINGS

    names = [*(f"{name} float" for name in FLOATS), *(f"{name} string" for name in STRINGS)]
    return ", ".join(["label long", *names])


def criteo_rows(batches: Iterator[Any]) -> Iterator[Any]:
    """On an executor: rows in the place of their numbers, the same each time."""
    import pyarrow

    from writing.data import STRINGS, criteo

    for batch in batches:
        numbers = batch.column(0)
        for start in range(0, len(numbers), BATCH):
            part = numbers.slice(start, BATCH)
            made = criteo(len(part), part[0].as_py())
            arrays = [
                pyarrow.array(values, pyarrow.binary()).cast(pyarrow.string())
                if name in STRINGS
                else pyarrow.array(values)
                for name, values in made.items()
            ]
            yield pyarrow.RecordBatch.from_arrays(arrays, list(made))


class Watch:
    """Samples the memory of this process and of its descendants, in a thread.

    Attributes:
        driver: the peak in MiB, of it Python's part, and the JVM's.
        executor: of the larger executor the peak, of it the JVM's part, and Python's.
    """

    def __init__(self) -> None:
        self.driver = self.executor = (0.0, 0.0, 0.0)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        this, turn = psutil.Process(), 0
        java: list[psutil.Process] = []
        executors: list[psutil.Process] = []
        while not self._ended.wait(SAMPLE_SECONDS):
            if turn % 20 == 0:
                family = this.children(recursive=True)
                executors = [one for one in family if EXECUTOR in " ".join(command_of(one))]
                java = [one for one in this.children() if one not in executors]
            turn += 1
            self.driver = larger(self.driver, size(this), sum(map(size, java)))
            for one in executors:
                self.executor = larger(self.executor, size(one), sum(map(size, below(one))))


def larger(before: tuple[float, float, float], first: float, second: float) -> tuple[float, float, float]:
    return max(before, (first + second, first, second))


def size(process: psutil.Process) -> float:
    try:
        return float(process.memory_info().rss) / (1 << 20)
    except psutil.Error:
        return 0.0


def below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.Error:
        return []


def command_of(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


if __name__ == "__main__":
    main()
