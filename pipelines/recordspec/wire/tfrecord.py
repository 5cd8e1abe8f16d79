"""The TFRecord file format: frames with lengths and CRCs, and whole-file compression.

A record is `length (u64) | masked crc32c(length) | data | masked crc32c(data)`, little-endian
(tensorflow/core/lib/io/record_writer.h). There is no header and no footer.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Protocol

import crc32c
import numpy as np
import numpy.typing as npt

from recordspec.errors import Problem, RecordError, StoreError
from recordspec.wire.strings import Ints, Strings, items, windows

Compression = Literal["none", "gzip", "zlib"]

HEAD, TAIL = 12, 4
TF_COMPRESSION = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}

_CHUNK = 1 << 20
_MASK_DELTA = 0xA282EAD8  # tensorflow/core/lib/hash/crc32c.h
_WINDOW = {"gzip": 31, "zlib": 15}  # zlib's wbits: 16 more means a gzip header
_WINDOW_EITHER = 47
# zlib's own default level is 6; TensorFlow's writer takes the same.
_LEVEL = 6


def seal(records: Strings) -> memoryview:
    """Frames encoded records in place, and returns the bytes of all of them.

    Each record must have room for HEAD bytes before and TAIL bytes after its data.
    """
    starts, ends = records.offsets[:-1] + HEAD, records.offsets[1:] - TAIL
    view = records.buffer.data
    windows(records.buffer, HEAD)[starts - HEAD] = _heads(
        np.atleast_1d(np.asarray(records.each)) - HEAD - TAIL
    )
    checksums = [
        crc32c.crc32c(view[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    windows(records.buffer, TAIL)[ends] = _mask(np.array(checksums, np.uint32)).astype("<u4").view(f"V{TAIL}")
    return view


def frames(records: Sequence[bytes]) -> Strings:
    """Records as they stand in a file."""
    held = Strings.of([b"".join([bytes(HEAD), record, bytes(TAIL)]) for record in records])
    framed = Strings(held.buffer.copy(), held.offsets)
    seal(framed)
    return framed


def framed(data: bytes) -> bytes:
    """One record as it stands in a file."""
    length = struct.pack("<Q", len(data))
    crcs = struct.pack("<I", _masked_crc(length)), struct.pack("<I", _masked_crc(data))
    return b"".join([length, crcs[0], data, crcs[1]])


def _heads(lengths: Ints) -> npt.NDArray[np.void]:
    """The first HEAD bytes of records of these lengths."""
    distinct, index = np.unique(lengths, return_inverse=True)
    crcs = [crc32c.crc32c(struct.pack("<Q", length)) for length in distinct.tolist()]
    heads = np.empty((len(distinct), HEAD), np.uint8)
    heads[:, :8] = distinct.astype("<u8").view(np.uint8).reshape(-1, 8)
    heads[:, 8:] = _mask(np.array(crcs, np.uint32)).astype("<u4").view(np.uint8).reshape(-1, 4)
    return items(heads)[index]


def _mask(crc: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    rotated = (crc >> np.uint32(15)) | (crc << np.uint32(17))
    masked: npt.NDArray[np.uint32] = rotated + np.uint32(_MASK_DELTA)
    return masked


def _masked_crc(data: bytes | memoryview) -> int:
    crc = crc32c.crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


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
    return zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW[compression])


def compression_of(path: Path) -> Compression:
    """How a file is compressed, by its first bytes (names lie). An empty file is not."""
    with _open(path) as file:
        start = file.read(HEAD)
    if len(start) == HEAD and _length(start) is not None:
        return "none"
    if start[:2] == b"\x1f\x8b":
        return "gzip"
    if len(start) > 1 and start[0] == 0x78 and (start[0] << 8 | start[1]) % 31 == 0:  # RFC 1950
        return "zlib"
    if not start:
        return "none"
    raise RecordError(
        Problem(where=str(path), expected="a TFRecord file", got=f"a file that begins {start!r}")
    )


@dataclass(frozen=True)
class Record:
    """One record of a file: its number, the byte where its frame begins, its data.

    In a compressed file `offset` counts uncompressed bytes.
    """

    number: int
    offset: int
    data: bytes


@dataclass(frozen=True)
class Stretch:
    """Records of an uncompressed file that follow each other.

    Attributes:
        number: of the first.
        start: the byte where it begins.
        stop: the byte behind the last.
    """

    number: int
    start: int
    stop: int


def scan(path: Path, stretch: Stretch | None = None) -> Iterator[Record]:
    """The records of a file, or of a stretch of it, each with its CRCs checked.

    Raises RecordError at the first bad one.
    """
    compression = "none" if stretch is not None else compression_of(path)
    limit = path.stat().st_size if compression == "none" else None
    with _open(path) as raw:
        file: _Readable = raw if compression == "none" else _Inflated(raw, str(path))
        number, offset = (0, 0) if stretch is None else (stretch.number, stretch.start)
        raw.seek(offset)
        while (stretch is None or offset < stretch.stop) and (head := file.read(HEAD)):
            length = _checked_length(path, number, offset, head, limit)
            data, tail = file.read(length), file.read(TAIL)
            if len(data) < length or len(tail) < TAIL:
                raise _cut(path, number, offset, f"{length:,} bytes of data and its CRC")
            if struct.unpack("<I", tail)[0] != _masked_crc(data):
                raise _problem(path, number, offset, "data that matches its CRC", "other bytes")
            yield Record(number, offset, data)
            number, offset = number + 1, offset + HEAD + length + TAIL


def stretches(path: Path, size: int) -> Iterator[Stretch]:
    """An uncompressed file in stretches of at least `size` bytes each, but for the last.

    Reads the lengths only. Raises RecordError at the first bad length.
    """
    first, start, stop = 0, 0, 0
    for number, stop in _ends(path):
        if stop - start >= size:
            yield Stretch(first, start, stop)
            first, start = number + 1, stop
    if start < stop:
        yield Stretch(first, start, stop)


def count(path: Path) -> int:
    """How many records a file has. Reads the lengths only, unless the file is compressed."""
    records: Iterator[Any] = scan(path) if compression_of(path) != "none" else _ends(path)
    return sum(1 for _ in records)


def _ends(path: Path) -> Iterator[tuple[int, int]]:
    """The number of each record of an uncompressed file, and the byte behind it."""
    size, offset, number = path.stat().st_size, 0, 0
    with _open(path) as file:
        while offset < size:
            file.seek(offset)
            offset += HEAD + TAIL + _checked_length(path, number, offset, file.read(HEAD), size)
            yield number, offset
            number += 1


def _checked_length(path: Path, number: int, offset: int, head: bytes, size: int | None) -> int:
    """The length in a record's head. It is not trusted before its CRC, nor past the file's end."""
    if len(head) < HEAD:
        raise _cut(path, number, offset, f"{HEAD} bytes of length and CRC")
    length = _length(head)
    if length is None:
        raise _problem(path, number, offset, "a length that matches its CRC", "other bytes")
    if size is not None and offset + HEAD + length + TAIL > size:
        raise _cut(path, number, offset, f"{length:,} bytes of data and its CRC")
    return length


def _length(head: bytes) -> int | None:
    length, crc = struct.unpack("<QI", head)
    return int(length) if crc == _masked_crc(head[:8]) else None


def _cut(path: Path, number: int, offset: int, expected: str) -> RecordError:
    return _problem(path, number, offset, expected, "the end of the file")


def _problem(path: Path, number: int, offset: int, expected: str, got: str) -> RecordError:
    where = f"{path}: {place(number, offset)}"
    return RecordError(Problem(where=where, expected=expected, got=got), number)


def place(number: int, offset: int) -> str:
    """How messages name a record."""
    return f"record {number} at byte {offset:,}"


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Inflated:
    """A gzip or zlib stream, read piece by piece; streams that follow each other count as one."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name
        self._stream = zlib.decompressobj(_WINDOW_EITHER)
        self._ready = b""  # inflated, and from `_at` on not yet read
        self._at = 0

    def read(self, size: int, /) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            if self._at == len(self._ready):
                self._ready, self._at = self._next(), 0
                if not self._ready:
                    break
            part = self._ready[self._at : self._at + size]
            self._at += len(part)
            size -= len(part)
            parts.append(part)
        return b"".join(parts)

    def _next(self) -> bytes:
        """Some bytes, none at the end. Many at once: what zlib leaves of its input, it copies."""
        while True:
            if self._stream.eof:
                data = self._stream.unused_data or self._file.read(_CHUNK)
                if not data:
                    return b""
                self._stream = zlib.decompressobj(_WINDOW_EITHER)
            else:
                data = self._stream.unconsumed_tail or self._file.read(_CHUNK)
            if part := self._inflate(data):
                return part
            if not data and not self._stream.eof:
                raise self._broken("the end of the file")

    def _inflate(self, data: bytes) -> bytes:
        try:
            return self._stream.decompress(data, _CHUNK)
        except zlib.error as error:
            raise self._broken(str(error)) from error

    def _broken(self, got: str) -> RecordError:
        return RecordError(Problem(where=self._name, expected="whole compressed data", got=got))


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise StoreError(
            Problem(where=str(path), expected="a readable file", got=str(error.strerror))
        ) from error
