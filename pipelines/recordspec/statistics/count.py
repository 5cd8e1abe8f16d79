"""Counts the records of files."""

from __future__ import annotations

from dataclasses import dataclass

from recordspec.errors import system_errors
from recordspec.locations import Location
from recordspec.progress import Progress
from recordspec.remote import RemotePath
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import Files, note_sizes
from recordspec.store.scan import run, sizes_of
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
    known = [_known(path, dataset) for path in dataset.paths]
    paths = [path for path, count in zip(dataset.paths, known, strict=True) if count is None]
    tasks = [(path,) for path in paths]
    read = run(_read, tasks, paths, 1, "counting", sizes=sizes_of(paths))
    counts = []
    for count in known:
        counts.append(next(read) if count is None else count)
        progress.advance(counts[-1].records)
    return counts


def _known(path: Location, dataset: StoredDataset) -> FileCount | None:
    """The count of a file by its index; of an object in a store, by the manifest. None without one."""
    with system_errors("read", path):
        manifest = dataset.manifests.get(path.parent)
        if isinstance(path, RemotePath) and manifest is not None and path in dataset.shards:
            shard = dataset.shards[path]
            return FileCount(str(path), shard.records, shard.bytes, manifest.compression)
    compression, index = file_types.compression_of(path), dataset.index_of(path)
    return None if index is None else FileCount(str(path), index.records, index.bytes, compression)


def _read(path: Location, attempt: str) -> FileCount:
    """Counts the records of a file."""
    compression = file_types.compression_of(path)
    return FileCount(str(path), tfrecord.count(path), path.stat().st_size, compression)
