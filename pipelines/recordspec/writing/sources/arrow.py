"""Arrow tables as a source, and typed Arrow columns as values of features, without a Python object for
each cell where possible.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, SpecError
from recordspec.locations import Location, is_below, joined, resolved
from recordspec.schema.arrow_values import combined, from_arrow, is_date, item_type, takes_dates
from recordspec.schema.encoder import refusal
from recordspec.schema.features import Feature
from recordspec.schema.media import file_of
from recordspec.schema.schema import Schema
from recordspec.schema.values import BadValue
from recordspec.wire.arrays import (
    is_arrow,
    numbers_array,
    present_in,
    to_numpy,
)
from recordspec.writing.sources import base
from recordspec.writing.sources.base import (
    EXACT,
    PLACE_OF_TEXT,
    Batches,
    Columns,
    by_feature,
    check_names,
    check_once,
    converted,
    even_ranges,
    is_left_out,
)
from recordspec.writing.sources.class_names import array_types_in, class_names_in, named
from recordspec.writing.sources.objects import column_of, names_in, plain_table, plain_types


def is_table(rows: Any) -> bool:
    """Whether a value is a table, a record batch, or a reader of tables or batches."""
    return _is_arrows(rows) and type(rows).__name__ in ("Table", "RecordBatch", "RecordBatchReader")


def polars_to_arrow(values: Any, *path: str) -> Any:
    """A Polars frame or series as an Arrow table or array. Raises SpecError for a type that Arrow lacks."""
    try:
        return values.to_arrow()
    except (arrow().ArrowException, ValueError) as error:
        got = str(error).splitlines()[0]
        raise SpecError(Problem(path=("rows", *path), expected="types that Arrow has", got=got)) from None


def _is_arrows(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pyarrow"


def check_types(schema: Schema, types: Mapping[str, Any], where: str = "") -> None:
    """Raises SpecError for every feature whose column has a type other than number, text or list."""
    problems = [
        Problem(where=where, path=(name,), expected=expected, got=str(types[name]), hint=hint)
        for name, feature in schema.names.items()
        if name in types and _is_unsupported(types[name]) and feature.value_type.item != "any"
        if not (is_date(types[name]) and takes_dates(feature))
        if not _is_castable(types[name], feature)
        for expected, hint in [_needs(feature)]
    ]
    if problems:
        raise SpecError(problems)


def _is_unsupported(kind: Any) -> bool:
    types, kind = arrow().types, item_type(kind)
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_temporal(kind) or types.is_decimal(kind) or types.is_map(kind))


def _is_castable(kind: Any, feature: Feature) -> bool:
    """Whether `from_arrow` converts decimals, times of day or durations to values of the feature."""
    kind, item = item_type(kind), feature.value_type
    if arrow().types.is_decimal(kind):
        return item.item == "text" or (item.is_number and item.item != "bool")
    counted = arrow().types.is_time(kind) or arrow().types.is_duration(kind)
    return bool(counted) and item.is_number and "int" in item.item and item.date is None


# The dtype of stored values, as messages name it.
_STORED = {"int64": "int64", "float32": "float32", "bytes": "string"}


def _needs(feature: Feature) -> tuple[str, str]:
    """The type of a column that the feature needs, and how to convert times or decimals to it."""
    item, is_list = feature.value_type.item, feature.value_type.shape != ()
    if item == "media":
        return "a column of paths or bytes", ""
    if item == "class":
        return "a column of names or indices", "cast it to string"
    if item == "text":
        return "a column of text", "cast it to string"
    dtype = item if feature.value_type.is_number else _STORED[feature.columns()[-1].storage]
    if "int" in dtype and is_list:
        return f"a column for {dtype}", "cast dates in lists, days to int32 and times to int64"
    if "int" in dtype:
        return f"a column for {dtype}", "`date: days` or `date: seconds` takes dates; cast others to int64"
    return f"a column for {dtype}", "cast it to float64"


def table_batches(
    table: Any,
    wanted: Mapping[str, str],
    schema: Schema,
    folder: Location | None = None,
    forms: Mapping[str, str] | None = None,
) -> Batches:
    """Yields the columns of a table, which are converted once; with paths, yields them in batches.

    Indices of classes are converted by the names in the table's metadata.

    Args:
        table: an Arrow table or record batch.
        wanted: the column of each extra name and of each feature, but for those that all rows lack.
        schema: the schema of the features.
        folder: the folder that paths of images and audio may not leave, if any.
        forms: the form of paths, by feature.
    """
    values = {name: from_arrow(column_of(table, one), schema.names.get(name)) for name, one in wanted.items()}
    class_names = class_names_in(table.schema)
    values |= {
        name: named(values[name], class_names[column], schema.names.get(name))
        for name, column in wanted.items()
        if column in class_names
    }
    lacking = {name: [None] * table.num_rows for name in schema.names if name not in wanted}
    columns = Columns({**values, **lacking}, table.num_rows)
    media = media_in(schema, values)
    if folder is None or not media:
        yield columns
        return

    def with_paths(start: int, stop: int) -> dict[str, Any]:
        part = columns.part(start, stop).values
        return {**part, **paths_below(part, media, folder, forms)}

    yield from converted(columns.rows, with_paths)


def media_in(schema: Schema, columns: Mapping[str, Any]) -> list[str]:
    """The names of features that accept files, and whose column may have paths."""
    return [
        name
        for name, values in columns.items()
        if isinstance(values, list) and (feature := schema.names.get(name)) is not None
        if feature.value_type.item == "media"
        or (feature.traits.takes_files and any(isinstance(value, str) for value in values))
    ]


def paths_below(
    columns: Mapping[str, Any],
    names: Iterable[str],
    folder: Location,
    forms: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The columns with the given names, with their paths below `folder`; `forms` is the option `media`.

    Raises RecordError for the first row with a path outside of the folder.
    """
    forms = forms or {}
    return by_feature(names, lambda name: inside(columns[name], folder, forms.get(name)))


