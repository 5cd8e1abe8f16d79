"""Arrow's tables, and its typed columns as the values of features, without a Python object for each cell
where that can be.

Arrow's own ways to NumPy (`to_numpy`, `pyarrow.array`, `to_pandas_dtype`) look for pandas first. That
import takes a quarter of a second in every process of a build, and a Ctrl-C during it is lost:
pyarrow mistakes it for a missing pandas. So arrays are made directly from Arrow's buffers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, SpecError
from recordspec.locations import Location, is_below, location, resolved
from recordspec.spec.encoder import Gapped, refusal
from recordspec.spec.features import Feature
from recordspec.spec.lists import Lists
from recordspec.spec.media import file_of
from recordspec.spec.schema import Schema
from recordspec.spec.values import BadValue
from recordspec.wire.strings import Strings
from recordspec.writing.sources import base
from recordspec.writing.sources.base import (
    EXACT,
    Batches,
    Columns,
    by_feature,
    check_names,
    check_once,
    converted,
    even_ranges,
)
from recordspec.writing.sources.class_names import class_names_in, named


def is_array(values: Any) -> bool:
    """Whether this is an array of Arrow's; pyarrow is not loaded to find out."""
    return _is_arrows(values) and hasattr(values, "null_count") and hasattr(values, "type")


def is_table(rows: Any) -> bool:
    """Whether this is a table, a record batch, or a reader of these."""
    return _is_arrows(rows) and type(rows).__name__ in ("Table", "RecordBatch", "RecordBatchReader")


def polars_to_arrow(values: Any, *path: str) -> Any:
    """A frame or a series of Polars as a table or an array. Raises SpecError for a type that Arrow lacks."""
    try:
        return values.to_arrow()
    except (arrow().ArrowException, ValueError) as error:
        got = str(error).splitlines()[0]
        raise SpecError(Problem(path=("rows", *path), expected="types that Arrow has", got=got)) from None


