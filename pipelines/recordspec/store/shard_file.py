"""Writes a shard: compresses, hashes, counts and indexes its records."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recordspec.errors import Problem, StoreError
from recordspec.executors import Future, ThreadPool
from recordspec.locations import naming, sync, sync_handle
from recordspec.store.index import IndexWriter
from recordspec.store.manifest import Shard
from recordspec.wire.arrays import Ints
from recordspec.wire.compression import CODECS, Compression
from recordspec.wire.hashes import FEW_BYTES, Sha256

# Bytes that may wait for the writing thread, which gets its turn late while NumPy is busy.
_AHEAD = 16 << 20
# Bytes after which data is flushed to the disk, so that less is left for the end: 200 MB took 0.26 s with
# this size, 0.29 s with 16 MiB, 0.34 s with 32 MiB, and 0.46 s without flushing.
_FLUSHED = 8 << 20


class ShardFile:
    """Writes framed records. One thread compresses and writes them and another hashes them, since all three
    operations release the GIL; a few bytes are handled without threads.

    Args:
        index: the path of its index.
    """

    def __init__(self, path: Path, compression: Compression, index: Path) -> None:
        self._path = path
        self._index, self._offsets = index, IndexWriter()
        self._file = path.open("xb", buffering=0)
        self._compressor = CODECS[compression].compressor()
        self._hash, self._sha256 = Sha256(), ""
        self._bytes = self._flushed = 0
        self._records = self._rows = 0
        self._left = FEW_BYTES
        self._writing: ThreadPool | None = None
        self._waiting: deque[tuple[int, Future[None]]] = deque()
        self._ahead = 0

    def write(self, frames: memoryview | bytes, sizes: Ints, rows: int) -> None:
        """Appends framed records, which must not change afterwards.

        Args:
            sizes: the bytes of each frame, int64 `[n]`.
            rows: the number of rows in them.
        """
        while self._waiting and (self._ahead > _AHEAD or self._waiting[0][1].done()):
            self._wait()
        self._submit(len(frames), self._compress, frames)
        self._offsets.add(sizes)
        self._records += len(sizes)
        self._rows += rows

    def close(self, name: str) -> Shard:
        """Flushes the file and its index to the disk. Returns the manifest entry of the shard `name`.

        Raises StoreError if the file's size differs from the bytes written, OSError if the disk is full.
        """
        self._submit(0, self._finish)
        try:
            while self._waiting:
                self._wait()
        finally:
            self.abandon()
        size = self._path.stat().st_size
        if size != self._bytes:
            raise StoreError(
                Problem(where=str(self._path), expected=f"{self._bytes:,} bytes", got=f"{size:,}")
            )
        with naming(self._index), self._index.open("wb") as file:
            file.write(self._offsets.close(size, self._sha256, restarts=self._compressor.restarts))
            sync(file)
        return Shard(file=name, rows=self._rows, records=self._records, bytes=size, sha256=self._sha256)

    def abandon(self) -> None:
        """Stops writing and drops waiting data."""
        if self._writing is not None:
            self._writing.close()
        self._hash.close()
        self._file.close()

    def _submit(self, size: int, function: Callable[..., None], *arguments: Any) -> None:
        """Submits a call for `size` bytes to the writing thread; runs it here while there are few bytes."""
        self._left -= size
        if self._left >= 0:
            function(*arguments)
            return
        self._writing = self._writing or ThreadPool("recordspec-write")
        self._waiting.append((size, self._writing.submit(function, *arguments)))
        self._ahead += size

    def _wait(self) -> None:
        """Waits for the first submitted call."""
        size, done = self._waiting.popleft()
        self._ahead -= size
        done.result()

    def _compress(self, frames: memoryview | bytes) -> None:
        with naming(self._path):
            self._put(self._compressor.compress(frames))

    def _finish(self) -> None:
        with naming(self._path):
            self._put(self._compressor.flush())
            sync_handle(self._file.fileno())
        self._sha256 = self._hash.hexdigest()

    def _put(self, data: memoryview | bytes) -> None:
        view = memoryview(data).cast("B")
        self._hash.update(view)
        self._bytes += len(view)
        while view:  # an unbuffered write may take fewer bytes than it is given
            view = view[self._file.write(view) :]
        if self._bytes - self._flushed >= _FLUSHED:
            sync_handle(self._file.fileno(), data_only=True)
            self._flushed = self._bytes
