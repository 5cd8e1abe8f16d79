"""How a file is compressed as a whole, and whether it is a TFRecord file at all: its first bytes tell."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Literal, Protocol

from recordspec.errors import Problem, RecordError
from recordspec.locations import open_file
from recordspec.wire.framing import HEAD, length_in
from recordspec.wire.inflated import WINDOW, inflated, is_begun
from recordspec.wire.recognised import recognised, what_is

Compression = Literal["none", "gzip", "zlib"]

TF_COMPRESSION = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}

_START = 512  # bytes that tell what a file is
_EXPECTED = "a TFRecord file"
# zlib's own default level is 6; TensorFlow's writer takes the same.
_LEVEL = 6


class Compressor(Protocol):
    """What zlib.compressobj makes."""

    def compress(self, data: bytes | memoryview, /) -> bytes | memoryview: ...
    def flush(self) -> bytes: ...


class _Store:
    def compress(self, data: bytes | memoryview, /) -> bytes | memoryview:
        return data

    def flush(self) -> bytes:
        return b""


def compressor(compression: Compression) -> Compressor:
    """Compresses a whole file piece by piece. Equal input gives equal bytes: no time, no name."""
    if compression == "none":
        return _Store()
    return zlib.compressobj(_LEVEL, zlib.DEFLATED, WINDOW[compression])


def compression_of(path: Path) -> Compression:
    """How a file is compressed, by its first bytes (names lie). An empty file is not.

    Raises RecordError where they are not those of a TFRecord file.
    """
    start = _start(path)
    compression = _compression(start)
    if compression is None or (start and foreign(path) is not None):
        raise RecordError(Problem(where=str(path), expected=_EXPECTED, got=_what(start)))
    return compression


def likely_compression(path: Path) -> Compression:
    """The same, for a file that may be damaged: what is not known to be compressed is not."""
    start = _start(path)
    compression = _compression(start) or "none"
    # The two bytes that tell may be those of a length.
    return compression if compression == "none" or is_begun(start) else "none"


def foreign(path: Path) -> Problem | None:
    """What a file is that is no TFRecord file, not even a damaged one, as far as that can be told."""
    start = _start(path)
    first = _first(start)  # of a compressed file without records there are none
    if not first or _length(first) is not None or recognised(first) is None:
        return None
    return Problem(where=str(path), expected=_EXPECTED, got=_what(start))


def _start(path: Path) -> bytes:
    with open_file(path) as file:
        return file.read(_START)


def _compression(start: bytes) -> Compression | None:
    if not start or _length(start) is not None:
        return "none"
    if start[:2] == b"\x1f\x8b":
        return "gzip"
    if len(start) > 1 and start[0] == 0x78 and (start[0] << 8 | start[1]) % 31 == 0:  # RFC 1950
        return "zlib"
    return None


def _first(start: bytes) -> bytes:
    """The first bytes of what a file holds, compressed or not."""
    return start if _compression(start) in (None, "none") else inflated(start)


def _length(start: bytes) -> int | None:
    return length_in(start[:HEAD])


def _what(start: bytes) -> str:
    compression, first = _compression(start), _first(start)
    zeros = first and not first.strip(b"\0")  # nobody looked at how many
    found = "bytes that begin with zeros" if zeros else what_is(first)
    return found if compression is None else f"{compression} data of {found}"
