"""Datasets as DataFrames: Spark's executors read ranges of files, and decode the columns of the frame."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from inspect import signature
from itertools import chain
from typing import Any

import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from recordspec.errors import MissingExtra, Problem, SpecError, StoreError, one_of
from recordspec.executors import cluster, working_in
from recordspec.locations import AnyPath
from recordspec.schema.schema import Schema
from recordspec.spark.spark_jobs import SparkExecutor, SparkJobs, check_session, spark_errors, task
from recordspec.store.expand import Files, Split
from recordspec.store.scan import FileRange, groups, groups_by_bytes
from recordspec.tables.table import Corrupt, RecordTable, TableElsewhere, Values, plain_table

try:
    from pyspark.sql import datasource
except ImportError:  # before Spark 4
    datasource = None

# The most partitions of a frame: Spark's driver keeps a few kilobytes of each.
_MOST_PARTITIONS = 10_000
# Spark 4 asks for the time zone of the type of times, which are in UTC in any case.
ZONE: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
# Spark's types of Arrow's types that it does not have.
_WIDER = {
    "uint8": pyarrow.int16(),
    "uint16": pyarrow.int32(),
    "uint32": pyarrow.int64(),
    "uint64": pyarrow.decimal128(20),
    "halffloat": pyarrow.float32(),
    "large_string": pyarrow.string(),
    "large_binary": pyarrow.binary(),
}


def _table_of_options(options: Mapping[str, str]) -> RecordTable:
    """The table that the options of `register` choose. Raises SpecError."""
    usual = {"schema": None, "split": None, "columns": None, "values": "stored", "corrupt": "error"}
    for name in options.keys() - usual.keys() - {"path"}:
        expected = one_of(sorted((*usual, "path")))
        raise SpecError(Problem(path=("option",), expected=expected, got=f"`{name}`"))
    if "path" not in options:
        raise SpecError(Problem(path=("option", "path"), expected="the path of a dataset", got="none"))
    chosen: dict[str, Any] = {**usual, **options}
    if chosen["columns"] is not None:
        chosen["columns"] = [name.strip() for name in chosen["columns"].split(",")]
    return plain_table(chosen.pop("path"), chosen.pop("schema"), None, **chosen)


def _frame(session: SparkSession, table: RecordTable) -> DataFrame:
    """The rows of a table without dictionaries, of which executors read ranges."""
    context = session.sparkContext
    parts = [(part,) for part in _partitions(_ranges(session, table), context.defaultParallelism)]
    packed = session.createDataFrame(context.parallelize(parts, len(parts)), "part binary")
    types = types_of(table.schema)
    return packed.mapInArrow(task(partial(_read, TableElsewhere.of(table), types)), types)


def _ranges(session: SparkSession, table: RecordTable) -> list[FileRange]:
    """The ranges of files, which executors find."""
    if cluster() is not None:
        return list(table.ranges())
    jobs = SparkJobs(session, "reading")
    with spark_errors(StoreError, "reading"), jobs.running():
        return list(table.ranges(SparkExecutor(jobs)))


def _partitions(parts: Sequence[FileRange], processes: int) -> list[bytes]:
    """The ranges of each partition, pickled together: ranges of blocks share a schema, of some kilobytes.

    Small files share a partition: a task of Spark takes 50 ms, reading a small file takes 1 ms.
    """
    by_bytes = list(groups_by_bytes(parts, [part.bytes for part in parts], processes))
    several = groups(by_bytes, _MOST_PARTITIONS)
    return [pickle.dumps(list(chain.from_iterable(some))) for some in several]


def _read(table: TableElsewhere, types: Any, batches: Iterable[Any]) -> Iterator[Any]:
    return _rows_in(table, types, (part.as_py() for batch in batches for part in batch.column(0)))


def _rows_in(table: TableElsewhere, types: Any, parts: Iterable[bytes]) -> Iterator[Any]:
    """The rows of partitions as record batches of Spark's types."""
    target = to_arrow_schema(types, **ZONE)
    for batch in table.batches(chain.from_iterable(map(pickle.loads, parts))):
        columns = [
            _plain(column).cast(field.type) for column, field in zip(batch.columns, target, strict=True)
        ]
        yield pyarrow.RecordBatch.from_arrays(columns, schema=target)


def read(
    session: SparkSession,
    files: Files,
    schema: Schema | AnyPath | None = None,
    *,
    split: Split = None,
    columns: Sequence[str] | None = None,
    values: Values = "stored",
    corrupt: Corrupt = "error",
    where: Any = None,
) -> DataFrame:
    """The rows of a dataset, or of other TFRecords, as a DataFrame: the rows of `recordspec.scan`.

    A partition has consecutive files of about 64 MiB, or a range of a large file. It has fewer files if there
    would be fewer than 8 partitions for each task that the session runs at a time (`defaultParallelism`),
    and more if there would be more than 10,000 partitions.

    Unsigned 64-bit integers become decimals of 20 digits, smaller unsigned integers the next larger type
    with a sign.

    Args:
        session: a session of Spark.
        files, schema, split, columns, values, corrupt: as for `recordspec.scan`. Only the keys of `columns`
            are decoded.
        where: a `pyarrow.dataset.Expression`: executors leave out other rows before they hand them to Spark.

    Raises the errors of `recordspec.scan`, and SpecError for a session of Spark Connect. Errors of records
    are those of Spark's jobs.
    """
    check_session(session)
    table = plain_table(files, schema, where, split=split, columns=columns, values=values, corrupt=corrupt)
    return _frame(session, table)


