"""Blocks taken apart: the rows of the records of a chunk, as records of their own."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recordspec.errors import RecordError
from recordspec.store.manifest import Manifest
from recordspec.wire import blocks, proto, tfrecord
from recordspec.wire.strings import Ints, Strings, lengths_of
from recordspec.wire.tfrecord import Chunk

if TYPE_CHECKING:
    from recordspec.spec.schema import Schema


def are_blocks(path: Path, manifest: Manifest | None) -> bool:
    """Whether the records of a file hold many rows each: as its manifest says, or else the first record."""
    if manifest is not None:
        return manifest.block is not None
    return any(_is_block(record.data) for record in islice(tfrecord.scan(path), 1))


def _is_block(record: bytes) -> bool:
    try:
        return blocks.block_size(proto.parse_example(record, "")) is not None
    except RecordError:  # another message
        return False


@dataclass(frozen=True, kw_only=True)
class Apart:
    """The rows of some blocks that follow each other.

    Attributes:
        rows: each as a record.
        records: of each, the place of its block in the chunk, int64 `[n]`.
        broken: of each block that has none to give, why; placed at file and record.
    """

    rows: Strings
    records: Ints
    broken: tuple[RecordError, ...]


def taken_apart(schema: Schema, path: Path, chunk: Chunk) -> Apart:
    """The rows of all blocks of a chunk together: a block alone has few."""
    held, which, broken = [], [], []
    for index in range(len(chunk)):
        try:
            held.append(schema.records_of(chunk.data(index)))
            which.append(index)
        except RecordError as error:
            broken.append(error.at(f"{path}: {chunk.place(index)}"))
    return Apart(
        rows=Strings.joined(held) if held else Strings.of([]),
        records=np.repeat(np.array(which, np.int64), lengths_of(held)),
        broken=tuple(broken),
    )
