"""Adopts TFRecords of another writer: adds a manifest and an index, without a copy of the records."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np

from recordspec import remote
from recordspec.errors import (
    Problem,
    RecordError,
    SpecError,
    State,
    StoreError,
    counted,
    system_errors,
)
from recordspec.integrity.check import violations_in
from recordspec.locations import AnyPath, Location, atomic_write, local, open_file
from recordspec.progress import Progress
from recordspec.remote import RemotePath, Stamp
from recordspec.schema.row_blocks import rows_of_blocks
from recordspec.schema.schema import Schema, as_schema, check_data_first
from recordspec.store.expand import Files, expand
from recordspec.store.index import IndexWriter, indexed
from recordspec.store.manifest import (
    FILE,
    INDEX_FILE,
    SCHEMA_FILE,
    Manifest,
    Shard,
    manifest_in,
    parse_manifest,
    with_suffix,
)
from recordspec.store.scan import WORTH_CHECKING, FileRange, RecordSpans, UnreadableRecord, run, scan
from recordspec.store.shard_names import is_split_name, splits_by_name, version_suffixes
from recordspec.store.shards import rows_of_block
from recordspec.store.transaction import Transaction, changing
from recordspec.wire.arrays import Bytes, Ints, flat_of
from recordspec.wire.blocks import StoredBlocks
from recordspec.wire.compression import Compression
from recordspec.wire.file_types import FileStart
from recordspec.wire.framing import (
    FOOTER_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    LARGEST_RECORD,
    checked_length,
    footers,
    frames_in,
    masked_crcs,
    place,
    problem_at,
    too_large,
)
from recordspec.wire.hashes import FrameHash, HashedFile, sha256_of
from recordspec.wire.tfrecord import CHUNK_BYTES, Damage, FrameReader

# The split of files without a split in their names.
_SPLIT = "train"
# The first records of a file are compared with the schema: at most this many records, of this many bytes.
_FIRST, _FIRST_BYTES = 10, 64 << 10
# The number of files whose first records are compared at once: one file takes 1 ms, 32 take hardly more.
_TOGETHER = 32
# The bytes of a file whose record lengths are read at once.
_WINDOW = 64 << 20
_ELSEWHERE = "out=FOLDER, or --out, makes a folder of links to them"


def adopt(
    files: Files | Mapping[str, Files],
    schema: Schema | AnyPath,
    out: str | os.PathLike[str] | None = None,
    *,
    check: bool = False,
    jobs: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Manifest:
    """Makes a dataset of TFRecords that another program wrote, without a copy of the records.

    Writes a manifest, the schema and an index beside the files, or to a new folder of links to the files.
    The files do not change, and no command of recordspec replaces or deletes them.

    If a file is local and uncompressed, only its record lengths and its first records are read; the first
    records must match the schema. If a file is remote or compressed, every byte is read, and each CRC is
    checked.

    Args:
        files: a path, a folder, a pattern, or several of them; or a mapping from split to files. Without a
            mapping, the splits follow from the names of files or folders, as for `reshard`; if there is
            only one name and it is not the name of a split, the split is `train`.
        schema: the schema of the records, or its path.
        out: a folder that does not exist yet. None adopts the files in their own folder, of which they must
            be all TFRecords.
        check: whether to read every record, compare it with the schema, and count the classes of labels;
            `class_weights` and `balance` need the counts.
        jobs: the number of processes; None for one per processor if there is much to read.
        force: whether to adopt files again, and replace the previous manifest, schema and index.
        progress: receives the number of records and bytes.

    Raises:
        RecordError: a file is not whole, or its first records do not match the schema.
        SpecError: the files cannot be one dataset, or are not all the TFRecords of one folder.
        StoreError: there is no file, a shard is missing, the folder is a dataset, or it cannot be written.

    Example:
        >>> rs.adopt("data/points/t*.tfrecord", schema, "data/adopted").rows("train")
        15
    """
    check_data_first(files, "files", "rs.adopt(files, schema)")
    schema = as_schema(schema)
    splits = _splits(files, force=force)
    paths = tuple(chain.from_iterable(splits.values()))
    progress = progress or Progress(show=False)
    if out is None:
        home = _home(paths, force=force)
        adopted = _adopted(
            schema, splits, {path: path.name for path in paths}, "files", check, jobs, progress
        )
        return _publish_beside(*adopted, schema, home)
    _check_links(paths, out)
    names = _link_names(paths)
    with system_errors("write", out), Transaction(out, force=force) as transaction:
        manifest, indices = _adopted(schema, splits, names, "links", check, jobs, progress)
        for path, name in names.items():
            os.symlink(_link(path, transaction.target), transaction.partial / name)
        manifest = _indexed(manifest, transaction.partial, indices)
        return transaction.commit(manifest, schema.dump()) or manifest


def _adopted(
    schema: Schema,
    splits: Mapping[str, tuple[Location, ...]],
    names: Mapping[Location, str],
    kind: Literal["files", "links"],
    check: bool,
    jobs: int | None,
    progress: Progress,
) -> tuple[Manifest, dict[str, bytes]]:
    """Returns the manifest of the files, and the index of each file by its name in the manifest."""
    surveys = _surveys([*names], schema, check, jobs, progress)
    manifest = Manifest(
        schema=schema.name,
        fingerprint=schema.fingerprint,
        record=schema.record,
        compression=_common_compression(surveys),
        splits={
            split: tuple(replace(surveys[path].shard, file=names[path]) for path in some)
            for split, some in splits.items()
        },
        labels={
            feature.name: feature.traits.known_names
            for _, feature in schema._placed
            if feature.traits.class_names
        },
        label_counts={
            split: {
                label: tuple(np.sum([surveys[path].classes[label] for path in some], axis=0).tolist())
                for label in schema._counted_classes
            }
            for split, some in splits.items()
            if check
        },
        block=_common_block(surveys),
        adopted=kind,
    )
    return manifest, {names[path]: survey.index for path, survey in surveys.items()}


def _splits(files: Files | Mapping[str, Files], *, force: bool) -> dict[str, tuple[Location, ...]]:
    """The files by split, the training split first."""
    if isinstance(files, Mapping):
        splits = {split: _expanded(some, force=force) for split, some in files.items()}
        times = Counter(chain.from_iterable(splits.values()))
        for split, some in splits.items():
            if several := [path for path in some if times[path] > 1]:
                expected, got = "a file of one split", f"{several[0]}, which is in another split, too"
                raise SpecError(Problem(path=("files", split), expected=expected, got=got))
    else:
        paths = _expanded(files, force=force)
        split_of = splits_by_name(paths, _SPLIT)
        if len(names := {*split_of.values()}) == 1 and not any(map(is_split_name, names)):
            split_of = dict.fromkeys(paths, _SPLIT)  # `trips-00000-of-00002` names the data, not a split
        splits = {
            split: tuple(path for path in paths if split_of[path] == split)
            for split in dict.fromkeys(split_of.values())
        }
    return dict(sorted(splits.items(), key=lambda item: not item[0].startswith(_SPLIT)))


def _expanded(files: Files, *, force: bool) -> tuple[Location, ...]:
    try:
        return expand(files, ignore_adopted=force)
    except StoreError:
        paths = expand(files, as_found=True, ignore_adopted=force)
        # a manifest of another program is ignored
        if not any(_is_foreign(folder) for folder in {path.parent for path in paths}):
            raise
        return paths


def _is_foreign(folder: Location) -> bool:
    """Whether the manifest of a folder cannot be read."""
    try:
        manifest_in(folder)
    except StoreError:
        return True
    return False


def _home(paths: Sequence[Location], *, force: bool) -> Location:
    """The folder of the files. Raises SpecError, StoreError if it cannot become a dataset."""
    folders = list(dict.fromkeys(path.parent for path in paths))
    if len(folders) > 1:
        expected, got = "files in one folder", f"{folders[0]} and {folders[1]}"
        raise SpecError(Problem(path=("files",), expected=expected, got=got, hint=_ELSEWHERE))
    home = folders[0]
    try:
        known = manifest_in(home)
    except StoreError as error:
        raise StoreError([replace(problem, hint=_ELSEWHERE) for problem in error.problems]) from error
    if known is not None:
        got, hint = "was adopted", "force=True, or --force, adopts it again"
        if known.adopted != "files":
            got, hint = "is a dataset already", "a config and every command read it as it is"
        if known.adopted != "files" or not force:
            raise StoreError(State(where=str(home), got=got, hint=hint))
    if others := sorted({*expand(str(home), as_found=True, ignore_adopted=force)}.difference(paths)):
        expected = f"all TFRecords of {home}"
        raise SpecError(
            Problem(path=("files",), expected=expected, got=f"them without {others[0].name}", hint=_ELSEWHERE)
        )
    return home


def _check_links(paths: Sequence[Location], out: str | os.PathLike[str]) -> None:
    """Raises SpecError if `out` or one of the files is remote: links need local files."""
    local(out, "out")
    for path in paths:
        if isinstance(path, RemotePath):
            expected, hint = "files on this machine, for links to them", "without `out`, it is adopted there"
            raise SpecError(Problem(path=("files",), expected=expected, got=str(path), hint=hint))


def _link_names(paths: Sequence[Location]) -> dict[Location, str]:
    """The name of the link to each file: the name of the file. If names repeat, the name of the folder is
    put in front; if names still repeat, a number."""
    by_folder = {path: f"{path.parent.name}-{path.name}" for path in paths}
    numbered = {path: f"{number:05d}-{path.name}" for number, path in enumerate(paths)}
    candidates = ({path: path.name for path in paths}, by_folder)
    return next((names for names in candidates if len({*names.values()}) == len(paths)), numbered)


@dataclass(frozen=True, kw_only=True)
class FileSurvey:
    """The facts about a file that a manifest needs.

    Attributes:
        shard: the manifest entry of the file.
        compression: the compression of the file.
        block: the largest number of rows in a record; None if each record is one row.
        index: the index of the file; empty if the file is compressed.
        classes: the number of rows of every class, by label, if the classes were counted.
    """

    shard: Shard
    compression: Compression
    block: int | None
    index: bytes
    classes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FirstRecords:
    """The first records of a file, and their byte offsets."""

    path: Location
    records: RecordSpans
    offsets: Ints

    def place(self, number: int) -> str:
        return f"{self.path}: {place(number, int(self.offsets[number]))}"


def _surveys(
    paths: Sequence[Location], schema: Schema, check: bool, jobs: int | None, progress: Progress
) -> dict[Location, FileSurvey]:
    progress.begin("adopting", None)
    tasks = [(paths[first : first + _TOGETHER], schema, check) for first in range(0, len(paths), _TOGETHER)]
    surveys: list[FileSurvey] = []
    for some in run(_survey_files, tasks, paths, jobs, "adopting", WORTH_CHECKING):
        surveys += some
        progress.advance(
            sum(survey.shard.records for survey in some), sum(survey.shard.bytes for survey in some)
        )
    return dict(zip(paths, surveys, strict=True))


def _survey_files(paths: Sequence[Location], schema: Schema, check: bool, attempt: str) -> list[FileSurvey]:
    """Surveys files, and compares their first records with the schema. Raises RecordError, StoreError."""
    surveys, rows = [], []
    for path in paths:
        with system_errors("read", path):
            survey, first = _survey(path)
        surveys.append(survey)
        if first is not None and survey.block is None:
            rows.append(first)
        elif first is not None:
            _check_block(first, schema)
    if rows:
        _check_rows(rows, schema)
    if check:
        return [
            replace(survey, classes=_count_classes(path, schema, survey.block is not None))
            for path, survey in zip(paths, surveys, strict=True)
        ]
    return surveys


def _survey(path: Location) -> tuple[FileSurvey, FirstRecords | None]:
    """Surveys a file. Reads only the record lengths of a local, uncompressed file, and every byte of another
    file."""
    writer, frames, first = IndexWriter(), FrameHash(), None
    size, sha256 = path.stat().st_size, ""
    rows = block = 0
    is_block = False
    with open_file(path) as file, HashedFile(file) as hashed:
        compression = FileStart(path, file).compression
        by_lengths = compression == "none" and isinstance(path, Path)
        chunks = _by_lengths(path, file, size) if by_lengths else _by_bytes(path, hashed, compression)
        for buffer, starts, stops in chunks:
            if first is None:
                first = _first_records(path, buffer, starts, stops)
                is_block = rows_of_block(first.records.data(0)) > 0
            if is_block:
                counts = _rows_of_blocks(buffer, starts, stops)
                rows, block = rows + sum(counts), max(block, *counts)
            writer.add(stops - starts + FRAME_BYTES)
            frames.add(buffer, starts, stops)
        sha256 = "" if by_lengths else hashed.sha256()
    shard = Shard(
        file=path.name,
        rows=rows if is_block else writer.records,
        records=writer.records,
        bytes=size,
        sha256=sha256,
        frames_sha256="" if sha256 else frames.hexdigest(),
    )
    index = writer.close(size, shard.identity) if compression == "none" else b""
    survey = FileSurvey(shard=shard, compression=compression, block=block if is_block else None, index=index)
    return survey, first


def _by_lengths(path: Location, file: io.BufferedReader, size: int) -> Iterator[tuple[Bytes, Ints, Ints]]:
    """Yields windows of a memory-mapped file, with the offsets where the data of each record begins and ends.
    The data is not read. Raises RecordError at the first invalid length."""
    # np.memmap looks the file up again, which takes as long as the rest
    mapped = np.frombuffer(mmap(file.fileno(), size, access=ACCESS_READ) if size else b"", np.uint8)
    offset = number = 0
    while offset < size:
        part = mapped[offset : offset + _WINDOW]
        places = frames_in(part)
        if len(places) == 1:  # the record is larger than the window, or invalid
            length = checked_length(path, number, offset, part[:HEADER_BYTES].tobytes(), size)
            if length > LARGEST_RECORD:
                raise RecordError(too_large(path, number, offset, length), number)
            places = np.array([0, FRAME_BYTES + length])
            part = mapped[offset : offset + FRAME_BYTES + length]
        yield part, places[:-1] + HEADER_BYTES, places[1:] - FOOTER_BYTES
        offset, number = offset + int(places[-1]), number + len(places) - 1


def _by_bytes(
    path: Location, file: HashedFile, compression: Compression
) -> Iterator[tuple[Bytes, Ints, Ints]]:
    """Yields buffers of a file, with the offsets where the data of each record begins and ends. Every byte is
    read. Raises RecordError at the first corrupt record."""
    for item in FrameReader(path, file, compression, None, CHUNK_BYTES):
        if isinstance(item, Damage):
            raise RecordError(item.problem, item.number)
        yield item.buffer, item.starts, item.stops


def _rows_of_blocks(buffer: Bytes, starts: Ints, stops: Ints) -> list[int]:
    view = buffer.data
    bounds = zip(starts.tolist(), stops.tolist(), strict=True)
    return [int(StoredBlocks.of_record(bytes(view[start:stop])).rows[0]) for start, stop in bounds]


def _first_records(path: Location, buffer: Bytes, starts: Ints, stops: Ints) -> FirstRecords:
    """Copies the first records of a file, at least one record. Raises RecordError if a record is corrupt."""
    number = max(1, int(np.searchsorted(stops[:_FIRST], int(starts[0]) + _FIRST_BYTES)))
    starts, stops = starts[:number], stops[:number]
    begin, end = int(starts[0]) - HEADER_BYTES, int(stops[-1]) + FOOTER_BYTES
    data = np.array(buffer[begin:end])
    starts, stops = starts - begin, stops - begin
    for wrong in np.flatnonzero(masked_crcs(data, starts, stops) != footers(data, stops)).tolist():
        offset = int(starts[wrong]) - HEADER_BYTES
        problem = problem_at(path, wrong, offset, "data that matches its CRC", "other bytes")
        raise RecordError(problem, wrong)
    records = RecordSpans(buffer=data, starts=starts, stops=stops)
    return FirstRecords(path=path, records=records, offsets=starts - HEADER_BYTES)


def _check_rows(files: Sequence[FirstRecords], schema: Schema) -> None:
    """Raises RecordError, with each violation, if the first records of files do not match the schema."""
    joined = RecordSpans.joined([first.records for first in files])
    begins = [0, *accumulate(len(first.records) for first in files)]
    problems = []
    records = joined.decode(schema.record == "sequence_example")
    for violation in violations_in(schema, records, joined.data):
        at = int(np.argmin(violation.rows))
        row = int(violation.rows[at])
        number = int(np.searchsorted(begins, row, "right")) - 1
        problems.append(violation.problem(at).at(files[number].place(row - begins[number])))
    if problems:
        raise RecordError(problems)


def _count_classes(path: Location, schema: Schema, in_blocks: bool) -> dict[str, tuple[int, ...]]:
    """The number of rows of every class in a file, by label. Checks all rows. Raises RecordError, with the
    first row of each violation."""
    counts = {name: np.zeros(count, np.int64) for name, count in schema._counted_classes.items()}
    for item in scan(FileRange(path=path, blocks=schema if in_blocks else None)):
        if isinstance(item, UnreadableRecord):
            raise item.error
        records = item.decode(sequence=schema.record == "sequence_example")
        if problems := [
            violation.problem(at).at(item.place(int(violation.rows[at])))
            for violation in violations_in(schema, records, item.data)
            for at in [int(np.argmin(violation.rows))]
        ]:
            raise RecordError(problems)
        for name, known in counts.items():
            for array in records.features.get(schema.names[name].stored, ()):
                indices = flat_of(array).astype(np.int64, copy=False)  # float32 with `encoding: float`
                known += np.bincount(indices[indices >= 0], minlength=len(known))  # -1 is a missing label
    return {name: tuple(known.tolist()) for name, known in counts.items()}


def _check_block(first: FirstRecords, schema: Schema) -> None:
    """Raises RecordError if the first blocks of a file do not match the schema."""
    records = first.records
    try:
        rows_of_blocks(schema, records.buffer, records.starts, records.stops)
    except RecordError as error:
        raise error.at(first.place(error.row or 0)) from None


def _common_compression(surveys: Mapping[Location, FileSurvey]) -> Compression:
    """The compression of all files. Raises SpecError if the files differ in it: a manifest has one."""
    first: dict[Compression, Location] = {}
    for path, survey in surveys.items():
        first.setdefault(survey.compression, path)
    if len(first) > 1:
        got = " and ".join(f"{path.name} ({compression})" for compression, path in first.items())
        hint = "`recordspec reshard` writes them again"
        raise SpecError(Problem(path=("files",), expected="one compression", got=got, hint=hint))
    (compression,) = first
    return compression


def _common_block(surveys: Mapping[Location, FileSurvey]) -> int | None:
    """The largest number of rows in a record; None if each record is one row.

    Raises SpecError unless all blocks have one size, except the last of each file, as recordspec writes them.
    """
    blocks = [survey.block for survey in surveys.values() if survey.shard.records]
    block = max((block for block in blocks if block is not None), default=None)
    for path, survey in surveys.items():
        records = survey.shard.rows if block is None else -(-survey.shard.rows // block)
        if survey.shard.records != records:
            expected = f"blocks of {counted(block or 1, 'row')}, but for the last"
            got = f"{counted(survey.shard.rows, 'row')} in {counted(survey.shard.records, 'record')}"
            raise SpecError(Problem(where=str(path), expected=expected, got=got))
    return block


def _link(path: Location, folder: Path) -> str:
    """The target of a link in a folder; a relative path if the path of the file is relative."""
    if os.path.isabs(str(path)):
        return str(path)
    return os.path.relpath(os.path.join(os.path.realpath(str(path.parent)), path.name), folder)


def _indexed(manifest: Manifest, folder: Path, indices: Mapping[str, bytes]) -> Manifest:
    """Writes the index of a dataset into a folder. Files that another program compressed have none."""
    if manifest.compression != "none":
        return manifest
    return indexed(manifest, folder, lambda shard: indices[shard.file])


def _publish_beside(
    manifest: Manifest, indices: Mapping[str, bytes], schema: Schema, home: Location
) -> Manifest:
    """Writes the schema and the index under unused names, then the manifest, which refers to them. Then
    deletes the previous schema and index."""
    if isinstance(home, RemotePath):
        return _publish_objects(manifest, indices, schema, home)
    folder = Path(str(home))
    with system_errors("write", home, _ELSEWHERE), changing(folder):
        old = manifest_in(home)
        files = (SCHEMA_FILE, INDEX_FILE)
        suffix = next(
            suffix
            for suffix in version_suffixes()
            if not any(os.path.lexists(folder / with_suffix(file, suffix)) for file in files)
        )
        manifest = replace(manifest, suffix=suffix)
        try:
            atomic_write(folder / manifest.name_of(SCHEMA_FILE), schema.dump().encode())
            manifest = _indexed(manifest, folder, indices)
            atomic_write(folder / FILE, manifest.dump().encode())
        except BaseException:
            _unlink(folder, manifest)
            raise
        if old is not None:
            _unlink(folder, old)
    return manifest


def _unlink(folder: Path, manifest: Manifest) -> None:
    """Deletes the files that `adopt` wrote beside a manifest. Ignores a file that cannot be deleted."""
    for file in (SCHEMA_FILE, INDEX_FILE):
        with suppress(OSError):
            (folder / manifest.name_of(file)).unlink()


def _publish_objects(
    manifest: Manifest, indices: Mapping[str, bytes], schema: Schema, home: RemotePath
) -> Manifest:
    """Publishes in an object store. Overwrites only the manifest; `sweep` finds the objects left over."""
    remote.check_writable(home)
    stamp: Stamp | None = None
    with suppress(FileNotFoundError):
        text, stamp = remote.read_stamped(home / FILE)
        parse_manifest(text, str(home / FILE))
    with TemporaryDirectory(prefix="recordspec-") as name, system_errors("write", home):
        folder = Path(name)
        atomic_write(folder / SCHEMA_FILE, schema.dump().encode())
        manifest = _indexed(manifest, folder, indices)
        hashes = {path.name: sha256_of(path) for path in folder.iterdir()}
        suffix = next(
            suffix
            for suffix in version_suffixes()
            if all(
                remote.upload(home / with_suffix(file, suffix), folder / file, hashes[file])
                for file in hashes
            )
        )
        manifest = replace(manifest, suffix=suffix)
        data = manifest.dump().encode()
        try:
            remote.replace(home / FILE, data, stamp)
        except FileExistsError:
            raise StoreError(State(where=str(home), got="was changed by another writer")) from None
    return manifest
