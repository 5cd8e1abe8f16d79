"""A record's frame, its length and two CRCs around its data; and the problems of corrupt frames.

A record is `length (u64) | masked crc32c(length) | data | masked crc32c(data)`, little-endian
(tensorflow/core/lib/io/record_writer.h). There is no header and no footer.
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
from recordspec.wire.strings import Bytes, Ints, Strings, items, sliding_windows

Crcs = npt.NDArray[np.uint32]

HEADER_BYTES, FOOTER_BYTES = 12, 4
FRAME_BYTES = HEADER_BYTES + FOOTER_BYTES
# protobuf holds the size of a message in an int32. TensorFlow (2.16 and 2.21) parses an Example of 2**31 - 1
# bytes; of one byte more its parser takes the size for a negative one, and the process dies (SIGSEGV).
LARGEST_RECORD = (1 << 31) - 1
AT_MOST = f"a record of at most {LARGEST_RECORD:,} bytes, the most that TensorFlow reads"

_MASK_DELTA = 0xA282EAD8  # tensorflow/core/lib/hash/crc32c.h
# Headers that are remembered: records of one size, or of a few thousand sizes, have few.
_REMEMBERED = 1 << 13


def seal(records: Strings) -> memoryview:
    """Frames encoded records in place, and returns the bytes of all of them.

    Each record must have room for HEADER_BYTES before and FOOTER_BYTES after its data.
    """
    starts, stops = records.offsets[:-1] + HEADER_BYTES, records.offsets[1:] - FOOTER_BYTES
    lengths = np.atleast_1d(np.asarray(records.each)) - FRAME_BYTES
    sliding_windows(records.buffer, HEADER_BYTES)[starts - HEADER_BYTES] = headers(lengths)
    checksums = masked_crcs(records.buffer, starts, stops)
    sliding_windows(records.buffer, FOOTER_BYTES)[stops] = checksums.astype("<u4").view(f"V{FOOTER_BYTES}")
    return records.buffer.data


def frames(records: Sequence[bytes]) -> Strings:
    """Frames records; returns new bytes."""
    held = Strings.of([b"".join([bytes(HEADER_BYTES), record, bytes(FOOTER_BYTES)]) for record in records])
    framed = Strings(held.buffer.copy(), held.offsets)
    seal(framed)
    return framed


def framed(data: bytes) -> bytes:
    """Frames one record."""
    length = struct.pack("<Q", len(data))
    crcs = struct.pack("<I", masked_crc([length])), struct.pack("<I", masked_crc([data]))
    return b"".join([length, crcs[0], data, crcs[1]])


def headers(lengths: Ints) -> npt.NDArray[np.void]:
    """The headers of records of these lengths."""
    distinct, index = np.unique(lengths, return_inverse=True)
    crcs = [crc32c.crc32c(struct.pack("<Q", length)) for length in distinct.tolist()]
    made = np.empty((len(distinct), HEADER_BYTES), np.uint8)
    made[:, :8] = distinct.astype("<u8").view(np.uint8).reshape(-1, 8)
    made[:, 8:] = mask(np.array(crcs, np.uint32)).astype("<u4").view(np.uint8).reshape(-1, 4)
    return items(made)[index]


def masked_crcs(buffer: Bytes, starts: Ints, stops: Ints) -> Crcs:
    """The masked CRCs of data in a buffer."""
    view = buffer.data
    bounds = zip(starts.tolist(), stops.tolist(), strict=True)
    return mask(np.array([crc32c.crc32c(view[start:stop]) for start, stop in bounds], np.uint32))


def footers(buffer: Bytes, stops: Ints) -> Crcs:
    """The masked CRCs that records carry after their data."""
    carried: Crcs = sliding_windows(buffer, FOOTER_BYTES)[stops].view("<u4")
    return carried


def mask(crc: Crcs) -> Crcs:
    """Masks CRCs as TFRecord files do."""
    rotated = (crc >> np.uint32(15)) | (crc << np.uint32(17))
    masked: Crcs = rotated + np.uint32(_MASK_DELTA)
    return masked


def masked_crc(parts: Iterable[bytes | memoryview]) -> int:
    """The masked CRC of these parts together."""
    crc = 0
    for part in parts:
        crc = crc32c.crc32c(part, crc)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def is_whole(frame: memoryview) -> bool:
    """Whether the data of a frame with a valid header match their CRC."""
    return masked_crc([frame[HEADER_BYTES:-FOOTER_BYTES]]) == int.from_bytes(frame[-FOOTER_BYTES:], "little")


@lru_cache(_REMEMBERED)
def length_in(header: bytes) -> int | None:
    """The length in a record's header; None if its CRC does not match."""
    if len(header) < HEADER_BYTES:
        return None
    length, crc = struct.unpack("<QI", header)
    return int(length) if crc == masked_crc([header[:8]]) else None


def frames_in(buffer: Bytes, at: int = 0) -> Ints:
    """The places where whole frames begin in a buffer, from byte `at` on, and where the last one ends, int64
    `[n + 1]`. Their data are not checked.

    Each header gives the place of the next; while they are equal, many are compared at once.
    """
    view, found = buffer.data, [np.array([at])]
    places: list[int] = []
    length, same = -1, 0
    while (next_length := length_in(bytes(view[at : at + HEADER_BYTES]))) is not None:
        stop = at + FRAME_BYTES + next_length
        if stop > len(buffer):
            break
        same = same + 1 if next_length == length else 0
        length, at = next_length, stop
        places.append(at)
        if same >= _ALIKE:
            run = _equal_run(buffer, at, length, 8 * same)
            found += [np.array(places), run]
            same, places = same + len(run), []
            at = int(run[-1]) if len(run) else at
    return np.concatenate([*found, np.array(places, np.int64)])


# Records of one length in a row before more of them are looked for at once, which takes as long as to step
# over
# twenty.
_ALIKE = 16


def _equal_run(buffer: Bytes, at: int, length: int, most: int) -> Ints:
    """The ends of the next frames of this length, up to `most`."""
    step = FRAME_BYTES + length
    count = 1 + min(most, (len(buffer) - at) // step)  # with the one before them
    lengths = np.ndarray((count,), "<u8", buffer, at - step, (step,))
    crcs = np.ndarray((count,), "<u4", buffer, at - step + 8, (step,))
    alike = (lengths == lengths[0]) & (crcs == crcs[0])
    count = (count if alike.all() else int(alike.argmin())) - 1
    return at + step * np.arange(1, count + 1)


class LengthError(RecordError):
    """A length with a valid CRC that must not be trusted: the file has fewer bytes, or TensorFlow reads no
    record of that size. TensorFlow allocates that size, or its parser reads it as a negative number: the
    process dies.
    """


def checked_length(path: Location, number: int, offset: int, header: bytes, size: int | None) -> int:
    """The length in a record's header, whose CRC is checked, and that it does not exceed the file.

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
    """Describes what should follow a header."""
    return f"{length:,} bytes of data and its CRC"


def truncated(path: Location, number: int, offset: int, expected: str) -> RecordError:
    """The error of a record that the file ends in."""
    return RecordError(problem_at(path, number, offset, expected, "the end of the file"), number)


def problem_at(path: Location, number: int, offset: int, expected: str, got: str) -> Problem:
    """A problem of a record."""
    return Problem(where=f"{path}: {place(number, offset)}", expected=expected, got=got)


def place(number: int, offset: int) -> str:
    """Names a record in messages."""
    return f"record {number} at byte {offset:,}"
