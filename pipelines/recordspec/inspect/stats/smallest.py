"""How many different things there are, and how many are copies, told from some of their hashes."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from recordspec.wire.hashes import Words
from recordspec.wire.strings import Ints

_ALL = 2.0**64


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number of things.

    Attributes:
        error: its standard error, as a share of it; 0 where it is exact.
    """

    value: int
    error: float = 0.0


class Smallest:
    """The smallest hashes of those that were added, and how often each was.

    A hash that is one of the smallest of all is one of the smallest of any part, so nothing of it is lost,
    and the same are kept in whatever parts and order they come. How many there are in all is told from the
    range that they fill (Bar-Yossef et al. 2002, "k minimum values").
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.hashes: Words = np.zeros(0, np.uint64)
        self.counts: Ints = np.zeros(0, np.int64)
        self.total = 0
        self.limit: np.uint64 | None = None  # the first hash that is out
        self._more: list[tuple[Words, Ints]] = []
        self._waiting = 0

    def add(self, hashes: Words, counts: Ints | None = None) -> None:
        """Hashes, each once or so many times."""
        counts = np.ones(len(hashes), np.int64) if counts is None else counts
        self.total += int(counts.sum())
        if self.limit is not None:
            kept = hashes < self.limit
            hashes, counts = hashes[kept], counts[kept]
        self._more.append((hashes, counts))
        self._waiting += len(hashes)
        if self._waiting > self._size:
            self.settle()

    def merge(self, other: Smallest) -> None:
        other.settle()
        if other.limit is not None and (self.limit is None or other.limit < self.limit):
            self.settle()
            self._cut(other.limit)
        self.total += other.total - int(other.counts.sum())
        self.add(other.hashes, other.counts)

    def settle(self) -> None:
        """Takes up what was added, and drops what is too much."""
        if not self._more:
            return
        hashes = np.concatenate([self.hashes, *(some for some, _ in self._more)])
        counts = np.concatenate([self.counts, *(some for _, some in self._more)])
        self._more, self._waiting = [], 0
        order = np.argsort(hashes)
        hashes, counts = hashes[order], counts[order]
        firsts = np.flatnonzero(
            np.concatenate([np.ones(min(1, len(hashes)), bool), hashes[1:] != hashes[:-1]])
        )
        self.hashes = hashes[firsts]
        self.counts = np.add.reduceat(counts, firsts) if len(firsts) else counts
        if len(self.hashes) > self._size:
            self._cut(self.hashes[self._size])

    def _cut(self, limit: np.uint64) -> None:
        self.limit = limit
        kept = int(np.searchsorted(self.hashes, limit))
        self.hashes, self.counts = self.hashes[:kept], self.counts[:kept]

    @property
    def distinct(self) -> Estimate:
        """How many different ones were added."""
        self.settle()
        return self._estimate(len(self.hashes))

    @property
    def repeated(self) -> Estimate:
        """How many were added that had been before."""
        self.settle()
        return self._estimate(int(self.counts.sum()) - len(self.counts))

    def shared(self, other: Smallest) -> Estimate:
        """How many of the different ones were added to both."""
        self.settle()
        other.settle()
        limits = [limit for limit in (self.limit, other.limit) if limit is not None]
        common = np.intersect1d(self.hashes, other.hashes, assume_unique=True)
        if not limits:
            return Estimate(value=len(common))
        limit = min(limits)
        return _scaled(int(np.searchsorted(common, limit)), limit)

    def _estimate(self, found: int) -> Estimate:
        return Estimate(value=found) if self.limit is None else _scaled(found, self.limit)


def _scaled(found: int, limit: np.uint64) -> Estimate:
    """What there is in all, of which so many are below a limit."""
    share = (int(limit) or 1) / _ALL
    return Estimate(value=round(found / share), error=1 / sqrt(max(found, 1)))
