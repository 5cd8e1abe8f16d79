"""CSV files. The header names the features, and options describe the notation of the cells."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import Any, ClassVar

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError, counted, nearest
from recordspec.locations import Location, open_file
from recordspec.schema.schema import Schema
from recordspec.writing.sources.base import (
    Batches,
    FileSource,
    FilesText,
    RowPlaces,
    by_feature,
    converted,
    ignored,
    long_row_problem,
    not_once,
    wanted_columns,
)
from recordspec.writing.sources.notation import DateFormat, Decimal, Notation, Thousands
from recordspec.writing.sources.ranges import ByteRange, LongRow, WholeFile, csv_ranges
from recordspec.writing.sources.text_cells import from_text
from recordspec.writing.sources.text_files import UTF8, TextStream, encoding_problem

_LONGEST_HEADER = 1 << 20
_EXCEL_DELIMITER = re.compile('"?sep=[^\r\n]"?', re.IGNORECASE)
# The character that Python 3.10 reads as NUL, which its `csv` refuses; no byte is decoded to it.
_NUL = "\udc00"
_OTHER_ENCODING = "`encoding` of the source names another, such as windows-1252 or utf-16"


@dataclass(frozen=True, kw_only=True)
class Csv(FileSource):
    """The rows of CSV files. An empty cell is missing; `""` is an empty text, for features of text.

    Attributes:
        path: a path or a pattern, or a list of these. Each file has its own header, and may be compressed
            with gzip, Zstandard or bzip2.
        delimiter: one character.
        columns: the column of a feature, if their names differ.
        encoding: Python's name of the text encoding.
        decimal: the character before the decimals of numbers.
        thousands: the character between groups of three digits. A space also stands for non-breaking spaces.
        percent: whether numbers may have a percent sign: `12.5 %` is 0.125.
        missing: cells that stand for a missing value, also in quotes; in all columns, or by column.
        dates: the format of dates and times, such as `%d.%m.%Y`, for all features with `date`, or by column;
            with the directives %Y, %m, %b, %d, %H, %I, %p, %M, %S, %f and %z of strptime.
    """

    SHORT_FORM: ClassVar[str] = "path"

    path: FilesText
    delimiter: str = ","
    columns: Mapping[str, str] = field(default_factory=dict)
    encoding: str = "utf-8"
    decimal: Decimal = "."
    thousands: Thousands | None = None
    percent: bool = False
    missing: tuple[str, ...] | Mapping[str, tuple[str, ...]] = ()
    dates: str | Mapping[str, str] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if problems := list(self._problems()):
            raise SpecError(problems)

    def _problems(self) -> Iterator[Problem]:
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '\0\r\n"':
            expected = "one ASCII character, no quote and no line break"
            yield Problem(path=("delimiter",), expected=expected, got=repr(self.delimiter))
        if (problem := encoding_problem(self.encoding)) is not None:
            yield problem.under("encoding")
        if self.thousands == self.decimal:
            expected = f"another character than `decimal`, `{self.decimal}`"
            yield Problem(path=("thousands",), expected=expected, got="the same")
        by_column = isinstance(self.dates, Mapping)
        forms = self.dates.items() if isinstance(self.dates, Mapping) else [("", self.dates)]
        for column, form in forms:
            if form or by_column:
                path = ("dates", column) if by_column else ("dates",)
                yield from (problem.under(*path) for problem in DateFormat(form).problems())

    def _notation(self, column: str) -> Notation | None:
        """The notation of a column's cells; None for the notation that a build reads without options."""
        missing, dates = self.missing, self.dates
        notation = Notation(
            decimal=self.decimal,
            thousands=self.thousands or "",
            percent=self.percent,
            missing=tuple(missing.get(column, ()) if isinstance(missing, Mapping) else missing),
            dates=dates.get(column, "") if isinstance(dates, Mapping) else dates,
        )
        return None if notation == Notation() else notation

    def _unknown_columns(self, header: Collection[str]) -> Iterator[Problem]:
        """The problem of each column named in an option but missing in a header."""
        for option in ("missing", "dates"):
            by_column = getattr(self, option)
            for column in by_column if isinstance(by_column, Mapping) else ():
                if column not in header:
                    hint = nearest(column, header)
                    yield Problem(
                        path=(option,), expected="columns of the file", got=f"`{column}`", hint=hint
                    )

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[CsvPart | LongRow]:
        headers = [read_header(path, self.delimiter, self.encoding) for path in self.paths]
        for path, header in zip(self.paths, headers, strict=True):
            wanted = wanted_columns(schema, extra, self.columns, f"{path}:1", header)
            if problems := list(self._unknown_columns(header)):
                raise SpecError([problem.at(f"{path}:1") for problem in problems])
        self.notes[:] = ignored(wanted, [*dict.fromkeys(chain.from_iterable(headers))])
        for path, header in zip(self.paths, headers, strict=True):
            yield from self._parts(path, header, wanted)

    def _parts(
        self, path: Location, header: list[str], wanted: Mapping[str, str]
    ) -> Iterator[CsvPart | LongRow]:
        written = {column: self._notation(column) for column in dict.fromkeys(wanted.values())}
        notations = {column: notation for column, notation in written.items() if notation is not None}
        for span in csv_ranges(path, self.delimiter, self.encoding):
            if isinstance(span, ByteRange) and span.too_long:
                yield LongRow(path=path, line=span.line, problem=_long_row(span.stop - span.start))
                continue
            yield CsvPart(
                path=path,
                delimiter=self.delimiter,
                encoding=self.encoding,
                header=tuple(header),
                wanted=wanted,
                notations=notations,
                span=span,
            )

    def blocks(self) -> Iterator[Any]:
        """All columns of a single file, in record batches of text. If several columns have no name, they are
        omitted.

        Raises SpecError for duplicate names, RecordError.
        """
        (path,) = self.paths
        header = read_header(path, self.delimiter, self.encoding)
        has_several_unnamed = any(header) and header.count("") > 1
        wanted = {name: name for name in header if name or not has_several_unnamed}
        if problems := list(not_once(wanted, header)):
            raise SpecError([problem.at(f"{path}:1") for problem in problems])
        for part in self._parts(path, header, wanted):
            yield from part.blocks()


