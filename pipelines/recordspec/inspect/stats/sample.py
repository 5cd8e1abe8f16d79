"""A sample of numbers, from which quantiles and histograms are told."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.wire.hashes import Words

# Of a sample of so many, the rank of every quantile is off by less than `rank_error` of it at once.
SIZE = 1 << 14
_CERTAIN = 0.99


def rank_error(size: int, certain: float = _CERTAIN) -> float:
    """How far the ranks of a sample of this size are off at most, as a share (Dvoretzky, Kiefer and
    Wolfowitz 1956, with the constant of Massart 1990)."""
    return math.sqrt(math.log(2 / (1 - certain)) / (2 * size))


class Sample:
    """A random sample of values, drawn by the hashes of their places: those with the smallest are in it.

    So it is the same in whatever parts the values come, and in any order; and samples can be merged. As long
    as there are no more values than its size, it has all of them.
    """

    def __init__(self, dtype: npt.DTypeLike, size: int = SIZE) -> None:
        self._size = size
        self._values: npt.NDArray[Any] = np.zeros(0, dtype)
        self._places: Words = np.zeros(0, np.uint64)
        self._limit: np.uint64 | None = None  # where it is full: the first place that is out
        self._more: list[tuple[npt.NDArray[Any], Words]] = []
        self._waiting = 0

    def add(self, values: npt.NDArray[Any], places: Words) -> None:
        """Values, and the hashes of where they stand."""
        if self._limit is not None:
            kept = places < self._limit
            values, places = values[kept], places[kept]
        if len(values):
            self._more.append((values, places))
            self._waiting += len(values)
        if self._waiting > self._size:
            self._settle()

    def merge(self, other: Sample) -> None:
        """Makes it the sample of the values of both."""
        other._settle()
        if other._limit is not None and (self._limit is None or other._limit < self._limit):
            self._settle()
            self._limit = other._limit
            self._keep(self._places < self._limit)
        self.add(other._values, other._places)

    @property
    def values(self) -> npt.NDArray[Any]:
        """What it has, in rising order."""
        self._settle()
        return np.sort(self._values)

    @property
    def full(self) -> bool:
        """Whether some values are not in it."""
        self._settle()
        return self._limit is not None

    def _settle(self) -> None:
        """Takes up what was added, and drops what is too much."""
        if not self._more:
            return
        self._values = np.concatenate([self._values, *(values for values, _ in self._more)])
        self._places = np.concatenate([self._places, *(places for _, places in self._more)])
        self._more, self._waiting = [], 0
        if len(self._places) > self._size:
            self._limit = np.partition(self._places, self._size)[self._size]
            self._keep(self._places < self._limit)

    def _keep(self, which: npt.NDArray[np.bool_]) -> None:
        self._values, self._places = self._values[which], self._places[which]
