"""Figures of a feature, as values: what a report is made of."""

from __future__ import annotations

from dataclasses import dataclass

from recordspec.inspect.stats.smallest import Estimate

# The shares whose quantiles are told.
SHARES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

Value = int | float | str


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """How many values are between one edge and the next; of the last two, the upper belongs to it.

    Attributes:
        edges: one more than there are counts.
        counts: of values, scaled where they were drawn.
        exact: whether all values were counted.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    exact: bool


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Sizes: of lists in values, of strings in bytes. The median may be off by 0.1 % of itself."""

    count: int
    min: int
    median: int
    mean: float
    max: int
    histogram: Histogram | None


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Int64 or float32 values.

    Attributes:
        min, max, mean, deviation, quantiles: of the finite ones; quantiles by share.
        rank_error: how far the rank of any quantile is off at most, with a certainty of 99 %; 0 where all
            values were looked at.
    """

    count: int
    nans: int
    infinite: int
    zeros: int
    min: float | None
    max: float | None
    mean: float | None
    deviation: float | None
    quantiles: dict[float, float]
    rank_error: float
    histogram: Histogram | None


@dataclass(frozen=True, kw_only=True)
class Strings:
    """Bytes values.

    Attributes:
        sizes: in bytes.
        forms: what they are, by their first bytes, with counts.
        looked_at: images and sounds whose headers were read.
        modes: of these, with counts.
        measures: the smallest, median and largest `width`, `height` or `seconds` of these.
    """

    sizes: Spread
    forms: dict[str, int]
    looked_at: int
    modes: dict[str, int]
    measures: dict[str, tuple[float, float, float]]


@dataclass(frozen=True, kw_only=True)
class Common:
    """Values that are told apart.

    Attributes:
        distinct: how many different ones there are.
        top: the most frequent, with counts; none of bytes that are no text.
        short: how much may be missing from each count.
        others: how many values have none of these.
    """

    distinct: Estimate
    top: tuple[tuple[Value, int], ...]
    short: int
    others: int


@dataclass(frozen=True, kw_only=True)
class Classes:
    """A feature that gives a record one of a few values.

    Attributes:
        counts: of each, by name where a spec has names, and then of all names.
        named: whether a spec says that these are classes; otherwise they look so, as they are few.
        unnamed: records whose value has no name.
        imbalance: how many times as frequent the most frequent is as the rarest; None if that never occurs.
    """

    counts: tuple[tuple[Value, int], ...]
    named: bool
    unnamed: int
    imbalance: float | None


@dataclass(frozen=True, kw_only=True)
class Order:
    """Records that follow each other, by their class.

    Attributes:
        pairs: how many were looked at.
        same: the share of those of one class.
        by_chance: the share that a shuffle gives.
    """

    pairs: int
    same: float
    by_chance: float

    @property
    def clumped(self) -> bool:
        """Whether there are more than a tenth of what there can be, and more than chance explains."""
        more = self.same - self.by_chance
        deviation = (self.by_chance * (1 - self.by_chance) / max(self.pairs, 1)) ** 0.5
        return self.pairs >= 20 and more > 0.1 * (1 - self.by_chance) and more > 5 * deviation
