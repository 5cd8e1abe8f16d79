"""`recordspec.ShardedWriter`: builds a dataset of rows written one after another."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from recordspec.errors import Problem, RecordspecError, SpecError
from recordspec.locations import AnyPath, location
from recordspec.progress import Progress
from recordspec.remote import RemotePath
from recordspec.schema.arrow_values import values_of
from recordspec.schema.schema import Schema, as_schema
from recordspec.store.manifest import Manifest
from recordspec.writing.build import Build, planned_build
from recordspec.writing.local import duplicate_keys, row_encoding
from recordspec.writing.row_encoder import Encoder
from recordspec.writing.sources.base import Columns, check_names
from recordspec.writing.write import write_options
from recordspec.writing.write_options import Execution

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recordspec.writing.write_options import WriteOptions


class ShardedWriter:
    """Writes rows one by one, or as columns, in a loop of your own.

        with ShardedWriter(schema, "data/movies", shards=8) as writer:
            for row in rows:
                writer.write(row)

    The dataset is published when the `with` block ends without an exception. Accepts the options of `write`,
    and raises the same errors.

    Args:
        expected: the number of rows, if known. A fixed number of shards can then be written while rows come.
            Another number of rows is an error.
        allow_empty: whether a dataset without rows may be published; by default it is an error.

    Attributes:
        manifest: the manifest, once the dataset is published.

    Example:
        >>> with rs.ShardedWriter(schema, "data/written", shards=1) as writer:
        ...     for row in rows:
        ...         writer.write(row)
        >>> writer.manifest.rows("train")
        20
    """

    def __init__(
        self,
        schema: Schema | AnyPath,
        directory: str | os.PathLike[str] | RemotePath,
        *,
        split: Any = "train",
        force: bool = False,
        memory: str | None = None,
        append: bool = False,
        expected: int | None = None,
        allow_empty: bool = False,
        **options: Unpack[WriteOptions],
    ) -> None:
        self.directory = location(directory)
        self.schema = schema = as_schema(schema)
        self.options = write_options(schema, split, options)
        self.manifest: Manifest
        execution = Execution(memory=memory, force=force, append=append, allow_empty=allow_empty)
        planned = partial(planned_build, schema, directory, self.options, execution)
        planned()  # raises at once for invalid options
        self._begin = partial(self._building, planned, expected)
        self._within: AbstractContextManager[Encoder]
        self._failure: RecordspecError | None = None
        self._encoder: Encoder | None = None

    @contextmanager
    def _building(self, planned: Callable[[], Build], expected: int | None) -> Iterator[Encoder]:
        build = planned()
        with build.begun() as plan, row_encoding(plan, build.status, expected) as rows:
            yield rows.begin("row {}".format)
            self._usable()  # raises an earlier failure, if the block has ignored it
            with Progress(show=False) as bar:
                self.manifest = build.complete(
                    plan,
                    [rows.finish()],
                    source=plan.name,
                    place=rows.place,
                    duplicate_keys=duplicate_keys,
                    shard=partial(rows.shard, bar=bar),
                    bar=bar,
                )

    def __enter__(self) -> ShardedWriter:
        self._within = self._begin()
        self._encoder = self._within.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._within.__exit__(kind, error, traceback)
        finally:
            self._encoder = None

    @property
    def taken(self) -> int:
        """The number of rows written, including rejected rows and rows that wait for their batch.

        Example:
            >>> with rs.ShardedWriter(schema, "data/taken") as writer:
            ...     writer.write({"x": 0.5, "inside": "yes"})
            ...     print(writer.taken)
            1
        """
        return 0 if self._encoder is None else self._encoder.taken

    @property
    def rejected(self) -> int:
        """The number of invalid rows, written to `rejects.jsonl`.

        Example:
            >>> with rs.ShardedWriter(schema, "data/rejected", invalid="quarantine") as writer:
            ...     writer.write_columns({"x": [0.5, 1.5], "inside": ["yes", "maybe"]}, 2)
            ...     print(writer.rejected)
            1
        """
        return 0 if self._encoder is None else self._encoder.rejected

    def write(self, row: Any) -> None:
        """Writes a row, a mapping by name.

        The row is validated when its batch is encoded, at the latest when the `with` block ends. Raises
        RecordError for an invalid row, StoreError if the disk fails.

        Example:
            >>> with rs.ShardedWriter(schema, "data/rows") as writer:
            ...     writer.write({"x": 0.5, "inside": "yes"})
        """
        self._call(self._usable().add_row, row)

    def write_columns(self, columns: Mapping[str, Any], rows: int) -> None:
        """Writes rows, given as columns: the values of each feature, and of the key.

        Raises SpecError for an unknown name and for columns of another length, RecordError for an invalid
        row, StoreError if the disk fails.

        Example:
            >>> with rs.ShardedWriter(schema, "data/columns") as writer:
            ...     writer.write_columns({"x": [0.5, 1.5], "inside": ["yes", "no"]}, 2)
        """
        encoder = self._usable()
        check_names(self.schema, self.options.columns, columns)
        for name, values in columns.items():
            if len(values) != rows:
                raise SpecError(Problem(path=(name,), expected=f"{rows} values", got=str(len(values))))
        self._call(encoder.flush)
        self._call(encoder.add, Columns(values_of(columns, self.schema.names), rows))

    def _call(self, call: Callable[..., None], *arguments: Any) -> None:
        """Calls a function, and remembers its failure: the writer accepts no rows afterwards."""
        try:
            call(*arguments)
        except RecordspecError as error:
            self._failure = error
            raise

    def _usable(self) -> Encoder:
        if self._failure is not None:
            raise self._failure
        if self._encoder is None:
            expected = "a writer within its `with` block"
            raise SpecError(Problem(expected=expected, got="one outside of it"))
        return self._encoder
