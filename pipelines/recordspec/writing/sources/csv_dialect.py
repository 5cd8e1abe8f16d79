"""Dialects of CSV: delimiters, quotes, comments, spaces around cells, and the place of the names."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from recordspec.errors import Problem, RecordError, counted
from recordspec.locations import Location, open_file
from recordspec.writing.sources.text_files import BOM, UTF8, TextStream, is_divisible, is_utf8

# The delimiter that stands for one space or tab, or several.
WHITESPACE = "whitespace"
OTHER_ENCODING = "`encoding` of the source names another, such as windows-1252 or utf-16"

# The line from which Excel takes the delimiter.
EXCEL_DELIMITER = re.compile('"?sep=[^\r\n]"?', re.IGNORECASE)
_LONGEST_HEADER = 1 << 20
_FIRST_BYTES = 1 << 16
_LAST_BYTES = 1 << 12
# In a larger file, the lines up to its end are not counted.
_LARGEST_COUNTED = 1 << 30
_BREAKS = re.compile(b"\r\n|\r|\n")
# The character that Python 3.10 reads as NUL, which its `csv` refuses; no byte is decoded to it.
_NUL = "\udc00"


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The notation of rows. The fields are options of the source `csv`.

    Attributes:
        delimiter: one character, or `whitespace`.
        quote: the character around cells; None if cells are not quoted.
        comment: the first character of lines that are comments; None if there are none.
        trim: whether spaces and tabs around cells are dropped.
        header: whether the first row has the names of the columns, or the names.
        skip_lines: the number of lines before the first row.
    """

    delimiter: str = ","
    quote: str | None = '"'
    comment: str | None = None
    trim: bool = False
    header: bool | tuple[str, ...] = True
    skip_lines: int = 0

    def problems(self) -> Iterator[Problem]:
        """Yields the problems of the options."""
        if self.delimiter != WHITESPACE and not _is_mark(self.delimiter, '"'):
            expected = f"one ASCII character, no quote and no line break; or {WHITESPACE}"
            yield Problem(path=("delimiter",), expected=expected, got=repr(self.delimiter))
            return
        for option, others in (("quote", self.delimiter), ("comment", self.delimiter + (self.quote or ""))):
            mark = getattr(self, option)
            if mark is not None and (not _is_mark(mark, others) or mark.isspace()):
                expected = "one ASCII character that is no space and no delimiter, or null"
                yield Problem(path=(option,), expected=expected, got=repr(mark))
        if self.skip_lines < 0:
            yield Problem(path=("skip_lines",), expected="at least 0", got=str(self.skip_lines))
        names = [] if isinstance(self.header, bool) else self.header
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            yield Problem(path=("header",), expected="every name once", got=f"`{name}` again")
        if names == ():
            expected = "the names of the columns, true or false"
            yield Problem(path=("header",), expected=expected, got="no names")

    @property
    def mark(self) -> str:
        """The character between the cells of cleaned rows."""
        return "\t" if self.delimiter == WHITESPACE else self.delimiter

    @property
    def delimiters(self) -> bytes:
        """The characters that end a cell."""
        return b" \t" if self.delimiter == WHITESPACE else self.delimiter.encode()

    @property
    def blanks(self) -> bytes:
        """The characters around cells that are dropped."""
        return b" \t".replace(self.delimiters, b"") if self.trim else b""

    def cleaned(self, data: bytes, where: str, line: int) -> bytes:
        """Rows as Arrow and Python read them: with one character between two cells, and no spaces around
        quotes. Each line stays a line.

        Raises RecordError for text after a quoted cell; `line` is the number of the first line.
        """
        if self.delimiter == WHITESPACE:
            return self._spaces.sub(_one_space, data)
        if not self.trim or self.quote is None:
            return data
        quote = self.quote.encode()
        blanks = [bytes([blank]) for blank in self.blanks]
        if not any(blank + quote in data or quote + blank in data for blank in blanks):
            return data

        def bare(match: re.Match[bytes]) -> bytes:
            if match[3]:
                got = f"`{(match[2] + b' ' + match[3]).decode(errors='replace')}`"
                number = line + len(_BREAKS.findall(data, 0, match.end(2)))
                problem = Problem(where=f"{where}:{number}", expected=AFTER_QUOTE, got=got, hint=DOUBLED)
                raise RecordError(problem)
            return match[1] + match[2]

        return self._quoted.sub(bare, data)

    @cached_property
    def _quoted(self) -> re.Pattern[bytes]:
        """A quoted cell with the spaces around it, and text after it, which is an error."""
        ends, blanks = re.escape(self.delimiters), re.escape(self.blanks)
        cell = _quoted_cell(self.quote or "")
        form = b"(^|[%s\r\n])[%s]*(%s)(?:[%s]+([^%s\r\n]?)|(?=[%s\r\n]|$))"
        return re.compile(form % (ends, blanks, cell, blanks, ends, ends))

    def is_open(self, data: bytes) -> bool:
        """Whether the last cell of rows is quoted and goes on, if spaces around such a cell are dropped."""
        if not self.trim or self.quote is None or self.quote.encode() not in data:
            return False
        rest = self._quoted.sub(rb"\1", data)
        start = b"(?:^|[%s\r\n])[%s]*%s"
        marks = re.escape(self.delimiters), re.escape(self.blanks), re.escape(self.quote.encode())
        return re.search(start % marks, rest) is not None

    @cached_property
    def _spaces(self) -> re.Pattern[bytes]:
        """The spaces at the start or the end of a line, between cells, or a quoted cell."""
        quoted = b"" if self.quote is None else b"|(?<![^ \t\r\n])%s" % _quoted_cell(self.quote)
        return re.compile(b"(?<![^\r\n])[ \t]+|[ \t]+(?=[\r\n]|$)|([ \t]+)%s" % quoted)

    def rows(self, text: Iterable[str], *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """The cells of each row of cleaned text, and the number of lines up to its end. With `strict`, raises
        `csv.Error` for quotes that are not in pairs around cells.
        """
        quoting = csv.QUOTE_NONE if self.quote is None else csv.QUOTE_MINIMAL
        options: dict[str, Any] = {"delimiter": self.mark, "quotechar": self.quote, "quoting": quoting}
        options["strict"] = strict
        csv.field_size_limit(sys.maxsize)
        if sys.version_info >= (3, 11):
            reader = csv.reader(text, **options)
            for cells in reader:
                yield reader.line_num, self._trimmed(cells)
        else:
            reader = csv.reader((line.replace("\0", _NUL) for line in text), **options)
            for cells in reader:
                yield reader.line_num, self._trimmed([cell.replace(_NUL, "\0") for cell in cells])

    def _trimmed(self, cells: list[str]) -> list[str]:
        return [cell.strip(" \t") for cell in cells] if self.trim else cells


# The expected values of quotes that are no pairs around cells.
PAIRS = "quotes in pairs"
AFTER_QUOTE = "a delimiter or a line break after a quoted cell"
UNQUOTED = "if the file does not quote cells, `quote: null`"
DOUBLED = f'a quote in a quoted cell is doubled, `""`; {UNQUOTED}'


def _one_space(match: re.Match[bytes]) -> bytes:
    text: bytes = match[0]
    if match[1]:
        return b"\t"
    return b"" if text[:1] in b" \t" else text


def _quoted_cell(quote: str) -> bytes:
    mark = re.escape(quote.encode())
    return b"%s(?:[^%s]|%s%s)*%s" % (mark, mark, mark, mark, mark)


def _is_mark(text: str, others: str) -> bool:
    """Whether a text is one ASCII character that ends no line and is not among the others."""
    return len(text) == 1 and text.isascii() and text not in "\0\r\n" + others


class Head(NamedTuple):
    """The start of a CSV file.

    Attributes:
        names: the names of the columns; a name that is given several times has a number, `a`, `a_2`.
        given: the names as they are given.
        first: the cells of the first rows, if they were asked for.
        start: the offset of the first row: in bytes of the file if it is divisible, else of its text in
            UTF-8.
        line: the number of its line.
    """

    names: tuple[str, ...]
    given: tuple[str, ...]
    first: tuple[tuple[str, ...], ...]
    start: int
    line: int


def read_head(path: Location, dialect: Dialect, encoding: str = "utf-8", rows: int = 0) -> Head:
    """The names of a file's columns, the place of its rows, and the first `rows` of them.

    Raises StoreError; RecordError if the file has no names.
    """
    with open_file(path) as file:
        divisible = is_divisible(file, encoding)
        has_bom = divisible and is_utf8(encoding) and file.read(len(BOM)) == BOM
        file.seek(0)
        stream = TextStream(file, encoding)
        data = stream.read(_LONGEST_HEADER)
        is_whole = not stream.read(1)
    # invalid UTF-8 in the rows after the header is reported when the rows are read
    text = io.StringIO(data.decode("utf-8", "surrogateescape"), newline="")
    lines = _skipped(text, dialect)
    start, where = text.tell(), f"{path}:{lines + 1}"
    wrong = None
    try:
        count, header = next(_rows_of(text, dialect, str(path), lines + 1, strict=True), (0, []))
    except csv.Error as error:
        count, header, wrong = 0, [], str(error)
    end = text.tell()
    is_at_end = not text.read(1)
    if is_whole and is_at_end and stream.fault is not None:
        raise stream.fault_at(path, 1)
    if not is_whole and is_at_end:
        expected = f"a header of at most {_LONGEST_HEADER:,} bytes"
        raise RecordError(Problem(where=where, expected=expected, got="a longer one"))
    if wrong is not None:
        line = text.getvalue()[start:].splitlines()[0]
        raise RecordError(_wrong_quotes(wrong, line).at(where))
    if got := no_utf8("".join(header)):
        raise RecordError(Problem(where=where, expected=UTF8, got=got, hint=OTHER_ENCODING))
    _check_header(where, header, text.getvalue()[start:], dialect)
    names = _names(where, header, dialect)
    if dialect.header is True:
        start, lines = end, lines + count
    text.seek(start)
    first = [cells for _, cells in islice(_rows_of(text, dialect, str(path), lines + 1), rows)]
    before = text.getvalue()[:start]
    is_utf8_text = not divisible or is_utf8(encoding)
    size = len(before.encode("utf-8", "surrogateescape") if is_utf8_text else before)
    return Head(
        names=names,
        given=names if dialect.header is not True else tuple(header),
        first=tuple(map(tuple, first)),
        start=size + len(BOM) * has_bom,
        line=lines + 1,
    )


def first_text(path: Location, encoding: str = "utf-8") -> str:
    """The text at the start of a file, up to the last line break in it. Raises StoreError."""
    with open_file(path) as file:
        data = TextStream(file, encoding).read(_FIRST_BYTES)
    if len(data) == _FIRST_BYTES:
        data = data[: data.rfind(b"\n") + 1]
    return data.decode("utf-8", "surrogateescape")


class Tail(NamedTuple):
    """The end of a CSV file.

    Attributes:
        rows: the last rows.
        start: the offset of the first of them, in bytes.
        lines: the number of lines from there to the end of the last row.
    """

    rows: tuple[tuple[str, ...], ...]
    start: int
    lines: int


def read_tail(path: Location, dialect: Dialect, encoding: str, start: int) -> Tail | None:
    """The rows in the last bytes of a file whose first row is at the offset `start`. None for an object in a
    store, for a compressed file, and if a row is too long, or its quotes are open.

    Raises StoreError.
    """
    if not isinstance(path, Path):
        return None
    with open_file(path) as file:
        if not is_divisible(file, encoding):
            return None
        begin = max(start, file.seek(0, io.SEEK_END) - _LAST_BYTES)
        file.seek(begin)
        data = file.read(_LAST_BYTES)
    if begin > start:  # within a row
        cut = data.find(b"\n") + 1
        begin, data = (begin + cut, data[cut:]) if cut else (begin, b"")
    text = io.StringIO(data.decode(encoding, "replace"), newline="")
    try:
        rows = [(line, tuple(cells)) for line, cells in _rows_of(text, dialect, str(path), 1) if cells]
    except RecordError:
        return None
    return Tail(tuple(cells for _, cells in rows), begin, rows[-1][0]) if rows else None


def lines_before(path: Path, offset: int) -> int | None:
    """The number of lines before an offset of a file, in bytes; None if that would take long. Raises
    StoreError.
    """
    if offset > _LARGEST_COUNTED:
        return None
    with open_file(path) as file:
        return sum(
            file.read(min(_LONGEST_HEADER, offset - done)).count(b"\n")
            for done in range(0, offset, _LONGEST_HEADER)
        )


def _wrong_quotes(error: str, line: str) -> Problem:
    """The problem of quotes in a header, for an error of Python's `csv`."""
    if "end of data" in error:
        return Problem(expected=PAIRS, got="one that is never closed", hint=UNQUOTED)
    return Problem(expected=AFTER_QUOTE, got=f"`{line[:60]}`", hint=DOUBLED)


def _rows_of(
    text: io.StringIO, dialect: Dialect, where: str, line: int, *, strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """The rows of text that is not cleaned, one by one, without comments; `line` is the number of the first
    line in the file `where`.
    """

    def lines() -> Iterator[str]:
        number, open_cell = line, b""
        for text_line in text:
            raw = text_line.encode("utf-8", "surrogateescape")
            if not open_cell and dialect.comment is not None and text_line.startswith(dialect.comment):
                yield text_line[len(text_line.rstrip("\r\n")) :]
                number += 1
                continue
            raw = open_cell + raw
            if dialect.is_open(raw):  # it is cleaned as a whole
                open_cell = raw
                continue
            yield from _lines_in(dialect.cleaned(raw, where, number))
            number, open_cell = number + len(_BREAKS.findall(raw)), b""
        if open_cell:
            yield from _lines_in(dialect.cleaned(open_cell, where, number))

    return dialect.rows(lines(), strict=strict)


def _lines_in(data: bytes) -> list[str]:
    return io.StringIO(data.decode("utf-8", "surrogateescape"), newline="").readlines()


def _skipped(text: io.StringIO, dialect: Dialect) -> int:
    """Skips the lines before the first row. Returns their number."""
    lines = sum(bool(text.readline()) for _ in range(dialect.skip_lines))
    if dialect.comment is not None:
        while True:
            place = text.tell()
            line = text.readline()
            if not line or not (line.startswith(dialect.comment) or not line.strip("\r\n")):
                text.seek(place)
                break
            lines += 1
    return lines


def _check_header(where: str, header: Sequence[str], text: str, dialect: Dialect) -> None:
    """Raises RecordError if the first row is no header."""
    expected = "a header with the names of the columns" if dialect.header is True else "a row"
    got, hint = "", ""
    first = text.partition("\n")[0].rstrip("\r")
    if dialect.header is True and EXCEL_DELIMITER.fullmatch(first):
        got, hint = f"`{first}`", "from which Excel takes the delimiter: `skip_lines: 1` skips it"
    elif not header and isinstance(dialect.header, bool):
        got = "an empty line" if text else "an empty file"
        if not text and dialect.skip_lines:
            got, hint = "the end of the file", f"`skip_lines: {dialect.skip_lines}` skips all of its lines"
    if got:
        raise RecordError(Problem(where=where, expected=expected, got=got, hint=hint))


def _names(where: str, cells: Sequence[str], dialect: Dialect) -> tuple[str, ...]:
    """The names of the columns; `cells` is the first row."""
    if isinstance(dialect.header, tuple):
        if cells and len(cells) != len(dialect.header):
            expected = f"{counted(len(dialect.header), 'cell')}, as in `header` of the source"
            got = f"{len(cells):,}: `{dialect.mark.join(cells)}`"
            raise RecordError(Problem(where=where, expected=expected, got=got))
        return dialect.header
    if dialect.header is False:
        return tuple(f"column_{number}" for number in range(1, len(cells) + 1))
    given, numbers = Counter(cells), dict.fromkeys(cells, 1)
    unique: dict[str, None] = {}
    names = []
    for name in cells:
        one = name
        while name and (one in unique or (one != name and one in given)):
            numbers[name] += 1
            one = f"{name}_{numbers[name]}"
        unique[one] = None
        names.append(one)
    return tuple(names)


def no_utf8(text: str) -> str:
    """The first byte of invalid UTF-8 in a text decoded with "surrogateescape"; "" if there is none."""
    bad = re.search("[\udc80-\udcff]", text)
    return f"the byte 0x{ord(bad[0]) - 0xDC00:02x}" if bad else ""
