"""The build: rows are encoded in batches, set aside by split, put in order, cut into shards, published."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from recordspec.errors import (
    Interrupted,
    Problem,
    RecordError,
    RecordspecError,
    StoreError,
    describe,
)
from recordspec.spec.encoder import Gapped, check_writable, columns_of
from recordspec.spec.features.label import Label
from recordspec.spec.options import from_python
from recordspec.spec.schema import Schema
from recordspec.store.manifest import Manifest, Shard
from recordspec.store.shards import ShardName, auto_count
from recordspec.store.transaction import ShardFile, Transaction
from recordspec.wire import tfrecord
from recordspec.wire.strings import Ints, Strings
from recordspec.writing import shuffle
from recordspec.writing.options import ShardSize, Write
from recordspec.writing.progress import Progress
from recordspec.writing.sources import Rows, Source, source_of
from recordspec.writing.spool import Spool

# Rows are encoded at most this many at once, and fewer where they are large.
_ROWS_AT_ONCE = 2048
_BYTES_AT_ONCE = 16 << 20

Place = Callable[[int], str]


class WriteError(RecordspecError):
    """The rows came to an end too early: their source failed."""


def write(
    schema: Schema,
    rows: Any,
    directory: str | os.PathLike[str],
    *,
    split: str | Mapping[str, float] = "train",
    force: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> Manifest:
    """Writes rows as a sharded dataset, which appears at `directory` whole or not at all.

    Args:
        schema: what a row is.
        rows: an iterable of dicts, a dict of arrays, or a pandas frame; a `Source`.
        directory: a folder that does not exist yet.
        split: the name of the one split, or the weights of several, by name; a row's split is a
            function of its key.
        force: whether a dataset at `directory` is replaced.
        progress: whether to show it on stderr; by default on a terminal.
        options: the fields of `Write`: key, shards (`"auto"`, a number, `{"size": "128MiB"}`),
            compression, and shuffle (a seed).

    Returns:
        The manifest of what was written.

    Raises:
        SpecError: an option is wrong.
        RecordError: a row does not fit; it names the first such row.
        WriteError: the source of the rows failed.
        StoreError: `directory` exists, or cannot be written.
        Interrupted: Ctrl-C. In all of these cases nothing is published.
    """
    source = source_of(rows)
    with ShardedWriter(schema, directory, split=split, force=force, **options) as writer:
        writer.place = source.place
        with Progress("writing", source.rows, show=progress) as bar:
            for count in _feed(writer, source):
                bar.advance(count)
    return writer.manifest


def _feed(writer: ShardedWriter, source: Source | Rows) -> Iterator[int]:
    """Gives the writer all rows of a source, and tells how many, as they are taken."""
    if isinstance(source, Rows):
        for row in _guarded(iter(source), writer):
            writer.write(row)
            yield 1
        return
    for columns, count in _guarded(source.batches(writer.schema, writer.options.keys), writer):
        writer.write_columns(columns, count)
        yield count


def _guarded(items: Iterator[Any], writer: ShardedWriter) -> Iterator[Any]:
    """The items; a failure of their source says how far it came."""
    while True:
        try:
            with writer.placed():
                item = next(items)
        except StopIteration:
            return
        except RecordspecError:
            raise
        except Exception as error:
            got = f"{type(error).__name__}: {error}, after {writer.taken:,} rows"
            hint = "nothing was published"
            raise WriteError(
                Problem(where=str(writer.directory), expected="all the rows", got=got, hint=hint)
            ) from error
        yield item


class ShardedWriter:
    """Writes rows one by one, or columns, for those who have their own loop.

        with ShardedWriter(schema, "data/movies", shards=8) as writer:
            for row in rows:
                writer.write(row)

    The dataset appears when the block ends, and not at all if it ends by an exception. Takes the
    options of `write`, and raises what it raises.

    Attributes:
        rows: how many are encoded; `taken` counts those that wait for their batch, too.
        manifest: of the dataset, once it is published.
        place: how messages name row i; rows count from 0.
    """

    def __init__(
        self,
        schema: Schema,
        directory: str | os.PathLike[str],
        *,
        split: str | Mapping[str, float] = "train",
        force: bool = False,
        **options: Any,
    ) -> None:
        check_writable(schema)
        self.schema = schema
        self.directory = Path(directory)
        self.options = _options(split, options)
        self.rows = 0
        self.manifest: Manifest
        self.place: Place = "row {}".format
        self._transaction = Transaction(directory, force=force)
        self._pending: list[Mapping[str, Any]] = []
        self._rows_at_once = 64  # until the size of a row is known
        self._spools: dict[str, Spool] = {}

    def __enter__(self) -> ShardedWriter:
        self._transaction.__enter__()
        folder = self._transaction.staging
        self._spools = {split: Spool(folder / f"{split}.spool") for split in self.options.splits}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._flush()
                self._publish()
        except BaseException as late:
            self._explain(late)
            raise
        finally:
            self._transaction.__exit__(kind, error, traceback)
        if error is not None:
            self._explain(error)

    @property
    def taken(self) -> int:
        """How many rows were given so far."""
        return self.rows + len(self._pending)

    def write(self, row: Any) -> None:
        """Takes one row. It is checked when its batch is encoded, at the latest when the block ends."""
        if not isinstance(row, Mapping):
            problem = Problem(expected="a mapping from names to values", got=describe(row))
            raise RecordError(problem.at(self.place(self.taken)), self.taken)
        self._pending.append(row)
        if len(self._pending) >= self._rows_at_once:
            self._flush()

    def write_columns(self, columns: Mapping[str, Any], rows: int) -> None:
        """Takes `rows` rows at once: for each feature, and for the key, their values."""
        self._flush()
        with self.placed():
            self._encode(columns, rows)

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
        if not pending:
            return
        with self.placed():
            columns = columns_of(self.schema, pending, self.options.keys)
            size = self._encode(columns, len(pending))
        self._rows_at_once = max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE * len(pending) // (size + 1)))

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Errors of a batch name the row within it; outside they name it among all."""
        try:
            yield
        except RecordError as error:
            if error.row is None:
                raise
            row = self.rows + error.row
            raise RecordError(error.at(self.place(row)).problems, row) from None

    def _encode(self, columns: Mapping[str, Any], rows: int) -> int:
        records = self.schema.encode_batch(columns, rows, head=tfrecord.HEAD, tail=tfrecord.TAIL)
        keys = self._keys(columns, records, rows)
        tfrecord.seal(records)
        numbers = np.arange(self.rows, self.rows + rows)
        shuffled = None
        if keys and (self.options.shuffle or self.options.keys):
            seed = self.options.shuffle.seed if self.options.shuffle else 0
            shuffled = shuffle.hashes(keys, f"shuffle {seed}", rows)
        for name, chosen in self._route(keys, rows):
            part = records if chosen is None else records.take(chosen)
            of_part = slice(None) if chosen is None else chosen
            hashed = None if shuffled is None else shuffled[of_part]
            self._spools[name].add(part, numbers[of_part], hashed)
        self.rows += rows
        return len(records.buffer)

    def _keys(self, columns: Mapping[str, Any], records: Strings, rows: int) -> list[Any]:
        """The key of each row; none where nothing depends on it."""
        names = self.options.keys
        if names:
            return shuffle.key_bytes([_key_values(columns, name, rows) for name in names])
        if self.options.shuffle or len(self._spools) > 1:
            return [view[tfrecord.HEAD : -tfrecord.TAIL] for view in records.views()]
        return []

    def _route(self, keys: list[Any], rows: int) -> Iterator[tuple[str, Ints | None]]:
        """The splits, and which rows go to each (None: all)."""
        if len(self._spools) == 1:
            yield next(iter(self._spools)), None
            return
        places = shuffle.split_of(shuffle.hashes(keys, "split", rows), self.options.splits)
        for index, name in enumerate(self._spools):
            yield name, np.flatnonzero(places == index)

    def _publish(self) -> None:
        splits = {name: self._write_shards(name, spool) for name, spool in self._spools.items()}
        self.manifest = Manifest(
            schema=self.schema.name,
            fingerprint=self.schema.fingerprint,
            record=self.schema.record,
            compression=self.options.compression,
            splits=splits,
            key=self.options.keys,
            shuffle_seed=self.options.shuffle.seed if self.options.shuffle else None,
            labels=_labels(self.schema),
        )
        self._transaction.commit(self.manifest, self.schema.dump())

    def _write_shards(self, split: str, spool: Spool) -> tuple[Shard, ...]:
        sizes = spool.sizes
        order = self._order(spool)
        count = self._shard_count(int(sizes.sum()), len(sizes))
        bounds = [len(sizes) * index // count for index in range(count + 1)]
        shards = []
        for index in range(count):
            name = ShardName(split=split, index=index, count=count).file(self.options.compression)
            shard = ShardFile(self._transaction.staging / name, self.options.compression)
            for records in spool.read(order, bounds[index], bounds[index + 1]):
                shard.write(records.buffer.data, len(records))
            shards.append(shard.close())
        spool.close()
        return tuple(shards)

    def _order(self, spool: Spool) -> Ints | None:
        hashed = spool.hashes
        if not len(hashed):
            return None
        order = shuffle.order_of(hashed)
        twins = shuffle.first_equal(hashed, order) if self.options.keys else None
        if twins is not None:
            first, second = (int(spool.rows[row]) for row in twins)
            problem = Problem(
                path=self.options.keys,
                expected="a key that no other row has",
                got=f"that of {self.place(first)}",
            )
            raise RecordError(problem.at(self.place(second)), second)
        return order if self.options.shuffle else None

    def _shard_count(self, size: int, rows: int) -> int:
        shards = self.options.shards
        if isinstance(shards, ShardSize):
            return max(1, min(rows, round(size / shards.bytes)))
        return auto_count(size, rows) if shards == "auto" else shards

    def _explain(self, error: BaseException) -> None:
        """Says of what ended the block how many rows were in, and that none is published."""
        if isinstance(error, (WriteError, Interrupted)):
            return
        if isinstance(error, KeyboardInterrupt):
            message = f"interrupted after {self.taken:,} rows (nothing was published)"
            raise Interrupted(f"{self.directory}: {message}") from error
        if isinstance(error, OSError):
            got = f"{error.strerror or error}, after {self.taken:,} rows"
            problem = Problem(expected="a disk to write to", got=got, hint="nothing was published")
            raise StoreError(problem.at(str(self.directory))) from error
        note = f"{self.directory}: nothing was published, after {self.taken:,} rows"
        if hasattr(error, "add_note"):
            error.add_note(note)
        else:  # Python 3.10
            logging.getLogger("recordspec").error(note)


def _options(split: str | Mapping[str, float], options: dict[str, Any]) -> Write:
    splits = {split: 1.0} if isinstance(split, str) else dict(split)
    write: Write = from_python(Write, {"splits": splits, **options})
    return write


def _key_values(columns: Mapping[str, Any], name: str, rows: int) -> list[Any]:
    values = columns.get(name)
    if values is None:
        raise RecordError(Problem(where="row 0", path=(name,), expected="a key", got="nothing"), 0)
    if isinstance(values, Gapped):
        values = _with_gaps(values)
    values = values.tolist() if isinstance(values, np.ndarray) else list(values)
    for row, value in enumerate(values):
        if value is None or value != value:
            problem = Problem(where=f"row {row}", path=(name,), expected="a key", got="nothing")
            raise RecordError(problem, row)
    return values


def _with_gaps(column: Gapped) -> list[Any]:
    present = iter(column.values)
    return [next(present) if here else None for here in column.present]


def _labels(schema: Schema) -> dict[str, tuple[str, ...]]:
    return {feature.name: feature.names for _, feature in schema.placed if isinstance(feature, Label)}
