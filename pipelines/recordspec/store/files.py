"""The files of a dataset, and what its manifest says of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recordspec.errors import Problem, RecordError, StoreError
from recordspec.store.manifest import SCHEMA_FILE, Manifest, Shard, find
from recordspec.wire import tfrecord
from recordspec.wire.blocks import block_size
from recordspec.wire.proto import parse_example
from recordspec.wire.tfrecord import Record

if TYPE_CHECKING:
    from recordspec.spec.schema import Schema


@dataclass(frozen=True, kw_only=True)
class File:
    """A file to read, and what is known of it.

    Attributes:
        shard: what its manifest says; None without one.
        block: rows of a record at most; None where each has one.
    """

    path: Path
    shard: Shard | None = None
    block: int | None = None

    @property
    def records_needed(self) -> int | None:
        """Records that hold the rows that the manifest counts; None without one."""
        return None if self.shard is None else -(-self.shard.rows // (self.block or 1))

    def rows_of(self, number: int) -> int:
        """Rows of a record."""
        size = self.block or 1
        return size if self.shard is None else min(size, max(0, self.shard.rows - number * size))

    def rows_from(self, number: int) -> int | None:
        """Rows of a record and of all behind it; None where nobody counted."""
        return None if self.shard is None else max(0, self.shard.rows - number * (self.block or 1))


def schema_beside(folder: Path, manifest: Manifest | None) -> Schema | None:
    """The schema that a dataset was written with, where it lies in its folder."""
    path = folder / SCHEMA_FILE
    if manifest is None or not path.exists():
        return None
    from recordspec.spec.schema import Schema  # it takes 0.2 s, and most files have none beside them

    return Schema.load(path)


def known(paths: tuple[Path, ...], schema: Schema) -> tuple[File, ...]:
    """The files, with what their manifest says of each.

    Raises StoreError where one is missing or foreign, or they were written with another spec.
    """
    return described(paths, find(paths), schema)


def described(paths: tuple[Path, ...], manifest: Manifest | None, schema: Schema) -> tuple[File, ...]:
    """The same, of files whose manifest is read already."""
    if manifest is not None:
        check_schema(manifest, schema, paths[0].parent)
    return _of_manifest(paths, manifest)


def compared(paths: tuple[Path, ...], schema: Schema) -> tuple[tuple[File, ...], tuple[Problem, ...]]:
    """The files, to be compared with any spec; and in what it differs from that of their manifest.

    Raises StoreError where a file is missing or foreign.
    """
    manifest = find(paths)
    files = _of_manifest(paths, manifest)
    try:
        if manifest is not None:
            check_schema(manifest, schema, paths[0].parent)
    except StoreError as error:
        return files, error.problems
    return files, ()


def _of_manifest(paths: tuple[Path, ...], manifest: Manifest | None) -> tuple[File, ...]:
    if manifest is None:
        block = block_in(paths)
        return tuple(File(path=path, block=block) for path in paths)
    shards = {shard.file: shard for shard in manifest.all_shards}
    return tuple(
        File(path=path, shard=_present(path, shards.get(path.name)), block=manifest.block) for path in paths
    )


def check_schema(manifest: Manifest, schema: Schema, data: Path) -> None:
    """Raises StoreError, with every difference, if the dataset cannot be read with this schema."""
    if manifest.fingerprint in (None, schema.fingerprint):
        return
    from recordspec.spec.features import KINDS
    from recordspec.spec.schema import Schema, differences

    kinds = KINDS | {feature.kind: type(feature) for _, feature in schema.placed}
    written = Schema.load(data / SCHEMA_FILE, kinds)
    hint = "build it again, or read it with its own schema.yaml"
    problems = [
        Problem(where=str(data), path=one.path, expected=one.expected, got=one.got, hint=hint)
        for one in differences(written, schema)
    ]
    if problems:
        raise StoreError(problems)


def _present(path: Path, shard: Shard | None) -> Shard:
    """The shard that a file is. It must be in the manifest, and be there."""
    if shard is None:
        expected = "a shard that the manifest beside it names"
        raise StoreError(Problem(where=str(path), expected=expected, got="another file"))
    if not path.exists():
        hint = "the manifest names it; build the dataset again"
        raise StoreError(Problem(where=str(path), expected="a shard", got="no file", hint=hint))
    return shard


def check_size(path: Path, shard: Shard) -> None:
    size = path.stat().st_size
    if size != shard.bytes:
        expected = f"{shard.bytes:,} bytes, as the manifest says"
        hint = "build the dataset again"
        raise StoreError(Problem(where=str(path), expected=expected, got=f"{size:,}", hint=hint))


def block_in(paths: tuple[Path, ...]) -> int | None:
    """Rows of a record in files without a manifest, as the first record of each tells: the last of a file may
    have fewer. None where each record has one.

    Raises StoreError where some files hold blocks of rows, and others do not.
    """
    sizes = {path: size for path in paths if (size := _first_block(path)) is not None}
    blocks = [path for path, size in sizes.items() if size]
    others = [path for path, size in sizes.items() if not size]
    if blocks and others:
        expected = f"blocks of many rows, as {blocks[0]} has"
        raise StoreError(Problem(where=str(others[0]), expected=expected, got="records of one row"))
    return max(sizes.values()) if blocks else None


def _first_block(path: Path) -> int | None:
    """Rows of the first whole record where that is a block; 0 where it is none, None without a record."""
    record = next(
        (found for found in tfrecord.one_by_one(tfrecord.salvage(path)) if isinstance(found, Record)), None
    )
    if record is None:
        return None
    try:
        size = block_size(parse_example(record.data, ""))
    except RecordError:  # another message
        return 0
    return 0 if size is None else max(1, size)