def inside(values: Any, folder: Location, form: str | None = None) -> Any:
    """Converts texts, also in lists, to paths relative to `folder`; other values are returned unchanged.

    Args:
        form: a path with `{}` in place of the text; None for the text itself.

    Raises BadValue for the first path that leaves the folder.
    """
    home = resolved(folder)
    listed = isinstance(values, list)
    return [_inside(row, one, folder, home, form) for row, one in enumerate(values)] if listed else values


def _inside(row: int, value: Any, folder: Location, home: Location, form: str | None) -> Any:
    value = file_of(value)
    if isinstance(value, list):
        return [_inside(row, item, folder, home, form) for item in value]
    if not isinstance(value, str):
        return value
    value = value if form is None else form.replace(PLACE_OF_TEXT, value)
    got = f"`{value}`"
    try:
        path = None if "\0" in value else resolved(joined(home, value))
    except SpecError as error:
        path, got = None, error.problems[0].got
    if path is None or not is_below(path, home):
        raise BadValue(row, f"a path in {folder}", got)
    return path


def whole_numbers(values: Any, feature: Feature | None) -> Any:
    """Converts Arrow floats with missing values to integers, if the feature takes no floats.

    Numbers that are not whole, or may have lost a digit, stay floats, in a list, and the feature refuses
    them.
    """
    if not values.null_count or not arrow().types.is_floating(values.type):
        return values
    if isinstance(values, arrow().ChunkedArray):
        values = combined(values)
    if feature is None or refusal(feature, float("nan")) is None:
        return values
    present = present_in(values)
    numbers = np.where(present, to_numpy(values), 0)
    wrong = (numbers % 1 != 0) | (np.abs(numbers, dtype=np.float64) >= EXACT)
    if not wrong.any():
        return numbers_array(numbers.astype(np.int64), present)
    cells = zip(numbers.tolist(), wrong.tolist(), present.tolist(), strict=True)
    return [(cell if is_wrong else int(cell)) if here else None for cell, is_wrong, here in cells]


