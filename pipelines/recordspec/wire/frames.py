"""The frames of a file, many at a time, each checked, without a copy of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recordspec.errors import Problem, RecordError
from recordspec.locations import open_file
from recordspec.wire.compression import Compression, foreign, likely_compression
from recordspec.wire.framing import (
    HEAD,
    LARGEST_RECORD,
    TAIL,
    frames_in,
    length_in,
    masked_crc,
    masked_crcs,
    tails,
)
from recordspec.wire.heads import Stretch, checked_length, cut, data_of, place, problem_at, too_large
from recordspec.wire.inflated import Inflated, Readable
from recordspec.wire.strings import Bytes, Ints
from recordspec.wire.window import Mark, Plain, Window

SIZE = 4 << 20
# A larger record is held only when its CRC is known to be right, for which it is read twice: what a few
# megabytes inflate to may be gigabytes.
BELIEVED = 64 << 20
# Read first: some want a few records only.
_FIRST = 64 << 10


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


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Records that follow each other in a file, and are whole; at least one.

    Attributes:
        buffer: uint8 `[bytes]`; it does not change.
        starts, stops: where the data of each stand in it, int64 `[n]`.
        number: of the first.
        offset: the byte of the file where the buffer begins; in a compressed file, of uncompressed bytes.
    """

    buffer: Bytes
    starts: Ints
    stops: Ints
    number: int
    offset: int

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def offsets(self) -> Ints:
        """The byte of the file where each begins, int64 `[n]`."""
        return self.starts - HEAD + self.offset

    def place(self, index: int) -> str:
        """How messages name one of them in its file."""
        return place(self.number + index, self.offset_of(index))

    def offset_of(self, index: int) -> int:
        """The byte of the file where one of them begins."""
        return int(self.starts[index]) - HEAD + self.offset

    def data(self, index: int) -> bytes:
        """What one of them holds."""
        return self.buffer[self.starts[index] : self.stops[index]].tobytes()

    @property
    def frames(self) -> memoryview:
        """The records as they stand in the file."""
        return self.buffer.data[int(self.starts[0]) - HEAD : int(self.stops[-1]) + TAIL]


def chunks(path: Path, stretch: Stretch | None = None, size: int = SIZE) -> Iterator[Chunk | Damage]:
    """The records of a file, or of a stretch of it, as far as they can be read, and damage in the place of
    those that cannot.

    Takes a few times as much memory as `size`, or as the largest record. That is as large as its length says
    only where the CRC of the length is right, and the file has so many bytes; it is not larger than
    LARGEST_RECORD, and in a compressed file of more than BELIEVED only where the CRC of its data is right.
    A larger record is damage that is stepped over; in a compressed file nothing is found behind it.
    """
    problem = foreign(path) if stretch is None else None
    if problem is not None:
        yield Damage(0, 0, problem)
        return
    compression = likely_compression(path) if stretch is None else "none"
    with open_file(path) as file:
        if stretch is not None:
            file.seek(stretch.start)
        yield from Frames(path, file, compression, stretch, size)


