"""Existing TFRecord files: their records as rows, read with the schema that they were written with."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial, singledispatch
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from recordspec.errors import Problem, RecordError, SpecError
from recordspec.locations import Location, LocationText, below, location
from recordspec.spec.features import KINDS, Feature
from recordspec.spec.features.audio import Audio
from recordspec.spec.features.box import Box
from recordspec.spec.features.image import Image
from recordspec.spec.features.ragged import RaggedLists
from recordspec.spec.features.sparse import SparseValues
from recordspec.spec.features.tensor import AnyTensor
from recordspec.spec.features.video import Video
from recordspec.spec.schema import Schema
from recordspec.spec.validate import check_structure
from recordspec.store.shards import block_in, expand
from recordspec.wire import proto
from recordspec.wire.columns import Ragged, Section, Sparse
from recordspec.wire.file_types import compression_of
from recordspec.wire.framing import place
from recordspec.wire.record_batch import RecordBatch, decode
from recordspec.wire.strings import Strings
from recordspec.wire.tfrecord import Record, RecordRange, batched, record_ranges, scan
from recordspec.writing.sources import base
from recordspec.writing.sources.base import (
    Batches,
    FileSource,
    FilesText,
    RowPlaces,
    converted,
    identity_of,
)

Stored = Mapping[str, Any]
Placed = list[tuple[Section, Feature]]

_ROWS_AT_ONCE = 256
_BYTES_AT_ONCE = 8 << 20


@dataclass(frozen=True, kw_only=True)
class TFRecords(FileSource):
    """The records of files of Examples or SequenceExamples, one after another. A missing or empty key is a
    missing value; a missing list of steps has none.

    Attributes:
        files: a path, a folder of shards, or a pattern, or a list of these.
        schema: the spec of the files; by default that of the dataset.
    """

    SHORT_FORM: ClassVar[str] = "files"

    files: FilesText
    schema: LocationText | None = None

    def open(self, folder: Path) -> TFRecords:
        """The same source; relative paths start at `folder`."""
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
        if schema.record != stored.record:
            expected = f"{schema.record}, as `{schema.name}` has it"
            raise SpecError(Problem(path=("schema", "record"), expected=expected, got=stored.record))
        return stored


def _ranges(path: Location) -> Iterator[RecordRange | None]:
    """A large file in pieces; one that is small, or compressed, as a whole."""
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
        placed = [(section, one) for section, one in self.stored.placed if one.name in wanted]
        columns = _columns if self.stored.record == "example" else _columns_with_steps
        for some in batched(self._records(), _BYTES_AT_ONCE, _ROWS_AT_ONCE):
            yield from converted(len(some), partial(columns, placed, some))

    def place(self, row: int) -> str:
        return f"{self.path}: {self._places.of(row)}"

    @cached_property
    def _places(self) -> RowPlaces[str]:
        return RowPlaces(self._numbers)

    def _numbers(self) -> Iterator[str]:
        return (place(record.number, record.offset) for record in self._records())

    def _records(self) -> Iterator[Record]:
        return scan(self.path, self.records)


def _parsed(record: Record, row: int) -> Stored:
    try:
        return proto.parse_example(record.data)
    except RecordError as error:
        raise RecordError(error.problems, row) from None


def _columns(placed: Placed, records: list[Record], start: int, stop: int) -> dict[str, Any]:
    rows = [_parsed(record, row) for row, record in enumerate(records[start:stop])]
    in_parts = [(section, one) for section, one in placed if _is_in_parts(one)]
    if in_parts:
        check_structure(in_parts, _decoded(records[start:stop], sequence=False))
    return {
        feature.name: [_given(feature, values, row) for row, values in enumerate(rows)]
        for _, feature in placed
    }


def _columns_with_steps(placed: Placed, records: list[Record], start: int, stop: int) -> dict[str, Any]:
    """The same of SequenceExamples."""
    check_structure(placed, _decoded(records[start:stop], sequence=True))
    columns: dict[str, list[Any]] = {feature.name: [] for _, feature in placed}
    for row, record in enumerate(records[start:stop]):
        found = proto.entries(record.data, sequence=True)
        context = {key: None if one.kind == "none" else one.values for key, one in found.features}
        lists = {key: [step.values for step in steps] for key, steps in found.lists}
        for section, feature in placed:
            if section != "sequence":
                value = _given(feature, context, row)
            elif feature.spans_steps:
                every = [item for step in lists.get(feature.stored, ()) for item in step]
                value = _given(feature, {feature.stored: every}, row)
            else:
                keys = [column.key for column in feature.columns()]
                steps = zip(*(lists.get(key, ()) for key in keys), strict=True)
                value = [_given(feature, dict(zip(keys, step, strict=True)), row) for step in steps]
            columns[feature.name].append(value)
    return columns


def _is_in_parts(feature: Feature) -> bool:
    """Whether its values are under several keys, which must agree."""
    return isinstance(feature.columns()[0].layout, Ragged | Sparse)


def _decoded(records: list[Record], *, sequence: bool) -> RecordBatch:
    given = Strings.of([record.data for record in records])
    return decode(given.buffer, given.offsets[:-1], given.offsets[1:], sequence=sequence)


def _given(feature: Feature, values: Stored, row: int) -> Any:
    """A stored record's value of a feature, as a row gives it; None if it is missing."""
    try:
        return given(feature, values)
    except (ValueError, TypeError, IndexError, zlib.error) as error:
        problem = Problem(
            path=("features", feature.name), expected=f"what {feature.kind} stores", got=str(error)
        )
        raise RecordError(problem, row) from None


