"""An external merge sort of encoded rows, into the order of their dataset.

Rows are gathered into runs, each sorted by split and then by the order of the build. A run has the framed
records, and an index of its rows: uint64 `[6, rows]`. The lines of the index are `ORDER`, the two words of
`KEY_HASH`, the `NUMBER` of the row, and the `END` and the `START` of its record in the run. If records are
large, they stay in the order in which they were gathered, and only the index is sorted.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import IO

import numpy as np

from recordspec.locations import Location, open_file, sync
from recordspec.store import key_hashes
from recordspec.wire.arrays import ArrowArray, Bytes, Ints, Mask, binary_array, buffer_of, offsets
from recordspec.wire.hashes import Words
from recordspec.writing.build_plan import BuildPlan
from recordspec.writing.division import order_of
from recordspec.writing.encoded_rows import (
    ColumnRows,
    EncodedRows,
    GatheredRecords,
    RecordRows,
    joined_columns,
    joined_rows,
)

ORDER, KEY_HASH, NUMBER, END, START = 0, slice(1, 3), 3, 4, 5
_LINES = 6
_WORD = np.dtype("<u8")
# The bytes of the index per row while a run is sorted, of which there are three copies: as added, joined, and
# sorted; and of the address and the size of its record.
_INDEX_BYTES = 3 * _LINES * 8 + 16

# The bytes of records copied at once when a run is written: enough to be fast, but little memory.
_WRITTEN_AT_ONCE = 8 << 20

# The bytes of a record from which one read per record is as fast as one read of many adjacent records. To
# sort the records of a run would copy them once more.
_LARGE = 32 << 10

# Rows that a dataset had before `append` are numbered from here on.
EXISTING = 1 << 63

# The bytes that the search for duplicate keys needs per row: hash and number, the order, and a sorted copy.
_DUPLICATES_BYTES = 48


@dataclass(frozen=True, kw_only=True)
class SortedRun:
    """A run on disk.

    Attributes:
        name: the name of the file of records.
        counts: the number of rows of each split, in the order of the run.
        bytes: the size of the file of records.
        index_suffix: the suffix of the name of the index.
    """

    name: str
    counts: dict[str, int]
    bytes: int
    index_suffix: str = ".index"

    @property
    def index_name(self) -> str:
        return f"{self.name}{self.index_suffix}"

    @property
    def rows(self) -> int:
        return sum(self.counts.values())

    def is_whole(self, folder: Path) -> bool:
        """Whether the files of the run exist and have the right sizes."""
        sizes = {self.name: self.bytes, self.index_name: self.rows * _LINES * _WORD.itemsize}
        return all(
            (folder / name).exists() and (folder / name).stat().st_size == size
            for name, size in sizes.items()
        )

    def index(self, folder: Path) -> Words:
        """The index of all rows, uint64 `[6, rows]`, on disk."""
        # a string, not a path: NumPy resolves each folder of a path
        return np.memmap(str(folder / self.index_name), _WORD, "r", shape=(_LINES, self.rows))

    def read(self, folder: Path, start: int, stop: int) -> RecordRows:
        """Rows `start` to `stop`."""
        return self._read(folder, self.index(folder)[END:, start:stop])

    def take(self, folder: Path, rows: Ints) -> RecordRows:
        """The rows at these indices."""
        return self._read(folder, self.index(folder)[END:, rows])

    def put(self, folder: Path, rows: Ints, data: Bytes, places: Ints) -> None:
        """Reads the records of rows, int64 `[n]`, into `data` at the offsets `places`, int64 `[n]`."""
        self._put(folder, np.array(self.index(folder)[END:, rows], np.int64), data, places)

    def _read(self, folder: Path, bounds: Words) -> RecordRows:
        """The rows with these bounds: the ends and starts of their records, uint64 `[2, n]`."""
        signed = np.array(bounds, np.int64)
        places = offsets(signed[0] - signed[1])
        data = np.empty(int(places[-1]), np.uint8)
        self._put(folder, signed, data, places[:-1])
        return RecordRows(binary_array(data, places))

    def _put(self, folder: Path, bounds: Ints, data: Bytes, places: Ints) -> None:
        ends, starts = bounds
        # one read for records that are adjacent both in the file and in the data
        follows = (starts[1:] == ends[:-1]) & (np.diff(places) == (ends - starts)[:-1])
        firsts = [0, *(np.flatnonzero(~follows) + 1).tolist()] if len(starts) else []
        with open_file(folder / self.name) as file:
            for first, last in zip(firsts, [*firsts[1:], len(starts)], strict=False):
                file.seek(int(starts[first]))
                size = int(ends[last - 1] - starts[first])
                part = data[places[first] : places[first] + size].data
                if file.readinto(part) != size:
                    raise OSError(errno.EIO, os.strerror(errno.EIO), file.name)

    def keep(self, folder: Path, kept: Mask) -> SortedRun:
        """The run with only the rows where `kept`, bool `[rows]`, is True. Its records stay on disk."""
        run = replace(self, counts=_kept_counts(self.counts, kept), index_suffix=".kept")
        with (folder / run.index_name).open("wb") as file:
            for line in self.index(folder):
                file.write(np.ascontiguousarray(line[kept]).data)
        return run


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryRun:
    """A run in memory.

    Attributes:
        counts: the number of rows of each split, in the order of the run.
        rows: the rows in their original order.
        order: the order of the run, as indices of `rows`; None if `rows` are in order.
        sorted_index: the index, in the order of the run.
    """

    counts: dict[str, int]
    rows: GatheredRecords | ColumnRows
    order: Ints | None
    sorted_index: Words

    def index(self, folder: Path) -> Words:
        return self.sorted_index

    def keep(self, folder: Path, kept: Mask) -> MemoryRun:
        """The run with only the rows where `kept`, bool `[rows]`, is True."""
        order = np.flatnonzero(kept) if self.order is None else self.order[kept]
        counts, index = _kept_counts(self.counts, kept), self.sorted_index[:, kept]
        return replace(self, counts=counts, order=order, sorted_index=index)

    def read(self, folder: Path, start: int, stop: int) -> EncodedRows:
        # gathered on demand: a sorted copy of all rows would take as much memory again
        return self.rows.part(start, stop) if self.order is None else self.rows.take(self.order[start:stop])

    def take(self, folder: Path, rows: Ints) -> EncodedRows:
        return self.rows.take(rows if self.order is None else self.order[rows])

    def sorted_again(self, hashed: Words, splits: Ints, seed: int | None) -> tuple[Ints, MemoryRun]:
        """The number of rows of each split, int64 `[splits]`, and the run with other hashes, uint64
        `[rows, 2]`, in other splits, int64 `[rows]`. The records are not copied."""
        index = self.sorted_index
        index = index_of(index[END] - index[START], index[NUMBER], hashed, seed)
        return _sorted(self.rows, index, splits, seed, self.order)

    def point_to_records(self) -> None:
        """Sets `START` and `END` in the index to the offsets of the records in the unsorted `rows`."""
        bounds = offsets(self.rows.sizes)
        order = slice(None) if self.order is None else self.order
        self.sorted_index[START], self.sorted_index[END] = bounds[:-1][order], bounds[1:][order]

    def put(self, folder: Path, rows: Ints, data: Bytes, places: Ints) -> None:
        """Copies the records of rows, int64 `[n]`, into `data` at the offsets `places`, int64 `[n]`."""
        assert isinstance(self.rows, GatheredRecords)
        self.rows.put(rows if self.order is None else self.order[rows], data, places)


Run = SortedRun | MemoryRun


def _kept_counts(counts: Mapping[str, int], kept: Mask) -> dict[str, int]:
    ends = list(accumulate(counts.values(), initial=0))
    sums = {
        split: int(kept[start:stop].sum())
        for split, (start, stop) in zip(counts, pairwise(ends), strict=True)
    }
    return {split: count for split, count in sums.items() if count}


class Sorter:
    """Gathers encoded rows in memory, sorts them, and writes them as a run when the memory is full.

    Args:
        stem: the prefix of the names of the files of runs, in the plan's folder.
        in_memory: whether the last run, often the only one, stays in memory. If so, rows that become blocks
            are gathered as columns.
    """

    def __init__(self, plan: BuildPlan, stem: str, *, in_memory: bool = False) -> None:
        self._plan, self._stem, self._in_memory = plan, stem, in_memory
        self._as_columns = in_memory and plan.options.block is not None
        # columns are in memory twice while they are concatenated
        capacity = plan.budget // 2 if self._as_columns else plan.kept if in_memory else plan.run
        self._gathered = GatheredRows(capacity, plan.seed)
        self._spilled: list[tuple[str, Ints, int]] = []

    def add(self, rows: EncodedRows, numbers: Words, hashed: Words | None, splits: Ints | None) -> None:
        rows = rows.as_columns(self._plan.checked_schema) if self._as_columns else RecordRows(rows.records)
        if not self._gathered.has_room_for(rows):
            self._spill()
        self._gathered.add(rows, numbers, hashed, splits)

    def finish(self, splits: Sequence[str]) -> tuple[Run, ...]:
        """The runs of all rows; `splits` are the names of the splits."""
        last: tuple[Run, ...] = ()
        fits = not self._spilled or self._gathered.held <= self._plan.budget // 2
        if self._in_memory and self._gathered.rows and fits:
            counts, run = self._gathered.sorted()
            last = (replace(run, counts=by_name(counts, splits)),)
        else:
            self._spill()
        spilled = [
            SortedRun(name=name, counts=by_name(counts, splits), bytes=size)
            for name, counts, size in self._spilled
        ]
        return (*spilled, *last)

    def _spill(self) -> None:
        rows, size = self._gathered.rows, self._gathered.bytes
        if not rows:
            return
        counts, run = self._gathered.sorted()
        name = f"{self._stem}-{len(self._spilled):05d}.run"
        with (self._plan.folder / name).open("xb") as file:
            ends = run.sorted_index[END]
            marks = np.arange(_WRITTEN_AT_ONCE, size, _WRITTEN_AT_ONCE, dtype=np.uint64)
            bounds = np.searchsorted(ends, marks)
            if size >= _LARGE * rows and isinstance(run.rows, GatheredRecords):
                for batch in run.rows.batches:
                    file.write(buffer_of(batch).data)
                run.point_to_records()
            else:
                for start, stop in pairwise([0, *bounds.tolist(), rows]):
                    file.write(buffer_of(run.read(self._plan.folder, start, stop).records).data)
            self._close(file)
        with (self._plan.folder / f"{name}.index").open("xb") as file:
            file.write(np.ascontiguousarray(run.sorted_index).data)
            self._close(file)
        self._spilled.append((name, counts, size))
        self._gathered.clear()

    def _close(self, file: IO[bytes]) -> None:
        if self._plan.durable:
            sync(file)


class GatheredRows:
    """Rows in memory to be sorted, with their index.

    Args:
        capacity: the bytes of memory that the rows may take.
        seed: the seed of the shuffle; None keeps the order of the rows.

    Attributes:
        rows: the number of rows.
        bytes: the bytes of the records.
        held: the bytes of memory of the rows.
    """

    def __init__(self, capacity: int, seed: int | None) -> None:
        self._capacity, self._seed = capacity, seed
        self.clear()

    def clear(self) -> None:
        """Removes all rows."""
        self._index: list[Words] = []
        self._splits: list[Ints] = []
        self._columns: list[ColumnRows] = []
        self._records: list[ArrowArray] = []
        self.bytes = self.rows = self.held = 0

    def has_room_for(self, rows: EncodedRows) -> bool:
        return self.held + rows.held + self.rows * _INDEX_BYTES <= self._capacity

    def add(self, rows: EncodedRows, numbers: Words, hashed: Words | None, splits: Ints | None) -> None:
        """Adds rows, all as columns or all as records. The arguments are those of `Sink.add`."""
        sizes, memory = rows.sizes, rows.held
        if isinstance(rows, ColumnRows):
            self._columns.append(rows.without_records())
        else:
            self._records.append(rows.records)
        self._index.append(index_of(sizes, numbers, hashed, self._seed))
        self._splits.append(np.zeros(len(rows), np.int64) if splits is None else splits)
        self.held += memory
        self.bytes += int(sizes.sum())
        self.rows += len(rows)

    def sorted(self) -> tuple[Ints, MemoryRun]:
        """The number of rows of each split, int64 `[splits]`, and the sorted rows."""
        index, splits = np.concatenate(self._index, axis=1), np.concatenate(self._splits)
        rows = joined_columns(self._columns) if self._columns else GatheredRecords(self._records)
        self._columns, self._records = [], []
        return _sorted(rows, index, splits, self._seed)


def _sorted(
    rows: GatheredRecords | ColumnRows,
    index: Words,
    splits: Ints,
    seed: int | None,
    before: Ints | None = None,
) -> tuple[Ints, MemoryRun]:
    """The number of rows of each split, int64 `[splits]`, and the sorted rows.

    Args:
        index: as `index_of` returns it.
        before: the place in `rows` of each row of the index; None if they are equal.
    """
    order = _order(index, splits, seed)
    index = index if order is None else index[:, order]
    ends = np.cumsum(index[END])
    index[START] = ends - index[END]
    index[END] = ends
    if before is not None:
        order = before if order is None else before[order]
    return np.bincount(splits), MemoryRun(counts={}, rows=rows, order=order, sorted_index=index)


def _order(index: Words, splits: Ints, seed: int | None) -> Ints | None:
    """The permutation that sorts rows; None if they are in order."""
    several, keys = splits.any(), index[ORDER]
    if seed is None and not several and bool((keys[1:] > keys[:-1]).all()):
        return None
    order = _ranks(index)
    if not several:
        return order
    few = splits[order].astype(np.min_scalar_type(splits.max()))  # NumPy sorts numbers of 2 bytes by radix
    return order[np.argsort(few, kind="stable")]


def index_of(sizes: Ints, numbers: Words, hashed: Words | None, seed: int | None) -> Words:
    """The index of rows in the given order, uint64 `[6, rows]`, with the size of each record as its `END`.

    The lines before `END` are the sort keys of the rows, in this order of precedence.
    """
    index = np.zeros((_LINES, len(sizes)), _WORD)
    if hashed is not None:
        index[KEY_HASH] = hashed.T
    index[ORDER] = numbers if seed is None or hashed is None else order_of(hashed, seed)
    index[NUMBER] = numbers
    index[END] = sizes
    return index


def by_name(counts: Ints, splits: Sequence[str]) -> dict[str, int]:
    return {splits[index]: int(count) for index, count in enumerate(counts) if count}


class RunReader:
    """Reads the rows of one split in a run, in order.

    Attributes:
        first: the place of the first row of the split in the run.
        rows: the number of rows of the split.
    """

    def __init__(self, folder: Path, run: Run, split: str) -> None:
        self._folder, self._run = folder, run
        starts = dict(zip(run.counts, accumulate(run.counts.values(), initial=0), strict=False))
        self.first, self.rows = starts.get(split, 0), run.counts.get(split, 0)

    @property
    def index(self) -> Words:
        """The index of the split's rows, uint64 `[6, rows]`; it may be on disk."""
        if not self.rows:
            return np.zeros((_LINES, 0), _WORD)
        return self._run.index(self._folder)[:, self.first : self.first + self.rows]

    @cached_property
    def bytes(self) -> int:
        """The bytes of the split's records."""
        index = self.index
        return int((index[END] - index[START]).sum())

    def read(self, start: int, stop: int) -> EncodedRows:
        """Rows `start` to `stop` of the split."""
        return self._run.read(self._folder, self.first + start, self.first + stop)

    @property
    def has_columns(self) -> bool:
        """Whether the rows are in memory as columns."""
        return isinstance(self._run, MemoryRun) and isinstance(self._run.rows, ColumnRows)

    def put(self, rows: Ints, data: Bytes, places: Ints) -> None:
        """Copies the records of rows of the split, int64 `[n]`, into `data` at the offsets `places`."""
        self._run.put(self._folder, self.first + rows, data, places)


