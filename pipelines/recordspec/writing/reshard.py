"""`recordspec.reshard`: writes the records of existing files to other shards, unchanged."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recordspec.errors import Problem, RecordError, SpecError, StoreError, system_errors
from recordspec.locations import Location, check_regular, open_file, statuses
from recordspec.remote import RemotePath
from recordspec.schema.options import format_bytes, from_python
from recordspec.schema.row_blocks import records_of_block
from recordspec.schema.schema import Schema
from recordspec.store import key_hashes
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import Files, expand
from recordspec.store.key_hashes import hashes
from recordspec.store.manifest import FILE, REJECTS_FILE, Manifest
from recordspec.store.shard_names import splits_by_name
from recordspec.store.shards import check_size, listed_files
from recordspec.wire import framing, tfrecord
from recordspec.wire.arrays import ArrowArray, buffer_of
from recordspec.wire.framing import FOOTER_BYTES, HEADER_BYTES
from recordspec.wire.hashes import Words
from recordspec.wire.tfrecord import Record, RecordRange
from recordspec.writing.append import ExistingDataset
from recordspec.writing.build_plan import BuildPlan, free_space
from recordspec.writing.encoded_rows import RecordRows
from recordspec.writing.failures import disk_errors, source_errors
from recordspec.writing.local import build_locally
from recordspec.writing.row_encoder import PART_BITS, Advance, EncodedPart, no_progress
from recordspec.writing.sorter import Sorter
from recordspec.writing.sources import base
from recordspec.writing.sources.base import identity_of
from recordspec.writing.write_options import Blocks, Execution, Key, ReshardOptions, Write

if TYPE_CHECKING:
    from typing_extensions import Unpack


# The bytes of records copied at once.
_BYTES_AT_ONCE = 4 << 20


def reshard(
    files: Files,
    directory: str | os.PathLike[str] | RemotePath,
    *,
    schema: Schema | None = None,
    jobs: int = 1,
    memory: str | None = None,
    force: bool = False,
    resume: bool = False,
    progress: bool | None = None,
    **options: Unpack[ReshardOptions],
) -> Manifest:
    """Writes the records of TFRecord files to other shards. Keeps the bytes of records, and checks each CRC.

    A dataset keeps its splits, key, schema and rejected rows. The splits of other files follow from the names
    of files or folders (`train-00000-of-00008...`, `mnist-test.tfrecord-00000-of-00001`,
    `val/part-r-00000`), or are `train`.

    Args:
        files: a path, a folder of shards, a pattern, or several of them.
        directory: a folder that does not exist yet.
        schema: the schema of the records; needed only for `layout`, if there is no `schema.yaml`.
        jobs, memory, force, resume, progress: as for `recordspec.write`.
        options: shards, compression, layout and shuffle, as for `recordspec.write`. By default, compression
            and layout stay the same. A seed yields the order of a build with that seed, except for copies
            of a row in several splits.

    Raises the errors of `recordspec.write`.

    Example:
        >>> rs.reshard("data/points", "data/resharded", shards=3).rows("train")
        15
    """
    dataset = StoredDataset(expand(files))
    for path in dataset.paths:  # before any file is opened: opening a pipe would block
        with system_errors("read", path):
            check_regular(path)
    _check_one_dataset(dataset.paths)
    schema = _checked_schema(schema, dataset.schema)
    source = StoredRecords(dataset)
    made = _options(source, schema, options)
    # rows that were in blocks have been checked against the schema already
    source.checked = made.block is not None and dataset.block is None
    if not resume:
        _check_space(source, made, directory)
    # a dataset without rows was built on purpose
    execution = Execution(
        jobs=jobs, memory=memory, allow_empty=True, force=force, resume=resume, progress=progress
    )
    return build_locally(schema, source, directory, made, execution, task=copy_part, revise=source.revised)


def _check_space(source: StoredRecords, made: Write, directory: str | os.PathLike[str] | RemotePath) -> None:
    """Raises StoreError if the disk has no room for the gathered records and the shards. Checks nothing if
    the files are compressed or in blocks: the size of their records is then unknown."""
    dataset = source.dataset
    if dataset.block is not None or dataset.compression_of(dataset.paths[0]) != "none":
        return
    times = 2 if made.compression == "none" and made.block is None else 1
    free = free_space(directory)
    # a file system with compression allocates less than the size; an object has no `st_blocks`
    sizes = (
        min(status.st_size, getattr(status, "st_blocks", status.st_size) * 512)
        for status in statuses(dataset.paths)
    )
    if (needed := times * sum(sizes)) > free:
        expected = f"{format_bytes(needed)} free for the records and the shards"
        raise StoreError(Problem(where=str(directory), expected=expected, got=format_bytes(free)))


def _check_one_dataset(paths: tuple[Location, ...]) -> None:
    """Raises SpecError if files of a dataset are mixed with files of other folders, which may differ in
    content."""
    folders = tuple(dict.fromkeys(path.parent for path in paths))
    known = [folder for folder in folders if (folder / FILE).exists()]
    if known and len(folders) > 1:
        other = next(folder for folder in folders if folder != known[0])
        got = f"those of {known[0]} and of {other}"
        hint = "`append` adds the rows of one to another"
        raise SpecError(Problem(path=("files",), expected="files of one dataset", got=got, hint=hint))


def _checked_schema(schema: Schema | None, beside: Schema | None) -> Schema | None:
    """Returns the given schema, else the schema of the dataset. Raises SpecError if they differ."""
    if schema is not None and beside is not None and schema.fingerprint != beside.fingerprint:
        expected = f"`{beside.name}` beside the files"
        got = f"`{schema.name}`, which stores something else"
        raise SpecError(Problem(path=("schema",), expected=expected, got=got))
    return schema or beside


def _options(source: StoredRecords, schema: Schema | None, changed: Mapping[str, Any]) -> Write:
    known = tuple(ReshardOptions.__annotations__)
    unknown = [name for name in changed if name not in known]
    if unknown:
        raise SpecError(Problem(expected=f"one of {', '.join(known)}", got=f"`{unknown[0]}`"))
    dataset = source.dataset
    kept: dict[str, Any] = {
        "compression": dataset.compression_of(dataset.paths[0]),
        "splits": dict.fromkeys(source.splits, 1.0),
    }
    # rows keep their splits, so copies stay in theirs
    kept["key"] = Key(unique=False)
    if dataset.manifest is not None:
        kept["key"] = Key(names=tuple(dataset.manifest.key) or None, unique=dataset.keys is not None)
    if dataset.block is not None:
        kept["layout"] = Blocks(blocks=dataset.block)
    options: Write = from_python(Write, {**kept, **changed})
    if schema is None and (options.block is not None or dataset.block is not None):
        hint = "there is no schema.yaml beside the files"
        raise SpecError(
            Problem(path=("schema",), expected="a schema to make blocks by", got="none", hint=hint)
        )
    return options


class StoredRecords:
    """The records of existing files, as a source of a build.

    Attributes:
        dataset: the files.
        rows: the number of rows; None if unknown.
        checked: whether each record is checked against the schema, because blocks are made of the records.
    """

    def __init__(self, dataset: StoredDataset) -> None:
        self.dataset, self.checked = dataset, False
        self.rows: int | None = None
        manifest, paths = dataset.manifest, dataset.paths
        if manifest is None:
            self._splits = list(splits_by_name(paths, "train").values())
        else:
            self._splits = [dataset.splits[path] for path in paths]
            shards = [file.shard for file in listed_files(paths, manifest) if file.shard is not None]
            self.rows = sum(shard.rows for shard in shards)
            for path, shard, status in zip(paths, shards, statuses(paths), strict=True):
                check_size(path, shard, status.st_size)  # a file truncated between two records looks whole
            if manifest.rejected:
                # opened to fail early: the file is copied at the end of the build
                open_file(dataset.folder / manifest.name_of(REJECTS_FILE)).close()

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits of the files, in the order of the dataset."""
        known = () if self.dataset.manifest is None else self.dataset.manifest.splits
        return tuple(sorted(dict.fromkeys(self._splits), key=[*known, *self._splits].index))

    def identity(self) -> Any:
        return identity_of(self.dataset.paths)

    def parts(self, schema: Schema | None, extra: tuple[str, ...]) -> Iterator[StoredPart]:
        """Yields ranges of records of the files, in order."""
        check, dataset = schema if self.checked else None, self.dataset
        starts = {} if dataset.manifest is None else dataset.manifest._starts()
        sizes = [status.st_size for status in statuses(dataset.paths)]
        in_blocks, keys = dataset.block is not None, dataset.keys
        for path, split, size in zip(dataset.paths, self._splits, sizes, strict=True):
            whole = in_blocks or size <= base.PART_BYTES or dataset.compression_of(path) != "none"
            ranges = [None] if whole else tfrecord.record_ranges(path, base.PART_BYTES)
            for records in ranges:
                first = starts.get(path.name, 0)
                yield StoredPart(path, records, split, keys, first, in_blocks, check)

    def revised(self, made: Manifest, folder: Path) -> Manifest:
        """The manifest of the new shards, with the other facts of the old manifest. Copies the list of
        rejected rows to the folder."""
        old = self.dataset.manifest
        if old is None:
            return replace(made, division={})  # file names determined the splits of the rows
        ExistingDataset(folder=self.dataset.folder, manifest=old).put_rejects_into(folder)
        whole = [split for split in made.splits if made.rows(split) == old.rows(split)]
        return replace(
            old,
            splits=made.splits,
            label_counts={split: old.label_counts[split] for split in whole if split in old.label_counts},
            compression=made.compression,
            block=made.block,
            adopted="",
            suffix="",
            keys_sha256=None,  # keys, if any, are written again in the new order
            index_sha256=None,  # the index is written again for the new shards
            shuffle_seed=old.shuffle_seed if made.shuffle_seed is None else made.shuffle_seed,
        )


