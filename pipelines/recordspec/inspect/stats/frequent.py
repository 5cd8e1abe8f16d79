"""Which values are frequent, and how many different ones there are."""

from __future__ import annotations

import numpy as np

from recordspec.inspect.stats.smallest import Estimate, Smallest
from recordspec.wire.hashes import Words, splitmix64
from recordspec.wire.strings import Ints

# Up to so many different values, each is counted. Of more, how many there are is an estimate with a standard
# error of 1.6 %, and a value may be counted short by one in so many.
SIZE = 1 << 12


class Frequent:
    """Counts values, which are told apart by 64 bits.

    Where there are too many, it drops rare ones as Misra and Gries (1982) do: as often as a value is dropped,
    so are `SIZE` others, so that no count is short by more than a 4,096th of all. Such counts can be merged
    (Agarwal et al., "Mergeable summaries", 2012).

    Attributes:
        codes: of the values that are counted, rising.
        counts: of each, at least.
        short: how much may be missing from a count.
    """

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self.codes: Words = np.zeros(0, np.uint64)
        self.counts: Ints = np.zeros(0, np.int64)
        self.short = 0
        self._others: Smallest | None = None  # of all values, once some were dropped

    def add(self, codes: Words) -> Words:
        """Counts values in. Gives those of them that were not known, and are now."""
        found, counts = np.unique(codes, return_counts=True)
        return self._take(found, counts.astype(np.int64, copy=False))

    def merge(self, other: Frequent) -> Words:
        """Counts in what another has counted. Gives what was not known, and is now."""
        if other._others is not None and self._others is None:
            self._others = self._hashed()
        self.short += other.short
        new = self._take(other.codes, other.counts, counted=other._others is not None)
        if other._others is not None and self._others is not None:
            self._others.merge(other._others)
        return new

    @property
    def exact(self) -> bool:
        """Whether every value is counted."""
        return self._others is None

    @property
    def distinct(self) -> Estimate:
        """How many different values there are."""
        return Estimate(value=len(self.codes)) if self._others is None else self._others.distinct

    def _take(self, found: Words, counts: Ints, counted: bool = False) -> Words:
        if self._others is not None and not counted:
            self._others.add(splitmix64(found))
        places = np.searchsorted(self.codes, found)
        known = (
            self.codes[np.minimum(places, max(len(self.codes) - 1, 0))] == found if len(self.codes) else False
        )
        if np.all(known):
            self.counts[places] += counts
            return found[:0]
        old = self.codes
        self.codes, back = np.unique(np.concatenate([old, found]), return_inverse=True)
        both = np.concatenate([self.counts, counts])
        self.counts = np.bincount(back, both).astype(np.int64)
        self._drop()
        return np.setdiff1d(self.codes, old, assume_unique=True)

    def _drop(self) -> None:
        """Drops what is too much."""
        if len(self.codes) <= self._size:
            return
        if self._others is None:
            self._others = self._hashed()
        place = len(self.counts) - self._size - 1
        most = int(np.partition(self.counts, place)[place])
        kept = self.counts > most
        self.codes, self.counts = self.codes[kept], self.counts[kept] - most
        self.short += most

    def _hashed(self) -> Smallest:
        hashed = Smallest(self._size)
        hashed.add(splitmix64(self.codes))
        return hashed