def _is_arrows(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pyarrow"


def from_arrow(column: Any, feature: Feature | None = None) -> Any:
    """An Arrow array as the values of a feature: an array, `Strings`, `Lists`, or a list; null is missing.

    Without a feature, text is Python's.
    """
    array = _plain(column)
    if not array.null_count:
        return _values(array, feature)
    return Gapped(_values(array.filter(array.is_valid()), feature), is_present(array))


def _plain(column: Any) -> Any:
    """One array of a plain type: chunks are concatenated, dictionaries decoded."""
    pyarrow = arrow()
    if isinstance(column, pyarrow.ChunkedArray):
        chunks = [_plain(chunk) for chunk in column.chunks]
        if len(chunks) == 1:
            return chunks[0]
        return pyarrow.concat_arrays(chunks) if chunks else _plain(pyarrow.array([], column.type))
    if isinstance(column, pyarrow.ExtensionArray):
        return _plain(column.storage)
    if isinstance(column, pyarrow.DictionaryArray):
        return _plain(column.dictionary_decode())
    if "view" in str(column.type):  # which can be filtered by few functions
        plain = {"string_view": pyarrow.large_string(), "binary_view": pyarrow.large_binary()}
        return column.cast(plain[str(column.type)]) if str(column.type) in plain else column
    return column


def _values(array: Any, feature: Feature | None) -> Any:
    """The values of an array without nulls."""
    kind = array.type
    if _is_number(kind):
        return to_numpy(array)
    if _is_date(kind) and _takes_dates(feature):
        return to_dates(array)
    if _is_text(kind) and _takes_text(feature):
        return to_strings(array)
    if is_list(kind) and _takes_lists(feature):
        return _lists(array, feature)
    if is_file(kind) or (is_list(kind) and is_file(kind.value_type)):
        return _files_of(array.to_pylist())
    if is_list(kind) and feature is not None and feature.value_type.item == "media":
        return _samples(array)
    return array.to_pylist()


def is_file(kind: Any) -> bool:
    """Whether this is how Hugging Face stores images and sounds: as bytes, or else as a path."""
    return bool(arrow().types.is_struct(kind)) and {field.name for field in kind} == {"bytes", "path"}


def _files_of(value: Any) -> Any:
    return [_files_of(one) for one in value] if isinstance(value, list) else file_of(value)


def _is_number(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_text(kind: Any) -> bool:
    types = arrow().types
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return any(is_one(kind) for is_one in texts)


def _is_date(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_date(kind) or types.is_timestamp(kind))


def _takes_dates(feature: Feature | None) -> bool:
    return feature is not None and feature.value_type.date is not None


def to_dates(array: Any) -> Any:
    """Dates or times without nulls as datetime64 `[n]`; those with a time zone in UTC."""
    pyarrow = arrow()
    kind = array.type
    if not pyarrow.types.is_timestamp(kind):
        kind = pyarrow.timestamp("s")  # date64 has milliseconds, all of whole days
        array = array.cast(kind)
        return to_numpy(array.view(pyarrow.int64())).view("datetime64[s]").astype("datetime64[D]")
    return to_numpy(array.view(pyarrow.int64())).view(f"datetime64[{kind.unit}]")


def is_list(kind: Any) -> bool:
    """Whether this is a type of lists."""
    types = arrow().types
    return any(is_one(kind) for is_one in (types.is_list, types.is_large_list, types.is_fixed_size_list))


def item_type(kind: Any) -> Any:
    """The type of single values, and of items of lists."""
    while is_list(kind):
        kind = kind.value_type
    return kind


def _takes_text(feature: Feature | None) -> bool:
    return feature is not None and feature.value_type.item in ("text", "class")


def _takes_lists(feature: Feature | None) -> bool:
    """Whether `encode` takes lists end to end, as `Lists` or as an array of one more dimension."""
    return _takes_text(feature) or (feature is not None and feature.value_type.is_number)


def _lists(array: Any, feature: Feature | None) -> Any:
    """Lists of one length as an array with one more dimension."""
    inner = _plain(array.flatten())
    if inner.null_count:  # to be named by its feature
        return array.to_pylist()
    flat = _values(inner, feature)
    if isinstance(flat, list):
        return array.to_pylist()
    lengths = to_numpy(arrow().compute.list_value_length(array)).astype(np.int64)
    if isinstance(flat, np.ndarray) and len(lengths) and bool((lengths == lengths[0]).all()):
        return flat.reshape(len(lengths), int(lengths[0]), *flat.shape[1:])
    return Lists(flat, lengths)


def _samples(array: Any) -> list[Any]:
    """Pixels or samples, an array for each, or lists of arrays of different shapes; Arrow
    knows their dtype."""
    kind = item_type(array.type)
    if not _is_number(kind):
        return list(array.to_pylist())
    dtype = _dtype_of(kind)
    return [_array_of(value, dtype) for value in array.to_pylist()]


def _array_of(value: Any, dtype: np.dtype[Any]) -> Any:
    try:
        return np.array(value, dtype)
    except ValueError:  # of several sounds or images, which may differ in size
        return [_array_of(one, dtype) for one in value] if isinstance(value, list) else value


def check_types(schema: Schema, types: Mapping[str, Any], where: str = "") -> None:
    """Raises SpecError for every feature whose column has a type that is neither number, text nor list."""
    problems = [
        Problem(where=where, path=(name,), expected=expected, got=str(types[name]), hint=hint)
        for name, feature in schema.names.items()
        if name in types and _is_unsupported(types[name]) and feature.value_type.item != "any"
        if not (_is_date(types[name]) and _takes_dates(feature))
        for expected, hint in [_needs(feature)]
    ]
    if problems:
        raise SpecError(problems)


def _is_unsupported(kind: Any) -> bool:
    types, kind = arrow().types, item_type(kind)
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_temporal(kind) or types.is_decimal(kind) or types.is_map(kind))


def _needs(feature: Feature) -> tuple[str, str]:
    """The type of a column for the feature, and how to convert times or decimals to it."""
    item = feature.value_type.item
    if item == "media":
        return "a column of paths or bytes", ""
    if item == "class":
        return "a column of names or indices", "cast it to string"
    if item == "text":
        return "a column of text", "cast it to string"
    dtype = item if feature.value_type.is_number else str(getattr(feature, "dtype", "int64"))
    if "int" in dtype:
        return f"a column for {dtype}", "`date: days` or `date: seconds` takes dates; cast others to int64"
    return f"a column for {dtype}", "cast it to float64"


def table_batches(
    table: Any, wanted: Mapping[str, str], schema: Schema, folder: Location | None = None
) -> Batches:
    """Yields the columns of a table, which are converted once; then paths are read in batches.

    Indices of classes are converted by the names in the table's metadata.

    Args:
        table: an Arrow table or record batch.
        wanted: the column of each feature, and of each extra name.
        schema: the schema of the features.
        folder: the folder, if any, of paths of images and sounds, which they may not leave.
    """
    values = {name: from_arrow(table.column(one), schema.names.get(name)) for name, one in wanted.items()}
    class_names = class_names_in(table.schema)
    values |= {
        name: named(values[name], class_names[one], schema.names.get(name))
        for name, one in wanted.items()
        if one in class_names
    }
    columns = Columns(values, table.num_rows)
    media = media_in(schema, values)
    if folder is None or not media:
        yield columns
        return

    def with_paths(start: int, stop: int) -> dict[str, Any]:
        part = columns.part(start, stop).values
        return {**part, **paths_below(part, media, folder)}

    yield from converted(columns.rows, with_paths)


def media_in(schema: Schema, names: Iterable[str]) -> list[str]:
    """The names of features that accept files."""
    features = schema.names
    return [name for name in names if name in features and features[name].value_type.item == "media"]


def paths_below(columns: Mapping[str, Any], names: Iterable[str], folder: Location) -> dict[str, Any]:
    """The columns of these names, with their paths below `folder`.

    Raises RecordError for the first row with a path outside of it.
    """
    return by_feature(names, lambda name: inside(columns[name], folder))


def inside(values: Any, folder: Location) -> Any:
    """Converts texts, also in lists, to paths relative to `folder`; other values do not change.

    Raises BadValue for the first that leaves the folder.
    """
    if isinstance(values, Gapped):
        try:
            return Gapped(inside(values.values, folder), values.present)
        except BadValue as bad:
            raise bad.moved(int(np.flatnonzero(values.present)[bad.index])) from None
    home = resolved(folder)
    listed = isinstance(values, list)
    return [_inside(row, one, folder, home) for row, one in enumerate(values)] if listed else values


def _inside(row: int, value: Any, folder: Location, home: Location) -> Any:
    value = file_of(value)
    if isinstance(value, list):
        return [_inside(row, one, folder, home) for one in value]
    if not isinstance(value, str):
        return value
    got = f"`{value}`"
    try:
        path = None if "\0" in value else location(value)
    except SpecError as error:
        path, got = None, error.problems[0].got
    if isinstance(path, Path):
        path = resolved(home / value)
    if path is None or not is_below(path, home):
        raise BadValue(row, f"a path in {folder}", got)
    return path


_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}


