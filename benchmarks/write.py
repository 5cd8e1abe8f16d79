"""Writing, side by side with what else writes TFRecords, in one run.

    python benchmarks/write.py [--runs 5] [--scale 1] [--datasets criteo floats] [--ways columns loop]

Each way of writing runs in a process of its own, in one of the environments that `make bench-write` makes;
`writing/ways` has them, `writing/data.py` the rows. The processes take turns, so that only one works at a
time. The results go to `benchmarks/results/`: every run as JSON, the table with ratios, and a plot.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from processes import HERE, command
from writing.check import Rows
from writing.data import DATASETS, Dataset
from writing.results import Measured, Results, table
from writing.ways import WAYS


class Worker:
    """A process that does the runs of one way with one dataset.

    Attributes:
        skipped: why it can do none, or empty.
    """

    def __init__(self, way: str, dataset: Dataset, rows: int, folder: Path) -> None:
        self.way = way
        self.folder = folder / way / "run"
        self._errors = folder / f"{way}.stderr"
        environment = WAYS[way].environment
        with open(self._errors, "w") as errors:
            self._process = subprocess.Popen(
                command(environment, "writing.worker", way, dataset.name, rows, self.folder),
                cwd=HERE,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        ready = self._answer()
        self.skipped: str = ready.get("skipped", "")
        self.versions: dict[str, str] = ready.get("versions", {})

    def ask(self, what: str) -> dict[str, Any]:
        """`run` does a timed run, `clean` deletes what it wrote."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self.way} failed:\n{self._errors.read_text()[-4000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


def main() -> None:
    options = arguments()
    results = Results(machine=machine(options.runs))
    for name in options.datasets:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            results.datasets[name] = measure(DATASETS[name], options, Path(folder), results)
        print(table(name, results.datasets[name]), flush=True)
    results.save(options.results)


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
    """The runs of every way, in turns; after the first turn, which is not counted, the files are read."""
    rows = max(2, int(dataset.rows * options.scale))
    names = [name for name in options.ways if not dataset.ways or name in dataset.ways]
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(name, dataset, rows, folder)) for name in names]
        for worker in workers:
            note(worker, results)
        workers = [worker for worker in workers if not worker.skipped]
        measured = {worker.way: Measured(worker.way, rows) for worker in workers}
        expected = Rows(dataset, rows)
        for worker in workers:
            worker.ask("run")
            expected.check(worker.folder)
            worker.ask("clean")
        del expected
        for _ in range(options.runs):
            for worker in workers:
                timed(worker, measured[worker.way])
    return list(measured.values())


def note(worker: Worker, results: Results) -> None:
    if worker.skipped:
        results.skipped[WAYS[worker.way].title] = worker.skipped
    else:
        results.versions[worker.way] = worker.versions


def timed(worker: Worker, measured: Measured) -> None:
    """One run; what is left to be written to the disk by an earlier one must not slow it."""
    os.sync()
    run = worker.ask("run")
    worker.ask("clean")
    measured.wall.append(run["wall"])
    measured.cpu.append(run["cpu"])
    measured.bytes = run["bytes"]


def machine(runs: int) -> dict[str, Any]:
    """What it was measured on."""
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "runs": runs,
    }


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


if __name__ == "__main__":
    main()
