"""A record's frame: its length and two CRCs around its data. Also the problems of corrupt frames.

A record is `length (u64) | masked crc32c(length) | data | masked crc32c(data)`, little-endian
(tensorflow/core/lib/io/record_writer.h). There is no header and no footer of the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache

import crc32c
import numpy as np
import numpy.typing as npt

from recordspec.errors import Problem, RecordError
from recordspec.locations import Location
from recordspec.wire import native
from recordspec.wire.arrays import (
    ArrowArray,
    Bytes,
    Ints,
    binary_array,
    lengths_of,
    offsets,
    sliding_windows,
    strings_array,
)

Crcs = npt.NDArray[np.uint32]

HEADER_BYTES, FOOTER_BYTES = 12, 4
FRAME_BYTES = HEADER_BYTES + FOOTER_BYTES
# protobuf holds the size of a message in an int32. TensorFlow (2.16 and 2.21) parses an Example of 2**31 - 1
# bytes. With one byte more, its parser takes the size for a negative number, and the process dies (SIGSEGV).
LARGEST_RECORD = (1 << 31) - 1
AT_MOST = f"a record of at most {LARGEST_RECORD:,} bytes, the most that TensorFlow reads"

_MASK_DELTA = 0xA282EAD8  # tensorflow/core/lib/hash/crc32c.h
# Frames searched at a time.
_AT_ONCE = 1 << 16
# Cached headers: records of one size, or of a few thousand sizes, have few different headers.
_REMEMBERED = 1 << 13


def frames(records: Sequence[bytes]) -> ArrowArray:
    """Frames records."""
    library = native.library()
    if library is None:
        return strings_array([framed(record) for record in records])
    room = (bytes(HEADER_BYTES), bytes(FOOTER_BYTES))
    data = bytearray().join(part for record in records for part in (room[0], record, room[1]))
    buffer, places = np.frombuffer(data, np.uint8), offsets(lengths_of(records) + FRAME_BYTES)
    library.rs_seal(native.at(buffer), native.at(places), len(records))
    return binary_array(buffer, places)


def framed(data: bytes) -> bytes:
    """Frames one record."""
    length = struct.pack("<Q", len(data))
    crcs = struct.pack("<I", masked_crc([length])), struct.pack("<I", masked_crc([data]))
    return b"".join([length, crcs[0], data, crcs[1]])


def masked_crcs(buffer: Bytes, starts: Ints, stops: Ints) -> Crcs:
    """The masked CRCs of ranges of a buffer."""
    if (library := native.library()) is not None:
        crcs = np.empty(len(starts), np.uint32)
        starts, stops = native.ints(starts), native.ints(stops)
        places = map(native.at, (buffer, starts, stops))
        library.rs_masked_crcs(*places, len(starts), native.at(crcs))
        return crcs
    view = buffer.data
    bounds = zip(starts.tolist(), stops.tolist(), strict=True)
    return np.array([masked_crc([view[start:stop]]) for start, stop in bounds], np.uint32)


def footers(buffer: Bytes, stops: Ints) -> Crcs:
    """The masked CRCs stored after the data of records."""
    carried: Crcs = sliding_windows(buffer, FOOTER_BYTES)[stops].view("<u4")
    return carried


def masked_crc(parts: Iterable[bytes | memoryview]) -> int:
    """The masked CRC of the concatenated parts."""
    crc = 0
    for part in parts:
        crc = crc32c.crc32c(part, crc)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def is_whole(frame: memoryview) -> bool:
    """Whether the data of a frame with a valid header matches its CRC."""
    return masked_crc([frame[HEADER_BYTES:-FOOTER_BYTES]]) == int.from_bytes(frame[-FOOTER_BYTES:], "little")


@lru_cache(_REMEMBERED)
def length_in(header: bytes) -> int | None:
    """The length in a record's header; None if its CRC does not match."""
    if len(header) < HEADER_BYTES:
        return None
    length, crc = struct.unpack("<QI", header)
    return int(length) if crc == masked_crc([header[:8]]) else None


