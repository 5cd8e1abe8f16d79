"""The columns of a scan: of features, of the keys of records without a schema, and of the location of
rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, show_shape
from recordspec.executors import Executor
from recordspec.schema.features.audio import Audio
from recordspec.schema.features.box import Box
from recordspec.schema.features.geometry import Pictures
from recordspec.schema.features.image import Image
from recordspec.schema.features.video import Video
from recordspec.schema.row_blocks import Sections, stored_columns
from recordspec.schema.schema import Schema
from recordspec.schema.table_columns import TableColumn
from recordspec.schema.validate import check_structure
from recordspec.store.scan import FIRST, FileRange, RowBatch, Scanner, check_readable, file_ranges
from recordspec.store.scan import scan as scan_file
from recordspec.tables.column_types import (
    ColumnType,
    are_single,
    first_row,
    is_list_type,
    keys_of,
    type_of,
    type_text,
    values_by_kind,
)
from recordspec.tables.feature_names import SEQUENCE, FeatureKey
from recordspec.wire.arrays import (
    ArrowArray,
    counts_of,
    items_of,
    numbers_array,
    offsets,
    present_in,
    storage_of,
)
from recordspec.wire.columns import Place
from recordspec.wire.record_batch import RecordBatch

# The column with a hash of the bytes of each row.
CONTENT = "content"
# Files whose first records determine the columns if there is no schema; evenly spaced from the first to the
# last.
_SAMPLED_FILES = 16
# Fewer large records are read: this many bytes from all files take 0.1 s.
_SAMPLED_BYTES = 1 << 27
# Columns with the location of a row, and with a hash of its bytes; they are available by name only.
PLACES = ("file", "record", "split", CONTENT)
KEY = "key"
# The largest number of rows in a record batch.
MOST_ROWS = 1 << 16


@dataclass(frozen=True, kw_only=True)
class DecodedRows:
    """Rows of a file, and their decoded values.

    Attributes:
        batch: the rows, with their locations.
        records: the keys that the columns need.
        sections: the stored columns of the features, by section and key.
    """

    batch: RowBatch
    records: RecordBatch
    sections: Sections


class ScanColumn(Protocol):
    """A column of a table: its name and type, the features and keys that it is computed from, and its
    values.
    """

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
        """Whether it needs all keys of the rows, not only its own."""

    def array(self, rows: DecodedRows) -> ArrowArray:
        """The values of rows, of `type`. Raises RecordError, with the row, for values of another type."""


@dataclass(frozen=True, kw_only=True)
class FeatureColumn:
    """The values of a feature of the schema; for the key of a row, a struct of several features."""

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
        """The column extended to represent the given rows: its type becomes bytes if some of them are not
        text.
        """
        features = tuple(feature.widened(rows.sections) for feature in self.features)
        return self if features == self.features else replace(self, features=features)

    def joined(self, other: FeatureColumn) -> FeatureColumn:
        """The column of the same features that represents the rows of both."""
        features = tuple(
            replace(one, text=one.text and there.text)
            for one, there in zip(self.features, other.features, strict=True)
        )
        return replace(self, features=features)

    def array(self, rows: DecodedRows) -> ArrowArray:
        arrays = [feature.array(rows.sections) for feature in self.features]
        if len(arrays) == 1:
            return arrays[0]
        return arrow().StructArray.from_arrays(arrays, fields=list(self.type))


@dataclass(frozen=True, kw_only=True)
class KeyColumn:
    """The values under a key of records without a schema.

    Attributes:
        name: the name of the column.
        key: the key of the records.
        form: the type of its values, in all records.
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
        """The column extended to represent the given rows. Raises RecordError for the first row with
        values of another kind.
        """
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
    """The location of each row, or a hash of its bytes.

    Attributes:
        name: the name of the column.
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
        text = rows.batch.split if self.place == "split" else str(rows.batch.path)
        return arrow().repeat(arrow().scalar(text, self.type), len(rows.batch))


@dataclass(frozen=True, kw_only=True)
class TextColumn:
    """A column of lists of labels, converted to lists of text: DuckDB 1 fails if a batch has no label."""

    of: ScanColumn

    @property
    def name(self) -> str:
        return self.of.name

    @property
    def type(self) -> Any:
        return _without_dictionaries(self.of.type)

    @property
    def features(self) -> tuple[TableColumn, ...]:
        return self.of.features

    @property
    def keys(self) -> tuple[str, ...]:
        return self.of.keys

    @property
    def of_whole_rows(self) -> bool:
        return self.of.of_whole_rows

    def array(self, rows: DecodedRows) -> ArrowArray:
        return self.of.array(rows).cast(self.type)


def _without_dictionaries(type_: Any) -> Any:
    pyarrow = arrow()
    if pyarrow.types.is_dictionary(type_):
        return type_.value_type
    if pyarrow.types.is_fixed_size_list(type_):
        return pyarrow.list_(_without_dictionaries(type_.value_type), type_.list_size)
    if is_list_type(type_):
        return pyarrow.large_list(_without_dictionaries(type_.value_type))
    if pyarrow.types.is_struct(type_):
        return pyarrow.struct([(field.name, _without_dictionaries(field.type)) for field in type_])
    return type_


def without_dictionaries(columns: Mapping[str, ScanColumn]) -> dict[str, ScanColumn]:
    """The columns, with lists of labels converted to lists of text."""
    return {
        name: TextColumn(of=column) if "dictionary" in str(column.type) else column
        for name, column in columns.items()
    }


class RowDecoder:
    """Decodes the parts of rows that columns need.

    Args:
        schema: the schema of the rows; None if it is unknown.
        columns: the columns.
        all_keys: whether all other keys are decoded as well.
    """

    def __init__(
        self, schema: Schema | None, columns: Iterable[ScanColumn], *, all_keys: bool = False
    ) -> None:
        columns = list(columns)
        self._schema = schema
        self.features = {feature.name: feature for column in columns for feature in column.features}
        self._stored = [
            (Place(feature.place.section, column.key), column)
            for feature in self.features.values()
            for column in feature.feature.columns()
        ]
        keys = {key for column in columns for key in column.keys}
        self.keys: Collection[str] | None = None if all_keys else keys

    def decode(self, batch: RowBatch) -> DecodedRows:
        """The rows. Raises RecordError, with the row, for one that is none of the schema."""
        schema = self._schema
        if schema is None or not self.features:
            records = batch.decode(keys=self.keys)
            check_readable(records, batch)
        else:
            records = batch.rows.decode(schema.record == "sequence_example", self.keys)
            check_structure(((one.place, one.feature) for one in self.features.values()), records)
        return DecodedRows(
            batch=batch,
            records=records,
            sections=stored_columns(self._stored, records),
        )


def is_picture(column: ScanColumn) -> bool:
    """Whether lists of numbers in a column are the pixels of images."""
    return len(column.features) == 1 and isinstance(column.features[0].feature, Pictures)


def type_words(column: ScanColumn) -> str:
    """The type of values in the words of a schema: `int64`, `label, 3 classes`, `JPEG image`, `boxes`."""
    stored = type_text(column.type)
    if len(column.features) != 1 or column.features[0].decoded:
        return stored
    feature, in_steps = column.features[0].feature, column.features[0].place.in_steps
    type_, classes = feature.value_type, feature.traits.class_names
    if type_.date is not None:
        words = "date" if type_.date == "days" else "time in UTC"
    elif classes:
        sizes = "" if not type_.shape else f" {show_shape(type_.shape)}"
        words = f"label{sizes}, {len(classes):,} class{'es' * (len(classes) != 1)}"
    elif isinstance(feature, (Image, Video, Audio)):
        words = feature.kind if feature.encoding == "raw" else f"{feature.encoding.upper()} {feature.kind}"
    elif isinstance(feature, Box):
        words = "boxes"
    else:
        return stored
    return f"{words}, in steps" if in_steps else words


def schema_of(columns: Iterable[ScanColumn]) -> Any:
    """The names and types of columns, a `pyarrow.Schema`."""
    return arrow().schema([(column.name, column.type) for column in columns])


def record_batch(rows: DecodedRows, columns: Iterable[ScanColumn]) -> Any:
    """The values of columns, a `pyarrow.RecordBatch`. Raises RecordError, with the row."""
    columns = list(columns)
    arrays = [column.array(rows) for column in columns]
    if not arrays:  # otherwise Arrow would not know the number of rows
        empty = arrow().Array.from_buffers(arrow().struct([]), rows.records.rows, [None])
        return arrow().RecordBatch.from_struct_array(empty)
    return arrow().RecordBatch.from_arrays(arrays, schema=schema_of(columns))


@contextmanager
def placed_errors(batch: RowBatch) -> Iterator[None]:
    """Adds the location of the row to a RecordError."""
    try:
        yield
    except RecordError as error:
        where = batch.place(error.row or 0)
        problems = [problem if problem.where else problem.at(where) for problem in error.problems]
        raise RecordError(problems, error.row) from None


def ranges_of(
    files: Iterable[FileRange], columns: Iterable[ScanColumn], executor: Executor | None = None
) -> Iterator[FileRange]:
    """Files, in order; large files in ranges, unless a column numbers rows of blocks, from the start of their
    file. The executor is that of `file_ranges`.
    """
    files = list(files)
    places = {column.place for column in columns if isinstance(column, PlaceColumn)}
    are_numbered = "record" in places and any(file.blocks is not None for file in files)
    return iter(files) if are_numbered else file_ranges(files, executor=executor)


class ColumnReader:
    """Creates record batches of some columns.

    Args:
        columns: the columns to decode.
        schema: the schema of the rows; None if it is unknown.
        projection: the resulting columns: names, or expressions by name; None for all.
        condition: an expression that selects rows; None for all.
        most: the largest number of rows in a record batch.
    """

    def __init__(
        self,
        columns: Sequence[ScanColumn],
        schema: Schema | None,
        projection: list[str] | Mapping[str, Any] | None = None,
        condition: Any = None,
        most: int = MOST_ROWS,
    ) -> None:
        self._columns, self._most = columns, most
        self._projection, self._condition = projection, condition
        self._decoder = RowDecoder(schema, columns)
        self._takes_rows = any(column.of_whole_rows for column in columns)
        self._schema = schema_of(columns)

    @cached_property
    def projected_schema(self) -> Any:
        """The schema of the record batches, a `pyarrow.Schema`."""
        return self._queried(arrow().Table.from_batches([], self._schema)).schema

    def _queried(self, table: Any) -> Any:
        """Applies the projection and the condition to a table."""
        if self._condition is None and not isinstance(self._projection, Mapping):
            # a dataset cannot select a column with a name of Arrow's own, such as `__filename`
            return table if self._projection is None else table.select(self._projection)
        import pyarrow.dataset  # imports pandas, in 0.2 s

        return pyarrow.dataset.InMemoryDataset(table).to_table(
            columns=self._projection, filter=self._condition, use_threads=False
        )

    def narrowed(self, file: FileRange) -> FileRange:
        """The file, restricted to the columns' keys of its blocks."""
        return file if file.blocks is None or self._takes_rows else replace(file, keys=self._decoder.keys)

    def made(self, batch: RowBatch) -> tuple[list[Any], RecordError | None]:
        """The record batches of the rows before the first invalid one, and its error."""
        if not len(batch):
            return [], None
        try:
            return list(self._pieces(batch)), None
        except RecordError as error:
            row = error.row or 0
            before, earlier = self.made(batch.first(row)) if row else ([], None)
            return before, earlier or RecordError(error.problems, row)

    def _pieces(self, batch: RowBatch) -> Iterator[Any]:
        with placed_errors(batch):
            made = record_batch(self._decoder.decode(batch), self._columns)
        yield from self._queried(arrow().Table.from_batches([made])).to_batches(self._most)


