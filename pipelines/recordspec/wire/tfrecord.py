"""The records of TFRecord files, which may be compressed as a whole. There are three ways to read a file:

- `scan_chunks`, and `scan` record by record, for a file that should be whole: they raise RecordError at the
  first record that cannot be read;
- `salvage`, for a file that may be corrupt: it yields Damage for a record that cannot be read, and ends where
  TensorFlow's reader ends, at an invalid length; `recovery.rescue` searches after it;
- `record_ends`, for the offsets of records in an uncompressed file: it reads only the lengths.

The first two check every CRC, and read many records at a time, without copying each.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np

from recordspec.errors import Problem, RecordError
from recordspec.locations import Location, open_file
from recordspec.wire.arrays import Bytes, Ints
from recordspec.wire.compression import Compression
from recordspec.wire.file_types import FileStart, compression_of
from recordspec.wire.framing import (
    FOOTER_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    LARGEST_RECORD,
    LengthError,
    checked_length,
    data_of,
    footers,
    frames_in,
    length_in,
    masked_crc,
    masked_crcs,
    place,
    problem_at,
    too_large,
    truncated,
)
from recordspec.wire.streams import JOINED, BufferPosition, Readable, ReadBuffer, may_be_joined, open_stream

CHUNK_BYTES = 4 << 20
# A larger record is loaded only after its CRC is verified, for which it is read twice: a few megabytes may
# inflate to gigabytes.
BELIEVED = 64 << 20
# Bytes of the first read, since some callers need only a few records.
_FIRST = 64 << 10
# Bytes read at a time if only lengths are needed: copies are fastest if they fit into a processor's cache.
_HEADERS_AT_ONCE = 1 << 20
# Larger records are skipped one by one.
_LARGE = 16 << 10


@dataclass(frozen=True)
class Record:
    """A record of a file: its number, the offset of its frame, and its data.

    In a compressed file, `offset` counts uncompressed bytes.
    """

    number: int
    offset: int
    data: bytes

    @property
    def stop(self) -> int:
        """The offset after the record."""
        return self.offset + FRAME_BYTES + len(self.data)


@dataclass(frozen=True)
class Damage:
    """A record that cannot be read.

    Attributes:
        number, offset: the number of the record, and the offset of its frame.
        problem: the reason why it cannot be read.
        stop: the offset after it; None if no record after it can be found.
    """

    number: int
    offset: int
    problem: Problem
    stop: int | None = None


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Consecutive intact records of a file; at least one.

    Attributes:
        buffer: uint8 `[bytes]`; it does not change.
        starts, stops: the offsets in the buffer where the data of each record begins and ends, int64 `[n]`.
        number: the number of the first record.
        offset: the offset of the buffer in the file; in a compressed file, in uncompressed bytes.
    """

    buffer: Bytes
    starts: Ints
    stops: Ints
    number: int
    offset: int

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[Record]:
        view = self.buffer.data
        bounds = zip(self.starts.tolist(), self.stops.tolist(), strict=True)
        for number, (start, stop) in enumerate(bounds, self.number):
            yield Record(number, self.offset + start - HEADER_BYTES, bytes(view[start:stop]))

    @property
    def offsets(self) -> Ints:
        """The offset in the file of each record, int64 `[n]`."""
        return self.starts - HEADER_BYTES + self.offset

    def place(self, index: int) -> str:
        """Names a record of the chunk in messages."""
        return place(self.number + index, self.offset_of(index))

    def offset_of(self, index: int) -> int:
        """The offset in the file of a record of the chunk."""
        return int(self.starts[index]) - HEADER_BYTES + self.offset

    def data(self, index: int) -> memoryview:
        """The data of a record of the chunk, without a copy."""
        return self.buffer.data[int(self.starts[index]) : int(self.stops[index])]

    @property
    def sizes(self) -> Ints:
        """The size in bytes of each framed record, int64 `[n]`."""
        return self.stops - self.starts + FRAME_BYTES

    @property
    def frames(self) -> memoryview:
        """The framed records, as stored in the file."""
        return self.buffer.data[int(self.starts[0]) - HEADER_BYTES : int(self.stops[-1]) + FOOTER_BYTES]


