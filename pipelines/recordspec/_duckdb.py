"""DuckDB, which is imported where it is used: connections that read no files, and errors as ours."""

from __future__ import annotations

import re
import signal
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

# What is expected instead of a list that is compared with one value.
COMPARISON_WITH_LIST = "a comparison with a list"
# Rows of a record batch of a result.
_BATCH = 1 << 12
_MISSING_COLUMN = re.compile(r'Referenced column "(.+?)" (?:was )?not found')
_MISSING_TABLE = re.compile(r"Table with name (.+?) does not exist")
_NEAREST_FUNCTION = re.compile(r'Did you mean "([^"]+)"')
_MISSING_FUNCTION = re.compile(r'Function with name "?(.+?)"? does not exist')
# A name that is unknown, or a sign at which SQL cannot be parsed.
_UNKNOWN = re.compile(
    r'(?:Referenced (?:column|table)|Catalog|at or near) "(.+?)"|Table with name (.+?) does not exist'
)
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_WORD = re.compile(r"[A-Za-z_]\w*")
_OF_LIST = re.compile(r"cast \(\w+ -> .*\[\]\)|values of type .*\[\] and|type \w+ and type .*\[\]")
_SIZE = re.compile(r"\d+(\.\d+)? ?[kmgt]i?b", re.IGNORECASE)
# What had another form before conditions were SQL.
_OTHER_FORMS = {
    "missing": "`x IS NULL` is true of what is missing",
    "feature": 'a name such as "image/encoded" takes double quotes',
}
_SETTINGS = (
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def duckdb_module() -> Any:
    """DuckDB. Raises MissingExtra without it."""
    try:
        import duckdb
    except ImportError as error:
        raise missing_package("duckdb", "SQL", "duckdb", error) from None
    return duckdb


def readable(table: Any) -> Any:
    """A `RecordTable` as one that DuckDB reads."""
    if not table.schema.names:  # of records that hold nothing, or of none: SQL has no table without a column
        table = table.with_places(["record"])
    return table.without_dictionaries() if is_first_version() else table


def register(connection: Any, name: str, table: Any) -> None:
    """Gives a `RecordTable`, which is `readable`, its name in SQL.

    DuckDB 1 lets Arrow compare floats, for which NaN is in no range: rows with NaN are in neither `x > 0` nor
    `NOT x > 0`, and in no join. What an expression makes of them, it compares itself.
    """
    if not is_first_version():
        connection.register(name, table)
        return
    is_float, floats = arrow().types.is_floating, dict[str, str]()
    for field in table.schema:
        if is_float(field.type):
            floats.setdefault(field.name.lower(), quoted(field.name))
    same = ", ".join(f"-(-{each}) AS {each}" for each in floats.values())
    connection.from_arrow(table).project(f"* REPLACE ({same})" if floats else "*").create_view(name)


def is_first_version() -> bool:
    """Whether DuckDB is 1.x."""
    return str(duckdb_module().__version__).startswith("1.")


def quoted(name: str) -> str:
    """A name in SQL, of any characters."""
    return '"' + name.replace('"', '""') + '"'


def connect(folder: str = "", *, memory: str | None = None, threads: int | None = None) -> Any:
    """A connection that reads no files. What does not fit into memory is kept in `folder`, if there is one.

    Raises SpecError for another memory than a size such as `2GiB`, MissingExtra without DuckDB.
    """
    if memory is not None and not _SIZE.fullmatch(memory.strip()):
        raise SpecError(Problem(path=("memory",), expected="a size such as 2GiB", got=f"`{memory}`"))
    # not as parameters of SQL, for which DuckDB 1.4 imports pandas
    config = {"temp_directory": folder, "memory_limit": memory, "threads": threads}
    config = {name: value for name, value in config.items() if value is not None}
    with errors_of("", {}):
        connection = duckdb_module().connect(config=config)
        for setting in _SETTINGS:
            connection.execute(setting)
    return connection


@contextmanager
def connected(*, memory: str | None = None) -> Iterator[Any]:
    """A connection, with a folder of its own that is removed; see `connect`."""
    with tempfile.TemporaryDirectory(prefix="recordspec-query-", ignore_cleanup_errors=True) as folder:
        connection = connect(folder, memory=memory)
        try:
            yield connection
        finally:
            connection.close()


@contextmanager
def interrupting(connection: Any) -> Iterator[None]:
    """Ctrl-C interrupts the query of a connection, and raises KeyboardInterrupt.

    Without it, Python may raise KeyboardInterrupt in a finalizer, where it is ignored, and the query goes on.
    """
    usual, is_seen = signal.getsignal(signal.SIGINT), False
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or usual is not signal.default_int_handler:
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        nonlocal is_seen
        is_seen = True
        connection.interrupt()

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Exception:  # after an interrupt, DuckDB and Arrow raise errors of several types
        if is_seen:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, usual)
    if is_seen:
        raise KeyboardInterrupt


