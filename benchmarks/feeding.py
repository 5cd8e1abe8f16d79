"""What feeds a training: recordspec on TensorFlow, JAX and PyTorch, and their readers, in one run.

    python benchmarks/feeding.py [--runs 3] [--datasets table images] [--ways iterate grain] [--scale 1]

All variants read the same rows from a memory folder, in a random order of all rows, in batches of one size,
each in a process of its own; runs are interleaved, one at a time. After a pass that checks the sums of the
values, some passes only take the batches, and some have a step of a fixed time after each, during which the
processor is idle. The best of the runs is reported: CPU time a row, of all threads and processes, rows per
second of wall time and of CPU time, and the share of the time of a training in which it waits for a batch.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from feeding_speed.data import FED, Fed, write
from feeding_speed.ways import WAYS
from processes import Worker, command

# Of the sum of all pixels, which TensorFlow's less exact transform of JPEG makes 0.7 % smaller.
TOLERANCE = {"image": 0.01}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--datasets", nargs="+", default=list(FED), choices=FED)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of rows")
    parser.add_argument(
        "--folder", type=Path, default=Path("/dev/shm"), help="in memory, by default /dev/shm"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name in options.datasets:
            fed, made = FED[name], Path(folder) / name
            rows = int(fed.rows * options.scale)
            write(fed, rows, made)
            print(
                f"\n{fed.title}: {rows:,} rows, batches of {fed.batch}, steps of {1000 * fed.step:.0f} ms\n"
            )
            print("| | CPU, us a row | rows/s | rows/CPU s | waiting |\n|---|--:|--:|--:|--:|", flush=True)
            _measure(name, rows, made, options)


def _measure(name: str, rows: int, folder: Path, options: argparse.Namespace) -> None:
    best: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(lambda: np.inf))
    with ExitStack() as stack:
        workers = []
        for way in options.ways:
            arguments = command(WAYS[way].environment, "feeding_speed.worker", way, name, folder)
            workers.append(stack.enter_context(Worker(way, arguments, folder / f"{way}.stderr")))
        sums = {worker.way: worker.ask("check")["sums"] for worker in workers}
        _check_equal(FED[name], sums)
        for _ in range(options.runs):
            for worker in workers:
                taken, trained = worker.ask("read"), worker.ask("train")
                if taken["rows"] != rows or trained["rows"] != rows:
                    sys.exit(f"{worker.way}: expected {rows:,} rows, got {taken['rows']:,}")
                figures = best[worker.way]
                figures["cpu"] = min(figures["cpu"], taken["cpu"] / rows)
                figures["wall"] = min(figures["wall"], taken["wall"] / rows)
                figures["waiting"] = min(figures["waiting"], trained["waited"] / trained["wall"])
    for way, figures in best.items():
        cpu, wall, waiting = figures["cpu"], figures["wall"], figures["waiting"]
        print(f"| {WAYS[way].title} | {1e6 * cpu:.1f} | {1 / wall:,.0f} | {1 / cpu:,.0f} | {waiting:.1%} |")


def _check_equal(fed: Fed, sums: dict[str, list[int]]) -> None:
    """Exits if a variant read other values than the first."""
    first = next(iter(sums.values()))
    for way, (total, targets) in sums.items():
        if targets != first[1] or abs(total - first[0]) > TOLERANCE.get(fed.summed, 0) * first[0]:
            sys.exit(f"{way}: expected the sums {first}, got {[total, targets]}")


if __name__ == "__main__":
    main()
