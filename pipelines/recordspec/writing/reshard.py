"""`recordspec.reshard`: the records of existing files in other shards, as they are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from recordspec.errors import Problem, SpecError, StoreError
from recordspec.spec.options import from_python
from recordspec.spec.schema import Schema
from recordspec.store.manifest import FILE, KEYS_FILE, REJECTS_FILE, SCHEMA_FILE, Manifest, find
from recordspec.store.shards import Files, expand, parse_name
from recordspec.wire import tfrecord
from recordspec.wire.strings import Strings
from recordspec.wire.tfrecord import HEAD, TAIL, Stretch
from recordspec.writing import known_keys, shuffle
from recordspec.writing.assembly import Shards
from recordspec.writing.build import Build, Input, Work
from recordspec.writing.encoding import PART_BITS, Advance
from recordspec.writing.ending import guarded, on_disk
from recordspec.writing.options import MEMORY, Blocks, Key, Write
from recordspec.writing.sources import base
from recordspec.writing.sources.base import identity_of
from recordspec.writing.tasks import PartDone, Plan

# Records taken over at once.
_BYTES_AT_ONCE = 4 << 20


def reshard(
    files: Files,
    directory: str | os.PathLike[str],
    *,
    schema: Schema | None = None,
    jobs: int = 1,
    memory: str = MEMORY,
    force: bool = False,
    resume: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> Manifest:
    """Puts the records of TFRecord files into other shards. Their bytes are kept; each CRC is checked.

    Of a dataset the splits, the key, the schema and the rejected rows stay what they are; of other files
    the names tell the split (`train-00000-of-00008...`), or they are all `train`.

    Args:
        files: a path, a folder of shards, a pattern, or several of these.
        directory: a folder that does not exist yet.
        schema: what the records are; needed only for `layout`, and where no `schema.yaml` is there.
        jobs, memory, force, resume, progress: as `recordspec.write` takes them.
        options: shards, compression, layout and shuffle, as `recordspec.write` takes them; compression and
            layout are those of the files where nothing is said. With the same seed, the order is that of
            a dataset built so.

    Raises what `recordspec.write` raises.
    """
    paths = expand(files)
    identity_of(paths)  # before any is opened: a pipe would be waited for
    _check_one_dataset(paths)
    old = find(paths)
    schema = _checked_schema(schema, _schema_beside(paths[0].parent, old))
    source = Stored(paths, old)
    work = Work(jobs=jobs, memory=memory, force=force, resume=resume, progress=progress)
    return _Reshard(schema, source, directory, _options(source, schema, options), work).run()


def _check_one_dataset(paths: tuple[Path, ...]) -> None:
    """Raises SpecError for files of a dataset together with others: these may hold something else."""
    folders = tuple(dict.fromkeys(path.parent for path in paths))
    known = [folder for folder in folders if (folder / FILE).exists()]
    if known and len(folders) > 1:
        other = next(folder for folder in folders if folder != known[0])
        got = f"those of {known[0]} and of {other}"
        hint = "`append` adds the rows of one to another"
        raise SpecError(Problem(path=("files",), expected="files of one dataset", got=got, hint=hint))


def _schema_beside(folder: Path, old: Manifest | None) -> Schema | None:
    path = folder / SCHEMA_FILE
    return Schema.load(path) if old is not None and path.exists() else None


def _checked_schema(given: Schema | None, beside: Schema | None) -> Schema | None:
    """Raises SpecError where the schema that is given is not that of the dataset."""
    if given is not None and beside is not None and given.fingerprint != beside.fingerprint:
        expected = f"`{beside.name}`, which lies beside the files"
        got = f"`{given.name}`, which stores something else"
        raise SpecError(Problem(path=("schema",), expected=expected, got=got))
    return given or beside


def _options(source: Stored, schema: Schema | None, given: dict[str, Any]) -> Write:
    known = ("shards", "compression", "layout", "shuffle")
    unknown = [name for name in given if name not in known]
    if unknown:
        raise SpecError(Problem(expected=f"one of {', '.join(known)}", got=f"`{unknown[0]}`"))
    old = source.manifest
    kept: dict[str, Any] = {"compression": source.compression, "splits": dict.fromkeys(source.splits, 1.0)}
    if old is not None and old.key:
        kept["key"] = Key(names=tuple(old.key), unique=source.keys is not None)
    if old is not None and old.block is not None:
        kept["layout"] = Blocks(blocks=old.block)
    options: Write = from_python(Write, {**kept, **given})
    if schema is None and (options.block is not None or source.in_blocks):
        hint = "no schema.yaml lies beside the files"
        raise SpecError(
            Problem(path=("schema",), expected="a schema to make blocks by", got="none", hint=hint)
        )
    return options


class Stored:
    """The records of files.

    Attributes:
        paths: of the files.
        manifest: what the dataset says that they belong to, if any.
        rows: in them, None where nobody knows.
    """

    def __init__(self, paths: tuple[Path, ...], manifest: Manifest | None) -> None:
        self.manifest = manifest
        self.paths = paths
        self.rows: int | None = None
        if manifest is None:
            self._splits = [_split_of(path) for path in paths]
            return
        known = _known(paths, manifest)
        self._splits = [split for split, _ in known]
        self.rows = sum(rows for _, rows in known)

    @property
    def splits(self) -> tuple[str, ...]:
        """Their splits, in the order of the dataset."""
        known = () if self.manifest is None else self.manifest.splits
        return tuple(sorted(dict.fromkeys(self._splits), key=[*known, *self._splits].index))

    @property
    def folder(self) -> Path:
        """Where they lie."""
        return self.paths[0].parent

    @property
    def compression(self) -> str:
        """That of the first file."""
        return tfrecord.compression_of(self.paths[0])

    @property
    def in_blocks(self) -> bool:
        """Whether a record holds many rows."""
        return self.manifest is not None and self.manifest.block is not None

    @property
    def keys(self) -> Path | None:
        """The file with the hashes of the keys of the dataset's rows, where there is one, and it is whole."""
        path = self.folder / KEYS_FILE
        if self.manifest is None or self.manifest.keys_sha256 is None:
            return None
        rows = sum(map(self.manifest.rows, self.manifest.splits))
        return path if path.exists() and known_keys.rows(path) == rows else None

    def parts(self) -> Iterator[StoredPart]:
        """Stretches of the files, in order."""
        starts = {} if self.manifest is None else self.manifest.starts()
        for path, split in zip(self.paths, self._splits, strict=True):
            whole = self.in_blocks or tfrecord.compression_of(path) != "none"
            stretches = [None] if whole else tfrecord.stretches(path, base.PART_BYTES)
            for stretch in stretches:
                yield StoredPart(path, stretch, split, self.keys, starts.get(path.name, 0), self.in_blocks)


