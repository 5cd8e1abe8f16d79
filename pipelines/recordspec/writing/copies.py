"""Gives the copies of a row different hashes. Copies are rows with the same hash of their content.

Copy 0 keeps the hash. The hash of copy k is output k of a SplitMix64 generator seeded with it, so each copy
has its own place in the shuffled order and its own split. Copies have equal bytes, so any numbering of them
yields the same dataset. If rows keep the order of the source, copies are numbered in that order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from recordspec.progress import Progress
from recordspec.schema.schema import Schema
from recordspec.store import key_hashes
from recordspec.store.manifest import LabelCounts
from recordspec.wire.arrays import Ints, Mask
from recordspec.wire.hashes import Words, splitmix64
from recordspec.writing.build_plan import BuildPlan
from recordspec.writing.division import split_of
from recordspec.writing.encoded_rows import EncodedRows
from recordspec.writing.label_counts import ClassCounter, summed_counts
from recordspec.writing.sorter import END, KEY_HASH, NUMBER, START, MemoryRun, Run, RunReader, Sorter, by_name

# The bytes that a search for copies needs per row: its hash, its number, and its rank.
_SEARCH_BYTES = 64
# The bytes of records moved at once.
_MOVED_BYTES = 8 << 20
# The increment of SplitMix64 (Steele et al. 2014).
_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def copy_hashes(hashed: Words, copies: Words) -> Words:
    """The hashes of copies, uint64 `[n, 2]`, from the hashes of rows and the copy numbers, uint64 `[n]`."""
    numbers = copies[:, np.newaxis]
    return np.where(numbers == 0, hashed, splitmix64(hashed + numbers * _GAMMA))


def number_copies(
    plan: BuildPlan, runs: tuple[Run, ...], bar: Progress
) -> tuple[tuple[Run, ...], LabelCounts]:
    """Moves the copies of rows to their own places in the order. Stays within the memory budget of the plan.

    The files of the runs do not change, so that an interrupted build can resume from them.

    Returns:
        Runs of the same rows, in which no two rows of a split have the same hash; and the changes of the
        label counts.
    """
    copies = [_CopyNumbers(plan.folder, run) for run in runs]
    for split in dict.fromkeys(split for run in runs for split in run.counts):
        readers = [RunReader(plan.folder, run, split) for run in runs]
        rows = sum(reader.rows for reader in readers)
        for ends in key_hashes.ranges(-(-rows * _SEARCH_BYTES // plan.budget)):
            for number, places, numbers in _copies_in_range(readers, *ends):
                copies[number].set(places, numbers)
    total = sum(one.count for one in copies)
    if not total:
        return runs, {}
    bar.begin("moving copies", total)
    return _moved(plan, runs, copies, bar)


class _CopyNumbers:
    """The copy number of each row of a run. Stored on disk if the run is on disk, else in memory."""

    def __init__(self, folder: Path, run: Run) -> None:
        self.rows, self.count = sum(run.counts.values()), 0
        self._path = None if isinstance(run, MemoryRun) else folder / f"{run.name}.copies"
        self._numbers: Words | None = None

    def set(self, places: Ints, numbers: Words) -> None:
        """Sets the copy numbers of rows; each number is above 0."""
        self.values[places] = numbers
        self.count += len(places)

    @property
    def values(self) -> Words:
        """The copy numbers, uint64 `[rows]`."""
        if self._path is not None:  # mapped on demand: there may be too many runs to keep all files open
            return np.memmap(self._path, np.uint64, "r+" if self.count else "w+", shape=(self.rows,))
        if self._numbers is None:
            self._numbers = np.zeros(self.rows, np.uint64)
        return self._numbers


def _copies_in_range(
    readers: list[RunReader], low: np.uint64, high: np.uint64
) -> Iterator[tuple[int, Ints, Words]]:
    """Yields the copies with a hash in a range, run by run: the number of the run, the places of the rows in
    the run, and their copy numbers."""
    if not _has_equal(readers, low, high):
        return
    hashes, sizes, runs = [], [], []
    for reader in readers:
        _, hashed, first = _sorted_in_range(reader, low, high)
        hashes.append(hashed[:, first])
        sizes.append(np.diff(np.flatnonzero(first), append=len(first)))
        runs.append(int(first.sum()))
    before = np.split(
        _sizes_before(np.concatenate(hashes, axis=1), np.concatenate(sizes)), np.cumsum(runs)[:-1]
    )
    for number, reader in enumerate(readers):
        rows, _, first = _sorted_in_range(reader, low, high)
        place = np.arange(len(rows))
        numbers = place - np.maximum.accumulate(np.where(first, place, 0))
        numbers += before[number][np.cumsum(first) - 1]
        copied = numbers > 0
        if copied.any():
            yield number, rows[copied] + reader.first, numbers[copied].astype(np.uint64)


def _has_equal(readers: list[RunReader], low: np.uint64, high: np.uint64) -> bool:
    """Whether two rows of a range may have the same hash: whether the first words of two hashes are equal."""
    seen = []
    for reader in readers:
        words = np.asarray(reader.index[KEY_HASH][0])
        words = np.sort(words[(words >= low) & (words <= high)])
        if bool((words[1:] == words[:-1]).any()):
            return True
        seen.append(words)
    words = np.sort(np.concatenate(seen))
    return bool((words[1:] == words[:-1]).any())


def _sorted_in_range(reader: RunReader, low: np.uint64, high: np.uint64) -> tuple[Ints, Words, Mask]:
    """The rows of a reader with a hash in a range, sorted by hash; rows of equal hash keep their order.

    Returns:
        The places of the rows, their hashes, uint64 `[2, n]`, and whether each row is the first of its hash.
    """
    words = reader.index[KEY_HASH][0]
    rows = np.flatnonzero((words >= low) & (words <= high))
    hashed = np.asarray(reader.index[KEY_HASH][:, rows])
    order = np.lexsort((hashed[1], hashed[0]))
    return rows[order], hashed[:, order], _is_first(hashed[:, order])


def _is_first(hashed: Words) -> Mask:
    """Whether each hash of a sorted array, uint64 `[2, n]`, differs from the hash before it."""
    first = np.ones(hashed.shape[1], np.bool_)
    first[1:] = (hashed[:, 1:] != hashed[:, :-1]).any(axis=0)
    return first


def _sizes_before(hashed: Words, sizes: Ints) -> Ints:
    """The number of rows in earlier groups with the same hash, for each group of rows.

    Args:
        hashed: the hash of each group, uint64 `[2, n]`.
        sizes: the number of rows of each group, int64 `[n]`.
    """
    order = np.lexsort((hashed[1], hashed[0]))  # stable: groups with equal hashes keep their order
    total = np.cumsum(sizes[order]) - sizes[order]
    start = np.maximum.accumulate(np.where(_is_first(hashed[:, order]), total, 0))
    before = np.empty_like(total)
    before[order] = total - start
    return before


def _moved(
    plan: BuildPlan, runs: tuple[Run, ...], copies: list[_CopyNumbers], bar: Progress
) -> tuple[tuple[Run, ...], LabelCounts]:
    """Returns the runs without copies, then the runs of the copies; and the changes of the label counts. A
    run in memory is sorted again instead, with its copies."""
    names = list(plan.options.weights or dict.fromkeys(split for run in runs for split in run.counts))
    # half of the memory may hold a run
    sink = Sorter(replace(plan, budget=plan.budget // 2), "copies")
    counts = ClassChanges(plan.schema, names)
    kept: list[Run] = []
    for run, numbers in zip(runs, copies, strict=True):
        if not numbers.count:
            kept.append(run)
            continue
        moves = _moves(plan, run, numbers, counts, bar)
        if isinstance(run, MemoryRun):
            hashes, splits = np.array(run.index(plan.folder)[KEY_HASH]).T, _splits_of(run, names)
            for places, _, hashed, new in moves:
                hashes[places], splits[places] = hashed, new
            by_split, again = run.sorted_again(hashes, splits, plan.seed)
            kept.append(replace(again, counts=by_name(by_split, names)))
            continue
        for places, rows, hashed, new in moves:
            assert rows is not None
            sink.add(rows, np.array(run.index(plan.folder)[NUMBER][places]), hashed, new)
        kept.append(run.keep(plan.folder, np.asarray(numbers.values == 0)))
    return (*(run for run in kept if run.counts), *sink.finish(names)), counts.by_split()


def _moves(
    plan: BuildPlan, run: Run, numbers: _CopyNumbers, counts: ClassChanges, bar: Progress
) -> Iterator[tuple[Ints, EncodedRows | None, Words, Ints]]:
    """Yields the copies in a run: their places, their rows, their hashes, and the indices of their splits.
    Rows that are not needed are None: those of a run in memory stay there."""
    options, index, values = plan.options, run.index(plan.folder), numbers.values
    places, splits = np.flatnonzero(values), _splits_of(run, counts.names)
    spreads = options.weights if options.spreads_copies else None
    needed = not isinstance(run, MemoryRun) or (spreads is not None and counts.has_classes)
    step = max(1, _MOVED_BYTES * numbers.rows // (int((index[END] - index[START]).sum()) + 1))
    for start in range(0, len(places), step):
        some = places[start : start + step]
        rows = run.take(plan.folder, some) if needed else None
        hashed = copy_hashes(np.array(index[KEY_HASH][:, some]).T, np.array(values[some]))
        new = splits[some]
        if spreads is not None:
            new = split_of(hashed, spreads)
            if rows is not None:
                counts.add(rows, splits[some], new)
        yield some, rows, hashed, new
        bar.advance(len(some))


def _splits_of(run: Run, names: list[str]) -> Ints:
    """The index in `names` of the split of each row of a run, int64 `[rows]`."""
    return np.repeat([names.index(split) for split in run.counts], list(run.counts.values()))


class ClassChanges:
    """Counts the classes of rows that move from one split to another.

    Attributes:
        names: the names of the splits.
        has_classes: whether there are classes to count.
    """

    def __init__(self, schema: Schema | None, names: list[str]) -> None:
        self._schema, self.names = schema, names
        self.has_classes = schema is not None and bool(schema.classes)
        self._old, self._new = ClassCounter(schema), ClassCounter(schema)

    def add(self, rows: EncodedRows, old: Ints, new: Ints) -> None:
        """Counts rows; `old` and `new` are the indices of their splits, int64 `[n]`."""
        if self._schema is not None and self._schema.classes:
            sections = rows.as_columns(self._schema).sections
            self._old.add(sections, old)
            self._new.add(sections, new)

    def by_split(self) -> LabelCounts:
        """The changes of the counts of each split; negative for rows that leave the split."""
        lost = {
            split: {label: tuple(-count for count in rows) for label, rows in by_label.items()}
            for split, by_label in self._old.by_split(self.names).items()
        }
        return summed_counts([lost, self._new.by_split(self.names)])
