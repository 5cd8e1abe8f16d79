"""The TFRecord file format: records in frames, in a file that may be compressed as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from recordspec.errors import RecordError
from recordspec.wire import heads
from recordspec.wire.compression import TF_COMPRESSION, Compression, compression_of, compressor, foreign
from recordspec.wire.frames import Chunk, Damage, chunks
from recordspec.wire.framing import HEAD, TAIL, framed, frames, seal
from recordspec.wire.heads import Stretch, check_lengths, place, stretches

__all__ = [
    "HEAD",
    "TAIL",
    "TF_COMPRESSION",
    "Compression",
    "Damage",
    "Record",
    "Stretch",
    "check_lengths",
    "compression_of",
    "compressor",
    "count",
    "counts",
    "foreign",
    "framed",
    "frames",
    "gathered",
    "place",
    "salvage",
    "scan",
    "seal",
    "stretches",
    "whole",
]


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


Found = TypeVar("Found", bound=Record | Damage)


def scan(path: Path, stretch: Stretch | None = None) -> Iterator[Record]:
    """The records of a file, or of a stretch of it, each with its CRCs checked.

    Raises RecordError at the first bad one.
    """
    for chunk in whole(path, stretch):
        yield from _records(chunk)


def whole(path: Path, stretch: Stretch | None = None) -> Iterator[Chunk]:
    """The same, many records at a time."""
    if stretch is None:
        compression_of(path)  # raises where it is no TFRecord file
    for found in chunks(path, stretch):
        if isinstance(found, Damage):
            raise RecordError(found.problem, found.number)
        yield found


def salvage(path: Path) -> Iterator[Record | Damage]:
    """The records of a file as far as they can be read, and damage in the place of those that cannot."""
    for found in chunks(path):
        if isinstance(found, Damage):
            yield found
        else:
            yield from _records(found)


def gathered(found: Iterable[Found], size: int, most: int | None = None) -> Iterator[list[Found]]:
    """Records, and damage, in lists of at most `most`; of large records fewer, of about `size` bytes."""
    some: list[Found] = []
    held = 0
    for one in found:
        some.append(one)
        held += len(one.data) if isinstance(one, Record) else 0
        if len(some) == most or held >= size:
            yield some
            some, held = [], 0
    if some:
        yield some


def _records(chunk: Chunk) -> Iterator[Record]:
    view = chunk.buffer.data
    bounds = zip(chunk.starts.tolist(), chunk.stops.tolist(), strict=True)
    for number, (start, stop) in enumerate(bounds, chunk.number):
        yield Record(number, chunk.offset + start - HEAD, bytes(view[start:stop]))


def count(path: Path) -> int:
    """How many records a file has. Reads the lengths only, unless the file is compressed.

    Raises RecordError where it is not whole.
    """
    return sum(counts(path))


def counts(path: Path) -> Iterator[int]:
    """The same, some records at a time."""
    if compression_of(path) == "none":
        return (len(places) for _, places in heads.ends(path))
    return map(len, whole(path))
