"""Exports records to a file of another format, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError, StoreError, nearest, one_of
from recordspec.inspect.columns import keys_of, values_by_kind, with_values
from recordspec.inspect.export_writers import (
    WRITERS,
    ColumnType,
    ColumnTypes,
    ExportColumns,
    JsonLinesWriter,
    Writer,
    type_of,
)
from recordspec.inspect.feature_names import SEQUENCE, FeatureKey, FeatureNames, class_name_strings
from recordspec.inspect.query import Query
from recordspec.inspect.scan import RowBatch, Scanner, check_readable
from recordspec.locations import Location, output_file
from recordspec.progress import Progress
from recordspec.schema.table_columns import nested_array
from recordspec.store.expand import Files
from recordspec.wire.arrays import (
    ArrowArray,
    are_text,
    counts_of,
    flat_of,
    is_list,
    items_of,
    list_array,
    offsets,
    present_in,
    storage_of,
    values_array,
)
from recordspec.wire.record_batch import RecordBatch

if TYPE_CHECKING:
    from recordspec.schema.features import Feature
    from recordspec.wire.columns import Section

# The values of some rows, with their type there.
TypedArray = tuple[ColumnType, ArrowArray]
TypedColumns = dict[str, TypedArray]

# Records may each have a key of their own.
_MOST_COLUMNS = 4096
# The dtype of a column for numbers of dtypes that Arrow or NumPy has no bytes of; it holds them exactly.
_EXPORTED = {"bool": "uint8", "float16": "float32", "bfloat16": "float32"}
# In each column a missing row takes 17 bytes, too.
_MOST_CELLS = 1 << 23


@dataclass(frozen=True, kw_only=True)
class Exported:
    """An exported file: its rows, columns and bytes."""

    file: str
    rows: int
    columns: tuple[str, ...]
    bytes: int


def export(
    files: Files,
    out: Location,
    query: Query | None = None,
    *,
    limit: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Writes records to a file in the format of its suffix.

    A column has single values if every record with the key has one, else lists; missing values are
    null. Bytes are text if all of them are UTF-8. With a schema, in the query or beside the files, the
    columns are its features, with the values of rows: boxes are a list of lists. Records are written while
    they are read, and again only if a later record changes the type of a column.

    Args:
        files: paths, folders or patterns. Blocks are unpacked.
        out: FILE.jsonl, .csv or .parquet.
        query: the selected records and columns.
        limit: the largest number of records.
        force: replaces the file if it exists.
        progress: receives the number of records and bytes.

    Raises RecordError for records that are not Examples, have lists of two kinds in one column, or are none
    of the schema; SpecError for values that the format cannot represent, or that no source reads from it;
    StoreError if there are no files, they change meanwhile, or `out` exists or cannot be written;
    MissingExtra without pyarrow, for csv and parquet.
    """
    query, progress = query or Query(), progress or Progress(show=False)
    writer_type = _writer(out)
    writer_type.check({})  # before anything is read
    scanner = Scanner(files, query.spec)
    scanner.require_schema()
    records = _Records(scanner, query, limit)
    writer_type.check(records.names.given)
    with output_file(out, force=force) as begun, progress:
        progress.begin("exporting", None)
        names = records.names
        types = dict.fromkeys(records.query.columns, ColumnType()) | names.declared | names.given
        types, written = _write(records, writer_type, begun, types, progress)
        if not written:
            progress.begin("again, with final types", None)
            _write(records, writer_type, begun, types, progress, final=True)
        if records.rows and not types and writer_type is not JsonLinesWriter:
            got, hint = f"{records.rows:,} records that have none", "jsonl holds them"
            raise SpecError(Problem(path=("out",), expected="features to export", got=got, hint=hint))
    columns = tuple(types)
    return Exported(file=str(out), rows=records.rows, columns=columns, bytes=out.stat().st_size)


def _writer(out: Location) -> type[Writer]:
    if out.suffix not in WRITERS:
        expected, hint = f"a name that ends in {one_of(WRITERS)}", nearest(out.suffix, WRITERS)
        raise SpecError(Problem(path=("out",), expected=expected, got=f"`{out.name}`", hint=hint))
    return WRITERS[out.suffix]