def all_columns(scanner: Scanner, *, stored: bool = False) -> dict[str, ScanColumn]:
    """The columns of a table of the files by name, including the columns with the location of rows.

    Args:
        scanner: the scanner of the files.
        stored: whether the keys of the first records are columns as well, with their stored values, unless a
            feature has the same name.
    """
    columns = columns_of(scanner, is_decoded=False, binary=frozenset())
    if stored and scanner.dataset.schema is not None:
        columns = _key_columns(_forms(scanner, None, frozenset())) | columns
    return columns | {
        name: one for name, one in places_of_rows(scanner, columns).items() if name not in columns
    }


def columns_of(scanner: Scanner, *, is_decoded: bool, binary: frozenset[str]) -> dict[str, ScanColumn]:
    """The columns of what records hold, by name."""
    made, schema = dict[str, ScanColumn](), scanner.dataset.schema
    forms = _forms(scanner, schema, binary)
    if schema is None:
        return _key_columns(forms)
    for place, feature in schema._placed:
        form = forms.get((place.in_steps, feature.columns()[0].key))
        text = feature.name not in binary and (form is None or form.text)
        column = TableColumn(place=place, feature=feature, text=text, decoded=is_decoded)
        made[feature.name] = FeatureColumn(name=feature.name, features=(column,))
    return made


