"""TFRecords as tables, compared in one run with Parquet of the same rows and other decoders of TFRecords.

    python benchmarks/scanning.py [--runs 5] [--datasets criteo taxi] [--ways scan parquet] [--scale 1]

Each variant reads the same rows in a memory folder, in a separate process; runs are interleaved, one at a
time. Each run must find every row. The best of the runs is reported, in microseconds of CPU time a row (user
and system, all threads), and of wall time in brackets.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import recordspec as rs
from processes import Worker, command
from scanning_speed.data import SCANNED
from scanning_speed.ways import WAYS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--datasets", nargs="+", default=list(SCANNED), choices=SCANNED)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of rows")
    parser.add_argument(
        "--folder", type=Path, default=Path("/dev/shm"), help="in memory, by default /dev/shm"
    )
    options = parser.parse_args()
    best: dict[tuple[str, str], tuple[float, float]] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name in options.datasets:
            rows = int(SCANNED[name].rows * options.scale)
            made = Path(folder) / name
            _write(name, rows, made)
            for way, times in _measured(made, rows, options):
                best[name, way] = times
    print(f"| us a row, CPU (wall) | {' | '.join(options.datasets)} |")
    print(f"|---|{'--:|' * len(options.datasets)}")
    for way in options.ways:
        cells = (f"{best[name, way][0]:.2f} ({best[name, way][1]:.2f})" for name in options.datasets)
        print(f"| {WAYS[way].title} | {' | '.join(cells)} |")


def _write(name: str, rows: int, folder: Path) -> None:
    """The rows of a dataset as rows, as blocks and as Parquet."""
    from pyarrow import parquet

    schema, columns = rs.Schema.loads(SCANNED[name].schema), SCANNED[name].make(rows)
    rs.write(columns, schema, folder / "rows", shuffle=None, progress=False)
    rs.write(columns, schema, folder / "blocks", shuffle=None, progress=False, layout={"blocks": 256})
    parquet.write_table(rs.scan(folder / "rows").to_table(), folder / "table.parquet")


def _measured(folder: Path, rows: int, options: argparse.Namespace) -> list[tuple[str, tuple[float, float]]]:
    """The best CPU and wall time of each variant, after a warm-up."""
    cpu: dict[str, list[float]] = {way: [] for way in options.ways}
    wall: dict[str, list[float]] = {way: [] for way in options.ways}
    with ExitStack() as stack:
        workers = []
        for way in options.ways:
            arguments = command(WAYS[way].environment, "way_worker", "scanning_speed", way, folder)
            workers.append(stack.enter_context(Worker(way, arguments, folder / f"{way}.stderr")))
        for turn in range(options.runs + 1):
            for worker in workers:
                run = worker.ask("run")
                if run["records"] != rows:
                    sys.exit(f"{worker.way}: expected {rows:,} rows, got {run['records']:,}")
                if turn:
                    cpu[worker.way].append(run["cpu"])
                    wall[worker.way].append(run["wall"])
    return [(way, (min(cpu[way]) / rows * 1e6, min(wall[way]) / rows * 1e6)) for way in options.ways]


if __name__ == "__main__":
    main()
