"""`recordspec.reshard`: the records of existing files in other shards, as they are."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from recordspec.errors import Problem, SpecError
from recordspec.locations import check_regular
from recordspec.spec.options import from_python
from recordspec.spec.schema import Schema
from recordspec.store.manifest import FILE, REJECTS_FILE, LabelCounts, Manifest, manifest_of
from recordspec.store.shards import Files, expand, stored_schema
from recordspec.writing.assembly import Shards
from recordspec.writing.build import Build, Input, Work
from recordspec.writing.encoding import PART_BITS, Advance
from recordspec.writing.ending import guarded, on_disk
from recordspec.writing.options import Blocks, Key, Write
from recordspec.writing.sources.base import identity_of, name_of
from recordspec.writing.stored import Stored, StoredPart
from recordspec.writing.tasks import PartDone, Plan


def reshard(
    files: Files,
    directory: str | os.PathLike[str],
    *,
    schema: Schema | None = None,
    jobs: int = 1,
    memory: str | None = None,
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
    old = manifest_of(paths)
    schema = _checked_schema(schema, stored_schema(paths[0].parent, old))
    source = Stored(paths, old)
    # a dataset without rows was built on purpose
    work = Work(jobs=jobs, memory=memory, allow_empty=True, force=force, resume=resume, progress=progress)
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
    if source.block is not None:
        kept["layout"] = Blocks(blocks=source.block)
    options: Write = from_python(Write, {**kept, **given})
    if schema is None and (options.block is not None or source.in_blocks):
        hint = "no schema.yaml lies beside the files"
        raise SpecError(
            Problem(path=("schema",), expected="a schema to make blocks by", got="none", hint=hint)
        )
    return options


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
    return PartDone(rows=rows, rejected=0, runs=runs, rejects=f"{stem}.rejects", label_counts={})


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
        # blocks that become blocks again were rows of the schema already
        check = schema if options.block is not None and not source.in_blocks else None
        given = Input(
            name=name_of(source),
            rows=source.rows,
            parts=partial(source.parts, check),
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
                check_regular(self._source.folder / REJECTS_FILE)
                shutil.copyfile(self._source.folder / REJECTS_FILE, folder / REJECTS_FILE)
        return replace(
            old,
            splits=made.splits,
            label_counts=_of_whole_splits(old, made),
            compression=made.compression,
            block=made.block,
            keys_sha256=None,  # if there are keys, those of the new order
            shuffle_seed=made.shuffle_seed if self._plan.options.shuffle else old.shuffle_seed,
        )


def _of_whole_splits(old: Manifest, made: Manifest) -> LabelCounts:
    """The classes of the rows of splits of which all rows were taken over."""
    return {
        split: old.label_counts[split]
        for split in made.splits
        if split in old.label_counts and made.rows(split) == old.rows(split)
    }