@dataclass(frozen=True)
class RecordRange:
    """Consecutive records of an uncompressed file.

    Attributes:
        number: the number of the first record.
        start: the offset of the first record.
        stop: the offset after the last record.
    """

    number: int
    start: int
    stop: int


def scan(path: Location, within: RecordRange | None = None) -> Iterator[Record]:
    """Reads the records of a file, or of a range of it. Raises RecordError at the first record that
    cannot be read.
    """
    return chain.from_iterable(scan_chunks(path, within))


def scan_chunks(path: Location, within: RecordRange | None = None) -> Iterator[Chunk]:
    """Reads records like `scan`, many at a time."""
    with open_file(path) as file:
        start = FileStart(path, file) if within is None else None
        if start is not None:
            _ = start.compression  # raises if the file is not a TFRecord file
        compression = "none" if start is None else start.likely_compression
        for item in FrameReader(path, file, compression, within, CHUNK_BYTES):
            if isinstance(item, Damage):
                raise RecordError(item.problem, item.number)
            yield item


def salvage(
    path: Location, within: RecordRange | None = None, size: int = CHUNK_BYTES
) -> Iterator[Chunk | Damage]:
    """Reads the records of a file, or of a range of it. Yields Damage for records that cannot be read.

    Uses a few times as much memory as `size`, or as the largest record. The length of a record is trusted
    only if its CRC matches and it fits into the file. It is at most LARGEST_RECORD; in a compressed file, a
    length over BELIEVED is trusted only if the CRC of the data matches. A larger record is Damage: it is
    skipped, except in a compressed file, where nothing is found after it.
    """
    with open_file(path) as file:
        start = FileStart(path, file) if within is None else None
        if start is not None and start.problem is not None:
            yield Damage(0, 0, start.problem)
            return
        compression = "none" if start is None else start.likely_compression
        yield from FrameReader(path, file, compression, within, size)


def one_by_one(items: Iterable[Chunk | Damage]) -> Iterator[Record | Damage]:
    """The items of `salvage`, record by record."""
    for item in items:
        if isinstance(item, Damage):
            yield item
        else:
            yield from item


_Found = TypeVar("_Found", bound=Record | Damage)


def batched(items: Iterable[_Found], size: int, most: int | None = None) -> Iterator[list[_Found]]:
    """Groups records and damage into lists of at most `most` items and about `size` bytes."""
    some: list[_Found] = []
    size_of_some = 0
    for item in items:
        some.append(item)
        size_of_some += len(item.data) if isinstance(item, Record) else 0
        if len(some) == most or size_of_some >= size:
            yield some
            some, size_of_some = [], 0
    if some:
        yield some


def count(path: Location) -> int:
    """Counts the records of a file. Reads only the lengths, unless the file is compressed.

    Raises RecordError if it is corrupt.
    """
    return sum(counts(path))


def counts(path: Location) -> Iterator[int]:
    """Yields numbers of records that add up to `count`."""
    if compression_of(path) == "none":
        return (len(places) for _, places in record_ends(path))
    return map(len, scan_chunks(path))


def record_ends(path: Location, number: int = 0, offset: int = 0) -> Iterator[tuple[int, Ints]]:
    """The ends of the records of an uncompressed file, from record `number` at offset `offset` on.

    Yields, for many records at a time, the number of the first, and the offset after each, int64 `[n]`.
    Raises RecordError at the first invalid length.
    """
    size = path.stat().st_size
    buffer = np.empty(_HEADERS_AT_ONCE, np.uint8)
    ahead = _HEADERS_AT_ONCE
    with open_file(path) as file:
        while offset < size:
            file.seek(offset)
            chunk = buffer[: file.readinto(buffer[:ahead].data)]
            places = frames_in(chunk)[1:] + offset
            if not len(places):
                length = checked_length(path, number, offset, chunk[:HEADER_BYTES].tobytes(), size)
                if length > LARGEST_RECORD:
                    raise LengthError(too_large(path, number, offset, length), number)
                places = np.array([offset + FRAME_BYTES + length])
            yield number, places
            ahead = _HEADERS_AT_ONCE if (int(places[-1]) - offset) // len(places) < _LARGE else HEADER_BYTES
            number, offset = number + len(places), int(places[-1])


