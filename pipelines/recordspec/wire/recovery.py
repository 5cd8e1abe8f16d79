"""Finds records after an invalid length, by searching for the next byte where an intact record begins."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import replace

from recordspec.locations import Location
from recordspec.wire.file_types import FileStart
from recordspec.wire.framing import FRAME_BYTES, HEADER_BYTES, headers_in, is_whole, length_in
from recordspec.wire.streams import Readable, ReadBuffer
from recordspec.wire.tfrecord import BELIEVED, CHUNK_BYTES, Chunk, Damage, FrameReader, matches_crc

# Larger records are not searched for.
LONGEST = (1 << 28) - 1
# The limit of bytes whose CRC is computed in vain: per byte of the file so far, and the minimum of the limit.
# Without a limit, false headers would make the search quadratic; corrupt records need one computation each.
_IN_VAIN, _IN_VAIN_AT_LEAST = 4, 64 << 20
# Bytes searched at a time, which fit into a processor's cache.
_PIECE = 1 << 18


def rescue(
    path: Location, file: Readable, start: FileStart, size: int = CHUNK_BYTES
) -> Iterator[Chunk | Damage]:
    """Reads the records of an open file as `tfrecord.salvage` does. After damage that ends them, goes on with
    the next whole record of at most LONGEST bytes.

    Its number assumes that one record was lost before it, since the true number of lost records is unknown.
    """
    frames = FrameReader(path, file, start.likely_compression, None, size)
    search = RecordSearch(frames.buffer, frames.limit)
    while last := (yield from _until_lost(frames)):
        if frames.doubt is not None:
            frames.buffer.rewind(frames.doubt)
            frames.doubt = None
        if frames.buffer.go_on():
            yield last[-1]  # no byte is lost, but no other reader comes here
            continue
        following = search.after(last[0].offset + 1)
        if start.problem is not None and last[0].offset == 0:
            last = [replace(last[0], problem=start.problem)]
        if following is not None and following < last[-1].offset:
            last = [replace(last[0], stop=None)]  # the length of the doubtful record is invalid, too
        yield from last
        if following is None:
            return
        frames.number, frames.offset = last[-1].number + 1, following


def _until_lost(frames: FrameReader) -> Generator[Chunk | Damage, None, list[Damage]]:
    """Yields the items before damage that ends the stream of records.

    Returns that damage, and before it the record with corrupt data, if any, whose length may be invalid as
    well. At the end of the file, returns nothing.
    """
    doubtful: list[Damage] = []
    for item in frames:
        if isinstance(item, Damage) and item.stop is None:
            return [*doubtful, item]
        yield from doubtful
        doubtful = [item] if isinstance(item, Damage) else []
        if not doubtful:
            yield item
    yield from doubtful
    return []


class RecordSearch:
    """Searches for intact records in a buffer and in the bytes after it."""

    def __init__(self, buffer: ReadBuffer, limit: int | None) -> None:
        """`limit` is the size of the file, if known."""
        self._buffer, self._limit = buffer, limit
        # Headers in the searched bytes: no byte is searched twice, however often the search is resumed.
        self._headers: deque[int] = deque()
        self._looked = 0
        self._in_vain = 0

    def after(self, start: int) -> int | None:
        """The first byte from `start` on where an intact record begins. `start` must not decrease."""
        while True:
            while not self._headers:
                if not self._look(max(start, self._looked)):
                    return None
            offset = self._headers.popleft()
            if offset >= start and self._is_whole(offset):
                return offset

    def _look(self, start: int) -> bool:
        """Searches the next bytes for headers. Returns False at the end of the file."""
        self._buffer.load(start, start + _PIECE)
        at = start - self._buffer.offset
        piece = self._buffer.buffer[at : at + _PIECE]
        if len(piece) < HEADER_BYTES:
            return False
        self._headers.extend((headers_in(piece, LONGEST) + start).tolist())
        self._looked = start + len(piece) - HEADER_BYTES + 1
        return True

    def _is_whole(self, offset: int) -> bool:
        """Whether the record of a header is complete and its data matches its CRC."""
        length = length_in(bytes(self._buffer.view(offset, offset + HEADER_BYTES))) or 0
        stop = offset + FRAME_BYTES + length
        in_time = self._in_vain + length <= max(_IN_VAIN * stop, _IN_VAIN_AT_LEAST)
        if not in_time or (self._limit is not None and stop > self._limit):
            return False
        if length <= BELIEVED:
            self._buffer.load(offset, stop)
            if self._buffer.stop < stop:
                return False
            whole = is_whole(self._buffer.view(offset, stop))
        else:
            position = self._buffer.position()
            whole = matches_crc(self._buffer, offset, stop)
            self._buffer.rewind(position)
        self._in_vain += 0 if whole else length
        return whole