def _dtype_of(kind: Any) -> np.dtype[Any]:
    """NumPy's dtype for Arrow's type of numbers or truth values."""
    return np.dtype(_FLOATS.get(str(kind), str(kind)))


def to_numpy(array: Any) -> Any:
    """An array of numbers or truth values as NumPy's, anything where it has nulls; numbers are a view."""
    import pyarrow

    if pyarrow.types.is_boolean(array.type):
        return _truths(array)
    dtype = _dtype_of(array.type)
    data = array.buffers()[1]
    values = np.frombuffer(b"" if data is None else data, np.uint8)
    return values[: (len(values) // dtype.itemsize) * dtype.itemsize].view(dtype)[_extent(array)]


def is_present(array: Any) -> Any:
    """bool, a value of the array each: whether it is no null."""
    return _truths(array.is_valid())


def kept(array: Any, where: Any) -> Any:
    """The values of an Arrow array where the bools of `where` are true."""
    import pyarrow

    bits = pyarrow.py_buffer(np.packbits(where, bitorder="little"))
    return array.filter(pyarrow.Array.from_buffers(pyarrow.bool_(), len(where), [None, bits]))


def to_strings(array: Any) -> Strings:
    """An array of text or bytes without nulls, without a copy of the text."""
    _, places, data = array.buffers()
    if data is None or not len(array):
        return Strings(b"", np.zeros(len(array) + 1, np.int64))
    width = np.int64 if str(array.type).startswith("large_") else np.int32
    ends = np.frombuffer(places, width)[array.offset : array.offset + len(array) + 1]
    text = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    return Strings(text, (ends - ends[0]).astype(np.int64))


def _truths(array: Any) -> Any:
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), bool)
    stop = array.offset + len(array)
    return np.unpackbits(np.frombuffer(data, np.uint8), count=stop, bitorder="little")[array.offset :].view(
        bool
    )


