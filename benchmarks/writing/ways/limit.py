"""The limit: the bytes of the file that recordspec writes, copied with their CRC32C, written and fsynced.

The file lies in memory, whole. It is taken in pieces of 1 MiB, which stay in the cache between the copy, the
sum and the write; so it knows nothing of records, and a writer of records can only come near it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from crc32c import crc32c

from writing.data import Dataset
from writing.ways import Run, ours

PIECE = 1 << 20


def prepare(dataset: Dataset, rows: int) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        ours.columns(dataset, rows)(Path(folder))
        (path,) = Path(folder).rglob("*.tfrecord")
        data = memoryview(path.read_bytes())
    buffer = memoryview(bytearray(PIECE))

    def run(folder: Path) -> None:
        with open(folder / "limit.tfrecord", "wb", buffering=0) as file:
            for start in range(0, len(data), PIECE):
                piece = data[start : start + PIECE]
                copy = buffer[: len(piece)]
                copy[:] = piece
                crc32c(copy)
                file.write(copy)
            os.fsync(file.fileno())

    return run
