"""How many records are in files."""

from __future__ import annotations

from dataclasses import dataclass

from recordspec.locations import Location
from recordspec.progress import Progress
from recordspec.store.shards import Files, expand
from recordspec.wire import compression, file_types, tfrecord


@dataclass(frozen=True)
class FileCount:
    """A file, its records, its bytes, and how it is compressed."""

    file: str
    records: int
    bytes: int
    compression: compression.Compression


def count(files: Files, progress: Progress | None = None) -> list[FileCount]:
    """The records of each file. Of an uncompressed one only the lengths are read.

    Raises RecordError where a file is not whole, StoreError where there is none.
    """
    progress = progress or Progress(show=False)
    progress.begin("counting", None)
    return [_count(path, progress) for path in expand(files)]


def _count(path: Location, progress: Progress) -> FileCount:
    compression, records = file_types.compression_of(path), 0
    for some in tfrecord.counts(path):
        records += some
        progress.advance(some)
    return FileCount(str(path), records, path.stat().st_size, compression)
