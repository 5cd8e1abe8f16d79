"""Runs one variant with one dataset in a process: a pass over all rows for each line on stdin.

    python -m feeding_speed.worker WAY DATASET FOLDER

It answers with lines of JSON: first `{"versions": ...}`, then for each line the wall and CPU seconds of a
pass, its rows, and the seconds in which the step waited for a batch. A line is "check", after which the pass
also sums the values, or "read", or "train", after which each batch has a step. CPU time is user and system
time of all threads and worker processes.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import psutil

from feeding_speed.data import FED, Fed
from feeding_speed.ways import WAYS, Begin
from processes import answers, cpu_seconds, versions


def main() -> None:
    way, dataset, folder = sys.argv[1:]
    answer = answers()
    fed = FED[dataset]
    begin = WAYS[way].load()(fed, Path(folder))
    answer({"versions": versions(WAYS[way].packages)})
    for line in sys.stdin:
        answer(_timed(begin, fed, line.strip()))


def _timed(begin: Begin, fed: Fed, what: str) -> dict[str, Any]:
    rows, waited, sums = 0, 0.0, np.zeros(2, np.int64)
    cpu, wall = _cpu(), time.perf_counter()
    batches = iter(begin())
    while True:
        asked = time.perf_counter()
        batch = next(batches, None)
        waited += time.perf_counter() - asked
        if batch is None:
            break
        inputs, targets = batch
        rows += len(targets)
        if what == "train":
            time.sleep(fed.step)
        elif what == "check":
            summed = inputs[fed.summed] if isinstance(inputs, dict) else inputs
            sums += np.asarray(summed).sum(dtype=np.int64), np.asarray(targets).sum()
    wall = time.perf_counter() - wall
    cpu = _cpu() - cpu
    return {"wall": wall, "cpu": cpu, "rows": rows, "waited": waited, "sums": sums.tolist()}


def _cpu() -> float:
    """The seconds of this process, of those that it started, and of those that ended."""
    running = (child.cpu_times() for child in psutil.Process().children(recursive=True))
    return cpu_seconds() + sum(times.user + times.system for times in running)


if __name__ == "__main__":
    main()