@singledispatch
def given(feature: Feature, values: Stored) -> Any:
    """The value as a row would give it; what is stored, of a kind that gives `any` value."""
    stored, shape = values.get(feature.stored) or [], feature.value_type.shape
    if feature.value_type.item == "any":
        return stored[0] if len(stored) == 1 else values.get(feature.stored)
    if not stored and None not in shape and 0 not in shape:
        return None
    return _shaped(stored, shape)


@given.register(AnyTensor)
@given.register(Image)
@given.register(Audio)
@given.register(Video)
def _restored(feature: AnyTensor | Image | Audio | Video, values: Stored) -> Any:
    stored = values.get(feature.stored)
    return None if stored is None else feature.restored(stored)


@given.register
def _ragged(feature: RaggedLists, values: Stored) -> Any:
    column, *lengths = feature.columns()
    cell = feature.shape[len(lengths) + 1 :]
    rows: Any = _shaped(values.get(column.key) or [], (None, *cell))
    for part in reversed(lengths):
        sizes = values.get(part.key) or []
        ends = np.cumsum([0, *sizes])
        rows = [rows[start:stop] for start, stop in pairwise(ends)]
    return rows


@given.register
def _box(feature: Box, values: Stored) -> Any:
    if not feature.keys:
        return _shaped(values.get(feature.stored) or [], feature.value_type.shape)
    return list(zip(*(values.get(key) or [] for key in feature.keys), strict=True))


@given.register
def _sparse(feature: SparseValues, values: Stored) -> Any:
    column, *indices = feature.columns()
    places = [values.get(part.key) or [] for part in indices]
    points = places[0] if len(places) == 1 else list(zip(*places, strict=True))
    return points, values.get(column.key) or []


def _shaped(stored: Any, shape: tuple[int | None, ...]) -> Any:
    """A flat list as nested lists of this shape; numbers and strings stay what they are."""
    if shape == ():
        (value,) = stored
        return value
    array = np.empty(len(stored), object)
    array[:] = stored
    known = [-1 if size is None else size for size in shape]
    if not len(stored) and None in shape:
        known = [0 if size is None else size for size in shape]
    return array.reshape(known).tolist()
