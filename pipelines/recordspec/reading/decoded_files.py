"""Reads the rows of whole files in order as NumPy arrays, also from compressed files and object stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from recordspec.errors import RecordError
from recordspec.locations import Location
from recordspec.order.read_plan import Plan
from recordspec.reading.staged_shards import copies_of, named
from recordspec.schema import numpy_decoder
from recordspec.schema.row_blocks import rows_of_blocks
from recordspec.schema.schema import Schema
from recordspec.store.staging import StagingFolder
from recordspec.wire import tfrecord
from recordspec.wire.tfrecord import Chunk

# The number of records with images or audio to decode together: media take more memory when decoded.
_MEDIA_AT_ONCE = 256


def decoded_files(schema: Schema, plan: Plan, folder: StagingFolder | None) -> Iterator[dict[str, Any]]:
    """Yields the rows of whole files as `Schema.decode_numpy` returns them, some thousands at a time.

    Args:
        schema: the schema of the features to decode.
        folder: the folder for copies of objects; None to read objects in their store.

    Raises RecordError, with file and record, for a record that cannot be read; StoreError for a file that
    cannot be read; SpecError for a custom kind without `decode_numpy`.
    """
    in_blocks = plan.block is not None
    media = any(feature.value_type.item == "media" for _, feature in schema._placed)
    for piece, path in copies_of(plan.pieces, folder):
        try:
            for chunk in tfrecord.scan_chunks(path):
                size = _MEDIA_AT_ONCE if media and not in_blocks else len(chunk)
                for first in range(0, len(chunk), size):
                    yield _decoded(schema, path, chunk, first, size, in_blocks=in_blocks)
        except RecordError as error:
            raise RecordError(named(problem, path, piece) for problem in error.problems) from None


def _decoded(
    schema: Schema, path: Location, chunk: Chunk, first: int, size: int, *, in_blocks: bool
) -> dict[str, Any]:
    """The rows of some records of a chunk. Raises RecordError with the file and the record."""
    starts, stops = chunk.starts[first : first + size], chunk.stops[first : first + size]
    try:
        if not in_blocks:
            return numpy_decoder.decode(schema, chunk.buffer, starts, stops)
        sections, counts = rows_of_blocks(schema, chunk.buffer, starts, stops)
    except RecordError as error:
        raise error.at(f"{path}: {chunk.place(first + (error.row or 0))}") from None
    try:
        return numpy_decoder.decode_sections(schema, sections, int(counts.sum()))
    except RecordError as error:
        block = int(np.searchsorted(np.cumsum(counts), error.row or 0, "right"))
        row = (error.row or 0) - int(counts[:block].sum())
        raise error.at(f"{path}: {chunk.place(first + block)}, row {row}") from None
