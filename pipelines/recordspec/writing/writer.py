"""Building in one process, rows being given one after another."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import numpy as np

from recordspec.errors import Problem, RecordspecError, SpecError, WriteError
from recordspec.executors import SerialExecutor
from recordspec.locations import local
from recordspec.spec.features import Feature
from recordspec.spec.features.text import Text
from recordspec.spec.options import from_python
from recordspec.spec.schema import Schema
from recordspec.store.manifest import REJECTS_FILE, Manifest
from recordspec.store.transaction import Transaction
from recordspec.writing.assembly import Encoded, check_unique, heading, place_shards, publish, write_shards
from recordspec.writing.encoding import Advance, Encoder, Place
from recordspec.writing.ending import Account, on_disk, told
from recordspec.writing.options import Write
from recordspec.writing.rejects import check_some
from recordspec.writing.runs import RunWriter
from recordspec.writing.shards import DirectSink, spans
from recordspec.writing.sources.arrays import parts_of
from recordspec.writing.sources.base import Batch
from recordspec.writing.sources.rows import batch_of, no_mapping
from recordspec.writing.tasks import Plan, budget


class ShardedWriter:
    """Writes rows one by one, or columns, for those who have their own loop.

        with ShardedWriter(schema, "data/movies", shards=8) as writer:
            for row in rows:
                writer.write(row)

    The dataset appears when the block ends, and not at all if it ends by an exception. Takes the
    options of `write`, and raises what it raises.

    Args:
        expected: how many rows there will be, where that is known: shards of a fixed number need not
            wait for the last row then. Another number is an error.
        allow_empty: whether a dataset without rows may be published; by default it is an error.

    Attributes:
        manifest: of the dataset, once it is published.
        source: what messages call the source of the rows; by default the directory.
    """

    def __init__(
        self,
        schema: Schema,
        directory: str | os.PathLike[str],
        *,
        split: Any = "train",
        force: bool = False,
        memory: str | None = None,
        append: bool = False,
        expected: int | None = None,
        allow_empty: bool = False,
        **options: Any,
    ) -> None:
        self.directory = local(directory)
        self.options = options_of(schema, split, options)
        self.schema = schema
        self.manifest: Manifest
        self._transaction = Transaction(directory, force=force, append=append)
        self._append, self._allow_empty = append, allow_empty
        self._plan = Plan(
            schema=schema,
            options=self.options,
            name=str(self.directory),
            folder=self._transaction.work,
            budget=budget(memory, 1),
            durable=False,
        )
        self._expected = expected
        self._changeable = {name for name, feature in schema.names.items() if not _is_scalar(feature)}
        self._failure: RecordspecError | None = None
        self._pending: list[Any] = []
        self._places: list[Place] = []
        self._encoder: Encoder | None = None
        self._sink: RunWriter | DirectSink
        self._account = Account(name=str(self.directory))
        self.source = str(self.directory)

    def __enter__(self) -> ShardedWriter:
        self._transaction.__enter__()
        with ExitStack() as stack:
            stack.push(self._transaction.__exit__)
            with on_disk(self._plan.name):
                if self._append:
                    self._plan = self._plan.added_to(self._transaction)
                self._sink = self._opened()
            stack.pop_all()
        rejects = self._transaction.staging / REJECTS_FILE
        self._encoder = Encoder(self.schema, self.options, self._sink, rejects, self._plan.name)
        self.begin("row {}".format)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            with told(self._account):
                if error is not None:
                    raise error
                if self._failure is not None:  # the block went on as if nothing had happened
                    raise self._failure
                try:
                    self._finish()
                finally:
                    self._account.published = self._transaction.published
        finally:
            if isinstance(self._sink, DirectSink):
                self._sink.abandon()
            self._encoder = None
            self._transaction.__exit__(kind, error, traceback)

    @property
    def taken(self) -> int:
        """How many rows were given: those that wait for their batch and those rejected, too."""
        return 0 if self._encoder is None else self._encoder.seen + len(self._pending)

    @property
    def rejected(self) -> int:
        """How many rows did not fit, and were set aside."""
        return 0 if self._encoder is None else self._encoder.rejected

    def begin(self, place: Place) -> None:
        """What comes now is another part of the rows: `place` names them in messages, counted from 0."""
        self._flush()
        self._usable().begin(len(self._places), place)
        self._places.append(place)

    def write(self, row: Any) -> None:
        """Takes one row. It is checked when its batch is encoded, at the latest when the block ends."""
        encoder = self._usable()
        if not isinstance(row, Mapping) and not encoder.quarantines:
            raise encoder.placed(no_mapping(row, len(self._pending)))
        # Copies: the caller may fill the same dict, list or array again for the next row.
        kept = dict(row) if isinstance(row, Mapping) else row
        if isinstance(row, Mapping):
            for name in self._changeable & kept.keys():
                kept[name] = _own(kept.get(name))
        self._pending.append(kept)
        self._account.rows = self.taken
        if len(self._pending) >= encoder.rows_at_once:
            self._flush()

    def write_columns(self, columns: Mapping[str, Any], rows: int) -> None:
        """Takes `rows` rows at once: for each feature, and for the key, their values."""
        self._usable().check_columns(columns)
        for name, values in columns.items():
            if len(values) != rows:
                raise SpecError(Problem(path=(name,), expected=f"{rows} values", got=str(len(values))))
        self.write_batch(Batch(rows, lambda start, stop: parts_of(columns, start, stop)))

    def write_batch(self, batch: Batch, advance: Advance | None = None) -> None:
        """Takes the rows of a source's batch; `advance` is told of rows and bytes that are done."""
        self._flush()
        self._take(batch, advance)

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
        self._take(batch_of(pending, self.schema, self.options.columns))

    def _take(self, batch: Batch, advance: Advance | None = None) -> None:
        encoder = self._usable()
        try:
            encoder.take(batch, advance)
        except RecordspecError as error:
            self._failure = error
            raise
        finally:
            self._account.rows = encoder.seen

    def _usable(self) -> Encoder:
        if self._failure is not None:
            raise self._failure
        if self._encoder is None:
            expected = "a writer within its `with` block"
            raise SpecError(Problem(expected=expected, got="one outside of it"))
        return self._encoder

    def _opened(self) -> RunWriter | DirectSink:
        """Rows that need not be put in order go to their shards at once, where these are known."""
        options, shards = self.options, self.options.shards
        known = shards == 1 or (self._expected is not None and options.quarantine is None)
        ordered = options.shuffle is None and not options.unique and len(options.weights or ()) == 1
        ordered &= self._plan.base is None
        if not (ordered and known and isinstance(shards, int)):
            return self._plan.run_writer("rows")
        (split,) = options.weights or {}
        planned = list(spans(split, shards, self._expected, options))
        return DirectSink(self._transaction.staging, self.schema, options, planned)

    def _finish(self) -> None:
        self._flush()
        encoder = self._usable()
        if self._expected not in (None, encoder.seen):
            got = f"{encoder.seen:,}"
            raise WriteError(Problem(where=self._plan.name, expected=f"{self._expected:,} rows", got=got))
        rejects = self._transaction.staging / REJECTS_FILE
        check_some(encoder.rows, encoder.rejected, rejects, self.source, allow_empty=self._allow_empty)
        with on_disk(self._plan.name):
            if isinstance(self._sink, DirectSink):
                shards = {encoder.splits[0]: self._sink.finish()}
            else:
                shards = self._sorted_shards(encoder, self._sink.finish(encoder.splits))
        counts = encoder.tally.by_split(encoder.splits)
        made = heading(self._plan, shards, encoder.rejected, counts)
        self.manifest = publish(self._transaction, self._plan, made)

    def _sorted_shards(self, encoder: Encoder, runs: Any) -> Any:
        check_unique(self._plan, runs, lambda part, row: self._places[part](row))
        encoded = Encoded.of(self._plan, runs, encoder.rows, encoder.rejected)
        return write_shards(self._plan, encoded, SerialExecutor(), {}, place_shards(self._transaction))


def options_of(schema: Schema, split: Any, options: Mapping[str, Any]) -> Write:
    """The options of a build. Raises SpecError for wrong ones, and for a schema that cannot be written."""
    if schema.shared_keys:
        raise SpecError(schema.shared_keys)
    if "splits" in options:
        expected, hint = "the argument `split`", "it takes a name, or the weights of several"
        raise SpecError(Problem(path=("splits",), expected=expected, got="`splits`", hint=hint))
    splits = {split: 1.0} if isinstance(split, str) else split
    made: Write = from_python(Write, {**options, "splits": splits})
    return made


def _own(value: Any) -> Any:
    """A value that does not change when the caller's does."""
    if value is None or isinstance(value, (str, bytes, os.PathLike)):
        return value
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.copy()
    if type(value) is list and (not value or isinstance(value[0], (int, float, str, bytes, np.generic))):
        return value.copy()
    try:
        return copy.deepcopy(value)
    except Exception:  # a PIL image of a file that is cut, say: encoding it tells what is wrong
        return value


def _is_scalar(feature: Feature) -> bool:
    """Whether its values are ones that cannot be changed after they were given."""
    return isinstance(feature, Text) or getattr(feature, "shape", None) == ()
