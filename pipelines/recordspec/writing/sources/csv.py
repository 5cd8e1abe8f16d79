"""CSV files. The header names the features, and options describe the notation of the cells."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from itertools import chain
from typing import Any, ClassVar

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError, counted, nearest
from recordspec.locations import Location
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
from recordspec.writing.sources.csv_dialect import OTHER_ENCODING, Dialect, Head, no_utf8, read_head
from recordspec.writing.sources.notation import JSON_LISTS, DateFormat, Decimal, Negative, Notation, Thousands
from recordspec.writing.sources.partitions import files_of, notes_of_partitions, partition_of, with_partition
from recordspec.writing.sources.ranges import (
    ByteRange,
    LongRow,
    RowPiece,
    WholeFile,
    csv_ranges,
    without_comments,
)
from recordspec.writing.sources.text_cells import from_text
from recordspec.writing.sources.text_files import UTF8, encoding_problem

# The suffixes of CSV files, with their delimiters.
DELIMITERS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True, kw_only=True)
class Csv(FileSource):
    """The rows of CSV files. An empty cell is missing; `""` is an empty text, for features of text.

    Attributes:
        files: a path, a folder of .csv and .tsv files, or a pattern, or a list of these. Each file has its
            own header, and may be compressed with gzip, Zstandard or bzip2. Names of folders such as
            `country=DE` are a column; a folder includes such folders.
        delimiter: one character; or `whitespace`, for one space or tab, or several.
        header: whether the first row has the names of the columns; else the names, or false for `column_1`,
            `column_2` and so on.
        skip_lines: the number of lines before the first row.
        comment: the first character of lines that are no rows.
        quote: the character around cells; null if cells are not quoted, and a quote is text.
        trim: whether spaces and tabs at the start and the end of cells are dropped, also in quotes.
        columns: the column of a feature, if their names differ; null for a feature that all rows lack, as
            those of a test set lack the target.
        media: the path of the file of a feature, with `{}` in place of the cell, from the folder of the
            table: `images/{}.jpg`; by default the cell is the path.
        encoding: Python's name of the text encoding.
        decimal: the character before the decimals of numbers.
        thousands: the character between groups of three digits. A space also stands for non-breaking spaces.
        percent: whether numbers may have a percent sign: `12.5 %` is 0.125.
        currency: the sign of a currency before or after numbers: `$ 5` and `5 $` are 5; or by column.
        negative: how negative numbers are written besides `-5`: `(5)`, `5-`, or with the minus sign U+2212.
        missing: cells that stand for a missing value, also in quotes; in all columns, or by column.
        dates: the format of dates and times, such as `%d.%m.%Y`, for all features with `date`, or by column;
            with the directives %Y, %y (1969 to 2068), %m, %b, %d, %H, %I, %p, %M, %S, %f and %z of strptime.
        lists: the text between the items of a list, by column: `tags: "|"` for `red|blue`. An empty cell is
            an empty list; spaces around items are dropped. `json` for lists in JSON, `[1, 2]`, also in lists.
    """

    SHORT_FORM: ClassVar[str] = "files"
    RENAMED: ClassVar[Mapping[str, str]] = {"path": "files"}

    files: FilesText
    delimiter: str = ","
    header: bool | tuple[str, ...] = True
    skip_lines: int = 0
    comment: str | None = None
    quote: str | None = '"'
    trim: bool = False
    columns: Mapping[str, str | None] = field(default_factory=dict)
    media: Mapping[str, str] = field(default_factory=dict)
    encoding: str = "utf-8"
    decimal: Decimal = "."
    thousands: Thousands | None = None
    percent: bool = False
    currency: str | Mapping[str, str] = ""
    negative: Negative | None = None
    missing: tuple[str, ...] | Mapping[str, tuple[str, ...]] = ()
    dates: str | Mapping[str, str] = ""
    lists: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if problems := list(self._problems()):
            raise SpecError(problems)

    @cached_property
    def paths(self) -> tuple[Location, ...]:
        if any(map(os.path.isdir, self.given)):
            return files_of(self.given, (*DELIMITERS,))
        return super().paths

    def _problems(self) -> Iterator[Problem]:
        yield from self.dialect.problems()
        if (problem := encoding_problem(self.encoding)) is not None:
            yield problem.under("encoding")
        signs = self.currency.values() if isinstance(self.currency, Mapping) else [self.currency]
        for sign in signs:
            in_numbers = sign.lower() in ("e", "inf", "infinity", "nan")
            if in_numbers or re.search("[-+0-9.,()%\\s]", sign.strip(".")) or sign.startswith("."):
                expected = "the sign of a currency, such as $, € or USD"
                yield Problem(path=("currency",), expected=expected, got=f"`{sign}`")
        for column, text in self.lists.items():
            if not text:
                yield Problem(path=("lists", column), expected="the text between two items", got="none")
        if self.thousands == self.decimal:
            expected = f"another character than `decimal`, `{self.decimal}`"
            yield Problem(path=("thousands",), expected=expected, got="the same")
        by_column = isinstance(self.dates, Mapping)
        forms = self.dates.items() if isinstance(self.dates, Mapping) else [("", self.dates)]
        for column, form in forms:
            if form or by_column:
                path = ("dates", column) if by_column else ("dates",)
                yield from (problem.under(*path) for problem in DateFormat(form).problems())

    @cached_property
    def dialect(self) -> Dialect:
        return Dialect(**{option.name: getattr(self, option.name) for option in fields(Dialect)})

    def _notation(self, column: str) -> Notation | None:
        """The notation of a column's cells; None for the notation that a build reads without options."""
        missing, dates, currency = self.missing, self.dates, self.currency
        notation = Notation(
            decimal=self.decimal,
            thousands=self.thousands or "",
            percent=self.percent,
            currency=currency.get(column, "") if isinstance(currency, Mapping) else currency,
            negative=self.negative or "",
            missing=tuple(missing.get(column, ()) if isinstance(missing, Mapping) else missing),
            dates=dates.get(column, "") if isinstance(dates, Mapping) else dates,
            items=self.lists.get(column, ""),
        )
        return None if notation == Notation() else notation

    def _unknown_columns(self, header: Collection[str]) -> Iterator[Problem]:
        """The problem of each column named in an option but missing in a header."""
        for option in ("missing", "currency", "dates", "lists"):
            by_column = getattr(self, option)
            for column in by_column if isinstance(by_column, Mapping) else ():
                if column not in header:
                    hint = nearest(column, header)
                    if column in self.columns:  # a feature
                        hint = f"the column of this feature is `{self.columns[column]}`"
                    yield Problem(
                        path=(option,), expected="columns of the file", got=f"`{column}`", hint=hint
                    )

    def _list_problems(self, schema: Schema, wanted: Mapping[str, str]) -> Iterator[Problem]:
        """The problem of each column of lists that no feature reads as a list, or whose numbers have the text
        between two items in them."""
        for column, text in self.lists.items():
            features = [
                schema.names[name] for name, one in wanted.items() if one == column and name in schema.names
            ]
            levels = {feature.name: len(feature.value_type.shape) for feature in features}
            is_json = text == JSON_LISTS
            lists = [one for one in features if levels[one.name] == 1 or (is_json and levels[one.name])]
            if features and not lists:
                expected = "a feature of lists, such as `kind: var_len`"
                yield Problem(path=("lists", column), expected=expected, got=features[0].kind)
            marks = [mark for mark in (self.decimal, self.thousands) if mark and mark in text]
            if marks and any(feature.value_type.is_number for feature in lists):
                expected = f"a text that no number has, as `{marks[0]}` is in numbers"
                yield Problem(path=("lists", column), expected=expected, got=f"`{text}`")

    def check(self, schema: Schema, extra: tuple[str, ...]) -> None:
        self._checked(schema, extra)

    def _checked(self, schema: Schema, extra: tuple[str, ...]) -> tuple[list[Head], dict[str, str]]:
        """The head of each file, and the column of each name. Raises the errors of `check`."""
        heads = [read_head(path, self.dialect, self.encoding) for path in self.paths]
        wanted: dict[str, str] = {}
        for path, head in zip(self.paths, heads, strict=True):
            names = [*head.names, *(partition_of(path).keys() - {*head.names})]
            wanted = wanted_columns(
                schema, extra, self.columns, f"{path}:1", names, self.media, may_lack=True
            )
            if problems := [*self._unknown_columns(names), *self._list_problems(schema, wanted)]:
                raise SpecError([problem.at(f"{path}:1") for problem in problems])
        return heads, wanted

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[CsvPart | LongRow]:
        heads, wanted = self._checked(schema, extra)
        self.notes[:] = [
            *ignored(wanted, [*dict.fromkeys(chain.from_iterable(head.names for head in heads))]),
            *dict.fromkeys(chain.from_iterable(map(notes_of_names, heads))),
            *notes_of_partitions(zip(self.paths, (head.names for head in heads), strict=True)),
        ]
        yield from self._parts(heads, wanted)

    def _parts(self, heads: Sequence[Head], wanted: Mapping[str, str]) -> Iterator[CsvPart | LongRow]:
        written = {column: self._notation(column) for column in dict.fromkeys(wanted.values())}
        notations = {column: notation for column, notation in written.items() if notation is not None}
        ranges = csv_ranges(self.paths, self.dialect, heads, self.encoding)
        for path, head, spans in zip(self.paths, heads, ranges, strict=True):
            for span in spans:
                if isinstance(span, ByteRange) and span.too_long:
                    yield LongRow(path=path, line=span.line, problem=_long_row(span.stop - span.start))
                    continue
                yield CsvPart(
                    path=path,
                    dialect=self.dialect,
                    encoding=self.encoding,
                    header=head.names,
                    wanted=wanted,
                    media=self.media,
                    notations=notations,
                    span=span,
                )

    def blocks(self) -> Iterator[Any]:
        """All columns of a single file, in record batches of text. If several columns have no name, they are
        omitted.

        Raises SpecError for duplicate names, RecordError.
        """
        (path,) = self.paths
        head = read_head(path, self.dialect, self.encoding)
        has_several_unnamed = any(head.names) and head.names.count("") > 1
        names = [*head.names, *(name for name in partition_of(path) if name not in head.names)]
        wanted = {name: name for name in names if name or not has_several_unnamed}
        if problems := list(not_once(wanted, names)):
            raise SpecError([problem.at(f"{path}:1") for problem in problems])
        for part in self._parts([head], wanted):
            yield from part.blocks()

    def lines(self) -> Iterator[tuple[int, dict[str, str]]]:
        """The line on which each row of a single file begins, and its cells by column, with quotes removed.

        Raises RecordError.
        """
        (path,) = self.paths
        head = read_head(path, self.dialect, self.encoding)
        for part in self._parts([head], {}):
            if isinstance(part, CsvPart):
                for line, cells in part.lines():
                    yield line, dict(zip(head.names, cells, strict=False))


