"""The records of a file many at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recordspec.wire.strings import Bytes, Ints, Strings
from recordspec.wire.tfrecord import HEAD, TAIL, Damage, Record, Stretch, salvage, scan

__all__ = ["Chunk", "Damage", "chunks"]


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Records that follow each other.

    Attributes:
        buffer: uint8 `[bytes]`.
        starts, stops: of the data of each record in the buffer, int64 `[n]`.
        number: of the first record.
        offset: the byte of the file, or of what it inflates to, at which the buffer begins.
    """

    buffer: Bytes
    starts: Ints
    stops: Ints
    number: int
    offset: int


def chunks(path: Path, stretch: Stretch | None = None, size: int = 4 << 20) -> Iterator[Chunk | Damage]:
    """The records of a file, about `size` bytes at once, and damage in the place of those that are bad."""
    found: list[Record] = []
    held = 0
    for record in salvage(path) if stretch is None else scan(path, stretch):
        if isinstance(record, Damage):
            if found:
                yield _chunk(found)
            found, held = [], 0
            yield record
            continue
        found.append(record)
        held += len(record.data)
        if held >= size:
            yield _chunk(found)
            found, held = [], 0
    if found:
        yield _chunk(found)


def _chunk(records: list[Record]) -> Chunk:
    whole = Strings.of([bytes(HEAD) + record.data + bytes(TAIL) for record in records])
    starts, stops = whole.offsets[:-1] + HEAD, whole.offsets[1:] - TAIL
    return Chunk(
        buffer=whole.buffer,
        starts=starts,
        stops=stops,
        number=records[0].number,
        offset=records[0].offset,
    )
