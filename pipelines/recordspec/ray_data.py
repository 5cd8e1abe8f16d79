"""Datasets in Ray Data: tasks of a Ray cluster read ranges of files, and decode the columns that are asked
for.
"""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow

from recordspec.errors import missing_package
from recordspec.executors import Task, new_attempt, response_of, result_in, working_in
from recordspec.locations import AnyPath
from recordspec.schema.schema import Schema
from recordspec.store.expand import Files, Split
from recordspec.store.scan import FileRange, groups
from recordspec.tables.table import Corrupt, RecordTable, TableElsewhere, Values, plain_table

try:
    import ray.data
    from ray.data.block import BlockMetadata
    from ray.data.datasource import Datasource, ReadTask
except ImportError as error:
    raise missing_package("Ray Data", "recordspec.ray_data", "recordspec[ray]", error) from error


class _RayExecutor:
    """Runs tasks on a Ray cluster, two for each processor at a time. Ray starts with the first task."""

    in_process = False
    processes = 1

    def map(self, function: Callable[..., Any], tasks: Iterable[Task]) -> Iterator[Any]:
        run, folder, waiting = ray.remote(_run), os.getcwd(), deque[Any]()
        for task in tasks:
            waiting.append(run.remote(pickle.dumps((function, task)), folder))
            self.processes = max(1, int(ray.cluster_resources().get("CPU", 1)))
            if len(waiting) >= 2 * self.processes:
                yield result_in(pickle.loads(ray.get(waiting.popleft())))
        while waiting:
            yield result_in(pickle.loads(ray.get(waiting.popleft())))


def _run(pickled: bytes, folder: str) -> bytes:
    with working_in(folder):  # which may have the modules of custom kinds
        function, task = pickle.loads(pickled)
        return bytes(response_of(function, (*task, new_attempt())))


class RecordDatasource(Datasource):  # type: ignore[misc]
    """The rows of a table, of which each task reads some ranges of files.

    Args:
        table: a table without dictionaries, since the dictionaries of blocks differ.
    """

    def __init__(self, table: RecordTable) -> None:
        super().__init__()
        self._table, self._elsewhere = table, TableElsewhere.of(table)
        self._parts = list(table.ranges(_RayExecutor()))

    def get_name(self) -> str:
        return "Recordspec"

    def estimate_inmemory_data_size(self) -> int:
        """The bytes of the files."""
        return sum(part.bytes for part in self._parts)

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """At most `parallelism` tasks, each with consecutive ranges."""
        return [self._task(some, per_task_row_limit) for some in groups(self._parts, parallelism)]

    def _task(self, parts: Sequence[FileRange], most_rows: int | None) -> ReadTask:
        metadata = BlockMetadata(
            num_rows=None,
            size_bytes=sum(part.bytes for part in parts),
            input_files=list(dict.fromkeys(str(part.path) for part in parts)),
            exec_stats=None,
        )
        function = partial(_read, self._elsewhere, self._table.schema, parts)
        return ReadTask(function, metadata, schema=self._table.schema, per_task_row_limit=most_rows)


def _read(table: TableElsewhere, schema: Any, parts: Sequence[FileRange]) -> Iterator[Any]:
    yield schema.empty_table()  # if there are no rows, the columns have their types
    for batch in table.batches(parts):
        yield pyarrow.Table.from_batches([batch])


def read(
    files: Files,
    schema: Schema | AnyPath | None = None,
    *,
    split: Split = None,
    columns: Sequence[str] | None = None,
    values: Values = "stored",
    corrupt: Corrupt = "error",
    where: Any = None,
    **options: Any,
) -> Any:
    """The rows of a dataset, or of other TFRecords, as a `ray.data.Dataset`: the rows of `recordspec.scan`.

    A task reads whole files, or ranges of 64 MiB of large files. Ray keeps the order of rows if
    `preserve_order` of its execution options is set. Labels are text.

    Args:
        files, schema, split, columns, values, corrupt: as for `recordspec.scan`. Only the keys of `columns`
            are decoded.
        where: a `pyarrow.dataset.Expression` of `columns`: tasks return only the rows that satisfy it.
        options: of `ray.data.read_datasource`, such as `concurrency` and `override_num_blocks`.

    Raises the errors of `recordspec.scan`. Errors of records are those of Ray's tasks.
    """
    table = plain_table(files, schema, where, split=split, columns=columns, values=values, corrupt=corrupt)
    return ray.data.read_datasource(RecordDatasource(table), **options)
