"""Divides text files between rows into byte ranges, which processes read independently. A compressed file is
read as a whole, and so is a file in an encoding whose bytes do not show where rows end.

The ends of rows are found by a scan of all bytes. On a cluster, tasks scan chunks of the files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from recordspec.errors import Problem, RecordError
from recordspec.executors import cluster
from recordspec.locations import Location, open_file
from recordspec.schema import values
from recordspec.schema.schema import Schema
from recordspec.wire.arrays import Bytes, Ints, Mask
from recordspec.writing.sources import base
from recordspec.writing.sources.base import Batches
from recordspec.writing.sources.csv_dialect import AFTER_QUOTE, DOUBLED, PAIRS, UNQUOTED, Dialect, Head
from recordspec.writing.sources.text_files import BOM, TextStream, encoding_error, is_divisible, is_utf8

# Bytes of a block. Its arrays stay in the CPU caches: with 16 MiB at a time, it takes twice as long.
_BLOCK = 256 << 10
# Bytes of rows that are parsed together, for the same reason.
_PIECE_BYTES = 4 << 20
# Bytes of a file that a task of a cluster scans, and bytes in which a line feed is searched between tasks.
_CHUNK, _LINE_BYTES = 256 << 20, 64 << 10
_NEWLINE, _RETURN = b"\n\r"


@dataclass(frozen=True)
class RowPiece:
    """Consecutive whole rows of a file.

    Attributes:
        line: the number, from 1, of the first line.
        data: the bytes of the rows, in UTF-8.
        too_long: the size of a row that is longer than `values.LONGEST_ROW` and omitted from `data`; else 0.
    """

    line: int
    data: bytes
    too_long: int = 0


@dataclass(frozen=True)
class ByteRange:
    """Bytes `start` to `stop` of a file; `line` is the number, from 1, of the first line in them.

    Attributes:
        too_long: whether the range is a row longer than `values.LONGEST_ROW`.
        cuts: offsets between rows, about `_PIECE_BYTES` apart, with their line numbers.
    """

    start: int
    stop: int
    line: int = 1
    too_long: bool = False
    cuts: tuple[tuple[int, int], ...] = ()

    def pieces(self, path: Location, encoding: str = "utf-8") -> Iterator[RowPiece]:
        """The range in pieces of whole rows. Raises StoreError, and RecordError for bytes that are
        invalid in the encoding; UTF-8 is not checked.
        """
        with open_file(path) as file:
            file.seek(self.start)
            begins = [(self.start, self.line), *self.cuts]
            for (start, line), stop in zip(begins, [*(cut for cut, _ in self.cuts), self.stop], strict=True):
                data = file.read(stop - start)
                if not is_utf8(encoding):
                    data = _to_utf8(data, encoding, path, line)
                yield RowPiece(line, data)


@dataclass(frozen=True)
class WholeFile:
    """All rows of a file, read from the start.

    Attributes:
        dialect: the dialect of a CSV file; None for a file in which each line is a row.
        begin: the offset of the first row, in the text of the file.
        line: the number, from 1, of its line.
    """

    dialect: Dialect | None = None
    begin: int = 0
    line: int = 1

    start: ClassVar[int] = 0

    def pieces(self, path: Location, encoding: str = "utf-8") -> Iterator[RowPiece]:
        """The file in pieces of whole rows.

        Raises StoreError; RecordError for bytes that are invalid in the compression or the encoding, and for
        the reasons given at `csv_ranges`.
        """
        with open_file(path) as file:
            stream = TextStream(file, encoding)
            stream.read(self.begin)
            rows = _HeldRows(stream)
            scanner = _scanner(self.dialect, self.line)
            start, line = 0, self.line  # of the incomplete piece
            row, row_line = start, line  # of the incomplete row
            for ends, lines in _rows(rows, 0, path, scanner):
                if rows.ended_early and scanner.is_last:
                    break  # the rest is a part of a row
                starts = np.concatenate([[row], ends[:-1]])
                start_lines = np.concatenate([[row_line], lines[:-1]])
                for index in np.flatnonzero(ends - starts > values.LONGEST_ROW).tolist():
                    if start < starts[index]:
                        yield RowPiece(line, rows.take(int(starts[index])))
                    start, stop = int(starts[index]), int(ends[index])
                    rows.take(stop)
                    yield RowPiece(int(start_lines[index]), b"", stop - start)
                    start, line = stop, int(lines[index])
                row, row_line = int(ends[-1]), int(lines[-1])
                rows.row = row
                if row - start >= _PIECE_BYTES:
                    yield RowPiece(line, rows.take(row))
                    start, line = row, row_line
            if rows.ended_early:
                raise rows.fault_at(path, scanner.line)
            _check_closed(scanner.is_open, path, row_line)
            if start < row:
                yield RowPiece(line, rows.take(row))


class _HeldRows:
    """A stream that keeps the bytes read from it until they are taken. Of a row that is too long, it keeps
    only the end.

    Attributes:
        row: the offset of the incomplete row.
    """

    def __init__(self, stream: TextStream) -> None:
        self._stream = stream
        self.fault_at = stream.fault_at
        self._before = bytearray()  # complete rows before a row that is too long
        self._bytes, self._start = bytearray(), 0  # the bytes after them, and their offset
        self.row = 0

    @property
    def ended_early(self) -> bool:
        """Whether the stream ended before the file did."""
        return self._stream.fault is not None

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if self._start + len(self._bytes) - self.row > values.LONGEST_ROW:
            self._before += self._bytes[: max(0, self.row - self._start)]
            self._start += len(self._bytes)
            self._bytes.clear()
        self._bytes += data
        return data

    def take(self, stop: int) -> bytes:
        """Takes the kept bytes up to `stop`, and forgets them."""
        size = max(0, stop - self._start)
        data = bytes(self._before + self._bytes[:size])
        self._before.clear()
        del self._bytes[:size]
        self._start += size
        return data


def _to_utf8(data: bytes, encoding: str, path: Location, line: int) -> bytes:
    """Converts rows in another encoding to UTF-8. Raises RecordError with the line; `line` is the first
    line.
    """
    try:
        return str(data, encoding).encode()
    except UnicodeError as error:
        if isinstance(error, UnicodeDecodeError):
            line += len(re.findall(b"\r\n|\r|\n", data[: error.start]))
        raise RecordError(encoding_error(encoding, error).at(f"{path}:{line}")) from None


def line_ranges(paths: Iterable[Location]) -> Iterator[list[ByteRange] | list[WholeFile]]:
    """The parts of each file in which each line is a row. Raises StoreError."""
    return _ranges(_TextFile(path) for path in paths)


def csv_ranges(
    paths: Iterable[Location], dialect: Dialect, heads: Iterable[Head], encoding: str = "utf-8"
) -> Iterator[list[ByteRange] | list[WholeFile]]:
    """The parts of the rows of each CSV file. A line break in quotes does not end a row.

    Raises StoreError. Raises RecordError for an unclosed quote, after which the rest of the file would be one
    cell, and for text after a closing quote, which Arrow and Python drop. For a file that is read as a whole,
    `pieces` raises these errors.
    """
    return _ranges(
        _TextFile(path, dialect, encoding, head.start, head.line)
        for path, head in zip(paths, heads, strict=True)
    )


def _ranges(texts: Iterable[_TextFile]) -> Iterator[list[ByteRange] | list[WholeFile]]:
    """The parts of each file. On a cluster, the files are scanned by its executors, in chunks."""
    running_on, step = cluster(), _step()
    if running_on is None:
        for text in texts:
            yield text.divided([_FileChunk(text.start, None)], step) if text.is_divisible else [text.whole]
        return
    files = [(text, text.chunks if text.is_divisible else []) for text in texts]
    tasks = ((text, *chunk, step) for text, chunks in files for chunk in chunks)
    scanned = running_on.map(_scan_chunk, tasks)
    for text, chunks in files:
        yield text.divided(islice(scanned, len(chunks)), step) if chunks else [text.whole]


def _scan_chunk(text: _TextFile, start: int, stop: int | None, step: int, attempt: str) -> _FileChunk:
    """Scans a chunk as if it began outside of quotes, and as if it began within: a task of a cluster.

    An error may come from the case that is not true, and the number of its line is unknown. So errors are
    dropped here, and `_TextFile.divided` scans the chunk again.
    """
    scans: list[_Scan | None] = [None, None]
    for is_open in (False, True) if text.dialect is not None and text.dialect.quote else (False,):
        with suppress(RecordError):
            scans[is_open] = text.scan(start, stop, step, 1, is_open)
    return _FileChunk(start, stop, *scans)


def _step() -> int:
    """The step in bytes: a scan keeps the rows that contain a multiple of it, about one row for each MiB, and
    each row that is too long.
    """
    return max(1, min(base.PART_BYTES // 32, _PIECE_BYTES // 4, values.LONGEST_ROW))


class _Scan(NamedTuple):
    """The rows that end in a chunk of a file.

    Attributes:
        line: the number given to the first line of the chunk.
        rows: of some rows, their first byte, its line, the byte after them, and its line, `[n, 4]`: of the
            first row, and of rows in which a multiple of the step lies. The start of the first row is not
            known.
        last: the byte after the last row, and its line; None if no row ends in the chunk.
        lines: the number of line breaks.
        is_open: whether the chunk ends within quotes.
    """

    line: int
    rows: Ints
    last: tuple[int, int] | None
    lines: int
    is_open: bool


class _FileChunk(NamedTuple):
    """Bytes `start` to `stop` of a file, or to its end; and their scans, if they begin outside of quotes
    (`closed`) and within (`opened`); None if they are not scanned yet, or have an error.
    """

    start: int
    stop: int | None
    closed: _Scan | None = None
    opened: _Scan | None = None


@dataclass(frozen=True)
class _TextFile:
    """A text file.

    Attributes:
        dialect: the dialect of a CSV file; None for a file in which each line is a row.
        start: the offset of the first row.
        line: the number, from 1, of its line.
    """

    path: Location
    dialect: Dialect | None = None
    encoding: str = "utf-8"
    start: int = 0
    line: int = 1

    @property
    def is_divisible(self) -> bool:
        with open_file(self.path) as file:
            return is_divisible(file, self.encoding)

    @property
    def whole(self) -> WholeFile:
        return WholeFile(self.dialect, self.start, self.line)

    @property
    def chunks(self) -> list[tuple[int, int | None]]:
        """The offsets of chunks of about `_CHUNK` bytes, each of which begins after a line feed; the last
        has no end. Where no line feed is near, a chunk is larger.

        After a line feed, the rest of a scan depends only on whether the line feed is in quotes.
        """
        with open_file(self.path) as file:
            starts, size = [self.start], file.seek(0, os.SEEK_END)
            for place in range(self.start + _CHUNK, size, _CHUNK):
                file.seek(place)
                found = file.read(_LINE_BYTES).find(b"\n") + 1
                if found and starts[-1] < place + found < size:
                    starts.append(place + found)
        return list(zip(starts, [*starts[1:], None], strict=True))

    def scan(self, start: int, stop: int | None, step: int, line: int, is_open: bool = False) -> _Scan:
        """Scans a chunk from a line with this number, which may begin in quotes.

        Raises StoreError, and RecordError for text after a closing quote.
        """
        scanner = _scanner(self.dialect, line)
        scanner.is_open = is_open
        kept, row = list[Ints](), (start, line)
        with open_file(self.path) as file:
            begin = file.seek(start) or (_skip_bom(file) if self.dialect is None else 0)
            span = file if stop is None else _Span(file, stop - begin)
            for ends, lines in _rows(span, begin, self.path, scanner):
                if not kept or row[0] // step != ends[-1] // step:
                    is_kept = np.diff(ends // step, prepend=row[0] // step) != 0
                    is_kept[0] |= not kept
                    some = np.flatnonzero(is_kept)
                    rows = np.stack([ends[some - 1], lines[some - 1], ends[some], lines[some]], axis=1)
                    if is_kept[0]:
                        rows[0, :2] = row
                    kept.append(rows)
                row = int(ends[-1]), int(lines[-1])
        every = np.concatenate(kept) if kept else np.empty((0, 4), np.int64)
        return _Scan(line, every, row if kept else None, scanner.line - line, scanner.is_open)

    def divided(self, chunks: Iterable[_FileChunk], step: int) -> list[ByteRange]:
        """Ranges of about `base.PART_BYTES`; a row that is too long is a range of its own. They are the same
        for any chunks.
        """
        ranges = list[ByteRange]()
        start, stop, line = self.start, self.start, self.line  # of the incomplete range
        cuts: list[tuple[int, int]] = []  # in it
        for row, row_line, stop, stop_line in self._rows(chunks, step):
            if stop - row > values.LONGEST_ROW:
                if start < row:
                    ranges.append(ByteRange(start, row, line, cuts=_within(cuts, row)))
                ranges.append(ByteRange(row, stop, row_line, too_long=True))
            elif stop - start >= base.PART_BYTES:
                ranges.append(ByteRange(start, stop, line, cuts=_within(cuts, stop)))
            else:
                if stop - max([start, *(cut for cut, _ in cuts[-1:])]) >= _PIECE_BYTES:
                    cuts.append((stop, stop_line))
                continue
            start, line, cuts = stop, stop_line, []
        if start < stop or not ranges:
            ranges.append(ByteRange(start, stop, line, cuts=_within(cuts, stop)))
        return ranges

    def _rows(self, chunks: Iterable[_FileChunk], step: int) -> Iterator[tuple[int, int, int, int]]:
        """Yields the first byte of a row, its line, the byte after it, and its line: of the rows in which a
        multiple of the step lies, and at last of an empty row after all rows.

        Raises RecordError for an unclosed quote, and the errors of `scan`.
        """
        row, line = self.start, self.line  # of the incomplete row
        first, is_open = self.line, False  # line of the chunk
        for chunk in chunks:
            scan = chunk.opened if is_open else chunk.closed
            if scan is None:  # here an error has the number of its line
                scan = self.scan(chunk.start, chunk.stop, step, first, is_open)
            above = first - scan.line  # the lines above the chunk that its scan did not know
            rows = scan.rows + np.array([0, above, 0, above])
            if scan.last is not None:
                rows[0, :2] = row, line
                yield from rows[int(row // step == rows[0, 2] // step) :].tolist()
                row, line = scan.last[0], scan.last[1] + above
            first, is_open = first + scan.lines, scan.is_open
        _check_closed(is_open, self.path, line)
        yield row, line, row, line


@dataclass(frozen=True, kw_only=True)
class LongRow:
    """A part of a file with a single row, which is refused because it is longer than `values.LONGEST_ROW`."""

    path: Location
    line: int
    problem: Problem

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        yield RecordError(self.problem, 0)

    def blocks(self) -> Iterator[Any]:
        """Raises RecordError for the row."""
        raise RecordError(self.problem.at(self.place(0)))

    def place(self, row: int) -> str:
        return f"{self.path}:{self.line}"


class _Lines:
    """Finds the line breaks in consecutive windows of a file, and whether each ends a row.

    A window overlaps its neighbours by one byte on each side: `window[1:-1]` are its own bytes.

    Attributes:
        is_open: whether the last window ends within quotes.
        line: the line where the last window ends.
        is_last: whether the end of the file ends the last row.
        stray: the index, in the last window, of the first byte after a closing quote, if it is text.
    """

    is_open = False
    line = 1
    is_last = False
    stray: int | None = None

    def scan(self, window: Bytes) -> tuple[Ints, Mask]:
        """The indices of line breaks in the window, and whether each ends a row."""
        breaks = np.flatnonzero(window[1:-1] == _NEWLINE) + 1
        return breaks, np.ones(len(breaks), np.bool_)


class _QuotedLines(_Lines):
    """Finds the line breaks of a CSV file: a carriage return is a line break, too, and a line break in quotes
    ends no row.

    As in Arrow and Python, a quote at the start of a cell opens, the next quote closes, and other quotes are
    text. `""` within quotes closes and opens at once.

    Attributes:
        comments: the indices of the start and the end of each comment in the last window.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._quote = None if dialect.quote is None else ord(dialect.quote)
        self._comment = None if dialect.comment is None else ord(dialect.comment)
        self._starts = _mask(b"\n\r" + dialect.delimiters)  # the bytes that may precede an opening quote
        # the bytes that may follow a closing quote; `Dialect.cleaned` finds text after spaces
        self._follows = _mask(b"\n\r" + dialect.delimiters + dialect.blanks)
        self._blanks = _mask(dialect.blanks) if dialect.blanks else None
        if self._quote is not None:
            self._follows[self._quote] = True
        self._closes = False  # whether the byte before the window is a closing quote
        self._last = _NEWLINE  # the last byte before the window that is no blank
        self._in_comment = False  # whether the window begins in a comment
        self.comments: list[tuple[int, int]] = []

    def scan(self, window: Bytes) -> tuple[Ints, Mask]:
        inner, behind = window[1:-1], window[2:]
        is_break = (inner == _NEWLINE) | ((inner == _RETURN) & (behind != _NEWLINE))
        breaks = np.flatnonzero(is_break) + 1
        marks = np.empty(0, np.int64) if self._quote is None else np.flatnonzero(inner == self._quote) + 1
        if self._comment is not None:
            marks = self._without_comments(window, marks, breaks)
        odd, quotes = int(self.is_open), self._paired(window, marks)
        behind_quotes = quotes[1 - odd :: 2] + 1
        strays = behind_quotes[~self._follows[window[behind_quotes]]]
        self.stray = int(strays[0]) if len(strays) else None
        self.is_open = bool((odd + len(quotes)) % 2)
        last = int(quotes[-1]) if len(quotes) else 0
        self._closes = not self.is_open and 0 < last == len(window) - 2
        if self._blanks is not None:
            self._last = int(self._before(window, np.array([len(window) - 1]))[0])
        return breaks, np.asarray((np.searchsorted(quotes, breaks) + odd) % 2 == 0)

    def _before(self, window: Bytes, places: Ints) -> Bytes:
        """The last byte before each place that is no blank."""
        before: Bytes = window[places - 1]
        if self._blanks is None or not self._blanks[before].any():
            return before
        known = np.where(self._blanks[window], 0, np.arange(1, len(window) + 1))
        latest = np.maximum.accumulate(known)[places - 1]
        return np.concatenate([np.array([self._last], np.uint8), window])[latest]

    def _paired(self, window: Bytes, quotes: Ints) -> Ints:
        """The quotes that open or close."""
        opening = quotes[int(self.is_open) :: 2]
        beside = window[opening - 1]
        follows = len(opening) > 0 and opening[0] == 1 and beside[0] == self._quote
        may_open = self._starts[self._before(window, opening)] | (beside == self._quote)
        if bool(may_open.all()) and not (follows and not self._closes):
            return quotes
        paired = []
        is_open, closing = self.is_open, 0 if self._closes else -1
        starts = self._starts[self._before(window, quotes)].tolist()
        for place, is_start in zip(quotes.tolist(), starts, strict=True):
            if is_open:
                is_open, closing = False, place
            elif closing == place - 1 or is_start:
                is_open = True
            else:
                continue
            paired.append(place)
        return np.array(paired, np.int64)

    def _without_comments(self, window: Bytes, quotes: Ints, breaks: Ints) -> Ints:
        """The quotes outside of comments. A line in a quoted cell is no comment."""
        limit = len(window) - 1
        first = [1] * (window[0] in (_NEWLINE, _RETURN))
        lines = np.concatenate([np.array(first, np.int64), breaks + 1])
        lines = lines[lines < limit]
        lines = lines[window[lines] == self._comment]
        if self._in_comment:  # its first line
            lines = np.concatenate([np.array([1]), lines[lines > 1]])
        stops = np.concatenate([breaks, [limit]])
        self.comments, kept = [], quotes
        while len(lines):
            ends = stops[np.searchsorted(breaks, lines)]
            places = np.searchsorted(lines, quotes, side="right") - 1
            kept = quotes[(places < 0) | (quotes >= ends[places])]
            paired = self._paired(window, kept)
            are_open = (np.searchsorted(paired, lines) + int(self.is_open)) % 2 == 1
            are_open[: int(self._in_comment)] = False
            if not are_open.any():
                self.comments = list(zip(lines.tolist(), ends.tolist(), strict=True))
                break
            opened = lines[are_open.argmax()]
            closing = next(iter(quotes[quotes > opened].tolist()), limit)
            lines, kept = lines[(lines < opened) | (lines > closing)], quotes
        self._in_comment = bool(self.comments) and self.comments[-1][1] == limit
        return kept


