"""The files that an export writes: lines of JSON, CSV and Parquet."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError
from recordspec.inspect.columns import to_pylist, with_values
from recordspec.schema.dates import DateUnit, iso_texts
from recordspec.schema.values import BASE64
from recordspec.wire.arrays import (
    ArrowArray,
    Ints,
    are_text,
    as_lists,
    buffer_of,
    counts_of,
    flat_of,
    is_list,
    items_of,
    list_array,
    numbers_array,
    offsets,
    present_in,
    spread,
    storage_of,
    strings_array,
    to_binary,
    truth_array,
    values_array,
)

# The values of some rows, by the name of their column.
ExportColumns = dict[str, ArrowArray]

_ENCODE = json.JSONEncoder(ensure_ascii=False).encode
# Of the sizes of floats, from the one to the other, Python and Arrow both write no exponent.
_EXPONENT_BELOW, _EXPONENT_FROM = 1e-4, 1e10
# The size of a Parquet row group, which is read at once, and kept in memory until it is written.
_GROUP_BYTES = 64 << 20


@dataclass(frozen=True, kw_only=True)
class ColumnType:
    """The type of a column.

    Attributes:
        kind: of values; `none` where no record has any. Of a feature also another dtype.
        single: whether every record that has the key has one value (of a feature list: every step).
        steps: whether it is a feature list.
        text: of bytes: whether all of them are UTF-8.
        levels: of the lists in each other that a value of a feature is; 0 for what is stored under a key.
        index_levels: of the indices of a sparse tensor; 0 for others.
        date: of dates and times, the unit of their numbers since 1970-01-01.
        samples: whether the values are raw pixels or samples, which sources take as arrays of their dtype.
    """

    kind: str = "none"
    single: bool = True
    steps: bool = False
    text: bool = True
    levels: int = 0
    index_levels: int = 0
    samples: bool = False
    date: DateUnit | None = None

    @property
    def is_list(self) -> bool:
        return self.depth > 0

    @property
    def depth(self) -> int:
        """The number of lists in each other that a row has."""
        return self.levels or (not self.single) + self.steps

    def __str__(self) -> str:
        return f"steps of {self.kind}" if self.steps else self.kind

    def fits(self, other: ColumnType) -> bool:
        """Whether the column holds values of this type, too."""
        same_kind = "none" in (other.kind, self.kind) or other.kind == self.kind
        return self == ColumnType() or (other.steps == self.steps and same_kind)

    def joined(self, other: ColumnType) -> ColumnType:
        """The type that holds both, for values of the same key."""
        return replace(
            self,
            kind=other.kind if self.kind == "none" else self.kind,
            single=self.single and other.single,
            steps=self.steps or other.steps,
            text=self.text and other.text,
        )

    def shaped(self, array: ArrowArray) -> ArrowArray:
        """What is stored under a key, with as many lists in each other as the column has."""
        if self.levels:
            return array
        if self.steps:
            steps = replace(self, steps=False).shaped(items_of(array))
            return list_array(steps, offsets(counts_of(array)), present_in(array))
        if not self.single:
            return as_lists(array)
        return spread(values_array(flat_of(array)), present_in(array)) if is_list(array) else array


ColumnTypes = Mapping[str, ColumnType]


def type_of(array: ArrowArray, *, steps: bool) -> ColumnType:
    """The type of values under a key, or in a feature list."""
    lists = items_of(array) if steps else array
    kind, counts = storage_of(lists), counts_of(lists)
    return ColumnType(
        kind=kind,
        single=not is_list(lists) or bool((counts[present_in(lists)] == 1).all()),
        steps=steps,
        text=kind != "bytes" or are_text(flat_of(lists)),
    )


class Writer:
    """Writes a file of columns of these types. Without `finish`, what was written is of no use."""

    def __init__(self, path: Path, types: ColumnTypes) -> None:
        self.types = types
        self._file = path.open("wb")  # Arrow opens no name that is not UTF-8

    @classmethod
    def check(cls, types: ColumnTypes) -> None:
        """Raises SpecError for types that the format cannot hold, MissingExtra without pyarrow."""
        problems = [
            Problem(path=(name,), expected=expected, got=got, hint=f"choose other columns, or {hint}")
            for name, type_ in types.items()
            for wrong, expected, got, hint in (
                *cls._refused(type_),
                (
                    type_.kind.startswith("complex"),
                    "numbers that a file of rows can hold",
                    type_.kind,
                    "build from the records, with the source `tfrecord`",
                ),
            )
            if wrong
        ]
        if problems:
            raise SpecError(problems)

    @classmethod
    def _refused(cls, type_: ColumnType) -> Iterator[tuple[bool, str, str, str]]:
        """What the format cannot hold: whether a type is that, what is expected instead, what it is, and the
        other way."""
        arrow()
        return iter(())

    def write(self, columns: ExportColumns, rows: int) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """When all is written. Raises RecordError for what the format cannot hold."""

    def close(self) -> None:
        self._file.close()


class JsonLinesWriter(Writer):
    """Writes one object per row, which the source `jsonl` reads.

    As in the JSON of TensorFlow Serving, values of a column of bytes that are not all text are
    `{"b64": "..."}`, and NaN and infinities `NaN` and `Infinity`.
    """

    @classmethod
    def _refused(cls, type_: ColumnType) -> Iterator[tuple[bool, str, str, str]]:
        """JSON holds all but arrays of a dtype, without pyarrow."""
        yield (
            type_.samples,
            "numbers, text or encoded bytes for jsonl",
            "raw pixels or samples",
            "write parquet",
        )

    def write(self, columns: ExportColumns, rows: int) -> None:
        pieces: list[Any] = []
        for name, type_ in self.types.items():
            pieces += [(", " if pieces else "") + f"{_ENCODE(name)}: ", _json_texts(columns[name], type_)]
        self._file.write(buffer_of(_join("{", *pieces, "}\n")).data if pieces else b"{}\n" * rows)


def _join(*pieces: ArrowArray | str) -> ArrowArray:
    """Strings of the pieces end to end, some of which are the same in each; null where a piece is."""
    pyarrow = arrow()
    kind = pyarrow.large_binary()
    scalars = [pyarrow.scalar(piece.encode(), kind) if isinstance(piece, str) else piece for piece in pieces]
    return pyarrow.compute.binary_join_element_wise(*scalars, pyarrow.scalar(b"", kind))


def _json_texts(array: ArrowArray, type_: ColumnType) -> ArrowArray:
    """The value of each row in JSON, as Python writes it, `large_binary`.

    In Arrow, where that is equal: to format and to join values in Python takes 0.3 us each.
    """
    plain = not is_list(array) and not str(array.type).startswith("struct") and array.null_count < len(array)
    texts = _plain_texts(flat_of(array), type_) if plain else None
    if texts is None:
        return _encoded(cells(array, type_))
    if not array.null_count:
        return texts
    return spread(texts, present_in(array)).fill_null(b"null")


def _plain_texts(flat: Any, type_: ColumnType) -> ArrowArray | None:
    """Numbers or texts in JSON. None of bytes, and of texts that need an escape."""
    if not isinstance(flat, np.ndarray):
        data = buffer_of(flat)
        escaped = (data < 0x20) | (data == ord('"')) | (data == ord("\\"))
        plain = type_.kind == "bytes" and type_.text and not escaped.any()
        return _join('"', to_binary(flat), '"') if plain else None
    if flat.dtype.kind == "f":
        return _float_texts(flat)
    values = truth_array(flat) if flat.dtype == bool else numbers_array(flat)
    return to_binary(values.cast("large_string"))


def _float_texts(numbers: npt.NDArray[Any]) -> ArrowArray:
    """Floats `[n]` as Python writes them. Arrow has the same digits, another exponent, and `1` for 1.0."""
    pyarrow = arrow()
    if numbers.dtype != np.float32:
        numbers = numbers.astype(np.float64)
    sizes = np.abs(numbers)
    texts = to_binary(numbers_array(numbers).cast("large_string"))
    whole = truth_array((sizes < _EXPONENT_FROM) & (numbers == np.trunc(numbers)))
    texts = pyarrow.compute.if_else(whole, _join(texts, ".0"), texts)
    others = ~((sizes == 0) | ((sizes >= _EXPONENT_BELOW) & (sizes < _EXPONENT_FROM)))
    if others.any():
        rest = _encoded(to_pylist(numbers[others]))
        texts = pyarrow.compute.replace_with_mask(texts, truth_array(others), rest)
    return texts


def _encoded(values: Iterable[Any]) -> ArrowArray:
    return strings_array([_ENCODE(value).encode() for value in values])


def cells(array: ArrowArray, type_: ColumnType) -> Iterable[Any]:
    """The value of each row: a number, a text, a list of them, or None of what is missing."""
    if array.null_count == len(array):
        return repeat(None, len(array))
    if not array.null_count and not is_list(array) and not str(array.type).startswith("struct"):
        return _plain(flat_of(array), type_)
    present = present_in(array).tolist()
    if str(array.type).startswith("struct"):
        indices = cells(array.field(0), replace(type_, kind="int64"))
        values = zip(indices, cells(array.field(1), type_), strict=True)
        return (
            dict(zip(("indices", "values"), pair, strict=True)) if there else None
            for there, pair in zip(present, values, strict=True)
        )
    if is_list(array):
        items, counts = iter(cells(items_of(array), type_)), counts_of(array).tolist()
        return (
            list(islice(items, count)) if there else None
            for there, count in zip(present, counts, strict=True)
        )
    flat = iter(_plain(flat_of(array), type_))
    return (next(flat) if there else None for there in present)


def _plain(flat: Any, type_: ColumnType) -> list[Any]:
    values = to_pylist(flat)
    if type_.kind != "bytes":
        return values
    if type_.text:
        return list(map(bytes.decode, values))
    return [{BASE64: base64.b64encode(value).decode()} for value in values]


class ParquetWriter(Writer):
    """Writes a Parquet file. Bytes that are not all text are binary."""

    def __init__(self, path: Path, types: ColumnTypes) -> None:
        from pyarrow import parquet

        super().__init__(path, types)
        # numbers seldom repeat, and to look for those that do takes longer than to write them
        texts = [name for name, type_ in types.items() if type_.kind == "bytes"]
        self._schema = _schema(types)
        self._writer = parquet.ParquetWriter(self._file, self._schema, use_dictionary=texts)
        self._waiting: list[Any] = []
        self._bytes = 0

    def write(self, columns: ExportColumns, rows: int) -> None:
        batch = _batch(columns, self._schema)
        self._waiting.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= _GROUP_BYTES:
            self.finish()

    def finish(self) -> None:
        import pyarrow

        table = pyarrow.Table.from_batches(self._waiting, self._schema)
        if table.num_rows:
            self._writer.write_table(table, row_group_size=table.num_rows)
        self._waiting, self._bytes = [], 0

    def close(self) -> None:
        self._writer.close()
        super().close()


class CsvWriter(Writer):
    """Writes a CSV file. Dates are text, since the source `csv` reads no other ones."""

    def __init__(self, path: Path, types: ColumnTypes) -> None:
        from pyarrow import csv

        super().__init__(path, types)
        self._cells = {
            name: replace(type_, kind="bytes") if type_.date and type_.kind == "int64" else type_
            for name, type_ in types.items()
        }
        self._schema = _schema(self._cells)
        self._writer = csv.CSVWriter(self._file, self._schema)
        self._gap = False

    @classmethod
    def _refused(cls, type_: ColumnType) -> Iterator[tuple[bool, str, str, str]]:
        """Several values of a record, and bytes that are no text, which a cell cannot be told from."""
        yield from super()._refused(type_)
        way = "write parquet" if type_.samples else "write jsonl or parquet"
        yield type_.is_list, "one value per record for csv", "a list", way
        yield not type_.text, "text or numbers for csv", "bytes that are not all UTF-8", way

    def write(self, columns: ExportColumns, rows: int) -> None:
        shown = {
            name: _dates(name, columns[name], type_.date)
            if type_.date is not None and type_.kind != self.types[name].kind
            else columns[name]
            for name, type_ in self._cells.items()
        }
        batch = _batch(shown, self._schema)
        self._gap |= any(column.null_count for column in batch.columns)
        self._writer.write_batch(batch)

    def finish(self) -> None:
        """Raises RecordError: of one column, what is missing is an empty line, which readers pass over."""
        if self._gap and len(self.types) == 1:
            expected = "a value in every record for a csv of one column"
            hint = "choose two, or write jsonl or parquet"
            raise RecordError(
                Problem(path=tuple(self.types), expected=expected, got="none in some", hint=hint)
            )

    def close(self) -> None:
        self._writer.close()
        super().close()


def _dates(name: str, array: ArrowArray, unit: DateUnit) -> ArrowArray:
    """Numbers as the text of dates or times. Raises SpecError for what has no text that a build reads."""

    def texts_of(numbers: Ints) -> ArrowArray:
        texts, invalid = iso_texts(numbers, unit)
        if bool(invalid.any()):
            raise SpecError(
                Problem(
                    path=(name,),
                    expected="dates from 0001-01-01 to 9999-12-31 for csv",
                    got=f"{numbers[invalid][0]} {unit} since 1970-01-01",
                    hint="choose other columns, or write jsonl or parquet",
                )
            )
        return strings_array([text.encode() for text in texts])

    return array if storage_of(array) == "none" else with_values(array, texts_of)


def _schema(types: ColumnTypes) -> Any:
    """Arrow's schema."""
    import pyarrow

    fields = []
    for name, type_ in types.items():
        inner = _lists_of(_value_type(type_), type_.depth)
        if type_.index_levels:
            inner = _pair_type(_lists_of(pyarrow.int64(), type_.index_levels), inner)
        fields.append((name, inner))
    return pyarrow.schema(fields)


def _lists_of(kind: Any, levels: int) -> Any:
    import pyarrow

    for _ in range(levels):
        kind = pyarrow.list_(kind)
    return kind


def _pair_type(indices: Any, values: Any) -> Any:
    import pyarrow

    return pyarrow.struct([("indices", indices), ("values", values)])


def _value_type(type_: ColumnType) -> Any:
    import pyarrow

    text = pyarrow.string() if type_.text else pyarrow.binary()
    known = {"none": pyarrow.null(), "bytes": text}
    return known[type_.kind] if type_.kind in known else pyarrow.type_for_alias(type_.kind)


def _batch(columns: ExportColumns, schema: Any) -> Any:
    import pyarrow

    arrays = [columns[field.name].cast(field.type) for field in schema]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


WRITERS: dict[str, type[Writer]] = {".jsonl": JsonLinesWriter, ".csv": CsvWriter, ".parquet": ParquetWriter}
