"""Write performance, compared with other TFRecord writers in one run.

    python benchmarks/write.py [--runs 5] [--scale 1] [--datasets criteo floats] [--ways columns loop]

Each variant runs in a separate process, in one of the environments that `make bench-write` creates;
`writing/ways` has the variants, `writing/data.py` the rows. Runs are interleaved, one at a time. The results
are written to `benchmarks/results/`: all runs as JSON, the table with ratios, and a plot.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from processes import HERE, Worker, command
from report import Measured, Results, machine
from writing.check import Rows
from writing.data import DATASETS, Dataset
from writing.results import REPORT
from writing.ways import WAYS


def main() -> None:
    options = arguments()
    results = Results(machine=machine(options.runs))
    for name in options.datasets:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            results.datasets[name] = measure(DATASETS[name], options, Path(folder), results)
        print(REPORT.table(name, results.datasets[name]), flush=True)
    REPORT.save(results, options.results)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="times as many rows of each dataset")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=DATASETS)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--folder", type=Path, help="where the files are written; by default /tmp or $TMPDIR")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    return parser.parse_args()


def measure(dataset: Dataset, options: argparse.Namespace, folder: Path, results: Results) -> list[Measured]:
    """The interleaved runs of all variants; after a warm-up the files are checked."""
    rows = max(2, int(dataset.rows * options.scale))
    names = [name for name in options.ways if not dataset.ways or name in dataset.ways]
    with ExitStack() as stack:
        workers = [stack.enter_context(start(name, dataset, rows, folder)) for name in names]
        for worker in workers:
            note(worker, results)
        workers = [worker for worker in workers if not worker.skipped]
        measured = {worker.way: Measured(worker.way, rows) for worker in workers}
        expected = Rows(dataset, rows)
        for worker in workers:
            worker.ask("run")
            expected.check(runs_of(worker.way, folder))
            worker.ask("clean")
        del expected
        for _ in range(options.runs):
            for worker in workers:
                timed(worker, measured[worker.way])
    return list(measured.values())


def start(way: str, dataset: Dataset, rows: int, folder: Path) -> Worker:
    """Starts a process: `run` does a timed run, `clean` deletes its output."""
    environment, given = WAYS[way].environment, (way, dataset.name, rows, runs_of(way, folder))
    return Worker(way, command(environment, "writing.worker", *given), folder / f"{way}.stderr")


def runs_of(way: str, folder: Path) -> Path:
    """The output folder of a variant."""
    return folder / way / "run"


def note(worker: Worker, results: Results) -> None:
    if worker.skipped:
        results.skipped[WAYS[worker.way].title] = worker.skipped
    else:
        results.versions[worker.way] = worker.versions


def timed(worker: Worker, measured: Measured) -> None:
    """One run; earlier runs are flushed to disk before it."""
    os.sync()
    run = worker.ask("run")
    worker.ask("clean")
    measured.wall.append(run["wall"])
    measured.cpu.append(run["cpu"])
    measured.bytes = run["bytes"]


if __name__ == "__main__":
    main()
