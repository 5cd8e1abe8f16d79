"""Compressed streams, read piece by piece, as far as they are whole."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

# Bytes that zlib is given, and that it gives, at once. What it leaves of the first it copies each time: of a
# file of empty streams, or of one that inflates to a thousand times its size, that is most of the work.
_GIVEN, _TAKEN = 64 << 10, 1 << 20
_WINDOW_EITHER = 47  # zlib's wbits: a header of gzip or of zlib


class Readable(Protocol):
    """A file that is open."""

    def read(self, size: int, /) -> bytes: ...
    def readinto(self, view: memoryview, /) -> int: ...


class BrokenStream(Exception):
    """A stream that cannot be read on. The message says what was found."""


class Inflated:
    """A gzip or zlib stream; streams that follow each other count as one.

    Attributes:
        fault: what was found where it is not whole, behind the last byte that could be read; else empty.
    """

    def __init__(self, file: Readable) -> None:
        self._parts = _parts(file)
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

    def _inflate(self) -> bool:
        try:
            self._ready = memoryview(next(self._parts, b""))
        except BrokenStream as error:
            self.fault = str(error)
        return len(self._ready) > 0


def _parts(file: Readable) -> Iterator[bytes]:
    """What is inflated, many bytes at once: what zlib leaves of its input, it copies."""
    stream = zlib.decompressobj(_WINDOW_EITHER)
    while True:
        if stream.eof:
            data = stream.unused_data or file.read(_GIVEN)
            if not data:
                return
            stream = zlib.decompressobj(_WINDOW_EITHER)
        else:
            data = stream.unconsumed_tail or file.read(_GIVEN)
        before = stream.copy()
        try:
            part = stream.decompress(data, _TAKEN)
        except zlib.error as error:
            yield from _bytewise(before, data)
            raise BrokenStream(str(error)) from error
        if part:
            yield part
        elif not data and not stream.eof:
            raise BrokenStream("the end of the file")


def _bytewise(stream: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """What can be inflated before a fault: of many bytes at once zlib then gives nothing."""
    with suppress(zlib.error):
        for place in range(len(data)):
            if part := stream.decompress(data[place : place + 1]):
                yield part


def inflated(start: bytes) -> bytes:
    """What the beginning of a stream inflates to, as far as it is whole."""
    return b"".join(_bytewise(zlib.decompressobj(_WINDOW_EITHER), start))
