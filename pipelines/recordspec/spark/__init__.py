"""Builds on Spark: the same bytes as a local build, for any number of rows; and commands that read all
records, with the results of one machine.

Executors run `tasks`; the driver starts them (`engine`, `spark_jobs`) and publishes the dataset.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from recordspec._arrow import arrow
from recordspec.errors import MissingExtra, Problem, SpecError, StoreError, missing_package, see
from recordspec.executors import on_cluster
from recordspec.progress import Progress
from recordspec.remote import RemotePath
from recordspec.schema.arrow_values import is_file, item_type
from recordspec.schema.schema import Schema, as_schema
from recordspec.store.manifest import Manifest
from recordspec.writing.build import place_of, planned_build
from recordspec.writing.failures import DiskError
from recordspec.writing.sources.arrow import check_table
from recordspec.writing.sources.base import name_of
from recordspec.writing.write import write_options
from recordspec.writing.write_options import Execution, Write

try:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import ArrayType, StructType, UserDefinedType
except ImportError as missing:
    raise missing_package("pyspark", "builds on Spark", "recordspec[spark]", missing) from None

from recordspec.spark.engine import EncodedFrame, duplicate_keys, encode, shard
from recordspec.spark.frames import ZONE
from recordspec.spark.frames import read as read
from recordspec.spark.frames import register as register
from recordspec.spark.spark_jobs import SparkExecutor, SparkJobs, check_session, spark_errors
from recordspec.spark.tasks import FrameRows

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recordspec.pipeline import Pipeline
    from recordspec.writing.write_options import PublishOptions, WriteOptions

    class FrameOptions(WriteOptions, PublishOptions, total=False):
        """The options of `write`."""


_MASTER = re.compile(r"local(-cluster)?(\[.+\])?|yarn|\w+://.+")
_REFUSED = {
    "jobs": "Spark's executors share the work",
    "memory": "Spark's configuration defines their memory",
    "limit": "`frame.limit(n)` is a frame of fewer rows",
    "resume": "Spark repeats the tasks that fail",
}


def build(
    pipeline: Pipeline,
    session: SparkSession,
    *,
    source: str | os.PathLike[str] | RemotePath | None = None,
    **options: Unpack[PublishOptions],
) -> Manifest:
    """Builds the dataset of a config on Spark, byte for byte like `Pipeline.build`.

    Executors read the files of the source, and write to the folder of the dataset, under the same paths as
    the driver.

    Args:
        source: a file or folder to read instead of the config's source.
        options: allow_empty, force, append and progress, as for `recordspec.write`.

    Raises what `recordspec.write` raises, and no errors of Spark: a job that fails raises StoreError.
    """

    def write_source(rows: Any, schema: Schema, directory: Any, **options: Any) -> Manifest:
        return _build(session, None, rows, schema, directory, options)

    return pipeline.build(source=source, write=write_source, **options)


def write(
    frame: DataFrame,
    schema: Schema,
    directory: str | os.PathLike[str] | RemotePath,
    *,
    split: Any = "train",
    **options: Unpack[FrameOptions],
) -> Manifest:
    """Writes the rows of a Spark DataFrame as a sharded dataset, which appears as a whole or not at all.

    The same rows and options yield the same bytes as `recordspec.write`, whatever the partitions;
    without a shuffle the order is that of the partitions. A partition must yield the same rows when it is
    computed again: persist a frame that does not, such as one with `rand()`.

    Args:
        frame: has a column for each feature, and for each name in the options.
        directory: a folder that does not exist yet, under a path that executors have too.
        split, options: as for `recordspec.write`, except jobs, memory, limit and resume.

    Raises what `recordspec.write` raises, and no errors of Spark: a job that fails raises StoreError.
    Messages identify a row by its partition and its number there.
    """
    return _build(frame.sparkSession, frame, FrameRows(), schema, directory, {"split": split, **options})


@contextmanager
def running_on(session: SparkSession, name: str = "reading") -> Iterator[None]:
    """Within it, functions that read all records run on Spark's executors: `recordspec.verify`, `check`,
    `stats`, `infer` of TFRecords and Parquet, `leaks`, `diff`, `adopt`, and `export`, which writes a folder
    of files. Their results are those of one machine. If CSV or JSON Lines files are read within it, executors
    find where their rows end.

    Args:
        session: a session of Spark.
        name: the name of the work, in Spark's list of jobs and in messages.

    Raises StoreError for a job that fails, and the errors of the functions.
    """
    check_session(session)
    jobs = SparkJobs(session, name)
    with spark_errors(StoreError, name), jobs.running(), on_cluster(SparkExecutor(jobs)):
        yield


@contextmanager
def session_at(master: str) -> Iterator[SparkSession]:
    """A context manager of a Spark session at a master: `local[4]`, or the URL of a cluster.

    Raises SpecError, StoreError, MissingExtra.
    """
    if _MASTER.fullmatch(master) is None:
        hint = "such as local[4], spark://host:7077 or yarn"
        raise SpecError(Problem(expected="a master of Spark", got=f"`{master}`", hint=hint))
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        hint = f"install a JRE, and set JAVA_HOME if it is not on the path; {see('spark')}"
        raise MissingExtra(Problem(expected="Java 17 or later for Spark", got="none", hint=hint))
    if master.startswith("local"):  # the executors are on this machine
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("recordspec").config("spark.log.level", "ERROR")
    with spark_errors(StoreError, master, "a session of Spark"):
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def _build(
    session: SparkSession,
    frame: DataFrame | None,
    source: Any,
    schema: Schema,
    directory: Any,
    options: dict[str, Any],
) -> Manifest:
    check_session(session)
    for name, hint in _REFUSED.items():
        if name in options:
            expected = "an option of a build on Spark"
            raise SpecError(Problem(path=(name,), expected=expected, got=f"`{name}`", hint=hint))
    how = {name: options.pop(name) for name in Execution.__dataclass_fields__ if name in options}
    schema = as_schema(schema)
    written = write_options(schema, options.pop("split"), options)
    if frame is not None:
        _check_frame(frame, schema, written)
    execution = Execution(**how)
    build = planned_build(schema, directory, written, execution)
    with build.begun() as plan, Progress(show=execution.progress) as bar:
        jobs = SparkJobs(session, plan.name)
        with spark_errors(DiskError, plan.name), jobs.running():
            encoded = EncodedFrame(jobs)
            return build.complete(
                plan,
                encode(encoded, plan, source, frame, bar),
                source=name_of(source),
                place=partial(place_of, source, plan),
                duplicate_keys=partial(duplicate_keys, encoded),
                shard=partial(shard, encoded, build.transaction, bar=bar),
                bar=bar,
            )


# What makes a column that features take of one that they do not, by the name of its type.
_CONVERSIONS = {
    "VectorUDT": "`vector_to_array` of pyspark.ml.functions makes an array of it",
    "CalendarIntervalType": "cast it to string",
    "YearMonthIntervalType": "cast it to string, or to int for months",
    "MapType": "select its values, such as `column['key']`",
    "StructType": "select its fields, such as `column.field`",
    "VariantType": "`variant_get` makes a number or a text of it",
    "GeographyType": "`st_asbinary` makes bytes of it",
    "GeometryType": "`st_asbinary` makes bytes of it",
}


def _check_frame(frame: DataFrame, schema: Schema, options: Write) -> None:
    try:
        fields = frame.schema.fields
    except PySparkException as error:  # Spark 3.5 has types that its Python side cannot parse: `interval`
        got, hint = str(error).splitlines()[0], "select the other columns, or cast it to string"
        expected = "columns of types that PySpark can parse"
        raise SpecError(Problem(path=("rows",), expected=expected, got=got, hint=hint)) from None
    columns, problems = [], []
    for field in fields:
        feature, kind = schema.names.get(field.name), field.dataType
        while isinstance(kind, ArrayType):
            kind = kind.elementType
        name = type(kind).__name__
        try:
            column = to_arrow_schema(StructType([field]), **ZONE)[0]
        except PySparkException:
            column = None
        takes_any = feature is not None and feature.value_type.item == "any"
        is_own = isinstance(kind, UserDefinedType)
        is_plain = name not in _CONVERSIONS or (column is not None and is_file(item_type(column.type)))
        if column is not None and not is_own and (is_plain or takes_any):
            columns.append(column)
            continue
        expected = "a column of numbers, text, bytes, dates, or arrays of these"
        got = name if is_own else field.dataType.simpleString()
        hint = _CONVERSIONS.get(name, "select or compute one of these from it")
        problems.append(Problem(path=(field.name,), expected=expected, got=got, hint=hint))
    if problems:
        raise SpecError(problems)
    check_table(schema, options.columns, arrow().schema(columns))
