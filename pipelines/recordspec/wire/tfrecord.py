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
from recordspec.wire.inflated import BrokenStream, Inflated, Readable, inflated
from recordspec.wire.recognised import recognised, what_is
from recordspec.wire.strings import Ints, Strings, items, windows

Compression = Literal["none", "gzip", "zlib"]

HEAD, TAIL = 12, 4
TF_COMPRESSION = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}

_START = 512  # bytes that tell what a file is
_EXPECTED = "a TFRecord file"
_MASK_DELTA = 0xA282EAD8  # tensorflow/core/lib/hash/crc32c.h
_WINDOW = {"gzip": 31, "zlib": 15}  # zlib's wbits: 16 more means a gzip header
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
    """How a file is compressed, by its first bytes (names lie). An empty file is not.

    Raises RecordError where they are not those of a TFRecord file.
    """
    start = _start(path)
    compression = _compression(start)
    if compression is None or (start and foreign(path) is not None):
        raise RecordError(Problem(where=str(path), expected=_EXPECTED, got=_what(start)))
    return compression


def foreign(path: Path) -> Problem | None:
    """What a file is that is no TFRecord file, not even a damaged one, as far as that can be told."""
    start = _start(path)
    if not start or _length(_first(start)) is not None or recognised(_first(start)) is None:
        return None
    return Problem(where=str(path), expected=_EXPECTED, got=_what(start))


def _start(path: Path) -> bytes:
    with _open(path) as file:
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


def _what(start: bytes) -> str:
    compression = _compression(start)
    return what_is(start) if compression is None else f"{compression} data of {what_is(_first(start))}"


@dataclass(frozen=True)
class Record:
    """One record of a file: its number, the byte where its frame begins, its data.

    In a compressed file `offset` counts uncompressed bytes.
    """

    number: int
    offset: int
    data: bytes

    @property
    def stop(self) -> int:
        """The byte behind it."""
        return self.offset + HEAD + len(self.data) + TAIL


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


@dataclass(frozen=True)
class Damage:
    """What stands in the place of a record that cannot be read.

    Attributes:
        number, offset: of the record.
        problem: what is wrong.
        stop: the byte behind it; None where no record behind it can be found.
    """

    number: int
    offset: int
    problem: Problem
    stop: int | None = None


def scan(path: Path, stretch: Stretch | None = None) -> Iterator[Record]:
    """The records of a file, or of a stretch of it, each with its CRCs checked.

    Raises RecordError at the first bad one.
    """
    compression = "none" if stretch is not None else compression_of(path)
    for found in _walk(path, compression, stretch):
        if isinstance(found, Damage):
            raise RecordError(found.problem, found.number)
        yield found


def salvage(path: Path) -> Iterator[Record | Damage]:
    """The records of a file as far as they can be read, and damage in the place of those that cannot."""
    problem = foreign(path)
    if problem is None:
        yield from _walk(path, _compression(_start(path)) or "none", None)
    else:
        yield Damage(0, 0, problem)


def _walk(path: Path, compression: Compression, stretch: Stretch | None) -> Iterator[Record | Damage]:
    limit = path.stat().st_size if compression == "none" else None
    number, offset = (0, 0) if stretch is None else (stretch.number, stretch.start)
    with _open(path) as raw:
        raw.seek(offset)
        file: Readable = raw if compression == "none" else Inflated(raw)
        try:
            while (stretch is None or offset < stretch.stop) and (head := file.read(HEAD)):
                length = _checked_length(path, number, offset, head, limit)
                stop = offset + HEAD + length + TAIL
                data, tail = file.read(length), file.read(TAIL)
                if len(data) < length or len(tail) < TAIL:
                    raise _cut(path, number, offset, f"{length:,} bytes of data and its CRC")
                if struct.unpack("<I", tail)[0] == _masked_crc(data):
                    yield Record(number, offset, data)
                else:
                    bad = _problem(path, number, offset, "data that matches its CRC", "other bytes")
                    yield Damage(number, offset, bad, stop)
                number, offset = number + 1, stop
        except RecordError as error:
            yield Damage(number, offset, error.problems[0])
        except BrokenStream as error:
            bad = _problem(path, number, offset, "whole compressed data", str(error))
            yield Damage(number, offset, bad)


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
        bad = _problem(path, number, offset, "a length that matches its CRC", "other bytes")
        raise RecordError(bad, number)
    if size is not None and offset + HEAD + length + TAIL > size:
        raise _cut(path, number, offset, f"{length:,} bytes of data and its CRC")
    return length


def _length(head: bytes) -> int | None:
    """What the first HEAD bytes say, if their CRC is right."""
    if len(head) < HEAD:
        return None
    length, crc = struct.unpack_from("<QI", head)
    return int(length) if crc == _masked_crc(head[:8]) else None


def _cut(path: Path, number: int, offset: int, expected: str) -> RecordError:
    return RecordError(_problem(path, number, offset, expected, "the end of the file"), number)


def _problem(path: Path, number: int, offset: int, expected: str, got: str) -> Problem:
    return Problem(where=f"{path}: {place(number, offset)}", expected=expected, got=got)


def place(number: int, offset: int) -> str:
    """How messages name a record."""
    return f"record {number} at byte {offset:,}"


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise StoreError(
            Problem(where=str(path), expected="a readable file", got=str(error.strerror))
        ) from error
