"""How far two distributions are apart, in one unit: the share of values that would have to be others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# So seldom, in a comparison of the same with itself, does a distance exceed what is told as chance.
_SELDOM = 0.001
# Of many shares at once: this many standard deviations are exceeded by one in 150,000.
_DEVIATIONS = 4.5


@dataclass(frozen=True, kw_only=True)
class Distance:
    """How far apart two distributions are.

    Attributes:
        distance: from 0 to 1.
        chance: what there may be between two draws of the same, of these sizes.
        at: the value or the point at which they are furthest apart.
    """

    distance: float
    chance: float
    at: Any

    def weight(self) -> tuple[bool, float]:
        """What is more than chance explains weighs more than what is not."""
        return self.distance > self.chance, self.distance


def of_counts(
    one: Mapping[Any, float],
    other: Mapping[Any, float],
    sizes: tuple[int, int],
    rows: tuple[int, int],
    short: float = 0,
) -> Distance:
    """The largest difference of the shares of any value (the L-infinity distance), of those that chance does
    not explain, if there are any.

    Args:
        one, other: by value, how often it is there.
        sizes: of how many values, not all of which need be counted.
        rows: in how many records, which is what chance depends on.
        short: how far off the shares may be.
    """
    found = Distance(distance=0.0, chance=0.0, at=None)
    inverse = sum(1 / max(count, 1) for count in rows)
    for value in sorted({*one, *other}, key=str):
        shares = [
            counts.get(value, 0) / max(size, 1) for counts, size in zip((one, other), sizes, strict=True)
        ]
        pooled = min(max(sum(shares) / 2, 0.0), 1.0)
        chance = _DEVIATIONS * math.sqrt(pooled * (1 - pooled) * inverse) + short
        distance = Distance(distance=abs(shares[0] - shares[1]), chance=chance, at=value)
        found = max(found, distance, key=Distance.weight)
    return found


def of_points(
    one: npt.NDArray[Any], other: npt.NDArray[Any], weights: tuple[Any, Any], rows: tuple[int, int]
) -> Distance:
    """The largest difference of the shares below any point (the Kolmogorov-Smirnov distance).

    Args:
        one, other: points in rising order, none of them empty.
        weights: of each point; None where each counts once.
        rows: in how many records, which is what chance depends on.
    """
    points = np.union1d(one, other)
    below = [_below(held, some, points) for held, some in zip((one, other), weights, strict=True)]
    apart = np.abs(below[0] - below[1])
    place = int(np.argmax(apart))
    return Distance(distance=float(apart[place]), chance=by_chance(rows), at=points[place].item())


def by_chance(rows: tuple[int, int]) -> float:
    """What the Kolmogorov-Smirnov distance of two draws of the same exceeds once in a thousand times, at
    most (from the inequality of Dvoretzky, Kiefer and Wolfowitz)."""
    inverse = sum(1 / max(count, 1) for count in rows)
    return math.sqrt(-math.log(_SELDOM / 2) / 2 * inverse)


def _below(held: npt.NDArray[Any], weights: Any, points: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The share of points that are not above each of some."""
    until = np.searchsorted(held, points, side="right")
    if weights is None:
        shares: npt.NDArray[np.float64] = until / len(held)
        return shares
    total = np.concatenate([[0], np.cumsum(weights)])
    of_weights: npt.NDArray[np.float64] = total[until] / total[-1]
    return of_weights
