"""Existing TFRecord files: their records as rows, read with the schema that they were written with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from recordspec import executors
from recordspec.errors import Problem, RecordError, SpecError
from recordspec.locations import AnyPath, Location, LocationText, below, location
from recordspec.schema import values
from recordspec.schema.feature_set import SECTIONS
from recordspec.schema.features import KINDS
from recordspec.schema.schema import Schema
from recordspec.schema.stored_values import restored_columns
from recordspec.store.expand import expand
from recordspec.store.manifest import SCHEMA_FILE, manifest_in
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
        schema: the spec of the files; by default the one that the manifest beside them names, as the names of
            its classes tell what a number means, and otherwise that of the dataset.
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
        schemas = self._beside.values() if self.schema is None else [location(self.schema)]
        return identity_of((*self.paths, *schemas))

    def check(self, schema: Schema, extra: tuple[str, ...]) -> None:
        self._checked(schema, extra)

    def _checked(self, schema: Schema, extra: tuple[str, ...]) -> Schema:
        """The schema with which the records were written. Raises the errors of `check`."""
        stored = self._stored(schema)
        if block_in(self.paths) is not None:
            hint = "`recordspec reshard FILES FOLDER --blocks 0` writes one row per record"
            raise SpecError(
                Problem(path=("files",), expected="one row per record", got="blocks of many rows", hint=hint)
            )
        if not any(name in stored.names for name in (*schema.names, *extra)):
            expected = f"features of `{schema.name}` in `{stored.name}`"
            raise SpecError(Problem(path=("schema",), expected=expected, got="none"))
        return stored

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[TFRecordPart]:
        stored = self._checked(schema, extra)
        ranges = executors.current().map(_ranges, ((path, base.PART_BYTES) for path in self.paths))
        for path, some in zip(self.paths, ranges, strict=True):
            for records in some:
                yield TFRecordPart(path=path, stored=stored, records=records)

    def _stored(self, schema: Schema) -> Schema:
        """The schema with which the records were written."""
        kinds = KINDS | {feature.kind: type(feature) for _, feature in schema._placed}
        given = [*self._beside.values()] if self.schema is None else [location(self.schema)]
        stored, *others = [Schema.load(path, kinds) for path in given] or [schema]
        is_known = self.schema is not None or not given
        if not is_known and (len(given) < len(self._folders) or any(other != stored for other in others)):
            hint = "`schema:` of the source names it; or build the files of each schema alone"
            got = f"{len(self._folders)} folders with others, or without one"
            raise SpecError(Problem(path=("schema",), expected="one schema of all files", got=got, hint=hint))
        if stored.record != schema.record:
            expected = f"{schema.record}, as `{schema.name}` has it"
            raise SpecError(Problem(path=("schema", "record"), expected=expected, got=stored.record))
        return stored if self.schema is not None else _with_new(stored, schema)

    @property
    def _folders(self) -> list[Location]:
        return [*dict.fromkeys(path.parent for path in self.paths)]

    @cached_property
    def _beside(self) -> dict[Location, Location]:
        """By folder, the schema beside the files that a manifest names."""
        manifests = {folder: manifest_in(folder) for folder in self._folders}
        named = {
            folder: folder / manifest.name_of(SCHEMA_FILE)
            for folder, manifest in manifests.items()
            if manifest is not None and manifest.fingerprint is not None
        }
        return {folder: path for folder, path in named.items() if path.is_file()}


def _with_new(stored: Schema, schema: Schema) -> Schema:
    """The schema of the files, with the features that it lacks as the new schema stores them: a feature with
    another name may have the key of an old one."""
    new: dict[Any, Any] = {
        section: (
            *getattr(stored, section),
            *(one for one in getattr(schema, section) if one.name not in stored.names),
        )
        for section in SECTIONS[stored.record]
    }
    return replace(stored, **new)


def _ranges(path: Location, size: int, attempt: str) -> list[RecordRange] | list[None]:
    """Ranges of a file of more than `size` bytes, found by the lengths of its records; None for all of a
    small or compressed file.
    """
    if compression_of(path) != "none" or path.stat().st_size <= size:
        return [None]
    return list(record_ranges(path, size))


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
        placed = [(place, one) for place, one in self.stored._placed if one.name in wanted]
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
                    if one.columns()[0].storage != "bytes"
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
