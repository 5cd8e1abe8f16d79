"""SQL over TFRecords: DuckDB reads the tables of `scan`, and nothing else."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec._duckdb import connected, duckdb_module, errors_of, reader_of
from recordspec.errors import (
    Problem,
    SpecError,
    State,
    nearest,
    one_of,
)
from recordspec.inspect.scan import ALL, Scanner
from recordspec.inspect.table import KEY, PLACES, RecordTable, scan
from recordspec.locations import Location, output_file
from recordspec.progress import Progress
from recordspec.schema.schema import Schema
from recordspec.schema.values import BASE64

# The table of files that are given without a name, and whose names tell no split.
RECORDS = "records"
_STRINGS = re.compile(r"'(?:[^']|'')*'")


def named_tables(
    sources: Iterable[tuple[str, str]], sql: str, schema: Schema | None = None
) -> dict[str, RecordTable]:
    """The tables of files with a name; of files without one, a table for each split, with its name.

    Tables also have those columns of where a row is, and the key, that the SQL names.

    Args:
        sources: pairs of a name, which may be empty, and a path, a folder or a pattern. A name that comes
            again has more files.
        sql: the query.
        schema: of the records; by default those of the datasets.

    Raises what `scan` raises.
    """
    files: dict[str, list[Any]] = {}
    unnamed = []
    for name, source in sources:
        if name:
            files.setdefault(name, []).append(source)
        else:
            unnamed.append(source)
    if unnamed:
        for path, split in Scanner(unnamed, schema).splits.items():
            files.setdefault(RECORDS if split == ALL else split, []).append(path)
    words = set(re.findall(r"\w+", _STRINGS.sub("", sql.lower())))
    return {
        name: scan(paths, schema).with_places(place for place in (*PLACES, KEY) if place in words)
        for name, paths in files.items()
    }


@contextmanager
def query(
    sql: str,
    tables: Mapping[str, RecordTable],
    *,
    memory: str | None = None,
    progress: Progress | None = None,
) -> Iterator[Any]:
    """Runs a query, and yields its result, a `pyarrow.RecordBatchReader`.

    The SQL is one query, which reads the tables and no files: DuckDB's access to anything outside is switched
    off, and its settings are locked. What does not fit into memory is kept in a folder of its own, which is
    removed.

    Args:
        sql: in the dialect of DuckDB.
        tables: by name.
        memory: of DuckDB, such as `2GiB`; by default 80 % of the machine's.
        progress: receives the number of rows that are read.

    Raises:
        SpecError: the SQL is invalid, or does something else than to query.
        RecordError: a record is corrupt.
        StoreError: the memory, or the disk, is full.
        MissingExtra: without DuckDB.
    """
    with connected(memory=memory) as connection, errors_of(tables):
        for name, table in tables.items():
            if not table.schema.names:
                raise SpecError(State(where=name, got="has no columns", hint="its records hold nothing"))
            table.progress = progress or table.progress
            connection.register(name, table)
        _check_statement(connection, sql)
        reader = reader_of(connection.sql(sql))
        schema = _distinct(reader.schema)
        yield arrow().RecordBatchReader.from_batches(schema, _batches(tables, reader, schema))


def _check_statement(connection: Any, sql: str) -> None:
    """Raises SpecError for what is not one query."""
    statements = connection.extract_statements(sql)
    kinds = duckdb_module().StatementType
    # DESCRIBE, SUMMARIZE and SHOW are queries, too
    wrong = [one for one in statements if one.type not in (kinds.SELECT, kinds.EXPLAIN)]
    if len(statements) != 1 or wrong:
        got = str(wrong[0].type).rpartition(".")[2].rstrip("'>") if wrong else f"{len(statements)} statements"
        raise SpecError(Problem(where="SQL", expected="one query", got=got.partition(":")[0]))


def _distinct(schema: Any) -> Any:
    """The schema with a number behind a name that comes again: `label`, `label_1`, as of a join."""
    names = list(schema.names)
    for place, name in enumerate(schema.names):
        number = 0
        while names[place] in names[:place] or (number and names[place] in schema.names):
            number += 1
            names[place] = f"{name}_{number}"
    return arrow().schema([field.with_name(name) for name, field in zip(names, schema, strict=True)])


def _batches(tables: Mapping[str, RecordTable], reader: Any, schema: Any) -> Iterator[Any]:
    """The batches of a result, with the errors of DuckDB as ours."""
    with errors_of(tables):
        for batch in reader:
            yield arrow().RecordBatch.from_arrays(batch.columns, schema=schema)


def rows_in(batch: Any) -> Iterator[dict[str, Any]]:
    """The rows of a record batch as JSON has them: dates as ISO text, bytes in base64, a float32 as the
    shortest number that reads back equal."""
    types = [(field.name, field.type) for field in batch.schema]
    for row in batch.to_pylist():
        yield {name: _plain(row[name], type_) for name, type_ in types}


def _plain(value: Any, type_: Any) -> Any:
    if isinstance(value, float) and arrow().types.is_float32(type_):
        return float(str(np.float32(value)))
    if isinstance(value, (int, float, str, bool)) or value is None:
        return value
    if isinstance(value, Mapping):
        return {field.name: _plain(value[field.name], field.type) for field in type_}
    if isinstance(value, list) and arrow().types.is_map(type_):
        return [[_plain(key, type_.key_type), _plain(item, type_.item_type)] for key, item in value]
    if isinstance(value, list):
        return [_plain(item, type_.value_type) for item in value]
    if isinstance(value, Decimal):  # DuckDB's sums of integers are whole ones
        return int(value) if value == value.to_integral_value() else float(value)
    return {BASE64: base64.b64encode(value).decode()} if isinstance(value, bytes) else str(value)


@contextmanager
def saving(out: Location, *, force: bool) -> Iterator[Callable[[Any], int]]:
    """A function that writes a result to a file in the format of its suffix, and returns the number of rows.

    In CSV, lists and structs are JSON. The file appears at the end, if there was no error. Raises SpecError
    for a suffix other than `.jsonl`, `.csv` and `.parquet`, StoreError if the file exists, before anything
    is read, or cannot be written.
    """
    writers = {".jsonl": _save_lines, ".csv": _save_csv, ".parquet": _save_parquet}
    if out.suffix not in writers:
        expected, hint = f"a name that ends in {one_of(writers)}", nearest(out.suffix, writers)
        raise SpecError(Problem(path=("out",), expected=expected, got=f"`{out.name}`", hint=hint))
    with output_file(out, force=force) as path:
        yield partial(writers[out.suffix], path)


def _save_lines(path: Path, result: Any) -> int:
    rows = 0
    with path.open("w", encoding="utf-8") as file:
        for batch in result:
            for row in rows_in(batch):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            rows += batch.num_rows
    return rows


def _save_csv(path: Path, result: Any) -> int:
    from pyarrow import csv

    pyarrow, rows, schema = arrow(), 0, result.schema
    as_json = [
        name
        for name, type_ in zip(schema.names, schema.types, strict=True)
        if pyarrow.types.is_nested(type_) or pyarrow.types.is_binary(type_)
    ]
    for name in as_json:
        schema = schema.set(schema.get_field_index(name), pyarrow.field(name, pyarrow.string()))
    with path.open("wb") as file, csv.CSVWriter(file, schema) as writer:
        for batch in result:
            texts = [[_json(row[name]) for name in as_json] for row in rows_in(batch)] if as_json else []
            columns = dict(zip(schema.names, batch.columns, strict=True))
            for place, name in enumerate(as_json):
                columns[name] = pyarrow.array([row[place] for row in texts], pyarrow.string())
            writer.write_batch(pyarrow.RecordBatch.from_arrays([*columns.values()], schema=schema))
            rows += batch.num_rows
    return rows


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _save_parquet(path: Path, result: Any) -> int:
    from pyarrow import parquet

    rows = 0
    with path.open("wb") as file, parquet.ParquetWriter(file, result.schema) as writer:
        for batch in result:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows
