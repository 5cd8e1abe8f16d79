"""Packs: several rows in one sequence of a fixed length, in place of padding.

Packs are planned once, from the number of rows of each length. A plan is a table of patterns of lengths, each
with its number of packs. In each epoch, a permutation by (seed, epoch, L) assigns the rows of length L to the
slots of this length, and another permutation orders the packs. Hence each row comes once in a pass, its
neighbours change with each epoch, and the rows of a pack are a function of (seed, epoch, position), as rows
are in `global_order`.

Packs of a mixture are packs of its datasets, or packs of its rows.

In the order of the files, and for rows in blocks, packs are planned within windows of rows, so that the rows
of a pack are near each other in the files.

Trainings outlive a release: tests pin the packs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd
from typing import Any

import numpy as np

from recordspec.errors import Problem, SpecError
from recordspec.order.global_order import WINDOW_ROWS
from recordspec.order.mix_options import MixturePlan
from recordspec.order.read_options import Batch, Pack
from recordspec.wire.arrays import Ints, Mask, offsets
from recordspec.wire.hashes import splitmix64
from recordspec.wire.permutation import mixed, permuted

# Rows that are planned together if several features have lengths of their own: the time of a plan grows with
# the square of the number of different combinations.
_COMBINED_ROWS = 1 << 10
# Classes after which `_find_several` leaves out those that are used up.
_USED_UP = 32
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class RowsInPacks:
    """The rows in some packs. A row that is split is several pieces.

    Attributes:
        rows: the number of the row of each piece, int64 `[n]`.
        starts: the first value of the row that is in the piece, int64 `[n]`.
        sizes: the values of each packed feature in the piece, with the separator, int64 `[k, n]`.
        lengths: the values of each packed feature in the row, without the separator, int64 `[k, n]`.
        counts: the number of pieces of each pack, int64 `[p]`.
    """

    rows: Ints
    starts: Ints
    sizes: Ints
    lengths: Ints
    counts: Ints

    def part(self, first: int, stop: int) -> RowsInPacks:
        """Packs `first` to `stop`."""
        start, end = (int(self.counts[:place].sum()) for place in (first, stop))
        some = slice(start, end)
        sizes, lengths = self.sizes[:, some], self.lengths[:, some]
        return RowsInPacks(self.rows[some], self.starts[some], sizes, lengths, self.counts[first:stop])

    @classmethod
    def of_arrays(cls, table: Ints, counts: Ints) -> RowsInPacks:
        """The rows of packs, of `arrays`."""
        table = np.ascontiguousarray(table)  # NumPy may select columns into another memory layout
        (rows, starts), others = table[:2], table[2:]
        sizes, lengths = np.split(others, 2)
        return cls(rows, starts, sizes, lengths, counts)

    @property
    def arrays(self) -> tuple[Ints, Ints]:
        """Two arrays with all values: int64 `[2 + 2 * k, n]`, and the counts `[p]`."""
        return np.vstack([self.rows, self.starts, self.sizes, self.lengths]), self.counts

    @classmethod
    def joined(cls, parts: Sequence[RowsInPacks], order: Ints) -> RowsInPacks:
        """Packs of several parts in another order.

        Args:
            order: the number of each pack among those of all parts, int64 `[p]`.
        """
        counts = np.concatenate([part.counts for part in parts])
        firsts, many = offsets(counts)[:-1][order], counts[order]
        pieces = np.repeat(firsts - offsets(many)[:-1], many) + np.arange(many.sum())
        tables = [part.arrays[0] for part in parts]
        return cls.of_arrays(np.concatenate(tables, 1)[:, pieces], many)

    @property
    def packs(self) -> Ints:
        """The number of the pack of each piece, from 0, int64 `[n]`."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @property
    def segments(self) -> Ints:
        """The number of each piece in its pack, from 1, int64 `[n]`."""
        return 1 + np.arange(len(self.rows)) - np.repeat(offsets(self.counts)[:-1], self.counts)

    def places(self, feature: int, align: int) -> Ints:
        """The place in its pack at which each piece of a feature begins, int64 `[n]`."""
        ends = offsets(aligned(self.sizes[feature], align))[:-1]
        firsts: Ints = np.append(ends, 0)[offsets(self.counts)[:-1]] if len(ends) else self.counts * 0
        places: Ints = ends - np.repeat(firsts, self.counts)
        return places


@dataclass(frozen=True, kw_only=True)
class PackPlan:
    """What `read.pack` makes of the rows of a split.

    Attributes:
        rows: the number of rows.
        pieces: the number of rows in packs; of a row that is split, each piece counts.
        packs: the number of packs.
        steps: the number of batches of a pass.
        fill: by packed feature, the share of the places in packs that have a value.
        unpacked: the same if each row had a sequence of the length of a pack to itself, padded.
        most: the most rows in a pack.
        longer: the number of rows that are longer than a pack.
        empty: the number of rows without values, which are in no pack.
    """

    rows: int
    pieces: int
    packs: int
    steps: int
    fill: Mapping[str, float]
    unpacked: Mapping[str, float]
    most: int
    longer: int
    empty: int

    def as_rows(self, split: str) -> Iterator[dict[str, Any]]:
        """The plan of a split as a row of a table for each packed feature."""
        for name, share in self.fill.items():
            yield {
                "split": split,
                "packed": name,
                "rows": self.rows,
                "packs": self.packs,
                "rows a pack": round(self.pieces / max(1, self.packs), 1),
                "at most": self.most,
                "full": f"{share:.2%}",
                "padded rows": f"{self.unpacked[name]:.2%}",
                "steps": self.steps,
                "longer": self.longer,
                "empty": self.empty,
            }


