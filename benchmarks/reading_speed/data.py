"""The data: the rows of the write benchmark, and tokens as raw bytes, in files of recordspec and of TFDS."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from writing.data import DATASETS as WRITTEN
from writing.data import Columns, Dataset

BATCH = 128
SHARDS = 4
BLOCK = 256

Form = Literal["rows", "blocks", "tfds"]

RAW = Dataset(
    name="tokens_raw",
    title="512 int64 tokens as raw bytes (`kind: tensor`, `encoding: raw`)",
    rows=100_000,
    features="  tokens: {kind: tensor, dtype: int64, shape: [512], encoding: raw}\n",
    kinds={"tokens": "bytes"},
    make=WRITTEN["tokens_fixed"].make,
    ways=("rows", "blocks", "hand", "records", "cat"),
)

# A multiple of the rows of the write benchmark: a pass should take long compared with its start, 0.1 s.
LARGER = {"criteo": 1, "floats": 4, "tokens_fixed": 5, "tokens_var": 5, "jpegs": 8}

# The largest shuffle buffer: 10,000 rows of 100 KB would be 1 GB for each variant at once.
_MOST_SHUFFLED = {"jpegs": 1_000}

# Without pixels: `media.py` measures decoding JPEG.
DATASETS = {name: replace(WRITTEN[name], rows=times * WRITTEN[name].rows) for name, times in LARGER.items()}
DATASETS[RAW.name] = RAW

# The column that every variant sums, to check that all read the same values.
SUMMED = {
    "criteo": "label",
    "floats": "label",
    "tokens_fixed": "tokens",
    "tokens_var": "tokens",
    "jpegs": "image",
    "tokens_raw": "tokens",
}


@dataclass(frozen=True, kw_only=True)
class Given:
    """The input of a variant.

    Attributes:
        folder: with a subfolder for each format.
        shuffle: the size of the shuffle buffer in rows; 0 for none.
    """

    dataset: Dataset
    folder: Path
    shuffle: int

    def files(self, form: Form) -> list[str]:
        """The files of recordspec, in order."""
        return [str(path) for path in sorted((self.folder / form).glob("*.tfrecord"))]

    @property
    def summed(self) -> str:
        return SUMMED[self.dataset.name]

    @property
    def raw(self) -> bool:
        return self.dataset is RAW


def buffer(dataset: str, shuffle: int) -> int:
    """The size of the shuffle buffer, at most the requested one."""
    return min(shuffle, _MOST_SHUFFLED.get(dataset, shuffle))


def expected(dataset: Dataset, rows: int) -> tuple[int, int]:
    """The expected rows of a pass, and the sum of a column's integers, or of its strings' lengths."""
    return rows, sum(map(amount, dataset.make(rows)[SUMMED[dataset.name]]))


def amount(value: Any) -> int:
    """The contribution of a value to the sum."""
    return len(value) if isinstance(value, bytes) else int(np.sum(value))


def shapes(dataset: Dataset) -> dict[str, tuple[int | None, ...]]:
    """The shape of a value of each column."""
    return {name: _shape(values) for name, values in dataset.make(2).items()}


def _shape(values: Any) -> tuple[int | None, ...]:
    if isinstance(values, np.ndarray):
        return tuple(values.shape[1:])
    return () if isinstance(values[0], bytes) else (None,)


def write(dataset: Dataset, rows: int, folder: Path, peers: Collection[str]) -> None:
    """Writes the rows with recordspec, and in the formats of the measured peers."""
    import recordspec as rs

    schema, columns = rs.Schema.loads(dataset.schema), dataset.make(rows)
    layouts: dict[str, Any] = {"rows": "rows", "blocks": {"blocks": BLOCK}}
    for name, layout in layouts.items():
        rs.write(columns, schema, folder / name, shards=SHARDS, layout=layout, progress=False)
    if "parquet" in peers:
        _write_parquet(columns, folder / "parquet")
    if "grain" in peers:
        _write_array_record(folder)
    if "tfds" in peers:
        _write_tfds(dataset, columns, rows, folder / "tfds")


def _write_parquet(columns: Columns, folder: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    folder.mkdir()
    arrays = {name: list(values) if np.ndim(values[0]) else values for name, values in columns.items()}
    parquet.write_table(pyarrow.table(arrays), folder / "rows.parquet", compression="none")


def _write_array_record(folder: Path) -> None:
    """The records of the rows; a group of one is what its readers of rows by number want."""
    from array_record.python.array_record_module import ArrayRecordWriter

    import recordspec as rs

    (folder / "array_record").mkdir()
    writer = ArrayRecordWriter(str(folder / "array_record/rows.array_record"), "group_size:1")
    rows = rs.open(folder / "rows")
    for start in range(0, len(rows), BATCH):
        for record in rows.records(range(start, min(start + BATCH, len(rows)))):
            writer.write(record)
    writer.close()


def _write_tfds(dataset: Dataset, columns: Columns, rows: int, folder: Path) -> None:
    from writing.ways.tfds_writers import write as write_rows

    folder.mkdir()
    write_rows(dataset, columns, folder, rows_a_shard=-(-rows // SHARDS))