class _Records:
    """The records that match a query, a batch at a time. Raises SpecError for unknown names."""

    def __init__(self, scanner: Scanner, query: Query, limit: int | None) -> None:
        self._scanner, self._limit = scanner, limit
        # what lies beside the files names features and classes as a given spec does
        self.query = query = replace(query, spec=query.spec or scanner.schema, stored=True)
        keys = query.check(scanner, () if query.spec is None else query.spec.names)
        self.names = ColumnNames(query, keys)
        self.rows = 0
        self.columns = 0

    def batches(self, progress: Progress) -> Iterator[tuple[RowBatch, RecordBatch]]:
        self.rows = 0
        for batch in self.query.batches(self._scanner):
            if not len(batch):
                continue
            if self._limit is not None and self.rows + len(batch) > self._limit:
                batch = batch.first(self._limit - self.rows)
            self.rows += len(batch)
            for piece, decoded in self._pieces(batch):
                check_readable(decoded, piece)
                yield piece, decoded
                progress.advance(len(piece), piece.bytes)
            if self.rows == self._limit:
                return

    def _pieces(self, batch: RowBatch) -> Iterator[tuple[RowBatch, RecordBatch]]:
        """A batch, or pieces of it with a bounded number of cells: every column has one for each row."""
        chosen = self.query.columns
        decoded = batch.decode(keys=self.query.names.keys_of(chosen) if chosen else None)
        columns = max(self.columns, len(decoded.features) + len(decoded.sequence))
        if len(batch) == 1 or len(batch) * columns <= _MOST_CELLS:
            yield batch, decoded
            return
        for half in np.array_split(np.arange(len(batch)), 2):
            yield from self._pieces(batch.take(half))


def _write(
    records: _Records,
    writer_type: type[Writer],
    path: Path,
    types: ColumnTypes,
    progress: Progress,
    *,
    final: bool = False,
) -> tuple[dict[str, ColumnType], bool]:
    """Writes all records, of which `types` are known so far. Returns the types of all, and whether all were
    written, with these types from the start. Raises StoreError if `final` types change.
    """
    chosen = records.query.columns
    writer: Writer | None = None
    with ExitStack() as stack:
        for batch, decoded in records.batches(progress):
            columns = columns_of(batch, decoded, records.names, types)
            known, types = types, ordered(with_columns(types, columns), chosen)
            if final and types != known:
                expected, got = "files that do not change", "other records when they were read again"
                raise StoreError(Problem(where=str(batch.path), expected=expected, got=got))
            records.columns = len(types)
            writer_type.check(types)
            writer = writer or stack.enter_context(closing(writer_type(path, types)))
            if types == writer.types:
                writer.write(_all_columns(columns, types, records.names, len(batch)), len(batch))
        if writer is None:  # then the first records of the files name the columns
            first = dict.fromkeys(records.names.first, ColumnType())
            types = ordered(first | dict(types) | records.names.given, chosen)
            writer = stack.enter_context(closing(writer_type(path, types)))
        if types == writer.types:
            writer.finish()
    return dict(types), types == writer.types


def _all_columns(columns: TypedColumns, types: ColumnTypes, names: ColumnNames, rows: int) -> ExportColumns:
    """All columns, also those that are missing in these rows."""
    of_file: ExportColumns = {}
    for name, type_ in types.items():
        here, array = columns.get(name, (type_, None))
        array = arrow().nulls(rows) if array is None or here.steps != type_.steps else type_.shaped(array)
        if name in names.empty:
            array = list_array(values_array(flat_of(array)), offsets(counts_of(array)))
        of_file[name] = array
    return of_file


