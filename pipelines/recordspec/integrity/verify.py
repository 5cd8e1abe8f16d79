"""Verifies the integrity of files: every length, every CRC, and the manifest."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from recordspec.errors import Problem, RecordspecError, StoreError, show_text, system_errors
from recordspec.executors import cluster
from recordspec.locations import Location, location, open_file
from recordspec.progress import Progress
from recordspec.store.expand import Files, expand, find_incomplete
from recordspec.store.manifest import (
    FILE,
    INDEX_FILE,
    KEYS_FILE,
    REJECTS_FILE,
    SCHEMA_FILE,
    Manifest,
    Shard,
    manifest_of,
    shard_differences,
)
from recordspec.store.scan import WORTH_CHECKING, processes_for, run, sizes_of
from recordspec.store.shard_names import is_tfrecord_name
from recordspec.store.shards import File
from recordspec.wire.compression import Compression
from recordspec.wire.file_types import FileStart
from recordspec.wire.hashes import FrameHash, HashedFile, sha256_of
from recordspec.wire.recovery import rescue
from recordspec.wire.streams import Readable
from recordspec.wire.tfrecord import Chunk, Damage

log = logging.getLogger("recordspec")

# The losses of a file that are listed one by one; a corrupt file may have millions.
MOST_LISTED = 10_000

_FORMAT_1 = "without a SHA-256 of its own, a change of it is not noticed"

# The path of a file, and its problem.
FileProblem = tuple[Location, Problem]


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifiedFile:
    """The verification of a file.

    Attributes:
        file: the path of the file.
        integrity: its records and losses; None for a sidecar, and if the file is missing or unreadable.
        problems: the differences from its manifest, or the reason why the file cannot be read.
        unreadable: whether the system fails to read the file.
    """

    file: str
    integrity: FileIntegrity | None = None
    problems: tuple[Problem, ...] = ()
    unreadable: bool = False

    @property
    def intact(self) -> bool:
        """Whether every record is intact, and the file matches the manifest."""
        return not self.problems and (self.integrity is None or not self.integrity.losses)

    def dump(self) -> dict[str, Any]:
        """The verification as values for JSON."""
        read = {"file": self.file} if self.integrity is None else self.integrity.dump()
        problems = [
            {"expected": problem.expected, "got": problem.got} if problem.expected else {"got": problem.got}
            for problem in self.problems
        ]
        return {**read, "intact": self.intact, "problems": problems}


def verify(
    files: Files, *, jobs: int | None = 1, progress: Progress | None = None
) -> tuple[VerifiedFile, ...]:
    """Reads every byte of files, and checks each length and each CRC. Searches for records after a corrupt
    length.

    If a file has a manifest beside it, its size, hash and number of records are compared with the manifest.
    The given files come first, followed by files of their folders that are missing, unexpected or changed
    according to the manifest. In a folder or a pattern without a manifest, the names of shards tell which
    files are missing. Corruption and unreadable files are returned, not raised.

    Args:
        files: paths, folders or patterns.
        jobs: the number of processes; None for one per processor if there is much to read.
        progress: receives the number of records and bytes.

    Raises StoreError if there is no file.

    Example:
        >>> [file.intact for file in rs.verify("data/points")]
        [True, True]
    """
    return tuple(_verified(files, jobs, progress or Progress(show=False)))


def _verified(files: Files, jobs: int | None, progress: Progress) -> Iterator[VerifiedFile]:
    paths = expand(files, as_found=True)
    manifests: dict[Location, Manifest] = {}
    problems: list[FileProblem] = []
    for folder in dict.fromkeys(path.parent for path in paths):
        try:
            manifest = manifest_of((folder / FILE,))
        except StoreError as error:
            problems += [(folder / FILE, problem) for problem in error.problems]
            continue
        if manifest is not None:
            manifests[folder] = manifest
            if manifest.format == 1:
                log.warning("%s has format 1: %s", folder / FILE, _FORMAT_1)
            problems += dataset_problems(folder, manifest)
    by_name = [(location(problem.where), problem) for problem in find_incomplete(files)]
    # a manifest names its own missing shards
    problems += [(path, problem) for path, problem in by_name if path.parent not in manifests]
    others: dict[Location, tuple[Problem, ...]] = {}
    for path, problem in problems:
        others[path] = (*others.get(path, ()), problem)
    shards = {folder: manifest._by_file() for folder, manifest in manifests.items()}
    integrities = [
        FileIntegrity.of(path, manifests.get(path.parent), shards.get(path.parent, {}).get(path.name))
        for path in paths
    ]
    rows = [None if file.shard is None else file.shard.records for file in integrities]
    progress.begin("verifying", None if None in rows else sum(row for row in rows if row is not None))
    jobs = min(processes_for(paths, jobs, WORTH_CHECKING), len(paths))
    is_here = jobs == 1 and cluster() is None
    tasks = [(integrity, progress if is_here else None) for integrity in integrities]
    unknown = sizes_of(one.path for one in integrities if one.shard is None)
    sizes = (next(unknown) if one.shard is None else one.shard.bytes for one in integrities)
    verified = run(_verify, tasks, paths, jobs, "verifying", sizes=sizes)
    for path, asked, file in zip(paths, integrities, verified, strict=True):
        if file.integrity is not None and file.integrity is not asked:  # of another process
            file.integrity.file = asked.file  # without its copy, of 1 kB
            progress.advance(file.integrity.saved, file.integrity.size or 0)
        yield replace(file, problems=(*others.pop(path, ()), *file.problems))
    for path, several in others.items():
        yield VerifiedFile(file=str(path), problems=several)


def _verify(integrity: FileIntegrity, progress: Progress | None, _attempt: str) -> VerifiedFile:
    try:
        for _ in integrity.read(progress or Progress(show=False)):
            pass
    except StoreError as error:
        return VerifiedFile(file=str(integrity.path), problems=error.problems, unreadable=True)
    problems = () if integrity.shard is None else tuple(_shard_problems(integrity, integrity.shard))
    return VerifiedFile(file=str(integrity.path), integrity=integrity, problems=problems)


def _shard_problems(file: FileIntegrity, shard: Shard) -> Iterator[Problem]:
    """The differences between a file and its manifest. After a corrupt length, the number of records is
    unknown and not compared."""
    where, size = str(file.path), file.path.stat().st_size
    if size != shard.bytes:
        yield Problem(where=where, expected=f"{shard.bytes:,} bytes, as the manifest says", got=f"{size:,}")
    if file.compression != file.declared:
        expected = f"compression {file.declared}, as the manifest says"
        yield Problem(where=where, expected=expected, got=file.compression)
    if not file.behind and (records := file.records + file.corrupt) != shard.records:
        expected = f"{shard.records:,} records, as the manifest says"
        yield Problem(where=where, expected=expected, got=f"{records:,}")
    if (needed := file.file.records_needed) != shard.records:
        expected = f"{needed:,} records of {shard.rows:,} rows, as the manifest says"
        yield Problem(where=where, expected=expected, got=f"{shard.records:,}, by the same manifest")
    if shard.sha256 and file.sha256 != shard.sha256:
        expected = f"sha256 {shard.sha256}, as the manifest says"
        yield Problem(where=where, expected=expected, got=file.sha256)
    elif not file.is_same:
        expected = "the lengths and CRCs of records at its adoption"
        yield Problem(where=where, expected=expected, got="others")


def dataset_problems(folder: Location, manifest: Manifest) -> Iterator[FileProblem]:
    """Yields the missing, unexpected and changed files of the folder of a dataset. Shards are not read."""
    if isinstance(folder, Path):  # a store keeps the shards of replaced datasets
        there = {path.name for path in folder.iterdir()}
        foreign = set(filter(is_tfrecord_name, there)) - manifest.files
        for problem in shard_differences(folder, manifest, manifest.files - there, foreign):
            yield Path(problem.where), problem
    yield from _schema_problems(folder / manifest.name_of(SCHEMA_FILE), manifest)
    yield from ((folder / manifest.name_of(KEYS_FILE), problem) for problem in key_problems(folder, manifest))
    index = folder / manifest.name_of(INDEX_FILE)
    if manifest.index_sha256 is not None:
        yield from ((index, problem) for problem in _hash_problems(index, manifest.index_sha256))
    rejects = folder / manifest.name_of(REJECTS_FILE)
    if manifest.rejected and not rejects.is_file():
        expected = f"{manifest.rejected:,} rejected rows, as the manifest says"
        yield _file_problem(rejects, expected, "no file")
    for name, sha256 in manifest.beside.items():
        yield from ((folder / name, problem) for problem in _hash_problems(folder / name, sha256))


def _schema_problems(path: Location, manifest: Manifest) -> Iterator[FileProblem]:
    if manifest.fingerprint is None:
        return
    expected = f"the schema of fingerprint {manifest.fingerprint}, as the manifest says"
    if not path.is_file():
        yield _file_problem(path, expected, "no file")
        return
    from recordspec.schema.schema import Schema, custom_kinds  # most files have no schema beside them

    try:
        if kinds := custom_kinds(path):
            log.warning("%s: custom kinds: %s; it is not verified", path, show_text(", ".join(kinds)))
            return
        got = Schema.load(path).fingerprint
    except RecordspecError as error:
        yield from ((path, problem) for problem in error.problems)
        return
    if got != manifest.fingerprint:
        yield _file_problem(path, expected, f"one of {got}")


def key_problems(folder: Location, manifest: Manifest) -> Iterator[Problem]:
    """The problem of a `keys.bin` that differs from the file that was written."""
    if manifest.keys_sha256 is not None:
        yield from _hash_problems(folder / manifest.name_of(KEYS_FILE), manifest.keys_sha256)


def _hash_problems(path: Location, sha256: str) -> Iterator[Problem]:
    got = sha256_of(path) if path.is_file() else "no file"  # a pipe or a device has no end
    if got != sha256:
        yield Problem(where=str(path), expected=f"sha256 {sha256}, as the manifest says", got=got)


def _file_problem(path: Location, expected: str, got: str) -> FileProblem:
    return path, Problem(where=str(path), expected=expected, got=got)


@dataclass(frozen=True, kw_only=True)
class LostRange:
    """Bytes of a file that are not in an intact record.

    Attributes:
        record: the number of the record expected there. After a corrupt length, the number follows from the
            recovered records, as if one record were lost.
        offset: the first byte of the range; in a compressed file, an offset in the uncompressed data.
        stop: the byte after the range; None if it extends to the end of a compressed file.
        problem: the problem.
    """

    record: int
    offset: int
    stop: int | None
    problem: Problem


@dataclass(kw_only=True, slots=True)
class FileIntegrity:
    """Counts the records of a file and its losses while the file is read.

    Attributes:
        file: the file, and its entry in the manifest.
        declared: its compression in the manifest; None without a manifest.
        compression: its compression, once it is read.
        size: its size in bytes, once it is read; None if it is compressed.
        records: the number of intact records that every reader reaches.
        corrupt: the number of records with corrupt data. A reader can skip them.
        recovered: the number of intact records after a corrupt length. Only `repair` reaches them.
        losses: the first MOST_LISTED losses.
        lost: the number of losses.
        rows_lost: the number of rows that a reader does not reach; None if unknown.
        bytes_lost: the number of bytes that are not in an intact record; None if unknown.
        behind: whether a corrupt length was found. No reader gets beyond it.
        sha256: the hash of the whole file, once it is read; empty if the manifest has no such hash.
        frames_sha256: the hash of the lengths and CRCs of the intact records, for a manifest that has only
            this hash; otherwise empty.
    """

    file: File
    declared: Compression | None
    compression: Compression = "none"
    size: int | None = None
    records: int = 0
    corrupt: int = 0
    recovered: int = 0
    losses: list[LostRange] = field(default_factory=list)
    lost: int = 0
    rows_lost: int | None = 0
    bytes_lost: int | None = 0
    sha256: str = ""
    frames_sha256: str = ""
    behind: bool = False
    _open: Damage | None = None  # damage after which no intact record is found yet

    @classmethod
    def of(cls, path: Location, manifest: Manifest | None, shard: Shard | None) -> FileIntegrity:
        """The integrity of a file that is not read yet."""
        file = File(path=path, shard=shard, block=None if manifest is None else manifest.block)
        return cls(file=file, declared=None if manifest is None or shard is None else manifest.compression)

    @property
    def path(self) -> Location:
        return self.file.path

    @property
    def shard(self) -> Shard | None:
        """The entry of the file in the manifest; None if there is none."""
        return self.file.shard

    @property
    def saved(self) -> int:
        """The number of intact records."""
        return self.records + self.recovered

    @property
    def unchanged(self) -> bool:
        """Whether the file matches its manifest to the byte."""
        return self.is_same and self._complete and not self.lost

    @property
    def is_same(self) -> bool:
        """Whether the hash of the file, or of its frames, equals the hash in the manifest."""
        shard = self.shard
        if shard is None:
            return False
        if shard.sha256:
            return self.sha256 == shard.sha256
        return self.frames_sha256 == shard.frames_sha256

    @property
    def rows_saved(self) -> int | None:
        """The number of rows in the intact records; None if unknown.

        If records hold many rows, the last record of a file has fewer. The number is then known only if every
        record is there, either as it was written or corrupt: otherwise any record may be the last.
        """
        shard = self.shard
        if shard is None or shard.records != self.file.records_needed:
            return None
        if self.file.block is None or not self.saved:
            return self.saved
        numbered = self._complete and (self.corrupt > 0 or self.unchanged)
        return shard.rows - (self.rows_lost or 0) if numbered else None

    @property
    def _complete(self) -> bool:
        """Whether a reader reaches as many records as the manifest counts."""
        shard = self.shard
        return shard is not None and not self.behind and self.records + self.corrupt == shard.records

    def read(self, progress: Progress) -> Iterator[Chunk]:
        """Reads the file to its end. Yields the intact records. Raises StoreError if the disk fails."""
        with system_errors("read", self.path), open_file(self.path) as file:
            start = FileStart(self.path, file)
            self.compression = start.likely_compression
            self.size = self.path.stat().st_size if self.compression == "none" else None
            if self.shard is None:
                yield from self._read(file, start, progress)
                return
            if not self.shard.sha256:
                frames = FrameHash()
                for chunk in self._read(file, start, progress):
                    frames.add(chunk.buffer, chunk.starts, chunk.stops)
                    yield chunk
                self.frames_sha256 = frames.hexdigest()
                return
            with HashedFile(file) as hashed:
                yield from self._read(hashed, start, progress)
                self.sha256 = hashed.sha256()

    def _read(self, file: Readable, start: FileStart, progress: Progress) -> Iterator[Chunk]:
        for item in rescue(self.path, file, start):
            if isinstance(item, Damage):
                self._add_damage(item)
                continue
            if self._open is not None:
                self._add_loss(self._open, item.offset_of(0))
                self._open = None
            if self.behind:
                self.recovered += len(item)
            else:
                self.records += len(item)
            progress.advance(len(item), len(item.frames))
            yield item
        if self._open is not None:
            self._add_loss(self._open, self.size)
            self._open = None
        elif not self.behind and self.shard is not None:
            self._add_missing_records()  # a file that is cut between two records looks complete

    def _add_damage(self, damage: Damage) -> None:
        if not self.behind:
            self._add_lost_rows(damage.number, rest=damage.stop is None)
        if damage.stop is not None:
            self.corrupt += 1
            self._add_loss(damage, damage.stop)
        else:
            self._open, self.behind = damage, True

    def _add_missing_records(self) -> None:
        """Counts the rows of records that the manifest counts and the file lacks."""
        total = self.records + self.corrupt
        if self.file.block is None or not total:
            self._add_lost_rows(total, rest=True)
        elif not self._complete:
            self.rows_lost = None  # the missing record may be the last, with fewer rows, or any other

    def _add_lost_rows(self, record: int, *, rest: bool) -> None:
        rows = self.file.rows_from(record) if rest else self.file.rows_of(record)
        known = None not in (rows, self.rows_lost, self.shard)
        self.rows_lost = (self.rows_lost or 0) + (rows or 0) if known else None

    def _add_loss(self, damage: Damage, stop: int | None) -> None:
        if stop is None or self.bytes_lost is None:
            self.bytes_lost = None
        else:
            self.bytes_lost += stop - damage.offset
        self.lost += 1
        if len(self.losses) < MOST_LISTED:
            self.losses.append(
                LostRange(record=damage.number, offset=damage.offset, stop=stop, problem=damage.problem)
            )

    def dump(self) -> dict[str, Any]:
        """The counts and losses as values for JSON."""
        losses = [
            {
                "record": loss.record,
                "byte": loss.offset,
                "to": loss.stop,
                "expected": loss.problem.expected,
                "got": loss.problem.got,
            }
            for loss in self.losses
        ]
        return {
            "file": str(self.path),
            "records": self.records,
            "corrupt": self.corrupt,
            "recovered": self.recovered,
            "bytes lost": self.bytes_lost,
            "rows lost": self.rows_lost,
            "losses": losses,
            "not listed": self.lost - len(losses),
        }
