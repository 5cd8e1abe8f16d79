"""Inspecting a file, compared with the reader of tf.data in one run.

    python benchmarks/inspecting.py [--runs 3] [--records 1250000] [--ways count iterated]

Each variant reads an uncompressed file of Examples of equal length (the rows of the write benchmark with 40
features, 784 bytes each; by default 1 GB) from the page cache, in a separate process; runs are interleaved,
one at a time. Each run must find every record. The results are written to `benchmarks/results/`: all runs as
JSON, the table with ratios, and a plot.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from inspecting_speed.ways import WAYS
from processes import HERE, Worker, command
from recordspec import Schema, write
from report import Against, Measured, Report, Results, machine
from writing.data import DATASETS

# Distinct rows, which the file repeats.
DISTINCT = 50_000

NOTES = """\
Each run is one pass over one file in the page cache. Each variant has a separate process, which has
imported its packages; runs are interleaved, and the median of each variant is reported, after a warm-up.
`count` reads the lengths and checks their CRCs; all others read every byte and check every CRC. `check`
compares every value with a schema, and `stats` computes statistics of every feature, both in one process a
core; the others do not parse records. Ratios are of wall times, and in brackets of CPU times (user and
system, all threads).
"""

REPORT = Report(
    name="inspecting",
    title="Inspecting a file",
    notes=NOTES,
    ways=WAYS,
    headings={"records": "Examples of 1 int64, 13 floats and 26 strings, 784 bytes each"},
    columns=(
        Against(heading="against iterating", way="iterated"),
        Against(heading="against reading batches", way="batched"),
    ),
    image="svg",
)


def main() -> None:
    options = arguments()
    results = Results(machine=machine(options.runs))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        file = made(Path(folder), options.records)
        with ExitStack() as stack:
            workers = [stack.enter_context(start(way, file)) for way in options.ways]
            results.versions |= {worker.way: worker.versions for worker in workers}
            results.datasets["records"] = alternate(workers, file, options)
    print(REPORT.table("records", results.datasets["records"]))
    REPORT.save(results, options.results)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--records", type=int, default=1_250_000)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--folder", type=Path, help="where the file is written; by default /tmp or $TMPDIR")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    return parser.parse_args()


def made(folder: Path, records: int) -> Path:
    """A file of `records` records."""
    rows = DATASETS["criteo"]
    columns = rows.make(min(DISTINCT, records))
    write(columns, Schema.loads(rows.schema), folder / "rows", shards=1)
    (shard,) = (folder / "rows").glob("*.tfrecord")
    data = shard.read_bytes()
    size = len(data) // min(DISTINCT, records)
    file = folder / "records.tfrecord"
    with file.open("wb") as out:
        for _ in range(records // DISTINCT):
            out.write(data)
        out.write(data[: records % DISTINCT * size])
    return file


def start(way: str, file: Path) -> Worker:
    arguments = command(WAYS[way].environment, "way_worker", "inspecting_speed", way, file)
    return Worker(way, arguments, file.parent / f"{way}.stderr")


def alternate(workers: list[Worker], file: Path, options: argparse.Namespace) -> list[Measured]:
    """The interleaved runs of all variants, after a warm-up."""
    size = file.stat().st_size
    measured = {worker.way: Measured(worker.way, options.records, bytes=size) for worker in workers}
    for turn in range(options.runs + 1):
        for worker in workers:
            run = worker.ask("run")
            if run["records"] != options.records:
                sys.exit(f"{worker.way}: expected {options.records:,} records, got {run['records']:,}")
            if turn:
                measured[worker.way].wall.append(run["wall"])
                measured[worker.way].cpu.append(run["cpu"])
    return list(measured.values())


if __name__ == "__main__":
    main()