class Packs(ABC):
    """The packs of each epoch.

    Attributes:
        names: the names of the packed features.
        capacities: the number of values of each in a pack, int64 `[k]`.
        count: the number of packs of an epoch.
    """

    names: tuple[str, ...]
    capacities: Ints
    count: int

    @abstractmethod
    def at(self, epoch: int, positions: Ints) -> RowsInPacks:
        """The rows of the packs at positions of an epoch. At positions from `count` on, packs are empty."""

    @abstractmethod
    def plan(self, steps: int) -> PackPlan:
        """What was planned, for an epoch of so many batches."""

    @property
    @abstractmethod
    def pieces(self) -> int:
        """The number of pieces in the packs of an epoch."""

    def padded(self, batch: Batch | None) -> int:
        """The number of packs with the empty ones that make the last batch whole, so that all workers have as
        many.

        With `drop_remainder`, the last batch is dropped instead.
        """
        size = 1 if batch is None or batch.drop_remainder else batch.size
        return -(-self.count // size) * size


class Pieces:
    """The pieces of rows, each of which fits into a pack. A row that is split has several, a row that is in
    no pack has none.

    Args:
        lengths: the number of values of each packed feature in each row, integers `[k, n]`.
        names: the names of these features.
        pack: the options.
        order: the order of the rows, int64 `[n]`; by default as they come.

    Raises SpecError if a row is longer than a pack, unless `pack.longer` says what is done with it.

    Attributes:
        capacities: the number of values of each feature in a pack, int64 `[k]`.
        rows: the row of each piece, int64 `[m]`.
        firsts: the number of the first piece of each row in `order`, and the number of all, int64 `[n + 1]`.
        longer: the number of rows that are longer than a pack.
        empty: the number of rows without values, which are in no pack.
    """

    def __init__(self, lengths: Ints, names: tuple[str, ...], pack: Pack, order: Ints | None = None) -> None:
        self._lengths, self._names, self._pack = lengths, names, pack
        self.capacities = np.array([pack.length_of(name) for name in names], np.int64)
        wanted = lengths.astype(np.int64) + (pack.separator is not None)
        self.empty = int((~lengths.any(0)).sum())
        long: Any = (wanted > self.capacities[:, None]).any(axis=0)
        self.longer = int(long.sum())
        self._check_longer(wanted, long)
        counts = np.ones(wanted.shape[1], np.int64)
        if pack.longer == "split":
            counts = -(-wanted[0] // self.capacities[0])
        elif pack.longer == "drop":
            counts[long] = 0
        counts[~lengths.any(0)] = 0
        if order is None:
            order = np.arange(len(counts))
        counts = counts[order]
        self.rows, self.firsts = np.repeat(order, counts), offsets(counts)
        self._starts: Ints | None = None
        if (counts > 1).any():
            self._starts = np.arange(len(self.rows)) - np.repeat(self.firsts[:-1], counts)
            self._starts *= self.capacities[0]

    def _check_longer(self, wanted: Ints, long: Mask) -> None:
        if not self.longer:
            return
        feature = int((wanted[:, long].max(1) > self.capacities).argmax())
        if self._pack.longer == "error":
            most, row = int(wanted[feature].max()), int(wanted[feature].argmax())
            got = f"{most} in row {row}; {self.longer} of {wanted.shape[1]} rows are longer"
            expected = f"at most {self.capacities[feature]} values of `{self._names[feature]}` in a row"
            hint = "`longer: truncate`, `split` or `drop`"
            raise SpecError(Problem(path=("read", "pack"), expected=expected, got=got, hint=hint))
        if self._pack.longer == "split" and (wanted != wanted[0]).any():
            expected, got = "features of equal lengths in each row to split", ", ".join(self._names)
            raise SpecError(Problem(path=("read", "pack", "longer"), expected=expected, got=got))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def number_of_rows(self) -> int:
        return int(self._lengths.shape[1])

    def starts(self, pieces: Ints) -> Ints:
        """The first value of the row that is in each piece, int64 `[p]`."""
        return np.zeros(len(pieces), np.int64) if self._starts is None else self._starts[pieces]

    @property
    def sizes(self) -> Ints:
        """The values of each feature in each piece, with the separator, int64 `[k, m]`."""
        return self._sizes(self.rows, 0 if self._starts is None else self._starts)

    def _sizes(self, rows: Ints, starts: Ints | int) -> Ints:
        left = self._lengths[:, rows].astype(np.int64) + (self._pack.separator is not None) - starts
        sizes: Ints = np.minimum(left, self.capacities[:, None])
        return sizes

    @cached_property
    def values(self) -> Ints:
        """The values of each feature in all pieces, int64 `[k]`."""
        values: Ints = self.sizes.sum(1)
        return values

    def size(self, of: str) -> int:
        """The number of the pieces, if `of` is `rows`, or of the values of the first feature in them."""
        return len(self) if of == "rows" else int(self.values[0])

    def in_packs(self, pieces: Ints, counts: Ints) -> RowsInPacks:
        """The rows of packs with so many pieces each."""
        rows, starts = self.rows[pieces], self.starts(pieces)
        lengths = self._lengths[:, rows].astype(np.int64)
        return RowsInPacks(rows, starts, self._sizes(rows, starts), lengths, counts)


class PackTable:
    """Packs of pieces of known costs, planned within windows.

    Args:
        costs: the room that each piece takes of each capacity, int64 `[k, m]`.
        bounds: the first piece of each window, and the number of all, int64 `[w + 1]`.
        capacities: the room of a pack, int64 `[k]`.
        most: the most pieces in a pack; None for any number.

    Attributes:
        count: the number of packs.
        windows: the first pack of each window, and the number of all, int64 `[w + 1]`.
        most: the most pieces in a pack.
    """

    def __init__(self, costs: Ints, bounds: Ints, capacities: Ints, most: int | None) -> None:
        members, kinds, windows = [], [0], [0]
        packs, places = [0], [0]
        slots: list[tuple[int, int, int]] = []
        for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            base = len(kinds) - 1
            if high > low:
                classes, number = _classes(costs[:, low:high], capacities)
                held = np.bincount(number, minlength=len(classes))
                members.append(low + np.argsort(number, kind="stable"))
                kinds.extend((kinds[-1] + np.cumsum(held)).tolist())
                used = [0] * len(classes)
                for taken, times in _patterns(classes, held, capacities, most):
                    for kind, many in taken.items():
                        slots.extend((base + kind, used[kind] + one, many) for one in range(many))
                        used[kind] += many * times
                    packs.append(packs[-1] + times)
                    places.append(len(slots))
            windows.append(packs[-1])
        self._kinds = np.array(kinds)
        self._members = np.concatenate(members) if members else np.zeros(0, np.int64)
        self._packs, self._places = np.array(packs), np.array(places)
        self._slots = np.array(slots, np.int64).reshape(-1, 3).T
        self.windows = np.array(windows)
        self.count, self.most = packs[-1], int(np.diff(self._places).max(initial=0))

    def at(self, packs: Ints, key: int | None) -> tuple[Ints, Ints]:
        """The pieces of packs, and their number in each pack.

        Args:
            packs: the numbers of the packs, int64 `[p]`; from `count` on, packs are empty.
            key: selects the pieces that an epoch assigns to slots; None for those of the plan.
        """
        present = packs < self.count
        counts = np.zeros(len(packs), np.int64)
        packs = packs[present]
        patterns = np.searchsorted(self._packs, packs, "right") - 1
        many = np.diff(self._places)[patterns]
        counts[present] = many
        within = np.repeat(self._places[patterns] - offsets(many)[:-1], many)
        kinds, base, step = self._slots[:, within + np.arange(len(within))]
        numbers = base + step * np.repeat(packs - self._packs[patterns], many)
        if key is not None:
            numbers = self._assigned(kinds, numbers, key)
        pieces: Ints = self._members[self._kinds[kinds] + numbers]
        return pieces, counts

    def permuted_in_windows(self, windows: Ints, places: Ints, key: int) -> Ints:
        """The packs at places of windows, which are permuted in each, int64 `[n]`."""
        packs: Ints = np.empty_like(places)
        for window in np.unique(windows).tolist():
            own = windows == window
            first, stop = self.windows[window : window + 2].tolist()
            packs[own] = first + permuted(places[own], stop - first, mixed(key, 1 + window))
        return packs

    def _assigned(self, kinds: Ints, numbers: Ints, key: int) -> Ints:
        """The numbers, within their class, of the rows that an epoch assigns to slots.

        Args:
            kinds: the class of each slot.
            numbers: the number of each slot among the slots of its class.
            key: selects the permutations.
        """
        assigned: Ints = numbers.copy()
        order = np.argsort(kinds, kind="stable")
        found, firsts = np.unique(kinds[order], return_index=True)
        keys = splitmix64(np.uint64(mixed(key)) + found.astype(np.uint64) + _GOLDEN).tolist()
        sizes = np.diff(self._kinds)[found].tolist()
        parts = np.split(order, firsts)[1:]
        for some, size, key_of in zip(parts, sizes, keys, strict=True):
            if size > 1:
                assigned[some] = permuted(numbers[some], size, key_of)
        return assigned


class PacksOfDataset(Packs):
    """The packs of the rows of one dataset, planned from their lengths."""

    _pieces: Pieces
    _table: PackTable

    @property
    def pieces(self) -> int:
        return len(self._pieces)

    def plan(self, steps: int) -> PackPlan:
        return _plan_of([self._pieces], [self.pieces], self._table, self.names, steps, self.count)

    def size(self, of: str) -> int:
        """As for `Pieces`, of all packs."""
        return self._pieces.size(of)


class PackOrder(PacksOfDataset):
    """The packs of a split, and their order in each epoch.

    Args:
        lengths: the number of values of each packed feature in each row, integers `[k, n]`.
        names: the names of these features.
        pack: the options.
        seed: the seed of the order; None for the order of the files.
        blocks: the rows of each block, int64 `[b]`; None if rows are not in blocks.

    Raises SpecError as `Pieces`.
    """

    def __init__(
        self, lengths: Ints, names: tuple[str, ...], pack: Pack, seed: int | None, blocks: Ints | None = None
    ) -> None:
        self.names, self._seed = names, seed
        order, bounds = _windows(lengths.shape[1], seed, blocks, several=_differ(lengths))
        self._pieces = Pieces(lengths, names, pack, order)
        self.capacities = self._pieces.capacities
        self._table = PackTable(
            aligned(self._pieces.sizes, pack.align),
            self._pieces.firsts[bounds],
            self.capacities,
            pack.most,
        )
        self._in_windows = seed is not None and blocks is not None
        self.count = self._table.count

    def at(self, epoch: int, positions: Ints) -> RowsInPacks:
        key = None if self._seed is None else mixed(self._seed, epoch)
        packs: Ints = positions.copy()
        present = positions < self.count
        if key is not None:
            packs[present] = self._permuted(positions[present], key)
        return self._pieces.in_packs(*self._table.at(packs, key))

    def _permuted(self, positions: Ints, key: int) -> Ints:
        """The packs at positions below `count`."""
        if not self._in_windows:
            return permuted(positions, self.count, mixed(key, 0))
        count = len(self._table.windows) - 1
        windows = permuted(np.arange(count), count, mixed(key, 0))
        firsts = offsets(np.diff(self._table.windows)[windows])
        places = np.searchsorted(firsts, positions, "right") - 1
        return self._table.permuted_in_windows(windows[places], positions - firsts[places], key)


class PacksInLanes(PacksOfDataset):
    """The packs of an order in lanes: pack i of lane l is at position `i * lanes + l` of an epoch.

    The files, in an order of the seed, are laid end to end and cut into lanes of about equally many values.
    So a lane has the same rows in all epochs. Its packs are planned within windows of its rows, and each
    epoch permutes the windows of a lane, the packs of a window, and the rows of one length in a window. A
    lane with fewer packs than another has empty ones between them.

    Args:
        lengths, names, pack, seed: as for `PackOrder`.
        files: the rows of each file, int64 `[f]`.
        lanes: the number of lanes.
        window: the rows of a window, at most.

    Raises SpecError as `Pieces`, and for a lane without packs.
    """

    def __init__(
        self,
        lengths: Ints,
        names: tuple[str, ...],
        pack: Pack,
        *,
        seed: int,
        files: Ints,
        lanes: int,
        window: int,
    ) -> None:
        self.names, self._seed, self._lanes = names, seed, lanes
        chosen = permuted(np.arange(len(files)), len(files), mixed(seed))
        sizes = files[chosen]
        order = np.repeat(offsets(files)[:-1][chosen] - offsets(sizes)[:-1], sizes) + np.arange(sizes.sum())
        self._pieces = Pieces(lengths, names, pack, order)
        self.capacities = self._pieces.capacities
        costs = aligned(self._pieces.sizes, pack.align)
        room = offsets((costs / self.capacities[:, None]).max(0))
        cuts = np.searchsorted(room, room[-1] * np.arange(1, lanes) / lanes)
        ends = np.concatenate([[0], cuts, [len(self._pieces)]])
        if _differ(lengths):
            window = min(window, _COMBINED_ROWS)
        windows = np.maximum(1, -(-np.diff(ends) // window))
        self._of_lane = np.repeat(np.arange(lanes), windows)
        numbers = np.arange(windows.sum()) - np.repeat(offsets(windows)[:-1], windows)
        bounds = ends[self._of_lane] + numbers * np.diff(ends)[self._of_lane] // windows[self._of_lane]
        self._table = PackTable(costs, np.append(bounds, ends[-1]), self.capacities, pack.most)
        self._first_pack = self._table.windows[offsets(windows)]
        own = np.diff(self._first_pack)
        if self._table.count and not own.all():  # most packs could be empty
            expected, got = f"packs for each of {lanes} lanes", f"none for {int((own == 0).sum())}"
            hint = "fewer `lanes`"
            raise SpecError(Problem(path=("read", "shuffle", "lanes"), expected=expected, got=got, hint=hint))
        # so that consecutive packs are not from adjacent parts of the files
        self._drawn = permuted(np.arange(lanes), lanes, mixed(seed, 1))
        self.count = lanes * int(own.max())
        self._last: tuple[int, Ints, Ints] | None = None

    def at(self, epoch: int, positions: Ints) -> RowsInPacks:
        key = mixed(self._seed, epoch)
        windows, firsts = self._windows(epoch, key)
        rounds, lanes = np.divmod(positions, self._lanes)
        lanes = self._drawn[lanes]
        packs = np.full(len(positions), self._table.count)
        # a lane with fewer packs has its empty ones at equal distances, other lanes at other places: at the
        # end of the epoch, batches would have only empty ones
        counts, most = np.diff(self._first_pack)[lanes], max(1, self.count // self._lanes)
        before = rounds * counts + lanes * most // self._lanes
        numbers = before // most
        present = ((before + counts) // most > numbers) & (rounds < most)
        wanted = self._first_pack[lanes[present]] + numbers[present]
        places = np.searchsorted(firsts, wanted, "right") - 1
        packs[present] = self._table.permuted_in_windows(windows[places], wanted - firsts[places], key)
        return self._pieces.in_packs(*self._table.at(packs, key))

    def _windows(self, epoch: int, key: int) -> tuple[Ints, Ints]:
        """The windows in the order of an epoch, and the packs before each: lanes stay one after the other."""
        last = self._last
        if last is None or last[0] != epoch:
            drawn = splitmix64(np.uint64(mixed(key, 0)) + np.arange(len(self._of_lane), dtype=np.uint64))
            windows = np.lexsort((drawn, self._of_lane))
            firsts = offsets(np.diff(self._table.windows)[windows])[:-1]
            self._last = last = epoch, windows, firsts
        return last[1:]


class PackedMixture(Packs):
    """The packs of a mixture of rows: a pack may have rows of several datasets.

    All epochs have the same number of rows of each dataset, so the packs are planned once: each row in a pack
    has a slot, whose size is the same in all epochs. The rows of a dataset, in ascending order of their
    lengths, lie on a circle. An epoch takes rows at equal distances from it, and the next epoch goes on by
    the share of the circle that an epoch reads. Hence each row comes once in a pass, and a slot gets rows of
    similar lengths: its size is the length of the longest.

    Args:
        pieces: the rows of each dataset, as pieces.
        names: the names of the packed features.
        pack: the options.
        plan: how many rows of each dataset an epoch has.
        seed: the seed of the order.
        firsts: the first row of each dataset among the rows of all.

    Raises SpecError for packed features with lengths of their own.

    Attributes:
        mixture: `plan`.
    """

    def __init__(
        self,
        pieces: Sequence[Pieces],
        names: tuple[str, ...],
        pack: Pack,
        plan: MixturePlan,
        *,
        seed: int,
        firsts: Ints,
    ) -> None:
        self.names, self.mixture, self._seed = names, plan, seed
        self._pieces, self._firsts, self.capacities = pieces, firsts, pieces[0].capacities
        self._held, self._read = np.array([len(one) for one in pieces]), np.array(plan.counts())
        self._before = offsets(self._read)
        self._ranked, costs = [], []
        for number, (one, read) in enumerate(zip(pieces, self._read.tolist(), strict=True)):
            sizes = one.sizes
            if _differ(sizes):
                expected, got = "features of equal lengths in each row, to mix rows", ", ".join(names)
                raise SpecError(Problem(path=("mix", "packs"), expected=expected, got=got))
            # rows of one length come in an order of the seed
            order = permuted(np.arange(len(one)), len(one), mixed(seed, number))
            ranked = order[np.argsort(sizes[0, order], kind="stable")]
            self._ranked.append(ranked)
            if read:
                # the last rank of a slot, in the epoch that begins farthest on
                last = (np.arange(read) * len(one) + len(one) - gcd(read, len(one))) // read
                costs.append(sizes[:, ranked[last]])
        self._table = PackTable(
            aligned(np.concatenate(costs, 1), pack.align),
            self._before[[0, -1]],
            self.capacities,
            pack.most,
        )
        self.count = self._table.count

    @property
    def pieces(self) -> int:
        return int(self._before[-1])

    def plan(self, steps: int) -> PackPlan:
        """What was planned; a row that an epoch reads has the mean length of its dataset's rows."""
        return _plan_of(self._pieces, self._read.tolist(), self._table, self.names, steps)

    def at(self, epoch: int, positions: Ints) -> RowsInPacks:
        key, packs = mixed(self._seed, epoch), positions.copy()
        present = positions < self.count
        packs[present] = permuted(positions[present], self.count, mixed(key, 0))
        slots, counts = self._table.at(packs, key)
        datasets = np.searchsorted(self._before, slots, "right") - 1
        held, read = self._held[datasets], self._read[datasets]
        ranks = ((slots - self._before[datasets]) * held + epoch * read % held) // read
        parts, order = [], []
        for dataset in np.unique(datasets).tolist():
            own = np.flatnonzero(datasets == dataset)
            found = self._pieces[dataset].in_packs(
                self._ranked[dataset][ranks[own]], np.ones(len(own), np.int64)
            )
            parts.append(replace(found, rows=found.rows + self._firsts[dataset]))
            order.append(own)
        if not parts:
            return self._pieces[0].in_packs(slots, counts)
        table = np.concatenate([part.arrays[0] for part in parts], 1)
        inverse = np.argsort(np.concatenate(order))
        return RowsInPacks.of_arrays(table[:, inverse], counts)


class MixedPacks(Packs):
    """The packs of a mixture: each is one of a dataset. The weights are those of packs.

    Args:
        packs: the packs of each dataset; all are in the lanes of the plan, if it has lanes.
        plan: how they are mixed; its rows are packs.
        seed: the seed of the mixture.
        firsts: the first row of each dataset among the rows of all.

    Attributes:
        mixture: `plan`.
    """

    def __init__(self, packs: Sequence[PacksOfDataset], plan: MixturePlan, seed: int, firsts: Ints) -> None:
        self._packs, self.mixture, self._seed, self._firsts = packs, plan, seed, firsts
        self.names, self.capacities = packs[0].names, packs[0].capacities
        self.count = plan.epoch_rows

    @property
    def pieces(self) -> int:
        read = zip(self._packs, self.mixture.counts(), strict=True)
        return round(sum(one.pieces / max(1, one.count) * count for one, count in read))

    def at(self, epoch: int, positions: Ints) -> RowsInPacks:
        present = np.flatnonzero(positions < self.count)
        if self.mixture.lanes is None:
            datasets, numbers = self.mixture.order(self._seed, epoch).units_at(positions[present])
            sizes = np.array([one.count for one in self._packs])[datasets]
            passes, places = np.divmod(numbers, sizes)
        else:
            lanes = self.mixture.order_in_lanes(self._seed, epoch)
            datasets, passes, places = lanes.places_at(positions[present])
        empty = np.flatnonzero(positions >= self.count)
        parts, order = [self._packs[0].at(0, np.full(len(empty), self._packs[0].count))], [empty]
        for dataset, number in sorted({*zip(datasets.tolist(), passes.tolist(), strict=True)}):
            own = (datasets == dataset) & (passes == number)
            found = self._packs[dataset].at(number, places[own])
            parts.append(replace(found, rows=found.rows + self._firsts[dataset]))
            order.append(present[own])
        inverse = np.empty(len(positions), np.int64)
        inverse[np.concatenate(order)] = np.arange(len(positions))
        return RowsInPacks.joined(parts, inverse)

    def plan(self, steps: int) -> PackPlan:
        """What was planned, for the packs of an epoch; a pack has the mean values of its dataset's packs."""
        plans, read = [one.plan(steps) for one in self._packs], self.mixture.counts()
        pieces = [one.pieces / max(1, one.packs) * count for one, count in zip(plans, read, strict=True)]

        def mean(shares: Iterable[Mapping[str, float]], counts: Sequence[float]) -> dict[str, float]:
            found = dict.fromkeys(self.names, 0.0)
            for some, count in zip(shares, counts, strict=True):
                for name, share in some.items():
                    found[name] += share * count / max(1, sum(counts))
            return found

        return PackPlan(
            rows=sum(one.rows for one in plans),
            pieces=self.pieces,
            packs=self.count,
            steps=steps,
            fill=mean((one.fill for one in plans), read),
            unpacked=mean((one.unpacked for one in plans), pieces),
            most=max(one.most for one in plans),
            longer=sum(one.longer for one in plans),
            empty=sum(one.empty for one in plans),
        )


def _plan_of(
    pieces: Sequence[Pieces],
    read: Sequence[int],
    table: PackTable,
    names: tuple[str, ...],
    steps: int,
    packs: int | None = None,
) -> PackPlan:
    """The plan of a table, for the rows of some datasets.

    Args:
        read: the number of pieces of each dataset that an epoch reads.
        packs: the packs of an epoch; by default those of the table.
    """
    packs = table.count if packs is None else packs
    values: Any = sum(
        one.values * (count / max(1, len(one))) for one, count in zip(pieces, read, strict=True)
    )
    capacities, total = pieces[0].capacities, sum(read)

    def shares(sequences: int) -> dict[str, float]:
        found = values / (max(1, sequences) * capacities)
        return dict(zip(names, found.tolist(), strict=True))

    return PackPlan(
        rows=sum(one.number_of_rows for one in pieces),
        pieces=total,
        packs=packs,
        steps=steps,
        fill=shares(packs),
        unpacked=shares(total),
        most=table.most,
        longer=sum(one.longer for one in pieces),
        empty=sum(one.empty for one in pieces),
    )


def _differ(lengths: Ints) -> bool:
    """Whether several features have lengths of their own."""
    return len(lengths) > 1 and bool((lengths != lengths[0]).any())


def aligned(sizes: Ints, align: int) -> Ints:
    """The sizes, rounded up to multiples of `align`."""
    rounded: Ints = -(-sizes // align) * align
    return rounded


def _windows(rows: int, seed: int | None, blocks: Ints | None, *, several: bool) -> tuple[Ints, Ints]:
    """The rows in the order in which packs are planned, and the bounds of the windows that are planned
    together.
    """
    most = _COMBINED_ROWS if several else WINDOW_ROWS
    if seed is None:
        order = np.arange(rows)
    elif blocks is not None:
        chosen = permuted(np.arange(len(blocks)), len(blocks), mixed(seed))
        firsts, sizes = offsets(blocks)[:-1][chosen], blocks[chosen]
        order = np.repeat(firsts - offsets(sizes)[:-1], sizes) + np.arange(rows)
        together = max(1, most // int(blocks.max(initial=1)))
        ends = offsets(sizes)
        return order, np.append(ends[:-1:together], ends[-1])
    elif several:
        order = permuted(np.arange(rows), rows, mixed(seed))
    else:
        return np.arange(rows), np.array([0, rows])
    return order, np.append(np.arange(0, rows, most), rows)


def _classes(costs: Ints, capacities: Ints) -> tuple[Ints, Ints]:
    """The different costs of pieces, the largest first, int64 `[c, k]`, and the class of each piece."""
    if len(costs) == 1:
        found, number = np.unique(costs[0], return_inverse=True)
        return found[::-1, None], len(found) - 1 - number
    combined, number = np.unique(costs, axis=1, return_inverse=True)
    order = np.argsort(-(combined / capacities[:, None]).max(0), kind="stable")
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return combined.T[order], ranks[number.reshape(-1)]


def _patterns(
    classes: Ints, held: Ints, capacities: Ints, most: int | None
) -> Iterator[tuple[dict[int, int], int]]:
    """Best fit decreasing, on counts: how many pieces of each class are in a pack, and the number of such
    packs.
    """
    left = held.tolist()
    find = _find_one(classes[:, 0]) if len(capacities) == 1 else _find_several(classes)
    costs = classes.tolist()
    for head in range(len(left)):
        while left[head]:
            left[head] -= 1
            taken, pieces = {head: 1}, 1
            room = [have - cost for have, cost in zip(capacities.tolist(), costs[head], strict=True)]
            while (most is None or pieces < most) and (kind := find(left, head, room)) is not None:
                left[kind] -= 1
                taken[kind] = taken.get(kind, 0) + 1
                pieces += 1
                room = [have - cost for have, cost in zip(room, costs[kind], strict=True)]
            more = min(left[kind] // many for kind, many in taken.items())
            for kind, many in taken.items():
                left[kind] -= many * more
            yield taken, 1 + more


def _find_one(costs: Ints) -> Callable[[list[int], int, list[int]], int | None]:
    """Finds the largest class, of those that are left, that fits into the room."""
    falling = (-costs).tolist()

    def find(left: list[int], head: int, room: list[int]) -> int | None:
        for kind in range(bisect_left(falling, -room[0], head), len(left)):
            if left[kind]:
                return kind
        return None

    return find


def _find_several(costs: Ints) -> Callable[[list[int], int, list[int]], int | None]:
    """`_find_one` for several features."""
    some, begun = np.arange(len(costs)), 0

    def find(left: list[int], head: int, room: list[int]) -> int | None:
        nonlocal costs, some, begun
        if head >= begun + _USED_UP:  # classes that are used up are not compared again
            kept = np.array(left)[some] > 0
            costs, some, begun = costs[kept], some[kept], head
        for kind in some[(costs <= room).all(1)].tolist():
            if left[kind]:
                return int(kind)
        return None

    return find
