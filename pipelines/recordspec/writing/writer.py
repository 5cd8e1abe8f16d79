"""The writer: rows are encoded in batches, set aside by split, put in order, cut into shards, published."""

from __future__ import annotations

import copy
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
    SpecError,
    StoreError,
    WriteError,
    describe,
    nearest,
)
from recordspec.spec.encoder import columns_of
from recordspec.spec.features import Feature
from recordspec.spec.features.label import Label
from recordspec.spec.features.text import Text
from recordspec.spec.options import from_python
from recordspec.spec.schema import Schema
from recordspec.store.manifest import REJECTS_FILE, Manifest, Shard
from recordspec.store.shards import ShardName, auto_count
from recordspec.store.transaction import ShardFile, Transaction
from recordspec.wire import tfrecord
from recordspec.wire.strings import Ints, Strings
from recordspec.writing import shuffle
from recordspec.writing.keys import key_bytes
from recordspec.writing.options import ShardSize, Write
from recordspec.writing.rejects import Rejects
from recordspec.writing.sources.arrays import parts_of
from recordspec.writing.sources.base import Batch
from recordspec.writing.spool import Spool

# Rows are encoded at most this many at once, and fewer where they are large.
_MOST_ROWS = 2048
_BYTES_AT_ONCE = 16 << 20
_FIRST_ROWS = 64  # until the size of a row is known
_FEWEST_ROWS = 16  # after a row that does not fit

Place = Callable[[int], str]

log = logging.getLogger("recordspec")


