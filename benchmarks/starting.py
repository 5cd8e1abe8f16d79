"""Start-up time of commands: CPU time on a file of one record, compared with that of imports alone.

    python benchmarks/starting.py [--runs 9]

Each run is a new process, and runs are interleaved; the first one, which compiles to bytecode and fills the
page cache, is discarded, and the minimum and the median of the others are reported. CPU time is user and
system time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import recordspec as rs
from processes import cpu_seconds

SCHEMA = "schema: one\nfeatures:\n  values: {shape: [182], dtype: float32}\n  label: {dtype: int64}\n"
FILE = "data/train-00000-of-00001.tfrecord"
# By what is run; the last ones load DuckDB.
COMMANDS = {
    "count": ["count", FILE],
    "head": ["head", FILE],
    "show": ["show", FILE, "0"],
    "sample": ["sample", FILE],
    "info": ["info", FILE],
    "infer": ["infer", FILE],
    "check": ["check", FILE, "--schema", "schema.yaml"],
    "lint": ["lint", "schema.yaml"],
    "explain": ["explain", "schema.yaml"],
    "verify": ["verify", FILE],
    "index": ["index", FILE],
    "repair": ["repair", FILE, "--out", "repaired", "--force"],
    "export": ["export", FILE, "--out", "rows.parquet", "--force"],
    "export to JSON lines": ["export", FILE, "--out", "rows.jsonl", "--force"],
    "diff of schemas": ["diff", "schema.yaml", "schema.yaml"],
    "stats": ["stats", FILE],
    "diff": ["diff", FILE, FILE],
    "head --where": ["head", FILE, "--where", "label > 1"],
    "export --where": ["export", FILE, "--where", "label > 1", "--out", "rows.parquet", "--force"],
    "query": ["query", "SELECT count(*) FROM t", f"t={FILE}"],
    "leaks": ["leaks", FILE],
}
IMPORTS = {"nothing": "pass", "numpy": "import numpy", "tensorflow": "import tensorflow"}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args().runs
    ways = {f"`recordspec {name}`": command(*arguments) for name, arguments in COMMANDS.items()}
    ways |= {f"Python that imports {name}": [sys.executable, "-c", code] for name, code in IMPORTS.items()}
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(runs + 1):
            for way, arguments in ways.items():
                taken[way].append(run(arguments, Path(name)))
    print("\n".join(table({way: seconds[1:] for way, seconds in taken.items()})))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "recordspec", *arguments]


def prepare(folder: Path) -> None:
    (folder / "schema.yaml").write_text(SCHEMA)
    values = np.linspace(0, 1, 182, dtype=np.float32)[None]
    schema = rs.Schema.load(folder / "schema.yaml")
    rs.write({"values": values, "label": np.array([3])}, schema, folder / "data")


def run(arguments: list[str], folder: Path) -> float:
    """The CPU seconds of a command. Exits with its output if it fails."""
    # bytecode is cached, as by default
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "", "TF_CPP_MIN_LOG_LEVEL": "2"}
    before = cpu_seconds()
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} failed:\n{done.stderr}")
    return cpu_seconds() - before


def table(taken: dict[str, list[float]]) -> list[str]:
    """The results in Markdown."""
    rows = [
        f"| {way} | {min(seconds):.2f} | {statistics.median(seconds):.2f} |" for way, seconds in taken.items()
    ]
    return ["| | least CPU, s | median CPU, s |", "|---|--:|--:|", *rows]


if __name__ == "__main__":
    main()
