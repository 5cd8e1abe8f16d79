"""Rows set aside on the disk, in sorted runs: a sort of more than memory holds (an external merge sort).

A run is a file of framed records, sorted by split and then by the place that the build's order gives
them, and an index of the same rows: uint64 `[5, rows]`, whose lines are `ORDER`, the two words of the
`KEY`'s hash, the row's `NUMBER`, and the `END` of its record in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import IO

import numpy as np

from recordspec.locations import sync
from recordspec.wire.strings import Ints, Strings, offsets
from recordspec.writing import shuffle
from recordspec.writing.encoding import Words

ORDER, KEY, NUMBER, END = 0, slice(1, 3), 3, 4
_LINES = 5
_WORD = np.dtype("<u8")
# Memory for the index of a row while a run is sorted: as it came, in one array, and in order.
_INDEX_BYTES = 3 * _LINES * 8

# Records gathered at once: enough to make a copy cheap, few enough to need little memory.
_GATHERED = 8 << 20


@dataclass(frozen=True, kw_only=True)
class Run:
    """A sorted run.

    Attributes:
        name: of the file of records; that of the index ends in `.index`.
        counts: the rows of each split, in the order in which they lie there.
        bytes: of the records.
    """

    name: str
    counts: dict[str, int]
    bytes: int

    @property
    def index_name(self) -> str:
        return f"{self.name}.index"

    @property
    def rows(self) -> int:
        return sum(self.counts.values())

    @property
    def index_bytes(self) -> int:
        return self.rows * _LINES * _WORD.itemsize

    def is_whole(self, folder: Path) -> bool:
        """Whether its files are there, and have their sizes."""
        sizes = {self.name: self.bytes, self.index_name: self.index_bytes}
        return all(
            (folder / name).exists() and (folder / name).stat().st_size == size
            for name, size in sizes.items()
        )

    def starts(self) -> dict[str, int]:
        """The row at which each split begins."""
        return dict(zip(self.counts, accumulate(self.counts.values(), initial=0), strict=False))


class RunWriter:
    """A sink that makes runs: rows are gathered in memory up to `capacity` bytes, sorted, written."""

    def __init__(self, folder: Path, stem: str, capacity: int, seed: int | None, *, durable: bool) -> None:
        self._folder, self._stem, self._durable = folder, stem, durable
        self._seed = seed
        self._buffer = np.empty(capacity, np.uint8)  # costs nothing until it is touched
        self._index: list[Words] = []
        self._splits: list[Ints] = []
        self._bytes = self._rows = 0
        self._runs: list[tuple[Path, Ints, int]] = []

    def add(
        self, records: Strings, numbers: Words, hashed: shuffle.Hashes | None, splits: Ints | None
    ) -> None:
        size = len(records.buffer)
        if self._bytes + size + self._rows * _INDEX_BYTES > len(self._buffer):
            self._spill()
        if size > len(self._buffer):
            self._buffer = np.empty(size, np.uint8)
        self._buffer[self._bytes : self._bytes + size] = records.buffer
        self._index.append(self._indexed(records, numbers, hashed))
        self._splits.append(np.zeros(len(records), np.int64) if splits is None else splits)
        self._bytes += size
        self._rows += len(records)

    def finish(self, splits: list[str]) -> tuple[Run, ...]:
        """Writes what is left. Returns the runs, whose splits have these names."""
        self._spill()
        return tuple(
            Run(
                name=path.name,
                counts={splits[one]: int(count) for one, count in enumerate(counts) if count},
                bytes=size,
            )
            for path, counts, size in self._runs
        )

    def _indexed(self, records: Strings, numbers: Words, hashed: shuffle.Hashes | None) -> Words:
        index = np.zeros((_LINES, len(records)), _WORD)
        if hashed is not None:
            index[KEY] = hashed.T
        index[ORDER] = numbers if self._seed is None or hashed is None else shuffle.places(hashed, self._seed)
        index[NUMBER] = numbers
        index[END] = records.sizes
        return index

    def _spill(self) -> None:
        if not self._bytes:
            return
        index, splits = np.concatenate(self._index, axis=1), np.concatenate(self._splits)
        records = Strings(self._buffer[: self._bytes], offsets(index[END].astype(np.int64)))
        order = self._order(index, splits)
        path = self._folder / f"{self._stem}-{len(self._runs):05d}.run"
        with path.open("xb") as file:
            for part in _gathered(records, order):
                file.write(part.buffer.data)
            self._last(file)
        index = index if order is None else index[:, order]
        index[END] = np.cumsum(index[END])
        with path.with_name(f"{path.name}.index").open("xb") as file:
            file.write(np.ascontiguousarray(index).data)
            self._last(file)
        self._runs.append((path, np.bincount(splits), self._bytes))
        self._index, self._splits, self._bytes, self._rows = [], [], 0, 0

    def _order(self, index: Words, splits: Ints) -> Ints | None:
        """How the rows are to be sorted; None where they are."""
        if self._seed is None:
            return np.argsort(splits, kind="stable") if splits.any() else None
        return np.lexsort((index[KEY][1], index[KEY][0], index[ORDER], splits))

    def _last(self, file: IO[bytes]) -> None:
        """Makes a file last where it must."""
        if self._durable:
            sync(file)


def _gathered(records: Strings, order: Ints | None) -> Iterator[Strings]:
    """The records in an order, some at a time."""
    if order is None:
        yield records
        return
    sizes = offsets(records.sizes[order])
    bounds = np.searchsorted(sizes, np.arange(0, sizes[-1] + _GATHERED, _GATHERED))
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if start < stop:
            yield records.take(order[start:stop])


class RunReader:
    """The rows of one split in a run, in their order."""

    def __init__(self, folder: Path, run: Run, split: str) -> None:
        self._path = folder / run.name
        self._first = run.starts().get(split, 0)
        self.rows = run.counts.get(split, 0)
        self._index_path = folder / run.index_name
        self._width = run.rows

    @property
    def index(self) -> Words:
        """Of the split's rows, uint64 `[5, rows]`, on the disk."""
        if not self.rows:
            return np.zeros((_LINES, 0), _WORD)
        index = np.memmap(self._index_path, _WORD, "r", shape=(_LINES, self._width))
        return index[:, self._first : self._first + self.rows]

    @property
    def bytes(self) -> int:
        """Of the split's records."""
        return self._span(0, self.rows)[1]

    def read(self, start: int, stop: int) -> tuple[Strings, Words]:
        """Some rows: their records, and their index."""
        first, size = self._span(start, stop)
        index = np.array(self.index[:, start:stop])
        data = np.fromfile(self._path, np.uint8, size, offset=first)
        ends = index[END].astype(np.int64) - first
        return Strings(data, np.concatenate([np.zeros(1, np.int64), ends])), index

    def _span(self, start: int, stop: int) -> tuple[int, int]:
        """Where the records of some rows begin in the file, and their size."""
        if start == stop:
            return 0, 0
        ends = np.memmap(self._index_path, _WORD, "r", offset=END * self._width * 8, shape=(self._width,))
        before = self._first + start
        first = int(ends[before - 1]) if before else 0
        return first, int(ends[self._first + stop - 1]) - first