@dataclass(frozen=True, kw_only=True)
class RowRange:
    """Consecutive rows of a split, stored in several runs.

    `places` is int64 `[runs, chunks + 1]`: rows `places[r, c]` to `places[r, c + 1]` of run r belong to
    chunk c. Chunks are consecutive. The range begins after the first `skip` rows of the first chunk, and has
    `rows` rows.
    """

    split: str
    places: Ints
    skip: int
    rows: int


class SortedSplit:
    """All rows of a split, in order, divided into chunks of about `plan.chunk` bytes."""

    def __init__(self, plan: BuildPlan, runs: tuple[Run, ...], split: str) -> None:
        self._split = split
        readers = [RunReader(plan.folder, run, split) for run in runs]
        self.rows = sum(reader.rows for reader in readers)
        self.bytes = sum(reader.bytes for reader in readers)
        if plan.seed is None:
            bounds = _bounds_by_size(readers, plan.chunk)
        else:
            chunks = key_hashes.ranges(-(-self.bytes // plan.chunk))
            bounds = np.array([low for low, _ in chunks][1:], np.uint64)
        self._places = np.zeros((len(readers), len(bounds) + 2), np.int64)
        for places, reader in zip(self._places, readers, strict=True):
            # one run at a time: an index may be an open file, and thousands must not be open together
            places[1:-1] = np.searchsorted(reader.index[ORDER], bounds)
            places[-1] = reader.rows
        self._ends = self._places.sum(axis=0)  # the number of rows of all runs before each bound

    def range(self, start: int, stop: int) -> RowRange:
        """Rows `start` to `stop`."""
        first = int(np.searchsorted(self._ends, start, side="right")) - 1
        last = int(np.searchsorted(self._ends, stop))
        first = min(first, last)
        return RowRange(
            split=self._split,
            places=self._places[:, first : last + 1],
            skip=start - int(self._ends[first]),
            rows=stop - start,
        )


def _bounds_by_size(readers: list[RunReader], chunk: int) -> Words:
    """The bounds of chunks if rows keep the order of the source. Most runs are then consecutive, so that many
    small runs form one chunk."""
    starts: list[Words] = [np.zeros(0, np.uint64)]
    sizes: list[Ints] = [np.zeros(0, np.int64)]
    for reader in readers:
        if reader.rows:
            pieces = max(1, -(-reader.bytes // chunk))
            starts.append(np.asarray(reader.index[ORDER][np.arange(pieces) * reader.rows // pieces]))
            sizes.append(np.full(pieces, reader.bytes // pieces))
    first, size = np.concatenate(starts), np.concatenate(sizes)
    order = np.argsort(first)
    bounds, held = [], chunk
    for start, more in zip(first[order], size[order].tolist(), strict=True):
        if held + more > chunk:
            bounds.append(start)
            held = 0
        held += more
    return np.array(bounds, np.uint64)


def read_rows(folder: Path, runs: tuple[Run, ...], wanted: RowRange) -> Iterator[tuple[EncodedRows, Words]]:
    """Yields the rows of a range, in order, with their index."""
    readers = [RunReader(folder, run, wanted.split) for run in runs]
    skip, left = wanted.skip, wanted.rows
    for chunk in range(wanted.places.shape[1] - 1):
        places = wanted.places[:, chunk : chunk + 2]
        count = int((places[:, 1] - places[:, 0]).sum())
        stop = min(count, skip + left)
        if skip < stop:
            yield merge_chunk(readers, places, skip, stop)
            left -= stop - skip
        skip = max(0, skip - count)


def merge_chunk(readers: list[RunReader], places: Ints, skip: int, stop: int) -> tuple[EncodedRows, Words]:
    """Rows `skip` to `stop` of one chunk, merged from all runs with rows in it; and their index."""
    bounds = zip(readers, places.tolist(), strict=True)
    some = [(reader, start, end) for reader, (start, end) in bounds if start < end]
    if len(some) == 1:  # a run is sorted
        reader, start, _ = some[0]
        start, stop = start + skip, start + stop
        return reader.read(start, stop), np.array(reader.index[:, start:stop])
    # copies: an index may be an open file, and thousands must not be open together
    index = np.concatenate([np.array(reader.index[:, start:end]) for reader, start, end in some], axis=1)
    ranks = _ranks(index)[skip:stop]
    if len(ranks) < index.shape[1]:
        kept = np.sort(ranks)
        some = _narrowed(some, kept)
        index, ranks = index[:, kept], np.searchsorted(kept, ranks)
    places = offsets((index[END] - index[START])[ranks].astype(np.int64))
    if any(reader.has_columns for reader, _, _ in some):
        rows = joined_rows([reader.read(start, end) for reader, start, end in some])
        return rows.take(ranks), index[:, ranks]
    if places[-1] < _LARGE * len(ranks):
        read = GatheredRecords([reader.read(start, end).records for reader, start, end in some])
        return read.take(ranks), index[:, ranks]
    data, before = np.empty(int(places[-1]), np.uint8), 0
    for reader, start, end in some:
        those = np.flatnonzero((ranks >= before) & (ranks < before + end - start))
        reader.put(start + ranks[those] - before, data, places[those])
        before += end - start
    return RecordRows(binary_array(data, places)), index[:, ranks]


def _narrowed(ranges: list[tuple[RunReader, int, int]], kept: Ints) -> list[tuple[RunReader, int, int]]:
    """The ranges of the kept rows of runs, which are consecutive in each run. The other rows of a chunk are
    those of other shards, whose tasks read them.

    Args:
        ranges: runs with the first and the last row of their ranges.
        kept: the places of the kept rows among all rows of the ranges, in order.
    """
    firsts = offsets(np.array([end - start for _, start, end in ranges]))
    bounds = pairwise(np.searchsorted(kept, firsts).tolist())
    return [
        (reader, start + int(kept[low]) - first, start + int(kept[high - 1]) + 1 - first)
        for (reader, start, _), first, (low, high) in zip(ranges, firsts.tolist(), bounds, strict=False)
        if low < high
    ]


def _ranks(index: Words) -> Ints:
    """The permutation that sorts the rows by `ORDER`, and rows of equal `ORDER` by `KEY_HASH`."""
    order = np.argsort(index[ORDER])
    ranked = index[ORDER][order]
    if bool((ranked[1:] == ranked[:-1]).any()):
        return np.lexsort((index[KEY_HASH][1], index[KEY_HASH][0], index[ORDER]))
    return order


def find_duplicate_keys(
    folder: Path, runs: tuple[Run, ...], budget: int, known: Location | None = None
) -> tuple[int, int] | None:
    """The numbers of two rows with the same key, in any splits, the earlier first; None if there are none.

    `known` is the file of the keys of an existing dataset; the numbers of its rows begin at `EXISTING`.
    If the keys need more than `budget` bytes, there are several passes, each for one range of hashes.
    """
    total = sum(sum(run.counts.values()) for run in runs) + (0 if known is None else key_hashes.rows(known))
    for ends in key_hashes.ranges(-(-total * _DUPLICATES_BYTES // budget)):
        if pair := _first_equal(_hashed_in_range(folder, runs, known, *ends)):
            return pair
    return None


def _hashed_in_range(
    folder: Path, runs: tuple[Run, ...], known: Location | None, low: np.uint64, high: np.uint64
) -> Words:
    """The hashes and the numbers of all rows with a hash in a range, uint64 `[3, n]`. The arrays of single
    runs are freed before the result is sorted."""
    indices = [np.zeros((3, 0), np.uint64), *(_in_range(folder, run, low, high) for run in runs)]
    if known is not None:
        indices.append(_known_in_range(known, low, high))
    return np.concatenate(indices, axis=1)


def _known_in_range(known: Location, low: np.uint64, high: np.uint64) -> Words:
    """The hashes and the numbers of the rows in a file of keys with a hash in a range, uint64 `[3, n]`."""
    hashed, rows = key_hashes.in_range(known, low, high)
    rows += np.uint64(EXISTING)
    return np.vstack([hashed.T, rows])


def _in_range(folder: Path, run: Run, low: np.uint64, high: np.uint64) -> Words:
    """The hashes and the numbers of the rows of a run with a hash in a range, uint64 `[3, n]`."""
    index = run.index(folder)
    words = index[KEY_HASH][0]
    return np.array(index[KEY_HASH.start : NUMBER + 1, (words >= low) & (words <= high)])


def _first_equal(hashed: Words) -> tuple[int, int] | None:
    order = np.argsort(hashed[0])
    ranked = hashed[0][order]
    near = np.flatnonzero(ranked[1:] == ranked[:-1])
    for place in near.tolist():
        this, other = hashed[:, order[place]], hashed[:, order[place + 1]]
        first, second = sorted((int(this[2]), int(other[2])))
        if this[1] == other[1] and first < EXISTING:
            return first, second
    return None
