"""Rows by number, and the order of an epoch, beside ArrayRecord and a shuffle buffer, in one run.

    python benchmarks/random_access.py [--runs 7] [--records 200000] [--folder /dev/shm]

Records of 1,300 bytes on average, one shard; batches of 1,024 random ones, and single ones, with their CRCs
checked by both. Then decoded rows of 40 numbers, of a string and of 512 tokens, one and 128 at random, beside
Hugging Face's datasets in NumPy, MosaicML's streaming, and protobuf. Peers that are not installed are left
out. Then the index of ten million records, and the first batch and the memory of a shuffle of
all rows, of one of 10,000 rows in a buffer, and of `shuffle(10000)` of plain tf.data, each in a process of
its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import recordspec as rs

BATCH = 1024
SCHEMA = "{schema: s, features: {data: string}}"
SMALL = "{schema: s, features: {x: int64}}"
ROWS = 1_000_000


def plain_tensorflow(tf: Any, schema: rs.Schema, folder: str) -> Any:
    files = sorted(map(str, Path(folder).glob("*.tfrecord")))
    records = tf.data.TFRecordDataset(files, buffer_size=1 << 20).shuffle(10_000).batch(128)
    spec = schema.parse_dict()
    return records.map(lambda some: tf.io.parse_example(some, spec), tf.data.AUTOTUNE).prefetch(2)


# What a process of its own measures.
SHUFFLES: dict[str, Callable[[Any, rs.Schema, str], Any]] = {
    "all rows permuted": lambda tf, schema, folder: rs.read(
        folder, schema, batch=128, shuffle={"global": True, "seed": 1}
    ),
    "a buffer of 10,000": lambda tf, schema, folder: rs.read(
        folder, schema, batch=128, shuffle=10_000, seed=1
    ),
    "plain tf.data, `shuffle(10000)`": plain_tensorflow,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(first_batch(*options.one)))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        random_records(Path(folder), options.records, options.runs)
        for name in TABLES:
            random_rows(Path(folder) / name.replace(" ", "-"), name, options.runs)
        index_of_many(Path(folder))
        shuffles(Path(folder), options.runs)


def random_records(folder: Path, count: int, runs: int) -> None:
    from array_record.python import array_record_data_source, array_record_module

    rng = np.random.default_rng(1)
    schema = rs.Schema.loads(SCHEMA)
    data = [rng.bytes(int(size)) for size in rng.integers(900, 1700, count)]
    rs.write({"data": data}, schema, folder / "ours", shards=1, progress=False)
    rows = rs.open(folder / "ours")
    writer = array_record_module.ArrayRecordWriter(str(folder / "peer"), "group_size:1")
    for start in range(0, count, 10_000):
        for record in rows.records(range(start, min(start + 10_000, count))):
            writer.write(record)
    writer.close()
    reader = array_record_module.ArrayRecordReader(str(folder / "peer"), "readahead_buffer_size:0")
    source = array_record_data_source.ArrayRecordDataSource([str(folder / "peer")])
    batches = rng.integers(0, count, (50, BATCH))
    assert rows.records(batches[0]) == reader.read(batches[0].tolist()) == source.__getitems__(batches[0])
    singles = batches[0, :200].tolist()
    numbers, several, single = batches.tolist(), batches.size, len(singles)
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "rs.open: records": (lambda: [rows.records(each) for each in batches], several),
        "rs.open: rows as NumPy": (lambda: [rows[each] for each in batches], several),
        "ArrayRecord, its reader": (lambda: [reader.read(each) for each in numbers], several),
        "ArrayRecord, its data source": (
            lambda: [source.__getitems__(each) for each in batches],
            batches.size,
        ),
        "rs.open: single records": (lambda: [rows.records([each]) for each in singles], single),
        "rs.open: single rows as NumPy": (lambda: [rows[each] for each in singles], single),
        "ArrayRecord, its reader: single records": (
            lambda: [reader.read([each]) for each in singles],
            single,
        ),
    }
    print(f"## Random records of 1.3 KB, {count:,} of them, best of {runs}\n")
    print("| way | records/s | us | CPU us |\n|---|--:|--:|--:|")
    best = {name: [np.inf, np.inf] for name in ways}
    for _ in range(runs + 1):
        for name, (way, _) in ways.items():
            wall, cpu = time.perf_counter(), time.process_time()
            way()
            taken = time.perf_counter() - wall, time.process_time() - cpu
            best[name] = [min(pair) for pair in zip(best[name], taken, strict=True)]
    for name, (_, amount) in ways.items():
        wall, cpu = (1e6 * seconds / amount for seconds in best[name])
        print(f"| {name} | {1e6 / wall:,.0f} | {wall:.2f} | {cpu:.2f} |")


NUMBERS = [f"f{place}" for place in range(13)], [f"c{place}" for place in range(27)]
# The features of a row, how many rows there are, and the values of a column.
TABLES: dict[str, tuple[str, Callable[[np.random.Generator, int], dict[str, Any]]]] = {
    "40 numbers": (
        ", ".join([*(f"{name}: float32" for name in NUMBERS[0]), *(f"{name}: int64" for name in NUMBERS[1])]),
        lambda rng, rows: {
            **{name: rng.normal(size=rows).astype(np.float32) for name in NUMBERS[0]},
            **{name: rng.integers(0, 1000, rows) for name in NUMBERS[1]},
        },
    ),
    "a string": (
        "text: string",
        lambda rng, rows: {"text": [rng.bytes(30).hex().encode() for _ in range(rows)]},
    ),
    "512 tokens": (
        "tokens: {kind: var_len, dtype: int64}",
        lambda rng, rows: {"tokens": list(rng.integers(0, 50_000, (rows, 512)))},
    ),
}
TABLE_ROWS = 20_000


def random_rows(folder: Path, name: str, runs: int) -> None:
    rng = np.random.default_rng(1)
    features, values = TABLES[name]
    columns = values(rng, TABLE_ROWS)
    schema = rs.Schema.loads(f"{{schema: s, features: {{{features}}}}}")
    rs.write(columns, schema, folder / "ours", shards=1, progress=False)
    rows = rs.open(folder / "ours")
    singles = rng.integers(0, TABLE_ROWS, 500).tolist()
    batches = rng.integers(0, TABLE_ROWS, (16, 128))
    ways = {
        "rs.open": (lambda: [rows[one] for one in singles], lambda: [rows[some] for some in batches]),
        "tf.train.Example, parsed alone": (protobuf_way(rows, singles), None),
        "Hugging Face datasets": hugging_face_ways(columns, singles, batches),
        "MosaicML streaming": mosaicml_ways(folder / "mosaicml", columns, singles, batches),
    }
    print(f"\n## Rows of {name}, {TABLE_ROWS:,} of them, best of {runs}, us a row\n")
    print("| way | one row: wall | CPU | 128 rows: wall | CPU |\n|---|--:|--:|--:|--:|")
    for way, (single, batch) in ((way, both) for way, both in ways.items() if both and both[0]):
        cells = [
            f"{1e6 * taken / count:.1f}"
            for run, count in ((single, len(singles)), (batch, batches.size))
            for taken in (best_of(run, runs) if run is not None else ())
        ]
        print(f"| {way} | {' | '.join([*cells, *[''] * (4 - len(cells))])} |")


def best_of(run: Callable[[], object], runs: int) -> list[float]:
    """The best wall time and CPU time of a function, in seconds, after a run that is not measured."""
    best = [np.inf, np.inf]
    for number in range(runs + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        taken = time.perf_counter() - wall, time.process_time() - cpu
        best = [min(pair) for pair in zip(best, taken, strict=True)] if number else best
    return best


def protobuf_way(rows: rs.Rows, singles: list[int]) -> Callable[[], object] | None:
    """Messages of protobuf, whose values are not arrays yet."""
    try:
        import tensorflow as tf
    except ImportError:
        return None
    records = rows.records(singles)
    return lambda: [tf.train.Example.FromString(record) for record in records]


def hugging_face_ways(columns: dict[str, Any], singles: list[int], batches: Any) -> Any:
    try:
        from datasets import Dataset
    except ImportError:
        return None
    data = Dataset.from_dict({name: list(values) for name, values in columns.items()}).with_format("numpy")
    numbers = batches.tolist()
    return lambda: [data[one] for one in singles], lambda: [data[some] for some in numbers]


def mosaicml_ways(folder: Path, columns: dict[str, Any], singles: list[int], batches: Any) -> Any:
    try:
        from streaming import LocalDataset, MDSWriter
    except ImportError:
        return None
    types = {np.dtype("float32"): "float32", np.dtype("int64"): "int64"}
    kinds = {
        name: "bytes" if isinstance(values[0], bytes) else types.get(values[0].dtype, "")
        for name, values in columns.items()
    }
    if "tokens" in columns:
        kinds["tokens"] = "ndarray:int64:512"
    with MDSWriter(out=str(folder), columns=kinds) as writer:
        for row in zip(*columns.values(), strict=True):
            writer.write(dict(zip(columns, row, strict=True)))
    data = LocalDataset(str(folder))
    numbers = batches.ravel().tolist()
    return lambda: [data[one] for one in singles], lambda: [data[one] for one in numbers]


def index_of_many(folder: Path) -> None:
    from recordspec.integrity.indexing import index
    from recordspec.store import index as indices

    count = 10_000_000
    rs_schema = rs.Schema.loads(SMALL)
    wall = time.perf_counter()
    rs.write({"x": np.arange(count)}, rs_schema, folder / "many", shards=4, progress=False)
    built = time.perf_counter() - wall
    size = (folder / "many/index.bin").stat().st_size
    writer, sizes = indices.IndexWriter(), np.full(1 << 20, 37, np.int64)
    wall = time.perf_counter()
    for _ in range(count >> 20):
        writer.add(sizes + (np.arange(1 << 20) % 9))
    writer.close(1)
    added = time.perf_counter() - wall
    wall = time.perf_counter()
    index(folder / "many")
    again = time.perf_counter() - wall
    wall = time.perf_counter()
    rows = rs.open(folder / "many")
    opened = time.perf_counter() - wall
    assert int(rows[count - 1]["x"]) == count - 1
    print(f"\n## The index of {count:,} records\n")
    print(f"{size:,} bytes ({size / count:.2f} a record)")
    print(f"a build of {built:.1f} s, of which the index of as many sizes takes {added:.2f} s")
    print(f"`recordspec index` makes it again in {again:.1f} s; opened in {opened:.2f} s")


def shuffles(folder: Path, runs: int) -> None:
    count = ROWS
    schema = rs.Schema.loads(SCHEMA)
    rng = np.random.default_rng(1)
    data = [rng.bytes(int(size)) for size in rng.integers(300, 900, count)]
    rs.write({"data": data}, schema, folder / "shuffled", shards=4, progress=False)
    print(f"\n## A pass over {count:,} rows of 0.6 KB, best of {min(runs, 3)}\n")
    print("| order | first batch, s | pass, s | CPU, s | memory, MB |\n|---|--:|--:|--:|--:|")
    best: dict[str, list[float]] = {}
    for _ in range(min(runs, 3)):
        for name in SHUFFLES:
            command = [sys.executable, __file__, "--one", name, str(folder / "shuffled")]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            taken = json.loads(done.stdout.splitlines()[-1])
            best[name] = [min(pair) for pair in zip(best.get(name, taken), taken, strict=True)]
    for name, (first, whole, cpu, memory) in best.items():
        print(f"| {name} | {first:.2f} | {whole:.1f} | {cpu:.1f} | {memory:,.0f} |")


def first_batch(name: str, folder: str) -> tuple[float, float, float, float]:
    """The seconds until the first batch, of the pass, its CPU seconds, and the megabytes that it added."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    dataset = SHUFFLES[name](tf, rs.Schema.loads(SCHEMA), folder)
    before, most, rows = memory(), 0, 0
    cpu, wall, first = time.process_time(), time.perf_counter(), 0.0
    for number, batch in enumerate(dataset):
        first = first or time.perf_counter() - wall
        rows += int(tf.shape(batch["data"])[0])
        if number % 500 == 0:
            most = max(most, memory())
    assert rows == ROWS
    whole, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return first, whole, cpu, (most - before) / 1e6


def memory() -> int:
    """The bytes of this process that are not those of mapped files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))


if __name__ == "__main__":
    main()
