"""Arrow's tables, record batches and their readers; Polars frames are such tables, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from recordspec._arrow import arrow
from recordspec.errors import Problem, SpecError
from recordspec.spec.schema import Schema
from recordspec.writing.sources import base
from recordspec.writing.sources.arrays import whole_numbers
from recordspec.writing.sources.arrow import TableColumns, check_types, from_arrow
from recordspec.writing.sources.base import Batch, even_runs
from recordspec.writing.sources.naming import check_names


class TableRows:
    """The rows of an Arrow table or record batch."""

    def __init__(self, table: Any) -> None:
        self.rows = table.num_rows
        self.notes: list[str] = []
        is_batch = type(table).__name__ == "RecordBatch"
        self._table = arrow().Table.from_batches([table]) if is_batch else table

    def identity(self) -> Any:
        return None

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[TablePart]:
        check_table(schema, extra, self._table.schema)
        table = _with_whole_numbers(self._table, schema)
        size = table.nbytes // max(1, self.rows)
        for start, stop in even_runs(self.rows, size):
            yield TablePart(first=start, table=table.slice(start, stop - start))


def _with_whole_numbers(table: Any, schema: Schema) -> Any:
    """The table with columns of floats with gaps as integers, as `whole_numbers` says of a pandas frame's.

    The whole table decides: a part of it may have no gap.
    """
    pyarrow = arrow()
    for place, name in enumerate(table.column_names):
        column, feature = table.column(place), schema.names.get(name)
        if column.null_count and pyarrow.types.is_floating(column.type):
            values = from_arrow(column, feature)
            if whole_numbers(values, feature) is not values:
                table = table.set_column(place, name, column.cast(pyarrow.int64()))
    return table


class ReaderRows:
    """The rows of a reader of record batches. It can be read once."""

    rows = None

    def __init__(self, reader: Any) -> None:
        self.notes: list[str] = []
        self._reader = reader

    def identity(self) -> Any:
        return None

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[TablePart]:
        reader, self._reader = self._reader, None
        if reader is None:
            hint = "give another, or the table"
            raise SpecError(
                Problem(path=("rows",), expected="a reader from its start", got="one at its end", hint=hint)
            )
        check_table(schema, extra, reader.schema)
        first = 0
        for batches in _gathered(reader):
            table = arrow().Table.from_batches(batches)
            yield TablePart(first=first, table=table)
            first += table.num_rows


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

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[Batch]:
        wanted = {name: name for name in self.table.schema.names}
        yield Batch(self.table.num_rows, TableColumns(self.table, wanted, schema))

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
    """Raises SpecError where the columns (an Arrow schema) are not such as the features take."""
    repeated = [name for name in columns.names if columns.names.count(name) > 1]
    if repeated:
        expected = "every column once"
        raise SpecError(Problem(path=("rows",), expected=expected, got=f"`{repeated[0]}` again"))
    check_names(schema, extra, columns.names)
    check_types(schema, {field.name: field.type for field in columns})
