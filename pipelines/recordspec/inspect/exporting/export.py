"""Records to a file of another format, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from recordspec.errors import Problem, SpecError, StoreError, nearest, one_of
from recordspec.inspect.exporting.arrow import Csv, Parquet
from recordspec.inspect.exporting.forms import (
    Columns,
    Form,
    Forms,
    Names,
    columns_of,
    missing,
    ordered,
    with_columns,
)
from recordspec.inspect.exporting.jsonl import JsonLines
from recordspec.inspect.looking.choice import Choice
from recordspec.inspect.looking.source import Part, Source
from recordspec.inspect.looking.values import StepValues, check_sound
from recordspec.locations import output_file
from recordspec.progress import Progress
from recordspec.store.shards import Files
from recordspec.wire.record_batch import RecordBatch


class Writer(Protocol):
    """What writes a file. `check` raises SpecError for what the format does not hold, and `finish`, when all
    is written, SpecError or RecordError. Without it, what was written is of no use.
    """

    def __init__(self, path: Path, forms: Forms) -> None: ...
    @staticmethod
    def check(forms: Forms) -> None: ...
    def write(self, columns: Columns, rows: int) -> None: ...
    def finish(self) -> None: ...
    def close(self) -> None: ...


FORMATS: dict[str, type[Writer]] = {".jsonl": JsonLines, ".csv": Csv, ".parquet": Parquet}

# Of a column, a row that has nothing takes 17 bytes, too.
_MOST_CELLS = 1 << 22


@dataclass(frozen=True, kw_only=True)
class Exported:
    """A file that was written: its rows, its columns, its bytes."""

    file: str
    rows: int
    columns: tuple[str, ...]
    bytes: int


def export(
    files: Files,
    out: Path,
    choice: Choice | None = None,
    *,
    limit: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Writes records to a file of the format that its name says.

    A column holds single values where every record that has the key has one, else lists; what is missing is
    null. Bytes are text where all of them are UTF-8. To know, all records are looked at; they are written
    meanwhile, and once more only where later ones were found to be of another form.

    Args:
        files: paths, folders or patterns. Blocks are taken apart.
        out: FILE.jsonl, .csv or .parquet.
        choice: which records, and which columns.
        limit: of records.
        force: replaces the file where it exists.
        progress: is told of what is done.

    Raises RecordError for records that are no Examples, or have lists of two kinds in one column; SpecError
    for what the format does not hold; StoreError where there are no files, they change meanwhile, or `out`
    exists or cannot be written; MissingExtra without pyarrow, for csv and parquet.
    """
    choice, progress = choice or Choice(), progress or Progress(show=False)
    wanted = _writer(out)
    wanted.check({})  # before anything is read
    records = _Records(_source(files, choice), choice, limit)
    with output_file(out, force=force) as begun, progress:
        progress.begin("exporting", None)
        forms, written = _while_looking(records, wanted, begun, progress)
        if not written:
            progress.begin("once more, as all are", None)
            _write(records, wanted, begun, forms, progress)
        if records.rows and not forms and wanted is not JsonLines:
            got, hint = f"{records.rows:,} records that have none", "jsonl holds them"
            raise SpecError(Problem(path=("out",), expected="features to export", got=got, hint=hint))
    columns = tuple(forms)
    return Exported(file=str(out), rows=records.rows, columns=columns, bytes=out.stat().st_size)


def _writer(out: Path) -> type[Writer]:
    if out.suffix not in FORMATS:
        expected, hint = f"a name that ends in {one_of(FORMATS)}", nearest(out.suffix, FORMATS)
        raise SpecError(Problem(path=("out",), expected=expected, got=f"`{out.name}`", hint=hint))
    return FORMATS[out.suffix]


def _source(files: Files, choice: Choice) -> Source:
    source = Source(files, choice.spec)
    if any(source.are_blocks(path) and source.schema_of(path) is None for path in source.paths):
        expected = "a schema to take blocks apart with"
        raise SpecError(Problem(path=("spec",), expected=expected, got="none"))
    return source


class _Records:
    """The records that are wanted, some at a time. Raises SpecError for names that nobody knows."""

    def __init__(self, source: Source, choice: Choice, limit: int | None) -> None:
        self._source, self._limit = source, limit
        self.choice = choice
        self.names = Names(choice, choice.check(source))
        self.rows = 0
        self.columns = 0

    def parts(self, progress: Progress) -> Iterator[tuple[Part, RecordBatch]]:
        self.rows = 0
        for part in self.choice.parts(self._source):
            if not len(part):
                continue
            if self._limit is not None and self.rows + len(part) > self._limit:
                part = part.at(np.arange(self._limit - self.rows))
            self.rows += len(part)
            for piece, decoded in self._pieces(part):
                check_sound(decoded, piece.place)
                yield piece, decoded
                progress.advance(len(piece), int((piece.stops - piece.starts).sum()))
            if self.rows == self._limit:
                return

    def _pieces(self, part: Part) -> Iterator[tuple[Part, RecordBatch]]:
        """A part, or pieces of it that have not too many cells: all columns have all rows."""
        decoded = part.decode()
        columns = max(self.columns, len(decoded.features) + len(decoded.sequence))
        if len(part) == 1 or len(part) * columns <= _MOST_CELLS:
            yield part, decoded
            return
        for half in np.array_split(np.arange(len(part)), 2):
            yield from self._pieces(part.at(half))


def _while_looking(
    records: _Records, wanted: type[Writer], path: Path, progress: Progress
) -> tuple[dict[str, Form], bool]:
    """What the columns hold; and whether all was written, as they held the same from the first on."""
    forms: dict[str, Form] = {name: Form() for name in records.choice.columns}
    same = True
    with ExitStack() as stack:
        writer: Writer | None = None
        for part, decoded in records.parts(progress):
            columns = columns_of(part, decoded, records.names, forms)
            before, forms = forms, ordered(with_columns(forms, columns), records.choice.columns)
            records.columns = len(forms)
            wanted.check(forms)
            if writer is None:
                writer = stack.enter_context(closing(wanted(path, forms)))
            elif forms != before:
                same = False
            if same:
                writer.write(_filled(columns, forms, len(part)), len(part))
        if not records.rows:  # then those that were looked at tell the columns
            forms = ordered({name: Form() for name in records.names.first} | forms, records.choice.columns)
        if writer is None:
            writer = stack.enter_context(closing(wanted(path, forms)))
        if same:
            writer.finish()
    return forms, same


def _write(records: _Records, wanted: type[Writer], path: Path, forms: Forms, progress: Progress) -> None:
    with closing(wanted(path, forms)) as writer:
        for part, decoded in records.parts(progress):
            columns = columns_of(part, decoded, records.names, forms)
            if with_columns(forms, columns) != forms:
                expected, got = "files that stay as they are", "other records when they were read once more"
                raise StoreError(Problem(where=str(part.path), expected=expected, got=got))
            writer.write(_filled(columns, forms, len(part)), len(part))
        writer.finish()


def _filled(columns: Columns, forms: Forms, rows: int) -> Columns:
    """All columns, also those of which these rows have nothing."""
    return {
        name: columns[name] if _has(columns, name, form) else missing(form, rows)
        for name, form in forms.items()
    }


def _has(columns: Columns, name: str, form: Form) -> bool:
    return name in columns and isinstance(columns[name], StepValues) == form.steps
