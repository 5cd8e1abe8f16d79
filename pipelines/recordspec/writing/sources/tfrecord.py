"""Existing TFRecord files: their records as rows, read with the schema that they were written with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from recordspec.errors import Problem, RecordError, SpecError
from recordspec.locations import AnyPath, Location, LocationText, below, location
from recordspec.schema import values
from recordspec.schema.features import KINDS
from recordspec.schema.schema import Schema
from recordspec.schema.stored_values import restored_columns
from recordspec.store.expand import expand
from recordspec.store.shards import block_in
from recordspec.wire.file_types import compression_of
from recordspec.wire.framing import place
from recordspec.wire.tfrecord import Record, RecordRange, batched, record_ranges, scan
from recordspec.writing.sources import base
from recordspec.writing.sources.base import (
    Batches,
    FileSource,
    FilesText,
    RowPlaces,
    converted,
    identity_of,
    long_row_problem,
)
from recordspec.writing.sources.class_names import named

_ROWS_AT_ONCE = 256
_BYTES_AT_ONCE = 8 << 20


@dataclass(frozen=True, kw_only=True)
class TFRecords(FileSource):
    """The records of files of Examples or SequenceExamples, one after another. A missing or empty key is a
    missing value; a missing list of steps has none. An ExampleListWithContext is read as a SequenceExample
    whose steps are its Examples.

    Attributes:
        files: a path, a folder of shards, or a pattern, or a list of these.
        schema: the spec of the files; by default that of the dataset.
    """

    SHORT_FORM: ClassVar[str] = "files"

    files: FilesText
    schema: LocationText | None = None

    def open(self, folder: AnyPath) -> TFRecords:
        """The source with relative paths resolved against `folder`."""
        schema = None if self.schema is None else str(below(folder, self.schema))
        return replace(super().open(folder), schema=schema)

    @cached_property
    def paths(self) -> tuple[Location, ...]:
        return expand(self.given)

    def identity(self) -> Any:
        return identity_of(self.paths if self.schema is None else (*self.paths, location(self.schema)))

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[TFRecordPart]:
        stored = self._stored(schema)
        if block_in(self.paths) is not None:
            hint = "`recordspec reshard FILES FOLDER --blocks 0` writes one row per record"
            raise SpecError(
                Problem(path=("files",), expected="one row per record", got="blocks of many rows", hint=hint)
            )
        if not any(name in stored.names for name in (*schema.names, *extra)):
            expected = f"features of `{schema.name}` in `{stored.name}`"
            raise SpecError(Problem(path=("schema",), expected=expected, got="none"))
        for path in self.paths:
            for records in _ranges(path):
                yield TFRecordPart(path=path, stored=stored, records=records)

    def _stored(self, schema: Schema) -> Schema:
        """The schema with which the records were written."""
        kinds = KINDS | {feature.kind: type(feature) for _, feature in schema.placed}
        stored = schema if self.schema is None else Schema.load(self.schema, kinds)
        if stored.record != schema.record:
            expected = f"{schema.record}, as `{schema.name}` has it"
            raise SpecError(Problem(path=("schema", "record"), expected=expected, got=stored.record))
        return stored


def _ranges(path: Location) -> Iterator[RecordRange | None]:
    """Ranges of a large file; None for all of a small or compressed file."""
    if compression_of(path) != "none" or path.stat().st_size <= base.PART_BYTES:
        yield None
    else:
        yield from record_ranges(path, base.PART_BYTES)


@dataclass(frozen=True, kw_only=True)
class TFRecordPart:
    """Records of a file.

    Attributes:
        path: the path of the file.
        stored: the schema with which the records were written.
        records: the records of the file; None for all.
    """

    path: Location
    stored: Schema
    records: RecordRange | None

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        wanted = {*schema.names, *extra}
        placed = [(place, one) for place, one in self.stored.placed if one.name in wanted]
        sequence = self.stored.record == "sequence_example"
        for some in batched(self._records(), _BYTES_AT_ONCE, _ROWS_AT_ONCE):
            data = [record.data for record in some]

            def columns(start: int, stop: int, data: list[bytes] = data) -> dict[str, Any]:
                for row, record in enumerate(data[start:stop]):
                    if len(record) > values.LONGEST_ROW:
                        raise RecordError(long_row_problem(len(record)), row)
                restored = restored_columns(placed, data[start:stop], sequence=sequence)
                names = {
                    one.name: one.traits.class_names
                    for _, one in placed
                    if one.columns()[0].storage == "int64"
                }
                return {
                    name: named(column, names[name], schema.names.get(name)) if names.get(name) else column
                    for name, column in restored.items()
                }

            yield from converted(len(some), columns)

    def place(self, row: int) -> str:
        return f"{self.path}: {self._places.of(row)}"

    @cached_property
    def _places(self) -> RowPlaces[str]:
        return RowPlaces(self._numbers)

    def _numbers(self) -> Iterator[str]:
        return (place(record.number, record.offset) for record in self._records())

    def _records(self) -> Iterator[Record]:
        return scan(self.path, self.records)
