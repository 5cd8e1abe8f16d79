"""Writes Arrow record batches of any schema as JSON Lines, CSV and Parquet."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError, nearest, one_of
from recordspec.locations import Location, output_file
from recordspec.schema.arrow_values import combined, is_date, is_list
from recordspec.schema.dates import DateUnit, iso_texts
from recordspec.schema.values import BASE64
from recordspec.tables.column_types import shortest
from recordspec.wire.arrays import (
    ArrowArray,
    Ints,
    Mask,
    buffer_of,
    bytes_in,
    data_of,
    list_array,
    numbers_array,
    offsets,
    present_in,
    string_scalar,
    strings_array,
    to_binary,
    to_numpy,
    truth_array,
)

_ENCODE = json.JSONEncoder(ensure_ascii=False, default=str).encode
_NULL = b"null"
# The range of absolute values in which both Python and Arrow write floats without an exponent.
_EXPONENT_BELOW, _EXPONENT_FROM = 1e-4, 1e10
# The size of a Parquet row group, which is read at once, and kept in memory until it is written.
_GROUP_BYTES = 64 << 20
# A column of texts is dictionary-encoded if half of its first texts, this many, are repeated: looking for
# repeated texts takes 30 ns per text, and the dictionary makes a file of distinct texts larger.
_REPEATED_OF = 1 << 13
_UNITS: dict[str, DateUnit] = {
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}


class TableWriter:
    """Writes a file of record batches with one schema. The file is complete when the context ends without
    an error.

    Attributes:
        rows: the number of rows that `write_table` has written.
    """

    def __init__(self, path: Path, schema: Any) -> None:
        self.schema, self.rows = schema, 0
        self._file = path.open("wb")  # Arrow cannot open a name that is not UTF-8

    def write(self, batch: Any) -> None:
        """Writes rows. Raises SpecError for values that the format cannot represent."""
        raise NotImplementedError

    def check(self) -> None:
        """Raises RecordError if readers would find other rows in the written file."""

    def _finish(self) -> None:
        """Writes the remaining rows at the end."""

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._finish()
        finally:
            self._file.close()


class JsonLinesWriter(TableWriter):
    """Writes one JSON object per row, which the source `jsonl` reads; see `json_texts`."""

    def write(self, batch: Any) -> None:
        self._file.write(json_lines(batch))


def json_lines(batch: Any) -> memoryview:
    """The rows of a record batch as JSON Lines in UTF-8, each with a final line break; see `json_texts`."""
    names = [_ENCODE(name) for name in batch.schema.names]
    if not names:
        return memoryview(b"{}\n" * int(batch.num_rows))
    return buffer_of(_objects(names, batch.columns, "}\n")).data


def json_texts(array: ArrowArray) -> ArrowArray:
    """The values of an array in JSON, as Python writes it, `large_binary`; null for null.

    A float32 is the shortest number that reads back equal. As in the JSON of TensorFlow Serving, bytes are
    `{"b64": "..."}`, and NaN and infinities are `NaN` and `Infinity`. Dates and times are ISO text, in UTC;
    outside of the years 1 to 9999, which have no ISO text, they are the number of their unit since
    1970-01-01. A map is a list of objects, each with a `key` and a `value`.

    Arrow does the work if its result equals Python's: formatting and joining values in Python takes 0.3 us
    each.
    """
    forms = (texts_of for is_one, texts_of in _FORMS.items() if getattr(arrow().types, is_one)(array.type))
    return next(forms, partial(_encoded, convert=list))(array)


def _join(*pieces: ArrowArray | str) -> ArrowArray:
    """Concatenates pieces element-wise; a `str` is the same in each row. Null if any piece is null."""
    scalars = [string_scalar(piece.encode()) if isinstance(piece, str) else piece for piece in pieces]
    return arrow().compute.binary_join_element_wise(*scalars, string_scalar(b""))


def _where(present: Mask, texts: ArrowArray) -> ArrowArray:
    """The texts, with null for texts that are not present."""
    if present.all():
        return texts
    return arrow().compute.if_else(truth_array(present), texts, arrow().nulls(1, texts.type)[0])


def _objects(names: list[str], arrays: list[ArrowArray], end: str = "}") -> ArrowArray:
    """Objects with members of the given names, which are JSON-encoded already."""
    pieces: list[Any] = []
    for name, array in zip(names, arrays, strict=True):
        texts = json_texts(array)
        pieces += [
            (", " if pieces else "{") + f"{name}: ",
            _or_null(texts),
        ]
    return _join(*pieces, end)


def _or_null(texts: ArrowArray) -> ArrowArray:
    return arrow().compute.coalesce(texts, string_scalar(_NULL)) if texts.null_count else texts


def _items(lists: ArrowArray) -> tuple[ArrowArray, Ints]:
    """The items of all lists, of any Arrow list type, and their number in each list; 0 for null."""
    lengths = arrow().compute.list_value_length(lists)
    counts = to_numpy(lengths.fill_null(0) if lengths.null_count else lengths).astype(np.int64)
    return lists.flatten(), counts


def _lists(array: ArrowArray) -> ArrowArray:
    items, counts = _items(array)
    texts = list_array(_or_null(json_texts(items)), offsets(counts))
    joined = arrow().compute.binary_join(texts, string_scalar(b", "))
    return _where(present_in(array), _join("[", joined, "]"))


def _maps(array: ArrowArray) -> ArrowArray:
    pairs = arrow().struct([("key", array.type.key_type), ("value", array.type.item_type)])
    return _lists(array.cast(arrow().large_list(pairs)))


def _structs(array: ArrowArray) -> ArrowArray:
    fields = [array.field(place) for place in range(array.type.num_fields)]
    if not fields:
        return _where(present_in(array), strings_array([b"{}"] * len(array)))
    return _where(present_in(array), _objects([_ENCODE(field.name) for field in array.type], fields))


def _texts(array: ArrowArray) -> ArrowArray:
    return _quoted(to_binary(array))


def _octets(array: ArrowArray) -> ArrowArray:
    return _encoded(array, lambda some: [{BASE64: base64.b64encode(one).decode()} for one in some])


def _quoted(strings: ArrowArray) -> ArrowArray:
    """Quotes texts; Python encodes only texts with a character that needs escaping."""
    texts = _join('"', strings, '"')
    data, places = data_of(strings)
    odd = np.flatnonzero((data < 0x20) | (data == ord('"')) | (data == ord("\\")))
    if not len(odd):
        return texts
    rows = np.unique(np.searchsorted(places, odd, "right") - 1)
    changed = np.zeros(len(strings), bool)
    changed[rows] = True
    changed &= present_in(strings)
    escaped = [_ENCODE(text.decode()).encode() for text in bytes_in(strings.filter(truth_array(changed)))]
    return arrow().compute.replace_with_mask(texts, truth_array(changed), strings_array(escaped))


def _floats(array: ArrowArray) -> ArrowArray:
    """Floats as Python writes them. Arrow writes the same digits, but other exponents, and `1` for 1.0."""
    pyarrow, present = arrow(), present_in(array)
    numbers = to_numpy(array)
    if numbers.dtype != np.float32:
        numbers = numbers.astype(np.float64)
    sizes = np.abs(numbers)
    texts = to_binary(numbers_array(numbers, present).cast("large_string"))
    with np.errstate(invalid="ignore"):  # for NaN
        whole = (sizes < _EXPONENT_FROM) & (numbers == np.trunc(numbers))
    if whole.any():
        texts = pyarrow.compute.if_else(truth_array(whole), _join(texts, ".0"), texts)
    others = ~((sizes == 0) | ((sizes >= _EXPONENT_BELOW) & (sizes < _EXPONENT_FROM))) & present
    if others.any():
        some = numbers[others]
        python = shortest(some) if some.dtype == np.float32 else some.tolist()
        rest = strings_array([_ENCODE(number).encode() for number in python])
        texts = pyarrow.compute.replace_with_mask(texts, truth_array(others), rest)
    return texts


def _encoded(array: ArrowArray, convert: Callable[[list[Any]], list[Any]]) -> ArrowArray:
    """Values encoded by Python, one by one."""
    present = present_in(array)
    texts = iter([_ENCODE(value).encode() for value in convert(array.drop_null().to_pylist())])
    return _where(present, strings_array([next(texts) if here else b"" for here in present.tolist()]))


def _numbers(array: ArrowArray) -> ArrowArray:
    return to_binary(array.cast("large_string"))


def _dates(array: ArrowArray) -> ArrowArray:
    texts, lost, numbers, _ = _iso(array)
    quoted = _join('"', texts, '"')
    return arrow().compute.if_else(truth_array(lost), _numbers(numbers_array(numbers)), quoted)


def _iso(dates: ArrowArray) -> tuple[ArrowArray, Mask, Ints, DateUnit]:
    """ISO texts of dates or times, in UTC; a mask of the dates without ISO text; their numbers since
    1970-01-01; and the unit of the numbers.
    """
    unit: DateUnit = "days"
    if arrow().types.is_timestamp(dates.type):
        unit, end, integer = _UNITS[dates.type.unit], "Z" * (dates.type.tz is not None), "int64"
    else:
        dates, end, integer = dates.cast("date32"), "", "int32"
    present = present_in(dates)
    numbers = np.where(present, to_numpy(dates.view(integer)), 0).astype(np.int64)
    texts, lost = iso_texts(numbers, unit)
    made = strings_array([(text + end).encode() for text in texts])
    return _where(present, made), lost, numbers, unit


# By the name of the check in `pyarrow.types`.
_FORMS: dict[str, Callable[[ArrowArray], ArrowArray]] = {
    "is_null": lambda array: arrow().nulls(len(array), arrow().large_binary()),
    "is_dictionary": lambda array: json_texts(array.dictionary).take(array.indices),
    **dict.fromkeys(["is_list", "is_large_list", "is_fixed_size_list"], _lists),
    "is_map": _maps,
    "is_struct": _structs,
    **dict.fromkeys(["is_string", "is_large_string"], _texts),
    **dict.fromkeys(["is_binary", "is_large_binary", "is_fixed_size_binary"], _octets),
    "is_floating": _floats,
    **dict.fromkeys(["is_date", "is_timestamp"], _dates),
    **dict.fromkeys(["is_boolean", "is_integer", "is_decimal"], _numbers),
}


class CsvWriter(TableWriter):
    """Writes a CSV file. Dates are ISO text; lists, structs and bytes are JSON."""

    def __init__(self, path: Path, schema: Any) -> None:
        from pyarrow import csv

        super().__init__(path, schema)
        self._writer = csv.CSVWriter(self._file, self._cells(_no_rows(schema)).schema)
        self._gaps = False

    def write(self, batch: Any) -> None:
        self._writer.write_batch(self._cells(batch))
        self._gaps |= any(column.null_count for column in batch.columns)

    def check(self) -> None:
        if self._gaps and len(self.schema) == 1:
            # a row of missing values would be an empty line, which readers skip
            expected, hint = (
                "a value in every record for a csv of one column",
                "choose two, or write jsonl or parquet",
            )
            path = tuple(self.schema.names)
            raise RecordError(Problem(path=path, expected=expected, got="none in some", hint=hint))

    def _finish(self) -> None:
        self._writer.close()

    def _cells(self, batch: Any) -> Any:
        names = batch.schema.names
        arrays = [_cell(name, array) for name, array in zip(names, batch.columns, strict=True)]
        return arrow().RecordBatch.from_arrays(arrays, names)


def _cell(name: str, array: ArrowArray) -> ArrowArray:
    """The values of a column in the form of CSV cells. Raises SpecError for a date that no source reads."""
    types = arrow().types
    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if types.is_nested(array.type) or types.is_interval(array.type) or "binary" in str(array.type):
        return json_texts(array).cast("large_string")
    if not is_date(array.type):
        return array
    texts, lost, numbers, unit = _iso(array)
    if lost.any():
        problem = Problem(
            path=(name,),
            expected="dates from 0001-01-01 to 9999-12-31 for csv",
            got=f"{numbers[lost][0]} {unit} since 1970-01-01",
            hint="choose other columns, or write jsonl or parquet",
        )
        raise SpecError(problem)
    return texts.cast("large_string")


class ParquetWriter(TableWriter):
    """Writes a Parquet file with types that every tool reads: lists of any size, text and bytes.

    pyarrow cannot read files with nulls among fixed-size lists, and Hugging Face's datasets cannot read files
    with dictionaries.
    """

    def __init__(self, path: Path, schema: Any) -> None:
        super().__init__(path, schema)
        self._plain = arrow().schema([(field.name, _plain_type(field.type)) for field in schema])
        self._writer: Any = None
        self._waiting: list[Any] = []
        self._bytes = 0

    def write(self, batch: Any) -> None:
        with _parquet_errors():
            arrays = [
                _of_any_size(array).cast(kind)
                for array, kind in zip(batch.columns, self._plain.types, strict=True)
            ]
        self._waiting.append(arrow().RecordBatch.from_arrays(arrays, schema=self._plain))
        self._bytes += self._waiting[-1].nbytes
        if self._bytes >= _GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        from pyarrow import parquet

        table = arrow().Table.from_batches(self._waiting, self._plain)
        with _parquet_errors():
            if self._writer is None:
                self._writer = parquet.ParquetWriter(self._file, self._plain, use_dictionary=_repeated(table))
            if table.num_rows:
                self._writer.write_table(table, row_group_size=table.num_rows)
        self._waiting, self._bytes = [], 0

    def _finish(self) -> None:
        self._write_group()
        self._writer.close()


@contextmanager
def _parquet_errors() -> Iterator[None]:
    try:
        yield
    except arrow().ArrowException as error:
        expected, hint = "values that parquet holds", "choose other columns, or write jsonl"
        got = str(error).splitlines()[0]
        raise SpecError(Problem(path=("out",), expected=expected, got=got, hint=hint)) from None


def _of_any_size(array: ArrowArray) -> ArrowArray:
    """Converts fixed-size lists to lists of any size, in which null has no items, as after Arrow's cast."""
    if "fixed_size_list" not in str(array.type):
        return array
    if is_list(array.type):
        items, counts = _items(array)
        return list_array(_of_any_size(items), offsets(counts), present_in(array))
    if not arrow().types.is_struct(array.type):
        return array
    fields = [_of_any_size(array.field(place)) for place in range(array.type.num_fields)]
    names = [field.name for field in array.type]
    return arrow().StructArray.from_arrays(fields, names, mask=array.is_null())