def _known(paths: tuple[Path, ...], manifest: Manifest) -> list[tuple[str, int]]:
    """The split of each file, and its rows. Raises StoreError where they are not those of the manifest."""
    known = {shard.file: (split, shard) for split, shards in manifest.splits.items() for shard in shards}
    problems = [
        Problem(where=str(path), expected="shards that the manifest names", got="another one")
        for path in paths
        if path.name not in known
    ]
    # one that is cut between two records looks whole
    problems += [
        Problem(where=str(path), expected=f"{size:,} bytes, as the manifest says", got=f"{found:,}")
        for path in paths
        if path.name in known and (size := known[path.name][1].bytes) != (found := path.stat().st_size)
    ]
    rejects = paths[0].parent / REJECTS_FILE
    if manifest.rejected and not rejects.exists():
        expected = f"{manifest.rejected:,} rejected rows, as the manifest says"
        problems.append(Problem(where=str(rejects), expected=expected, got="no file"))
    if problems:
        raise StoreError(problems)
    return [(split, shard.rows) for split, shard in (known[path.name] for path in paths)]


def _split_of(path: Path) -> str:
    name = parse_name(path.name)
    return "train" if name is None else name.split


@dataclass(frozen=True)
class StoredPart:
    """Records of one file that follow each other.

    Attributes:
        path: of the file.
        stretch: which records; None means all.
        split: theirs.
        keys: the file with the hashes of the keys of all rows, if any.
        first: where those of this file's rows begin in it.
        in_blocks: whether a record holds many rows.
    """

    path: Path
    stretch: Stretch | None
    split: str
    keys: Path | None
    first: int
    in_blocks: bool

    def records(self, schema: Schema | None) -> Iterator[Strings]:
        """Framed records of one row each, some at a time. Raises RecordError."""
        waiting: list[bytes] = []
        size = 0
        for record in tfrecord.scan(self.path, self.stretch):
            if self.in_blocks:
                assert schema is not None
                rows = schema.records_of(record.data, head=HEAD, tail=TAIL)
                tfrecord.seal(rows)
                yield rows
                continue
            waiting.append(record.data)
            size += len(record.data)
            if size >= _BYTES_AT_ONCE:
                yield tfrecord.frames(waiting)
                waiting, size = [], 0
        if waiting:
            yield tfrecord.frames(waiting)

    def hashes(self, records: Strings, row: int) -> shuffle.Hashes:
        """Of the keys of records, of which the first is row `row` of the part."""
        if self.keys is None:
            return shuffle.hashes([view[HEAD:-TAIL] for view in records.views()])
        before = 0 if self.stretch is None else self.stretch.number
        return known_keys.read(self.keys, self.first + before + row, len(records))

    def place(self, row: int) -> str:
        number = row if self.stretch is None else self.stretch.number + row
        return f"{self.path}: row {number}"


