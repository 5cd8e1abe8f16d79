"""The shards of a dataset: their manifest entries, their schema, and the rows of their records."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recordspec.errors import (
    Problem,
    RecordError,
    State,
    StoreError,
    show_text,
)
from recordspec.locations import Location, disk_status, read_start
from recordspec.store.manifest import (
    SCHEMA_FILE,
    Manifest,
    Shard,
    manifest_in,
)
from recordspec.wire.compression import Compression

log = logging.getLogger("recordspec")

# Bytes in which the first record of a file is searched.
_FIRST = 1 << 14

if TYPE_CHECKING:
    from recordspec.schema.schema import Schema


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """A file to read.

    Attributes:
        shard: the manifest entry; None without a manifest.
        block: the largest number of rows per record; None if each record is one row.
        compression: `none` for a file without a manifest that begins with an intact record; None if unknown.
        framed: whether all bytes of a file without a manifest were read, and are records of valid length.
        size: the bytes of a file with a manifest; None for an object, whose manifest is believed.
    """

    path: Location
    shard: Shard | None = None
    block: int | None = None
    compression: Compression | None = None
    framed: bool = False
    size: int | None = None

    @property
    def records_needed(self) -> int | None:
        """The number of records that hold the rows in the manifest; None without a manifest."""
        return None if self.shard is None else -(-self.shard.rows // (self.block or 1))

    def rows_of(self, number: int) -> int:
        """The number of rows of a record."""
        size = self.block or 1
        return size if self.shard is None else min(size, max(0, self.shard.rows - number * size))

    def rows_from(self, number: int) -> int | None:
        """The number of rows of a record and all following records; None without a manifest."""
        return None if self.shard is None else max(0, self.shard.rows - number * (self.block or 1))


def stored_schema(folder: Location, manifest: Manifest | None) -> Schema | None:
    """Loads the schema that a dataset was written with, if it is in the dataset's folder and has no custom
    kinds.

    Unknown kinds are logged.
    """
    if manifest is None or not (path := folder / manifest.name_of(SCHEMA_FILE)).exists():
        return None
    from recordspec.schema.schema import Schema, custom_kinds  # 0.2 s, and most files have no schema

    if kinds := custom_kinds(path):
        log.warning("%s: custom kinds: %s; records are read by their keys", path, show_text(", ".join(kinds)))
        return None
    return Schema.load(path)


def check_blocks(files: Iterable[File]) -> None:
    """Raises StoreError if records in files of several folders have different numbers of rows."""
    first, *others = files
    for file in others:
        if file.block != first.block:
            expected = f"{_rows(first)}, as {first.path} has"
            raise StoreError(Problem(where=str(file.path), expected=expected, got=_rows(file)))


def _rows(file: File) -> str:
    return "records of one row" if file.block is None else f"blocks of {file.block} rows"


def listed_files(paths: tuple[Location, ...], manifest: Manifest) -> list[File]:
    """Files with their entries in their manifest. Raises StoreError if a file is missing or has no entry."""
    shards, files = manifest._by_file(), []
    unlisted = "is not listed by the manifest beside it"
    for path in paths:
        try:
            status = disk_status(path)
        except FileNotFoundError:
            got = "does not exist, and the manifest lists it" if path.name in shards else unlisted
            hint = "build the dataset again" if path.name in shards else ""
            raise StoreError(replaced(path) or State(where=str(path), got=got, hint=hint)) from None
        if path.name not in shards:
            raise StoreError(State(where=str(path), got=unlisted))
        size = None if status is None else status.st_size
        files.append(File(path=path, shard=shards[path.name], block=manifest.block, size=size))
    return files


def _is_gone(path: Location) -> bool:
    """Whether the file does not exist; false for an object, which raises an error when it is read."""
    try:
        disk_status(path)
    except FileNotFoundError:
        return True
    return False


def replaced(path: Location) -> Problem | None:
    """The problem of a shard that is missing because its dataset was replaced; None otherwise."""
    if not _is_gone(path):
        return None
    manifest = manifest_in(path.parent)
    if manifest is None or path.name in manifest.files:
        return None
    got, hint = "was replaced since it was opened", "open it again, and start the pass again"
    return State(where=str(path.parent), got=got, hint=hint)


def schema_mismatches(manifest: Manifest, schema: Schema, data: Location) -> list[Problem]:
    """The differences for which the dataset cannot be read with the schema.

    Logs features that are newer than the dataset once.
    """
    if manifest.fingerprint in (None, schema.fingerprint):
        return []
    from recordspec.schema.feature_set import differences
    from recordspec.schema.features import KINDS
    from recordspec.schema.schema import Schema

    kinds = KINDS | {feature.kind: type(feature) for _, feature in schema._placed}
    written = Schema.load(data / manifest.name_of(SCHEMA_FILE), kinds)
    hint = "build it again, or read it with its own schema.yaml"
    problems = [
        Problem(
            where=str(data), path=difference.path, expected=difference.expected, got=difference.got, hint=hint
        )
        for difference in differences(written, schema)
    ]
    newer = [name for name in schema.names if name not in written.names]
    if not problems and newer:
        _log_newer(data, ", ".join(f"`{name}`" for name in newer))
    return problems


@lru_cache(1 << 10)
def _log_newer(data: Location, names: str) -> None:
    """Logs features that a dataset lacks, once for each dataset in a process."""
    text = f"{data}: written before the schema had {names}: stored as missing, decoded as the default"
    log.warning("%s", show_text(text))


def check_size(path: Location, shard: Shard, size: int) -> None:
    """Raises StoreError if the size of a file differs from the manifest."""
    if size != shard.bytes:
        expected = f"{shard.bytes:,} bytes, as the manifest says"
        adopted = bool(shard.frames_sha256)
        hint = "`recordspec adopt --force` adopts it again" if adopted else "build the dataset again"
        raise StoreError(Problem(where=str(path), expected=expected, got=f"{size:,}", hint=hint))


def unlisted_files(paths: tuple[Location, ...]) -> tuple[File, ...]:
    """Describes files without a manifest, by their first bytes. Each is opened once.

    The block size is the largest number of rows in the first record of any file: the last record of a file
    may have fewer.

    Raises StoreError if only some files hold blocks of rows.
    """
    starts = list(_starts(paths))
    blocks = [path for path, start in zip(paths, starts, strict=True) if start.rows]
    others = [path for path, start in zip(paths, starts, strict=True) if start.rows == 0]
    if blocks and others:
        expected = f"blocks of many rows, as {blocks[0]} has"
        raise StoreError(Problem(where=str(others[0]), expected=expected, got="records of one row"))
    block = max(start.rows or 0 for start in starts) if blocks else None
    return tuple(
        File(path=path, block=block, compression=start.compression, framed=start.framed)
        for path, start in zip(paths, starts, strict=True)
    )


def block_in(paths: tuple[Location, ...]) -> int | None:
    """The largest number of rows per record in files without a manifest; None if each record is one row.

    Raises StoreError as `unlisted_files` does.
    """
    return unlisted_files(paths)[0].block


def begins_with_block(path: Location) -> bool:
    """Whether the first intact record of a file is a block of rows."""
    return bool(next(_starts([path])).rows)


class _Start(NamedTuple):
    """Information from the first bytes of a file.

    Attributes:
        rows: the number of rows of the first intact record if it is a block; 0 if it is not, None without a
            record.
    """

    rows: int | None
    compression: Compression | None = None
    framed: bool = False


def _starts(paths: Iterable[Location]) -> Iterator[_Start]:
    # importing them takes 0.2 s, and most files have a manifest
    from recordspec.wire.framing import first_record, frames_in
    from recordspec.wire.tfrecord import Chunk, salvage

    for path in paths:
        start = read_start(path, _FIRST)
        data = first_record(start)
        if data is not None:
            is_all = len(start) < _FIRST
            framed = is_all and int(frames_in(np.frombuffer(start, np.uint8))[-1]) == len(start)
            yield _Start(rows_of_block(data), "none", framed)
            continue
        # the first record is larger, compressed, or corrupt
        chunk = next((chunk for chunk in salvage(path) if isinstance(chunk, Chunk)), None)
        yield _Start(None if chunk is None else rows_of_block(chunk.data(0)))


def rows_of_block(data: memoryview) -> int:
    """The number of rows of a record if it is a block; otherwise 0."""
    from recordspec.wire.blocks import ROWS
    from recordspec.wire.proto import parse_example

    if ROWS.encode() not in bytes(data):  # parsing each of thousands takes longer
        return 0
    try:
        rows = parse_example(data).get(ROWS)
    except RecordError:  # another message
        return 0
    return max(1, int(rows[0])) if rows and len(rows) == 1 and isinstance(rows[0], int) else 0
