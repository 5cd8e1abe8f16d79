"""Encoded rows: validated values, as Arrow columns or as records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from recordspec.errors import RecordError
from recordspec.schema.encoder import records_of, sections_of
from recordspec.schema.row_blocks import Sections, sections_of_records, sizes_with
from recordspec.schema.schema import Schema
from recordspec.wire.arrays import ArrowArray, Ints, buffer_of, joined, part, sizes_of, take
from recordspec.wire.example import check_sizes, least_bytes
from recordspec.wire.framing import FOOTER_BYTES, HEADER_BYTES


class EncodedRows:
    """Rows with validated values, as columns or as framed records.

    Each form is computed from the other on demand, for all rows at once.
    """

    def __init__(
        self,
        schema: Schema | None,
        rows: int,
        *,
        sections: Sections | None = None,
        records: ArrowArray | None = None,
    ) -> None:
        self._schema, self._rows = schema, rows
        self._sections, self._records = sections, records

    @classmethod
    def encode(cls, schema: Schema, columns: Mapping[str, Any], rows: int) -> EncodedRows:
        """Validates a batch of columns. Raises RecordError, SpecError."""
        sections = sections_of(schema, columns, rows)
        check_sizes(sections.values(), rows)
        return cls(schema, rows, sections=sections)

    def __len__(self) -> int:
        return self._rows

    @property
    def records(self) -> ArrowArray:
        """The framed record of each row. Raises RecordError for a record that is too large."""
        if self._records is None:
            assert self._schema is not None
            assert self._sections is not None
            self._records = records_of(self._schema, self._sections, self._rows, framed=True)
        return self._records

    @property
    def sections(self) -> Sections:
        """The columns, by section and key. Raises RecordError for a record that does not match the schema."""
        if self._sections is None:
            assert self._schema is not None
            self._sections = sections_of_records(self._schema, self.records, HEADER_BYTES, FOOTER_BYTES)
        return self._sections

    @property
    def is_decoded(self) -> bool:
        """Whether the columns are in memory."""
        return self._sections is not None

    @property
    def sizes(self) -> Ints:
        """The bytes of each framed record, int64 `[n]`. Raises RecordError, as `records`."""
        if self._records is not None:
            return sizes_of(self._records)
        assert self._schema is not None
        try:
            return sizes_with(self._schema, self.sections, self._rows)
        except RecordError as error:
            raise error.at(f"row {error.row}") from None

    @property
    def held(self) -> int:
        """The bytes of memory of the columns."""
        arrays = [array for table in self.sections.values() for array in table.values()]
        return sum(sum(map(len, one)) if isinstance(one, list) else int(one.nbytes) for one in arrays)

    @property
    def bytes(self) -> int:
        """The approximate bytes of the rows."""
        if self._records is not None:
            return len(buffer_of(self._records))
        return sum(least_bytes(array) for table in self.sections.values() for array in table.values())

    def part(self, start: int, stop: int) -> EncodedRows:
        """Rows `start` to `stop`."""
        if (start, stop) == (0, self._rows):
            return self
        sections = self._sections and _mapped(self._sections, lambda array: part(array, start, stop))
        records = None if self._records is None else part(self._records, start, stop)
        return EncodedRows(self._schema, stop - start, sections=sections, records=records)

    def take(self, rows: Ints) -> EncodedRows:
        """The rows at these indices, in the order of the indices."""
        if self._sections is None:
            return EncodedRows(self._schema, len(rows), records=take(self.records, rows))
        sections = _mapped(self._sections, lambda array: take(array, rows))
        return EncodedRows(self._schema, len(rows), sections=sections)

    def without_records(self) -> EncodedRows:
        """The rows as columns only."""
        return EncodedRows(self._schema, self._rows, sections=self.sections)

    @classmethod
    def joined(cls, many: Sequence[EncodedRows]) -> EncodedRows:
        """Concatenates rows; as columns if all of them have columns in memory."""
        first = many[0]
        if len(many) == 1:
            return first
        if not all(one.is_decoded for one in many):
            records = joined([one.records for one in many])
            return cls(first._schema, len(records), records=records)
        sections = {
            section: {key: joined([one.sections[section][key] for one in many]) for key in table}
            for section, table in first.sections.items()
        }
        return cls(first._schema, sum(map(len, many)), sections=sections)


def _mapped(sections: Sections, change: Callable[[ArrowArray], ArrowArray]) -> Sections:
    return {
        section: {key: change(array) for key, array in table.items()} for section, table in sections.items()
    }
