"""How well an order shuffles: the distances and the classes of rows that are read one after the other.

    python benchmarks/shuffling.py [--rows 200000] [--shards 8]

The rows are sorted by one of ten classes. After a perfect shuffle of n rows, consecutive rows were
(n + 1) / 3 rows apart on disk on average, 2 / n of the pairs were adjacent, and the share of pairs of one
class is the sum of the squares of the classes' shares. The figures are of the first epoch; they are the same
on every machine.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import recordspec as rs

CLASSES = 10
SCHEMA = "schema: sorted\nfeatures:\n  row: int64\n"
SMALL, LARGE = {"buffer": 1000, "seed": 1}, {"buffer": 10_000, "seed": 1}
GLOBAL, LANES = {"global": True, "seed": 1}, {"lanes": 240, "seed": 1}
# By name: the options of `rs.read`, and the rows of a block; None for the layout of rows.
ORDERS: dict[str, tuple[dict[str, Any], int | None]] = {
    "in order": ({}, None),
    "a buffer of 1,000, one file at a time": ({"shuffle": SMALL, "interleave": {"cycle": 1}}, None),
    "a buffer of 1,000": ({"shuffle": SMALL}, None),
    "a buffer of 10,000": ({"shuffle": LARGE}, None),
    "a buffer of 10,000, blocks of 64 rows": ({"shuffle": LARGE}, 64),
    "`global: true`": ({"shuffle": GLOBAL}, None),
    "`global: true`, blocks of 64 rows": ({"shuffle": GLOBAL}, 64),
    "`lanes: 240`, windows of 64 rows": ({"shuffle": {**LANES, "window": 64}}, None),
    "`lanes: 240`, windows of 64 rows, blocks of 64 rows": ({"shuffle": {**LANES, "window": 64}}, 64),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--shards", type=int, default=8)
    options = parser.parse_args()
    schema, rows = rs.Schema.loads(SCHEMA), options.rows
    print("| order | rows apart | adjacent | of one class |\n|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for block in (None, 64):
            layout = "rows" if block is None else {"blocks": block}
            data = Path(folder) / str(block)
            rs.write(
                {"row": np.arange(rows)}, schema, data, shards=options.shards, layout=layout, progress=False
            )
        for name, (order, block) in ORDERS.items():
            batches = rs.read(Path(folder) / str(block), schema, batch=1024, **order)
            print(line(name, np.concatenate([batch["row"] for batch in batches.as_numpy_iterator()])))
    shares = np.bincount(np.arange(rows) * CLASSES // rows) / rows
    print(f"| a perfect shuffle | {(rows + 1) / 3:,.0f} | {2 / rows:.3%} | {np.sum(shares**2):.1%} |")


def line(name: str, read: Any) -> str:
    apart = np.abs(np.diff(read))
    classes = read * CLASSES // len(read)
    same = np.mean(classes[1:] == classes[:-1])
    return f"| {name} | {np.mean(apart):,.0f} | {np.mean(apart == 1):.3%} | {same:.1%} |"


if __name__ == "__main__":
    main()