def record_ranges(path: Location, size: int) -> Iterator[RecordRange]:
    """Divides an uncompressed file into ranges of at least `size` bytes each, except the last.

    Reads only the lengths. Raises RecordError at the first invalid length.
    """
    first, start, stop = 0, 0, 0
    for number, places in record_ends(path):
        while (at := int(np.searchsorted(places, start + size))) < len(places):
            stop = int(places[at])
            yield RecordRange(first, start, stop)
            first, start = number + at + 1, stop
        stop = int(places[-1])
    if start < stop:
        yield RecordRange(first, start, stop)


def check_lengths(path: Location) -> None:
    """Compares each length of an uncompressed file with the file's size, up to the first header that is
    invalid in another way: there, TensorFlow raises an error.

    Raises LengthError.
    """
    try:
        for _ in record_ends(path):
            pass
    except LengthError:
        raise
    except RecordError:
        return


def check_joined(path: Location, compression: Compression) -> None:
    """Raises RecordError for a compressed file if TensorFlow's reader silently ends in the middle of it."""
    with open_file(path) as file:
        if not may_be_joined(file, compression):
            return
        file.seek(0)
        stream = open_stream(file, compression)
        view = memoryview(bytearray(CHUNK_BYTES))
        while stream.fill(view):
            pass
    if stream.fault in JOINED:
        raise RecordError(_unreadable(str(path), stream.fault))


def _unreadable(where: str, fault: str) -> Problem:
    """The problem of compressed data that ends before the file does."""
    hint = "`recordspec repair` reads on" if fault in JOINED else ""
    return Problem(where=where, expected="whole compressed data", got=fault, hint=hint)