@dataclass(frozen=True)
class StoredPart:
    """Consecutive records of one file.

    Attributes:
        path: the path of the file.
        range: the range of the records; None means all.
        split: the split of the records.
        keys: the file of the hashes of the keys of all rows, if any.
        first: the index in `keys` of the first row of this file.
        in_blocks: whether a record holds many rows.
        check: the schema that each record must match, so that it can become a row of a block; None checks
            nothing.
    """

    path: Location
    range: RecordRange | None
    split: str
    keys: Location | None
    first: int
    in_blocks: bool
    check: Schema | None = None

    def records(self, schema: Schema | None) -> Iterator[ArrowArray]:
        """Yields batches of framed records, one row each. Raises RecordError."""
        records = tfrecord.scan(self.path, self.range)
        if not self.in_blocks:
            for some in tfrecord.batched(records, _BYTES_AT_ONCE):
                yield self._taken(some)
            return
        assert schema is not None
        for record in records:
            try:
                rows = records_of_block(schema, record.data, framed=True, whole=True)
            except RecordError as error:
                raise RecordError(error.at(self._where(record)).problems) from None
            yield rows

    def _taken(self, records: list[Record]) -> ArrowArray:
        """Frames records, and checks them against the schema while the place of each record is known."""
        framed = framing.frames([record.data for record in records])
        if self.check is not None:
            try:
                RecordRows(framed).as_columns(self.check)
            except RecordError as error:
                raise RecordError(error.at(self._where(records[error.row or 0])).problems) from None
        return framed

    def _where(self, record: Record) -> str:
        return f"{self.path}: {framing.place(record.number, record.offset)}"

    def hashes(self, records: ArrowArray, row: int) -> Words:
        """The hashes of the keys of records; the first record is row `row` of the part."""
        if self.keys is None:
            return hashes(records, HEADER_BYTES, FOOTER_BYTES)
        before = 0 if self.range is None else self.range.number
        return key_hashes.read(self.keys, self.first + before + row, len(records))

    def place(self, row: int) -> str:
        number = row if self.range is None else self.range.number + row
        return f"{self.path}: row {number}"


def copy_part(
    plan: BuildPlan, number: int, part: StoredPart, attempt: str, advance: Advance = no_progress
) -> EncodedPart:
    """Copies the records of a part. The counterpart of `encode_part`. Raises RecordError, StoreError."""
    stem, rows = f"part-{number:05d}.{attempt}", 0
    sink = Sorter(plan, stem)
    keyed = plan.options.shuffle is not None or plan.options.unique
    for records in source_errors(part.records(plan.schema), plan.name):
        hashed = part.hashes(records, rows) if keyed else None
        first = (number << PART_BITS) + rows
        numbers = np.arange(first, first + len(records), dtype=np.uint64)
        with disk_errors(plan.name):
            sink.add(RecordRows(records), numbers, hashed, None)
        rows += len(records)
        advance(len(records), len(buffer_of(records)))
    with disk_errors(plan.name):
        runs = sink.finish([part.split])
    return EncodedPart(rows=rows, rejected=0, runs=runs, rejects=f"{stem}.rejects", label_counts={})
