"""The byte streams of plain and compressed files, and a buffer that holds a part of one in memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from recordspec.wire.arrays import Bytes
from recordspec.wire.compression import CODECS, Codec, Compression

# Bytes of input and of output of zlib at once. It copies the input that it leaves each time: for a file of
# empty streams, or one that inflates to a thousand times its size, that is most of the work.
_GIVEN, _TAKEN = 64 << 10, 1 << 20
_EMPTY_BEFORE_ANOTHER = bytes(8) + b"\x1f\x8b\x08"
# Bytes that are passed over at once: what fits into a processor's cache.
_PIECE = 1 << 20


class Readable(Protocol):
    """An open file."""

    def read(self, size: int, /) -> bytes: ...
    def readinto(self, view: memoryview, /) -> int: ...
    def seek(self, place: int, whence: int = 0, /) -> int: ...
    def tell(self) -> int: ...


class ByteStream(Protocol):
    """A stream of bytes.

    Attributes:
        fault: the reason why it ends before the end of the file, or empty.
    """

    fault: str

    def fill(self, view: memoryview, /) -> int:
        """Fills a view; returns the number of bytes, which is less only at the end."""

    def position(self) -> Any:
        """A place to rewind to."""

    def rewind(self, position: Any, /) -> None:
        """Reads on from a position."""

    def go_on(self) -> bool:
        """Reads on after a fault of JOINED, and passes over those that follow; False for another fault."""


# Why a stream ends before the file, where TensorFlow's reader (2.16 and 2.21) ends without a word: after a
# stream of ZLIB, and after an empty one of GZIP, unless what is before fills its buffers.
_AFTER_EMPTY = "more after an empty stream, where TensorFlow may end"
JOINED = ("bytes after the end of the stream", _AFTER_EMPTY)


def open_stream(file: Readable, compression: Compression) -> ByteStream:
    """The uncompressed bytes of an open file."""
    return PlainStream(file) if compression == "none" else InflatedStream(file, CODECS[compression])


def may_be_joined(file: Readable, compression: Compression) -> bool:
    """Whether an open file may have bytes that TensorFlow's reader does not reach: of GZIP, whether the end
    of an empty stream, its CRC and size of 0, is before the beginning of another."""
    if compression == "none":
        return False
    before = b""
    while compression == "gzip" and (data := file.read(_PIECE)):
        if _EMPTY_BEFORE_ANOTHER in before + data:
            return True
        before = data[1 - len(_EMPTY_BEFORE_ANOTHER) :]
    return compression != "gzip"


class PlainStream:
    """The bytes of an uncompressed file."""

    fault = ""

    def __init__(self, file: Readable) -> None:
        self._file = file

    def fill(self, view: memoryview) -> int:
        filled = 0
        while filled < len(view) and (read := self._file.readinto(view[filled:])):
            filled += read
        return filled

    def position(self) -> int:
        return self._file.tell()

    def rewind(self, position: int) -> None:
        self._file.seek(position)

    def go_on(self) -> bool:
        return False


@dataclass(frozen=True)
class InflatedPosition:
    """A place in an inflated stream: its attributes, and the byte of its file."""

    state: dict[str, Any]
    place: int


class InflatedStream:
    """A compressed stream, inflated as far as it is valid."""

    def __init__(self, file: Readable, codec: Codec) -> None:
        self._file, self._codec = file, codec
        self._decompressor = codec.decompressor()
        self._ready = memoryview(b"")  # inflated, and not yet read
        self._is_empty, self._after_empty = True, False  # this one of the streams, and one before it
        self._passes_over = False
        self._held = b""  # input or output, taken before a fault of JOINED
        self.fault = ""

    def fill(self, view: memoryview) -> int:
        filled = 0
        while filled < len(view) and (self._ready or self._inflate()):
            part = self._ready[: len(view) - filled]
            view[filled : filled + len(part)] = part
            self._ready = self._ready[len(part) :]
            filled += len(part)
        return filled

    def position(self) -> InflatedPosition:
        state = {**vars(self), "_decompressor": self._decompressor.copy()}
        return InflatedPosition(state, self._file.tell())

    def rewind(self, position: InflatedPosition) -> None:
        vars(self).update(position.state)
        self._decompressor = self._decompressor.copy()
        self._file.seek(position.place)

    def go_on(self) -> bool:
        if self.fault not in JOINED:
            return False
        if self.fault == _AFTER_EMPTY:
            self._ready, self._held = memoryview(self._held), b""
        self.fault, self._passes_over = "", True
        return True

    def _inflate(self) -> bool:
        while not self._ready and not self.fault and (data := self._next_input()) is not None:
            self._ready = memoryview(self._decompress(data))
        return len(self._ready) > 0

    def _next_input(self) -> bytes | None:
        """The next input to decompress; None at the end."""
        if not self._decompressor.eof:
            return self._decompressor.unconsumed_tail or self._file.read(_GIVEN)
        data, self._held = self._held or self._decompressor.unused_data or self._file.read(_GIVEN), b""
        if data and not self._codec.concatenated and not self._passes_over:
            self.fault, self._held = JOINED[0], data
        if not data or self.fault:
            return None
        self._after_empty |= self._is_empty
        self._decompressor, self._is_empty = self._codec.decompressor(), True
        return data

    def _decompress(self, data: bytes) -> bytes:
        before = self._decompressor.copy()
        try:
            part = self._decompressor.decompress(data, _TAKEN)
        except zlib.error as error:
            self.fault = str(error)
            return b"".join(_bytewise(before, data))
        if not (part or data or self._decompressor.eof):
            self.fault = "the end of the file"
        if part and self._after_empty and not self._passes_over:
            self.fault, self._held = _AFTER_EMPTY, part
            return b""
        self._is_empty = self._is_empty and not part
        return part


def _bytewise(decompressor: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """Inflates byte by byte up to a fault: of many bytes at once zlib then returns nothing."""
    with suppress(zlib.error):
        for place in range(len(data)):
            if part := decompressor.decompress(data[place : place + 1]):
                yield part


def inflate_start(start: bytes, codec: Codec) -> bytes:
    """Inflates the beginning of a compressed stream, as far as it is valid."""
    return b"".join(_bytewise(codec.decompressor(), start))


def may_inflate(start: bytes, codec: Codec) -> bool:
    """Whether a stream may begin with these bytes: some of them inflate, or no error is found."""
    try:
        codec.decompressor().decompress(start)
    except zlib.error:
        return len(inflate_start(start, codec)) > 0
    return True


@dataclass(frozen=True)
class BufferPosition:
    """The contents of a read buffer, and the position of its stream."""

    offset: int
    buffer: Bytes
    ended: bool
    stream: Any


class ReadBuffer:
    """Holds some bytes of a stream, and moves forward by a copy: views of it stay valid.

    Attributes:
        offset: the byte of the stream where it begins.
        buffer: uint8 `[bytes]`.
        ended: whether the stream ends after it.
    """

    def __init__(self, stream: ByteStream, offset: int) -> None:
        self._stream = stream
        self.offset = offset
        self.buffer: Bytes = np.empty(0, np.uint8)
        self.ended = False
        self._position: BufferPosition | None = None  # of what it holds now

    @property
    def stop(self) -> int:
        """The byte after it."""
        return self.offset + len(self.buffer)

    @property
    def fault(self) -> str:
        """The reason why the stream ends before the end of the file, or empty."""
        return self._stream.fault

    def go_on(self) -> bool:
        """Reads on after a fault of JOINED; False for another."""
        if not self._stream.go_on():
            return False
        self._hold(self.offset, self.buffer, ended=False)
        return True

    def load(self, start: int, stop: int) -> None:
        """Loads the bytes from `start`, which is in it, to `stop`, or to the end of the stream."""
        if self.stop >= stop or self.ended:
            return
        kept = self.buffer[start - self.offset :]
        fresh = np.empty(stop - start, np.uint8)
        fresh[: len(kept)] = kept
        filled = len(kept) + self._stream.fill(fresh[len(kept) :].data)
        self._hold(start, fresh[:filled], ended=filled < len(fresh))

    def pass_over(self, start: int, stop: int) -> Iterator[memoryview]:
        """Yields the bytes from `start`, which is in it, to `stop`, or to the end of the stream, in pieces
        that are not kept; then the buffer begins after them."""
        yield self.view(start, stop)
        while self.stop < stop and not self.ended:
            piece = np.empty(min(_PIECE, stop - self.stop), np.uint8)
            filled = self._stream.fill(piece.data)
            self._hold(self.stop, piece[:filled], ended=filled < len(piece))
            yield self.buffer.data
        behind = min(stop, self.stop)
        self._hold(behind, self.buffer[behind - self.offset :], ended=self.ended)

    def view(self, start: int, stop: int) -> memoryview:
        """The bytes from `start` to `stop`, as far as it holds them."""
        return self.buffer.data[start - self.offset : stop - self.offset]

    def position(self) -> BufferPosition:
        """A place to rewind to, at no cost if it did not move since the last."""
        if self._position is None:
            self._position = BufferPosition(self.offset, self.buffer, self.ended, self._stream.position())
        return self._position

    def rewind(self, position: BufferPosition) -> None:
        """Restores the contents at a position, and reads on from there."""
        if position is not self._position:
            self._stream.rewind(position.stream)
            self._hold(position.offset, position.buffer, ended=position.ended)
            self._position = position

    def _hold(self, offset: int, buffer: Bytes, *, ended: bool) -> None:
        self.offset, self.buffer, self.ended, self._position = offset, buffer, ended, None