def notes_of_names(head: Head) -> Iterator[str]:
    """A note on each name that is given several times."""
    for name in dict.fromkeys(name for name in head.given if name and head.given.count(name) > 1):
        same = [new for new, old in zip(head.names, head.given, strict=True) if old == name]
        yield f"columns of one name are numbered: {', '.join(same)}"


def _long_row(size: int) -> Problem:
    return long_row_problem(size, hint="is a quote missing?")


@dataclass(frozen=True, kw_only=True)
class CsvPart:
    """Consecutive rows of a CSV file.

    Attributes:
        path: the path of the file.
        dialect: the notation of rows.
        encoding: the encoding of the text.
        header: the names of the columns.
        wanted: the column of each feature, and of each extra name.
        media: the form of paths, by feature.
        notations: the notations of columns for which options set one.
        span: the bytes of the rows.
    """

    path: Location
    dialect: Dialect
    encoding: str
    header: tuple[str, ...]
    wanted: Mapping[str, str]
    media: Mapping[str, str]
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
        return f"{self.path}:{self._places.of(row)}"

    @property
    def _ignores_empty_lines(self) -> bool:
        """Whether empty lines are skipped; in a file with a single column, an empty line is an empty cell,
        unless it is left of a comment.
        """
        return len(self.header) != 1 or self.dialect.comment is not None

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
        for piece in self.span.pieces(self.path, self.encoding):
            if piece.too_long:
                yield RecordError(_long_row(piece.too_long), 0)
            elif (data := self._cleaned(piece)) and not self._is_empty(data):
                for block in self._parsed(pyarrow, data):
                    trimmed = self._trimmed(pyarrow, block) if self.dialect.trim else block
                    yield with_partition(trimmed, self._partition)

    @cached_property
    def _partition(self) -> Mapping[str, Any]:
        """The wanted columns in the names of the folders."""
        wanted, text = {*self.wanted.values()} - {*self.header}, arrow().large_string()
        texts = partition_of(self.path)
        return {name: arrow().scalar(texts[name], text) for name in texts if name in wanted}

    def _is_empty(self, data: bytes) -> bool:
        """Whether lines are all empty and no rows, which Arrow refuses."""
        return self._ignores_empty_lines and data[:1] in b"\r\n" and not data.strip(b"\r\n")

    def _cleaned(self, piece: RowPiece) -> bytes:
        data = piece.data
        if self.dialect.comment is not None:
            data = without_comments(data, self.dialect)
        return self.dialect.cleaned(data, str(self.path), piece.line)

    def _trimmed(self, pyarrow: Any, block: Any) -> Any:
        """A record batch without spaces around the cells; a cell of spaces is empty."""
        columns = []
        for column in block.columns:
            texts = pyarrow.compute.utf8_trim(column, " \t")
            is_empty = pyarrow.compute.equal(pyarrow.compute.binary_length(texts), 0)
            was_empty = pyarrow.compute.equal(pyarrow.compute.binary_length(column), 0)
            of_spaces = pyarrow.compute.and_not(is_empty, was_empty)
            columns.append(pyarrow.compute.if_else(of_spaces, None, texts))
        return pyarrow.RecordBatch.from_arrays(columns, schema=block.schema)

    def _parsed(self, pyarrow: Any, data: bytes) -> Any:
        """The record batches of a piece of whole rows."""
        from pyarrow import csv as arrow_csv

        wanted = set(self.wanted.values())
        columns = [column for column in self.header if column in wanted]
        # Without a line break at the end, Arrow takes an empty last cell for a quoted cell if another cell of
        # the row is quoted.
        data += b"\n" if data[-1:] not in b"\r\n" else b""
        # a thread of `open_csv` may still end when the process does, which then aborts (pyarrow 16)
        table = arrow_csv.read_csv(
            pyarrow.BufferReader(data),
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                # if a block ends within a CRLF, Arrow drops the newline, also in quotes
                block_size=max(1, len(data)),
                column_names=self.header,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self.dialect.mark,
                quote_char=self.dialect.quote or False,
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
        return table.to_batches()

    def _columns(
        self, block: Any, schema: Schema, extra: tuple[str, ...], start: int, stop: int
    ) -> dict[str, Any]:
        batch = block.slice(start, stop - start)
        features, folder = schema.names, self.path.parent

        def values_of(name: str) -> Any:
            column = self.wanted.get(name)
            if column is None:
                return [None] * batch.num_rows
            notation, form = self.notations.get(column), self.media.get(name)
            return from_text(batch.column(column), features[name], folder, notation, form)

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
        return (line for line, _ in self.lines())

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """The line on which each row begins, and its cells; no cells for a row that is too long."""
        for piece in self.span.pieces(self.path, self.encoding):
            if piece.too_long:
                yield piece.line, []
                continue
            data = io.BytesIO(self._cleaned(piece))
            with io.TextIOWrapper(data, "utf-8", "surrogateescape", newline="") as file:
                line = piece.line
                for lines, cells in self.dialect.rows(file):
                    if cells or not self._ignores_empty_lines:
                        yield line, cells
                    line = piece.line + lines

    def _no_text(self) -> Problem | None:
        """The problem of the first wanted cell that is not valid in UTF-8."""
        for line, cells in self.lines():
            named = zip(self.header, cells, strict=False)
            text = "".join(cell for name, cell in named if name in self.wanted.values())
            if got := no_utf8(text):
                return Problem(where=f"{self.path}:{line}", expected=UTF8, got=got, hint=OTHER_ENCODING)
        return None

    def _uneven(self, message: str) -> Problem:
        """The problem of the first row with too many or too few cells, or else Arrow's message for the
        file.
        """
        for line, cells in self.lines():
            if cells and len(cells) != len(self.header):
                named = "the header" if self.dialect.header else "the first row"
                expected = f"{counted(len(self.header), 'cell')}, as in {named}"
                got = f"{len(cells):,}: `{self.dialect.mark.join(cells)}`"
                comment = self.dialect.comment
                is_comment = comment is not None and cells[0].lstrip(" \t").startswith(comment)
                hint = f"a comment has no spaces before `{comment}`" if is_comment else ""
                return Problem(where=f"{self.path}:{line}", expected=expected, got=got, hint=hint)
        got = re.sub(r"^CSV parse error: (Row #\d+: )?", "", message)  # Arrow counts the rows of the part
        return Problem(where=str(self.path), expected="CSV", got=got)
