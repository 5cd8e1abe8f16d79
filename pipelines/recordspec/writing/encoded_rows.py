"""Encoded rows: validated values, as records or as Arrow columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordspec.errors import RecordError
from recordspec.schema.encoder import records_of, sections_of
from recordspec.schema.row_blocks import Sections, sections_of_records, sizes_with
from recordspec.schema.schema import Schema
from recordspec.wire.arrays import ArrowArray, Ints, buffer_of, joined, part, sizes_of, take
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
