"""Byte streams of plain and compressed files, and a buffer that holds a part of a stream in memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from recordspec.wire.arrays import Bytes
from recordspec.wire.compression import CODECS, Codec, Compression

# Bytes of input and of output of zlib at a time. zlib copies the input that it has not consumed each time:
# for a file of empty streams, or one that inflates to a thousand times its size, that is most of the work.
_GIVEN, _TAKEN = 64 << 10, 1 << 20
_EMPTY_BEFORE_ANOTHER = bytes(8) + b"\x1f\x8b\x08"
# Bytes skipped at a time, which fit into a processor's cache.
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
        fault: the reason why it ends before the end of the file; otherwise empty.
    """

    fault: str

    def fill(self, view: memoryview, /) -> int:
        """Fills a view. Returns the number of bytes, which is smaller only at the end."""

    def position(self) -> Any:
        """The current position, for `rewind`."""

    def rewind(self, position: Any, /) -> None:
        """Continues reading at a position."""

    def go_on(self) -> bool:
        """Continues after a fault of JOINED, ignoring further ones. Returns False for any other fault."""


# Reasons why a stream ends before the file, at points where TensorFlow's reader (2.16 and 2.21) ends
# silently: after a ZLIB stream, and after an empty GZIP stream, unless the data before fills its buffers.
_AFTER_EMPTY = "more after an empty stream, where TensorFlow may end"
JOINED = ("bytes after the end of the stream", _AFTER_EMPTY)


def open_stream(file: Readable, compression: Compression) -> ByteStream:
    """The uncompressed bytes of an open file."""
    return PlainStream(file) if compression == "none" else InflatedStream(file, CODECS[compression])


def may_be_joined(file: Readable, compression: Compression) -> bool:
    """Whether an open file may contain bytes that TensorFlow's reader does not reach. For GZIP: whether
    the end of an empty stream, with a CRC and size of 0, is followed by the start of another stream.
    """
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
    """A position in an inflated stream: its attributes, and the offset in its file."""

    state: dict[str, Any]
    place: int


class InflatedStream:
    """A compressed stream, inflated as far as it is valid."""

    def __init__(self, file: Readable, codec: Codec) -> None:
        self._file, self._codec = file, codec
        self._decompressor = codec.decompressor()
        self._ready = memoryview(b"")  # inflated, but not yet read
        self._is_empty, self._after_empty = True, False  # the current stream, and any stream before
        self._passes_over = False
        self._held = b""  # input or output taken before a fault of JOINED
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
        """The next input to be decompressed; None at the end."""
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
    """Inflates byte by byte up to a fault: with more bytes at a time, zlib would return nothing."""
    with suppress(zlib.error):
        for place in range(len(data)):
            if part := decompressor.decompress(data[place : place + 1]):
                yield part


def inflate_start(start: bytes, codec: Codec) -> bytes:
    """Inflates the start of a compressed stream, as far as it is valid."""
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
    """Holds a part of a stream. It moves forward by copying, so that views of it stay valid.

    Attributes:
        offset: the offset of the buffer in the stream.
        buffer: uint8 `[bytes]`.
        ended: whether the stream ends after the buffer.
    """

    def __init__(self, stream: ByteStream, offset: int) -> None:
        self._stream = stream
        self.offset = offset
        self.buffer: Bytes = np.empty(0, np.uint8)
        self.ended = False
        self._position: BufferPosition | None = None  # the position of the current contents

    @property
    def stop(self) -> int:
        """The offset after the buffer."""
        return self.offset + len(self.buffer)

    @property
    def fault(self) -> str:
        """The reason why the stream ends before the end of the file; otherwise empty."""
        return self._stream.fault

    def go_on(self) -> bool:
        """Continues after a fault of JOINED. Returns False for any other fault."""
        if not self._stream.go_on():
            return False
        self._hold(self.offset, self.buffer, ended=False)
        return True

    def load(self, start: int, stop: int) -> None:
        """Loads the bytes from `start`, which must be in the buffer, to `stop` or the end of the stream."""
        if self.stop >= stop or self.ended:
            return
        kept = self.buffer[start - self.offset :]
        fresh = np.empty(stop - start, np.uint8)
        fresh[: len(kept)] = kept
        filled = len(kept) + self._stream.fill(fresh[len(kept) :].data)
        self._hold(start, fresh[:filled], ended=filled < len(fresh))

    def pass_over(self, start: int, stop: int) -> Iterator[memoryview]:
        """Yields the bytes from `start`, which must be in the buffer, to `stop` or the end of the stream,
        in pieces that are not kept. Afterwards the buffer begins behind them.
        """
        yield self.view(start, stop)
        while self.stop < stop and not self.ended:
            piece = np.empty(min(_PIECE, stop - self.stop), np.uint8)
            filled = self._stream.fill(piece.data)
            self._hold(self.stop, piece[:filled], ended=filled < len(piece))
            yield self.buffer.data
        behind = min(stop, self.stop)
        self._hold(behind, self.buffer[behind - self.offset :], ended=self.ended)

    def view(self, start: int, stop: int) -> memoryview:
        """The bytes from `start` to `stop`, as far as they are in the buffer."""
        return self.buffer.data[start - self.offset : stop - self.offset]

    def position(self) -> BufferPosition:
        """A position for `rewind`; free of cost if the buffer has not moved since the last call."""
        if self._position is None:
            self._position = BufferPosition(self.offset, self.buffer, self.ended, self._stream.position())
        return self._position

    def rewind(self, position: BufferPosition) -> None:
        """Restores the contents at a position, and continues from there."""
        if position is not self._position:
            self._stream.rewind(position.stream)
            self._hold(position.offset, position.buffer, ended=position.ended)
            self._position = position

    def _hold(self, offset: int, buffer: Bytes, *, ended: bool) -> None:
        self.offset, self.buffer, self.ended, self._position = offset, buffer, ended, None
