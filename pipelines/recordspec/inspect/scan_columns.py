"""The columns of a scan: of features, of the keys of records without a schema, and of where rows are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError
from recordspec.inspect.columns import ColumnType, are_single, first_row, type_of, values_by_kind
from recordspec.inspect.feature_names import FeatureKey
from recordspec.inspect.scan import RowBatch, Scanner, check_readable, decoded
from recordspec.schema.blocks import Sections, stored_columns
from recordspec.schema.table_columns import TableColumn
from recordspec.schema.validate import check_structure
from recordspec.wire.arrays import (
    ArrowArray,
    counts_of,
    items_of,
    numbers_array,
    offsets,
    present_in,
    storage_of,
)
from recordspec.wire.record_batch import RecordBatch

# The column of a hash of the bytes of each row.
CONTENT = "content"


@dataclass(frozen=True, kw_only=True)
class DecodedRows:
    """Rows of a file, and what is decoded of them.

    Attributes:
        batch: the rows, with their places.
        split: of the file.
        records: the keys that the columns need.
        sections: of the columns of features, by section and key.
    """

    batch: RowBatch
    split: str
    records: RecordBatch
    sections: Sections


class ScanColumn(Protocol):
    """A column of a table: its name and type, the features and keys that it is made of, and its values."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> Any: ...

    @property
    def features(self) -> tuple[TableColumn, ...]: ...

    @property
    def keys(self) -> tuple[str, ...]: ...

    @property
    def of_whole_rows(self) -> bool:
        """Whether it takes all keys of the rows, not only its own."""

    def array(self, rows: DecodedRows) -> ArrowArray:
        """The values of rows, of `type`. Raises RecordError, with the row, for one that has others."""


@dataclass(frozen=True, kw_only=True)
class FeatureColumn:
    """The values of features of the schema: of one, or as the key of a row a struct of several."""

    name: str
    features: tuple[TableColumn, ...]
    of_whole_rows: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key for feature in self.features for key in feature.keys)

    @property
    def type(self) -> Any:
        if len(self.features) == 1:
            return self.features[0].type
        return arrow().struct([(feature.name, feature.type) for feature in self.features])

    def widened(self, rows: DecodedRows) -> FeatureColumn:
        """The column that holds these rows, too: of bytes, if some of them are no text."""
        features = tuple(feature.widened(rows.sections) for feature in self.features)
        return self if features == self.features else replace(self, features=features)

    def array(self, rows: DecodedRows) -> ArrowArray:
        arrays = [feature.array(rows.sections) for feature in self.features]
        if len(arrays) == 1:
            return arrays[0]
        return arrow().StructArray.from_arrays(arrays, fields=list(self.type))


@dataclass(frozen=True, kw_only=True)
class KeyColumn:
    """The values under a key of records without a schema.

    Attributes:
        name: of the column.
        key: of the records.
        form: what its values are, in all records.
    """

    name: str
    key: FeatureKey
    form: ColumnType
    features: tuple[TableColumn, ...] = ()
    of_whole_rows: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.key[1],)

    @property
    def type(self) -> Any:
        pyarrow = arrow()
        of_kind = {"none": pyarrow.null(), "int64": pyarrow.int64(), "float32": pyarrow.float32()}
        text = pyarrow.large_string() if self.form.text else pyarrow.large_binary()
        type_ = of_kind.get(self.form.kind, text)
        for _ in range(self.form.depth):
            type_ = pyarrow.large_list(type_)
        return type_

    def widened(self, rows: DecodedRows) -> KeyColumn:
        """The column that holds these rows, too. Raises RecordError for the first row with another kind."""
        form, steps = self.form, self.key[0]
        for array in sorted(
            values_by_kind(rows.records, self.key), key=lambda array: first_row(array, steps=steps)
        ):
            here = type_of(array, steps=steps)
            if not form.fits(here.kind):
                raise self._unlike(f"{form}, as in records before", str(here), first_row(array, steps=steps))
            form = form.joined(here)
        return self if form == self.form else replace(self, form=form)

    def array(self, rows: DecodedRows) -> ArrowArray:
        form, steps = self.form, self.key[0]
        arrays = values_by_kind(rows.records, self.key)
        for array in arrays:
            lists = items_of(array) if steps else array
            here = replace(form, kind=storage_of(lists), steps=steps)
            if not form.fits(here.kind) or (form.kind == "none" and here.kind != "none"):
                raise self._unlike_first(f"{form}", str(here), int(np.argmax(present_in(array))))
            alone = are_single(lists)
            if form.single and not alone.all():
                item = int(np.argmin(alone))
                row = int(np.searchsorted(offsets(counts_of(array)), item, "right")) - 1 if steps else item
                raise self._unlike_first("one value", f"{int(counts_of(lists)[item])}", row)
        if arrays[0].null_count == len(arrays[0]):
            return arrow().nulls(rows.records.rows, self.type)
        shaped = form.shaped(arrays[0])
        if shaped.type == self.type:
            return shaped
        try:
            return shaped.cast(self.type)
        except arrow().ArrowInvalid:
            row = next(row for row in range(len(shaped)) if not _casts(shaped.slice(row, 1), self.type))
            raise self._unlike_first("UTF-8 text", "bytes that are not", row) from None

    def _unlike_first(self, expected: str, got: str, row: int) -> RecordError:
        hint = "a schema tells what its columns are: `recordspec infer` proposes one"
        return self._unlike(f"{expected}, as in the first records", got, row, hint)

    def _unlike(self, expected: str, got: str, row: int, hint: str = "") -> RecordError:
        return RecordError(Problem(path=(self.name,), expected=expected, got=got, hint=hint), row)