class TableRows:
    """The rows of an Arrow table or record batch, or of a reader, which can be read only once."""

    def __init__(self, table: Any) -> None:
        self.rows: int | None = getattr(table, "num_rows", None)
        self.notes: list[str] = []
        is_batch = type(table).__name__ == "RecordBatch"
        self._table = arrow().Table.from_batches([table]) if is_batch else table
        self.class_names = class_names_in(table.schema)
        self.array_types = array_types_in(table.schema)
        self._left_out: frozenset[str] = frozenset()

    def identity(self) -> Any:
        return None

    def without(self, names: Collection[str]) -> TableRows:
        """The rows without the given columns."""
        made = copy(self)
        made._left_out = self._left_out.union(names)
        return made

    def batches(self) -> Iterator[Any]:
        """The rows in record batches; a reader can be read only once."""
        table, self._table = self._table, self._table if self.rows is not None else None
        yield from table.to_batches() if self.rows is not None else table

    def place(self, row: int) -> str:
        return f"row {row}"

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[TablePart]:
        table = self._table
        if table is None:
            hint = "give another, or the table"
            raise SpecError(
                Problem(path=("rows",), expected="a reader from its start", got="one at its end", hint=hint)
            )
        known = {*schema.names, *extra}
        check_once(names_in(table.schema, known))
        types = plain_types(table.schema, known)
        fields = [
            (name, kind) for name, kind in types.items() if not is_left_out(name, self._left_out, known)
        ]
        check_table(schema, extra, arrow().schema(fields))
        names = [name for name, _ in fields]
        if self.rows is None:
            self._table, first = None, 0
            for batches in _gathered(table):
                part = plain_table(arrow().Table.from_batches(batches), known).select(names)
                yield TablePart(first=first, table=part)
                first += part.num_rows
            return
        table = _with_whole_numbers(plain_table(table, known).select(names), schema)
        for start, stop in even_ranges(self.rows, table.nbytes // max(1, self.rows)):
            yield TablePart(first=start, table=table.slice(start, stop - start))


def _with_whole_numbers(table: Any, schema: Schema) -> Any:
    """Converts float columns with missing values to integers, as `whole_numbers` does for a pandas frame.

    The whole table is converted at once, since a part of it may have no missing value.
    """
    pyarrow = arrow()
    for place, name in enumerate(table.column_names):
        column, feature = table.column(place), schema.names.get(name)
        if column.null_count and pyarrow.types.is_floating(column.type):
            whole = whole_numbers(column, feature)
            if is_arrow(whole) and pyarrow.types.is_integer(whole.type):
                table = table.set_column(place, name, whole)
    return table


def _gathered(batches: Any) -> Iterator[list[Any]]:
    """Groups record batches in lists of about `PART_BYTES`."""
    some: list[Any] = []
    size = 0
    for batch in batches:
        if some and size + batch.nbytes > base.PART_BYTES:
            yield some
            some, size = [], 0
        some.append(batch)
        size += batch.nbytes
    if some:
        yield some


@dataclass(frozen=True, eq=False)
class TablePart:
    """Consecutive rows of a table, from row `first` on."""

    first: int
    table: Any

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        return table_batches(self.table, {name: name for name in self.table.schema.names}, schema)

    def place(self, row: int) -> str:
        return f"row {self.first + row}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored_part, (self.first, base.to_ipc(self.table))


def _restored_part(first: int, data: bytes) -> TablePart:
    return TablePart(first, base.from_ipc(data))


def check_table(schema: Schema, extra: tuple[str, ...], columns: Any) -> None:
    """Raises SpecError if the features do not take the columns (an Arrow schema)."""
    check_once(columns.names)
    check_names(schema, extra, columns.names)
    check_types(schema, {field.name: field.type for field in columns})