def first_record(start: bytes) -> memoryview | None:
    """The data of a file's first record, if `start` contains all of it, intact."""
    length = length_in(start[:HEADER_BYTES])
    if length is None or len(start) < FRAME_BYTES + length:
        return None
    frame = memoryview(start)[: FRAME_BYTES + length]
    return frame[HEADER_BYTES:-FOOTER_BYTES] if is_whole(frame) else None


def frames_in(buffer: Bytes, at: int = 0) -> Ints:
    """The offsets of whole frames in a buffer, from byte `at` on, and the end of the last one, int64
    `[n + 1]`. Their data is not checked.

    Each header gives the offset of the next one.
    """
    library = native.library()
    if library is None:
        return _stepped_over(buffer, at)
    chunks, count = [], _AT_ONCE
    while count == _AT_ONCE:
        places = np.empty(min(_AT_ONCE, (len(buffer) - at) // FRAME_BYTES) + 1, np.int64)
        count = library.rs_frames(native.at(buffer), len(buffer), at, native.at(places), len(places) - 1)
        chunks.append(places[:count])
        at = int(places[count])
    return np.concatenate([*chunks, [at]])


def _stepped_over(buffer: Bytes, at: int) -> Ints:
    view, places = buffer.data, [at]
    while (length := length_in(bytes(view[at : at + HEADER_BYTES]))) is not None:
        at += FRAME_BYTES + length
        if at > len(buffer):
            break
        places.append(at)
    return np.array(places)


def headers_in(buffer: Bytes, longest: int) -> Ints:
    """The offsets of headers with lengths up to `longest` in a buffer, int64 `[n]`. By chance, 1 in 2**32
    offsets with a valid length looks like a header.
    """
    library = native.library()
    count = max(0, len(buffer) - HEADER_BYTES + 1)
    if library is None:
        lengths = np.ndarray((count,), "<u8", buffer, 0, (1,)) if count else np.zeros(0, np.uint64)
        carried = np.ndarray((count,), "<u4", buffer, 8, (1,)) if count else np.zeros(0, np.uint32)
        # zeros, of which a crash may leave gigabytes, are no header
        may_be = np.flatnonzero((lengths <= longest) & (lengths | carried != 0)).tolist()
        view = buffer.data
        headers = [at for at in may_be if length_in(bytes(view[at : at + HEADER_BYTES])) is not None]
        return np.array(headers, np.int64)
    places = np.empty(count, np.int64)
    number = library.rs_headers(native.at(buffer), len(buffer), 0, longest, native.at(places), count)
    return places[:number]


class LengthError(RecordError):
    """A length with a valid CRC that must not be trusted: the file has fewer bytes, or TensorFlow reads
    no record of that size. TensorFlow would allocate that size, or its parser would read it as a negative
    number, and the process would die.
    """


def checked_length(path: Location, number: int, offset: int, header: bytes, size: int | None) -> int:
    """The length in a record's header. Checks its CRC, and that the record does not exceed the file.

    Raises RecordError.
    """
    if len(header) < HEADER_BYTES:
        raise truncated(path, number, offset, f"{HEADER_BYTES} bytes of length and CRC")
    length = length_in(header)
    if length is None:
        expected = "a length that matches its CRC"
        raise RecordError(problem_at(path, number, offset, expected, "other bytes"), number)
    if size is not None and offset + FRAME_BYTES + length > size:
        raise LengthError(truncated(path, number, offset, data_of(length)).problems, number)
    return length


def too_large(path: Location, number: int, offset: int, length: int) -> Problem:
    """The problem of a record that TensorFlow cannot read."""
    return problem_at(path, number, offset, AT_MOST, f"{length:,} bytes")


def data_of(length: int) -> str:
    """Describes the data that should follow a header."""
    return f"{length:,} bytes of data and its CRC"


def truncated(path: Location, number: int, offset: int, expected: str) -> RecordError:
    """The error of a record that is cut off by the end of the file."""
    return RecordError(problem_at(path, number, offset, expected, "the end of the file"), number)


def problem_at(path: Location, number: int, offset: int, expected: str, got: str) -> Problem:
    """A problem of a record."""
    return Problem(where=f"{path}: {place(number, offset)}", expected=expected, got=got)


def place(number: int, offset: int) -> str:
    """Names a record in messages."""
    return f"record {number} at byte {offset:,}"
