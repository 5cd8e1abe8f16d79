"""Encoded rows: validated values, as records or as Arrow columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from recordspec.errors import RecordError
from recordspec.schema.encoder import records_of, sections_of
from recordspec.schema.row_blocks import Sections, sections_of_records, sizes_with
from recordspec.schema.schema import Schema
from recordspec.wire import native
from recordspec.wire.arrays import (
    ArrowArray,
    Bytes,
    Ints,
    binary_array,
    buffer_of,
    data_of,
    joined,
    offsets,
    part,
    sizes_of,
    take,
    views_of,
)
from recordspec.wire.example import check_sizes, least_bytes
from recordspec.wire.framing import FOOTER_BYTES, HEADER_BYTES


@dataclass(frozen=True, eq=False)
class RecordRows:
    """Rows as framed records."""

    records: ArrowArray

    def __len__(self) -> int:
        return len(self.records)

    def as_columns(self, schema: Schema) -> ColumnRows:
        """Decodes the records. Raises RecordError for a record that does not match the schema."""
        sections = sections_of_records(schema, self.records, HEADER_BYTES, FOOTER_BYTES)
        return ColumnRows(schema, len(self), sections)

    @property
    def sizes(self) -> Ints:
        """The bytes of each framed record, int64 `[n]`."""
        return sizes_of(self.records)

    @property
    def held(self) -> int:
        """The bytes of memory of the records."""
        return len(buffer_of(self.records))

    def part(self, start: int, stop: int) -> RecordRows:
        """Rows `start` to `stop`."""
        return RecordRows(part(self.records, start, stop))

    def take(self, rows: Ints) -> RecordRows:
        """The rows at these indices, in the order of the indices."""
        return RecordRows(take(self.records, rows))


class ColumnRows:
    """Rows as columns, by section and key."""

    def __init__(self, schema: Schema, rows: int, sections: Sections) -> None:
        self.schema, self.sections, self._rows = schema, sections, rows
        self._records: ArrowArray | None = None

    @classmethod
    def encode(cls, schema: Schema, columns: Mapping[str, Any], rows: int) -> ColumnRows:
        """Validates a batch of columns. Raises RecordError, SpecError."""
        sections = sections_of(schema, columns, rows)
        check_sizes(sections.values(), rows)
        return cls(schema, rows, sections)

    def __len__(self) -> int:
        return self._rows

    @property
    def records(self) -> ArrowArray:
        """The framed record of each row, encoded once. Raises RecordError for a record that is too large."""
        if self._records is None:
            self._records = records_of(self.schema, self.sections, self._rows, framed=True)
        return self._records

    def without_records(self) -> ColumnRows:
        """The same columns, without the memory of their records."""
        return ColumnRows(self.schema, self._rows, self.sections)

    def as_columns(self, schema: Schema) -> ColumnRows:
        return self

    @property
    def sizes(self) -> Ints:
        """The bytes of each framed record, int64 `[n]`. Raises RecordError, as `records`."""
        if self._records is not None:
            return sizes_of(self._records)
        try:
            return sizes_with(self.schema, self.sections, self._rows)
        except RecordError as error:
            raise error.at(f"row {error.row}") from None

    @property
    def held(self) -> int:
        """The bytes of memory of the columns."""
        arrays = [array for table in self.sections.values() for array in table.values()]
        return sum(sum(map(len, one)) if isinstance(one, list) else int(one.nbytes) for one in arrays)

    @property
    def bytes(self) -> int:
        """The bytes of the records; a lower bound if they are not encoded."""
        if self._records is not None:
            return len(buffer_of(self._records))
        return sum(least_bytes(array) for table in self.sections.values() for array in table.values())

    def part(self, start: int, stop: int) -> ColumnRows:
        """Rows `start` to `stop`."""
        if (start, stop) == (0, self._rows):
            return self
        return self._mapped(stop - start, lambda array: part(array, start, stop))

    def take(self, rows: Ints) -> ColumnRows:
        """The rows at these indices, in the order of the indices."""
        return self._mapped(len(rows), lambda array: take(array, rows))

    def _mapped(self, rows: int, change: Callable[[ArrowArray], ArrowArray]) -> ColumnRows:
        sections = {
            section: {key: change(array) for key, array in table.items()}
            for section, table in self.sections.items()
        }
        return ColumnRows(self.schema, rows, sections)


class GatheredRecords:
    """Rows as framed records in several buffers, which are not concatenated before they are sorted.

    Attributes:
        batches: the records, at least one batch.
    """

    def __init__(self, batches: Sequence[ArrowArray]) -> None:
        self.batches = batches
        self.sizes = np.concatenate([sizes_of(batch) for batch in batches])
        self._firsts = offsets(np.array([len(batch) for batch in batches]))
        self._addresses = np.empty(len(self.sizes), np.int64)
        for (first, last), batch in zip(pairwise(self._firsts.tolist()), batches, strict=True):
            buffer, places = data_of(batch)
            np.add(places[:-1], native.at(buffer), out=self._addresses[first:last])

    def __len__(self) -> int:
        return len(self.sizes)

    def part(self, start: int, stop: int) -> RecordRows:
        """Rows `start` to `stop`, without a copy if they are in one buffer."""
        batch = int(np.searchsorted(self._firsts, start, side="right")) - 1
        if batch < len(self.batches) and stop <= self._firsts[batch + 1]:
            first = int(self._firsts[batch])
            return RecordRows(part(self.batches[batch], start - first, stop - first))
        return self.take(np.arange(start, stop))

    def take(self, rows: Ints) -> RecordRows:
        """The rows at these indices, in the order of the indices."""
        places = offsets(self.sizes[rows])
        data = np.empty(int(places[-1]), np.uint8)
        self.put(rows, data, places[:-1])
        return RecordRows(binary_array(data, places))

    def put(self, rows: Ints, data: Bytes, places: Ints) -> None:
        """Copies the records of rows, int64 `[n]`, into `data` at the offsets `places`, int64 `[n]`."""
        if (library := native.library()) is not None:
            given = self._addresses[rows], self.sizes[rows], native.ints(places)
            library.rs_copy(*map(native.at, given), len(rows), native.at(data))
            return
        of_batch = np.searchsorted(self._firsts, rows, side="right") - 1
        for batch in np.unique(of_batch).tolist():
            views, some = views_of(self.batches[batch]), np.flatnonzero(of_batch == batch)
            within = (rows[some] - self._firsts[batch]).tolist()
            for row, place in zip(within, places[some].tolist(), strict=True):
                data[place : place + len(views[row])] = views[row]


EncodedRows = RecordRows | ColumnRows


def joined_rows(many: Sequence[EncodedRows]) -> EncodedRows:
    """Concatenates rows; as columns if all of them are columns."""
    columns = [one for one in many if isinstance(one, ColumnRows)]
    if len(columns) == len(many):
        return joined_columns(columns)
    return RecordRows(joined([one.records for one in many]))


def joined_columns(many: Sequence[ColumnRows]) -> ColumnRows:
    """Concatenates rows."""
    first = many[0]
    if len(many) == 1:
        return first
    sections = {
        section: {key: joined([one.sections[section][key] for one in many]) for key in table}
        for section, table in first.sections.items()
    }
    return ColumnRows(first.schema, sum(map(len, many)), sections)
