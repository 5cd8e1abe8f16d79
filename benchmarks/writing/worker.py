"""Runs one variant with one dataset in a process: prepares the rows, then a timed run for each line on stdin.

    python -m writing.worker WAY DATASET ROWS FOLDER

It answers with lines of JSON: first `{"versions": ...}` or `{"skipped": why}`, then for each line `run` the
wall and CPU seconds of a run and the bytes it wrote. CPU time is user and system time of all threads, and of
children that ended. A run starts with an empty folder and leaves it as it is; a line `clean` deletes it.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from processes import answers, cpu_seconds, versions
from ways import UnsupportedError
from writing.data import DATASETS
from writing.ways import WAYS, Run


def main() -> None:
    way, dataset, rows, folder = sys.argv[1:]
    answer = answers()
    try:
        run = WAYS[way].load()(DATASETS[dataset], int(rows))
    except UnsupportedError as reason:
        answer({"skipped": str(reason)})
        return
    answer({"versions": versions(WAYS[way].packages)})
    written = 0
    for line in sys.stdin:
        if line.strip() == "run":
            touch_memory(Path(folder), 3 * written)
            taken = timed(run, Path(folder))
            written = taken["bytes"]
            answer(taken)
        else:
            shutil.rmtree(folder)
            answer({})


def touch_memory(folder: Path, size: int) -> None:
    """Writes and deletes a file of that size, which leaves as much recently used memory free.

    The host of a virtual machine reclaims memory that was free for seconds, and its next use is slow: 0.9 s
    more for a file of 200 MB, independent of the writer.
    """
    folder.mkdir(parents=True)
    with open(folder / "touched", "wb") as file:
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
    shutil.rmtree(folder)


def timed(run: Run, folder: Path) -> dict[str, Any]:
    """The time of a run, and the bytes that it wrote."""
    folder.mkdir(parents=True)
    cpu, wall = cpu_seconds(), time.perf_counter()
    run(folder)
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    sizes = [path.stat().st_size for path in folder.rglob("*.tfrecord*")]
    return {"wall": wall, "cpu": cpu, "bytes": sum(sizes)}


if __name__ == "__main__":
    main()
