"""SQL over TFRecords. DuckDB reads only the tables of `scan`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from operator import not_
from typing import TYPE_CHECKING, Any

import numpy as np

from recordspec._arrow import arrow
from recordspec._duckdb import (
    COMPARISON_WITH_LIST,
    connect,
    connected,
    duckdb_module,
    errors_of,
    interrupting,
    is_first_version,
    quoted,
    readable,
    reader_of,
    register,
    takes_quotes,
    text_in_quotes,
)
from recordspec.errors import (
    Problem,
    RecordError,
    RecordspecError,
    SpecError,
    nearest,
    one_of_classes,
)
from recordspec.locations import Location
from recordspec.progress import Progress
from recordspec.schema.schema import Schema
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import ALL, Files, distinct
from recordspec.store.manifest import Manifest
from recordspec.store.scan import RowBatch, Scanner
from recordspec.tables.column_types import is_list_type
from recordspec.tables.scan_columns import (
    KEY,
    PLACES,
    ColumnReader,
    ScanColumn,
    all_columns,
    without_dictionaries,
)
from recordspec.wire.arrays import Ints, Mask

if TYPE_CHECKING:
    from recordspec.tables.table import RecordTable

# The name of the table for files without a given name, and without a split in their names.
RECORDS = "records"
# Rows or bytes of small batches for which a condition is evaluated together, since a DuckDB call takes 0.8
# ms: a file of 10 records takes 0.2 ms in a group, and 1.1 ms alone.
_ROWS_TOGETHER, _BYTES_TOGETHER = 1 << 12, 1 << 22
# Nodes of a condition that compare their operands; `contains` searches a list for an item, or a text for a
# substring.
_OF_LISTS = {"contains", "list_contains", "list_has", "array_contains", "array_has"}
_COMPARISONS = {"COMPARISON", "COMPARE_IN", "COMPARE_NOT_IN", *_OF_LISTS}
# A condition as a query. The brackets and the last line enclose it, whatever its end is.
_WHERE = "SELECT 1 FROM records WHERE ({}\n)"
# A query without brackets: it exposes `1) OR (1`, which is no condition.
_BARE = "SELECT 1 FROM records WHERE {}\n"
# Types with values that Arrow or Python cannot represent: integers beyond 128 bits, 24:00, time zones of
# times, and months of intervals. Names of fields and classes are skipped.
_NOT_IN_ARROW = re.compile(
    r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|TIMESTAMP WITH TIME ZONE"
    r"|\b(UHUGEINT|BIGNUM|VARINT|BIT|TIME WITH TIME ZONE|TIMETZ|TIME|TIME_NS|INTERVAL)\b"
)
_NAMES = re.compile(r'"((?:[^"]|"")+)"')
_STRINGS = re.compile(r"'(?:[^']|'')*'")
# The sign or the word at which SQL cannot be parsed.
_NEAR = re.compile(r'at or near "(.+?)"')


def named_tables(
    files: Files | Mapping[str, Files], sql: str = "", schema: Schema | None = None
) -> dict[str, RecordTable]:
    """The tables of files with a name. For files without a name, a table for each split, named after the
    split.

    Args:
        files: a mapping from the names of tables to files; files of the empty name, and files without a
            mapping, have no name.
        sql: a query, which may use the columns with the location of a row, and the key.
        schema: the schema of the records; by default the schemas of the datasets.

    Raises the errors of `scan`.
    """
    from recordspec.tables.table import table_of  # imports pandas, in 0.2 s: a condition does not need it

    by_name = files if isinstance(files, Mapping) else {"": files}
    paths: dict[str, list[Location]] = {}
    manifests: dict[Location, Manifest] = {}
    schemas: dict[str, Schema | None] = {}
    for name in sorted(by_name, key=not_):  # files without a name come last
        found = StoredDataset.of(by_name[name], schema)
        manifests |= found.manifests
        for path, split in found.splits.items():
            table = name or (RECORDS if split == ALL else split)
            paths.setdefault(table, []).append(path)
            schemas.setdefault(table, found.given)
    datasets = {name: StoredDataset(distinct(some), manifests, schemas[name]) for name, some in paths.items()}
    words = set(re.findall(r"\w+", _STRINGS.sub("", sql.lower())))
    places = [place for place in (*PLACES, KEY) if place in words]
    return {name: table_of(dataset, schema).with_places(places) for name, dataset in datasets.items()}


@contextmanager
def query(
    sql: str,
    tables: Mapping[str, RecordTable],
    *,
    memory: str | None = None,
    progress: Progress | None = None,
) -> Iterator[Any]:
    """Runs a query, and yields its result, a `pyarrow.RecordBatchReader`.

    The SQL must be a single query, which reads the tables and no files: DuckDB's access to the outside is
    switched off, and its settings are locked. Data that does not fit into memory is spilled to a temporary
    folder, which is removed.

    Args:
        sql: the query, in the dialect of DuckDB.
        tables: the tables by name.
        memory: DuckDB's memory limit, such as `2GiB`; by default 80 % of the machine's memory.
        progress: receives the number of rows read.

    Raises:
        SpecError: the SQL is invalid, or is not a query.
        RecordError: a record is corrupt.
        StoreError: the memory or the disk is full.
        MissingExtra: without DuckDB.
    """
    tables = {name: readable(table) for name, table in tables.items()}
    columns = {name: table.schema.names for name, table in tables.items()}
    errors = partial(errors_of, sql, columns, tables.values())
    with connected(memory=memory) as connection, interrupting(connection), errors():
        hint = "in SQL they are one: give one another name, `b=FILES`"
        _check_case(sql, list(tables), "tables whose names differ in more than case", hint)
        for name, table in tables.items():
            expected = "names that differ in more than case"
            _check_case(sql, table.schema.names, expected, "`export` writes both")
            table.progress = progress or table.progress
            register(connection, name, table)
        _check_statement(connection, sql)
        reader = reader_of(_in_arrow(connection.sql(sql)))
        schema = _distinct(reader.schema)
        yield arrow().RecordBatchReader.from_batches(schema, _batches(errors, reader, schema))


def _check_case(sql: str, names: Sequence[str], expected: str, hint: str) -> None:
    """Raises SpecError for a query with the name of two columns or tables that differ only in case: SQL
    ignores case, and would use one of the two.
    """
    known: dict[str, str] = {}
    words = _STRINGS.sub("", sql.lower())
    quoted_names = set(_NAMES.findall(words))
    words = _NAMES.sub("", words)
    for name in names:
        other = known.setdefault(name.lower(), name)
        is_bare = re.search(rf"(?<!\w){re.escape(name.lower())}(?!\w)", words)
        if other != name and (is_bare or name.lower().replace('"', '""') in quoted_names):
            got = f"`{other}` and `{name}`"
            raise SpecError(Problem(where="SQL", expected=expected, got=got, hint=hint))


def _check_statement(connection: Any, sql: str) -> None:
    """Raises SpecError unless the SQL is a single query."""
    kinds = duckdb_module().StatementType
    # PIVOT is a query that first creates a type from its columns: in DuckDB 1 by a statement without text, in
    # DuckDB 2 as a part of a MULTI statement
    statements = [one for one in connection.extract_statements(sql) if one.type != kinds.CREATE or one.query]
    makes = re.search(r"\bcreate\b", _STRINGS.sub("", sql.lower()))
    # DESCRIBE, SUMMARIZE and SHOW are queries as well
    queries = (kinds.SELECT, kinds.EXPLAIN, *([] if makes else [kinds.MULTI]))
    wrong = [one for one in statements if one.type not in queries]
    if len(statements) != 1 or wrong:
        got = str(wrong[0].type).rpartition(".")[2].rstrip("'>") if wrong else f"{len(statements)} statements"
        raise SpecError(Problem(where="SQL", expected="one query", got=got.partition(":")[0]))


def _in_arrow(result: Any) -> Any:
    """The result of a query. Values of types that Arrow or Python lacks are cast to DuckDB's text."""
    types = list(map(str, result.types))
    held = [_NOT_IN_ARROW.sub(lambda found: "VARCHAR" if found[1] else found[0], type_) for type_ in types]
    if held == types:
        return result
    parts = enumerate(
        zip(result.columns, types, held, strict=True), 1
    )  # by their number: names may come twice
    return result.project(
        ", ".join(
            f"{f'#{number}' if type_ == text else f'CAST(#{number} AS {text})'} AS {quoted(name)}"
            for number, (name, type_, text) in parts
        )
    )


