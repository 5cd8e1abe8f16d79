"""Exports records to a file of another format, in bounded memory; on a cluster, to a folder of files."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from recordspec._arrow import arrow
from recordspec.errors import (
    ExistsError,
    Problem,
    RecordError,
    SpecError,
    State,
    StoreError,
    exists,
    system_errors,
)
from recordspec.executors import cluster
from recordspec.locations import AnyPath, Location, location, output_file, sync_folder, temporary_name
from recordspec.progress import Progress
from recordspec.remote import RemotePath, check_writable
from recordspec.schema.schema import Schema, given_schema
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import Files
from recordspec.store.scan import FileRange, Scanner, run
from recordspec.store.transaction import abandoned, exchange, reserve
from recordspec.tables.export_records import ExportColumns, ExportedRecords
from recordspec.tables.query import Query
from recordspec.tables.scan_columns import (
    schema_of,
)
from recordspec.tables.table_writers import WRITERS, saving, write_table, writer_of

# The names of files of a folder.
_PART = re.compile(rf"part-\d{{5,}}-of-\d{{5,}}({'|'.join(map(re.escape, WRITERS))})")


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
            hint = "one machine reads the first records alone"
            raise SpecError(Problem(path=("limit",), expected="none with Spark", got=str(limit), hint=hint))
        writer_of(out)  # raises before anything is read
        with _output_folder(out, force=force) as folder:
            records, scanner = _records(files, query, None, out)
            with progress:
                size = _write_parts(records, scanner, folder, progress)
            records.check_columns()
    return Exported(file=str(out), rows=records.rows, columns=tuple(records.columns), bytes=size)


def _records(files: Files, query: Query, limit: int | None, out: Location) -> tuple[ExportedRecords, Scanner]:
    scanner = Scanner(StoredDataset.of(files, query.schema))
    scanner.dataset.require_schema()
    return ExportedRecords(scanner, query, limit, out.suffix), scanner


def _write_parts(records: ExportedRecords, scanner: Scanner, folder: Location, progress: Progress) -> int:
    """Writes the records of each range of files to a file in a folder, in tasks of a cluster. Returns the
    bytes of the files.

    A task begins with the columns of the first records, and extends them for its own records. A file whose
    columns are not those of all records is written again.
    """
    parts = list(records.ranges(scanner.files))
    paths = [folder / f"part-{number:05}-of-{len(parts):05}{records.suffix}" for number in range(len(parts))]

    def written(numbers: Sequence[int], is_final: bool) -> Iterator[tuple[int, _WrittenPart]]:
        tasks = [(parts[number], paths[number], is_final) for number in numbers]
        sizes = [part.bytes for part, *_ in tasks]
        results = run(partial(_write_part, records), tasks, (), 1, "exporting", sizes=sizes)
        for number, size, one in zip(numbers, sizes, results, strict=True):
            progress.advance(one.rows, size)
            yield number, one

    rows, sizes = 0, [0] * len(parts)
    problems: list[RecordError | None] = [None] * len(parts)
    by_type: dict[Any, list[int]] = {}  # the parts whose files have the same columns
    progress.begin("exporting", None)
    for number, one in written(range(len(parts)), False):
        records.merge(one.columns, parts[number])
        rows, sizes[number], problems[number] = rows + one.rows, one.bytes, one.problem
        type_ = schema_of(one.columns.values()) if one.is_complete else None
        by_type.setdefault(type_, []).append(number)
    records.rows = rows
    if not rows:
        records.take_first()
    by_type.pop(schema_of(records.columns.values()), None)
    if by_type:
        progress.begin("again, with final types", None)
    for number, one in written(sorted(chain.from_iterable(by_type.values())), True):
        sizes[number], problems[number] = one.bytes, one.problem
    for problem in problems:
        if problem is not None:
            raise problem
    return sum(sizes)


@dataclass(frozen=True, kw_only=True)
class _WrittenPart:
    """A part that a task has written: its rows, bytes and columns, whether the file has all columns, and why
    readers would find other rows in it.
    """

    rows: int
    bytes: int
    columns: ExportColumns
    is_complete: bool
    problem: RecordError | None


def _write_part(
    records: ExportedRecords, part: FileRange, path: Location, is_final: bool, attempt: str
) -> _WrittenPart:
    """Writes a part in a task of a cluster. Another attempt may write it at the same time."""
    problem = None
    with output_file(path, force=True, attempt=attempt) as fresh:
        reader = records.reader([part], Progress(show=False), final=is_final, is_part=True)
        writer = write_table(fresh, writer_of(path), reader)
        try:
            writer.check()
        except RecordError as error:  # the files of all records may have more columns
            problem = error
    return _WrittenPart(
        rows=records.rows,
        bytes=path.stat().st_size,
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
        try:
            yield out
        except BaseException:
            with suppress(StoreError, OSError):
                for part in out.iterdir():
                    part.unlink()
            raise
        return
    out = Path(os.path.realpath(out))
    if os.path.lexists(out) and not force:
        raise ExistsError(exists(out))
    names = [path.name for path in out.iterdir()] if out.is_dir() else []
    if other := next((name for name in sorted(names) if not _PART.fullmatch(name)), None):
        raise StoreError(State(where=str(out), got="is not an export", hint=f"it has `{other}`"))
    with system_errors("write", out):
        base = out.with_name(temporary_name(out.name))
        for path, lock in abandoned(base):
            _delete(path)
            os.close(lock)
        fresh, lock = reserve(base)
        try:
            yield fresh
            is_new = not out.exists()
            if is_new or not exchange(fresh, out):
                if not is_new:
                    _delete(out)
                fresh.rename(out)
            sync_folder(out.parent)
        finally:
            _delete(fresh)
            os.close(lock)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
