"""The rows of a split in their final order, merged from runs, some at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from recordspec.store import key_hashes
from recordspec.wire.strings import Ints, Strings
from recordspec.writing.encoding import Words
from recordspec.writing.runs import END, KEY, NUMBER, ORDER, Run, RunReader

# Numbers of rows that are no part's.
KNOWN = 1 << 63

# Rows of a run that are looked at to cut a piece that is too large.
_SAMPLED = 64

# What the search for twins needs of memory for a row: hash and number, the order, and a sorted copy.
_TWINS_BYTES = 48


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What the order of rows depends on.

    Attributes:
        shuffled: whether it follows from the keys; else it is that of the source.
        ties: whether rows of one key may differ.
    """

    shuffled: bool
    ties: bool


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Consecutive rows of a split: of every run the rows between places, and what to leave out.

    `places` is int64 `[runs, pieces + 1]`: rows `places[r, p]` to `places[r, p + 1]` of run r belong to
    piece p, and the pieces follow each other. The first `skip` rows are not of the cut, nor is what is
    behind `rows` more.
    """

    split: str
    places: Ints
    skip: int
    rows: int


class Order:
    """The order of a split's rows. Pieces of it, of about `piece` bytes, can be read on their own."""

    def __init__(self, folder: Path, runs: tuple[Run, ...], split: str, rules: Rules, piece: int) -> None:
        self._split = split
        readers = [RunReader(folder, run, split) for run in runs]
        self.rows = sum(reader.rows for reader in readers)
        self.bytes = sum(reader.bytes for reader in readers)
        if rules.shuffled:
            bounds = _even_bounds(max(1, -(-self.bytes // piece)))
        else:
            bounds = _bounds_by_size(readers, piece)
        self._places = np.zeros((len(readers), len(bounds) + 2), np.int64)
        for places, reader in zip(self._places, readers, strict=True):
            # one run at a time: its index is an open file, of which there may not be thousands
            places[1:-1] = np.searchsorted(reader.index[ORDER], bounds)
            places[-1] = reader.rows
        if rules.shuffled and not rules.ties:
            self._places = _refined(self._places, readers, max(1, 4 * piece * self.rows // (self.bytes + 1)))
        self._ends = self._places.sum(axis=0)  # rows of all runs before each bound

    def cut(self, start: int, stop: int) -> Cut:
        """Rows `start` to `stop`."""
        first = int(np.searchsorted(self._ends, start, side="right")) - 1
        last = int(np.searchsorted(self._ends, stop))
        first = min(first, last)
        return Cut(
            split=self._split,
            places=self._places[:, first : last + 1],
            skip=start - int(self._ends[first]),
            rows=stop - start,
        )


def _even_bounds(pieces: int) -> Words:
    """Bounds between pieces: hashes are spread evenly."""
    return np.array([(piece << 64) // pieces for piece in range(1, pieces)], np.uint64)


def _refined(places: Ints, readers: list[RunReader], most: int) -> Ints:
    """The same places, with more of them where a piece has over `most` rows: many of them are equal."""
    columns = [places[:, 0]]
    for piece, count in enumerate(np.diff(places.sum(axis=0)).tolist()):
        if count > most:
            columns += _places_within(places[:, piece : piece + 2], readers, most)
        columns.append(places[:, piece + 1])
    return np.stack(columns, axis=1)


def _places_within(span: Ints, readers: list[RunReader], most: int) -> Iterator[Ints]:
    """Places that cut a piece: around rows of one hash, which are the same, and among these."""
    orders = [reader.index[ORDER][start:stop] for reader, (start, stop) in zip(readers, span, strict=True)]
    some = [order[np.arange(_SAMPLED) * len(order) // _SAMPLED] for order in orders if len(order)]
    values = np.unique(np.concatenate(some))
    low = np.stack([np.searchsorted(order, values) for order in orders]) + span[:, :1]
    high = np.stack([np.searchsorted(order, values, side="right") for order in orders]) + span[:, :1]
    for value in range(len(values)):
        place = low[:, value].copy()
        yield place.copy()
        for run, stop in enumerate(high[:, value].tolist()):
            while place[run] < stop:
                place[run] = min(int(place[run]) + most, stop)
                yield place.copy()


def _bounds_by_size(readers: list[RunReader], piece: int) -> Words:
    """In the order of the source runs follow each other: each is cut where it has so many bytes."""
    bounds: list[npt.NDArray[np.uint64]] = [np.zeros(0, np.uint64)]
    for reader in readers:
        if reader.rows:
            pieces = max(1, -(-reader.bytes // piece))
            places = np.arange(pieces) * reader.rows // pieces
            bounds.append(np.asarray(reader.index[ORDER][places]))
    return np.concatenate(bounds)


def read(folder: Path, runs: tuple[Run, ...], cut: Cut, rules: Rules) -> Iterator[tuple[Strings, Words]]:
    """The rows of a cut, in their order: records, and their index."""
    readers = [RunReader(folder, run, cut.split) for run in runs]
    skip, left = cut.skip, cut.rows
    for piece in range(cut.places.shape[1] - 1):
        if left <= 0:
            return
        records, index = _merged(readers, cut.places[:, piece : piece + 2], rules)
        stop = min(len(records), skip + left)
        if skip < stop:
            yield records.part(skip, stop), index[:, skip:stop]
            left -= stop - skip
        skip = max(0, skip - len(records))


def _merged(readers: list[RunReader], places: Ints, rules: Rules) -> tuple[Strings, Words]:
    """One piece, from all the runs that have some of it."""
    spans = zip(readers, places.tolist(), strict=True)
    parts = [reader.read(start, stop) for reader, (start, stop) in spans if start < stop]
    if not parts:
        return Strings.of([]), np.zeros((END + 1, 0), np.uint64)
    if len(parts) == 1 and not rules.ties:
        return parts[0]  # a run is sorted
    index = np.concatenate([index for _, index in parts], axis=1)
    records = Strings.joined([records for records, _ in parts])
    if not rules.shuffled:
        return records, index
    order = _sorted(index)
    if rules.ties:
        order = _settled(order, index[KEY], records)
    return records.take(order), index[:, order]


def _sorted(index: Words) -> Ints:
    """The order of the rows. Other keys than the first are sorted by only where that is not enough."""
    order = np.argsort(index[ORDER])
    ranked = index[ORDER][order]
    if bool((ranked[1:] == ranked[:-1]).any()):
        return np.lexsort((index[KEY][1], index[KEY][0], index[ORDER]))
    return order


def _settled(order: Ints, keys: Words, records: Strings) -> Ints:
    """Rows of one key are put in the order of their bytes, so that it does not matter how they came."""
    ranked = keys[:, order]
    equal = np.flatnonzero((ranked[:, 1:] == ranked[:, :-1]).all(axis=0))
    for group in np.split(equal, np.flatnonzero(np.diff(equal) > 1) + 1) if len(equal) else ():
        span = slice(int(group[0]), int(group[-1]) + 2)
        order[span] = sorted(order[span].tolist(), key=records.__getitem__)
    return order


def twins(
    folder: Path, runs: tuple[Run, ...], budget: int, known: Path | None = None
) -> tuple[int, int] | None:
    """The numbers of two rows with one key, in whatever splits, the earlier first; None if there are none.

    Where `known` has the keys of other rows, the second number may be `KNOWN` and more: one of these.
    Goes over the hashes as many times as they are larger than `budget` bytes, each time for one range.
    """
    total = sum(run.rows for run in runs) + (0 if known is None else key_hashes.rows(known))
    passes = max(1, -(-total * _TWINS_BYTES // budget))
    bounds = [0, *_even_bounds(passes).tolist(), 1 << 64]
    for low, high in pairwise(bounds):
        ends = np.uint64(low), np.uint64(high - 1)
        found = [_in_range(folder, run, *ends) for run in runs]
        if known is not None:
            hashed, rows = key_hashes.in_range(known, *ends)
            found.append(np.vstack([hashed.T, rows + np.uint64(KNOWN)]))
        if pair := _first_equal(np.concatenate([np.zeros((3, 0), np.uint64), *found], axis=1)):
            return pair
    return None


def _in_range(folder: Path, run: Run, low: np.uint64, high: np.uint64) -> Words:
    """The hashes and the numbers of the rows whose hash begins in a range, uint64 `[3, n]`."""
    index = np.memmap(folder / run.index_name, "<u8", "r", shape=(END + 1, run.rows))
    words = index[KEY][0]
    return np.array(index[KEY.start : NUMBER + 1, (words >= low) & (words <= high)])


def _first_equal(hashed: Words) -> tuple[int, int] | None:
    order = np.argsort(hashed[0])
    ranked = hashed[0][order]
    near = np.flatnonzero(ranked[1:] == ranked[:-1])
    for place in near.tolist():
        one, other = hashed[:, order[place]], hashed[:, order[place + 1]]
        first, second = sorted((int(one[2]), int(other[2])))
        if one[1] == other[1] and first < KNOWN:
            return first, second
    return None
