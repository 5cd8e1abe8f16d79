"""Compressed streams, read piece by piece, as far as they are whole."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

# Bytes that zlib is given, and that it gives, at once. What it leaves of the first it copies each time: of a
# file of empty streams, or of one that inflates to a thousand times its size, that is most of the work.
_GIVEN, _TAKEN = 64 << 10, 1 << 20
# zlib's wbits, by how a file is compressed: 16 more means a gzip header, 32 more either.
WINDOW = {"gzip": 31, "zlib": 15}
_WINDOW_EITHER = 47


class Readable(Protocol):
    """A file that is open."""

    def read(self, size: int, /) -> bytes: ...
    def readinto(self, view: memoryview, /) -> int: ...
    def seek(self, place: int, /) -> int: ...
    def tell(self) -> int: ...


@dataclass(frozen=True)
class Mark:
    """Where in a stream something was read."""

    stream: zlib._Decompress
    ready: memoryview
    fault: str
    place: int


class Inflated:
    """A gzip or zlib stream. Streams of gzip that follow each other count as one; of zlib, TensorFlow reads
    the first only.

    Attributes:
        fault: what was found where it is not whole, behind the last byte that could be read; else empty.
    """

    def __init__(self, file: Readable, compression: str) -> None:
        self._file, self._compression = file, compression
        self._stream = self._fresh()
        self._ready = memoryview(b"")  # inflated, and not yet read
        self.fault = ""

    def fill(self, view: memoryview) -> int:
        """Reads as many bytes as there is room for; less only where there are no more."""
        filled = 0
        while filled < len(view) and (self._ready or self._inflate()):
            part = self._ready[: len(view) - filled]
            view[filled : filled + len(part)] = part
            self._ready = self._ready[len(part) :]
            filled += len(part)
        return filled

    def mark(self) -> Mark:
        """Where to go back to."""
        return Mark(self._stream.copy(), self._ready, self.fault, self._file.tell())

    def back(self, mark: Mark) -> None:
        """Reads on from a mark."""
        self._stream, self._ready, self.fault = mark.stream.copy(), mark.ready, mark.fault
        self._file.seek(mark.place)

    def _inflate(self) -> bool:
        while not self._ready and not self.fault and (data := self._given()) is not None:
            self._ready = memoryview(self._taken(data))
        return len(self._ready) > 0

    def _given(self) -> bytes | None:
        """What zlib is given next; None at the end."""
        if not self._stream.eof:
            return self._stream.unconsumed_tail or self._file.read(_GIVEN)
        data = self._stream.unused_data or self._file.read(_GIVEN)
        if data and self._compression == "zlib":
            self.fault = "bytes behind the end of the stream"
        if not data or self.fault:
            return None
        self._stream = self._fresh()
        return data

    def _taken(self, data: bytes) -> bytes:
        before = self._stream.copy()
        try:
            part = self._stream.decompress(data, _TAKEN)
        except zlib.error as error:
            self.fault = str(error)
            return b"".join(_bytewise(before, data))
        if not (part or data or self._stream.eof):
            self.fault = "the end of the file"
        return part

    def _fresh(self) -> zlib._Decompress:
        return zlib.decompressobj(WINDOW[self._compression])


def _bytewise(stream: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """What can be inflated before a fault: of many bytes at once zlib then gives nothing."""
    with suppress(zlib.error):
        for place in range(len(data)):
            if part := stream.decompress(data[place : place + 1]):
                yield part


def inflated(start: bytes) -> bytes:
    """What the beginning of a stream inflates to, as far as it is whole."""
    return b"".join(_bytewise(zlib.decompressobj(_WINDOW_EITHER), start))


def is_begun(start: bytes) -> bool:
    """Whether a stream may begin so: something of it inflates, or nothing is wrong with it so far."""
    try:
        zlib.decompressobj(_WINDOW_EITHER).decompress(start)
    except zlib.error:
        return len(inflated(start)) > 0
    return True