class ColumnNames:
    """The names of columns: of the features of the schema, if there is one, and of other keys. A feature list
    with the name of a feature is prefixed.

    Which ones are is decided before the records are read, by the query and the keys of the first records.

    Attributes:
        classes: the names of classes, by the key that holds their indices.
        placed: the features whose values `restored_columns` makes, each with its section.
        given: their types, by column. What is stored under their keys is in no other column.
        declared: the types of the other features, as far as the schema tells: lists where each has one item,
            dates, and encoded media, which are no text even if their bytes are UTF-8.
        empty: the columns of features of which a record without the key has an empty list, as they are read.
    """

    def __init__(self, query: Query, keys: Iterable[FeatureKey]) -> None:
        self.query = query
        self.placed: list[tuple[Section, Feature]] = []
        self.given: dict[str, ColumnType] = {}
        self.declared: dict[str, ColumnType] = {}
        self.empty: set[str] = set()
        self._parts: set[FeatureKey] = set()
        names: dict[FeatureKey, str] = {}
        features = {} if query.spec is None else query.spec.names
        for section, feature in () if query.spec is None else query.spec.placed:
            key = (section == "sequence", feature.stored)
            if query.columns and feature.name not in query.columns:
                if SEQUENCE + feature.name in query.columns and key[0]:
                    names[key] = feature.name
                continue
            for part in (column.key for column in feature.columns() if column.key not in features):
                if part in query.columns:
                    expected, got = "a feature or its stored keys", f"`{feature.name}` and `{part}`"
                    raise SpecError(Problem(path=("columns",), expected=expected, got=got))
            names[key] = feature.name
            self._add(section, feature)
        self._names = FeatureNames(names=names)
        self.classes = {key: known for key, known in query.names.classes.items() if key in names}
        keys = [key for key in keys if key not in self._parts]
        in_rows = {self._names.name(key) for key in keys if not key[0]}
        prefixed = {name for name in query.columns if name.startswith(SEQUENCE)}
        self._in_both = in_rows | {name.removeprefix(SEQUENCE) for name in prefixed}
        self.first = tuple(name for name in map(self.column, keys) if name is not None)

    def _add(self, section: Section, feature: Feature) -> None:
        in_steps = section == "sequence" and not feature.spans_steps
        type_ = feature.restored_type
        if type_ is None:
            shape, steps = feature.value_type.shape, section == "sequence"
            single = len(shape) != 1 or (steps and not in_steps)
            self.declared[feature.name] = ColumnType(
                single=single,
                steps=steps,
                date=feature.value_type.date,
                text=feature.value_type.item != "media",  # text is a path for them
            )
            if not single and shape == (None,):
                self.empty.add(feature.name)
            return
        self.placed.append((section, feature))
        self._parts |= {(section == "sequence", column.key) for column in feature.columns()}
        levels, index_levels, dtype = len(type_.shape) + in_steps, 0, _EXPORTED.get(type_.item, type_.item)
        if type_.item == "pair":
            column, *indices = feature.columns()
            levels, index_levels, dtype = 1, 1 + (len(indices) > 1), column.storage
        self.given[feature.name] = ColumnType(
            kind=dtype,
            steps=section == "sequence",
            levels=levels,
            index_levels=index_levels,
            samples=feature.value_type.item == "media",
        )

    def column(self, key: FeatureKey) -> str | None:
        """The column of a key; None if the query leaves it out, or it is a part of a feature's value."""
        if key in self._parts:
            return None
        name = self._names.name(key)
        if key[0] and name in self._in_both:
            name = SEQUENCE + name
        return name if not self.query.columns or name in self.query.columns else None


def columns_of(batch: RowBatch, decoded: RecordBatch, names: ColumnNames, known: ColumnTypes) -> TypedColumns:
    """The values of a batch by column. Raises RecordError if the kind of a list changes, or a record is
    none of the schema."""
    by_name = _restored_columns(batch, names)
    for key in keys_of(decoded):
        name = names.column(key)
        if name is None:
            continue
        arrays = values_by_kind(decoded, key)
        if len(arrays) > 1:
            typed = [(type_of(array, steps=key[0]), array) for array in arrays]
            (before, _), other, *_ = sorted(typed, key=_first_row)
            raise _mixed_kinds(before, other, name, batch)
        array = _labelled(arrays[0], names.classes.get(key))
        column = type_of(array, steps=key[0]), array
        if not _has_values(column):
            by_name.setdefault(name, column)
            continue
        if name in known and not known[name].fits(column[0]):
            raise _mixed_kinds(known[name], column, name, batch)
        if name in by_name and _has_values(by_name[name]):
            (before, _), other = sorted((by_name[name], column), key=_first_row)
            raise _mixed_kinds(before, other, name, batch)
        by_name[name] = column
    return by_name


