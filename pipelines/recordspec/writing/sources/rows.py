"""Rows that come one by one, as mappings from names to values."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordspec.errors import Problem, RecordError, describe
from recordspec.spec.encoder import columns_of
from recordspec.spec.schema import Schema
from recordspec.writing.sources.base import Batch, Rows

# Of what is sent to another process at once: much less, and sending costs more than encoding.
_PACKED_BYTES = 8 << 20


def batch_of(rows: Sequence[Any], schema: Schema, extra: tuple[str, ...]) -> Batch:
    """Rows as a batch."""

    def columns(start: int, stop: int) -> dict[str, Any]:
        for number, row in enumerate(rows[start:stop]):
            if not isinstance(row, Mapping):
                raise no_mapping(row, number)
        return columns_of(schema, rows[start:stop], extra)

    return Batch(len(rows), columns)


def no_mapping(row: Any, number: int) -> RecordError:
    """The error for a row that has no names."""
    problem = Problem(expected="a mapping from names to values", got=describe(row))
    return RecordError(problem.at(f"row {number}"), number)


@dataclass(frozen=True)
class PackedRows:
    """Rows on their way to another process: pickled by this one, and read by the one it started."""

    first: int
    packed: tuple[bytes, ...]

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[Batch]:
        yield batch_of([pickle.loads(row) for row in self.packed], schema, extra)

    def place(self, row: int) -> str:
        return f"row {self.first + row}"


def packed(rows: Rows | Iterable[Any]) -> Iterator[PackedRows]:
    """All rows, in parts that other processes can take. Raises RecordError for one that cannot be sent."""
    waiting: list[bytes] = []
    first = size = 0
    for number, row in enumerate(rows):
        waiting.append(_pickled(row, number))
        size += len(waiting[-1])
        if size >= _PACKED_BYTES:
            yield PackedRows(first, tuple(waiting))
            waiting, first, size = [], number + 1, 0
    if waiting:
        yield PackedRows(first, tuple(waiting))


def _pickled(row: Any, number: int) -> bytes:
    try:
        return pickle.dumps(row, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # whatever the row's own classes raise
        expected = "a row that can be sent to another process"
        got = f"{type(error).__name__}: {error}"
        problem = Problem(expected=expected, got=got, hint="with jobs=1 it need not be")
        raise RecordError(problem.at(f"row {number}"), number) from None