def equal_rows(
    session: SparkSession, tables: Sequence[RecordTable], columns: Sequence[str], places: Sequence[str]
) -> tuple[list[Any], list[Any]]:
    """Rows of several tables, or of one, with equal values in some columns, none of which is missing; without
    columns, with equal content.

    Args:
        places: the names of the columns `file`, `record` and `content`.

    Returns:
        For each pair of tables with such rows their numbers, the number of distinct values, and the first
        places; for each table with repeated values its number, the number of repetitions, and two places.
    """
    parts = []
    for number, table in enumerate(tables):
        values = [f"value{place}" for place in range(len(columns))]
        rows = table.placed(columns, places).without_dictionaries()
        frame = _frame(session, rows).toDF(*values, "file", "record", "content")
        for value in values:
            frame = frame.where(sql.col(value).isNotNull())
        row = sql.struct(*values) if values else sql.col("content")
        place = sql.struct("file", "record")
        parts.append(frame.select(sql.lit(number).alias("split"), row.alias("row"), place.alias("place")))
    found = (
        reduce(DataFrame.union, parts)
        .groupBy("row", "split")
        .agg(sql.count("*").alias("times"), sql.min("place").alias("first"), sql.max("place").alias("last"))
    )
    several = found.groupBy("row").agg(sql.sum("times").alias("all")).where("all > 1").select("row")
    found = found.join(several, "row", "left_semi").persist()
    try:
        one, other = found.alias("a"), found.alias("b")
        both = one.join(other, sql.col("a.row").eqNullSafe(sql.col("b.row")) & sql.expr("a.split < b.split"))
        first = sql.min(sql.struct(sql.col("a.first"), sql.col("b.first").alias("other"))).alias("places")
        pairs = both.groupBy("a.split", "b.split").agg(sql.count("*"), first).collect()
        last = sql.min(sql.struct("first", sql.col("last").alias("other"))).alias("places")
        repeated = sql.sum(sql.col("times") - 1)
        alone = found.where("times > 1").groupBy("split").agg(repeated, last).collect()
    finally:
        found.unpersist()
    return (
        [(a, b, rows, places.asDict()) for a, b, rows, places in sorted(pairs, key=lambda pair: pair[:2])],
        [(a, rows, places.asDict()) for a, rows, places in sorted(alone, key=lambda one: one[0])],
    )


def types_of(schema: Any) -> Any:
    """Spark's types of the columns of a table, a `pyspark.sql.types.StructType`."""
    return from_arrow_schema(pyarrow.schema([field.with_type(_plain_type(field.type)) for field in schema]))


def _plain_type(of: Any) -> Any:
    """The type that Spark has for one of Arrow's."""
    if pyarrow.types.is_large_list(of) or pyarrow.types.is_fixed_size_list(of) or pyarrow.types.is_list(of):
        return pyarrow.list_(_plain_type(of.value_type))
    if pyarrow.types.is_struct(of):
        return pyarrow.struct([field.with_type(_plain_type(field.type)) for field in of])
    if pyarrow.types.is_null(of):
        return pyarrow.string()
    return _WIDER.get(str(of), of)


def _plain(column: Any) -> Any:
    return column.cast(_plain_type(column.type))


def register(session: SparkSession) -> None:
    """Makes `session.read.format("recordspec")` known. Its options are `path`, `schema` (a path), `split`,
    `columns` (names with commas between them), `values` and `corrupt`, as for `read`.

    Raises MissingExtra before Spark 4, which has no data sources in Python, and SpecError for a session of
    Spark Connect.
    """
    check_session(session)
    if datasource is None:
        hint = "`recordspec.spark.read` makes a frame on Spark 3.5, too"
        raise MissingExtra(Problem(expected="Spark 4 or later", got="an older one", hint=hint))
    # Spark calls it in other processes, which have another working folder and no session
    known = {"folder": os.getcwd(), "processes": session.sparkContext.defaultParallelism}
    session.dataSource.register(type(RecordSource.__name__, (RecordSource,), known))


if datasource is not None:

    class RecordSource(datasource.DataSource):  # type: ignore[misc]
        """The format `recordspec` of `spark.read`.

        Attributes:
            folder: the folder to which paths are relative.
            processes: the number of tasks that the session runs at a time.
        """

        folder = "."
        processes = 1

        @classmethod
        def name(cls) -> str:
            return "recordspec"

        def schema(self) -> Any:
            with working_in(self.folder):
                return types_of(_table_of_options(self.options).schema)

        def reader(self, schema: Any) -> RecordReader:
            with working_in(self.folder):
                table = _table_of_options(self.options)
                return RecordReader(table, TableElsewhere.of(table), self.processes)

    class RecordReader(datasource.DataSourceReader):  # type: ignore[misc]
        """Reads ranges of files."""

        def __init__(self, table: RecordTable, elsewhere: TableElsewhere, processes: int) -> None:
            self._parts = _partitions(list(table.ranges()), processes)
            self._types, self._table = types_of(table.schema), elsewhere

        def partitions(self) -> Sequence[Any]:
            return [_Part(part) for part in self._parts]

        def __getstate__(self) -> dict[str, Any]:
            """What each executor receives: a partition has its own parts."""
            return self.__dict__ | {"_parts": []}

        def read(self, partition: Any) -> Iterator[Any]:
            return _rows_in(self._table, self._types, [partition.value])

    class _Part(datasource.InputPartition):  # type: ignore[misc]
        """The pickled ranges of a partition."""
