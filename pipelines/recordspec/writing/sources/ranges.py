"""Files of text, cut between rows."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from recordspec.errors import Problem, RecordError
from recordspec.locations import open_file
from recordspec.spec.schema import Schema
from recordspec.wire.strings import Ints
from recordspec.writing.sources import base
from recordspec.writing.sources.base import Batches

BOM = b"\xef\xbb\xbf"

# A longer row is refused, and the rest of the file is read. Without a limit a row that does not end, since a
# quote is missing, would be in memory several times over. A base64 image has some MiB, 20 s of sound as JSON
# numbers 17.
LONGEST_ROW = 64 << 20
# Arrow reads CSV in blocks of this size, and no longer rows; such a row is a part of its own.
CSV_BLOCK = 16 << 20

# What is computed of a block stays in the caches: of 16 MiB at once it takes twice as long.
_BLOCK = 256 << 10
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'


@dataclass(frozen=True)
class ByteRange:
    """Bytes `start` to `stop` of a file; `line` is the number, from 1, of the first line in them.

    Attributes:
        single: whether they are one row that is long.
    """

    start: int
    stop: int
    line: int = 1
    single: bool = False

    @property
    def too_long(self) -> bool:
        """Whether they are one row that is longer than `LONGEST_ROW`."""
        return self.single and self.stop - self.start > LONGEST_ROW

    def open(self, path: Path) -> IO[bytes]:
        """These bytes as a file. Raises StoreError."""
        file = open_file(path)
        file.seek(self.start)
        return io.BufferedReader(_Bounded(file, self.stop - self.start))


class _Bounded(io.RawIOBase):
    """The next `left` bytes of a file."""

    def __init__(self, file: IO[bytes], left: int) -> None:
        self._file, self._left = file, left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def line_ranges(path: Path) -> tuple[ByteRange, ...]:
    """The parts of a file whose rows are its lines. Raises StoreError."""
    with open_file(path) as file:
        size = file.seek(0, io.SEEK_END)
    return (ByteRange(0, size),) if size <= min(base.PART_BYTES, LONGEST_ROW) else _cut(path, _Lines())[0]


def csv_ranges(path: Path, delimiter: str) -> tuple[ByteRange, ...]:
    """The parts of a CSV file. A line break in quotes ends no row.

    Raises StoreError, and RecordError for a quote that is never closed: all that follows would be one cell.
    """
    rule = _QuotedLines(delimiter)
    spans, last = _cut(path, rule)
    if rule.is_open:
        got = "one that is never closed"
        raise RecordError(Problem(where=f"{path}:{last}", expected="quotes in pairs", got=got))
    return spans


def long_cell(path: Path, row: ByteRange, delimiter: str) -> tuple[int, bool]:
    """Which cell of a long CSV row passes `LONGEST_ROW`, and whether there are line breaks up to there."""
    rule = _QuotedLines(delimiter)
    cells, lines = 0, False
    with ByteRange(row.start, row.start + LONGEST_ROW).open(path) as file:
        for _, piece in _windows(file, row.start):
            rule.take(piece)
            cells += rule.delimiters()
            lines |= rule.breaks(len(piece) - 1) > 0
    return cells, lines


@dataclass(frozen=True, kw_only=True)
class LongRow:
    """A part of a file: one row, which is refused because it is longer than `LONGEST_ROW`."""

    path: Path
    line: int
    problem: Problem

    @classmethod
    def of(cls, path: Path, span: ByteRange, what: str, hint: str = "") -> LongRow:
        """The row of a span. `what` it is called, and the hint, are for the message."""
        expected = f"a {what} of at most {LONGEST_ROW:,} bytes"
        problem = Problem(expected=expected, got=f"{span.stop - span.start:,}", hint=hint)
        return cls(path=path, line=span.line, problem=problem)

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        yield RecordError(self.problem, 0)

    def blocks(self) -> Iterator[Any]:
        """Raises RecordError."""
        raise RecordError(self.problem.at(self.place(0)))

    def place(self, row: int) -> str:
        return f"{self.path}:{self.line}"


class _Lines:
    """Tells where rows end, which are lines.

    It takes the windows of a file one after another: the bytes, with one more before and behind. Places count
    in the window that it took last.
    """

    @property
    def longest(self) -> int:
        """A longer row is a span of its own."""
        return LONGEST_ROW

    def take(self, piece: bytes) -> None:
        self._piece = piece
        self._window = np.frombuffer(piece, np.uint8)

    def ends(self, after: int) -> Ints:
        """The places of the newlines that end a row, `after` and later."""
        first = max(after, 1)
        return np.flatnonzero(self._window[first:-1] == _NEWLINE) + first

    def all_ends(self) -> Ints:
        """The places of all line breaks that end a row."""
        return self.ends(1)

    def last_end(self) -> int:
        """The last of these, 0 where there is none."""
        return max(self._piece.rfind(b"\n", 1, len(self._piece) - 1), 0)

    def breaks(self, stop: int) -> int:
        """How many lines end between places 1 and `stop`."""
        return int(np.count_nonzero(self._window[1:stop] == _NEWLINE))

    def count(self, text: bytes) -> int:
        """How many lines end in some bytes."""
        return text.count(b"\n")


class _QuotedLines(_Lines):
    """A line break within quotes ends no row.

    As Arrow and Python read it, a quote at the start of a cell opens, the next closes, and others are text.
    `""` within quotes closes and opens at once.
    """

    def __init__(self, delimiter: str) -> None:
        self.is_open = False
        self._delimiter = ord(delimiter)
        self._starts = np.zeros(256, np.bool_)  # what may stand before a quote that opens
        self._starts[[_NEWLINE, _RETURN, self._delimiter]] = True
        self._closes = False  # whether the byte before the window is a quote that closes

    @property
    def longest(self) -> int:
        return min(CSV_BLOCK, LONGEST_ROW)

    def take(self, piece: bytes) -> None:
        super().take(piece)
        self._odd = int(self.is_open)
        self._quotes = self._paired(np.flatnonzero(self._window[1:-1] == _QUOTE) + 1)
        self.is_open = bool((self._odd + len(self._quotes)) % 2)
        last = int(self._quotes[-1]) if len(self._quotes) else 0
        self._closes = not self.is_open and 0 < last == len(piece) - 2

    def _paired(self, quotes: Ints) -> Ints:
        """Those of the quotes that open or close."""
        opening = quotes[self._odd :: 2]
        before = self._window[opening - 1]
        follows = len(opening) > 0 and opening[0] == 1 and before[0] == _QUOTE
        if bool((self._starts[before] | (before == _QUOTE)).all()) and not (follows and not self._closes):
            return quotes
        paired = []
        is_open, closing = bool(self._odd), 0 if self._closes else -1
        for place in quotes.tolist():
            if is_open:
                is_open, closing = False, place
            elif closing == place - 1 or self._starts[self._window[place - 1]]:
                is_open = True
            else:
                continue
            paired.append(place)
        return np.array(paired, np.int64)

    def _outside(self, places: Ints) -> Ints:
        """Those that are not within quotes."""
        within = (np.searchsorted(self._quotes, places) + self._odd) % 2
        return np.asarray(places[within == 0], np.int64)

    def ends(self, after: int) -> Ints:
        return self._outside(super().ends(after))

    def all_ends(self) -> Ints:
        inner, behind = self._window[1:-1], self._window[2:]
        is_end = (inner == _NEWLINE) | ((inner == _RETURN) & (behind != _NEWLINE))
        return self._outside(np.flatnonzero(is_end) + 1)

    def last_end(self) -> int:
        stop = len(self._piece) - 1
        newline = self._piece.rfind(b"\n", 1, stop)
        # a return before a newline that is in the next window does not end the row yet
        last = max(newline, self._piece.rfind(b"\r", 1, stop - self._piece.endswith(b"\r\n")), 0)
        if last and not len(self._outside(np.array([last]))):
            ends = self.all_ends()
            return int(ends[-1]) if len(ends) else 0
        return last

    def delimiters(self) -> int:
        """How many end a cell."""
        return len(self._outside(np.flatnonzero(self._window[1:-1] == self._delimiter) + 1))

    def breaks(self, stop: int) -> int:
        returns = np.flatnonzero(self._window[1:stop] == _RETURN) + 2  # of one before a newline, that counts
        return super().breaks(stop) + int(np.count_nonzero(self._window[returns] != _NEWLINE))

    def count(self, text: bytes) -> int:
        return super().count(text) + text.count(b"\r") - text.count(b"\r\n")


def _cut(path: Path, rule: _Lines) -> tuple[tuple[ByteRange, ...], int]:
    """Spans of about `PART_BYTES` and of single long rows; the line of the last row, if quotes are open."""
    spans = []
    start, line = 0, 1
    place, passed = 0, 1  # of the first byte of the window: its offset, and its line
    last = 0  # the end of the last row
    with open_file(path) as file:
        for place, piece in _windows(file, _skip_bom(file)):
            rule.take(piece)
            stop = place + len(piece) - 2
            for row in (*_long_rows(rule, place, stop, last), None):
                bound = stop if row is None else row[0]
                while len(ends := rule.ends(start + base.PART_BYTES - place)) and place + ends[0] <= bound:
                    end = int(ends[0])
                    spans.append(ByteRange(start, place + end, line))
                    start, line = place + end, passed + rule.breaks(end + 1)
                if row is not None:
                    spans += _around(path, rule, start, line, row)
                    start, line = row[1], passed + rule.breaks(row[1] - place + 1)
            passed += rule.breaks(len(piece) - 1)
            last = place + end if (end := rule.last_end()) else last
    size = place + len(piece) - 2
    if isinstance(rule, _QuotedLines) and rule.is_open:
        return tuple(spans), line + _lines_between(path, rule, start, last)
    if size - last > rule.longest:
        return (*spans, *_around(path, rule, start, line, (last, size))), 0
    return ((*spans, ByteRange(start, size, line)) if start < size or not spans else tuple(spans)), 0


def _long_rows(rule: _Lines, place: int, stop: int, last: int) -> list[tuple[int, int]]:
    """Where the long rows lie that end in a window, whose bytes are those from `place` to `stop` of the file.

    Args:
        last: the end of the last row before it.
    """
    if stop - last <= rule.longest:
        return []
    bounds = np.concatenate([[last], rule.all_ends() + place])
    long = np.flatnonzero(np.diff(bounds) > rule.longest)
    return [(int(bounds[row]), int(bounds[row + 1])) for row in long]


def _around(path: Path, rule: _Lines, start: int, line: int, row: tuple[int, int]) -> list[ByteRange]:
    """The span of a long row, and before it that of what begins at `start`, on line `line`."""
    long = ByteRange(*row, line + _lines_between(path, rule, start, row[0]), single=True)
    return [ByteRange(start, row[0], line), long] if start < row[0] else [long]


def _lines_between(path: Path, rule: _Lines, start: int, stop: int) -> int:
    """How many lines end between two places of a file."""
    lines = 0
    with ByteRange(start, stop).open(path) as file:
        while block := file.read(_BLOCK):
            lines += rule.count(block + file.read(block.endswith(b"\r")))
    return lines


def _skip_bom(file: IO[bytes]) -> int:
    """The place behind the BOM of a file, if it has one."""
    return file.seek(len(BOM) if file.read(len(BOM)) == BOM else 0)


def _windows(file: IO[bytes], place: int) -> Iterator[tuple[int, bytes]]:
    """The bytes of a file from here on, piece by piece, each with its place.

    Each has the byte before it and the one behind it; the file stands between two line breaks.
    """
    edge = b"\n"
    while block := file.read(_BLOCK):
        piece = edge + block
        yield place, piece
        place, edge = place + len(piece) - 2, piece[-2:]
    yield place, edge + b"\n"
