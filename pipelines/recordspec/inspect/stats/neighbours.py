"""Whether records that follow each other have the same value more often than a shuffle would make them."""

from __future__ import annotations

from recordspec.wire.hashes import Words


class Neighbours:
    """Counts pairs of values that follow each other, and those that are the same.

    Attributes:
        pairs, same: how many.
        single: whether no record had several values, so that there is something to compare.
    """

    def __init__(self) -> None:
        self.pairs = self.same = 0
        self.single = True
        self._first: int | None = None
        self._last: int | None = None

    def add(self, codes: Words) -> None:
        """The values of records that follow those that were added before, one each."""
        if not len(codes):
            return
        self._join(int(codes[0]), int(codes[-1]))
        self.pairs += len(codes) - 1
        self.same += int((codes[1:] == codes[:-1]).sum())

    def merge(self, other: Neighbours) -> None:
        """The same of records that follow."""
        self.single &= other.single
        if other._first is not None and other._last is not None:
            self._join(other._first, other._last)
            self.pairs += other.pairs
            self.same += other.same

    def _join(self, first: int, last: int) -> None:
        if self._last is None:
            self._first = first
        else:
            self.pairs += 1
            self.same += self._last == first
        self._last = last
