"""What a source is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from recordspec.spec.schema import Schema


@dataclass(frozen=True)
class Batch:
    """Rows that a source gives at once.

    Attributes:
        rows: how many.
        columns: of the rows from one number to another: for each feature of the schema, and for each
            key, the values. Raises RecordError, with the row counted from the first of these.
    """

    rows: int
    columns: Callable[[int, int], dict[str, Any]]


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
        """The rows, as columns of the schema's features and of `keys`.

        Raises SpecError, or RecordError where the source cannot be read on.
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
