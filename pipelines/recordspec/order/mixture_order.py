"""The order of a mixture: which dataset, and which of its rows, is at a position, in closed form.

A mixture is one endless sequence of units, which are rows, or batches of one dataset. A tree of exact two-way
splits says which dataset a position belongs to, and how many units of this dataset precede it: no table, and
no reader for each dataset. An inner node of weights (a, b) gives `(p * a + (a + b) // 2) // (a + b)` of its
first p units to its left child, at most 1/2 from its share. The tree is Huffman's, in which an inner node has
at most 2/3 of its parent: so no dataset is ever more than 2 units from its share.

Unit k of a dataset of n rows is a row of its pass `k // n`, which has each row once.

Datasets and trainings outlive a release: tests pin the orders.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import gcd, lcm
from typing import NamedTuple, TypeVar

import numpy as np

from recordspec.order.global_order import WINDOW_ROWS, BlockOrder
from recordspec.order.lane_order import LaneOrder
from recordspec.wire.arrays import Ints, offsets
from recordspec.wire.hashes import Words, splitmix64
from recordspec.wire.permutation import ROUNDS, permuted

_Unit = TypeVar("_Unit", int, Ints)

# Increased when a release changes the order of a mixture for the same options.
MIXTURE_VERSION = 1
# The sum of the weights of a tree is smaller: a product of two fits in int64.
MOST_WEIGHT = 1 << 31
# In the place of the number of a dataset, for the permutation within a batch.
_WITHIN_BATCH = -1
# The orders of passes that are kept for each dataset: those of lanes that are ahead, and of others.
_KEPT_PASSES = 4


def integer_weights(weights: Sequence[Fraction]) -> tuple[int, ...]:
    """Weights as integers whose sum is below 2**31; zero stays zero.

    The ratios are exact if integers of this size have them. Otherwise they are rounded down, to at least 1.

    Example:
        >>> integer_weights([Fraction("0.7"), Fraction("0.3")])
        (7, 3)
    """
    scale = lcm(*(weight.denominator for weight in weights))
    whole = [int(weight * scale) for weight in weights]
    shared = gcd(*whole) or 1
    if sum(whole) // shared < MOST_WEIGHT:
        return tuple(weight // shared for weight in whole)
    most, total = MOST_WEIGHT - 1 - len(whole), sum(whole)
    return tuple(max(1, weight * most // total) if weight else 0 for weight in whole)


class SplitTree:
    """The units of each dataset among the units of all, by weight.

    Args:
        weights: an integer for each dataset, their sum below 2**31; a dataset of weight 0 has no unit.
    """

    def __init__(self, weights: Sequence[int]) -> None:
        # two queues, both in ascending order: of leaves, and of the nodes that were made of others
        leaves = sorted((weight, leaf) for leaf, weight in enumerate(weights) if weight)
        count = len(weights)
        made: list[tuple[int, int]] = []
        nodes: list[tuple[int, int, int, int]] = []  # the left child and its weight, the right and its
        at_leaf = at_made = 0
        for _ in range(len(leaves) - 1):
            pair = []
            for _ in range(2):
                is_leaf = at_made == len(made) or (
                    at_leaf < len(leaves) and leaves[at_leaf][0] <= made[at_made][0]
                )
                pair.append(leaves[at_leaf] if is_leaf else made[at_made])
                at_leaf, at_made = at_leaf + is_leaf, at_made + (not is_leaf)
            (light, right), (heavy, left) = pair
            made.append((light + heavy, count + len(nodes)))
            nodes.append((left, heavy, right, light))
        self._count, self._root = count, made[-1][1] if nodes else leaves[0][1]
        self._nodes = nodes
        table = np.array(nodes, np.int64).reshape(-1, 4)
        self._left, self._weight, self._right = table[:, 0], table[:, 1], table[:, 2]
        self._both = table[:, 1] + table[:, 3]

    def at(self, positions: Ints) -> tuple[Ints, Ints]:
        """The dataset at each position, and the number of its units before, both int64 `[n]`."""
        node, place = np.full(len(positions), self._root), positions.copy()
        inner = np.flatnonzero(node >= self._count)
        while len(inner):
            number, own = node[inner] - self._count, place[inner]
            weight, both = self._weight[number], self._both[number]
            # `own * weight` would overflow
            whole, rest = np.divmod(own, both)
            before, over = np.divmod(rest * weight + both // 2, both)
            goes_left = over + weight >= both  # one more unit is one more of the left
            left = whole * weight + before
            place[inner] = np.where(goes_left, left, own - left)
            node[inner] = np.where(goes_left, self._left[number], self._right[number])
            inner = inner[node[inner] >= self._count]
        return node, place

    def counts(self, position: int) -> list[int]:
        """The units of each dataset before a position."""
        counts = [0] * (self._count + len(self._nodes))
        counts[self._root] = position
        for number in range(len(self._nodes) - 1, -1, -1):
            left, a, right, b = self._nodes[number]
            whole = counts[self._count + number]
            counts[left] = (whole * a + (a + b) // 2) // (a + b)
            counts[right] = whole - counts[left]
        return counts[: self._count]

    def positions(self, units: Mapping[int, _Unit]) -> dict[int, _Unit]:
        """The position of a unit, or of several, of each of some datasets, by the number of the dataset."""
        parents = {}
        for number, (left, _, right, _) in enumerate(self._nodes):
            parents[left] = parents[right] = number
        found = {}
        for dataset, unit in units.items():
            node, place = dataset, unit
            while node != self._root:
                number = parents[node]
                left, a, _, b = self._nodes[number]
                both, half = a + b, (a + b) // 2
                if node == left:
                    place = -(((place + 1) * both - half) // -a) - 1
                else:
                    place = (place * both + half) // b
                node = self._count + number
            found[dataset] = place
        return found


@dataclass(frozen=True, kw_only=True)
class UnitStage:
    """Weights from a unit on.

    Attributes:
        first: the position of the first unit.
        weights: an integer for each dataset, their sum below 2**31; 0 for a dataset that is not read.
    """

    first: int
    weights: tuple[int, ...]


class _Phase(NamedTuple):
    """Positions with the same datasets and weights.

    Attributes:
        first: the first position.
        before: the units of each dataset before it.
        weights: the weights; 0 for a dataset that is not read.
    """

    first: int
    before: tuple[int, ...]
    weights: tuple[int, ...]


class UnitOrder:
    """The dataset of each unit of a mixture. A dataset without room leaves, and the others go on by their
    weights.

    Args:
        stages: the weights; the first stage begins at 0, and no two begin at the same unit.
        room: the most units of each dataset; None for any number.

    Attributes:
        units: the number of all units; None if they are endless.
    """

    def __init__(self, stages: Sequence[UnitStage], room: Sequence[int | None]) -> None:
        self._datasets = len(room)
        self._phases: list[_Phase] = []
        self.units: int | None = None
        for phase in self._walk(stages, room):
            self._phases.append(phase)
        self._firsts = [phase.first for phase in self._phases]
        self._last: tuple[int, SplitTree] | None = None

    def _walk(self, stages: Sequence[UnitStage], room: Sequence[int | None]) -> Iterator[_Phase]:
        first, counts = 0, [0] * self._datasets
        for stage, following in pairwise([*stages, None]):
            assert stage is not None
            while following is None or first < following.first:
                left = [most and most - count for most, count in zip(room, counts, strict=True)]
                weights = tuple(
                    0 if rest == 0 else weight for weight, rest in zip(stage.weights, left, strict=True)
                )
                if not any(weights):
                    self.units = first
                    return
                yield _Phase(first, tuple(counts), weights)
                tree = SplitTree(weights)
                ends = self._ends(tree, weights, left)
                if following is not None and (ends is None or first + ends >= following.first):
                    ends = following.first - first
                if ends is None:
                    return
                counts = [count + more for count, more in zip(counts, tree.counts(ends), strict=True)]
                first += ends

    @staticmethod
    def _ends(tree: SplitTree, weights: Sequence[int], left: Sequence[int | None]) -> int | None:
        """The number of units after which the first dataset has no room; None if none ends."""
        total = sum(weights)
        bounded = [
            (rest, dataset, weight)
            for dataset, (weight, rest) in enumerate(zip(weights, left, strict=True))
            if weight and rest is not None
        ]
        if not bounded:
            return None
        # a dataset is at most 2 units from its share: few can be the first
        latest = min((rest + 2) * total // weight + 1 for rest, _, weight in bounded)
        near = {
            dataset: rest - 1 for rest, dataset, weight in bounded if (rest - 2) * total <= latest * weight
        }
        return min(tree.positions(near).values()) + 1

    def _tree(self, number: int) -> SplitTree:
        last = self._last  # chunks follow each other: most are of one phase
        if last is None or last[0] != number:
            self._last = last = number, SplitTree(self._phases[number].weights)
        return last[1]

    def at(self, positions: Ints) -> tuple[Ints, Ints]:
        """The dataset at each position, and the number of its units before, both int64 `[n]`."""
        datasets, units = np.empty_like(positions), np.empty_like(positions)
        phases = np.searchsorted(self._firsts, positions, "right") - 1
        for number in np.unique(phases).tolist():
            own, phase = phases == number, self._phases[number]
            found, place = self._tree(number).at(positions[own] - phase.first)
            datasets[own], units[own] = found, place + np.array(phase.before, np.int64)[found]
        return datasets, units

    def counts(self, position: int) -> list[int]:
        """The units of each dataset before a position."""
        number = bisect_right(self._firsts, position) - 1
        phase = self._phases[number]
        counts = self._tree(number).counts(position - phase.first)
        return [count + more for count, more in zip(phase.before, counts, strict=True)]

    def positions(self, units: Mapping[int, Ints]) -> dict[int, Ints]:
        """The positions of units of some datasets, of weights without stages and ends."""
        assert len(self._phases) == 1
        return self._tree(0).positions(units)

    def position(self, dataset: int, unit: int) -> int | None:
        """The position of a unit of a dataset, counted from 0; None if the mixture does not have it."""
        for number, phase in enumerate(self._phases):
            following = self._phases[number + 1] if number + 1 < len(self._phases) else None
            if following is not None and following.before[dataset] <= unit:
                continue
            if not phase.weights[dataset]:
                return None
            place = self._tree(number).positions({dataset: unit - phase.before[dataset]})[dataset]
            found = phase.first + place
            return None if self.units is not None and found >= self.units else found
        return None


@dataclass(frozen=True, kw_only=True)
class MixtureOrder:
    """The order of the rows of an epoch of a mixture, whose datasets lie one after the other.

    Attributes:
        units: the dataset of each unit.
        rows: the rows of each dataset, int64 `[d]`.
        seed: the seed of the datasets' passes, and of the places within a batch.
        epoch: the number of the epoch, from 0.
        epoch_rows: the rows of an epoch.
        batch: the rows of a global batch, within which positions are permuted: the dataset of a row then does
            not depend on the worker.
        alone: whether all rows of a batch are of one dataset; units are batches then.
        again: whether each epoch begins with the first unit again, and the rows of the datasets go on.
        blocks: the rows of each block of each dataset; None if rows are not in blocks.
    """

    units: UnitOrder
    rows: Ints
    seed: int
    epoch: int
    epoch_rows: int
    batch: int
    alone: bool = False
    again: bool = False
    blocks: Sequence[Ints] | None = None

    _block_orders: dict[int, tuple[int, BlockOrder]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def _first(self) -> Ints:
        """The first row of each dataset."""
        return offsets(self.rows)[:-1]

    @cached_property
    def _before(self) -> Ints:
        """The units of each dataset in the epochs before, if each begins with the first unit."""
        if not self.again or not self.epoch:
            return np.zeros(len(self.rows), np.int64)
        counts = self.units.counts(self.epoch_rows // (self.batch if self.alone else 1))
        return np.array(counts, np.int64) * self.epoch

    def rows_at(self, positions: Ints) -> Ints:
        datasets, numbers = self.units_at(positions)
        passes, places = np.divmod(numbers, self.rows[datasets])
        rows: Ints = self._first[datasets] + self._permuted(datasets, passes, places)
        return rows

    def units_at(self, positions: Ints) -> tuple[Ints, Ints]:
        """The dataset of the row at each position, and the number of this dataset's rows before it in all
        epochs, both int64 `[n]`."""
        steps, within = np.divmod(positions, self.batch)
        first_step = self.epoch * -(-self.epoch_rows // self.batch)
        if self.alone:
            datasets, batches = self.units.at(steps if self.again else first_step + steps)
            batches += self._before[datasets]
            return datasets, batches * self.batch + within
        if self.batch > 1:
            within = self._mixed(steps, within, first_step)
        places = steps * self.batch + within
        datasets, numbers = self.units.at(places if self.again else self.epoch * self.epoch_rows + places)
        return datasets, numbers + self._before[datasets]

    def _mixed(self, steps: Ints, within: Ints, first_step: int) -> Ints:
        """The positions within batches, permuted in each."""
        mixed = np.empty_like(within)
        several, starts = np.unique(steps, return_index=True)
        ordered = bool((np.diff(steps) >= 0).all())
        keys = _keys(self.seed, np.full(len(several), _WITHIN_BATCH), first_step + several).tolist()
        stops = np.append(starts[1:], len(steps))
        for step, key, start, stop in zip(
            several.tolist(), keys, starts.tolist(), stops.tolist(), strict=True
        ):
            own = slice(start, stop) if ordered else np.flatnonzero(steps == step)
            size = min(self.batch, self.epoch_rows - step * self.batch)
            # the order within a batch says nothing: with the 32 rounds of small ranges, it took 0.4 us a row
            mixed[own] = permuted(within[own], size, key, ROUNDS)
        return mixed

    def _permuted(self, datasets: Ints, passes: Ints, places: Ints) -> Ints:
        """The rows at places of passes of datasets."""
        order = np.lexsort((passes, datasets))
        of_dataset, of_pass = datasets[order], passes[order]
        begins = np.flatnonzero((np.diff(of_dataset, prepend=-1) != 0) | (np.diff(of_pass, prepend=-1) != 0))
        keys = _keys(self.seed, of_dataset[begins], of_pass[begins]).tolist()
        sorted_places, rows = places[order], np.empty_like(places)
        stops = np.append(begins[1:], len(order)).tolist()
        for start, stop, key in zip(begins.tolist(), stops, keys, strict=True):
            dataset = int(of_dataset[start])
            own = sorted_places[start:stop]
            if self.blocks is None:
                rows[order[start:stop]] = permuted(own, int(self.rows[dataset]), key)
            else:
                rows[order[start:stop]] = self._block_order(dataset, key).rows_at(own)
        return rows

    def _block_order(self, dataset: int, key: int) -> BlockOrder:
        """The order of a pass of a dataset. The windows of all datasets together have as many rows as the
        window of a single dataset, so that rows that are read together lie in few blocks.
        """
        known = self._block_orders.get(dataset)
        if known is None or known[0] != key:
            assert self.blocks is not None
            window = max(1, WINDOW_ROWS // len(self.rows))
            self._block_orders[dataset] = known = key, BlockOrder(self.blocks[dataset], key, window)
        return known[1]


@dataclass(frozen=True, kw_only=True)
class MixtureInLanes:
    """The order of the rows of an epoch of a mixture in lanes, whose datasets lie one after the other.

    Each dataset is cut into as many lanes: see `LaneOrder`. Lane l of the mixture mixes the rows of the lanes
    l of the datasets: so workers that have whole lanes read every byte once.

    Attributes:
        units: the dataset of each unit. Lane l begins with unit l, so that a batch has consecutive units.
        skipped: the units of each dataset before the first unit of each lane, int64 `[lanes, d]`.
        rows: the rows of each dataset, int64 `[d]`.
        files: the rows of the files of each dataset.
        window: the rows of a lane of a dataset that are permuted together.
        seed: the seed of the datasets' passes.
        epoch: the number of the epoch, from 0.
        epoch_rows: the rows of an epoch, a multiple of the lanes.
    """

    units: UnitOrder
    skipped: Ints
    rows: Ints
    files: Sequence[Ints]
    window: int
    seed: int
    epoch: int
    epoch_rows: int

    _passes: dict[tuple[int, int], LaneOrder] = field(default_factory=dict, init=False, repr=False)

    def rows_at(self, positions: Ints) -> Ints:
        datasets, passes, places = self.places_at(positions)
        rows: Ints = offsets(self.rows)[datasets]
        for dataset, number in sorted({*zip(datasets.tolist(), passes.tolist(), strict=True)}):
            own = (datasets == dataset) & (passes == number)
            rows[own] += self._pass(dataset, number).rows_at(places[own])
        return rows

    def places_at(self, positions: Ints) -> tuple[Ints, Ints, Ints]:
        """The dataset, the pass and the position in the pass at each position of the epoch, int64 `[n]`."""
        count = len(self.skipped)
        numbers, lanes = np.divmod(positions, count)
        datasets, units = self.units.at(self.epoch * (self.epoch_rows // count) + numbers + lanes)
        units -= self.skipped[lanes, datasets]
        least, more = np.divmod(self.rows[datasets], count)
        passes, places = np.divmod(units, least + (lanes < more))
        return datasets, passes, places * count + lanes

    def _pass(self, dataset: int, number: int) -> LaneOrder:
        """The order of a pass of a dataset."""
        known = self._passes
        if (dataset, number) not in known:
            while len(known) > _KEPT_PASSES * len(self.files):
                known.pop(next(iter(known)), None)
            key = int(_keys(self.seed, np.array([dataset]), np.array([number]))[0])
            order = LaneOrder(self.files[dataset], len(self.skipped), self.window, key)
            known[dataset, number] = order
            return order
        return known[dataset, number]


def _keys(seed: int, datasets: Ints, numbers: Ints) -> Words:
    """`mixed(seed, dataset, number)` of each pair, uint64 `[n]`."""
    state = np.zeros(len(datasets), np.uint64)
    for word in (np.array(seed & ((1 << 64) - 1), np.uint64), datasets, numbers):
        state = splitmix64(state + word.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    return state
