"""Columns as Arrow's, for Parquet and CSV files."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError
from recordspec.inspect.exporting.forms import Columns, Form, Forms
from recordspec.inspect.looking.values import StepValues, Values
from recordspec.wire.strings import Ints, Mask, Strings, offsets

# A row group of Parquet is read at once, and so many bytes of it are held before they are written.
_GROUP_BYTES = 64 << 20


class Parquet:
    """Writes a Parquet file. Bytes that are not all text are binary."""

    def __init__(self, path: Path, forms: Forms) -> None:
        from pyarrow import parquet

        self._forms, self._types = forms, _types(forms)
        # numbers seldom repeat, and to look for those that do takes longer than to write them
        texts = [name for name, form in forms.items() if form.kind == "bytes"]
        self._file = path.open("wb")  # Arrow opens no name that is not UTF-8
        self._writer = parquet.ParquetWriter(self._file, self._types, use_dictionary=texts)
        self._waiting: list[Any] = []
        self._bytes = 0

    @staticmethod
    def check(forms: Forms) -> None:
        """Raises MissingExtra."""
        arrow()

    def write(self, columns: Columns, rows: int) -> None:
        batch = _batch(columns, self._forms, self._types)
        self._waiting.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= _GROUP_BYTES:
            self._flush()

    def finish(self) -> None:
        if self._waiting:
            self._flush()

    def close(self) -> None:
        self._writer.close()
        self._file.close()

    def _flush(self) -> None:
        import pyarrow

        table = pyarrow.Table.from_batches(self._waiting)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._waiting, self._bytes = [], 0


class Csv:
    """Writes a CSV file. Bytes that are not all text are in base64."""

    def __init__(self, path: Path, forms: Forms) -> None:
        from pyarrow import csv

        self._forms = {name: replace(form, text=True) for name, form in forms.items()}
        self._coded = [name for name, form in forms.items() if not form.text]
        self._types = _types(self._forms)
        self._file = path.open("wb")
        self._writer = csv.CSVWriter(self._file, self._types)
        self._gap = False

    @staticmethod
    def check(forms: Forms) -> None:
        """Raises SpecError where a record has several values in one column, MissingExtra without pyarrow."""
        arrow()
        hint = "choose other columns, or write jsonl or parquet"
        problems = [
            Problem(path=(name,), expected="one value a record for csv", got="a list", hint=hint)
            for name, form in forms.items()
            if form.is_list
        ]
        if problems:
            raise SpecError(problems)

    def write(self, columns: Columns, rows: int) -> None:
        coded = {name: _in_base64(columns[name]) for name in self._coded}
        batch = _batch(columns | coded, self._forms, self._types)
        self._gap |= any(column.null_count for column in batch.columns)
        self._writer.write_batch(batch)

    def finish(self) -> None:
        """Raises RecordError: of one column, what is missing is an empty line, which readers pass over."""
        if self._gap and len(self._forms) == 1:
            (name,) = self._forms
            expected, hint = (
                "a value in every record for a csv of one column",
                "choose two, or write jsonl or parquet",
            )
            raise RecordError(Problem(path=(name,), expected=expected, got="none in some", hint=hint))

    def close(self) -> None:
        self._writer.close()
        self._file.close()


def _in_base64(values: Values | StepValues) -> Values | StepValues:
    if not isinstance(values, Values) or not isinstance(values.flat, Strings):
        return values
    return replace(values, flat=Strings.of([base64.b64encode(one) for one in values.flat.views()]))


def _types(forms: Forms) -> Any:
    """Arrow's schema."""
    import pyarrow

    return pyarrow.schema([(name, _type(form)) for name, form in forms.items()])


def _type(form: Form) -> Any:
    import pyarrow

    inner = _value_type(form)
    inner = inner if form.single else pyarrow.list_(inner)
    return pyarrow.list_(inner) if form.steps else inner


def _value_type(form: Form) -> Any:
    import pyarrow

    known = {"none": pyarrow.null, "int64": pyarrow.int64, "float32": pyarrow.float32}
    if form.kind in known:
        return known[form.kind]()
    return pyarrow.string() if form.text else pyarrow.binary()


def _batch(columns: Columns, forms: Forms, types: Any) -> Any:
    import pyarrow

    arrays = [_array(columns[name], form) for name, form in forms.items()]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=types)


def _array(held: Values | StepValues, form: Form) -> Any:
    """An Arrow array of all rows. It is made of buffers: Arrow's other ways from NumPy import pandas."""
    if isinstance(held, StepValues):
        steps = _array(held.values, replace(form, steps=False))
        return _list_array(steps, held.present, held.counts)
    if form.single:
        return _flat_array(held, form, held.present)
    every = np.ones(int(held.lengths.sum()), bool)
    return _list_array(_flat_array(held, form, every), held.present, held.lengths)


def _list_array(values: Any, present: Mask, counts: Ints) -> Any:
    import pyarrow

    places = pyarrow.py_buffer(offsets(counts).astype(np.int32))
    kind = pyarrow.list_(values.type)
    return pyarrow.Array.from_buffers(kind, len(counts), [_validity(present), places], children=[values])


def _flat_array(values: Values, form: Form, present: Mask) -> Any:
    """Values one after the other, and nulls where none is present."""
    import pyarrow

    kind, rows = _value_type(form), len(present)
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
