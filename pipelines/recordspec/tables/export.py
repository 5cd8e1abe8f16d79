"""Exports records to a file of another format, in bounded memory; on a cluster, to a folder of files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from recordspec._arrow import arrow
from recordspec.errors import (
    ExistsError,
    Problem,
    RecordError,
    RecordspecError,
    SpecError,
    State,
    StoreError,
    exists,
    system_errors,
)
from recordspec.executors import cluster, threaded_map
from recordspec.locations import AnyPath, Location, location, sync_file, sync_folder, temporary_name
from recordspec.progress import Progress
from recordspec.remote import RemotePath, check_writable, put_file, upload, uploaded
from recordspec.schema.schema import Schema, given_schema
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import Files
from recordspec.store.remote_transaction import ConflictError
from recordspec.store.scan import FileRange, Scanner, run
from recordspec.store.transaction import (
    abandoned,
    check_movable,
    exchange,
    remove_folder,
    replace_by,
    reserve,
    set_usual_mode,
)
from recordspec.tables.export_records import ExportColumns, ExportedRecords, files_changed
from recordspec.tables.query import Query
from recordspec.tables.scan_columns import schema_of
from recordspec.tables.table_writers import WRITERS, saving, write_table, writer_of
from recordspec.wire.hashes import sha256_of

# The requests to a store at a time.
_REQUESTS = 32
# The names of files of a folder; the second is that of a late attempt.
_PART = re.compile(rf"part-\d{{5,}}-of-\d{{5,}}({'|'.join(map(re.escape, WRITERS))})|\.[0-9a-f]+\.partial")


@dataclass(frozen=True, kw_only=True)
class Exported:
    """An exported file, or a folder of files: its path, rows, columns and bytes."""

    file: str
    rows: int
    columns: tuple[str, ...]
    bytes: int


def export(
    files: Files,
    out: AnyPath,
    *,
    schema: Schema | AnyPath | None = None,
    columns: Sequence[str] = (),
    where: str | None = None,
    limit: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Writes records to a file in the format of its suffix, or on a cluster to a folder of such files; the
    arguments and errors are those of `recordspec.export`.
    """
    query = Query(columns=tuple(columns), where=where, schema=given_schema(schema))
    progress = progress or Progress(show=False)
    out = location(out)
    arrow()  # raises before anything is read
    if cluster() is None:
        with saving(out, force=force) as save:
            records, scanner = _records(files, query, limit, out)
            with progress:
                progress.begin("exporting", None)
                save(records.reader(scanner.files, progress))
                if not records.are_written:
                    progress.begin("again, with final types", None)
                    save(records.reader(scanner.files, progress, final=True))
            records.check_columns()
        size = out.stat().st_size
    else:
        if limit is not None:
            hint = "without Spark, one machine reads only these records"
            raise SpecError(Problem(path=("limit",), expected="none with Spark", got=str(limit), hint=hint))
        writer_of(out)  # raises before anything is read
        with _output_folder(out, force=force) as folder:
            records, scanner = _records(files, query, None, out)
            with progress:
                size = _write_parts(records, scanner, folder, progress)
    return Exported(file=str(out), rows=records.rows, columns=tuple(records.columns), bytes=size)


def _records(files: Files, query: Query, limit: int | None, out: Location) -> tuple[ExportedRecords, Scanner]:
    scanner = Scanner(StoredDataset.of(files, query.schema))
    scanner.dataset.require_schema()
    return ExportedRecords(scanner, query, limit, out.suffix), scanner


