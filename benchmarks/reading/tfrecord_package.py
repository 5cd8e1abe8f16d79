"""The `tfrecord` package: its `tfrecord_loader`, file by file; Pillow decodes the images."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image
from tfrecord.reader import tfrecord_loader

from reading import Read, Row
from reading.data import files_of

KINDS = {"id": "int", "vector": "float", "name": "byte", "tokens": "int", "label": "int", "image": "byte"}
SCALARS = ("id", "label")


def prepare(folder: Path) -> Read:
    return partial(_rows, folder)


def _rows(folder: Path, split: str) -> Iterator[Row]:
    for file in files_of(folder, split):
        compression = "gzip" if file.endswith(".gz") else None
        for row in tfrecord_loader(file, None, KINDS, compression_type=compression):
            scalars = {name: row[name].item() for name in SCALARS}
            yield {**row, **scalars, "image": np.asarray(Image.open(io.BytesIO(row["image"])))}
