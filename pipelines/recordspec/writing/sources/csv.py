"""CSV files. The header names the features."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import Any, ClassVar

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError
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
    not_once,
    wanted_columns,
)
from recordspec.writing.sources.ranges import ByteRange, LongRow, csv_ranges
from recordspec.writing.sources.text import from_text

_LONGEST_HEADER = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Csv(FileSource):
    """The rows of CSV files. An empty cell is missing; `""` is an empty text, for features of text.

    Attributes:
        path: a path or a pattern, or a list of these. Each file has its own header.
        delimiter: one character.
        columns: the column of a feature, if their names differ.
    """

    SHORT_FORM: ClassVar[str] = "path"

    path: FilesText
    delimiter: str = ","
    columns: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '\0\r\n"':
            expected = "one ASCII character, no quote and no line break"
            raise SpecError(Problem(path=("delimiter",), expected=expected, got=repr(self.delimiter)))

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[CsvPart | LongRow]:
        headers = [read_header(path, self.delimiter) for path in self.paths]
        for path, header in zip(self.paths, headers, strict=True):
            wanted = wanted_columns(schema, extra, self.columns, f"{path}:1", header)
        self.notes[:] = ignored(wanted, [*dict.fromkeys(chain.from_iterable(headers))])
        for path, header in zip(self.paths, headers, strict=True):
            yield from self._parts(path, header, wanted)

    def _parts(
        self, path: Location, header: list[str], wanted: Mapping[str, str]
    ) -> Iterator[CsvPart | LongRow]:
        for span in csv_ranges(path, self.delimiter):
            if span.too_long:
                yield LongRow.of(path, span, "row", "is a quote missing?")
                continue
            yield CsvPart(path=path, delimiter=self.delimiter, header=tuple(header), wanted=wanted, span=span)

    def blocks(self) -> Iterator[Any]:
        """All columns of a single file, in record batches of text.

        Raises SpecError for duplicate names, RecordError.
        """
        (path,) = self.paths
        header = read_header(path, self.delimiter)
        wanted = {name: name for name in header}
        if problems := list(not_once(wanted, header)):
            raise SpecError([problem.at(f"{path}:1") for problem in problems])
        for part in self._parts(path, header, wanted):
            yield from part.blocks()


def read_header(path: Location, delimiter: str) -> list[str]:
    with open_file(path) as file:
        data = file.read(_LONGEST_HEADER)
        is_whole = not file.read(1)
    # bytes that are not UTF-8 in the rows after the header are reported when these are read
    text = io.StringIO(data.decode("utf-8-sig", "surrogateescape"), newline="")
    csv.field_size_limit(sys.maxsize)
    header = next(csv.reader(text, delimiter=delimiter), [])
    if not is_whole and not text.read(1):
        expected = f"a header of at most {_LONGEST_HEADER:,} bytes"
        raise RecordError(Problem(where=f"{path}:1", expected=expected, got="a longer one"))
    if got := _no_utf8("".join(header)):
        raise RecordError(Problem(where=f"{path}:1", expected="UTF-8 text", got=got))
    return header


@dataclass(frozen=True, kw_only=True)
class CsvPart:
    """Consecutive rows of a CSV file.

    Attributes:
        path: the path of the file.
        delimiter: one character.
        header: the names of the columns.
        wanted: the column of each feature, and of each extra name.
        span: the bytes of the rows; at the start of the file, of the header, too.
    """

    path: Location
    delimiter: str
    header: tuple[str, ...]
    wanted: Mapping[str, str]
    span: ByteRange

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        for block in self.blocks():
            yield from converted(block.num_rows, partial(self._columns, block, schema, extra))

    def place(self, row: int) -> str:
        """File and line. The part is read again to find the line: a quoted cell may hold line breaks."""
        return f"{self.path}:{self._places.of(row + self._has_header)}"

    @property
    def _has_header(self) -> bool:
        return self.span.start == 0

    @property
    def _ignores_empty_lines(self) -> bool:
        """With a single column, an empty line is an empty cell."""
        return len(self.header) != 1

    def blocks(self) -> Iterator[Any]:
        """The rows in record batches of text, only the columns that are wanted. Raises RecordError."""
        pyarrow = arrow()
        try:
            yield from (block for block in self._read(pyarrow) if block.num_rows)
        except pyarrow.ArrowInvalid as error:
            raise RecordError(self._no_text() or self._uneven(str(error))) from None

    def _read(self, pyarrow: Any) -> Iterator[Any]:
        is_first = self._has_header
        for piece in self.span.pieces(self.path):
            yield from self._parsed(pyarrow, piece, is_first)
            is_first = False

    def _parsed(self, pyarrow: Any, data: bytes, has_header: bool) -> Any:
        """The record batches of some whole rows."""
        from pyarrow import csv as arrow_csv

        wanted = set(self.wanted.values())
        columns = [column for column in self.header if column in wanted]
        # Without a line break at the end, Arrow takes an empty last cell for a quoted one if another cell of
        # the row is quoted, and does not recognize a header without rows.
        data += b"\n" if data and data[-1:] not in b"\r\n" else b""
        return arrow_csv.open_csv(
            pyarrow.BufferReader(data),
            read_options=arrow_csv.ReadOptions(
                # of a block that ends within a CRLF, Arrow drops the newline, also in quotes
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
        columns = by_feature(
            features, lambda name: from_text(batch.column(self.wanted[name]), features[name], folder)
        )
        # a key that is a feature is the feature's value: `7` and `007` are one number
        return columns | {
            name: batch.column(self.wanted[name]).to_pylist() for name in extra if name not in columns
        }

    @cached_property
    def _places(self) -> RowPlaces[int]:
        return RowPlaces(self._line_numbers)

    def _line_numbers(self) -> Iterator[int]:
        return (line for line, _ in self._lines())

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """The line on which each row begins, and its cells; the header is the first."""
        encoding = "utf-8-sig" if self._has_header else "utf-8"
        with io.TextIOWrapper(self.span.open(self.path), encoding, "surrogateescape", newline="") as file:
            csv.field_size_limit(sys.maxsize)
            reader = csv.reader(file, delimiter=self.delimiter)
            line = self.span.line
            for cells in reader:
                if cells or not self._ignores_empty_lines:
                    yield line, cells
                line = self.span.line + reader.line_num

    def _no_text(self) -> Problem | None:
        """The problem of the first cell of a wanted column that is not UTF-8."""
        for line, cells in self._lines():
            named = zip(self.header, cells, strict=False)
            text = "".join(cell for name, cell in named if name in self.wanted.values())
            if got := _no_utf8(text):
                return Problem(where=f"{self.path}:{line}", expected="UTF-8 text", got=got)
        return None

    def _uneven(self, message: str) -> Problem:
        """Arrow's message, at the first row with too many or too few cells, or else at the file."""
        uneven = (line for line, cells in self._lines() if len(cells) != len(self.header))
        line = next(uneven, None)
        got = re.sub(r"^CSV parse error: (Row #\d+: )?", "", message)  # Arrow counts the rows of the part
        return Problem(where=str(self.path) + (f":{line}" if line else ""), expected="CSV", got=got)


def _no_utf8(text: str) -> str:
    """The first byte that is not UTF-8 in a text decoded with "surrogateescape"; "" where there is none."""
    bad = re.search("[\udc80-\udcff]", text)
    return f"the byte 0x{ord(bad[0]) - 0xDC00:02x}" if bad else ""
