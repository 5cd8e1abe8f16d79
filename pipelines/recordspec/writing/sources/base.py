"""What a source is: rows in parts, so that processes can share them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from recordspec.errors import StoreError, system_problem
from recordspec.locations import check_regular
from recordspec.spec.schema import Schema

# A part of a file: large enough that opening it costs nothing, small enough that a few jobs share
# a file evenly, and that little is done again after a crash.
PART_BYTES = 32 << 20
# Below it float64 has every whole number; above, an integer may have been rounded already.
EXACT = 2**53


@dataclass(frozen=True)
class Batch:
    """Rows that a source gives at once.

    Attributes:
        rows: how many.
        columns: of the rows from one number to another: for each feature of the schema, and for each
            extra name, the values. Raises RecordError, with the row counted from the first of these.
    """

    rows: int
    columns: Callable[[int, int], dict[str, Any]]


@runtime_checkable
class Part(Protocol):
    """Rows of a source that follow each other. It can be pickled, and read in another process."""

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[Batch]:
        """The rows, as columns of the schema's features and of the `extra` names.

        Raises SpecError, or RecordError where the source cannot be read on.
        """

    def place(self, row: int) -> str:
        """How messages name row `row`, counted from 0 within the part."""


@runtime_checkable
class Source(Protocol):
    """Rows in parts. The parts of a source are the same each time, however many processes read them."""

    @property
    def rows(self) -> int | None:
        """How many there are, None where that is not known."""

    @property
    def notes(self) -> list[str]:
        """What is left out, for people, once `parts` has begun."""

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[Part]:
        """The parts, in the order of the rows. Checks first that the source has what is asked for.

        Raises SpecError, StoreError, RecordError.
        """

    def identity(self) -> Any:
        """Plain JSON values that change when the rows do; None where they cannot be had a second time."""


def name_of(source: object) -> str:
    """What messages call a source as a whole: the first of its files, or "rows" where it has none."""
    paths: Sequence[Path] = getattr(source, "paths", ())
    more = f" and {len(paths) - 1:,} more" if len(paths) > 1 else ""
    return f"{paths[0]}{more}" if paths else "rows"


def identity_of(paths: Iterable[Path]) -> list[list[Any]]:
    """What tells that files are as they were: their paths, sizes and times. Raises StoreError."""
    return [[os.path.abspath(path), (found := _stat(path)).st_size, found.st_mtime_ns] for path in paths]


def _stat(path: Path) -> os.stat_result:
    try:
        found = path.stat()
    except OSError as error:
        raise StoreError(system_problem("read", error, str(error.filename))) from None
    check_regular(path)
    return found


def runs(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Items of these sizes in bytes, in runs of about `PART_BYTES`: from which, and up to which."""
    start = total = 0
    for index, size in enumerate(sizes):
        if total and total + size > PART_BYTES:
            yield start, index
            start, total = index, 0
        total += size
    if start < len(sizes):
        yield start, len(sizes)


def even_runs(rows: int, size: int) -> Iterator[tuple[int, int]]:
    """The same for so many rows that are all of one size."""
    step = max(1, PART_BYTES // max(1, size))
    for start in range(0, rows, step):
        yield start, min(start + step, rows)


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
