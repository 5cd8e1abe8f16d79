"""Finds rows that are in several splits, or several times in one. Compares content, keys or features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from recordspec._duckdb import connected, errors_of, readable, register
from recordspec.errors import Problem, SpecError, nearest
from recordspec.executors import cluster
from recordspec.locations import AnyPath
from recordspec.progress import Progress
from recordspec.schema.schema import Schema, given_schema
from recordspec.store.expand import Files
from recordspec.tables.scan_columns import CONTENT, KEY
from recordspec.tables.sql import named_tables
from recordspec.tables.table import RecordTable

# The columns of a row's place and content, selected behind the compared columns.
_PLACES = ("file", "record", CONTENT)


@dataclass(frozen=True, kw_only=True)
class Leak:
    """Rows that are in two splits, or several times in one.

    Attributes:
        by: the compared values: `content`, `key`, or the names of the features.
        splits: the names of the two splits, or the name of the split with duplicates.
        rows: the number of distinct rows that are in both splits; in a single split, the number of rows that
            repeat an earlier one.
        places: the two places of the first such row, each a file and the number of a record.
        told_apart: whether the build numbered copies of a row, since rows had no key, and gave each copy a
            split of its own.
    """

    by: str
    splits: tuple[str, ...]
    rows: int
    places: tuple[tuple[str, int], ...]
    told_apart: bool = False


def leaks(
    files: Files | Mapping[str, Files],
    schema: Schema | AnyPath | None = None,
    *,
    columns: Sequence[str] = (),
    memory: str | None = None,
    progress: Progress | None = None,
) -> tuple[Leak, ...]:
    """Finds rows that are in several splits, or several times in one.

    Two rows have the same content if their records have equal bytes. Bytes are compared by a hash of 64 bits:
    among a billion different rows, two collide with a probability of 3 %. A row without a key is not compared
    by key; a row without one of `columns` is not compared by them.

    Args:
        files: a path, a folder, a pattern, or several of these, with the splits of the dataset; or a mapping
            from the name of a split to files. Files of the empty name have the splits of the dataset.
        schema: the schema of the records, or its path; by default the schemas of the datasets.
        columns: the features by which rows are compared, all of them together; by default the content, and
            the key if all datasets have the same key.
        memory: the memory limit of DuckDB, like `2GiB`. Data that exceeds it is spilled to disk.
        progress: receives the number of rows read.

    Raises:
        SpecError: a feature does not exist, or has another type in another split.
        StoreError: there are no files, or the disk is full.
        RecordError: a record cannot be read.
        MissingExtra: without DuckDB.

    Example:
        >>> rs.leaks("data/points")
        ()
    """
    tables = named_tables(files, schema=given_schema(schema))
    if columns:
        # an empty dataset without a schema has no features
        tables = {split: table for split, table in tables.items() if table.schema.names} or tables
        for split, table in tables.items():
            for column in [name for name in columns if name not in table.schema.names]:
                expected, hint = f"a feature of `{split}`", nearest(column, table.schema.names)
                raise SpecError(Problem(path=("columns",), expected=expected, got=f"`{column}`", hint=hint))
        alike = _alike(tables, columns)
        for column in columns:
            _check_types(column, tables, alike)
        return tuple(_found(", ".join(columns), columns, alike, memory, progress))
    of_content = _found(CONTENT, (), tables, memory, progress)
    return (*of_content, *_by_key(tables, memory, progress))


def _by_key(
    tables: Mapping[str, RecordTable], memory: str | None, progress: Progress | None
) -> Iterator[Leak]:
    """The leaks by key, if all datasets have the same key."""
    keys = {table.key for table in tables.values()}
    if len(keys) == 1 and (key := keys.pop()):
        alike = _alike(tables, key)
        if len({tuple(table.schema.field(name).type for name in key) for table in alike.values()}) == 1:
            yield from _found(KEY, key, alike, memory, progress)


def _alike(tables: Mapping[str, RecordTable], columns: Sequence[str]) -> dict[str, RecordTable]:
    """The tables, with these columns as bytes if only some tables have them as text: DuckDB would compare
    text with escaped bytes."""
    if len({tuple(table.schema.field(name).type for name in columns) for table in tables.values()}) == 1:
        return dict(tables)
    return {split: table.with_binary(columns) for split, table in tables.items()}


def _check_types(column: str, tables: Mapping[str, RecordTable], alike: Mapping[str, RecordTable]) -> None:
    """Raises SpecError for a column that has several types: DuckDB would convert its values to compare
    them."""
    types = {split: table.schema.field(column).type for split, table in alike.items()}
    first, *others = [split for split in types if "null" not in str(types[split])] or types
    for split in others:
        if types[split] != types[first]:
            old, new = (tables[name].schema.field(column).type for name in (first, split))
            expected, hint = f"`{column}` of one type in all splits", "a schema tells what it is"
            got = f"{old} in `{first}` and {new} in `{split}`"
            raise SpecError(Problem(path=("columns",), expected=expected, got=got, hint=hint))


def _found(
    by: str,
    columns: Sequence[str],
    tables: Mapping[str, RecordTable],
    memory: str | None,
    progress: Progress | None,
) -> Iterator[Leak]:
    """Reads the rows once, and again if there are duplicates. Without columns, the content is compared."""
    some = list(tables.values())
    if (running_on := cluster()) is not None:
        pairs, alone = running_on.equal_rows(some, columns, _PLACES)
    else:
        pairs, alone = _equal_rows(some, columns, _PLACES, memory=memory, progress=progress)
    splits = list(tables)
    for first, second, rows, places in pairs:
        yield _leak(by, tables, (splits[first], splits[second]), rows, places)
    for split, rows, places in alone:
        yield _leak(by, tables, (splits[split],), rows, places)


def _equal_rows(
    tables: Sequence[RecordTable],
    columns: Sequence[str],
    places: Sequence[str],
    *,
    memory: str | None,
    progress: Progress | None,
) -> tuple[list[Any], list[Any]]:
    """As for `spark.frames.equal_rows`, by DuckDB."""
    named = {f"t{number}": readable(table.placed(columns, places)) for number, table in enumerate(tables)}
    errors = partial(errors_of, "", {name: table.schema.names for name, table in named.items()})
    with connected(memory=memory) as connection, errors(named.values()):
        for name, table in named.items():
            table.progress = progress or table.progress
            register(connection, name, table)
        # named by their place: for DuckDB, upper and lower case are the same
        values = [f"value{number}" for number in range(len(columns))]
        # a struct: for a bare NaN, DuckDB 1.4 searches by Arrow's rules, by which NaN never equals NaN
        row = f"struct_pack({', '.join(f'{value} := {value}' for value in values)})" if values else CONTENT
        present = " AND ".join(f"{value} IS NOT NULL" for value in values) or "true"
        names = ", ".join([*values, *places])
        selected = " UNION ALL ".join(
            f"""SELECT {number} AS split, {row} AS row, struct_pack(file := file, record := record) AS place
                FROM {name} AS t({names}) WHERE {present}"""
            for number, name in enumerate(named)
        )
        # first the duplicate rows, without their places
        connection.execute(
            f"CREATE TEMP TABLE several AS SELECT row FROM ({selected}) GROUP BY row HAVING count(*) > 1"
        )
        if not connection.execute("SELECT count(*) FROM several").fetchall()[0][0]:
            return [], []
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
    return pairs, alone


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


def _tells_apart(tables: Sequence[RecordTable]) -> bool:
    """Whether all tables belong to one dataset whose build numbered the copies of a row and divided them
    among the splits."""
    manifest, *others = (table.manifest for table in tables)
    if manifest is None or any(other != manifest for other in others):
        return False
    return not manifest.key and manifest.division.get("copies") == "spread"
