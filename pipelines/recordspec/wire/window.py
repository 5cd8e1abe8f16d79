"""A window that slides over the bytes of a file, compressed or not: what memory holds of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from recordspec.wire.inflated import Readable
from recordspec.wire.strings import Bytes

# What is passed over is read in pieces: what fits into a processor's cache.
_PIECE = 1 << 20


class Source(Protocol):
    """Bytes in their order; `Inflated` is another.

    Attributes:
        fault: why there are no more, where that is not the end.
    """

    fault: str

    def fill(self, view: memoryview, /) -> int: ...
    def mark(self) -> Any: ...
    def back(self, mark: Any, /) -> None: ...


class Plain:
    """The bytes of a file as they are."""

    fault = ""

    def __init__(self, file: Readable) -> None:
        self._file = file

    def fill(self, view: memoryview) -> int:
        """Reads as many bytes as there is room for; less only where there are no more."""
        filled = 0
        while filled < len(view) and (read := self._file.readinto(view[filled:])):
            filled += read
        return filled

    def mark(self) -> int:
        """Where to go back to."""
        return self._file.tell()

    def back(self, mark: int) -> None:
        """Reads on from a mark."""
        self._file.seek(mark)


@dataclass(frozen=True)
class Mark:
    """What a window held once."""

    offset: int
    buffer: Bytes
    ended: bool
    source: Any


class Window:
    """Some bytes of a file. What was handed out of it stays as it is: it moves by a copy.

    Attributes:
        offset: the byte of the file where it begins.
        buffer: uint8 `[bytes]`.
        ended: whether nothing comes behind it.
    """

    def __init__(self, source: Source, offset: int) -> None:
        self._source = source
        self.offset = offset
        self.buffer: Bytes = np.empty(0, np.uint8)
        self.ended = False
        self._mark: Mark | None = None  # of what it holds now

    @property
    def stop(self) -> int:
        """The byte behind it."""
        return self.offset + len(self.buffer)

    @property
    def fault(self) -> str:
        """Why nothing comes behind it, where that is not the end."""
        return self._source.fault

    def load(self, start: int, stop: int) -> None:
        """Holds the bytes from `start`, which is in it, to `stop`, as far as there are so many."""
        if self.stop >= stop or self.ended:
            return
        kept = self.buffer[start - self.offset :]
        fresh = np.empty(stop - start, np.uint8)
        fresh[: len(kept)] = kept
        filled = len(kept) + self._source.fill(fresh[len(kept) :].data)
        self._hold(start, fresh[:filled], ended=filled < len(fresh))

    def passed(self, start: int, stop: int) -> Iterator[memoryview]:
        """The bytes from `start`, which is in it, to `stop`, as far as there are so many, in pieces of which
        none stays; then it begins behind them."""
        yield self.view(start, stop)
        while self.stop < stop and not self.ended:
            piece = np.empty(min(_PIECE, stop - self.stop), np.uint8)
            filled = self._source.fill(piece.data)
            self._hold(self.stop, piece[:filled], ended=filled < len(piece))
            yield self.buffer.data
        behind = min(stop, self.stop)
        self._hold(behind, self.buffer[behind - self.offset :], ended=self.ended)

    def view(self, start: int, stop: int) -> memoryview:
        """Bytes of the file, those of them that it holds."""
        return self.buffer.data[start - self.offset : stop - self.offset]

    def mark(self) -> Mark:
        """Where to go back to, at no cost if it did not move since the last."""
        if self._mark is None:
            self._mark = Mark(self.offset, self.buffer, self.ended, self._source.mark())
        return self._mark

    def back(self, mark: Mark) -> None:
        """Holds what it held once, and reads on from there."""
        if mark is not self._mark:
            self._source.back(mark.source)
            self._hold(mark.offset, mark.buffer, ended=mark.ended)
            self._mark = mark

    def _hold(self, offset: int, buffer: Bytes, *, ended: bool) -> None:
        self.offset, self.buffer, self.ended, self._mark = offset, buffer, ended, None
