"""DuckDB, which is imported where it is used: connections that read no files, and errors as ours."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from recordspec._arrow import arrow
from recordspec.errors import (
    Problem,
    RecordspecError,
    SpecError,
    State,
    StoreError,
    missing_package,
    nearest,
    one_of,
)

# Rows of a record batch of a result.
_BATCH = 1 << 12
_MISSING_COLUMN = re.compile(r'Referenced column "(.+?)" (?:was )?not found')
_MISSING_TABLE = re.compile(r"Table with name (.+?) does not exist")
_CANDIDATES = re.compile(r'"((?:[^"]|"")+)"')
_SETTINGS = (
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


@contextmanager
def connected(*, memory: str | None = None, threads: int | None = None) -> Iterator[Any]:
    """A connection to DuckDB that reads no files; what does not fit into memory is kept in a folder of its
    own, which is removed. Raises MissingExtra without DuckDB."""
    duckdb = duckdb_module()
    folder = tempfile.mkdtemp(prefix="recordspec-query-")
    connection = duckdb.connect()
    try:
        with errors_of({}):
            connection.execute("SET temp_directory = ?", [folder])
            if memory is not None:
                connection.execute("SET memory_limit = ?", [memory])
            if threads is not None:
                connection.execute("SET threads = ?", [threads])
            for setting in _SETTINGS:
                connection.execute(setting)
        yield connection
    finally:
        connection.close()
        shutil.rmtree(folder, ignore_errors=True)


def reader_of(result: Any) -> Any:
    """The result of a query, a `pyarrow.RecordBatchReader`."""
    read = getattr(result, "to_arrow_reader", None) or result.fetch_record_batch  # DuckDB 2; 1
    return read(_BATCH)


def duckdb_module() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise missing_package("duckdb", "SQL", "duckdb", error) from None
    return duckdb


@contextmanager
def errors_of(tables: Mapping[str, Any]) -> Iterator[None]:
    """Raises errors of DuckDB, and of Arrow's streams from it, as those of the package; of a table whose
    reading failed, its `failure`."""
    duckdb = duckdb_module()
    try:
        yield
    except (duckdb.Error, arrow().ArrowException, OSError, RuntimeError) as error:
        if isinstance(error, getattr(duckdb, "InterruptException", ())) or "INTERRUPT" in str(error):
            raise KeyboardInterrupt from None
        for table in tables.values():
            if table.failure is not None:
                raise table.failure from None
        if not isinstance(error, duckdb.Error) and "Error:" not in str(error):
            raise
        raise _translated(str(error), tables) from None


def _translated(text: str, tables: Mapping[str, Any]) -> RecordspecError:
    kind, _, message = text.partition(" Error: ")
    message = message or text
    if column := _MISSING_COLUMN.search(message):
        names = sorted({name for table in tables.values() for name in table.schema.names})
        candidates = _CANDIDATES.findall(message.partition("Candidate bindings:")[2])
        hint = nearest(column[1], names)
        if not hint and candidates:
            hint = f"the nearest: {', '.join(f'`{name}`' for name in candidates)}"
        return SpecError(Problem(where="SQL", expected="a column", got=f"`{column[1]}`", hint=hint))
    if table := _MISSING_TABLE.search(message):
        hint = nearest(table[1], tables)
        return SpecError(Problem(where="SQL", expected=one_of(list(tables)), got=f"`{table[1]}`", hint=hint))
    lines = [line for line in message.splitlines() if line.strip()]
    if kind == "Permission":
        expected = f"SQL over {one_of(list(tables))} alone"
        return SpecError(Problem(where="SQL", expected=expected, got=lines[0].partition(" - ")[0]))
    if kind == "Out of Memory":
        hint = "--memory gives it more, and what it keeps on disk needs a place there"
        return StoreError(State(where="SQL", got="needs more memory", hint=f"{lines[0]}; {hint}"))
    return SpecError(Problem(where="SQL", expected="", got=lines[0]))
