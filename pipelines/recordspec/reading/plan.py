"""Which files are read, how many rows they have, and which of them a worker gets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recordspec.errors import Problem, StoreError
from recordspec.spec.features import KINDS
from recordspec.spec.schema import Schema, differences
from recordspec.store.manifest import SCHEMA_FILE, Manifest, Shard, find
from recordspec.store.shards import parse_name


@dataclass(frozen=True)
class Share:
    """What one of several workers reads: of each file every `workers`-th record."""

    workers: int
    worker: int

    def rows_of(self, rows: int, file: int) -> int:
        """How many of the rows of file number `file` are the worker's."""
        first = (self.worker + file) % self.workers
        return max(0, -(-(rows - first) // self.workers))


def rows_in(paths: tuple[Path, ...], schema: Schema, share: Share | None = None) -> int | None:
    """The rows of these files, or of a share of them; None where no manifest tells.

    Raises StoreError where the files are not what their manifest says, or were written with another
    spec.
    """
    manifest = find(paths)
    if manifest is None:
        _check_complete(paths)
        return None
    check_schema(manifest, schema, paths[0].parent)
    known = {shard.file: shard for shards in manifest.splits.values() for shard in shards}
    rows = [_checked(path, known.get(path.name)).rows for path in paths]
    if share is None:
        return sum(rows)
    return sum(share.rows_of(count, file) for file, count in enumerate(rows))


def check_schema(manifest: Manifest, schema: Schema, data: Path) -> None:
    """Raises StoreError, with every difference, if the dataset cannot be read with this schema."""
    if manifest.block is not None:
        got = f"blocks of {manifest.block}"
        hint = "Schema.decode_block reads them; reshard makes rows of them"
        raise StoreError(Problem(where=str(data), path=("layout",), expected="rows", got=got, hint=hint))
    if manifest.fingerprint in (None, schema.fingerprint):
        return
    kinds = KINDS | {feature.kind: type(feature) for _, feature in schema.placed}
    written = Schema.load(data / SCHEMA_FILE, kinds)
    hint = "build it again, or read it with its own schema.yaml"
    problems = [
        Problem(where=str(data), path=one.path, expected=one.expected, got=one.got, hint=hint)
        for one in differences(written, schema)
    ]
    if problems:
        raise StoreError(problems)


def _checked(path: Path, shard: Shard | None) -> Shard:
    """The shard that a file is. It must be in the manifest, and have the size that stands there."""
    if shard is None:
        expected = "a shard that the manifest beside it names"
        raise StoreError(Problem(where=str(path), expected=expected, got="another file"))
    try:
        size = path.stat().st_size
    except OSError:
        hint = "the manifest names it; build the dataset again"
        raise StoreError(Problem(where=str(path), expected="a shard", got="no file", hint=hint)) from None
    if size != shard.bytes:
        expected = f"{shard.bytes:,} bytes, as the manifest says"
        hint = "build the dataset again"
        raise StoreError(Problem(where=str(path), expected=expected, got=f"{size:,}", hint=hint))
    return shard


def _check_complete(paths: tuple[Path, ...]) -> None:
    """Without a manifest, the names tell how many shards there should be."""
    for folder, split, count in sorted(_announced(paths)):
        for index in range(count):
            name = f"{split}-{index:05d}-of-{count:05d}.tfrecord"
            if not any((folder / f"{name}{suffix}").exists() for suffix in ("", ".gz", ".zlib")):
                raise StoreError(
                    Problem(where=str(folder / name), expected=f"{count} shards", got="this one missing")
                )


def _announced(paths: tuple[Path, ...]) -> Iterator[tuple[Path, str, int]]:
    names = ((path.parent, parse_name(path.name)) for path in paths)
    return iter({(folder, name.split, name.count) for folder, name in names if name is not None})
