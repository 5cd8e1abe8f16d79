"""What is told of numbers one after another: range, mean, deviation, and what is special."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]


class Moments:
    """Of the numbers that were added, int64 or float32.

    Mean and deviation are those of finite numbers, in float64, merged as Chan, Golub and LeVeque (1983) do.

    Attributes:
        count: all of them.
        finite: those that are neither NaN nor infinite.
        nans, infinite, zeros: how many there are.
        lowest: how many of the infinite are below all others.
        low, high: the smallest and the largest finite one; None without any.
        mean: of the finite ones.
    """

    def __init__(self) -> None:
        self.count = self.finite = self.nans = self.infinite = self.lowest = self.zeros = 0
        self.low: float | None = None
        self.high: float | None = None
        self.mean = 0.0
        self._squares = 0.0  # of the distances from the mean, summed

    @property
    def deviation(self) -> float:
        """The standard deviation, of the numbers themselves (not of what they were drawn from)."""
        return math.sqrt(self._squares / self.finite) if self.finite else math.nan

    def add(self, numbers: Numbers) -> npt.NDArray[np.bool_] | None:
        """Counts numbers in. Tells which are finite; None where all are."""
        self.count += len(numbers)
        self.zeros += len(numbers) - int(np.count_nonzero(numbers))
        finite = None
        if numbers.dtype.kind == "f" and not (known := np.isfinite(numbers)).all():
            nans = int(np.count_nonzero(np.isnan(numbers)))
            self.nans += nans
            self.infinite += len(numbers) - int(np.count_nonzero(known)) - nans
            self.lowest += int(np.count_nonzero(np.isneginf(numbers)))
            finite, numbers = known, numbers[known]
        if len(numbers):
            exact = numbers.astype(np.float64)
            mean = float(exact.mean())
            exact -= mean
            self._join(len(exact), mean, float(exact @ exact), numbers.min().item(), numbers.max().item())
        return finite

    def merge(self, other: Moments) -> None:
        self.count += other.count
        self.nans += other.nans
        self.infinite += other.infinite
        self.lowest += other.lowest
        self.zeros += other.zeros
        if other.low is not None and other.high is not None:
            self._join(other.finite, other.mean, other._squares, other.low, other.high)

    def _join(self, count: int, mean: float, squares: float, low: float, high: float) -> None:
        """Finite numbers, of which this is known."""
        total = self.finite + count
        apart = mean - self.mean
        self.mean += apart * count / total
        self._squares += squares + apart * apart * self.finite * count / total
        self.finite = total
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)
