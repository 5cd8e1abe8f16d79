"""Rows that are in several splits, or several times in one: by their content, their key, or some features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from recordspec._duckdb import connected, errors_of, readable, register
from recordspec.errors import Problem, SpecError, nearest
from recordspec.progress import Progress
from recordspec.schema.schema import Schema
from recordspec.tables.scan_columns import CONTENT, KEY
from recordspec.tables.sql import named_tables
from recordspec.tables.table import RecordTable

# The columns of a row's place, and of what it is, behind those that are compared.
_PLACES = ("file", "record", CONTENT)


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
            key where all datasets have the same one.
        memory: of DuckDB, such as `2GiB`; what does not fit is kept on the disk.
        progress: receives the number of rows that are read.

    Raises:
        SpecError: there is no such feature, or it has another type in another split.
        StoreError: there are no files, or the disk is full.
        RecordError: a record cannot be read.
        MissingExtra: without DuckDB.
    """
    tables = named_tables(sources, schema=schema)
    if columns:
        # of what is empty, no record has the features
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
    """The leaks by the key, if all datasets have the same one."""
    keys = {table.key for table in tables.values()}
    if len(keys) == 1 and (key := keys.pop()):
        alike = _alike(tables, key)
        if len({tuple(table.schema.field(name).type for name in key) for table in alike.values()}) == 1:
            yield from _found(KEY, key, alike, memory, progress)


def _alike(tables: Mapping[str, RecordTable], columns: Sequence[str]) -> dict[str, RecordTable]:
    """The tables, with these columns as bytes if they are text in some of them only: DuckDB compares text
    with escaped bytes."""
    if len({tuple(table.schema.field(name).type for name in columns) for table in tables.values()}) == 1:
        return dict(tables)
    return {split: table.with_binary(columns) for split, table in tables.items()}


def _check_types(column: str, tables: Mapping[str, RecordTable], alike: Mapping[str, RecordTable]) -> None:
    """Raises SpecError for a column whose values DuckDB would convert, to compare them."""
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
    """Reads the rows once, and again if some are there twice. Without columns, the content is compared."""
    named = {
        f"t{number}": readable(table.placed(columns, _PLACES)) for number, table in enumerate(tables.values())
    }
    errors = partial(errors_of, "", {name: table.schema.names for name, table in named.items()})
    with connected(memory=memory) as connection, errors(named.values()):
        for name, table in named.items():
            table.progress = progress or table.progress
            register(connection, name, table)
        # named by their place: for DuckDB, upper and lower case are the same
        values = [f"value{number}" for number in range(len(columns))]
        # a struct: of NaN, DuckDB 1.4 would look for an equal one by Arrow's rules, by which there is none
        row = f"struct_pack({', '.join(f'{value} := {value}' for value in values)})" if values else CONTENT
        present = " AND ".join(f"{value} IS NOT NULL" for value in values) or "true"
        names = ", ".join([*values, *_PLACES])
        selected = " UNION ALL ".join(
            f"""SELECT {number} AS split, {row} AS row, struct_pack(file := file, record := record) AS place
                FROM {name} AS t({names}) WHERE {present}"""
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


def _tells_apart(tables: Sequence[RecordTable]) -> bool:
    """Whether these are of one dataset whose build numbered the copies of a row, each of which has a split of
    its own."""
    manifest, *others = (table.manifest for table in tables)
    if manifest is None or any(other != manifest for other in others):
        return False
    return not manifest.key and manifest.division.get("copies") == "spread"
