"""Reads rows of files by number, for a page that shows some of them. Earlier rows are skipped only once."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter

import numpy as np

from recordspec.errors import RecordError
from recordspec.locations import Location
from recordspec.progress import Progress
from recordspec.store.dataset import StoredDataset
from recordspec.store.index import find_records
from recordspec.store.scan import FileRange, RowBatch, Scanner, UnreadableRecord, scan
from recordspec.wire.file_types import compression_of
from recordspec.wire.tfrecord import RecordRange

# The distance in bytes between the remembered places of a file, at which reading can start again.
_APART = 1 << 20


@dataclass(frozen=True, kw_only=True)
class PlacedRows:
    """Consecutive rows, or an unreadable record.

    Attributes:
        first: the number of the first row among all rows.
        item: the rows, or the unreadable record. The record may have been a block of many rows.
        lost: the number of rows from an unreadable record up to the next readable row.
    """

    first: int
    item: RowBatch | UnreadableRecord
    lost: int = 1

    def __len__(self) -> int:
        return len(self.item) if isinstance(self.item, RowBatch) else self.lost

    def part(self, start: int, stop: int) -> PlacedRows:
        """The rows with the numbers from `start` up to `stop`."""
        first, last = max(start, self.first), min(stop, self.first + len(self))
        if isinstance(self.item, UnreadableRecord) or last - first == len(self):
            return self
        return PlacedRows(first=first, item=self.item.take(np.arange(first - self.first, last - self.first)))


@dataclass(frozen=True)
class RecordPlace:
    """The place of a record: its file, its number in the file, and its byte offset."""

    path: Location
    record: int
    offset: int


class NumberedRows:
    """The rows of files, numbered across all files.

    Args:
        scanner: the scanner of the files.
        split: the split whose files are read; None for all files.
    """

    def __init__(self, scanner: Scanner, split: str | None = None) -> None:
        self._files = [
            _FileRows(file, scanner.dataset) for file in scanner.files if split in (None, file.split)
        ]

    @property
    def total(self) -> int | None:
        """The number of rows, if it is known."""
        counts = [file.count for file in self._files]
        return None if None in counts else sum(count for count in counts if count is not None)

    def page(self, first: int, count: int, progress: Progress | None = None) -> list[PlacedRows]:
        """At most `count` rows from the number `first` on. Raises StoreError if a file cannot be opened."""
        page: list[PlacedRows] = []
        for rows in self.following(first, progress):
            page.append(rows.part(first, first + count))
            if rows.first + len(rows) >= first + count:
                break
        return page

    def at(self, numbers: Sequence[int], progress: Progress | None = None) -> list[PlacedRows]:
        """The rows with these numbers, in the given order. Missing numbers are left out."""
        by_number: dict[int, PlacedRows] = {}
        rows: PlacedRows | None = None
        ahead: Iterator[PlacedRows] | None = None
        for number in sorted(set(numbers)):
            if rows is None or number >= rows.first + len(rows):
                if ahead is None or self._are_plain:
                    ahead = self.following(number, progress)
                rows = next((each for each in ahead if number < each.first + len(each)), None)
                if rows is None:
                    break
            by_number[number] = rows.part(number, number + 1)
        return [by_number[number] for number in numbers if number in by_number]

    def following(self, first: int, progress: Progress | None = None) -> Iterator[PlacedRows]:
        """All rows from the number `first` on. Raises StoreError if a file cannot be opened.

        Args:
            first: the number of the first row.
            progress: receives the number of rows read, including skipped rows before `first`.
        """
        start = 0  # the number of the first row of a file
        for file in self._files:
            if file.count is None or first < start + file.count:
                for rows in file.rows(max(first - start, 0)):
                    if progress is not None:
                        progress.advance(len(rows))
                    if start + rows.first + len(rows) > first:
                        yield replace(rows, first=start + rows.first)
            start += file.count or 0  # known now

    @cached_property
    def _are_plain(self) -> bool:
        """Whether reading can start at any record of every file."""
        return all(file.is_plain for file in self._files)

    def numbers_of(self, places: Iterable[RecordPlace], progress: Progress) -> dict[RecordPlace, int]:
        """The number of the first row of each record, if it exists. Reads files of unknown length, and files
        of blocks."""
        wanted: dict[Location, list[RecordPlace]] = {}
        for place in places:
            wanted.setdefault(place.path, []).append(place)
        numbers, start = {}, 0
        for file in self._files:
            rows = file.rows_of(wanted.pop(file.path, []), progress)
            numbers.update({place: start + row for place, row in rows.items()})
            if not wanted:
                break
            start += file.length(progress)
        return numbers


class _FileRows:
    """The rows of a file, and the places in it at which reading can start.

    Attributes:
        path: the path of the file.
        count: the number of rows, if it is known.
    """

    def __init__(self, file: FileRange, dataset: StoredDataset) -> None:
        self.path, self._lock = file.path, threading.Lock()
        block = None if dataset.manifest is None else dataset.manifest.block
        count = dataset.shards[file.path].rows if file.path in dataset.shards else None
        self._file, self._block = file, block if file.blocks is not None else 1
        self._index = dataset.index_of(file.path) if self.is_plain else None
        if count is None and self._index is not None and file.blocks is None:
            count = self._index.records
        self.count = count
        self._places = [(0, 0, 0)]  # the number of a row, and the number and offset of its record

    def rows(self, first: int) -> Iterator[PlacedRows]:
        """The rows from the last known place at or before the row `first`."""
        row, record, offset = self._place(first)
        part = self._file
        if offset:
            part = replace(part, records=RecordRange(record, offset, part.path.stat().st_size))
        lost: PlacedRows | None = None
        for item in scan(part):
            row = max(row, self._row_at(item))
            if lost is not None:
                yield replace(lost, lost=max(row - lost.first, 1))
            lost = None
            if isinstance(item, UnreadableRecord):
                lost = PlacedRows(first=row, item=item)
                row += 1
                continue
            yield PlacedRows(first=row, item=item)
            row += len(item)
            with self._lock:
                if self.is_plain and item.end[1] >= self._places[-1][2] + _APART:
                    self._places.append((row, *item.end))
        if lost is not None:
            yield replace(lost, lost=max((self.count or row) - lost.first, 1))
        if self.count is None:
            self.count = row

    def _row_at(self, item: RowBatch | UnreadableRecord) -> int:
        """The number of the first row of an item by the index; 0 if it is unknown. The index also counts lost
        records before the item."""
        record = self._record_at(int(item.offsets[0]) if isinstance(item, RowBatch) else item.offset)
        return 0 if record is None or self._block is None else record * self._block

    def _record_at(self, offset: int) -> int | None:
        """The number of the record that begins at a byte, by the index."""
        if (index := self._index) is None:
            return None
        record = bisect_left(range(index.records), offset, key=lambda number: index.frame(number)[0])
        is_there = record < index.records and index.frame(record)[0] == offset
        return record if is_there else None

    @cached_property
    def is_plain(self) -> bool:
        """Whether reading can start at any record: the file is not compressed."""
        with suppress(RecordError):
            return compression_of(self._file.path) == "none"
        return False

    def _place(self, first: int) -> tuple[int, int, int]:
        """The last known place at or before a row."""
        if self._index is not None and self._block and first:
            record = first // self._block
            with suppress(RecordError):
                for found in find_records(self._file.path, [record], self._index):
                    return record * self._block, record, found.start
        return self._places[bisect_right(self._places, first, key=itemgetter(0)) - 1]

    def length(self, progress: Progress) -> int:
        """The number of rows. The file is read if the number is unknown."""
        if self.count is None:
            for rows in self.rows(0):
                progress.advance(len(rows))
        return self.count or 0

    def rows_of(self, places: list[RecordPlace], progress: Progress) -> dict[RecordPlace, int]:
        """The number of the first row of each record. Reads a file of blocks."""
        rows_of: dict[RecordPlace, int] = {}
        if self._file.blocks is None:
            for place in places:
                record = self._record_at(place.offset)
                rows_of[place] = place.record if record is None else record
            return rows_of
        by_offset = {place.offset: place for place in places}
        for rows in self.rows(0) if places else ():
            progress.advance(len(rows))
            item = rows.item
            offsets = item.offsets if isinstance(item, RowBatch) else np.array([item.offset])
            for offset in by_offset.keys() & set(offsets.tolist()):
                rows_of[by_offset[offset]] = rows.first + int(np.searchsorted(offsets, offset))
        return rows_of