def copy_part(
    plan: Plan, number: int, part: StoredPart, attempt: str, advance: Advance | None = None
) -> PartDone:
    """Takes over the records of a part, as `encode_part` encodes its rows. Raises RecordError, StoreError."""
    stem, rows = f"part-{number:05d}.{attempt}", 0
    sink = plan.run_writer(stem)
    keyed = plan.options.shuffle is not None or plan.options.unique
    for records in guarded(part.records(plan.schema), plan.name):
        hashed = part.hashes(records, rows) if keyed else None
        first = (number << PART_BITS) + rows
        with on_disk(plan.name):
            sink.add(records, np.arange(first, first + len(records), dtype=np.uint64), hashed, None)
        rows += len(records)
        if advance is not None:
            advance(len(records), len(records.buffer))
    with on_disk(plan.name):
        runs = sink.finish([part.split])
    return PartDone(rows=rows, rejected=0, runs=runs, rejects=f"{stem}.rejects")


class _Reshard(Build):
    """A build whose rows are records already."""

    def __init__(
        self,
        schema: Schema | None,
        source: Stored,
        directory: str | os.PathLike[str],
        options: Write,
        work: Work,
    ) -> None:
        given = Input(
            rows=source.rows,
            parts=source.parts,
            identity=partial(identity_of, source.paths),
            encode=copy_part,
        )
        super().__init__(schema, given, directory, options, work)
        self._source = source

    def _heading(self, shards: Shards, rejected: int) -> Manifest:
        made, old = super()._heading(shards, rejected), self._source.manifest
        if old is None:
            return made
        if old.rejected:
            folder = self._transaction.staging
            with on_disk(self._plan.name):
                shutil.copyfile(self._source.folder / REJECTS_FILE, folder / REJECTS_FILE)
        return replace(
            old,
            splits=made.splits,
            compression=made.compression,
            block=made.block,
            keys_sha256=None,  # if there are keys, those of the new order
            shuffle_seed=made.shuffle_seed if self._plan.options.shuffle else old.shuffle_seed,
        )
