"""The hash of a file, from the same pass over its bytes that reads its records."""

from __future__ import annotations

import hashlib
from collections import deque
from types import TracebackType

from recordspec.executors import Future, ThreadPool
from recordspec.wire.inflated import Readable

_REST = 1 << 20
# Pieces that may wait to be hashed: each is in memory until then.
_WAITING = 2


class Hashed:
    """A file that is open; what is read of it is hashed in a thread, since that lets Python go on.

    What it is read into must not change.
    """

    def __init__(self, file: Readable) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self._thread = ThreadPool("recordspec-hash")
        self._waiting: deque[Future[None]] = deque()
        self._at = self._hashed = 0  # the byte that is read next, and the one that is hashed next

    def __enter__(self) -> Hashed:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._thread.close()

    def read(self, size: int, /) -> bytes:
        data = self._file.read(size)
        self._put(memoryview(data))
        return data

    def readinto(self, view: memoryview, /) -> int:
        count = self._file.readinto(view)
        self._put(view[:count])
        return count

    def seek(self, place: int, /) -> int:
        """Back only: what is read once more is not hashed again."""
        self._at = self._file.seek(place)
        return self._at

    def tell(self) -> int:
        return self._at

    def sha256(self) -> str:
        """Of the whole file: what was not read yet is read."""
        while self.read(_REST):
            pass
        while self._waiting:
            self._waiting.popleft().result()
        return self._hash.hexdigest()

    def _put(self, data: memoryview) -> None:
        fresh = data[max(0, self._hashed - self._at) :]
        self._at += len(data)
        self._hashed = max(self._hashed, self._at)
        self._waiting.append(self._thread.submit(self._hash.update, fresh))
        if len(self._waiting) > _WAITING:
            self._waiting.popleft().result()
