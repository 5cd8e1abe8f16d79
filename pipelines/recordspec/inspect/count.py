"""How many records are in files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from recordspec.store.shards import Files, expand
from recordspec.wire import tfrecord


@dataclass(frozen=True)
class Counted:
    """A file, its records, its bytes, and how it is compressed."""

    file: str
    records: int
    bytes: int
    compression: tfrecord.Compression


def count(files: Files) -> list[Counted]:
    """The records of each file. Of an uncompressed one only the lengths are read.

    Raises RecordError where a file is not whole, StoreError where there is none.
    """
    return [_count(path) for path in expand(files)]


def _count(path: Path) -> Counted:
    compression = tfrecord.compression_of(path)
    return Counted(str(path), tfrecord.count(path), path.stat().st_size, compression)
