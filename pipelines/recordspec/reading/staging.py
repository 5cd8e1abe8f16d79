"""Shards of an object store, read as local files: copies in a folder of bounded size, downloaded ahead.

A pass has leases on the copies that it reads, one on each from before it is opened until its last record is read,
and gives back the others when it ends, or is dropped.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem, SpecError
from recordspec.executors import Future, ThreadPool
from recordspec.reading.plan import Piece
from recordspec.reading.transformations import flat_map
from recordspec.remote import RemotePath
from recordspec.spec.options import parse_bytes
from recordspec.store.staging import Lease, StagedObject, StagingFolder
from recordspec.wire.compression import CODECS

Dataset = Any
Tensor = Any

# Shards that are downloaded while others are read.
_AHEAD = 2

_leases: dict[int, Lease] = {}
_tokens = itertools.count()


def staged(pieces: tuple[Piece, ...], order: Tensor, folder: StagingFolder) -> Dataset:
    """The path of a local copy of each piece, its compression, its first record, the number of records, and the token
    of its lease, in an order, int64 `[pieces]`."""

    def copies(numbers: Any) -> Iterator[tuple[str, str, int, int, int]]:
        pool, waiting, mine = ThreadPool("recordspec-ahead", _AHEAD), deque[Future[Lease]](), list[int]()
        left = iter(numbers.tolist())
        try:
            for number in left_and_ahead(left, lambda one: waiting.append(pool.submit(fetch, pieces[one]))):
                lease, token, piece = waiting.popleft().result(), next(_tokens), pieces[number]
                _leases[token] = lease
                mine.append(token)
                count = -1 if piece.count is None else piece.count
                yield str(lease.path), CODECS[piece.compression].tensorflow, piece.first, count, token
        finally:
            pool.close()
            for future in waiting:
                if future.done():
                    future.result().release()
            for token in mine:
                release(token)

    def fetch(piece: Piece) -> Lease:
        assert isinstance(piece.path, RemotePath)
        assert piece.shard is not None
        return folder.fetch(
            StagedObject(remote=piece.path, bytes=piece.shard.bytes, sha256=piece.shard.sha256)
        )

    text, whole = tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.int64)
    return tf.data.Dataset.from_generator(
        copies, args=(order,), output_signature=(text, text, whole, whole, whole)
    )


def left_and_ahead(numbers: Iterator[int], submit: Callable[[int], None]) -> Iterator[int]:
    """The numbers, each submitted some places before it comes."""
    ahead: deque[int] = deque()
    for number in numbers:
        submit(number)
        ahead.append(number)
        if len(ahead) > _AHEAD:
            yield ahead.popleft()
    yield from ahead


def release(token: Any) -> np.int64:
    """Gives a lease back; returns 0, the number of elements that follow."""
    lease = _leases.pop(int(token), None)
    if lease is not None:
        lease.release()
    return np.int64(0)  # type: ignore[no-any-return]


def then_released(records: Dataset, token: Tensor) -> Dataset:
    """The records of a copy; behind the last its lease is given back."""
    end = flat_map(
        tf.data.Dataset.from_tensors(token),
        lambda one: tf.data.Dataset.from_tensors("").repeat(tf.numpy_function(release, [one], tf.int64)),
    )
    return records.concatenate(end)


def check_room(pieces: tuple[Piece, ...], cycle: int, size: str) -> None:
    """Raises SpecError where the copies that are read at a time do not fit into the folder."""
    largest = max(piece.shard.bytes for piece in pieces if piece.shard is not None)
    needed = largest * (min(cycle, len(pieces)) + _AHEAD)
    if parse_bytes(size) < needed:
        hint = "interleave with a smaller cycle takes less"
        expected = f"{needed:,} bytes at least, for {cycle} shards that are open at a time"
        raise SpecError(Problem(path=("staging", "size"), expected=expected, got=size, hint=hint))


def default_folder() -> Path:
    """`$XDG_CACHE_HOME/recordspec`, or `~/.cache/recordspec`."""
    import os

    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recordspec" / "shards"
