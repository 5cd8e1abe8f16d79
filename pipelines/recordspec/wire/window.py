"""A window that slides over the bytes of a file, compressed or not: what memory holds of it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from recordspec.wire.inflated import Readable
from recordspec.wire.strings import Bytes


class Source(Protocol):
    """Bytes in their order; `Inflated` is another.

    Attributes:
        fault: why there are no more, where that is not the end.
    """

    fault: str

    def fill(self, view: memoryview, /) -> int: ...


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


class Window:
    """Some bytes of a file. What was handed out of it stays as it is: it moves by a copy.

    Attributes:
        offset: the byte of the file where it begins.
        buffer: uint8 `[bytes]`.
        ended: whether nothing comes behind it.
        hold: a byte that stays in it, and all behind; None where what was read may go.
    """

    def __init__(self, source: Source, offset: int) -> None:
        self._source = source
        self.offset = offset
        self.buffer: Bytes = np.empty(0, np.uint8)
        self.ended = False
        self.hold: int | None = None

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
        start = start if self.hold is None else min(start, self.hold)
        kept = self.buffer[start - self.offset :]
        fresh = np.empty(stop - start, np.uint8)
        fresh[: len(kept)] = kept
        filled = len(kept) + self._source.fill(fresh[len(kept) :].data)
        self.buffer, self.offset = fresh[:filled], start
        self.ended = filled < len(fresh)

    def view(self, start: int, stop: int) -> memoryview:
        """Bytes of the file, those of them that it holds."""
        return self.buffer.data[start - self.offset : stop - self.offset]
