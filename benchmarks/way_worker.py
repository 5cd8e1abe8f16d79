"""Runs one variant in a process: a timed pass over all records for each line on stdin.

    python -m way_worker PACKAGE WAY PATH

`PACKAGE.ways` lists the variants, such as `inspecting_speed.ways`; PATH is of what they read.

It answers with lines of JSON: first `{"versions": ...}`, then for each line the wall and CPU seconds of a
pass, and the number of records. CPU time is user and system time of all threads.
"""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from processes import answers, cpu_seconds, versions


def main() -> None:
    package, way, path = sys.argv[1:]
    chosen = import_module(f"{package}.ways").WAYS[way]
    answer = answers()
    run = chosen.load()(Path(path))
    answer({"versions": versions(chosen.packages)})
    for _ in sys.stdin:
        cpu, wall = cpu_seconds(), time.perf_counter()
        records = run()
        answer({"wall": time.perf_counter() - wall, "cpu": cpu_seconds() - cpu, "records": records})


if __name__ == "__main__":
    main()