def _casts(array: ArrowArray, type_: Any) -> bool:
    try:
        array.cast(type_)
    except arrow().ArrowInvalid:
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class PlaceColumn:
    """Where each row is, not what it has; or a hash of its bytes.

    Attributes:
        name: of the column.
        place: one of PLACES.
    """

    name: str
    place: str
    features: tuple[TableColumn, ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def type(self) -> Any:
        types = {"record": arrow().int64(), CONTENT: arrow().uint64()}
        return types.get(self.place, arrow().large_string())

    @property
    def of_whole_rows(self) -> bool:
        return self.place == CONTENT

    def array(self, rows: DecodedRows) -> ArrowArray:
        if self.place == CONTENT:
            return numbers_array(rows.batch.hashes)
        if self.place == "record":
            return numbers_array(rows.batch.numbers)
        text = rows.split if self.place == "split" else str(rows.batch.path)
        return arrow().repeat(arrow().scalar(text, self.type), len(rows.batch))


class RowDecoder:
    """Decodes the rows of files to what columns need of them.

    Args:
        scanner: of the files.
        columns: the columns.
        all_keys: whether all other keys are decoded, too.
    """

    def __init__(self, scanner: Scanner, columns: Iterable[ScanColumn], *, all_keys: bool = False) -> None:
        columns = list(columns)
        self._scanner = scanner
        self.features = {feature.name: feature for column in columns for feature in column.features}
        self._stored = [
            (feature.section, column)
            for feature in self.features.values()
            for column in feature.feature.columns()
        ]
        keys = {key for column in columns for key in column.keys}
        self.keys: Collection[str] | None = None if all_keys else keys

    def decode(self, batch: RowBatch) -> DecodedRows:
        """The rows. Raises RecordError, with the row, for one that is none of the schema."""
        schema = self._scanner.schema
        if schema is None or not self.features:
            records = decoded(batch.rows, self.keys)
            check_readable(records, batch)
        else:
            records = batch.rows.decode(schema.message_steps, self.keys)
            check_structure(((one.section, one.feature) for one in self.features.values()), records)
        return DecodedRows(
            batch=batch,
            split=self._scanner.splits[batch.path],
            records=records,
            sections=stored_columns(self._stored, records),
        )


def schema_of(columns: Iterable[ScanColumn]) -> Any:
    """The names and types of columns, a `pyarrow.Schema`."""
    return arrow().schema([(column.name, column.type) for column in columns])


def record_batch(rows: DecodedRows, columns: Iterable[ScanColumn]) -> Any:
    """The values of columns, a `pyarrow.RecordBatch`. Raises RecordError, with the row."""
    columns = list(columns)
    arrays = [column.array(rows) for column in columns]
    if not arrays:  # of which Arrow does not know the number of rows otherwise
        empty = arrow().Array.from_buffers(arrow().struct([]), rows.records.rows, [None])
        return arrow().RecordBatch.from_struct_array(empty)
    return arrow().RecordBatch.from_arrays(arrays, schema=schema_of(columns))


@contextmanager
def placed_errors(batch: RowBatch) -> Iterator[None]:
    """Raises a RecordError of a row with the place of the row."""
    try:
        yield
    except RecordError as error:
        where = batch.place(error.row or 0)
        problems = [problem if problem.where else problem.at(where) for problem in error.problems]
        raise RecordError(problems, error.row) from None
