"""The compressions of a TFRecord file as a whole: their names, suffixes, first bytes and parameters.

A compressed file has restart points: after each PIECE of uncompressed bytes, the compressor forgets what it
has seen, and its output ends at a whole byte (zlib's `Z_FULL_FLUSH`). Any reader of the format reads the
file, and a reader that knows the points decompresses a piece alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

Compression = Literal["none", "gzip", "zlib"]

# zlib's own default level is 6; TensorFlow's writer uses the same.
_LEVEL = 6
# Uncompressed bytes between restart points: a window of a lane has as many, and a store sends them in about
# the time of its answer.
PIECE = 256 << 10
# What a full flush ends with: the lengths of an empty stored block.
_FLUSHED = b"\0\0\xff\xff"
# The most compressed bytes of a piece: deflate stores what it cannot compress, with a few bytes a block.
_LARGEST_PIECE = PIECE + (PIECE >> 8)


class Compressor(Protocol):
    """Compresses a file piece by piece.

    Attributes:
        restarts: where in the output each piece begins; None without compression.
    """

    restarts: list[int] | None

    def compress(self, data: bytes | memoryview, /) -> bytes | memoryview: ...
    def flush(self) -> bytes: ...


class _Store:
    restarts: list[int] | None = None

    def compress(self, data: bytes | memoryview, /) -> bytes | memoryview:
        return data

    def flush(self) -> bytes:
        return b""


class _Deflate:
    def __init__(self, wbits: int, header: int) -> None:
        self._stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, wbits)
        self._header = header
        self._taken = self._made = 0
        self.restarts: list[int] | None = []

    def compress(self, data: bytes | memoryview, /) -> bytes:
        view, made = memoryview(data).cast("B"), []
        while view:
            if self._taken % PIECE == 0:
                made.append(self._restart())
            piece = view[: PIECE - self._taken % PIECE]
            made.append(self._counted(self._stream.compress(piece)))
            self._taken += len(piece)
            view = view[len(piece) :]
        return b"".join(made)

    def flush(self) -> bytes:
        return self._stream.flush()

    def _restart(self) -> bytes:
        flushed = self._counted(self._stream.flush(zlib.Z_FULL_FLUSH)) if self._taken else b""
        assert self.restarts is not None
        self.restarts.append(self._made or self._header)
        return flushed

    def _counted(self, made: bytes) -> bytes:
        self._made += len(made)
        return made


def inflated(data: bytes | memoryview, size: int) -> bytes:
    """The `size` bytes of a piece. Raises zlib.error for other data."""
    piece = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, size)
    if len(piece) != size:
        raise zlib.error(f"{len(piece):,} bytes of {size:,}")
    return piece


def _first_piece(window: bytes) -> tuple[int, int, bool]:
    """The number of uncompressed bytes of the first piece of a window, where its compressed bytes end, and
    whether it is the last one. A piece ends with a flush after PIECE bytes, or else with the stream. Raises
    zlib.error.
    """
    stream, size, end = zlib.decompressobj(-zlib.MAX_WBITS), 0, 0
    while size <= PIECE and not stream.eof and (flush := window.find(_FLUSHED, end)) >= 0:
        # the four bytes may also be data
        size += len(stream.decompress(window[end : flush + len(_FLUSHED)], PIECE + 1 - size))
        end = flush + len(_FLUSHED)
        if size == PIECE and not stream.eof:
            # what was found may be the end of stored data, and the flush follows
            return size, end + 5 * (window[end : end + 5] == b"\0" + _FLUSHED), False
    if size <= PIECE and not stream.eof:
        size += len(stream.decompress(window[end:], PIECE + 1 - size))
        end = len(window)
    return size, end - len(stream.unused_data), stream.eof


@dataclass(frozen=True, kw_only=True)
class Codec:
    """A compression.

    Attributes:
        suffix: the suffix of a file's name, after `.tfrecord`.
        tensorflow: the name in `tf.data.TFRecordDataset`.
        wbits: zlib's parameter that selects the container; 0 without compression.
        header, trailer: the bytes before and after the compressed data.
        begins: whether a file with the given first bytes, which are no frame, may be compressed this way.
        concatenated: whether consecutive streams count as one, as in TensorFlow.
    """

    suffix: str
    tensorflow: str
    wbits: int
    begins: Callable[[bytes], bool]
    header: int = 0
    trailer: int = 0
    concatenated: bool = False

    def compressor(self) -> Compressor:
        """Compresses a file piece by piece. Equal input gives equal bytes: there is no time and no name
        in them.
        """
        return _Deflate(self.wbits, self.header) if self.wbits else _Store()

    def decompressor(self) -> zlib._Decompress:
        """Decompresses one stream piece by piece."""
        return zlib.decompressobj(self.wbits)

    def restarts(self, data: memoryview) -> list[int] | None:
        """Where each piece of a compressed file begins; None if it does not consist of pieces."""
        restarts, start, stop = list[int](), self.header, len(data) - self.trailer
        try:
            while True:
                window = bytes(data[start : min(start + _LARGEST_PIECE, max(start, stop))])
                size, end, is_last = _first_piece(window)
                if size:
                    restarts.append(start)
                start += end
                if is_last:
                    return restarts if start == stop else None
                if size != PIECE:
                    return None
        except zlib.error:
            return None


def _begins_zlib(start: bytes) -> bool:
    """Whether bytes begin with a header of RFC 1950 for a window of 32 KiB."""
    return len(start) > 1 and start[0] == 0x78 and (start[0] << 8 | start[1]) % 31 == 0


CODECS: Mapping[Compression, Codec] = {
    "none": Codec(suffix="", tensorflow="", wbits=0, begins=lambda start: not start),
    "gzip": Codec(
        suffix=".gz",
        tensorflow="GZIP",
        wbits=31,
        begins=lambda start: start.startswith(b"\x1f\x8b"),
        header=10,
        trailer=8,
        concatenated=True,
    ),
    "zlib": Codec(suffix=".zlib", tensorflow="ZLIB", wbits=15, begins=_begins_zlib, header=2, trailer=4),
}
