"""Runs one variant in a process: a timed pass over all rows for each line on stdin.

    python -m scanning_speed.worker WAY FOLDER

It answers with lines of JSON: first `{"versions": ...}`, then for each line the wall and CPU seconds of a
pass, and the number of records. CPU time is user and system time of all threads.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from processes import answers, cpu_seconds, versions
from scanning_speed.ways import WAYS


def main() -> None:
    way, folder = sys.argv[1:]
    answer = answers()
    run = WAYS[way].load()(Path(folder))
    answer({"versions": versions(WAYS[way].packages)})
    for _ in sys.stdin:
        cpu, wall = cpu_seconds(), time.perf_counter()
        records = run()
        answer({"wall": time.perf_counter() - wall, "cpu": cpu_seconds() - cpu, "records": records})


if __name__ == "__main__":
    main()