def without_comments(data: bytes, dialect: Dialect) -> bytes:
    """Whole rows without their comments; the line of a comment stays, as an empty line."""
    scanner = _QuotedLines(dialect)
    scanner.scan(np.frombuffer(b"\n" + data + b"\n", np.uint8))
    starts = [0, *(stop - 1 for _, stop in scanner.comments)]
    stops = [*(start - 1 for start, _ in scanner.comments), len(data)]
    return b"".join(data[start:stop] for start, stop in zip(starts, stops, strict=True))


def _mask(characters: bytes) -> Mask:
    mask = np.zeros(256, np.bool_)
    mask[[*characters]] = True
    return mask


def _scanner(dialect: Dialect | None, line: int = 1) -> _Lines:
    scanner = _Lines() if dialect is None else _QuotedLines(dialect)
    scanner.line = line
    return scanner


def _check_closed(is_open: bool, path: Location, line: int) -> None:
    """Raises RecordError if a quote is open at the end of a file; `line` is the line where its row begins."""
    if is_open:
        got = "one that is never closed"
        raise RecordError(Problem(where=f"{path}:{line}", expected=PAIRS, got=got, hint=UNQUOTED))


def _within(cuts: list[tuple[int, int]], stop: int) -> tuple[tuple[int, int], ...]:
    """The cuts before an offset."""
    return tuple((cut, line) for cut, line in cuts if cut < stop)


