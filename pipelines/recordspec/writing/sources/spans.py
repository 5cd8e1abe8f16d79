"""Files of text, cut between rows."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from recordspec.locations import open_file
from recordspec.spec.values import Array
from recordspec.wire.strings import Ints
from recordspec.writing.sources import base

BOM = b"\xef\xbb\xbf"

# What is computed of a block stays in the caches: of 16 MiB at once it takes twice as long.
_BLOCK = 256 << 10
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'


@dataclass(frozen=True)
class Span:
    """Bytes `start` to `stop` of a file; `line` is the number, from 1, of the first line in them."""

    start: int
    stop: int
    line: int = 1

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


def line_spans(path: Path) -> tuple[Span, ...]:
    """The parts of a file whose rows are its lines. Raises StoreError."""
    with open_file(path) as file:
        size = file.seek(0, io.SEEK_END)
    return (Span(0, size),) if size <= base.PART_BYTES else _cut(path, _Lines())


def csv_spans(path: Path, delimiter: str) -> tuple[tuple[Span, ...], int]:
    """The parts of a CSV file, and how many quotes it has. Raises StoreError.

    A line break in quotes ends no row. Whether it is in quotes, the number of quotes before it tells, if
    they stand where they should, around whole cells. Where one stands within a cell the file is one part.
    """
    rule = _QuotedLines(delimiter)
    spans = _cut(path, rule)
    return spans if rule.exact else (Span(0, spans[-1].stop),), rule.quotes


class _Rule(Protocol):
    """Tells where rows end. A window is the bytes of a file, uint8, with one more before and behind."""

    def ends(self, window: Array, after: int) -> Ints:
        """The places of the line breaks that end a row, `after` and later; for each window in turn."""

    def breaks(self, window: Array, stop: int) -> int:
        """How many lines end between places 1 and `stop`."""


class _Lines:
    def ends(self, window: Array, after: int) -> Ints:
        first = max(after, 1)
        return np.flatnonzero(window[first:-1] == _NEWLINE) + first

    def breaks(self, window: Array, stop: int) -> int:
        return int(np.count_nonzero(window[1:stop] == _NEWLINE))


class _QuotedLines(_Lines):
    """A line break ends a row where the number of quotes before it is even."""

    def __init__(self, delimiter: str) -> None:
        self.quotes = 0
        self.exact = True
        self._edges = np.zeros(256, np.bool_)  # what may stand outside a quote that opens or closes
        self._edges[[_NEWLINE, _RETURN, _QUOTE, ord(delimiter)]] = True

    def ends(self, window: Array, after: int) -> Ints:
        quotes = np.flatnonzero(window[1:-1] == _QUOTE) + 1
        odd = self.quotes % 2
        opening, closing = quotes[odd::2], quotes[1 - odd :: 2]
        outside = self._edges[window[opening - 1]].all() and self._edges[window[closing + 1]].all()
        self.exact = self.exact and bool(outside)
        ends = super().ends(window, after)
        within = (np.searchsorted(quotes, ends) + self.quotes) % 2
        self.quotes += len(quotes)
        return np.asarray(ends[within == 0], np.int64)

    def breaks(self, window: Array, stop: int) -> int:
        returns = np.flatnonzero(window[1:stop] == _RETURN) + 2  # of one before a newline, that counts
        return super().breaks(window, stop) + int(np.count_nonzero(window[returns] != _NEWLINE))


def _cut(path: Path, rule: _Rule) -> tuple[Span, ...]:
    spans = []
    start, line = 0, 1
    place, passed = 0, 1  # of the first byte of the window: its offset, and its line
    for place, window in _windows(path):
        ends = rule.ends(window, start + base.PART_BYTES - place)
        while len(ends := ends[np.searchsorted(ends, start + base.PART_BYTES - place) :]):
            end = int(ends[0])
            spans.append(Span(start, place + end, line))
            start, line = place + end, passed + rule.breaks(window, end + 1)
        passed += rule.breaks(window, len(window) - 1)
    size = place + len(window) - 2
    return (*spans, Span(start, size, line)) if start < size or not spans else tuple(spans)


def _windows(path: Path) -> Iterator[tuple[int, Array]]:
    """The bytes of a file behind its BOM, piece by piece, each with its offset.

    Each has the byte before it and the one behind it; the file stands between two line breaks.
    """
    with open_file(path) as file:
        place = len(BOM) if file.read(len(BOM)) == BOM else 0
        file.seek(place)
        edge = b"\n"
        while block := file.read(_BLOCK):
            piece = edge + block
            yield place, np.frombuffer(piece, np.uint8)
            place, edge = place + len(piece) - 2, piece[-2:]
        yield place, np.frombuffer(edge + b"\n", np.uint8)
