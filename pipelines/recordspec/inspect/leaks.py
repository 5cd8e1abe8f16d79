"""Rows that are in several splits, or several times in one: by their content, their key, or some features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from recordspec._duckdb import connected, errors_of
from recordspec.errors import Problem, SpecError, nearest
from recordspec.inspect.scan_columns import CONTENT
from recordspec.inspect.sql import named_tables
from recordspec.inspect.table import KEY, RecordTable
from recordspec.progress import Progress
from recordspec.schema.schema import Schema

# What the columns of a row's place are called, beside its features.
_PREFIX = "recordspec_"


@dataclass(frozen=True, kw_only=True)
class Leak:
    """Rows that are in two splits, or several times in one.

    Attributes:
        by: what is the same: `content`, `key`, or the features.
        splits: the names of the two splits, or of the one.
        rows: of two splits, how many different rows are in both; of one, how many rows are there beside the
            first of each.
        places: where the first row is that is in both, or twice: a file and the number of the record, once or
            twice.
        told_apart: whether the build told these copies apart by their number, since rows had no key.
    """

    by: str
    splits: tuple[str, ...]
    rows: int
    places: tuple[tuple[str, int], ...]
    told_apart: bool = False


def leaks(
    sources: Iterable[tuple[str, str]],
    schema: Schema | None = None,
    *,
    columns: Sequence[str] = (),
    memory: str | None = None,
    progress: Progress | None = None,
) -> tuple[Leak, ...]:
    """Finds rows that are in several splits, or several times in one.

    Rows have the same content if their records have equal bytes, by a hash of 64 bits: of a billion different
    rows, any two have the same one with a probability of 3 %. Rows whose key, or one of whose features, is
    missing are not compared by it.

    Args:
        sources: pairs of a name, which may be empty, and a path, a folder or a pattern. Files with a name are
            a split with that name.
        schema: of the records; by default those of the datasets.
        columns: features by which rows are the same, all of them together; by default the content, and the
            key where all datasets have one.
        memory: of DuckDB, such as `2GiB`; what does not fit is kept on the disk.
        progress: receives the number of rows that are read.

    Raises:
        SpecError: there is no such feature.
        StoreError: there are no files, or the disk is full.
        RecordError: a record cannot be read.
        MissingExtra: without DuckDB.
    """
    tables = named_tables(sources, schema=schema)
    names = {name for table in tables.values() for name in table.schema.names}
    for column in columns:
        for split, table in tables.items():
            if column not in table.schema.names:
                expected, hint = f"a feature of `{split}`", nearest(column, names)
                raise SpecError(Problem(path=("columns",), expected=expected, got=f"`{column}`", hint=hint))
    if columns:
        return tuple(_found(", ".join(columns), columns, tables, memory, progress))
    found = list(_found(CONTENT, (_PREFIX + CONTENT,), tables, memory, progress))
    if all(_PREFIX + KEY in _placed(table).schema.names for table in tables.values()):
        found += _found(KEY, (_PREFIX + KEY,), tables, memory, progress)
    return tuple(found)


def _found(
    by: str,
    columns: Sequence[str],
    tables: Mapping[str, RecordTable],
    memory: str | None,
    progress: Progress | None,
) -> Iterator[Leak]:
    """Reads the rows once, and again if some are there twice."""
    named = {f"t{number}": table for number, table in enumerate(tables.values())}
    errors = partial(errors_of, "", {name: table.schema.names for name, table in named.items()})
    with connected(memory=memory) as connection, errors(named.values()):
        for name, table in named.items():
            places = _placed(table)
            places.progress = progress or places.progress
            named[name] = places
            connection.register(name, places)
        present = " AND ".join(f"{_quoted([column])} IS NOT NULL" for column in columns)
        place = f"struct_pack(file := {_PREFIX}file, record := {_PREFIX}record) AS place"
        selected = " UNION ALL ".join(
            f"SELECT {number} AS split, {_row(columns)} AS row, {place} FROM {name} WHERE {present}"
            for number, name in enumerate(named)
        )
        # the rows that are there twice first, of which no place is kept
        connection.execute(
            f"CREATE TEMP TABLE several AS SELECT row FROM ({selected}) GROUP BY row HAVING count(*) > 1"
        )
        if not connection.execute("SELECT count(*) FROM several").fetchall()[0][0]:
            return
        connection.execute(
            f"""CREATE TEMP TABLE found AS
                SELECT row, split, count(*) AS times, min(place) AS first, max(place) AS last
                FROM ({selected}) SEMI JOIN several USING (row) GROUP BY ALL"""
        )
        pairs = connection.execute(
            """SELECT a.split, b.split, count(*), min(struct_pack(first := a.first, other := b.first))
                FROM found a JOIN found b USING (row) WHERE a.split < b.split GROUP BY ALL ORDER BY ALL"""
        ).fetchall()
        alone = connection.execute(
            """SELECT split, sum(times - 1), min(struct_pack(first := first, other := last))
                FROM found WHERE times > 1 GROUP BY ALL ORDER BY ALL"""
        ).fetchall()
    splits = list(tables)
    for first, second, rows, places in pairs:
        yield _leak(by, tables, (splits[first], splits[second]), rows, places)
    for split, rows, places in alone:
        yield _leak(by, tables, (splits[split],), rows, places)


def _leak(
    by: str, tables: Mapping[str, RecordTable], splits: tuple[str, ...], rows: Any, places: Any
) -> Leak:
    return Leak(
        by=by,
        splits=splits,
        rows=int(rows),
        places=tuple((place["file"], place["record"]) for place in places.values()),
        told_apart=by == CONTENT and _tells_apart([tables[split] for split in splits]),
    )


def _placed(table: RecordTable) -> RecordTable:
    """The table with columns of what its rows are, and of where."""
    return table.with_places((CONTENT, KEY, "file", "record"), _PREFIX)


def _tells_apart(tables: Sequence[RecordTable]) -> bool:
    """Whether these are of one dataset whose build numbered the copies of a row, each of which has a split of
    its own."""
    manifest, *others = (table.manifest for table in tables)
    if manifest is None or any(other != manifest for other in others):
        return False
    return not manifest.key and manifest.division.get("copies") == "spread"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


def _row(columns: Sequence[str]) -> str:
    """What is the same of rows: one value, or several."""
    if len(columns) == 1:
        return _quoted(columns)
    values = (f"value{number} := {_quoted([column])}" for number, column in enumerate(columns))
    return f"struct_pack({', '.join(values)})"
