"""Shards of an object store, read as local files: copies in a folder of bounded size, downloaded ahead.

A pass has leases on the copies that it reads, one on each from before it is opened until its last record is
read, and gives back the others when it ends, or is dropped.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem, RecordError, RecordspecError, SpecError
from recordspec.executors import Future, ThreadPool
from recordspec.locations import Location, system_errors
from recordspec.reading.plan import Piece
from recordspec.reading.transformations import flat_map
from recordspec.remote import RemotePath
from recordspec.spec.options import parse_bytes
from recordspec.store.staging import (
    FAILURES,
    Lease,
    StagedObject,
    StagingFolder,
    distrust_copies,
    on_disk,
)
from recordspec.wire import tfrecord
from recordspec.wire.compression import CODECS

Dataset = Any
Tensor = Any

# Shards that are downloaded while others are read, each by one connection: requests for ranges take twice the
# CPU time.
_AHEAD = 3

_leases: dict[int, Lease] = {}
_tokens = itertools.count()


def staged(pieces: tuple[Piece, ...], order: Tensor, folder: StagingFolder) -> Dataset:
    """The path of a local copy of each piece, its compression, its first record, the number of records, the
    token of its lease, and what went wrong, in an order, int64 `[pieces]`."""

    _distrust_at_exit()

    def copies(numbers: Any) -> Iterator[tuple[str, str, int, int, int, str]]:
        chosen, mine = [pieces[number] for number in numbers], []
        leases = _leases_ahead(folder, chosen)
        try:
            for piece, (lease, problem) in zip(chosen, leases, strict=True):
                token = next(_tokens)
                if lease is not None:
                    _leases[token] = lease
                    mine.append(token)
                count = -1 if piece.count is None else piece.count
                path = piece.path if lease is None else lease.path
                yield str(path), CODECS[piece.compression].tensorflow, piece.first, count, token, problem
        finally:
            for token in mine:
                release(token)
            leases.close()

    text, whole = tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.int64)
    return tf.data.Dataset.from_generator(
        copies, args=(order,), output_signature=(text, text, whole, whole, whole, text)
    )


@cache
def _distrust_at_exit() -> None:
    """If a corrupt record ends this process, the next one hashes the copies before it reads them."""

    def distrust() -> None:
        if isinstance(getattr(sys, "last_value", None), tf.errors.DataLossError):
            distrust_copies()
        # The frames of an error that ends the process have the iterator. Its threads call Python: if it is
        # deleted when the interpreter no longer lets them, the process never ends.
        for name in ("last_value", "last_traceback", "last_exc"):
            setattr(sys, name, None)

    atexit.register(distrust)


def _leases_ahead(
    folder: StagingFolder, pieces: list[Piece]
) -> Generator[tuple[Lease | None, str], None, None]:
    """A lease on the copy of each piece, or an error message; None for a local file. Leases that the caller
    has not received are released at the end."""
    pool, stopped = ThreadPool("recordspec-ahead", _AHEAD), Event()
    waiting: deque[Future[tuple[Lease | None, str]]] = deque()

    def fetch(piece: Piece) -> tuple[Lease | None, str]:
        try:
            return _fetched(folder, piece, stopped), ""
        except RecordspecError as error:  # TensorFlow would print an exception with its traceback
            FAILURES.append(error)
            return None, str(error)

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
            if future.done() and (lease := future.result()[0]) is not None:
                lease.release()


def _fetched(folder: StagingFolder, piece: Piece, stopped: Event) -> Lease | None:
    if not isinstance(piece.path, RemotePath):
        return None
    lease = folder.fetch(_object_of(piece), stopped)
    if piece.shard is None and piece.compression == "none":
        try:
            tfrecord.check_lengths(lease.path)
        except RecordError as error:
            lease.release()
            where = str(piece.path)
            raise RecordError([replace(one, where=where) for one in error.problems]) from None
    return lease


def _object_of(piece: Piece) -> StagedObject:
    """The copy to make for a piece that is in a store."""
    assert isinstance(piece.path, RemotePath)
    if piece.shard is not None:
        return StagedObject(remote=piece.path, bytes=piece.shard.bytes, sha256=piece.shard.sha256)
    with system_errors("read", piece.path):
        found = piece.path.stat()
    return StagedObject(remote=piece.path, bytes=found.st_size, sha256=None, e_tag=found.e_tag)


def release(token: Any) -> np.int64:
    """Releases a lease; returns 0, the number of elements that follow."""
    lease = _leases.pop(int(token), None)
    if lease is not None:
        lease.release()
    return np.int64(0)  # type: ignore[no-any-return]


def then_released(records: Dataset, token: Tensor) -> Dataset:
    """The records of a copy; its lease is released after the last."""
    end = flat_map(
        tf.data.Dataset.from_tensors(token),
        lambda one: tf.data.Dataset.from_tensors("").repeat(tf.numpy_function(release, [one], tf.int64)),
    )
    return records.concatenate(end)


def check_room(pieces: tuple[Piece, ...], cycle: int, size: str) -> None:
    """Raises SpecError if the copies that are read at a time do not fit into the folder."""
    largest = max(on_disk(_object_of(piece).bytes) for piece in pieces if piece.is_remote)
    needed = largest * min(min(cycle, len(pieces)) + _AHEAD, len(pieces))
    if parse_bytes(size) < needed:
        hint = "interleave with a smaller cycle takes less"
        expected = f"{needed:,} bytes at least, for {cycle} shards that are open at a time"
        raise SpecError(Problem(path=("staging", "size"), expected=expected, got=size, hint=hint))


def check_tensorflow(paths: list[Location]) -> None:
    """Raises SpecError for a URL that TensorFlow does not read itself."""
    for path in paths:
        if not str(path).startswith("gs://"):
            hint = "without it, shards are copied to this machine"
            raise SpecError(
                Problem(path=("staging",), expected="gs:// for `tensorflow`", got=str(path), hint=hint)
            )


def default_folder() -> Path:
    """`$XDG_CACHE_HOME/recordspec/shards`, by default `~/.cache/recordspec/shards`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recordspec" / "shards"