def _extent(array: Any) -> slice:
    return slice(array.offset, array.offset + len(array))


def whole_numbers(column: Gapped, feature: Feature | None) -> Gapped:
    """A column of floats with gaps as integers, if the feature takes no floats. Those that are not whole, or
    may have lost a digit, stay floats, which the feature refuses."""
    kept = column.values
    if not is_floats(kept) or feature is None or refusal(feature, float("nan")) is None:
        return column
    wrong = (kept % 1 != 0) | (np.abs(kept, dtype=np.float64) >= EXACT)
    if not wrong.any():
        return Gapped(kept.astype(np.int64), column.present)
    cells = zip(kept.tolist(), wrong.tolist(), strict=True)
    return Gapped([cell if is_wrong else int(cell) for cell, is_wrong in cells], column.present)


def is_floats(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind == "f" and values.ndim == 1


class TableRows:
    """The rows of an Arrow table or record batch, or of a reader of these, which can be read once."""

    def __init__(self, table: Any) -> None:
        self.rows: int | None = getattr(table, "num_rows", None)
        self.notes: list[str] = []
        is_batch = type(table).__name__ == "RecordBatch"
        self._table = arrow().Table.from_batches([table]) if is_batch else table
        self.class_names = class_names_in(table.schema)
        self._left_out: frozenset[str] = frozenset()

    def identity(self) -> Any:
        return None

    def without(self, names: Collection[str]) -> TableRows:
        """The same rows without these columns."""
        made = copy(self)
        made._left_out = self._left_out.union(names)
        return made

    def batches(self) -> Iterator[Any]:
        """The rows in record batches; of a reader, once."""
        table, self._table = self._table, self._table if self.rows is not None else None
        yield from table.to_batches() if self.rows is not None else table

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[TablePart]:
        table = self._table
        if table is None:
            hint = "give another, or the table"
            raise SpecError(
                Problem(path=("rows",), expected="a reader from its start", got="one at its end", hint=hint)
            )
        fields = [one for one in table.schema if one.name not in self._left_out]
        check_table(schema, extra, arrow().schema(fields))
        names = [one.name for one in fields]
        if self.rows is None:
            self._table, first = None, 0
            for batches in _gathered(table):
                part = arrow().Table.from_batches(batches).select(names)
                yield TablePart(first=first, table=part)
                first += part.num_rows
            return
        table = _with_whole_numbers(table.select(names), schema)
        for start, stop in even_ranges(self.rows, table.nbytes // max(1, self.rows)):
            yield TablePart(first=start, table=table.slice(start, stop - start))


def _with_whole_numbers(table: Any, schema: Schema) -> Any:
    """Converts columns of floats with missing values to integers, like `whole_numbers` for a pandas frame.

    The whole table decides: a part of it may have no missing value.
    """
    pyarrow = arrow()
    for place, name in enumerate(table.column_names):
        column, feature = table.column(place), schema.names.get(name)
        if column.null_count and pyarrow.types.is_floating(column.type):
            values = from_arrow(column, feature)
            whole = whole_numbers(values, feature)
            if whole is not values and isinstance(whole.values, np.ndarray):
                table = table.set_column(place, name, column.cast(pyarrow.int64()))
    return table


def _gathered(batches: Any) -> Iterator[list[Any]]:
    """Record batches in lists of about `PART_BYTES`."""
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
    """Rows of a table that follow each other, from row `first` on."""

    first: int
    table: Any

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        return table_batches(self.table, {name: name for name in self.table.schema.names}, schema)

    def place(self, row: int) -> str:
        return f"row {self.first + row}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrow's own pickle of a slice holds the whole; its stream format, the slice alone.
        pyarrow = arrow()
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, self.table.schema) as writer:
            writer.write_table(self.table)
        return _restored, (self.first, sink.getvalue().to_pybytes())


def _restored(first: int, data: bytes) -> TablePart:
    return TablePart(first, arrow().ipc.open_stream(data).read_all())


def check_table(schema: Schema, extra: tuple[str, ...], columns: Any) -> None:
    """Raises SpecError if the columns (an Arrow schema) are not such as the features take."""
    check_once(columns.names)
    check_names(schema, extra, columns.names)
    check_types(schema, {field.name: field.type for field in columns})
