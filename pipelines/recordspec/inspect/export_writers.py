"""The files that an export writes: lines of JSON, CSV and Parquet."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError
from recordspec.inspect.columns import ColumnValues, HeldValues, PairValues, StepValues, to_pylist
from recordspec.spec.dates import DateUnit, iso_texts
from recordspec.spec.values import BASE64
from recordspec.wire.strings import Ints, Mask, Strings, are_text, offsets

# The values of some rows, by the name of their column.
ExportColumns = dict[str, HeldValues]

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

    def fits(self, held: HeldValues) -> bool:
        """Whether the column holds these, too."""
        other = type_of(held)
        if self == ColumnType() or not held.present.any():
            return True
        return other.steps == self.steps and ("none" in (other.kind, self.kind) or other.kind == self.kind)

    def joined(self, other: ColumnType) -> ColumnType:
        """The type that holds both, for values of the same key."""
        return replace(
            self,
            kind=other.kind if self.kind == "none" else self.kind,
            single=self.single and other.single,
            steps=self.steps or other.steps,
            text=self.text and other.text,
        )


ColumnTypes = Mapping[str, ColumnType]


def type_of(held: HeldValues) -> ColumnType:
    values = held if isinstance(held, ColumnValues) else held.leaf
    return ColumnType(
        kind=values.kind,
        single=bool((values.lengths[values.present] == 1).all()),
        steps=isinstance(held, StepValues),
        text=not isinstance(values.flat, Strings) or are_text(values.flat),
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
        listed = [cells(columns[name], type_) for name, type_ in self.types.items()]
        for row in zip(*listed, strict=True) if listed else repeat((), rows):
            line = json.dumps(dict(zip(self.types, row, strict=True)), ensure_ascii=False)
            self._file.write(f"{line}\n".encode())


def cells(held: HeldValues, type_: ColumnType) -> Iterator[Any]:
    """The value of each row: a number, a text, a list of them, or None of what is missing."""
    if isinstance(held, PairValues):
        return _pairs(held, type_)
    if not isinstance(held, StepValues):
        return _cells(held, type_)
    return _grouped(cells(held.values, type_), held.present, held.counts)


def _pairs(held: PairValues, type_: ColumnType) -> Iterator[dict[str, Any] | None]:
    indices = cells(held.indices, replace(type_, kind="int64"))
    for there, places, values in zip(held.present.tolist(), indices, cells(held.values, type_), strict=True):
        yield {"indices": places, "values": values} if there else None


def _cells(values: ColumnValues, type_: ColumnType) -> Iterator[Any]:
    flat = iter(_plain(values, type_))
    if not type_.single:
        return _grouped(flat, values.present, values.lengths)
    return (next(flat) if present else None for present in values.present.tolist())


def _grouped(values: Iterator[Any], present: Mask, counts: Ints) -> Iterator[list[Any] | None]:
    for there, count in zip(present.tolist(), counts.tolist(), strict=True):
        yield list(islice(values, count)) if there else None


def _plain(values: ColumnValues, type_: ColumnType) -> list[Any]:
    flat = to_pylist(values.flat)
    if type_.kind != "bytes":
        return flat
    return [one.decode() if type_.text else {BASE64: base64.b64encode(one).decode()} for one in flat]


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
        batch = _batch(columns, self.types, self._schema)
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
        batch = _batch(shown, self._cells, self._schema)
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


def _dates(name: str, held: HeldValues, unit: DateUnit) -> HeldValues:
    """Numbers as the text of dates or times. Raises SpecError for what has no text that a build reads."""
    if not isinstance(held, ColumnValues) or not isinstance(held.flat, np.ndarray):
        return held
    texts, invalid = iso_texts(held.flat, unit)
    if bool(invalid.any()):
        raise SpecError(
            Problem(
                path=(name,),
                expected="dates from 0001-01-01 to 9999-12-31 for csv",
                got=f"{held.flat[invalid][0]} {unit} since 1970-01-01",
                hint="choose other columns, or write jsonl or parquet",
            )
        )
    return replace(held, kind="bytes", flat=Strings.of([text.encode() for text in texts]))


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


def _batch(columns: ExportColumns, types: ColumnTypes, schema: Any) -> Any:
    import pyarrow

    arrays = [_array(columns[name], type_) for name, type_ in types.items()]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def _array(held: HeldValues, type_: ColumnType) -> Any:
    """An Arrow array of all rows. It is made of buffers: Arrow's other ways from NumPy import pandas."""
    import pyarrow

    if isinstance(held, PairValues):
        parts = [_array(held.indices, replace(type_, kind="int64")), _array(held.values, type_)]
        kind = _pair_type(*(part.type for part in parts))
        return pyarrow.Array.from_buffers(kind, len(held.present), [_validity(held.present)], children=parts)
    if isinstance(held, StepValues):
        steps = _array(held.values, type_)
        return _list_array(steps, held.present, held.counts)
    if type_.single:
        return _flat_array(held, type_, held.present)
    every = np.ones(int(held.lengths.sum()), bool)
    return _list_array(_flat_array(held, type_, every), held.present, held.lengths)


def _list_array(values: Any, present: Mask, counts: Ints) -> Any:
    import pyarrow

    places = pyarrow.py_buffer(offsets(counts).astype(np.int32))
    kind = pyarrow.list_(values.type)
    return pyarrow.Array.from_buffers(kind, len(counts), [_validity(present), places], children=[values])


def _flat_array(values: ColumnValues, type_: ColumnType, present: Mask) -> Any:
    """Values one after the other, and nulls where none is present."""
    import pyarrow

    kind, rows = _value_type(type_), len(present)
    if values.flat is None:
        return pyarrow.nulls(rows, kind)
    if isinstance(values.flat, Strings):
        sizes = _spread(values.flat.sizes, present)
        buffers = [offsets(sizes).astype(np.int32), np.ascontiguousarray(values.flat.buffer)]
    else:
        buffers = [np.ascontiguousarray(_spread(values.flat, present))]
    return pyarrow.Array.from_buffers(kind, rows, [_validity(present), *map(pyarrow.py_buffer, buffers)])


def _spread(values: Any, present: Mask) -> Any:
    """Values at the places of those that are present."""
    if present.all():
        return values
    spread = np.zeros(len(present), values.dtype)
    spread[present] = values
    return spread


def _validity(present: Mask) -> Any:
    import pyarrow

    return None if present.all() else pyarrow.py_buffer(np.packbits(present, bitorder="little"))


WRITERS: dict[str, type[Writer]] = {".jsonl": JsonLinesWriter, ".csv": CsvWriter, ".parquet": ParquetWriter}
