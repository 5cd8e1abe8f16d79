"""NVIDIA DALI: a pipeline on the CPU, with the index files that its `tfrecord2idx` makes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from nvidia.dali import fn, pipeline_def, tfrecord

from reading import Read, Row
from reading.data import VECTOR, files_of

READER = "shards"
FEATURES = {
    "id": tfrecord.FixedLenFeature([1], tfrecord.int64, 0),
    "vector": tfrecord.FixedLenFeature([VECTOR], tfrecord.float32, 0.0),
    "name": tfrecord.FixedLenFeature([], tfrecord.string, ""),
    "tokens": tfrecord.VarLenFeature(tfrecord.int64, 0),
    "label": tfrecord.FixedLenFeature([1], tfrecord.int64, 0),
    "image": tfrecord.FixedLenFeature([], tfrecord.string, ""),
}


def prepare(folder: Path) -> Read:
    return partial(_rows, folder)


def _rows(folder: Path, split: str) -> Iterator[Row]:
    files = files_of(folder, split)
    with tempfile.TemporaryDirectory() as indices:
        pipeline = _pipeline(files, [_index(file, Path(indices)) for file in files])
        pipeline.build()
        for _ in range(pipeline.epoch_size(READER)):
            values = (np.array(output.at(0)) for output in pipeline.run())
            yield _row(dict(zip(FEATURES, values, strict=True)))


def _index(file: str, folder: Path) -> str:
    index = folder / f"{Path(file).name}.idx"
    subprocess.run([Path(sys.executable).parent / "tfrecord2idx", file, index], check=True)
    return str(index)


@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def _pipeline(files: list[str], indices: list[str]) -> tuple[Any, ...]:
    read = fn.readers.tfrecord(path=files, index_path=indices, features=FEATURES, name=READER)
    return tuple({**read, "image": fn.decoders.image(read["image"], device="cpu")}.values())


def _row(row: Row) -> Row:
    """A row of arrays: DALI returns strings as uint8, and scalars as arrays of one element."""
    scalars = {name: row[name].item() for name in ("id", "label")}
    return {**row, **scalars, "name": row["name"].tobytes()}