def _has_values(column: TypedArray) -> bool:
    """Whether any row has a value."""
    return bool(column[1].null_count < len(column[1]))


def _first_row(column: TypedArray) -> int:
    """The first row that has a value; of a feature list, the first with a step that has one, if any does."""
    type_, array = column
    if type_.steps and is_list(array) and not type_.index_levels:
        there = present_in(items_of(array))
        if there.any():
            return int(np.searchsorted(np.cumsum(counts_of(array)), np.argmax(there), side="right"))
    return int(np.argmax(present_in(array)))


def _restored_columns(batch: RowBatch, names: ColumnNames) -> TypedColumns:
    """The values of features that are not what is stored under a key. Raises RecordError."""
    if not names.placed:
        return {}
    from recordspec.schema.stored_values import restored_columns

    sequence = any(section != "features" for section, _ in names.placed)
    records = [bytes(batch.data(row)) for row in range(len(batch))]
    try:
        columns = restored_columns(names.placed, records, sequence=sequence)
    except RecordError as error:
        raise error.at(batch.place(error.row or 0)) from None
    return {name: _given(columns[name], type_) for name, type_ in names.given.items()}


def _given(values: list[Any], type_: ColumnType) -> TypedArray:
    """The values of a feature as rows give them, of which the type says whether they are text."""
    if type_.index_levels:
        indices, items = ([None if value is None else value[part] for value in values] for part in (0, 1))
        places = nested_array(indices, type_.index_levels, "int64")
        flat = nested_array(items, type_.levels, type_.kind)
        names = ["indices", "values"]
        array = arrow().StructArray.from_arrays([places, flat], names, mask=places.is_null())
    else:
        array = flat = nested_array(values, type_.levels, type_.kind)
    for _ in range(type_.levels):
        flat = items_of(flat)
    return replace(type_, text=type_.kind != "bytes" or are_text(flat)), array


def _mixed_kinds(before: ColumnType, column: TypedArray, name: str, batch: RowBatch) -> RecordError:
    """The error of a column that has lists of two kinds."""
    hint, (later, _), row = "", column, _first_row(column)
    if before.steps != later.steps:
        prefixed = f"`{SEQUENCE}{name}` among the columns selects the feature list"
        hint = "choose other columns" if name.startswith(SEQUENCE) else prefixed
    problem = Problem(path=(name,), expected=f"{before}, as in records before", got=str(later), hint=hint)
    return RecordError(problem.at(batch.place(row)), row)


def _labelled(array: ArrowArray, classes: tuple[str, ...] | None) -> ArrowArray:
    """The values, with class names in place of indices."""
    if classes is None or storage_of(array) != "int64":
        return array
    return with_values(array, lambda indices: class_name_strings(indices, classes))


def with_columns(types: ColumnTypes, columns: TypedColumns) -> dict[str, ColumnType]:
    """The types of these columns and of those before."""
    merged = dict(types)
    for name, (type_, _) in columns.items():
        merged[name] = merged[name].joined(type_) if name in merged else type_
    if len(merged) > _MOST_COLUMNS:
        expected = f"at most {_MOST_COLUMNS:,} features to export"
        raise SpecError(Problem(path=("columns",), expected=expected, got="more", hint="choose some"))
    return merged


def ordered(types: ColumnTypes, columns: tuple[str, ...]) -> dict[str, ColumnType]:
    """The columns in the order of the query; without one, by name, feature lists last."""
    names = columns or sorted(types, key=lambda name: (types[name].steps, name))
    return {name: types[name] for name in names}
