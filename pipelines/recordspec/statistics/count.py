"""Counts the records of files."""

from __future__ import annotations

from dataclasses import dataclass

from recordspec.errors import system_errors
from recordspec.locations import Location
from recordspec.progress import Progress
from recordspec.remote import RemotePath
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import Files, note_sizes
from recordspec.wire import compression, file_types, tfrecord


@dataclass(frozen=True)
class FileCount:
    """The number of records of a file, its size in bytes, and its compression."""

    file: str
    records: int
    bytes: int
    compression: compression.Compression


def count(files: Files, progress: Progress | None = None) -> list[FileCount]:
    """Counts the records of each file.

    Reads only the index of a file that has one, and only the record lengths of another uncompressed file.
    For a folder or a pattern in an object store, reads the manifest alone, if there is one.

    Raises RecordError if a file is incomplete, StoreError if there are no files.
    """
    dataset = StoredDataset.of(files)
    note_sizes(dataset.paths, dataset.manifests)
    return count_dataset(dataset, progress)


def count_dataset(dataset: StoredDataset, progress: Progress | None = None) -> list[FileCount]:
    """The records of each file of a dataset, as `count` returns them."""
    progress = progress or Progress(show=False)
    progress.begin("counting", None)
    return [_count(path, dataset, progress) for path in dataset.paths]


def _count(path: Location, dataset: StoredDataset, progress: Progress) -> FileCount:
    """Counts the records of a file. For an object in a store, takes the count of the manifest instead of
    transferring the object."""
    with system_errors("read", path):
        manifest = dataset.manifests.get(path.parent)
        if isinstance(path, RemotePath) and manifest is not None and path in dataset.shards:
            shard = dataset.shards[path]
            return FileCount(str(path), shard.records, shard.bytes, manifest.compression)
    compression = file_types.compression_of(path)
    index = dataset.index_of(path) if compression == "none" else None
    records = 0
    for some in tfrecord.counts(path) if index is None else (index.records,):
        records += some
        progress.advance(some)
    return FileCount(str(path), records, path.stat().st_size, compression)