def reader_of(result: Any) -> Any:
    """The result of a query, a `pyarrow.RecordBatchReader`."""
    read = getattr(result, "to_arrow_reader", None) or result.fetch_record_batch  # DuckDB 2; 1
    return read(_BATCH)


@contextmanager
def errors_of(
    sql: str,
    columns: Mapping[str, Sequence[str]],
    tables: Iterable[Any] = (),
    where: str = "SQL",
    a_column: str = "a column",
) -> Iterator[None]:
    """Raises errors of DuckDB, and of Arrow's streams from it, as those of the package.

    Args:
        sql: what is asked.
        columns: of each table.
        tables: that tell why they failed.
        where: the name of what is asked, in messages.
        a_column: what is expected instead of a name that is none.
    """
    duckdb = duckdb_module()
    try:
        yield
    except (duckdb.Error, arrow().ArrowException, OSError, RuntimeError) as error:
        is_told = "INTERRUPT" in str(error) or "Query interrupted" in str(error)
        if is_told or isinstance(error, getattr(duckdb, "InterruptException", ())):
            raise KeyboardInterrupt from None
        for table in tables:
            if table.failure is not None:
                raise table.failure from None
        if not isinstance(error, duckdb.Error) and "Error:" not in str(error):
            raise
        raise _translated(str(error), sql, columns, where, a_column) from None


def _translated(
    text: str,
    sql: str,
    columns: Mapping[str, Sequence[str]],
    where: str,
    a_column: str,
) -> RecordspecError:
    kind, _, message = text.partition(" Error: ")
    message = message or text
    if name := takes_quotes(
        message, sql, [*columns, *(name for names in columns.values() for name in names)]
    ):
        hint = "a name with other characters than letters, digits and _ takes double quotes"
        return SpecError(Problem(where=where, expected=quoted(name), got=f"`{name}`", hint=hint))
    if _OF_LIST.search(message):
        hint = "`1 IN x` is true of a list `x` that has a 1, and `len(x)` is its length"
        return SpecError(
            Problem(where=where, expected=COMPARISON_WITH_LIST, got=_first_line(message), hint=hint)
        )
    if column := _MISSING_COLUMN.search(message):
        return _missing_column(column, sql, columns, where, a_column)
    if table := _MISSING_TABLE.search(message):
        hint = nearest(table[1], columns)
        return SpecError(Problem(where=where, expected=one_of(list(columns)), got=f"`{table[1]}`", hint=hint))
    if function := _MISSING_FUNCTION.search(message):
        hint = _OTHER_FORMS.get(function[1].lower(), "")
        if not hint and (near := _NEAREST_FUNCTION.search(message)):
            hint = f"did you mean `{near[1]}`?"
        return SpecError(
            Problem(where=where, expected="a function of DuckDB", got=f"`{function[1]}`", hint=hint)
        )
    if kind == "Permission":
        expected = f"SQL over {one_of(list(columns))} alone"
        return SpecError(
            Problem(where=where, expected=expected, got=_first_line(message).partition(" - ")[0])
        )
    if kind == "Out of Memory":
        more = "; --memory allows more, and temporary files need free space on disk" * (where == "SQL")
        return StoreError(State(where=where, got="needs more memory", hint=f"{_first_line(message)}{more}"))
    hint = text_in_quotes("default") if "DEFAULT clause" in message else ""
    return SpecError(Problem(where=where, expected="", got=_first_line(message), hint=hint))


def text_in_quotes(word: str) -> str:
    """The hint for a word without quotes, which SQL takes as a name or as a word of its own."""
    return f"a text takes single quotes: '{word}'"


def _missing_column(
    column: re.Match[str],
    sql: str,
    columns: Mapping[str, Sequence[str]],
    where: str,
    a_column: str,
) -> SpecError:
    known = {name for names in columns.values() for name in names}
    near = nearest(column[1], sorted(known))
    if column[1] == "key":
        near = "it is a column of datasets that have a key"
    hints = [near] if near else []
    if not near or f'"{column[1]}"' in sql:  # a text without quotes, or in double quotes, is a name
        hints.append(text_in_quotes(column[1]))
    hint = "; ".join(hints)
    return SpecError(Problem(where=where, expected=a_column, got=f"`{column[1]}`", hint=hint))


def takes_quotes(message: str, sql: str, names: Iterable[str]) -> str:
    """The name that SQL has without the double quotes that it takes, if an error is of a part of it; else an
    empty text."""
    bare = _QUOTED.sub("''", sql.lower())
    if (unknown := _UNKNOWN.search(message)) is None:
        return ""
    part = (unknown[1] or unknown[2]).strip('"').lower()
    for name in sorted(names, key=len, reverse=True):
        is_bare = re.search(rf"(?<!\w){re.escape(name.lower())}(?!\w)", bare)
        if is_bare and not _WORD.fullmatch(name) and part in name.lower():
            return name
    return ""


def _first_line(message: str) -> str:
    return next(line for line in message.splitlines() if line.strip())