def _distinct(schema: Any) -> Any:
    """The schema with unique names: a repeated name gets a number, as after a join: `label`, `label_1`."""
    names = list(schema.names)
    for place, name in enumerate(schema.names):
        number = 0
        while names[place] in names[:place] or (number and names[place] in schema.names):
            number += 1
            names[place] = f"{name}_{number}"
    return arrow().schema([field.with_name(name) for name, field in zip(names, schema, strict=True)])


def _batches(errors: Callable[[], Any], reader: Any, schema: Any) -> Iterator[Any]:
    """The batches of a result. Converts DuckDB's errors to ours."""
    with errors():
        for batch in reader:
            yield arrow().RecordBatch.from_arrays(batch.columns, schema=schema)


class Condition:
    """A SQL condition on the rows of files, in DuckDB's dialect, over the columns of `scan`. A stored key
    that is not a feature's name is a column as well, with the stored values.

    Raises:
        SpecError: it is not a single expression, or names an unknown column.
        MissingExtra: without DuckDB.

    Attributes:
        columns: the columns that it needs.
    """

    def __init__(self, where: str, scanner: Scanner) -> None:
        self._where, self._scanner = where, scanner
        # one thread: a call takes 0.8 ms of CPU instead of 1.0, and keeps the order of rows
        self._connection = connect(threads=1)
        parts = self._parts()
        names = [name for part in parts for name in part.get("column_names", ())]
        columns = self._columns()
        if not all(_meant(name, columns) for name in names):
            columns = self._columns(stored=True)
        needed = list(dict.fromkeys(column for name in names for column in _meant(name, columns)))
        self._check(needed, columns)
        _check_classes(parts, columns)
        needed = needed or [*columns][-1:]  # without columns, a table has no number of rows
        self.columns = [columns[name] for name in needed]
        self._reader = ColumnReader(self.columns, scanner.dataset.schema)

    def __getstate__(self) -> dict[str, Any]:
        """What evaluates it: neither the scanner of all files nor the connection."""
        return {name: value for name, value in vars(self).items() if name not in ("_scanner", "_connection")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _connection=connect(threads=1))

    def _columns(self, *, stored: bool = False) -> dict[str, ScanColumn]:
        columns = all_columns(self._scanner, stored=stored)
        return without_dictionaries(columns) if is_first_version() else columns

    def _parts(self) -> list[Any]:
        """The nodes of the syntax tree. Raises SpecError for text that is no condition."""
        where = self._where.strip()
        if not where:
            raise _no_condition("nothing")
        try:
            where.encode()
            tree, model = map(self._parsed, (where, "true"))
        except UnicodeEncodeError:
            raise _no_condition(ascii(where), "half of a surrogate pair is no text") from None
        except RecursionError:
            raise _no_condition("one that is nested too deeply") from None
        if tree["error"]:
            hint = self._syntax_hint(where, tree["error_message"], int(tree.get("position") or 0))
            raise _no_condition(f"`{where}`", hint)
        node, model_node = (parsed["statements"][0]["node"] for parsed in (tree, model))
        if {**node, "where_clause": None} != {**model_node, "where_clause": None}:
            raise _no_condition(f"`{where}`", "a query has more parts: `recordspec query`")
        if self._parsed(where, _BARE)["error"]:
            raise _no_condition(f"`{where}`", "a bracket that closes was not open")
        nodes = list(_nodes(node["where_clause"]))
        for kind, got in (("SUBQUERY", "a query in it"), ("STAR", "`*`, which stands for several columns")):
            if any(part.get("class") == kind for part in nodes):
                raise _no_condition(got, "`recordspec query` takes whole queries")
        return nodes

    def _syntax_hint(self, where: str, message: str, at: int) -> str:
        """What a condition lacks that DuckDB cannot parse: quotes, or else what DuckDB tells."""
        columns = self._columns(stored=True)
        if name := takes_quotes(message, where, columns):
            return f"the name {quoted(name)} takes its double quotes"
        if (word := _bare_text(where, message)) and word not in columns:
            return text_in_quotes(word)
        is_end = at >= len(_WHERE.format(where).encode()) - 2
        return "syntax error at its end" if is_end else message

    def _parsed(self, where: str, query: str = _WHERE) -> Any:
        """The syntax tree of a query with the condition."""
        sql = query.format(where)
        with errors_of(where, {}, where="where"):
            quoted = sql.replace("'", "''")  # a parameter would import pandas, with DuckDB 1.4
            ((text,),) = self._connection.execute(f"SELECT json_serialize_sql('{quoted}')").fetchall()
        return json.loads(text)

    def _check(self, needed: Sequence[str], columns: Mapping[str, ScanColumn]) -> None:
        """Raises SpecError for a condition that DuckDB rejects over the columns."""
        lower = {name.lower(): name for name in needed}
        for name in needed:
            if lower[name.lower()] != name:
                expected, got = "names that differ in more than case", f"`{name}` and `{lower[name.lower()]}`"
                raise SpecError(Problem(where="where", expected=expected, got=got))
        others = [name for name in columns if name.lower() not in lower]
        schema = arrow().schema([(name, columns[name].type) for name in (*needed, *others)])
        kind = "a key" if self._scanner.dataset.schema is None else "a feature, or a key"
        self._errors = partial(
            errors_of,
            self._where,
            {"records": list(columns)},
            where="where",
            a_column=f"{kind} of the first records",
        )
        with self._errors():
            # a table in DuckDB: otherwise Arrow would evaluate a part of the condition, which imports pandas
            self._connection.register("none", arrow().RecordBatchReader.from_batches(schema, []))
            self._connection.execute("CREATE TEMP TABLE records AS FROM none")
            self._connection.execute(_WHERE.format(self._where)).fetchall()
            described = self._connection.execute(f"DESCRIBE SELECT ({self._where}\n) FROM records")
            type_ = described.fetchall()[0][1]
            self._connection.execute("INSERT INTO records DEFAULT VALUES")
            self._check_lists()
            self._connection.execute("DROP TABLE records")
        if type_ != "BOOLEAN":
            raise _no_condition(f"`{self._where}`, which is {type_}", "a comparison is true or false")

    def _check_lists(self) -> None:
        """Raises SpecError if a list is compared with a value, which DuckDB reports only for a table with
        a row.
        """
        try:
            with self._errors():
                self._connection.execute(f"SELECT ({self._where}\n) FROM records").fetchall()
        except SpecError as error:
            if error.problems[0].expected == COMPARISON_WITH_LIST:
                raise

    def interrupt(self) -> None:
        """Interrupts a DuckDB call from another thread: `matches` raises KeyboardInterrupt."""
        self._connection.interrupt()

    def matching(self, batches: Iterator[RowBatch]) -> Iterator[RowBatch]:
        """Yields the rows of batches for which the condition is true, not NULL.

        Raises RecordError at a row that cannot be read, or for which the condition cannot be evaluated, after
        the rows before it.
        """
        for group in _together(batches):
            matches, error = self.matches(group)
            for batch, rows in zip(group, matches, strict=False):
                if len(rows):
                    yield batch if len(rows) == len(batch) else batch.take(rows)
            if error is not None:
                raise error

    def matches(self, group: Sequence[RowBatch]) -> tuple[list[Ints], RecordError | None]:
        """The matching rows of each batch, up to the first row that cannot be read or evaluated, and the
        error.
        """
        counts, made, error = list[int](), list[Any](), None
        for batch in group:
            some, error = self._reader.made(batch)
            made += some
            counts.append(len(batch) if error is None else error.row or 0)
            if error is not None:
                break
        chosen, problem = self._chosen(arrow().Table.from_batches(made, self._reader.projected_schema))
        matches = []
        for batch, count in zip(group, counts, strict=False):
            matches.append(np.flatnonzero(chosen[:count]))
            if problem is not None and len(chosen) < count:
                problem = replace(problem, where=batch.place(len(chosen)), path=("where",))
                return matches, RecordError(problem, len(chosen))
            chosen = chosen[count:]
        return matches, error

    def _chosen(self, table: Any) -> tuple[Mask, Problem | None]:
        """A mask of the rows for which the condition is true, up to the first one for which it cannot be
        evaluated, and the problem.
        """
        try:
            return self._evaluated(table), None
        except SpecError as error:
            (problem,) = error.problems
        first, count = 0, len(table)  # the failing row is among these
        while count > 1:
            try:
                self._evaluated(table.slice(first, count // 2))
                first, count = first + count // 2, count - count // 2
            except SpecError as error:
                (problem,) = error.problems
                count //= 2
        return self._evaluated(table.slice(0, first)), problem

    def _evaluated(self, table: Any) -> Mask:
        if not len(table):
            return np.zeros(0, bool)
        with self._errors():
            self._connection.register("records", table.to_reader())
            # not in WHERE, which Arrow would evaluate in part
            sql = f"SELECT coalesce(({self._where}\n), false) AS chosen FROM records"
            chosen: Mask = self._connection.execute(sql).fetchnumpy()["chosen"]
        return chosen


def _check_classes(parts: Sequence[Any], columns: Mapping[str, ScanColumn]) -> None:
    """Raises SpecError if a label is compared with a text that is no class."""
    for part in parts:
        kinds = {str(part.get(name)) for name in ("class", "type", "function_name")}
        if kinds.isdisjoint(_COMPARISONS):
            continue
        sides = [*_sides(part)]
        named = [name for side in sides for name in side.get("column_names", ())]
        # in DuckDB 2, and in DuckDB 1
        constants = [side.get("literal") or side.get("value") for side in sides]
        texts = [each.get("text") or each.get("value") for each in constants if isinstance(each, dict)]
        for column in (columns[each] for name in named for each in _meant(name, columns)):
            if kinds.isdisjoint(_OF_LISTS) or is_list_type(column.type):
                _check_class([text for text in texts if isinstance(text, str)], column)


def _sides(part: Any) -> Iterator[Any]:
    """The operands of a comparison."""
    for value in part.values():
        for side in value if isinstance(value, list) else [value]:
            if isinstance(side, dict):
                yield side.get("expression", side)  # an argument of a function in DuckDB 2


def _check_class(texts: Sequence[str], column: ScanColumn) -> None:
    for feature in (each.feature for each in column.features):
        names = feature.traits.class_names
        if not names or feature.columns()[0].storage == "bytes":
            continue  # stored names are not limited to the classes
        for text in texts:
            if text not in names and not text.lstrip("-").isdigit():  # an index without a name is its digits
                some = one_of_classes(names)
                path, hint = (feature.name,), nearest(text, names)
                raise SpecError(Problem(where="where", path=path, expected=some, got=f"`{text}`", hint=hint))


def _bare_text(where: str, message: str) -> str:
    """The word of SQL, such as `order`, that a syntax error finds in place of a text; or an empty text."""
    near = _NEAR.search(message)
    word = near[1] if near and near[1].isidentifier() else ""
    compared = re.search(rf"=\s*({word})\b" if word else r"=\s*([A-Za-z_]\w*)\s*$", where)
    return compared[1] if compared else ""


def _no_condition(got: str, hint: str = "") -> SpecError:
    return SpecError(Problem(where="where", expected="a condition in SQL", got=got, hint=hint))


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """The nodes of a syntax tree."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
        if isinstance(node, (dict, list)):
            left += reversed(node.values() if isinstance(node, dict) else node)


def _meant(name: str, columns: Iterable[str]) -> list[str]:
    """The columns that a name in SQL may mean, ignoring case."""
    return [name] if name in columns else [known for known in columns if known.lower() == name.lower()]


def _together(batches: Iterator[RowBatch]) -> Iterator[list[RowBatch]]:
    """Groups small batches into ever larger groups, so that the first batches come at once."""
    group, rows, size, most = list[RowBatch](), 0, 0, 1
    try:
        for batch in batches:
            rows, size = rows + len(batch), size + batch.bytes
            is_full = rows >= most or size >= _BYTES_TOGETHER
            group.append(batch if is_full else batch.kept())  # the buffer of a file is larger than few rows
            if is_full:
                yield group
                group, rows, size, most = [], 0, 0, min(2 * most, _ROWS_TOGETHER)
    except RecordspecError:
        if group:
            yield group
        raise
    if group:
        yield group
