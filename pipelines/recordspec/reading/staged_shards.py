"""Reads shards of an object store as local files: copies in a folder of bounded size, downloaded ahead.

A pass has a lease on each copy, from before the copy is opened until its last record is read. When the pass
ends, or is dropped, it releases the remaining leases. If TensorFlow cannot read a copy to its end, the copy
is hashed. A copy that differs from its object is deleted, the object is copied again, and the pass continues
in the new copy.
"""

from __future__ import annotations

import itertools
import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Literal

import numpy as np

from recordspec._tf import Dataset, tf
from recordspec.errors import (
    Problem,
    RecordError,
    RecordspecError,
    SpecError,
    StoreError,
    show_text,
    system_errors,
)
from recordspec.executors import Future, ThreadPool
from recordspec.locations import Location, local
from recordspec.order.read_options import Staging
from recordspec.order.read_plan import Piece, check_file
from recordspec.reading.transformations import drop_iterators_at_exit, flat_map, tfrecord_dataset
from recordspec.remote import RemotePath
from recordspec.schema.options import parse_bytes
from recordspec.schema.tensors import Tensor
from recordspec.store.staging import FAILURES, Lease, StagedObject, StagingFolder, default_folder, on_disk
from recordspec.wire import tfrecord
from recordspec.wire.compression import CODECS

log = logging.getLogger("recordspec")

# The number of shards that are downloaded ahead, each by one connection: requests for ranges take twice the
# CPU time.
_AHEAD = 3

# The readings of each pass, by the number of the pass and the index of the piece.
_passes: dict[int, dict[int, _Reading]] = {}
_numbers = itertools.count()


@dataclass(kw_only=True)
class _Reading:
    """A piece that is being read.

    Attributes:
        lease: the lease on its copy; None for a local file.
        count: the number of its records; None if only reading tells it.
    """

    piece: Piece
    lease: Lease | None
    count: int | None

    @property
    def path(self) -> str:
        """The path of the file to read."""
        return str(self.piece.path if self.lease is None else self.lease.path)

    def release(self) -> None:
        """Allows the copy to be removed."""
        if self.lease is not None:
            self.lease.release()

    def copied_again(self, folder: StagingFolder) -> tuple[str, int]:
        """Makes a new copy. Returns its path, and the number of records before the first unreadable one.

        TensorFlow counts the records in the old copy. Raises RecordError if a record of the object itself is
        corrupt. Raises StoreError if the copy is intact, and if the copy was changed while it was read:
        TensorFlow may have read more of it before the change.
        """
        piece, lease = self.piece, self.lease
        path = str(piece.path) if lease is None else lease.open_path
        codec = CODECS[piece.compression].tensorflow
        readable = tfrecord_dataset(path, codec).ignore_errors()
        read = int(readable.reduce(np.int64(0), lambda number, _: number + 1))
        most = piece.first + (self.count or 0)
        if lease is None or (problem := folder.check(lease, _object_of(piece))) is None:
            _check_records(piece, Path(path))
            got = f"{read:,} that can be read"
            raise StoreError(Problem(where=str(piece.path), expected=f"{most:,} records", got=got))
        if lease.is_changed or read >= most:
            raise StoreError(problem)
        log.warning("%s", show_text(str(problem)))
        lease.release()
        self.lease = folder.fetch(_object_of(piece))
        return self.path, read


def records_of_copies(
    pieces: tuple[Piece, ...],
    order: Tensor,
    folder: StagingFolder,
    mixed: Callable[[Dataset, Callable[..., Dataset]], Dataset],
) -> Dataset:
    """The records of copies of the pieces.

    Args:
        order: the order of the pieces, int64 `[pieces]`.
        mixed: returns all records, from a dataset of pieces and a function from a piece to its records.

    If TensorFlow cannot read a record, the rest comes from a new copy. The number of records tells that some
    are missing, at no other cost. If the number is not known, the error is TensorFlow's.
    """
    drop_iterators_at_exit()

    def one_pass(number: Tensor) -> Dataset:
        return mixed(_copies(pieces, number, order, folder), partial(_records_of, pieces, folder))

    # The generator of this dataset ends with the pass, or when its iterator is dropped. The generator of the
    # copies ends before the last copies are read.
    passes = tf.data.Dataset.from_generator(_numbered_pass, output_signature=tf.TensorSpec([], tf.int64))
    return flat_map(passes, one_pass)


def _numbered_pass() -> Iterator[int]:
    """Yields the number of a new pass. Releases the remaining leases of the pass at the end."""
    number = next(_numbers)
    _passes[number] = {}
    try:
        yield number
    finally:
        for reading in _passes.pop(number).values():
            reading.release()


