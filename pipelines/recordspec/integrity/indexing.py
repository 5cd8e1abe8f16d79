"""Indexes the records of files for random access by number, for recordspec and for other readers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from recordspec.errors import Problem, RecordError, SpecError, one_of, system_errors
from recordspec.locations import Location, atomic_write, output_file
from recordspec.progress import Progress
from recordspec.store.expand import Files, expand_dataset
from recordspec.store.index import indexed, of_file, of_shard
from recordspec.store.manifest import FILE, INDEX_FILE, INDEX_SUFFIXES, Manifest, Shard, manifest_in
from recordspec.store.scan import run
from recordspec.store.transaction import changing
from recordspec.wire.file_types import compression_of
from recordspec.wire.tfrecord import record_ends

Format = Literal["recordspec", "tfrecord", "dali"]

FORMATS: tuple[Format, ...] = get_args(Format)


@dataclass(frozen=True, kw_only=True)
class Written:
    """A file, its new index, and the number of its records."""

    file: str
    index: str
    records: int


def index(
    files: Files,
    form: Format = "recordspec",
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Written]:
    """Writes an index of each file, and replaces an existing index.

    In the form `recordspec`, all shards of a dataset have one index, `index.bin` beside the manifest. Any
    other file has `FILE.index` beside it, and readers use it as long as the file does not change. The forms
    `tfrecord` (for the package of that name) and `dali` (for NVIDIA DALI) are text with a line for each
    record: its byte offset, and its size including its length and CRCs.

    Args:
        files: paths, folders or patterns.
        form: `recordspec`, `tfrecord` or `dali`.
        jobs: the number of processes; None for one per processor if there is much to read.
        progress: receives the number of indexed records.

    Raises SpecError for another form; RecordError if a length is corrupt, and for a compressed file without
    restart points, or in another form; StoreError if there is no file or the index cannot be written.
    """
    if form not in FORMATS:
        raise SpecError(Problem(path=("format",), expected=one_of(FORMATS), got=f"`{form}`"))
    paths, manifests = expand_dataset(files)
    for path in paths:
        if form != "recordspec" and (compression := compression_of(path)) != "none":
            hint = "`recordspec reshard --compression none` makes one"
            raise RecordError(
                Problem(where=str(path), expected="an uncompressed file", got=compression, hint=hint)
            )
    known: dict[Location, Written] = {}
    progress = progress or Progress(show=False)
    progress.begin("indexing", None)
    for folder in dict.fromkeys(path.parent for path in paths) if form == "recordspec" else ():
        manifest = manifests.get(folder) or manifest_in(folder)
        if manifest is not None and isinstance(folder, Path):  # local: its manifest can be changed
            shards = manifest._by_file()
            listed = [path for path in paths if path.parent == folder and path.name in shards]
            if listed:
                _index_dataset(folder, manifest, jobs, progress)
            known |= {path: _of_shard(path, manifest, shards[path.name]) for path in listed}
    alone = [(path, form) for path in paths if path not in known]
    made = run(_index_of, alone, [path for path, _ in alone], jobs, "index")
    done = []
    for path in paths:
        if path not in known:
            target = path.with_name(f"{path.name}{INDEX_SUFFIXES[form]}")
            data, records = next(made)
            with output_file(target, force=True) as begun, begun.open("wb") as file:
                file.write(data)
            known[path] = Written(file=str(path), index=str(target), records=records)
            progress.advance(records)
        done.append(known[path])
    return done


def _index_dataset(folder: Location, manifest: Manifest, jobs: int | None, progress: Progress) -> None:
    """Writes the index of all shards of a dataset, then the manifest that names the index."""
    tasks = [(folder, shard) for shard in manifest.all_shards]
    files = [folder / shard.file for shard in manifest.all_shards]

    def part(shard: Shard) -> bytes:
        data = next(parts)
        progress.advance(shard.records)
        return data

    with system_errors("write", folder), changing(Path(str(folder)), manifest):
        parts = run(_part, tasks, files, jobs, "index")
        known = indexed(manifest, Path(str(folder)), part)
        atomic_write(Path(str(folder / FILE)), known.dump().encode())


def _part(folder: Location, shard: Shard, attempt: str) -> bytes:
    return of_shard(folder, shard)


def _of_shard(path: Location, manifest: Manifest, shard: Shard) -> Written:
    index = path.with_name(manifest.name_of(INDEX_FILE))
    return Written(file=str(path), index=str(index), records=shard.records)


def _index_of(path: Location, form: Format, attempt: str) -> tuple[bytes, int]:
    """The index of a file, and the number of its records."""
    if form == "recordspec":
        return of_file(path)
    parts = [*_lines(path)]
    return b"".join(data for data, _ in parts), sum(count for _, count in parts)


def _lines(path: Location) -> Iterator[tuple[bytes, int]]:
    """The lines of an index for DALI (as of its `tfrecord2idx`) or the `tfrecord` package, with the number of
    their records, some records at a time."""
    start = 0
    for _, places in record_ends(path):
        starts = np.concatenate([[start], places[:-1]])
        sizes = places - starts
        lines = zip(starts.tolist(), sizes.tolist(), strict=True)
        yield "".join(f"{offset} {size}\n" for offset, size in lines).encode(), len(places)
        start = int(places[-1])
