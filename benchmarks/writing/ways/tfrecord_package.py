"""The `tfrecord` package: its `TFRecordWriter`, which takes (value, kind) for each feature of a row."""

from __future__ import annotations

from pathlib import Path

from tfrecord.writer import TFRecordWriter

from writing.data import Dataset, rows_of
from writing.ways import Run


def prepare(dataset: Dataset, rows: int) -> Run:
    given = rows_of(dataset.make(rows))
    kinds = {name: "byte" if kind == "bytes" else kind for name, kind in dataset.kinds.items()}

    def run(folder: Path) -> None:
        writer = TFRecordWriter(str(folder / "package.tfrecord"))
        for row in given:
            writer.write({name: (row[name], kind) for name, kind in kinds.items()})
        writer.close()

    return run