def _copies(pieces: tuple[Piece, ...], number: Tensor, order: Tensor, folder: StagingFolder) -> Dataset:
    """A dataset with an element for each piece, in `order`.

    An element has the number of the pass, the index of the piece, the path of its copy, the number of its
    records, or -1 if it is not known, and the message of an error, or "".
    """

    def copies(number: Any, order: Any) -> Iterator[tuple[int, int, str, int, str]]:
        readings = _readings_ahead(folder, [pieces[index] for index in order])
        try:
            for index, reading in zip(order, readings, strict=True):
                if isinstance(reading, RecordspecError):
                    yield number, index, "", 0, _told(reading)
                    continue
                if (pass_ := _passes.get(int(number))) is None:  # its iterator was dropped
                    reading.release()
                    return
                pass_[int(index)] = reading
                yield number, index, reading.path, -1 if reading.count is None else reading.count, ""
        finally:
            readings.close()

    whole, text = tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.string)
    return tf.data.Dataset.from_generator(
        copies, args=(number, order), output_signature=(whole, whole, text, whole, text)
    )


def _records_of(
    pieces: tuple[Piece, ...],
    folder: StagingFolder,
    number: Tensor,
    index: Tensor,
    path: Tensor,
    count: Tensor,
    problem: Tensor,
) -> Dataset:
    """The records of a copy, string `[]`. Its lease is released after the last record."""
    compression = tf.gather([CODECS[piece.compression].tensorflow for piece in pieces], index)
    first = tf.gather(tf.constant([piece.first for piece in pieces], tf.int64), index)

    def copied_again(number: Any, index: Any) -> tuple[str, np.int64, str]:
        try:
            path, read = _passes[int(number)][int(index)].copied_again(folder)
            return path, np.int64(read), ""
        except RecordspecError as error:
            return "", np.int64(0), _told(error)

    def rest(number: Tensor, index: Tensor) -> Dataset:
        results = [tf.string, tf.int64, tf.string]
        path, read, problem = tf.numpy_function(copied_again, [number, index], results)
        again = tfrecord_dataset(_unless(problem, path), compression)
        return again.skip(tf.maximum(tf.ensure_shape(read, []), first))

    def released(number: Any, index: Any) -> np.int64:
        _passes[int(number)].pop(int(index)).release()
        return np.int64(0)  # type: ignore[no-any-return]

    def end(number: Tensor, index: Tensor) -> Dataset:
        none = tf.numpy_function(released, [number, index], tf.int64)
        return tf.data.Dataset.from_tensors("").repeat(none)

    pair = tf.data.Dataset.from_tensors((number, index))
    records = tfrecord_dataset(_unless(problem, path), compression).skip(first)
    if all(map(_is_counted, pieces)):
        records = records.ignore_errors().concatenate(flat_map(pair, rest)).take(count)
    return records.concatenate(flat_map(pair, end))


def _unless(problem: Tensor, value: Tensor) -> Tensor:
    """The value. Raises InvalidArgumentError with a problem that is not empty."""
    with tf.control_dependencies([tf.debugging.Assert(tf.equal(problem, ""), [problem])]):
        return tf.identity(value)


def _readings_ahead(
    folder: StagingFolder, pieces: Sequence[Piece]
) -> Generator[_Reading | RecordspecError, None, None]:
    """Yields each piece with a lease on its copy, or an error.

    Leases that the caller has not received are released at the end.
    """
    pool, stopped = ThreadPool("recordspec-ahead", _AHEAD), Event()
    waiting: deque[Future[_Reading | RecordspecError]] = deque()

    def fetch(piece: Piece) -> _Reading | RecordspecError:
        try:
            return _fetched(folder, piece, stopped)
        except RecordspecError as error:
            return error

    try:
        for piece in pieces:
            waiting.append(pool.submit(fetch, piece))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        stopped.set()
        pool.close()
        for future in waiting:
            if future.done() and isinstance(reading := future.result(), _Reading):
                reading.release()


def copies_of(pieces: Sequence[Piece], folder: StagingFolder | None) -> Iterator[tuple[Piece, Location]]:
    """Yields each piece, and the file to read it from until the next piece is requested.

    Args:
        folder: the folder for copies of objects; None to read objects in their store.

    Raises RecordspecError if a piece cannot be read.
    """
    if folder is None:
        yield from ((piece, piece.path) for piece in pieces)
        return
    with closing(_readings_ahead(folder, pieces)) as readings:
        for piece, reading in zip(pieces, readings, strict=True):
            if isinstance(reading, RecordspecError):
                raise reading
            try:
                yield piece, Path(reading.path)
            finally:
                reading.release()


