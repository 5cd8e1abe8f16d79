"""Read performance, compared with other TFRecord readers in one run.

    python benchmarks/read.py [--runs 5] [--scale 1] [--datasets criteo] [--ways rows hand] [--shuffle 0]

The rows are those of the write benchmark. recordspec writes them once, as rows and as blocks, and TFDS in
its own format; then each variant reads them from the page cache, in a separate process, in one of the
environments that `make bench-read` creates. `reading_speed/ways` has the variants. Runs are interleaved, one
at a time. Each run must find every row, and the first the same sum over one column. The results are written
to `benchmarks/results/`: all runs as JSON, the tables with ratios, and a plot.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from processes import HERE, Worker, command
from reading_speed.data import DATASETS, Dataset, buffer, expected, write
from reading_speed.results import key, report
from reading_speed.ways import FORMS, WAYS
from report import Measured, Results, machine


def main() -> None:
    options = arguments()
    shown, results = report(options.shuffle), Results(machine=machine(options.runs))
    for name in options.datasets:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            for shuffle, measured in measure(DATASETS[name], options, Path(folder), results).items():
                results.datasets[key(name, shuffle)] = measured
                print(shown.table(key(name, shuffle), measured), flush=True)
    shown.save(results, options.results)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="times as many rows of each dataset")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=DATASETS)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument(
        "--shuffle", nargs="+", type=int, default=[0, 10_000], help="rows in the buffer at most; 0: none"
    )
    parser.add_argument("--folder", type=Path, help="where the files are written; by default /tmp or $TMPDIR")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    return parser.parse_args()


def measure(
    dataset: Dataset, options: argparse.Namespace, folder: Path, results: Results
) -> dict[int, list[Measured]]:
    """Writes the files and measures reading them, by the size of the shuffle buffer."""
    rows = max(2, int(dataset.rows * options.scale))
    names = [name for name in options.ways if not dataset.ways or name in dataset.ways]
    write(dataset, rows, folder, names)
    os.sync()
    found = expected(dataset, rows)
    by_shuffle = {}
    for shuffle in options.shuffle:
        with ExitStack() as stack:
            workers = [
                stack.enter_context(start(name, dataset, folder, shuffle))
                for name in names
                if takes_part(name, shuffle)
            ]
            results.versions |= {worker.way: worker.versions for worker in workers}
            by_shuffle[shuffle] = alternate(workers, folder, found, options.runs)
    return by_shuffle


def takes_part(way: str, shuffle: int) -> bool:
    """Whether a variant is measured; records that are not parsed are not shuffled."""
    if way.startswith("global"):
        return shuffle > 0
    return way not in ("cat", "parquet") or shuffle == 0


def start(way: str, dataset: Dataset, folder: Path, shuffle: int) -> Worker:
    """Starts a process that makes a pass over all rows for each line."""
    given = (way, dataset.name, folder, buffer(dataset.name, shuffle))
    arguments = command(WAYS[way].environment, "reading_speed.worker", *given)
    return Worker(way, arguments, folder / f"{way}.stderr")


def alternate(workers: list[Worker], folder: Path, found: tuple[int, int], runs: int) -> list[Measured]:
    """The interleaved runs of all variants, after two warm-ups, the first of which is checked."""
    measured = {
        worker.way: Measured(worker.way, found[0], bytes=size(folder / FORMS.get(worker.way, "rows")))
        for worker in workers
    }
    for turn in range(-1, runs + 1):
        for worker in workers:
            run = worker.ask("check" if turn < 0 else "run")
            check(worker.way, run, found)
            if turn > 0:
                measured[worker.way].wall.append(run["wall"])
                measured[worker.way].cpu.append(run["cpu"])
    return list(measured.values())


def check(way: str, run: dict[str, Any], found: tuple[int, int]) -> None:
    """Exits unless a pass found all rows and the right sum."""
    for what, wanted in zip(("rows", "total"), found, strict=True):
        if run[what] not in (None, wanted):
            sys.exit(f"{way}: {what}: expected {wanted:,}, got {run[what]:,}")


def size(folder: Path) -> int:
    """The bytes of the shards in a folder and its subfolders."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.suffix != ".json")


if __name__ == "__main__":
    main()
