"""Compressed streams, read piece by piece, as far as they are whole."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Protocol

_CHUNK = 1 << 20
_WINDOW_EITHER = 47  # zlib's wbits: a header of gzip or of zlib


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class BrokenStream(Exception):
    """A stream that cannot be read on. The message says what was found."""


class Inflated:
    """A gzip or zlib stream; streams that follow each other count as one.

    Raises BrokenStream where it is not whole: behind the last byte that could be read.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._parts = _parts(file)
        self._ready = b""  # inflated, and from `_at` on not yet read
        self._at = 0

    def read(self, size: int, /) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            if self._at == len(self._ready):
                self._ready, self._at = next(self._parts, b""), 0
                if not self._ready:
                    break
            part = self._ready[self._at : self._at + size]
            self._at += len(part)
            size -= len(part)
            parts.append(part)
        return b"".join(parts)


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    """What is inflated, many bytes at once: what zlib leaves of its input, it copies."""
    stream = zlib.decompressobj(_WINDOW_EITHER)
    while True:
        if stream.eof:
            data = stream.unused_data or file.read(_CHUNK)
            if not data:
                return
            stream = zlib.decompressobj(_WINDOW_EITHER)
        else:
            data = stream.unconsumed_tail or file.read(_CHUNK)
        before = stream.copy()
        try:
            part = stream.decompress(data, _CHUNK)
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