def _long_row(size: int) -> Problem:
    return long_row_problem(size, hint="is a quote missing?")


def _rows(text: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row, and the number of lines up to its end."""
    if sys.version_info >= (3, 11):
        reader = csv.reader(text, delimiter=delimiter)
        for cells in reader:
            yield reader.line_num, cells
    else:
        reader = csv.reader((line.replace("\0", _NUL) for line in text), delimiter=delimiter)
        for cells in reader:
            yield reader.line_num, [cell.replace(_NUL, "\0") for cell in cells]


def read_header(path: Location, delimiter: str, encoding: str = "utf-8") -> list[str]:
    """The names of a file's columns, in its first line. Raises RecordError if the file is empty."""
    with open_file(path) as file:
        stream = TextStream(file, encoding)
        data = stream.read(_LONGEST_HEADER)
        is_whole = not stream.read(1)
    # invalid UTF-8 in the rows after the header is reported when the rows are read
    text = io.StringIO(data.decode("utf-8", "surrogateescape"), newline="")
    csv.field_size_limit(sys.maxsize)
    _, header = next(_rows(text, delimiter), (0, []))
    is_at_end = not text.read(1)
    if is_whole and is_at_end and stream.fault is not None:
        raise stream.fault_at(path, 1)
    if not is_whole and is_at_end:
        expected = f"a header of at most {_LONGEST_HEADER:,} bytes"
        raise RecordError(Problem(where=f"{path}:1", expected=expected, got="a longer one"))
    if got := _no_utf8("".join(header)):
        raise RecordError(Problem(where=f"{path}:1", expected=UTF8, got=got, hint=_OTHER_ENCODING))
    expected, hint = "a header with the names of the columns", ""
    if (first := text.getvalue().partition("\n")[0].rstrip("\r")) and _EXCEL_DELIMITER.fullmatch(first):
        got, hint = f"`{first}`", "from which Excel takes the delimiter: remove the line"
    elif not header:
        got = "an empty line" if data else "an empty file"
    if got:
        raise RecordError(Problem(where=f"{path}:1", expected=expected, got=got, hint=hint))
    return header


@dataclass(frozen=True, kw_only=True)
class CsvPart:
    """Consecutive rows of a CSV file.

    Attributes:
        path: the path of the file.
        delimiter: one character.
        encoding: the encoding of the text.
        header: the names of the columns.
        wanted: the column of each feature, and of each extra name.
        notations: the notations of columns for which options set one.
        span: the bytes of the rows; at the start of the file, also of the header.
    """

    path: Location
    delimiter: str
    encoding: str
    header: tuple[str, ...]
    wanted: Mapping[str, str]
    notations: Mapping[str, Notation]
    span: ByteRange | WholeFile

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        for block in self._blocks():
            if isinstance(block, RecordError):
                yield block
            else:
                yield from converted(block.num_rows, partial(self._columns, block, schema, extra))

    def place(self, row: int) -> str:
        """The file and the line. Reads the part again to find the line, since a quoted cell may contain
        line breaks.
        """
        return f"{self.path}:{self._places.of(row + self._has_header)}"

    @property
    def _has_header(self) -> bool:
        return self.span.start == 0

    @property
    def _ignores_empty_lines(self) -> bool:
        """Whether empty lines are skipped; in a file with a single column, an empty line is an empty cell."""
        return len(self.header) != 1

    def blocks(self) -> Iterator[Any]:
        """The rows in record batches of text, with only the wanted columns. Raises RecordError."""
        row = 0
        for block in self._blocks():
            if isinstance(block, RecordError):
                raise block.at(self.place(row))
            yield block
            row += block.num_rows

    def _blocks(self) -> Iterator[Any]:
        """The rows in record batches, with a RecordError in place of a row that is too long."""
        pyarrow = arrow()
        try:
            yield from (
                block for block in self._read(pyarrow) if isinstance(block, RecordError) or block.num_rows
            )
        except pyarrow.ArrowInvalid as error:
            raise RecordError(self._no_text() or self._uneven(str(error))) from None

    def _read(self, pyarrow: Any) -> Iterator[Any]:
        is_first = self._has_header
        for piece in self.span.pieces(self.path, self.encoding):
            if piece.too_long:
                yield RecordError(_long_row(piece.too_long), 0)
            else:
                yield from self._parsed(pyarrow, piece.data, is_first)
            is_first = False

    def _parsed(self, pyarrow: Any, data: bytes, has_header: bool) -> Any:
        """The record batches of a piece of whole rows."""
        from pyarrow import csv as arrow_csv

        wanted = set(self.wanted.values())
        columns = [column for column in self.header if column in wanted]
        # Without a line break at the end, Arrow takes an empty last cell for a quoted cell if another cell of
        # the row is quoted, and does not recognize a header without rows.
        data += b"\n" if data and data[-1:] not in b"\r\n" else b""
        return arrow_csv.open_csv(
            pyarrow.BufferReader(data),
            read_options=arrow_csv.ReadOptions(
                # if a block ends within a CRLF, Arrow drops the newline, also in quotes
                block_size=max(1, len(data)),
                column_names=None if has_header else self.header,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=self._ignores_empty_lines,
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=columns,
                column_types=dict.fromkeys(columns, pyarrow.large_string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _columns(
        self, block: Any, schema: Schema, extra: tuple[str, ...], start: int, stop: int
    ) -> dict[str, Any]:
        batch = block.slice(start, stop - start)
        features, folder = schema.names, self.path.parent

        def values_of(name: str) -> Any:
            column = self.wanted[name]
            return from_text(batch.column(column), features[name], folder, self.notations.get(column))

        columns = by_feature(features, values_of)
        # a key that is also a feature takes the feature's value: `7` and `007` are the same number
        return columns | {
            name: self._texts(batch, self.wanted[name]) for name in extra if name not in columns
        }

    def _texts(self, batch: Any, column: str) -> list[str | None]:
        """The cells of a column, with None for a missing value."""
        texts: list[str | None] = batch.column(column).to_pylist()
        notation = self.notations.get(column)
        if notation is None or not notation.missing:
            return texts
        return [None if text in notation.missing else text for text in texts]

    @cached_property
    def _places(self) -> RowPlaces[int]:
        return RowPlaces(self._line_numbers)

    def _line_numbers(self) -> Iterator[int]:
        return (line for line, _ in self._lines())

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """The line on which each row begins, and its cells; no cells for a row that is too long. The
        header is the first row.
        """
        csv.field_size_limit(sys.maxsize)
        encoding = "utf-8-sig" if self._has_header else "utf-8"
        for piece in self.span.pieces(self.path, self.encoding):
            if piece.too_long:
                yield piece.line, []
                continue
            with io.TextIOWrapper(io.BytesIO(piece.data), encoding, "surrogateescape", newline="") as file:
                line = piece.line
                for lines, cells in _rows(file, self.delimiter):
                    if cells or not self._ignores_empty_lines:
                        yield line, cells
                    line = piece.line + lines
            encoding = "utf-8"

    def _no_text(self) -> Problem | None:
        """The problem of the first wanted cell that is not valid in UTF-8."""
        for line, cells in self._lines():
            named = zip(self.header, cells, strict=False)
            text = "".join(cell for name, cell in named if name in self.wanted.values())
            if got := _no_utf8(text):
                return Problem(where=f"{self.path}:{line}", expected=UTF8, got=got, hint=_OTHER_ENCODING)
        return None

    def _uneven(self, message: str) -> Problem:
        """The problem of the first row with too many or too few cells, or else Arrow's message for the
        file.
        """
        for line, cells in self._lines():
            if cells and len(cells) != len(self.header):
                expected = f"{counted(len(self.header), 'cell')}, as in the header"
                got = f"{len(cells):,}: `{self.delimiter.join(cells)}`"
                return Problem(where=f"{self.path}:{line}", expected=expected, got=got)
        got = re.sub(r"^CSV parse error: (Row #\d+: )?", "", message)  # Arrow counts the rows of the part
        return Problem(where=str(self.path), expected="CSV", got=got)


def _no_utf8(text: str) -> str:
    """The first byte of invalid UTF-8 in a text decoded with "surrogateescape"; "" if there is none."""
    bad = re.search("[\udc80-\udcff]", text)
    return f"the byte 0x{ord(bad[0]) - 0xDC00:02x}" if bad else ""