def folder_of(options: Literal["tensorflow"] | Staging, pieces: Sequence[Piece]) -> StagingFolder | None:
    """The folder for copies; None if no piece is in an object store, or if TensorFlow reads the store."""
    if options == "tensorflow" or all(piece.remote is None for piece in pieces):
        return None
    folder = default_folder() if options.folder is None else local(options.folder)
    return StagingFolder(folder, parse_bytes(options.size))


def _told(error: RecordspecError) -> str:
    """Stores an error and returns its message: TensorFlow would print the traceback of an exception."""
    FAILURES.append(error)
    return str(error)


def _fetched(folder: StagingFolder, piece: Piece, stopped: Event) -> _Reading:
    """The piece with a lease on its copy, if it is in a store. A corrupt copy is replaced once."""
    if piece.remote is None:
        return _Reading(piece=piece, lease=None, count=_count(piece, None))
    wanted, believed = _object_of(piece), _is_counted(piece)
    lease = folder.fetch(wanted, stopped, believed=believed)
    try:
        try:
            count = _count(piece, lease)
        except RecordError:
            problem = folder.check(lease, wanted)
            if problem is None:  # the object itself is corrupt
                raise
            log.warning("%s", show_text(str(problem)))
            lease.release()
            lease = folder.fetch(wanted, stopped, believed=believed)
            count = _count(piece, lease)
        return _Reading(piece=piece, lease=lease, count=count)
    except BaseException:
        lease.release()
        raise


def _is_counted(piece: Piece) -> bool:
    """Whether the number of records of a piece is known before they are read."""
    return piece.count is not None or piece.shard is not None or piece.compression == "none"


def _count(piece: Piece, lease: Lease | None) -> int | None:
    """The number of records of a piece; None if only reading tells it.

    Raises RecordError for an invalid length, and for compressed data that TensorFlow reads only in part.
    """
    if piece.count is not None:
        return piece.count
    if piece.shard is not None and lease is not None:
        return piece.shard.records
    path = piece.path if lease is None else lease.path
    try:
        if _is_counted(piece):
            return tfrecord.count(path)
        check_file(path, piece.compression)
        return None
    except RecordError as error:
        raise RecordError([named(problem, path, piece) for problem in error.problems]) from None


def _check_records(piece: Piece, path: Path) -> None:
    """Raises RecordError if a record of a file is corrupt."""
    for item in tfrecord.salvage(path):
        if isinstance(item, tfrecord.Damage):
            raise RecordError(named(item.problem, path, piece))


def named(problem: Problem, path: Location, piece: Piece) -> Problem:
    """The problem of a copy, with the path of the copy replaced by the path of its object."""
    return problem.at(problem.where.replace(str(path), str(piece.path), 1))


def _object_of(piece: Piece) -> StagedObject:
    """The copy to make for a piece that is in a store."""
    remote = piece.remote
    assert remote is not None
    # the manifest may lack the hash of an adopted file that was copied to the store
    if piece.shard is not None and piece.shard.sha256:
        return StagedObject(remote=remote, bytes=piece.shard.bytes, sha256=piece.shard.sha256)
    with system_errors("read", remote):
        stat = remote.stat()
    return StagedObject(remote=remote, bytes=stat.st_size, sha256=None, e_tag=stat.e_tag)


def check_room(pieces: tuple[Piece, ...], cycle: int, size: str) -> None:
    """Raises SpecError if the copies that are open at a time do not fit into the folder."""
    largest = max(on_disk(_object_of(piece).bytes) for piece in pieces if piece.remote is not None)
    needed = largest * min(min(cycle, len(pieces)) + _AHEAD, len(pieces))
    if parse_bytes(size) < needed:
        hint = "interleave with a smaller cycle takes less"
        expected = f"{needed:,} bytes at least, for {cycle} shards that are open at a time"
        raise SpecError(Problem(path=("staging", "size"), expected=expected, got=size, hint=hint))


def check_tensorflow(paths: list[RemotePath]) -> None:
    """Raises SpecError for a URL that TensorFlow cannot read itself."""
    for path in paths:
        if not str(path).startswith("gs://"):
            hint = "without it, shards are copied to this machine"
            raise SpecError(
                Problem(path=("staging",), expected="gs:// for `tensorflow`", got=str(path), hint=hint)
            )
