"""Recovers the intact records of corrupt files into new shards."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recordspec.errors import Problem, RecordError, SpecError, State, StoreError, system_errors
from recordspec.integrity.verify import FileIntegrity, FileProblem, dataset_problems
from recordspec.locations import Location, local, open_file, resolved, sync, sync_file
from recordspec.progress import Progress
from recordspec.schema.row_blocks import stored_columns
from recordspec.schema.table_columns import TableColumn
from recordspec.store import key_hashes
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import Files, expand
from recordspec.store.index import indexed
from recordspec.store.manifest import (
    INDEX,
    KEYS_FILE,
    REJECTS_FILE,
    REPORT_FILE,
    SCHEMA_FILE,
    Manifest,
    Shard,
    manifest_of,
)
from recordspec.store.scan import Scanner
from recordspec.store.shard_file import ShardFile
from recordspec.store.shard_names import add_suffix, is_tfrecord_name
from recordspec.store.shards import stored_schema
from recordspec.store.transaction import Transaction
from recordspec.wire.columns import Place
from recordspec.wire.file_types import FileStart
from recordspec.wire.hashes import Words

if TYPE_CHECKING:
    from recordspec.schema.schema import Schema

_UNPUBLISHED = "nothing was published"


@dataclass(frozen=True, kw_only=True)
class SavedFile:
    """A repaired file: the result of reading it, and the shard of its intact records. If the number of rows
    is unknown, the shard counts one row a record."""

    integrity: FileIntegrity
    shard: Shard

    @property
    def rows_lost(self) -> int | None:
        """The number of rows that the manifest counts and the shard lacks; None if unknown."""
        counted, saved = self.integrity.shard, self.integrity.rows_saved
        # if the file has more rows than the manifest counts, its corrupt rows are lost all the same
        return None if counted is None or saved is None else max(self.integrity.corrupt, counted.rows - saved)


@dataclass(frozen=True, kw_only=True)
class RepairReport:
    """The result of a repair.

    Attributes:
        files: the repaired files, in order.
        manifest: the manifest of the new folder, if any.
        reason: the reason why there is no manifest, or why it no longer has unique keys; or empty.
        missing: the shards that the manifest of the files names, and that are missing.
        left_out: the sidecars that differ from the manifest, each with its problem.
    """

    files: tuple[SavedFile, ...]
    manifest: Manifest | None
    reason: str
    missing: tuple[str, ...]
    left_out: tuple[FileProblem, ...]

    @property
    def note(self) -> str:
        """One line that names the parts the new folder lacks besides lost records; or empty."""
        left_out = list(dict.fromkeys(path.name for path, _ in self.left_out))
        named = {"missing": self.missing, "left out, as they may have changed": left_out}
        lists = [f"{what}: {_listed(names)}" for what, names in named.items() if names]
        return "; ".join([self.reason, *lists] if self.reason else lists)

    def report(self) -> dict[str, Any]:
        """The report as values for JSON."""
        files = [
            {
                **file.integrity.dump(),
                "shard": file.shard.file,
                "saved": file.integrity.saved,
                "rows lost": file.rows_lost,
            }
            for file in self.files
        ]
        left_out = [
            {"file": str(path), "expected": problem.expected, "got": problem.got}
            for path, problem in self.left_out
        ]
        return {
            "files": files,
            "shards": [_without_rows(file.shard) for file in self.files],
            "missing": [*self.missing],
            "left out": left_out,
            "note": self.note,
        }


def _without_rows(shard: Shard) -> dict[str, Any]:
    """The entry by which a later repair recognizes its shard. The number of rows may be unknown."""
    return {name: value for name, value in asdict(shard).items() if name not in ("rows", "frames_sha256")}


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"


def repair(
    files: Files, directory: str | os.PathLike[str], *, force: bool = False, progress: Progress | None = None
) -> RepairReport:
    """Writes the intact records of files to new shards with the same names, and a report, `repair.json`.

    The new folder is published as a whole or not at all. Intact records after a corrupt length are recovered.
    For a dataset, the new folder has a manifest of the saved records. It also has the schema and the rejected
    rows, if they are unchanged since the build.

    Args:
        files: a path, a folder of shards, a pattern, or several of them. The files are not changed.
        directory: a folder that does not exist yet.
        force: whether to replace the folder if it holds a dataset or an earlier repair. The names of shards
            then have `-v2`, ..., so that a reader of the old shards never gets the new ones.
        progress: receives the number of records and bytes.

    Raises StoreError if a file cannot be read or the folder cannot be written, SpecError if two files have
    the same name or a file is in the folder, and RecordError if records are lost and none can be saved.
    """
    paths = expand(files, as_found=True)
    _check_names(paths, local(directory))
    old = None
    with suppress(StoreError):  # an unreadable manifest says nothing of the files
        old = manifest_of(paths)
    progress = progress or Progress(show=False)
    progress.begin("repairing", None)

    def part(shard: Shard) -> bytes:
        return (transaction.work / f"{shard.file}{INDEX}").read_bytes()

    with system_errors("write", directory, _UNPUBLISHED), Transaction(directory, force=force) as transaction:
        shards = {} if old is None else old._by_file()
        integrities = (FileIntegrity.of(path, old, shards.get(path.name)) for path in paths)
        saved = tuple(_save(one, transaction, progress) for one in integrities)
        _check_any(saved)
        done = _with_keys(_repaired(paths[0].parent, old, saved), paths[0].parent, old, transaction.partial)
        # the name of a file need not be UTF-8: invalid bytes become JSON escapes
        with (transaction.partial / REPORT_FILE).open(
            "w", encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write(json.dumps(done.report(), indent=1, ensure_ascii=False) + "\n")
            sync(file)
        _copy_rest(paths[0].parent, transaction.partial, done)
        if done.manifest is not None:
            done = replace(done, manifest=indexed(done.manifest, transaction.partial, part))
        transaction.commit(done.manifest, None)
    return done


def _check_any(saved: Sequence[SavedFile]) -> None:
    """Raises RecordError if no record can be saved, for example from a CSV file: nothing is published."""
    lost = [file.integrity.losses[0].problem for file in saved if file.integrity.losses]
    if lost and not any(file.integrity.saved for file in saved):
        hint = "nothing can be saved"
        raise RecordError([replace(problem, hint=problem.hint or hint) for problem in lost])


def _check_names(paths: Sequence[Location], directory: Path) -> None:
    name, count = Counter(path.name for path in paths).most_common(1)[0]
    if count > 1:
        raise SpecError(
            Problem(path=("files",), expected="files of different names", got=f"{count} `{name}`")
        )
    if any(resolved(path.parent) == resolved(directory) for path in paths):
        expected = "another folder than that of the files"
        raise SpecError(Problem(path=("directory",), expected=expected, got=str(directory)))


def _save(integrity: FileIntegrity, transaction: Transaction, progress: Progress) -> SavedFile:
    name = add_suffix(integrity.path.name, transaction.shard_suffix)
    writing = partial(system_errors, f"write {name}", transaction.name, _UNPUBLISHED)
    with writing():
        compression = integrity.declared or FileStart(integrity.path).likely_compression
        shard = ShardFile(transaction.partial / name, compression, transaction.work / f"{name}{INDEX}")
    try:
        for chunk in integrity.read(progress):
            with writing():
                shard.write(chunk.frames, chunk.sizes, len(chunk))
        with writing():
            written, rows = shard.close(name), integrity.rows_saved
        return SavedFile(integrity=integrity, shard=written if rows is None else replace(written, rows=rows))
    except BaseException:
        shard.abandon()
        raise


def _repaired(folder: Location, old: Manifest | None, saved: tuple[SavedFile, ...]) -> RepairReport:
    """The report of the saved files. It has a manifest if the files have one that still applies."""
    reason = _no_manifest(old, saved)
    if old is None:
        return RepairReport(files=saved, manifest=None, reason=reason, missing=(), left_out=())
    problems, named = list(dataset_problems(folder, old)), old.files
    missing = tuple(path.name for path, _ in problems if path.name in named)
    if reason:
        return RepairReport(files=saved, manifest=None, reason=reason, missing=missing, left_out=())
    left_out = tuple(
        problem
        for problem in problems
        if problem[0].name not in named and not is_tfrecord_name(problem[0].name)
    )
    manifest = _of_saved(folder, old, saved, {path.name for path, _ in left_out})
    return RepairReport(files=saved, manifest=manifest, reason="", missing=missing, left_out=left_out)


def _no_manifest(old: Manifest | None, saved: Sequence[SavedFile]) -> str:
    """The reason why there is no manifest of the saved records, or empty."""
    if old is None:
        return "no manifest: the files have none beside them that can be read"
    unknown = [file for file in saved if file.integrity.shard is None]
    if unknown:
        return f"no manifest: that of the files does not name {unknown[0].integrity.path.name}"
    uncounted = [file.integrity.path.name for file in saved if file.integrity.rows_saved is None]
    return f"no manifest: the number of rows saved of {uncounted[0]} is unknown" if uncounted else ""


def _of_saved(folder: Location, old: Manifest, saved: Sequence[SavedFile], left_out: set[str]) -> Manifest:
    """The manifest of the saved records, without the sidecars that are left out."""
    shards = {file.integrity.path.name: file.shard for file in saved}
    unchanged = {file.integrity.path.name for file in saved if file.integrity.unchanged}
    renamed = any(one.file != name for name, one in shards.items())
    shards_of = {
        split: tuple(shards[part.file] for part in many if part.file in shards)
        for split, many in old.splits.items()
    }
    kept = {split for split, many in old.splits.items() if unchanged.issuperset(part.file for part in many)}
    has_keys = old.name_of(KEYS_FILE) not in left_out and key_hashes.whole(folder, old) is not None
    # the files that `export --as` wrote describe all rows
    whole = kept == old.splits.keys()
    new = replace(
        old,
        splits={split: many for split, many in shards_of.items() if many},
        adopted="",
        label_counts={split: counts for split, counts in old.label_counts.items() if split in kept},
        rejected=0 if old.name_of(REJECTS_FILE) in left_out else old.rejected,
        keys_sha256=old.keys_sha256 if has_keys else None,
        beside={
            name: sha256
            for name, sha256 in old.beside.items()
            if whole and not renamed and name not in left_out  # these files name the shards
        },
    )
    return replace(new, schema=None, fingerprint=None) if old.name_of(SCHEMA_FILE) in left_out else new


def _with_keys(done: RepairReport, folder: Location, old: Manifest | None, target: Path) -> RepairReport:
    """Writes the hashes of the keys of the saved rows, if they are known. Returns the report, updated."""
    manifest = done.manifest
    if manifest is None or old is None or manifest.keys_sha256 is None:
        return done
    path = target / manifest.name_of(KEYS_FILE)
    try:
        sha256 = key_hashes.write(path, _keys(done, folder, old, manifest, target))
    except StoreError as error:
        path.unlink()
        return replace(done, manifest=replace(manifest, keys_sha256=None), reason=str(error))
    return replace(done, manifest=replace(manifest, keys_sha256=sha256))


def _keys(
    done: RepairReport, folder: Location, old: Manifest, manifest: Manifest, target: Path
) -> Iterator[Words]:
    """The hashes of the keys of the saved rows, file by file, uint64 `[n, 2]`.

    Raises StoreError if a file has changed since it was written, and the keys of its rows are unknown.
    """
    starts, keys = old._starts(), folder / old.name_of(KEYS_FILE)
    schema = None if manifest.fingerprint is None else stored_schema(folder, manifest)
    files = {file.shard.file: file.integrity for file in done.files}
    for shard in chain.from_iterable(manifest.splits.values()):
        file = files[shard.file]
        rows = 0 if file.shard is None else file.shard.rows
        hashed = key_hashes.read(keys, starts[file.path.name], rows)
        yield hashed if file.unchanged else _decoded_keys(target / shard.file, schema, manifest, hashed)


def _decoded_keys(path: Path, schema: Schema | None, manifest: Manifest, before: Words) -> Words:
    """The hashes of the keys of the saved rows of a file, computed from the decoded rows. The stored hashes
    cannot be used: it is unknown which rows are lost, and a file with other rows may have replaced this one.

    Raises StoreError unless all hashes are distinct, and each is in `before`, the stored hashes of the file.
    """
    placed = () if schema is None else schema._placed
    columns = [
        TableColumn(place=place, feature=feature, text=False)
        for place, feature in placed
        if feature.name in manifest.key
    ]
    stored = [
        (Place(column.place.section, one.key), one) for column in columns for one in column.feature.columns()
    ]
    keys, found = {one.key for _, one in stored}, [np.zeros((0, 2), np.uint64)]
    with suppress(RecordError, SpecError):  # not every column of rows is a feature
        for batch in Scanner(StoredDataset.of(path, schema)).batches():
            sequence = None if schema is None else schema.record == "sequence_example"
            sections = stored_columns(stored, batch.rows.decode(sequence, keys))
            values = {column.name: column.array(sections) for column in columns}
            found.append(key_hashes.hashes(key_hashes.key_bytes(values, manifest.key)))
        hashed = np.concatenate(found)
        ours, theirs = (np.ascontiguousarray(words).view("V16")[:, 0] for words in (hashed, before))
        if np.isin(ours, theirs).all() and len(np.unique(ours)) == len(ours):
            return hashed
    hint = "the dataset has no unique keys any more"
    raise StoreError(State(where=path.name, got="has rows whose keys are unknown", hint=hint))


def _copy_rest(folder: Location, target: Path, done: RepairReport) -> None:
    """Copies the sidecars of the dataset."""
    manifest = done.manifest
    if manifest is None:
        return
    own = (SCHEMA_FILE, *[REJECTS_FILE] * (manifest.rejected > 0))
    names = {*map(manifest.name_of, own), *manifest.beside}
    for name in names - {path.name for path, _ in done.left_out}:
        if (folder / name).is_file():
            with open_file(folder / name) as old, (target / name).open("wb") as new:
                shutil.copyfileobj(old, new)
            sync_file(target / name)
