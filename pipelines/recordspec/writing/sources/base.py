"""What a source is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any, Protocol, runtime_checkable

from recordspec.spec.schema import Schema

Batch = tuple[dict[str, Any], int]


@runtime_checkable
class Source(Protocol):
    """Rows in batches of columns."""

    @property
    def rows(self) -> int | None:
        """How many there are, None where that is not known."""

    @property
    def notes(self) -> list[str]:
        """What was left out, for people, once all batches were given."""

    def batches(self, schema: Schema, keys: tuple[str, ...]) -> Iterator[Batch]:
        """Batches: for each feature of the schema and each key, the values; and how many rows.

        Raises RecordError (with its row within the batch) or SpecError.
        """

    def place(self, row: int) -> str:
        """How messages name row `row`, counted from 0."""


def _length(rows: Iterable[Any]) -> int | None:
    try:
        return len(rows) if isinstance(rows, Sized) else None
    except Exception:  # a tf.data.Dataset that does not know
        return None


class Rows:
    """Rows that come one by one, as mappings from names to values: the writer makes the batches."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self.rows = _length(rows)
        self.notes: list[str] = []
        self._given = rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self._given)

    def place(self, row: int) -> str:
        return f"row {row}"