class _Bytes(Protocol):
    """A stream of bytes, read from its current position to the end."""

    def read(self, size: int, /) -> bytes: ...


class _Span:
    """The next `size` bytes of a file."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._left = file, size

    def read(self, size: int, /) -> bytes:
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        return data


def _rows(file: _Bytes, start: int, path: Location, scanner: _Lines) -> Iterator[tuple[Ints, Ints]]:
    """Yields the ends of the rows of each window, and the line number after each row.

    The end of the file ends the last row, unless a quote is open there.
    """
    end, line = start, scanner.line
    for place, window in _windows(file, start):
        breaks, is_end = scanner.scan(window)
        if scanner.stray is not None:
            before = bytes(window[: scanner.stray + 1][-20:]).splitlines()[-1]
            problem = Problem(
                where=f"{path}:{line + int(np.searchsorted(breaks, scanner.stray))}",
                expected=AFTER_QUOTE,
                got=f"`{before.decode(errors='replace')}`",
                hint=DOUBLED,
            )
            raise RecordError(problem)
        if is_end.any():
            ends = breaks[is_end] + place
            yield ends, np.flatnonzero(is_end) + line + 1
            end = int(ends[-1])
        line += len(breaks)
        scanner.line = line
    size = place + len(window) - 2
    if end < size and not scanner.is_open:
        scanner.is_last = True
        yield np.array([size]), np.array([line])


def _skip_bom(file: IO[bytes]) -> int:
    """Skips the BOM of a file, if it has one. Returns the offset after it."""
    return file.seek(len(BOM) if file.read(len(BOM)) == BOM else 0)


def _windows(file: _Bytes, place: int) -> Iterator[tuple[int, Bytes]]:
    """Yields the rest of a file in windows, each with its offset and one more byte on either side.

    Line breaks are assumed before and after the file.
    """
    edge = b"\n"
    while block := file.read(_BLOCK):
        window = edge + block
        yield place, np.frombuffer(window, np.uint8)
        place, edge = place + len(window) - 2, window[-2:]
    yield place, np.frombuffer(edge + b"\n", np.uint8)