class ShardedWriter:
    """Writes rows one by one, or columns, for those who have their own loop.

        with ShardedWriter(schema, "data/movies", shards=8) as writer:
            for row in rows:
                writer.write(row)

    The dataset appears when the block ends, and not at all if it ends by an exception. Takes the
    options of `write`, and raises what it raises.

    Attributes:
        rows: how many are encoded.
        taken: how many were given: those that wait for their batch and those that were rejected, too.
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
        if schema.shared_keys:
            raise SpecError(schema.shared_keys)
        splits = {split: 1.0} if isinstance(split, str) else split
        self.schema = schema
        self.directory = Path(directory)
        self.options: Write = from_python(Write, {**options, "splits": splits})
        self.rows = 0
        self.manifest: Manifest
        self.place: Place = "row {}".format
        self._transaction = Transaction(directory, force=force)
        self._changeable = {name for name, feature in schema.names.items() if not _is_scalar(feature)}
        self._failure: RecordspecError | None = None
        self._rejects: Rejects | None = None
        self._pending: list[dict[str, Any]] = []
        self._rows_at_once = _FIRST_ROWS
        self._spools: dict[str, Spool] = {}

    def __enter__(self) -> ShardedWriter:
        self._transaction.__enter__()
        folder = self._transaction.staging
        try:
            with self._on_disk():
                self._spools = {split: Spool(folder / f"{split}.spool") for split in self.options.splits}
            if (how := self.options.quarantine) is not None:
                self._rejects = Rejects(folder / REJECTS_FILE, how.max_invalid)
        except StoreError as error:
            self._transaction.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                if self._failure is not None:  # the block went on as if nothing had happened
                    raise self._failure
                self._flush()
                with self._on_disk():
                    self._publish()
        except BaseException as late:
            self._explain(late)
            raise
        finally:
            for spool in self._spools.values():
                spool.close()
            self._spools = {}
            self._transaction.__exit__(kind, error, traceback)
        if error is not None:
            self._explain(error)

    @property
    def taken(self) -> int:
        return self._seen + len(self._pending)

    @property
    def rejected(self) -> int:
        """How many rows did not fit, and were set aside."""
        return 0 if self._rejects is None else self._rejects.count

    @property
    def _seen(self) -> int:
        return self.rows + self.rejected

    def write(self, row: Any) -> None:
        """Takes one row. It is checked when its batch is encoded, at the latest when the block ends."""
        self._check_usable()
        if not isinstance(row, Mapping) and self._rejects is None:
            raise self._placed(_no_mapping(row, len(self._pending)))
        # Copies: the caller may fill the same dict, list or array again for the next row.
        kept = dict(row) if isinstance(row, Mapping) else row
        if isinstance(row, Mapping):
            for name in self._changeable & kept.keys():
                kept[name] = _own(kept.get(name))
        self._pending.append(kept)
        if len(self._pending) >= self._rows_at_once:
            self._flush()

    def write_columns(
        self, columns: Mapping[str, Any], rows: int, advance: Callable[[int], None] | None = None
    ) -> None:
        """Takes `rows` rows at once: for each feature, and for the key, their values.

        `advance` is told how many rows are done, as they are.
        """
        self._check_columns(columns)
        for name, values in columns.items():
            if len(values) != rows:
                raise SpecError(Problem(path=(name,), expected=f"{rows} values", got=str(len(values))))
        self.write_batch(Batch(rows, lambda start, stop: parts_of(columns, start, stop)), advance)

    def write_batch(self, batch: Batch, advance: Callable[[int], None] | None = None) -> None:
        """Takes the rows of a source's batch."""
        self._check_usable()
        self._flush()
        self._take(batch, advance)

    def _take(self, batch: Batch, advance: Callable[[int], None] | None = None) -> None:
        start = 0
        while start < batch.rows:
            stop = min(start + self._rows_at_once, batch.rows)
            done = self._encode_valid(batch, start, stop)
            if advance is not None:
                advance(done)
            start += done

    def _encode_valid(self, batch: Batch, start: int, stop: int) -> int:
        """Encodes rows up to the first that does not fit, which is rejected; how many that makes."""
        try:
            self._encode(batch.columns(start, stop), stop - start)
        except RecordError as error:
            error = self._failure = self._placed(error)
            if self._rejects is None or error.row is None:
                raise error from None
            good = error.row - self._seen
            # what is before it fits in this respect; a row of it may not in another
            self._take(Batch(good, lambda first, last: batch.columns(start + first, start + last)))
            with self._on_disk():
                self._rejects.add(error.row, self.place(error.row), error)
            # where one row is bad others are near: as many at once as went well, then more again
            self._failure, self._rows_at_once = None, max(_FEWEST_ROWS, good)
            return good + 1
        return stop - start

    def _check_usable(self) -> None:
        if self._failure is not None:
            raise self._failure
        if not self._spools:
            expected = "a writer within its `with` block"
            raise SpecError(Problem(expected=expected, got="one outside of it"))

    def _check_columns(self, columns: Mapping[str, Any]) -> None:
        known = (*self.schema.names, *self.options.keys)
        for name in columns:
            if name not in known:
                hint = nearest(name, [one for one in known if one not in columns])
                expected = f"names of `{self.schema.name}`"
                raise SpecError(Problem(expected=expected, got=f"`{name}`", hint=hint))

    def _flush(self) -> None:
        pending, self._pending = self._pending, []

        def columns(start: int, stop: int) -> dict[str, Any]:
            for number, row in enumerate(pending[start:stop]):
                if not isinstance(row, dict):
                    raise _no_mapping(row, number)
            return columns_of(self.schema, pending[start:stop], self.options.keys)

        self._take(Batch(len(pending), columns))

    def _placed(self, error: RecordError) -> RecordError:
        """An error of a batch names the row within it; outside it is named among all."""
        if error.row is None:
            return error
        row = self._seen + error.row
        return RecordError(error.at(self.place(row)).problems, row)

    def _encode(self, columns: Mapping[str, Any], rows: int) -> None:
        self._check_columns(columns)
        features = {name: values for name, values in columns.items() if name in self.schema.names}
        records = self.schema.encode_batch(features, rows, head=tfrecord.HEAD, tail=tfrecord.TAIL)
        hashed = self._hashes(columns, records)
        tfrecord.seal(records)
        numbers = np.arange(self._seen, self._seen + rows)
        with self._on_disk():
            for name, chosen in self._route(hashed):
                part = records if chosen is None else records.take(chosen)
                of_part = slice(None) if chosen is None else chosen
                self._spools[name].add(part, numbers[of_part], None if hashed is None else hashed[of_part])
        self.rows += rows
        most = min(_MOST_ROWS, _BYTES_AT_ONCE * rows // (len(records.buffer) + 1))
        self._rows_at_once = max(1, min(most, 2 * self._rows_at_once))

    def _hashes(self, columns: Mapping[str, Any], records: Strings) -> shuffle.Hashes | None:
        """Of the key of each row; None where nothing depends on it."""
        if self.options.keys:
            return shuffle.hashes(key_bytes(columns, self.options.keys))
        if self.options.shuffle or len(self._spools) > 1:
            return shuffle.hashes([view[tfrecord.HEAD : -tfrecord.TAIL] for view in records.views()])
        return None

    def _route(self, hashed: shuffle.Hashes | None) -> Iterator[tuple[str, Ints | None]]:
        """The splits, and which rows go to each (None: all)."""
        if hashed is None or len(self._spools) == 1:
            yield next(iter(self._spools)), None
            return
        places = shuffle.split_of(hashed, self.options.splits)
        for index, name in enumerate(self._spools):
            yield name, np.flatnonzero(places == index)

    def _publish(self) -> None:
        if self._rejects is not None:
            self._rejects.close(self.rows)
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
            rejected=self.rejected,
        )
        self._transaction.commit(self.manifest, self.schema.dump())
        if self.rejected:
            message = "%s of %s rows did not fit: see %s"
            log.warning(message, f"{self.rejected:,}", f"{self._seen:,}", self.directory / REJECTS_FILE)

    def _write_shards(self, split: str, spool: Spool) -> tuple[Shard, ...]:
        order = self._order(spool)
        rows = len(spool)
        count = self._shard_count(spool.bytes, rows)
        bounds = [rows * index // count for index in range(count + 1)]
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
        twins = shuffle.first_equal(spool.hashes) if self.options.keys else None
        if twins is not None:
            first, second = (int(spool.rows[row]) for row in twins)
            expected = "a key that no other row has"
            problem = Problem(path=self.options.keys, expected=expected, got=f"that of {self.place(first)}")
            raise RecordError(problem.at(self.place(second)), second)
        how = self.options.shuffle
        return None if how is None else shuffle.order_of(spool.hashes, how.seed)

    def _shard_count(self, size: int, rows: int) -> int:
        shards = self.options.shards
        if isinstance(shards, ShardSize):
            return max(1, min(rows, round(size / shards.bytes)))
        return auto_count(size, rows) if shards == "auto" else shards

    @contextmanager
    def _on_disk(self) -> Iterator[None]:
        """An error of the disk, a full one say, with how many rows were in."""
        try:
            yield
        except OSError as error:
            got = f"{error.strerror or error}, after {self.taken:,} rows"
            problem = Problem(expected="a disk to write to", got=got, hint="nothing was published")
            raise StoreError(problem.at(str(self.directory))) from error

    def _explain(self, error: BaseException) -> None:
        """Says of what ended the block how many rows were in, and that none is published."""
        if isinstance(error, (WriteError, StoreError, Interrupted)):
            return
        after = f"after {self.taken:,} rows"
        if isinstance(error, KeyboardInterrupt):
            message = f"{self.directory}: interrupted {after} (nothing was published)"
            raise Interrupted(message) from error
        note = f"{self.directory}: nothing was published, {after}"
        if hasattr(error, "add_note"):
            error.add_note(note)
        elif isinstance(error, RecordspecError):  # Python 3.10; the command line prints them
            error.__dict__.setdefault("__notes__", []).append(note)
        else:
            log.error(note)


def _no_mapping(row: Any, number: int) -> RecordError:
    problem = Problem(expected="a mapping from names to values", got=describe(row))
    return RecordError(problem.at(f"row {number}"), number)


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


def _labels(schema: Schema) -> dict[str, tuple[str, ...]]:
    return {feature.name: feature.names for _, feature in schema.placed if isinstance(feature, Label)}
