"""shim"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recordspec.wire.strings import Bytes, Ints
from recordspec.wire.tfrecord import HEAD, TAIL, Damage, Record, frames, salvage


@dataclass(frozen=True)
class Chunk:
    buffer: Bytes
    starts: Ints
    stops: Ints
    number: int
    offset: int


def chunks(path: Path, stretch=None, size: int = 4 << 20) -> Iterator[Chunk | Damage]:
    some: list[Record] = []

    def made():
        framed = frames([one.data for one in some])
        return Chunk(
            framed.buffer,
            framed.offsets[:-1] + HEAD,
            framed.offsets[1:] - TAIL,
            some[0].number,
            some[0].offset,
        )

    for one in salvage(path):
        if isinstance(one, Damage):
            if some:
                yield made()
            some = []
            yield one
        else:
            some.append(one)
            if len(some) == 4096:
                yield made()
                some = []
    if some:
        yield made()