def _plain_type(kind: Any) -> Any:
    pyarrow = arrow()
    types = pyarrow.types
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if is_list(kind):
        return pyarrow.list_(_plain_type(kind.value_type))
    if types.is_struct(kind):
        return pyarrow.struct([(field.name, _plain_type(field.type)) for field in kind])
    if types.is_large_string(kind):
        return pyarrow.string()
    return pyarrow.binary() if types.is_large_binary(kind) else kind


def _repeated(table: Any) -> list[str]:
    """The Parquet paths of text columns with repeated values. Numbers are skipped: they are seldom
    repeated, and looking for repetitions takes longer than writing them.
    """
    types, paths = arrow().types, []
    for name, column in zip(table.column_names, table.columns, strict=True):
        path, some = name, combined(column.slice(0, _REPEATED_OF))
        while is_list(some.type):
            path, some = f"{path}.list.element", some.flatten().slice(0, _REPEATED_OF)
        if (types.is_string(some.type) or types.is_binary(some.type)) and 2 * len(some.unique()) <= len(some):
            paths.append(path)
    return paths


def _no_rows(schema: Any) -> Any:
    arrays = [arrow().nulls(0, kind) for kind in schema.types]
    return arrow().RecordBatch.from_arrays(arrays, schema=schema)


WRITERS: dict[str, type[TableWriter]] = {
    ".jsonl": JsonLinesWriter,
    ".csv": CsvWriter,
    ".parquet": ParquetWriter,
}


