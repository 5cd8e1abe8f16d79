"""The heads of records, without their data: where the records of an uncompressed file stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recordspec.errors import Problem, RecordError
from recordspec.locations import open_file
from recordspec.wire.framing import AT_MOST, HEAD, LARGEST_RECORD, TAIL, frames_in, length_in
from recordspec.wire.strings import Ints

# Read at once: what fits into a processor's cache is copied there fastest.
_AT_ONCE = 1 << 20
# Records of more bytes than this are stepped over one by one.
_LARGE = 16 << 10


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


class LengthError(RecordError):
    """A length with a right CRC that must not be believed: the file has fewer bytes, or TensorFlow reads no
    record of that size. TensorFlow allocates what it says, or its parser takes it for a negative number: the
    process dies.
    """


def check_lengths(path: Path) -> None:
    """Compares each length of an uncompressed file with the file's size, up to the first header that is
    wrong in another way: there TensorFlow raises an error.

    Raises LengthError.
    """
    try:
        for _ in ends(path):
            pass
    except LengthError:
        raise
    except RecordError:
        return


def ends(path: Path, number: int = 0, offset: int = 0) -> Iterator[tuple[int, Ints]]:
    """Records of an uncompressed file, from the one that begins at a byte on, many at a time: the number of
    the first, and the byte behind each, int64 `[n]`.

    Raises RecordError at the first length that is wrong.
    """
    size = path.stat().st_size
    buffer = np.empty(_AT_ONCE, np.uint8)
    ahead = _AT_ONCE
    with open_file(path) as file:
        while offset < size:
            file.seek(offset)
            held = buffer[: file.readinto(buffer[:ahead].data)]
            places = frames_in(held)[1:] + offset
            if not len(places):
                length = checked_length(path, number, offset, held[:HEAD].tobytes(), size)
                if length > LARGEST_RECORD:
                    raise LengthError(too_large(path, number, offset, length), number)
                places = np.array([offset + HEAD + length + TAIL])
            yield number, places
            ahead = _AT_ONCE if (int(places[-1]) - offset) // len(places) < _LARGE else HEAD
            number, offset = number + len(places), int(places[-1])


def stretches(path: Path, size: int) -> Iterator[Stretch]:
    """An uncompressed file in stretches of at least `size` bytes each, but for the last.

    Reads the lengths only. Raises RecordError at the first bad length.
    """
    first, start, stop = 0, 0, 0
    for number, places in ends(path):
        while (at := int(np.searchsorted(places, start + size))) < len(places):
            stop = int(places[at])
            yield Stretch(first, start, stop)
            first, start = number + at + 1, stop
        stop = int(places[-1])
    if start < stop:
        yield Stretch(first, start, stop)


def checked_length(path: Path, number: int, offset: int, head: bytes, size: int | None) -> int:
    """The length in a record's head. It is not trusted before its CRC, nor past the file's end.

    Raises RecordError.
    """
    if len(head) < HEAD:
        raise cut(path, number, offset, f"{HEAD} bytes of length and CRC")
    length = length_in(head)
    if length is None:
        raise RecordError(
            problem_at(path, number, offset, "a length that matches its CRC", "other bytes"), number
        )
    if size is not None and offset + HEAD + length + TAIL > size:
        raise LengthError(cut(path, number, offset, data_of(length)).problems, number)
    return length


def too_large(path: Path, number: int, offset: int, length: int) -> Problem:
    """The problem of a record that TensorFlow cannot read."""
    return problem_at(path, number, offset, AT_MOST, f"{length:,} bytes")


def data_of(length: int) -> str:
    """What is expected behind a head."""
    return f"{length:,} bytes of data and its CRC"


def cut(path: Path, number: int, offset: int, expected: str) -> RecordError:
    """The error of a record that is not all there."""
    return RecordError(problem_at(path, number, offset, expected, "the end of the file"), number)


def problem_at(path: Path, number: int, offset: int, expected: str, got: str) -> Problem:
    """A problem of a record."""
    return Problem(where=f"{path}: {place(number, offset)}", expected=expected, got=got)


def place(number: int, offset: int) -> str:
    """How messages name a record."""
    return f"record {number} at byte {offset:,}"