class Frames:
    """Finds the frames of a file that is open.

    Attributes:
        window: what is held of it.
        limit: the bytes of the file; None where it is compressed.
        number, offset: of the record that is next.
        doubt: marks the window where it held the last record, whose data are wrong or missing; None where
            the last one is whole.
    """

    def __init__(
        self, path: Path, file: Readable, compression: Compression, stretch: Stretch | None, size: int
    ) -> None:
        self._path, self._size = path, size
        self.limit = path.stat().st_size if compression == "none" else None
        self._end = self.limit if stretch is None else stretch.stop
        self.number, self.offset = (0, 0) if stretch is None else (stretch.number, stretch.start)
        self._ahead = min(size, _FIRST)
        # a file that has the bytes is believed; only a sparse one may have any number of them
        self._believed = LARGEST_RECORD if compression == "none" else BELIEVED
        source = Plain(file) if compression == "none" else Inflated(file, compression)
        self.window = Window(source, self.offset)
        self.doubt: Mark | None = None

    def __iter__(self) -> Iterator[Chunk | Damage]:
        """From the next record on. Damage without a stop is the last."""
        try:
            while stop := self._stop():
                if stop - self.offset > HEAD + LARGEST_RECORD + TAIL:
                    yield self._too_large(stop)
                elif stop <= self.window.stop or stop - self.offset <= self._believed or self._is_right(stop):
                    self._reach(stop)
                    yield from self._checked()
                else:
                    yield self._wrong(stop)
        except RecordError as error:
            yield Damage(self.number, self.offset, error.problems[0])

    def _stop(self) -> int:
        """The byte behind the next record, as its head says; 0 at the end. Raises RecordError where there is
        something else."""
        if self._end is not None and self.offset >= self._end:
            return 0
        if not self._at_hand():
            self._read_on()
        head = self._head()
        if not head and self._end is None and not self.window.fault:
            return 0
        return self.offset + HEAD + self._length(head) + TAIL

    def _is_right(self, stop: int) -> bool:
        """Whether the data of the next record match their CRC; if not, the window is behind it."""
        mark = self.window.mark()
        if is_right(self.window, self.offset, stop):
            self.window.back(mark)
            return True
        if self.window.stop < stop:
            self.doubt = self.doubt or mark
            raise self._missing(stop)
        self.doubt = mark
        return False

    def _reach(self, stop: int) -> None:
        """Has the window hold the next record."""
        self.window.load(self.offset, stop)
        if self.window.stop < stop:
            raise self._missing(stop)

    def _missing(self, stop: int) -> RecordError:
        return self._cut(data_of(stop - TAIL - HEAD - self.offset))

    def _head(self) -> bytes:
        return bytes(self.window.view(self.offset, self.offset + HEAD))

    def _at_hand(self) -> bool:
        """Whether the window holds the next frame, or a head that is wrong."""
        head = self._head()
        length = length_in(head)
        return len(head) == HEAD and (
            length is None or self.offset + HEAD + length + TAIL <= self.window.stop
        )

    def _read_on(self) -> None:
        stop = self.offset + max(HEAD, self._ahead)
        self.window.load(self.offset, stop if self._end is None else min(stop, self._end))
        self._ahead = min(self._size, 4 * self._ahead)

    def _length(self, head: bytes) -> int:
        if len(head) < HEAD and self.window.fault:
            raise self._cut("")
        length = checked_length(self._path, self.number, self.offset, head, self.limit)
        if self.limit is None and length > LARGEST_RECORD:
            raise RecordError(too_large(self._path, self.number, self.offset, length), self.number)
        return length

    def _checked(self) -> Iterator[Chunk | Damage]:
        """The whole frames that the window holds: chunks of those whose data are right, and damage."""
        buffer, origin = self.window.buffer, self.window.offset
        places = frames_in(buffer, self.offset - origin)
        starts, stops = places[:-1] + HEAD, places[1:] - TAIL
        wrong = np.flatnonzero(masked_crcs(buffer, starts, stops) != tails(buffer, stops)).tolist()
        first = 0
        for bad in [*wrong, len(starts)]:
            number, self.number, self.offset = (
                self.number,
                self.number + bad - first,
                origin + int(places[bad]),
            )
            if first < bad:
                some, self.doubt = slice(first, bad), None
                yield Chunk(
                    buffer=buffer, starts=starts[some], stops=stops[some], number=number, offset=origin
                )
            if bad < len(starts):
                self.doubt = self.window.mark()
                yield self._wrong(origin + int(places[bad + 1]))
            first = bad + 1

    def _too_large(self, stop: int) -> Damage:
        """Steps over the next record, which TensorFlow cannot read. The window does not hold it."""
        problem = too_large(self._path, self.number, self.offset, stop - self.offset - HEAD - TAIL)
        mark = self.window.mark()
        self.doubt = None if is_right(self.window, self.offset, stop) else mark
        return self._passed(problem, stop)

    def _wrong(self, stop: int) -> Damage:
        """Steps over the next record, whose data are wrong."""
        expected = "data that matches its CRC"
        problem = problem_at(self._path, self.number, self.offset, expected, "other bytes")
        return self._passed(problem, stop)

    def _passed(self, problem: Problem, stop: int) -> Damage:
        damage = Damage(self.number, self.offset, problem, stop)
        self.number, self.offset = self.number + 1, stop
        return damage

    def _cut(self, expected: str) -> RecordError:
        if self.window.fault:
            return self._error("whole compressed data", self.window.fault)
        return cut(self._path, self.number, self.offset, expected)

    def _error(self, expected: str, got: str) -> RecordError:
        return RecordError(problem_at(self._path, self.number, self.offset, expected, got), self.number)


def is_right(window: Window, offset: int, stop: int) -> bool:
    """Whether a record is there, of which the window holds the head, and its data match their CRC. They are
    not held: then the window is behind them, or at the end of the file."""
    crc = masked_crc(window.passed(offset + HEAD, stop - TAIL))
    window.load(stop - TAIL, stop)
    return window.stop >= stop and crc == int.from_bytes(window.view(stop - TAIL, stop), "little")
