"""Runs one variant with one dataset in a process: a timed pass over all rows for each line on stdin.

    python -m reading_speed.worker WAY DATASET FOLDER SHUFFLE

It answers with lines of JSON: first `{"versions": ...}`, then for each line the wall and CPU seconds of a
pass, its rows, and after "check" the sum of a column. CPU time is user and system time of all threads.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from processes import answers, cpu_seconds, versions
from reading_speed.data import DATASETS, Given
from reading_speed.ways import WAYS, Run


def main() -> None:
    way, dataset, folder, shuffle = sys.argv[1:]
    answer = answers()
    given = Given(dataset=DATASETS[dataset], folder=Path(folder), shuffle=int(shuffle))
    run = WAYS[way].load()(given)
    answer({"versions": versions(WAYS[way].packages)})
    for line in sys.stdin:
        answer(timed(run, check=line.strip() == "check"))


def timed(run: Run, *, check: bool) -> dict[str, Any]:
    """The time and the result of a pass."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    rows, total = run(check)
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    return {"wall": wall, "cpu": cpu, "rows": rows, "total": total}


if __name__ == "__main__":
    main()