def writer_of(out: Location) -> type[TableWriter]:
    """The writer for the format of a file's suffix. Raises SpecError for an unknown suffix."""
    if out.suffix not in WRITERS:
        expected, hint = f"a name that ends in {one_of(WRITERS)}", nearest(out.suffix, WRITERS)
        raise SpecError(Problem(path=("out",), expected=expected, got=f"`{out.name}`", hint=hint))
    return WRITERS[out.suffix]


def write_table(path: Path, writer_type: type[TableWriter], reader: Any) -> TableWriter:
    """Writes the rows of a reader of record batches to a file. Returns its writer, without a `check`."""
    with writer_type(path, reader.schema) as writer:
        for batch in reader:
            writer.write(batch)
            writer.rows += batch.num_rows
    return writer


@contextmanager
def saving(out: Location, *, force: bool) -> Iterator[Callable[[Any], int]]:
    """Yields a function that writes a reader of record batches to a file in the format of its suffix, and
    returns the number of rows. A second call replaces the rows of the first.

    The file appears at the end, if there was no error. Raises SpecError for a suffix other than `.jsonl`,
    `.csv` and `.parquet`; StoreError if the file exists, before anything is read, or if it cannot be written;
    RecordError if readers would find other rows in the file.
    """
    writer_type = writer_of(out)
    writer: TableWriter | None = None

    def save(reader: Any) -> int:
        nonlocal writer
        writer = write_table(path, writer_type, reader)
        return writer.rows

    with output_file(out, force=force) as path:
        yield save
        if writer is not None:
            writer.check()
