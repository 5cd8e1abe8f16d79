"""Other readers read the records of recordspec: all rows, in order, with exact values.

    python benchmarks/readers.py [--rows 200] [--peers tensorflow tfds]

The same rows are written three times, in two splits of two shards, shuffled: one record a row, the same with
gzip, and in blocks of 64 rows. Each reader runs in a separate process, in one of the environments that `make
bench-readers` creates, and prints the rows as lines of JSON; `reading` has the readers. The rows must equal
those that were passed to recordspec, in the order of the files. Only that order is taken from recordspec, by
the keys that it reads, where each row must occur once. It is the same for all three datasets. Exits with 1
unless all are equal.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import recordspec
from processes import HERE, command
from reading import PEERS, Row
from reading.data import DATASETS, PARSE, SCHEMA, SPLITS, files_of, given, plain, rows

Texts = dict[str, str]
Splits = dict[str, list[Texts]]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of reading a dataset.

    Attributes:
        rows: the number of rows.
        difference: the first difference from the written rows, or why it failed; empty if all are equal.
    """

    peer: str
    dataset: str
    files: int
    version: str = ""
    rows: int = 0
    difference: str = ""


def main() -> None:
    options = arguments()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name).resolve()
        written = write(folder, options.rows)
        outcomes = [
            outcome(peer, folder / dataset, written)
            for peer in options.peers
            for dataset in PEERS[peer].datasets
        ]
    print("\n".join(table(outcomes)))
    sys.exit(any(one.difference for one in outcomes))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=PEERS)
    parser.add_argument("--folder", type=Path, help="where the files are written; by default /tmp or $TMPDIR")
    return parser.parse_args()


def write(folder: Path, count: int) -> Splits:
    """Writes the datasets. Returns the expected rows of each split."""
    (folder / "schema.yaml").write_text(SCHEMA)
    explain = [sys.executable, "-m", "recordspec", "explain", folder / "schema.yaml", "--python"]
    with open(folder / PARSE, "w") as parse:
        subprocess.run(explain, stdout=parse, check=True)
    schema, values = recordspec.Schema.load(folder / "schema.yaml"), rows(count)
    for name, options in DATASETS.items():
        recordspec.write([given(row) for row in values], schema, folder / name, **options)
    return in_order(values, [order(schema, folder / name) for name in ("rows", "gzip")])


def order(schema: recordspec.Schema, folder: Path) -> dict[str, list[int]]:
    """The keys of the rows of each split, as recordspec reads them."""
    return {
        split: [int(row["id"]) for row in recordspec.read(files_of(folder, split), schema)]
        for split in SPLITS
    }


def in_order(values: list[Row], orders: list[dict[str, list[int]]]) -> Splits:
    """The rows that were written. Raises AssertionError unless each is in the order once."""
    by_key = {row["id"]: texts(plain(row)) for row in values}
    keys = orders[0]
    listed = [key for split in keys.values() for key in split]
    assert all(other == keys for other in orders), "expected one order, got several"
    assert sorted(listed) == sorted(by_key), "expected each row once, got others"
    return {split: [by_key[key] for key in keys[split]] for split in SPLITS}


def texts(row: Row) -> Texts:
    """Each value as JSON text, in which NaN equals NaN, and -0 differs from 0."""
    return {name: json.dumps(value) for name, value in row.items()}


def outcome(peer: str, folder: Path, written: Splits) -> Outcome:
    """Reads a dataset with a peer, and compares."""
    known: dict[str, Any] = {
        "peer": PEERS[peer].title,
        "dataset": folder.name,
        "files": sum(len(files_of(folder, split)) for split in SPLITS),
    }
    process = subprocess.run(
        command(PEERS[peer].environment, "reading.worker", peer, folder),
        cwd=HERE,
        capture_output=True,
        text=True,
    )
    if process.returncode:
        return Outcome(**known, difference=f"exit code {process.returncode}: {process.stderr[-4000:]}")
    versions, *answers = map(json.loads, process.stdout.splitlines())
    found = {split: [texts(row) for name, row in answers if name == split] for split in SPLITS}
    return Outcome(
        **known,
        version=versions[PEERS[peer].package],
        rows=len(answers),
        difference=next(differences(written, found), ""),
    )


def differences(written: Splits, found: Splits) -> Iterator[str]:
    """The values in which the splits differ."""
    for split in SPLITS:
        pairs = zip_longest(written[split], found[split], fillvalue=dict[str, str]())
        for index, (one, other) in enumerate(pairs):
            for name in sorted({*one, *other}):
                if one.get(name) != other.get(name):
                    yield f"{split}, row {index}: {name}: expected {one.get(name)}, got {other.get(name)}"


def table(outcomes: list[Outcome]) -> Iterator[str]:
    """The results in Markdown, with the differences below."""
    yield "| peer | version | dataset | files | rows | equal |\n|---|---|---|--:|--:|---|"
    for one in outcomes:
        equal = "no" if one.difference else "yes"
        yield f"| {one.peer} | {one.version} | {one.dataset} | {one.files} | {one.rows} | {equal} |"
    for one in outcomes:
        if one.difference:
            yield f"\n{one.peer}, {one.dataset}: {one.difference}"


if __name__ == "__main__":
    main()
