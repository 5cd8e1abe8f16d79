"""Questions on a cluster beside one machine, and datasets of many shards.

    python benchmarks/questions.py [--rows 2000000] [--shards 1000 10000 99999]

The first table: wall time of commands on Criteo-like rows in 64 shards, in one process, in two, and on Spark
(`local-cluster[2,1,1024]`: two executors of one core), whose session is started once, before. The second:
three rows a shard; what one process takes for a build, to open it, to the first batch, and for questions; its
CPU time and its peak memory. The third: the same questions on Spark, with the peak memory of the driver's
Python and of its JVM. All files are in memory; each figure is of a new process, and the best of `--runs` for
the first table. A scan reads all columns of all rows as Arrow; on Spark, as a frame.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
SCHEMA = "schema: s\nfeatures: {id: int64, x: float32}\n"
# The questions that run in one process, or on a cluster.
IN_ONE = ("export", "scan")
QUESTIONS = ("verify", "check", "stats", *IN_ONE)


def asked(name: str, data: str, session: Any = None, **options: Any) -> None:
    import recordspec as rs
    from recordspec import executors

    if name == "scan":
        sum(map(len, rs.scan(data).to_batches())) if session is None else frame(session, data)
    elif name == "export":
        out = Path(f"{data}-{executors.new_attempt()}.jsonl")
        rs.export(data, out)
        shutil.rmtree(out) if out.is_dir() else out.unlink()
    else:
        answers: dict[str, Callable[..., Any]] = {"verify": rs.verify, "check": rs.check, "stats": rs.stats}
        answers[name](data, **options)


def frame(session: Any, data: str) -> None:
    from recordspec import spark

    spark.read(session, data).count()


def first_batch(data: str, way: str) -> None:
    import recordspec as rs

    if way == "lanes":
        next(iter(rs.iterate(data, batch=240, shuffle={"lanes": 240, "seed": 1})))
    else:
        next(iter(rs.read(data, batch=256, shuffle={"buffer": 10_000, "seed": 1})))


def criteo(data: str, rows: int) -> None:
    import recordspec as rs
    from writing.data import DATASETS
    from writing.data import criteo as made

    parts = [made(min(250_000, rows - first), first) for first in range(0, rows, 250_000)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    rs.write(columns, rs.Schema.loads(DATASETS["criteo"].schema), data, shards=64, progress=False)


def tiny(data: str, shards: int) -> None:
    import recordspec as rs

    rows = ({"id": number, "x": number / 2} for number in range(3 * shards))
    rs.write(rows, rs.Schema.loads(SCHEMA), data, shards=shards, progress=False)


def opened(data: str) -> None:
    import recordspec as rs

    rs.open(data)


def session_of(folder: str) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("benchmark")
    for name, value in (
        ("spark.local.dir", folder),
        ("spark.ui.enabled", "false"),
        ("spark.ui.showConsoleProgress", "false"),
        ("spark.log.level", "ERROR"),
    ):
        builder = builder.config(name, value)
    return builder.getOrCreate()


def on_spark(data: str, names: list[str], runs: int) -> dict[str, Any]:
    """The seconds of each question on Spark, the best of some runs; of the start, the session and a first
    question; and the peak memory of the driver."""
    from recordspec import spark
    from spark import Watch

    warnings.simplefilter("ignore")
    watch = Watch()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        session = session_of(folder)
        started = time.perf_counter() - begin
        found: dict[str, Any] = {"session": started}
        with spark.running_on(session):
            for name in names:
                times = []
                for _ in range(runs):
                    begin = time.perf_counter()
                    asked(name, data, session)
                    times.append(time.perf_counter() - begin)
                found[name], found[f"{name}, first"] = min(times), times[0]
        watch.stop()
        session.stop()
    return found | {"memory": watch.driver}


def one(what: str, data: str, options: dict[str, Any]) -> dict[str, Any]:
    begin, cpu = time.perf_counter(), time.process_time()
    if what == "spark":
        return on_spark(data, **options)
    calls = {"criteo": criteo, "tiny": tiny, "open": opened, "first batch": first_batch}
    if what in calls:
        calls[what](data, **options)
    else:
        asked(what, data, **options)
    return {
        "wall": time.perf_counter() - begin,
        "CPU": time.process_time() - cpu,
        "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def alone(what: str, data: str, **options: Any) -> dict[str, Any]:
    """Runs in a new process."""
    command = [sys.executable, __file__, "--one", what, data, json.dumps(options)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--shards", type=int, nargs="*", default=[1000, 10_000, 99_999])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        what, data, given = options.one
        print(json.dumps(one(what, data, json.loads(given))))
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        if options.rows:
            walls(f"{folder}/criteo", options.rows, options.runs)
        for shards in options.shards:
            many(f"{folder}/{shards}", shards)


def walls(data: str, rows: int, runs: int) -> None:
    alone("criteo", data, rows=rows)
    size = sum(path.stat().st_size for path in Path(data).iterdir())
    found = alone("spark", data, names=QUESTIONS, runs=runs)
    print(f"{rows:,} rows, {size / 1e9:.2f} GB; a session of Spark starts in {found['session']:.1f} s")
    print("| | one process, s | two processes, s | two executors, s | the first question of a session, s |")
    print("|---|--:|--:|--:|--:|")
    for name in QUESTIONS:
        given: list[dict[str, int]] = [{}] if name in IN_ONE else [{"jobs": 1}, {"jobs": 2}]
        here = [min(alone(name, data, **jobs)["wall"] for _ in range(runs)) for jobs in given]
        times = [*here, *[None] * (2 - len(here)), found[name], found[f"{name}, first"]]
        cells = ["" if seconds is None else f"{seconds:.1f}" for seconds in times]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def many(data: str, shards: int) -> None:
    print(f"{shards:,} shards\n| | wall, s | CPU, s | MiB |\n|---|--:|--:|--:|")
    told = {"build": alone("tiny", data, shards=shards), "open": alone("open", data)}
    told |= {f"first batch, {way}": alone("first batch", data, way=way) for way in ("lanes", "TensorFlow")}
    told |= {name: alone(name, data) for name in QUESTIONS}
    for name, found in told.items():
        print(f"| {name} | {found['wall']:.1f} | {found['CPU']:.1f} | {found['MiB']:.0f} |", flush=True)
    found = alone("spark", data, names=QUESTIONS, runs=1)
    times = ", ".join(f"{name} {found[name]:.1f}" for name in QUESTIONS)
    both, python, java = found["memory"]
    print(
        f"on Spark, s: {times}; the driver: {both:.0f} MiB (Python {python:.0f}, JVM {java:.0f})", flush=True
    )


if __name__ == "__main__":
    main()
