"""Reading a dataset from an object store through the folder of copies, or in lanes, against local files.

    make .venvs/moto/ready
    python benchmarks/stores.py [--runs 5] [--rows 200000] [--folder /dev/shm]

The store is moto, in another process, whose CPU time is not counted. The folder of copies holds half of the
dataset, so that every pass downloads what it reads. The two ways are taken in turns, in one process; a
thread sums up the files in the folder of copies meanwhile.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "remote"))

import servers

import recordspec
from processes import cpu_seconds
from writing.data import DATASETS

_SHARDS = 24


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, help="where the files are written; by default $TMPDIR")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        port, close = servers.moto(folder)
        os.environ.update(servers.s3_environment(f"http://127.0.0.1:{port}"))
        try:
            compare(folder, f"s3://{servers.BUCKET}", options.rows, options.runs)
        finally:
            close()


def compare(folder: Path, url: str, rows: int, runs: int) -> None:
    for dataset in ("criteo", "floats", "jpegs"):
        given = DATASETS[dataset]
        count = rows if dataset != "jpegs" else rows // 40
        schema = recordspec.Schema.loads(given.schema)
        columns = given.make(count)
        local = folder / dataset
        for target in (str(local), f"{url}/{dataset}"):
            manifest = recordspec.write(columns, schema, target, shards=_SHARDS, progress=False)
        total = sum(shard.bytes for shard in manifest.all_shards)
        size = total // 2
        staging = {"folder": str(folder / f"{dataset}-copies"), "size": f"{size // 1024}KiB"}
        orders = {
            "": {},
            " shuffled": {"shuffle": 4096, "seed": 1, "interleave": {"cycle": 4}},
            " in lanes": {"shuffle": {"lanes": 240, "seed": 1}},
        }
        for order, options in orders.items():
            taken: dict[str, list[float]] = {"local": [], "store": []}
            with watched(folder / f"{dataset}-copies") as most:
                for _ in range(runs + 1):
                    for way, source in (("local", local), ("store", f"{url}/{dataset}")):
                        before = cpu_seconds()
                        found = recordspec.read(source, schema, batch=256, staging=staging, **options)
                        read = sum(1 for _ in found)
                        taken[way].append(cpu_seconds() - before)
                        assert read == -(-count // 256), (read, count)
            best = {way: min(seconds[1:]) for way, seconds in taken.items()}
            name = f"{dataset}{order}"
            rates = {way: count / seconds for way, seconds in best.items()}
            print(f"{name}: {count:,} rows of {total / count:,.0f} bytes, rows per CPU second:", end=" ")
            print(f"local {rates['local']:,.0f}, store {rates['store']:,.0f}", end=", ")
            print(f"ratio {rates['store'] / rates['local']:.2f};", end=" ")
            print(f"copies at most {max(most):,} of {size // 1024 * 1024:,} bytes")


@contextmanager
def watched(folder: Path) -> Iterator[list[int]]:
    """Sums up the files of a folder every few milliseconds."""
    most, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            if folder.is_dir():
                most[0] = max(most[0], sum(_size(entry) for entry in os.scandir(folder)))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_blocks * 512
    except FileNotFoundError:
        return 0


if __name__ == "__main__":
    main()
