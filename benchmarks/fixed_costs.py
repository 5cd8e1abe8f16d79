"""Fixed costs: a pass over 1,500 rows against plain tf.data, one row against tf.train.Example.

    python benchmarks/fixed_costs.py

CPU and wall time of this process, minimum of several interleaved runs, in a RAM disk if there is one.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import recordspec as rs

ROWS, BATCH, BUFFER = 1_500, 32, 10_000
ROUNDS, PASSES, CALLS = 5, 12, 2_000
MEMORY = "/dev/shm"

SMALL = rs.Schema.loads("schema: small\nfeatures: {image: {dtype: float32, shape: [64]}, label: int64}")
WIDE = rs.Schema.loads(
    "schema: wide\nfeatures:\n"
    + "".join(f"  i{number}: int64\n" for number in range(14))
    + "".join(f"  c{number}: string\n" for number in range(26))
)


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def best(ways: dict[str, Callable[[], Any]], times: int) -> dict[str, tuple[float, float]]:
    """The minimum CPU and wall seconds of each variant, in interleaved runs."""
    found = {name: (float("inf"), float("inf")) for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            for _ in range(times):
                started, clock = cpu(), time.perf_counter()
                way()
                spent = cpu() - started, time.perf_counter() - clock
                found[name] = (min(found[name][0], spent[0]), min(found[name][1], spent[1]))
    return found


def table(found: dict[str, tuple[float, float]], unit: str, scale: float) -> None:
    base = next(iter(found.values()))
    print(f"\n| | CPU {unit} | wall {unit} | CPU ratio |\n|---|--:|--:|--:|")
    for name, (used, wall) in found.items():
        print(f"| {name} | {used * scale:.1f} | {wall * scale:.1f} | {used / base[0]:.2f} |")


def passes(folder: Path) -> dict[str, Callable[[], Any]]:
    """Complete passes over a small dataset."""
    rng = np.random.default_rng(0)
    columns = {"image": rng.random((ROWS, 64), np.float32), "label": rng.integers(0, 10, ROWS)}
    for layout in ("rows", {"blocks": 256}):
        rs.write(columns, SMALL, folder / ("rows" if layout == "rows" else "blocks"), layout=layout)

    def parsed(records: Any) -> Any:
        batches = records.batch(BATCH)
        decoded = batches.map(
            lambda batch: tf.io.parse_example(batch, SMALL.parse_dict()), num_parallel_calls=tf.data.AUTOTUNE
        )
        return decoded.prefetch(tf.data.AUTOTUNE)

    files = [str(path) for path in sorted((folder / "rows").glob("*.tfrecord"))]
    plain = tf.data.TFRecordDataset(files)
    shuffled = {"batch": BATCH, "shuffle": BUFFER, "seed": 1}
    datasets = {
        "plain tf.data, shuffled": parsed(plain.shuffle(BUFFER, seed=1)),
        "recordspec, shuffled rows": rs.read(folder / "rows", SMALL, **shuffled),
        "recordspec, shuffled blocks": rs.read(folder / "blocks", SMALL, **shuffled),
        "plain tf.data, in order": parsed(plain),
        "recordspec, rows in order": rs.read(folder / "rows", SMALL, batch=BATCH),
        "recordspec, blocks in order": rs.read(folder / "blocks", SMALL, batch=BATCH),
    }

    def iterated(dataset: Any) -> Callable[[], None]:
        def one_pass() -> None:
            for _ in dataset:
                pass

        return one_pass

    return {name: iterated(dataset) for name, dataset in datasets.items()}


def rows() -> dict[str, Callable[[], Any]]:
    """Encodes one row of 40 features, many times."""
    row = {f"i{number}": number * 1000 for number in range(14)}
    row |= {f"c{number}": b"%08x" % (number * 77_777_777) for number in range(26)}

    def loop() -> None:
        for _ in range(CALLS):
            features = {}
            for name, value in row.items():
                if isinstance(value, int):
                    features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
                else:
                    features[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
            tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()

    def encode() -> None:
        for _ in range(CALLS):
            WIDE.encode(row)

    assert tf.train.Example.FromString(WIDE.encode(row)).features.feature["i1"].int64_list.value == [1000]
    return {"tf.train.Example": loop, "Schema.encode": encode}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=MEMORY if Path(MEMORY).is_dir() else None) as made:
        print(f"TensorFlow {tf.__version__}; {ROWS:,} rows, batches of {BATCH}")
        table(best(passes(Path(made)), PASSES), "ms a pass", 1e3)
    print("\n40 features, one row a call")
    table(best(rows(), 1), "us a row", 1e6 / CALLS)