def _key_columns(forms: Mapping[FeatureKey, ColumnType]) -> dict[str, ScanColumn]:
    return {name: KeyColumn(name=name, key=key, form=forms[key]) for key, name in _key_names(forms).items()}


def places_of_rows(
    scanner: Scanner, columns: Mapping[str, ScanColumn]
) -> dict[str, PlaceColumn | FeatureColumn]:
    """The columns with the location of rows, by name."""
    places: dict[str, PlaceColumn | FeatureColumn] = {
        name: PlaceColumn(name=name, place=name) for name in PLACES
    }
    of_key = () if scanner.dataset.manifest is None else scanner.dataset.manifest.key
    if of_key and all(name in columns and columns[name].features for name in of_key):
        places[KEY] = FeatureColumn(name=KEY, features=tuple(columns[name].features[0] for name in of_key))
    return places


def _first(file: FileRange, size: int) -> Iterator[RowBatch]:
    """The first readable rows of a file, up to about `size` bytes. Reading the table reports unreadable
    ones.
    """
    left = FIRST
    for item in scan_file(file):
        if isinstance(item, RowBatch):
            yield item.first(left)
            left, size = left - len(item), size - item.bytes
            if left <= 0 or size <= 0:
                return


def _key_names(keys: Iterable[FeatureKey]) -> dict[FeatureKey, str]:
    """The names of columns: a feature list is prefixed if a feature has its name."""
    of_rows = {name for in_steps, name in keys if not in_steps}
    return {
        (in_steps, name): SEQUENCE + name if in_steps and name in of_rows else name for in_steps, name in keys
    }


def _forms(scanner: Scanner, schema: Schema | None, binary: frozenset[str]) -> dict[FeatureKey, ColumnType]:
    """The types of the values under each key, in the first records of some files. With a schema, only for
    keys whose bytes may be text.
    """
    wanted = None
    if schema is not None:
        wanted = {
            column.key
            for _, feature in schema._placed
            for column in feature.columns()[:1]
            if column.storage == "bytes" and feature.value_type.item in ("text", "any", "pair")
        }
        if not wanted:
            return {}
    forms: dict[FeatureKey, ColumnType] = {}
    files = list(scanner.files)
    places = np.unique(np.linspace(0, len(files) - 1, _SAMPLED_FILES).astype(int)).tolist()
    for file in (files[place] for place in places):
        for batch in _first(file, _SAMPLED_BYTES // len(places)):
            records = batch.decode(keys=wanted)
            for key in keys_of(records):
                for array in values_by_kind(records, key):
                    form = type_of(array, steps=key[0])
                    before = forms.get(key, form)
                    forms[key] = before.joined(form) if before.fits(form.kind) else before
    return {
        key: replace(form, text=form.text and key[1] not in binary)
        for key, form in sorted(forms.items(), key=lambda item: (item[0][0], item[0][1]))
    }
