"""Counts the records of files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from recordspec.errors import system_errors
from recordspec.locations import Location
from recordspec.progress import Progress
from recordspec.store.expand import Files, expand_dataset, note_sizes
from recordspec.store.index import Indices
from recordspec.store.manifest import Manifest
from recordspec.wire import compression, file_types, tfrecord


@dataclass(frozen=True)
class FileCount:
    """A file, its records, its bytes, and how it is compressed."""

    file: str
    records: int
    bytes: int
    compression: compression.Compression


def count(files: Files, progress: Progress | None = None) -> list[FileCount]:
    """The records of each file. Of one with an index only that is read, of another that is not compressed the
    lengths; of a folder or a pattern in an object store its manifest alone, if it has one.

    Raises RecordError if a file is not whole, StoreError if there is none.
    """
    paths, manifests = expand_dataset(files)
    note_sizes(paths, manifests)
    return count_paths(paths, manifests, progress)


def count_paths(
    paths: Iterable[Location], manifests: Mapping[Location, Manifest], progress: Progress | None = None
) -> list[FileCount]:
    """The same, for files that were found already, with the manifests that were read for it."""
    progress = progress or Progress(show=False)
    progress.begin("counting", None)
    known: dict[Location, FileCount] = {
        folder / shard.file: FileCount(
            str(folder / shard.file), shard.records, shard.bytes, manifest.compression
        )
        for folder, manifest in manifests.items()
        for shard in manifest.all_shards
    }
    indices = Indices(manifests)
    return [_count(path, known.get(path), indices, progress) for path in paths]


def _count(path: Location, listed: FileCount | None, indices: Indices, progress: Progress) -> FileCount:
    """Counts the records of a file; of an object, which would be transferred, the manifest is believed."""
    with system_errors("read", path):
        if listed is not None and path.peek() is None:
            return listed
    compression = file_types.compression_of(path)
    index = indices.of(path) if compression == "none" else None
    records = 0
    for some in tfrecord.counts(path) if index is None else (index.records,):
        records += some
        progress.advance(some)
    return FileCount(str(path), records, path.stat().st_size, compression)