def _write_parts(records: ExportedRecords, scanner: Scanner, folder: Location, progress: Progress) -> int:
    """Writes the records of each range of files to a file in a folder, in tasks of a cluster. Returns the
    bytes of the files.

    A task extends the columns that are known when it is sent for its own records. A file whose columns are
    not those of all records is written again; in a store, it is deleted before.
    """
    parts = list(records.ranges(scanner.files))
    width = max(5, len(str(len(parts))))  # so that the order of names is that of parts
    names = [f"{number:0{width}}-of-{len(parts):0{width}}{records.suffix}" for number in range(len(parts))]
    paths = [folder / f"part-{name}" for name in names]

    def written(numbers: Sequence[int], is_final: bool) -> Iterator[tuple[int, _WrittenPart]]:
        tasks = [(parts[number], paths[number], is_final) for number in numbers]
        sizes = [part.bytes for part, *_ in tasks]
        results = run(partial(_write_part, records), tasks, (), 1, "exporting", sizes=sizes)
        for number, size, one in zip(numbers, sizes, results, strict=True):
            progress.advance(one.rows, size)
            yield number, one

    made: dict[int, _WrittenPart] = {}
    by_type: dict[Any, list[int]] = {}  # the parts whose files have the same columns
    with _cleaned_up(paths):
        progress.begin("exporting", None)
        for number, one in written(range(len(parts)), False):
            records.merge(one.columns, parts[number], one.error)
            type_ = schema_of(one.columns.values()) if one.is_complete else None
            by_type.setdefault(type_, []).append(number)
            made[number] = replace(one, columns={})
        records.rows = sum(one.rows for one in made.values())
        if not records.rows:
            records.take_first()
        records.check_columns()
        by_type.pop(schema_of(records.columns.values()), None)
        again = sorted(chain.from_iterable(by_type.values()))
        if again:
            progress.begin("again, with final types", None)
            _delete_objects([paths[number] for number in again if made[number].is_complete])
        for number, one in written(again, True):
            if one.error is not None or one.rows != made[number].rows:
                raise one.error or files_changed(parts[number].path)
            made[number] = one
        for one in made.values():
            if one.problem is not None:
                raise one.problem
        _keep(paths, made, again)
    return sum(one.bytes for one in made.values())


def _keep(paths: Sequence[Location], made: Mapping[int, _WrittenPart], again: Sequence[int]) -> None:
    """Gives local files of successful attempts their names. In a store, files that were written again are
    looked at once more: an attempt of a lost executor may have written the first columns later.
    """
    folder = paths[0].parent
    if isinstance(folder, Path):
        for number, one in made.items():
            (folder / one.name).rename(folder / paths[number].name)
        return
    found = threaded_map("recordspec-export", uploaded, ((paths[number],) for number in again), _REQUESTS)
    for number, there in zip(again, found, strict=True):
        if there is None or there[0] != made[number].name:
            expected, got = "the file that its last attempt wrote", "the file of another attempt"
            problem = Problem(where=str(paths[number]), expected=expected, got=got, hint="export again")
            raise StoreError(problem)


@contextmanager
def _cleaned_up(paths: Sequence[Location]) -> Iterator[None]:
    """Deletes the files of other attempts at the end; after an error in a store, all files that were
    written, unless another export writes there.
    """
    folder = paths[0].parent
    try:
        yield
    except ConflictError:
        raise
    except BaseException:
        with suppress(StoreError, OSError):
            _delete_objects({*paths}.intersection(folder.iterdir()))
        raise
    if isinstance(folder, Path):
        for path in {*folder.iterdir()}.difference(paths):
            path.unlink(missing_ok=True)


def _delete_objects(paths: Iterable[Location]) -> None:
    """Deletes objects of a store. Ignores errors, and local files: their folder is deleted as a whole."""

    def delete(path: RemotePath) -> None:
        with suppress(StoreError):
            path.unlink()

    remote = [(path,) for path in paths if isinstance(path, RemotePath)]
    for _ in threaded_map("recordspec-export", delete, remote, _REQUESTS):
        pass


