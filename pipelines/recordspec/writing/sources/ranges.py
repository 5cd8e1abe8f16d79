"""Text files are divided between rows into byte ranges, which processes read independently."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, Any

import numpy as np

from recordspec.errors import Problem, RecordError
from recordspec.locations import Location, open_file
from recordspec.schema import values
from recordspec.schema.schema import Schema
from recordspec.wire.arrays import Bytes, Ints, Mask
from recordspec.writing.sources import base
from recordspec.writing.sources.base import Batches, long_row_problem

BOM = b"\xef\xbb\xbf"

# The arrays computed from a block stay in the CPU caches: with 16 MiB at once it takes twice as long.
_BLOCK = 256 << 10
# Bytes of rows that are parsed together, likewise.
_PIECE_BYTES = 4 << 20
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'


@dataclass(frozen=True)
class ByteRange:
    """Bytes `start` to `stop` of a file; `line` is the number, from 1, of the first line in them.

    Attributes:
        too_long: whether they are a row longer than `values.LONGEST_ROW`.
        cuts: places between rows, about `_PIECE_BYTES` from each other.
    """

    start: int
    stop: int
    line: int = 1
    too_long: bool = False
    cuts: tuple[int, ...] = ()

    def open(self, path: Location) -> IO[bytes]:
        """These bytes as a file. Raises StoreError."""
        with open_file(path) as file:
            file.seek(self.start)
            return io.BytesIO(file.read(self.stop - self.start))

    def pieces(self, path: Location) -> Iterator[bytes]:
        """These bytes in pieces of whole rows. Raises StoreError."""
        with open_file(path) as file:
            file.seek(self.start)
            for start, stop in pairwise([self.start, *self.cuts, self.stop]):
                yield file.read(stop - start)


def line_ranges(path: Location) -> list[ByteRange]:
    """The parts of a file in which each line is a row. Raises StoreError."""
    return _ranges(path, _Lines())


def csv_ranges(path: Location, delimiter: str) -> list[ByteRange]:
    """The parts of a CSV file. A line break in quotes does not end a row.

    Raises StoreError, and RecordError for an unclosed quote, after which the file would be one cell, and for
    text after a quote that closes, which Arrow and Python drop.
    """
    return _ranges(path, _QuotedLines(delimiter))


@dataclass(frozen=True, kw_only=True)
class LongRow:
    """A part of a file: one row, which is refused because it is longer than `values.LONGEST_ROW`."""

    path: Location
    line: int
    problem: Problem

    @classmethod
    def of(cls, path: Location, span: ByteRange, what: str, hint: str = "") -> LongRow:
        """The row of a span. `what` it is called, and the hint, are for the message."""
        problem = long_row_problem(span.stop - span.start, what, hint)
        return cls(path=path, line=span.line, problem=problem)

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        yield RecordError(self.problem, 0)

    def blocks(self) -> Iterator[Any]:
        """Raises RecordError."""
        raise RecordError(self.problem.at(self.place(0)))

    def place(self, row: int) -> str:
        return f"{self.path}:{self.line}"


class _Lines:
    """Finds the line breaks in consecutive windows of a file, and those that end a row.

    A window has one more byte before it and one after it: `window[1:-1]` are its own.

    Attributes:
        is_open: whether the last row is in quotes where the last window ends.
        stray: the index in the last window of the first byte after a quote that closes, if it is text.
    """

    is_open = False
    stray: int | None = None

    def scan(self, window: Bytes) -> tuple[Ints, Mask]:
        """The indices of line breaks in the window, and whether each ends a row."""
        breaks = np.flatnonzero(window[1:-1] == _NEWLINE) + 1
        return breaks, np.ones(len(breaks), np.bool_)


class _QuotedLines(_Lines):
    """The same for a CSV file: a carriage return is a line break, too, and line breaks in quotes end no row.

    As in Arrow and Python, a quote at the start of a cell opens, the next closes, and others are text.
    `""` within quotes closes and opens at once.
    """

    def __init__(self, delimiter: str) -> None:
        self._starts = np.zeros(256, np.bool_)  # the bytes that may precede an opening quote
        self._starts[[_NEWLINE, _RETURN, ord(delimiter)]] = True
        self._follows = self._starts.copy()  # those that may follow a closing one
        self._follows[_QUOTE] = True
        self._closes = False  # whether the byte before the window is a quote that closes

    def scan(self, window: Bytes) -> tuple[Ints, Mask]:
        odd, quotes = int(self.is_open), self._paired(window, np.flatnonzero(window[1:-1] == _QUOTE) + 1)
        behind_quotes = quotes[1 - odd :: 2] + 1
        strays = behind_quotes[~self._follows[window[behind_quotes]]]
        self.stray = int(strays[0]) if len(strays) else None
        self.is_open = bool((odd + len(quotes)) % 2)
        last = int(quotes[-1]) if len(quotes) else 0
        self._closes = not self.is_open and 0 < last == len(window) - 2
        inner, behind = window[1:-1], window[2:]
        is_break = (inner == _NEWLINE) | ((inner == _RETURN) & (behind != _NEWLINE))
        breaks = np.flatnonzero(is_break) + 1
        return breaks, np.asarray((np.searchsorted(quotes, breaks) + odd) % 2 == 0)

    def _paired(self, window: Bytes, quotes: Ints) -> Ints:
        """The quotes that open or close."""
        opening = quotes[int(self.is_open) :: 2]
        before = window[opening - 1]
        follows = len(opening) > 0 and opening[0] == 1 and before[0] == _QUOTE
        if bool((self._starts[before] | (before == _QUOTE)).all()) and not (follows and not self._closes):
            return quotes
        paired = []
        is_open, closing = self.is_open, 0 if self._closes else -1
        for place in quotes.tolist():
            if is_open:
                is_open, closing = False, place
            elif closing == place - 1 or self._starts[window[place - 1]]:
                is_open = True
            else:
                continue
            paired.append(place)
        return np.array(paired, np.int64)


def _ranges(path: Location, scanner: _Lines) -> list[ByteRange]:
    """Ranges of about `PART_BYTES`, and of single rows that are too long for them."""
    ranges: list[ByteRange] = []
    start, line = 0, 1  # of the range that is not complete
    cuts: list[int] = []  # in it
    row, row_line = 0, 1  # of the row that is not complete
    for ends, lines in _rows(path, scanner):
        starts = np.concatenate([[row], ends[:-1]])
        start_lines = np.concatenate([[row_line], lines[:-1]])
        long = np.flatnonzero(ends - starts > values.LONGEST_ROW)
        while True:
            enough = int(np.searchsorted(ends, start + base.PART_BYTES))
            too_long = next((index for index in long.tolist() if starts[index] >= start), len(ends))
            index = min(enough, too_long)
            if index == len(ends):
                break
            if index == too_long:
                if start < starts[index]:
                    ranges.append(
                        ByteRange(start, int(starts[index]), line, cuts=_within(cuts, start, starts[index]))
                    )
                start, line = int(starts[index]), int(start_lines[index])
            stop = int(ends[index])
            ranges.append(
                ByteRange(start, stop, line, too_long=index == too_long, cuts=_within(cuts, start, stop))
            )
            start, line, cuts = stop, int(lines[index]), []
        row, row_line = int(ends[-1]), int(lines[-1])
        if row - max([start, *cuts[-1:]]) >= _PIECE_BYTES:
            cuts.append(row)
    if scanner.is_open:
        got = "one that is never closed"
        raise RecordError(Problem(where=f"{path}:{row_line}", expected="quotes in pairs", got=got))
    if start < row or not ranges:
        ranges.append(ByteRange(start, row, line, cuts=_within(cuts, start, row)))
    return ranges


def _within(cuts: list[int], start: int, stop: int) -> tuple[int, ...]:
    """The places that divide these bytes."""
    return tuple(cut for cut in cuts if start < cut < stop)


def _rows(path: Location, scanner: _Lines) -> Iterator[tuple[Ints, Ints]]:
    """Yields the ends of the rows of each window, and the number of the line after each.

    The end of the file ends the last row, unless a quote is open there.
    """
    end, line = 0, 1
    with open_file(path) as file:
        for place, window in _windows(file, _skip_bom(file)):
            breaks, is_end = scanner.scan(window)
            if scanner.stray is not None:
                before = bytes(window[: scanner.stray + 1][-20:]).splitlines()[-1]
                problem = Problem(
                    where=f"{path}:{line + int(np.searchsorted(breaks, scanner.stray))}",
                    expected="a delimiter or a line break after a quoted cell",
                    got=f"`{before.decode(errors='replace')}`",
                    hint='a quote in a quoted cell is doubled: `""`',
                )
                raise RecordError(problem)
            if is_end.any():
                ends = breaks[is_end] + place
                yield ends, np.flatnonzero(is_end) + line + 1
                end = int(ends[-1])
            line += len(breaks)
    size = place + len(window) - 2
    if end < size and not scanner.is_open:
        yield np.array([size]), np.array([line])


def _skip_bom(file: IO[bytes]) -> int:
    """The place after the BOM of a file, if it has one."""
    return file.seek(len(BOM) if file.read(len(BOM)) == BOM else 0)


def _windows(file: IO[bytes], place: int) -> Iterator[tuple[int, Bytes]]:
    """Yields the rest of a file in windows, each with its offset and one more byte at either side.

    Line breaks are assumed before and after the file.
    """
    edge = b"\n"
    while block := file.read(_BLOCK):
        window = edge + block
        yield place, np.frombuffer(window, np.uint8)
        place, edge = place + len(window) - 2, window[-2:]
    yield place, np.frombuffer(edge + b"\n", np.uint8)
