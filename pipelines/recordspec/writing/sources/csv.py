"""A CSV file: one row a line, the features by the names in its header."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from recordspec.errors import Problem, RecordError, SpecError, StoreError, missing_extra, nearest
from recordspec.spec.schema import Schema
from recordspec.spec.values import BadValue
from recordspec.writing.sources.arrow import from_text
from recordspec.writing.sources.base import Batch


@dataclass(frozen=True, kw_only=True)
class Csv:
    """Where a CSV file is, and how it is written.

    Attributes:
        path: of the file.
        delimiter: one character.
        columns: the column of a feature, where it has another name than the feature.
    """

    SHORT_FORM: ClassVar[str] = "path"

    path: str
    delimiter: str = ","
    columns: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '\0\r\n"':
            expected = "one ASCII character, no quote and no line break"
            raise SpecError(Problem(path=("delimiter",), expected=expected, got=repr(self.delimiter)))

    def open(self, folder: Path) -> CsvRows:
        """Its rows; a relative path starts at `folder`."""
        return CsvRows(Path(os.path.normpath(folder / self.path)), self.delimiter, self.columns)


# A cell must fit in a block.
_BLOCK = 16 << 20


class CsvRows:
    """The rows of a CSV file. An empty cell is missing; `""` is an empty text, where text is wanted."""

    rows = None

    def __init__(self, path: Path, delimiter: str, columns: Mapping[str, str]) -> None:
        self.notes: list[str] = []
        self._path, self._delimiter, self._names = path, delimiter, dict(columns)
        # where `place` has come to: the lines that it has not passed, and the row of the first of these
        self._rest: Iterator[tuple[int, list[str]]] = iter(())
        self._row = sys.maxsize

    def batches(self, schema: Schema, keys: tuple[str, ...]) -> Iterator[Batch]:
        wanted = {name: self._names.get(name, name) for name in (*schema.names, *keys)}
        self._check_header(schema, wanted)
        self._check_quotes()
        arrow = _arrow()
        try:
            yield from self._read(arrow, schema, wanted, keys)
        except arrow.ArrowInvalid as error:
            got = str(error).removeprefix("CSV parse error: ")
            raise RecordError(Problem(where=self._uneven(), expected="CSV", got=got)) from None

    def _read(
        self, arrow: Any, schema: Schema, wanted: Mapping[str, str], keys: tuple[str, ...]
    ) -> Iterator[Batch]:
        from pyarrow import csv as arrow_csv

        columns = sorted(set(wanted.values()))
        reader = arrow_csv.open_csv(
            self._path,
            read_options=arrow_csv.ReadOptions(block_size=_BLOCK),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self._delimiter,
                newlines_in_values=True,
                ignore_empty_lines=self._passes_over_empty_lines(),
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=columns,
                column_types=dict.fromkeys(columns, arrow.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        for batch in reader:
            if batch.num_rows:
                yield Batch(batch.num_rows, partial(self._columns, batch, schema, wanted, keys))

    def _columns(
        self,
        block: Any,
        schema: Schema,
        wanted: Mapping[str, str],
        keys: tuple[str, ...],
        start: int,
        stop: int,
    ) -> dict[str, Any]:
        batch = block.slice(start, stop - start)
        columns: dict[str, Any] = {}
        bad: list[tuple[int, Problem]] = []
        for name, feature in schema.names.items():
            try:
                columns[name] = from_text(batch.column(wanted[name]), feature, self._path.parent)
            except BadValue as error:
                bad.append((error.index, error.problem.under("features", name)))
        if bad:
            first = min(row for row, _ in bad)
            raise RecordError([problem for row, problem in bad if row == first], first)
        # a key that is a feature is the feature's value: `7` and `007` are one number
        return columns | {
            name: batch.column(wanted[name]).to_pylist() for name in keys if name not in columns
        }

    def _check_header(self, schema: Schema, wanted: Mapping[str, str]) -> None:
        header = self._header()
        problems = []
        for feature in self._names:
            if feature not in wanted:
                expected = f"features of `{schema.name}`"
                hint = nearest(feature, wanted)
                problems.append(Problem(path=("columns",), expected=expected, got=f"`{feature}`", hint=hint))
        for name, column in wanted.items():
            if header.count(column) != 1:
                got = "several" if column in header else "none"
                hint = nearest(column, [one for one in header if one not in wanted.values()])
                problems.append(Problem(path=(name,), expected=f"one column `{column}`", got=got, hint=hint))
        if problems:
            raise SpecError([problem.at(f"{self._path}:1") for problem in problems])
        ignored = [column for column in header if column not in wanted.values()]
        if ignored:
            self.notes.append(f"columns that no feature names: {', '.join(ignored)}")

    def _header(self) -> list[str]:
        try:
            with self._path.open(newline="", encoding="utf-8-sig") as file:
                return next(csv.reader(file, delimiter=self._delimiter), [])
        except OSError as error:
            got = error.strerror or str(error)
            raise StoreError(Problem(where=str(self._path), expected="a readable file", got=got)) from None
        except UnicodeDecodeError as error:
            got = f"the byte 0x{error.object[error.start]:02x}"
            raise RecordError(Problem(where=str(self._path), expected="UTF-8 text", got=got)) from None

    def place(self, row: int) -> str:
        """File and line. Found by reading again, since a quoted cell may hold line breaks.

        Rows that are asked for in their order are found in one pass.
        """
        if row < self._row:
            self._rest, self._row = self._lines(), -1
        line = next((line for line, _ in islice(self._rest, row - self._row, None)), None)
        self._row = row + 1
        return f"{self._path}:{line}"

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """The line on which each row begins, and its cells; the header is the first."""
        with self._path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            csv.field_size_limit(sys.maxsize)
            reader = csv.reader(file, delimiter=self._delimiter)
            line = 1
            for cells in reader:
                if cells or not self._passes_over_empty_lines():
                    yield line, cells
                line = reader.line_num + 1

    def _passes_over_empty_lines(self) -> bool:
        """Of a single column, an empty line is an empty cell."""
        return len(self._header()) != 1

    def _check_quotes(self) -> None:
        """Raises RecordError for a quote that is never closed: the rest of the file would be one cell."""
        with self._path.open("rb") as file:
            count = sum(block.count(b'"') for block in iter(lambda: file.read(_BLOCK), b""))
        if count % 2 == 0:
            return
        line = 0
        try:
            with self._path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
                csv.field_size_limit(sys.maxsize)
                reader = csv.reader(file, delimiter=self._delimiter, strict=True)
                for _ in reader:
                    line = reader.line_num
        except csv.Error:
            where = f"{self._path}:{line + 1}"
            raise RecordError(
                Problem(where=where, expected="quotes in pairs", got="one that is never closed")
            ) from None

    def _uneven(self) -> str:
        """The place of the first row with too many or too few cells; else the file."""
        width = len(self._header())
        for line, cells in self._lines():
            if len(cells) != width:
                return f"{self._path}:{line}"
        return str(self._path)


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError as error:
        raise missing_extra("pyarrow", "csv", "reading CSV", error) from None
    return pyarrow