@dataclass(frozen=True, kw_only=True)
class _WrittenPart:
    """A part that a task has written.

    Attributes:
        name: the name of the file of this attempt; in a store, the SHA-256 of the object.
        rows, bytes: of the file.
        columns: the columns of the records so far.
        is_complete: whether the file has all rows. Otherwise it is not uploaded to a store.
        problem: why readers would find other rows in it.
        error: why it cannot be written.
    """

    name: str
    rows: int
    bytes: int
    columns: ExportColumns
    is_complete: bool
    problem: RecordError | None = None
    error: RecordspecError | None = None


def _write_part(
    records: ExportedRecords, part: FileRange, path: Location, is_final: bool, attempt: str
) -> _WrittenPart:
    """Writes a part in a task of a cluster. Another attempt may write it at the same time."""
    problem = None
    with TemporaryDirectory(prefix="recordspec-") as folder, system_errors("write", path):
        name = temporary_name(attempt)
        file = path.with_name(name) if isinstance(path, Path) else Path(folder, name)
        try:
            reader = records.reader([part], Progress(show=False), final=is_final, is_part=True)
            writer = write_table(file, writer_of(path), reader)
        except (RecordError, SpecError) as error:
            return _WrittenPart(
                name=name, rows=0, bytes=0, columns=records.columns, is_complete=False, error=error
            )
        try:
            writer.check()
        except RecordError as error:  # the files of all records may have more columns
            problem = error
        size = file.stat().st_size
        if isinstance(path, Path):
            sync_file(file)
        elif records.are_written:
            name = sha256_of(file)
            if is_final:
                put_file(path, file, overwrite=True, sha256=name)
            elif not upload(path, file, name):  # a late attempt must not replace the final file
                hint = "remove its objects, and export again"
                raise ConflictError(State(where=str(path), got="was written by another export", hint=hint))
    return _WrittenPart(
        name=name,
        rows=records.rows,
        bytes=size,
        columns=records.columns,
        is_complete=records.are_written,
        problem=problem,
    )


@contextmanager
def _output_folder(out: Location, *, force: bool) -> Iterator[Location]:
    """Yields a folder that becomes `out` at the end, if there was no error. In an object store, it is `out`
    itself: the names of its files tell how many there are.

    Raises StoreError if `out` exists, unless `force` is set, and it is an exported file or folder.
    """
    if isinstance(out, RemotePath):
        check_writable(out)
        if out.exists() or out.is_dir():
            raise ExistsError(exists(out, "remove it, or choose another name"))
        yield out
        return
    with system_errors("write", out):
        target = _replaceable(out, force=force)
        base = target.with_name(temporary_name(target.name))
        for path, lock in abandoned(base):
            _delete(path)
            os.close(lock)
        fresh, lock = reserve(base)
        try:
            set_usual_mode(fresh)
            yield fresh
            sync_folder(fresh)
            _replaceable(out, force=force)  # again, since the export took time
            # a name that `abandoned` does not match: the next export must not delete it
            old = fresh.with_name(f"{fresh.name}.replaced")
            if not os.path.lexists(target):
                fresh.rename(target)
            elif not exchange(fresh, target):
                replace_by(fresh, target, old)
            sync_folder(target.parent)
            _delete(old)
        finally:
            _delete(fresh)
            os.close(lock)


def _replaceable(out: Path, *, force: bool) -> Path:
    """The file or folder that `out` names, behind links. Raises StoreError if it exists and must not be
    replaced.
    """
    if not force and os.path.lexists(out):  # even a broken link
        raise ExistsError(exists(out))
    target = Path(os.path.realpath(out))
    check_movable(target, str(out), force=force)
    with os.scandir(target) if target.is_dir() else nullcontext(()) as entries:
        others = sorted(one.name for one in entries if not (_PART.fullmatch(one.name) and one.is_file()))
    if others:
        raise StoreError(State(where=str(out), got="is not an export", hint=f"it has `{others[0]}`"))
    return target


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        with suppress(OSError):  # the next export removes the rest
            remove_folder(path)
    else:
        path.unlink(missing_ok=True)
