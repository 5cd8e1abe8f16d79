"""Jobs on Spark, and Spark's errors."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark import StorageLevel, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from recordspec.errors import Problem, SpecError, StoreError
from recordspec.executors import ThreadPool, new_attempt, result_in
from recordspec.spark.tasks import OtherPackageError, package, run_tasks, run_with
from recordspec.writing.failures import SourceError

_T = TypeVar("_T")

# Java's serializer holds 100 cached batches; they have this many rows and 4 MiB at most.
_CACHED_ROWS = 1000
# Tasks that read files, for each core, before their results are read; and the bytes of results that the
# driver holds at a time.
_TASKS_AT_ONCE, _RESPONSE_BYTES = 16, 64 << 20


class SparkJobs:
    """Runs jobs, which form a group, within its `with` block. An error of a job, or Ctrl-C, cancels the
    group.

    Args:
        name: the name of the dataset.

    Attributes:
        session: the session of Spark.
        id: differs from that of any other build.
    """

    def __init__(self, session: SparkSession, name: str) -> None:
        self.session, self.id = session, new_attempt()
        self._name, self._group = name, f"recordspec-{self.id}"
        self._persisted: list[DataFrame] = []
        self._thread: ThreadPool

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread = ThreadPool("recordspec-spark")
        name, set_group = f"recordspec: {self._name}", self.session.sparkContext.setJobGroup
        self.wait(partial(set_group, self._group, name, interruptOnCancel=True))
        try:
            with self.configured({"spark.sql.inMemoryColumnarStorage.batchSize": str(_CACHED_ROWS)}):
                yield
        finally:
            with suppress(Exception):
                for frame in self._persisted:
                    frame.unpersist()
            self._thread.close()

    def wait(self, job: Callable[[], _T]) -> _T:
        """Returns the result of a job. The job runs in a thread: a Ctrl-C during a call of py4j would break
        its connection, and leave the job running. After an error or Ctrl-C the job is cancelled, before
        callers delete the files of its tasks.
        """
        try:
            return self._thread.submit(job).result()
        except BaseException:
            with suppress(Exception):
                self.session.sparkContext.cancelJobGroup(self._group)
            raise

    def persist(self, frame: DataFrame) -> DataFrame:
        """Keeps the rows of a frame on the disks of the executors, until the block ends."""
        self._persisted.append(frame.persist(StorageLevel.DISK_ONLY))
        return frame

    def frame(self, rows: list[Any], types: str, slices: int) -> DataFrame:
        """A frame of rows with columns of these types, in partitions."""
        return self.session.createDataFrame(self.session.sparkContext.parallelize(rows, slices), types)

    @contextmanager
    def configured(self, options: Mapping[str, str]) -> Iterator[None]:
        """Sets options of the session for a block."""
        conf = self.session.conf
        before = {name: conf.get(name, None) for name in options}
        try:
            for name, value in options.items():
                conf.set(name, value)
            yield
        finally:
            with suppress(Exception):  # Spark may be gone
                for name, value in before.items():
                    conf.unset(name) if value is None else conf.set(name, value)


def check_session(session: SparkSession) -> None:
    """Raises SpecError for a session of Spark Connect."""
    if not hasattr(session, "_jsparkSession"):
        expected, got = "a session with a SparkContext", "one of Spark Connect"
        raise SpecError(Problem(path=("session",), expected=expected, got=got))


class SparkExecutor:
    """Runs tasks on Spark's executors, some at a time, like the processes of one machine. If an executor is
    lost, Spark runs its tasks again.

    Args:
        jobs: the jobs of which the tasks are a part.
    """

    in_process = False

    def __init__(self, jobs: SparkJobs) -> None:
        self._jobs, self._context = jobs, jobs.session.sparkContext
        self.processes = self._context.defaultParallelism

    def map(self, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        waiting, folder = iter(tasks), os.getcwd()
        run = task(partial(run_tasks, function, folder))
        at_once = self.processes
        while some := [pickle.dumps(one) for one in islice(waiting, at_once)]:
            rows = self._context.parallelize(some, len(some)).mapPartitions(run)
            responses = self._jobs.wait(rows.collect)
            # small results are fetched many at a time: each job takes 0.1 s
            room = len(some) * _RESPONSE_BYTES // max(1, sum(map(len, responses)))
            at_once = max(self.processes, min(room, _TASKS_AT_ONCE * self.processes))
            for response in responses:
                yield result_in(pickle.loads(response))

    def equal_rows(
        self, tables: Sequence[Any], columns: Sequence[str], places: Sequence[str]
    ) -> tuple[list[Any], list[Any]]:
        """As for `frames.equal_rows`."""
        from recordspec.spark.frames import equal_rows

        return self._jobs.wait(partial(equal_rows, self._jobs.session, tables, columns, places))


def task(function: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    """A function of Arrow's record batches as executors run it: they compare their package with this one
    before they unpickle it."""
    drivers, pickled = package(), cloudpickle.dumps(function)
    return lambda batches: run_with(drivers, pickled, batches)


@contextmanager
def spark_errors(
    kind: type[StoreError] | type[SourceError], name: str, expected: str = "Spark's jobs to the end"
) -> Iterator[None]:
    """Raises an error of Spark's as one of these."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        if other := _OTHER_PACKAGE.search(str(error)):
            where, expected, got = other.groups()
            raise StoreError(Problem(where=where, expected=expected, got=got)) from None
        raise kind(Problem(where=name, expected=expected, got=reason(error))) from None


_OTHER_PACKAGE = re.compile(rf"{OtherPackageError.__name__}: (.+?): expected (.+?), got (.+)")
_RAISED = re.compile(r"^[\w.]*?(\w+(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE)


def reason(error: Exception) -> str:
    """Spark's message of an error, without tracebacks: for Python code, the last line."""
    text = str(error)
    python = text.partition("Traceback (most recent call last)")[2]
    raised = _RAISED.findall(python) if python else ()
    if raised:
        return f"{raised[-1][0]}: {raised[-1][1]}"
    java = _RAISED.findall(text)
    return java[0][1] if java else text.strip().partition("\n")[0]