class FrameReader:
    """Reads the frames of an open file, many at a time, and checks each.

    Attributes:
        buffer: the bytes of the file that are in memory.
        limit: the size of the file; None if it is compressed.
        number, offset: the number of the next record, and the offset of its frame.
        doubt: the position of the buffer when it held the last record, if the record's data is corrupt or
            missing; None if the last record is whole.
    """

    def __init__(
        self, path: Location, file: Readable, compression: Compression, within: RecordRange | None, size: int
    ) -> None:
        self._path, self._size = path, size
        # the size of the open file: asking for the path would be a request to a store
        self.limit = file.seek(0, os.SEEK_END) if compression == "none" else None
        file.seek(0 if within is None else within.start)
        self._end = self.limit if within is None else within.stop
        self.number, self.offset = (0, 0) if within is None else (within.number, within.start)
        self._ahead = min(size, _FIRST)
        # the size of an uncompressed file limits its lengths, unless it is sparse
        self._believed = LARGEST_RECORD if compression == "none" else BELIEVED
        self.buffer = ReadBuffer(open_stream(file, compression), self.offset)
        self.doubt: BufferPosition | None = None

    def __iter__(self) -> Iterator[Chunk | Damage]:
        """Reads from the next record on. Damage without a stop comes last."""
        try:
            while stop := self._stop():
                length = stop - self.offset - FRAME_BYTES
                if length > LARGEST_RECORD:  # TensorFlow cannot read it, and the buffer cannot hold it
                    position = self.buffer.position()
                    self.doubt = None if matches_crc(self.buffer, self.offset, stop) else position
                    yield self._passed(too_large(self._path, self.number, self.offset, length), stop)
                elif stop <= self.buffer.stop or stop - self.offset <= self._believed or self._is_right(stop):
                    self.buffer.load(self.offset, stop)
                    if self.buffer.stop < stop:
                        raise self._missing(stop)
                    yield from self._checked()
                else:
                    yield self._wrong(stop)
        except RecordError as error:
            yield Damage(self.number, self.offset, error.problems[0])

    def _stop(self) -> int:
        """The offset after the next record, by its header; 0 at the end. Raises RecordError for an
        invalid header.
        """
        if self._end is not None and self.offset >= self._end:
            return 0
        header = self._header()
        length = length_in(header)
        if len(header) < HEADER_BYTES or (
            length is not None and self.offset + FRAME_BYTES + length > self.buffer.stop
        ):
            stop = self.offset + max(HEADER_BYTES, self._ahead)
            self.buffer.load(self.offset, stop if self._end is None else min(stop, self._end))
            self._ahead = min(self._size, 4 * self._ahead)
            header = self._header()
        if len(header) < HEADER_BYTES and self.buffer.fault:
            raise self._truncated("")
        if not header and self._end is None:
            return 0
        length = checked_length(self._path, self.number, self.offset, header, self.limit)
        if self.limit is None and length > LARGEST_RECORD:
            raise RecordError(too_large(self._path, self.number, self.offset, length), self.number)
        return self.offset + FRAME_BYTES + length

    def _header(self) -> bytes:
        return bytes(self.buffer.view(self.offset, self.offset + HEADER_BYTES))

    def _is_right(self, stop: int) -> bool:
        """Whether the data of the next record matches its CRC; if not, the buffer moves behind the record."""
        position = self.buffer.position()
        if matches_crc(self.buffer, self.offset, stop):
            self.buffer.rewind(position)
            return True
        if self.buffer.stop < stop:
            self.doubt = self.doubt or position
            raise self._missing(stop)
        self.doubt = position
        return False

    def _missing(self, stop: int) -> RecordError:
        return self._truncated(data_of(stop - FRAME_BYTES - self.offset))

    def _checked(self) -> Iterator[Chunk | Damage]:
        """Yields the whole frames in the buffer: chunks of frames whose data matches their CRCs, and
        damage.
        """
        buffer, origin = self.buffer.buffer, self.buffer.offset
        places = frames_in(buffer, self.offset - origin)
        starts, stops = places[:-1] + HEADER_BYTES, places[1:] - FOOTER_BYTES
        wrong = np.flatnonzero(masked_crcs(buffer, starts, stops) != footers(buffer, stops)).tolist()
        first = 0
        for bad in [*wrong, len(starts)]:
            number = self.number
            self.number, self.offset = number + bad - first, origin + int(places[bad])
            if first < bad:
                some, self.doubt = slice(first, bad), None
                yield Chunk(
                    buffer=buffer, starts=starts[some], stops=stops[some], number=number, offset=origin
                )
            if bad < len(starts):
                self.doubt = self.buffer.position()
                yield self._wrong(origin + int(places[bad + 1]))
            first = bad + 1

    def _wrong(self, stop: int) -> Damage:
        """Skips the next record, whose data is corrupt."""
        return self._passed(self._problem("data that matches its CRC", "other bytes"), stop)

    def _passed(self, problem: Problem, stop: int) -> Damage:
        damage = Damage(self.number, self.offset, problem, stop)
        self.number, self.offset = self.number + 1, stop
        return damage

    def _truncated(self, expected: str) -> RecordError:
        if self.buffer.fault:
            where = f"{self._path}: {place(self.number, self.offset)}"
            return RecordError(_unreadable(where, self.buffer.fault), self.number)
        return truncated(self._path, self.number, self.offset, expected)

    def _problem(self, expected: str, got: str) -> Problem:
        return problem_at(self._path, self.number, self.offset, expected, got)


def matches_crc(buffer: ReadBuffer, offset: int, stop: int) -> bool:
    """Whether the record whose header is in the buffer is complete, and its data matches its CRC.

    The data is not kept: the buffer moves behind it, or to the end of the file.
    """
    crc = masked_crc(buffer.pass_over(offset + HEADER_BYTES, stop - FOOTER_BYTES))
    buffer.load(stop - FOOTER_BYTES, stop)
    return buffer.stop >= stop and crc == int.from_bytes(buffer.view(stop - FOOTER_BYTES, stop), "little")
