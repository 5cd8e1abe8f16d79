"""Places of rows that are found by reading again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class InOrder(Generic[T]):
    """What `read` gives for a row, found by reading from the first; row after row, in one pass."""

    def __init__(self, read: Callable[[], Iterator[T]]) -> None:
        self._read = read
        # what has not been passed yet, and the row of the last that was
        self._rest: Iterator[T] = iter(())
        self._row = sys.maxsize

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._read,)

    def of(self, row: int) -> T | None:
        """None where there is no such row."""
        if row <= self._row:
            self._rest, self._row = self._read(), -1
        found = next(islice(self._rest, row - self._row - 1, None), None)
        self._row = row
        return found
