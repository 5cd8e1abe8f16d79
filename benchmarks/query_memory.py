"""The memory of queries over many rows: a join of two datasets, a sort, an aggregate of many groups.

    python benchmarks/query_memory.py [--rows 1000000] [--memory 200MB]

Each query is a `recordspec query` of its own, whose largest resident memory is reported; the number of rows
of its result is checked. The rows are those of the benchmark of writing with 40 features, and their numbers.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import recordspec as rs
from writing.data import DATASETS, criteo

QUERIES = {
    "join": "SELECT count(*) AS n FROM a JOIN b USING (number) WHERE a.c00 <> b.c01",
    "sort": "SELECT count(*) AS n FROM (SELECT number, f00, c00 FROM a ORDER BY c00, f00)",
    "sort of all columns": "FROM a ORDER BY c00",
    "groups": "SELECT count(*) AS n FROM (SELECT c00, count(*), avg(f00) FROM a GROUP BY c00)",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--memory", default="200MB")
    parser.add_argument("--folder", type=Path, help="where the rows are written; by default /tmp or $TMPDIR")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        # in another process: the memory of this one counts as that of its children
        made = multiprocessing.get_context("spawn").Process(target=_write, args=(options.rows, folder))
        made.start()
        made.join()
        print(f"| {options.rows:,} rows, --memory {options.memory} | MB | s | CPU s |")
        print("|---|--:|--:|--:|")
        for title, sql in QUERIES.items():
            print(f"| {title} | {_measured(sql, folder, options)} |", flush=True)


def _write(rows: int, folder: Path) -> None:
    """The two datasets."""
    schema = rs.Schema.loads(DATASETS["criteo"].schema + "  number: int64\n")
    for dataset, seed in (("a", 1), ("b", 2)):
        columns = {**criteo(rows, seed), "number": np.arange(rows)}
        rs.write(columns, schema, folder / dataset, shards=4, shuffle=None, progress=False)


def _measured(sql: str, folder: Path, options: argparse.Namespace) -> str:
    """The memory, the time and the CPU time of a query."""
    out = folder / "out.jsonl"
    tables = [f"{name}={folder / name}" for name in ("a", "b") if f"{name}." in sql or name == "a"]
    command = [sys.executable, "-m", "recordspec", "query", sql, *tables]
    command += ["--memory", options.memory, "--out", str(out), "--force"]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status:
        sys.exit(f"{sql}: failed")
    with out.open() as lines:
        first = json.loads(next(lines))
        count = first["n"] if "n" in first else 1 + sum(1 for _ in lines)
    if not 0.99 * options.rows <= count <= options.rows:
        sys.exit(f"{sql}: expected about {options.rows:,} rows, got {count:,}")
    return f"{usage.ru_maxrss / 1024:,.0f} | {wall:.1f} | {usage.ru_utime + usage.ru_stime:.1f}"


if __name__ == "__main__":
    main()
