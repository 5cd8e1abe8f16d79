"""A folder that keeps pieces of objects on the disk, up to a size, for all processes of a machine.

`NAME.pieces` is a sparse file of an object's size, and `NAME.there` has a byte for each piece, which is 1
once the piece was written. What is kept stays: an order that reads each piece once an epoch would find
nothing if the least recently used ones left. If there is no room, the files of objects that no process has
open are deleted, those first that were opened longest ago.

A process that is killed leaves whole pieces, or pieces that are not there. CRCs of records are checked when
they are read: after a crash of the machine, a damaged piece is read again from its store.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from recordspec.errors import system_errors
from recordspec.locations import local
from recordspec.schema.options import parse_bytes
from recordspec.store.staging import DISK_FULL, default_folder
from recordspec.wire.compression import PIECE

_KEPT = b"\1"
_FOLDER, _DATA, _THERE = "pieces", ".pieces", ".there"


class KeptPieces:
    """Pieces of objects in a folder.

    Args:
        folder: the folder, created with the first piece.
        size: the largest size of all pieces, of all processes, in bytes.
    """

    @classmethod
    def of(cls, folder: str | None, size: str) -> KeptPieces:
        """The folder of `read.staging`, by its options."""
        return cls((default_folder() if folder is None else local(folder)) / _FOLDER, parse_bytes(size))

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size = folder, size
        self._lock = threading.Lock()
        self._opened: dict[str, tuple[int, int]] = {}
        self._full = self._counted = False

    def there(self, name: str, first: int, stop: int) -> list[bool]:
        """Whether each of adjacent pieces of an object is kept."""
        opened = self._opened.get(name)
        if opened is None:
            if not (self.folder / f"{name}{_DATA}").exists():
                return [False] * (stop - first)
            with self._locked():
                opened = self._open(name)
        flags = os.pread(opened[1], stop - first, first)
        return [flags[place : place + 1] == _KEPT for place in range(stop - first)]

    def read(self, name: str, start: int, view: memoryview) -> None:
        """Reads the bytes of pieces of an object that are kept, from a place on."""
        with system_errors("read", self.folder):
            os.preadv(self._opened[name][0], [view], start)

    def put(self, name: str, piece: int, size: int, data: memoryview) -> None:
        """Keeps adjacent pieces of an object of this size, from a piece on, as far as there is room."""
        if self._full:
            return
        with system_errors("write", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                self._put(name, piece, size, data)
            except OSError as error:
                if error.errno not in DISK_FULL:
                    raise
                self._full = True

    def _put(self, name: str, piece: int, size: int, data: memoryview) -> None:
        with self._locked() as lock:
            file, there = self._open(name)
            count = -(-len(data) // PIECE)
            # a piece that is kept may be damaged
            kept = os.pread(there, count, piece).count(_KEPT)
            used = self._used(lock)
            more = max(0, len(data) - kept * PIECE)
            for path in self._unused() if used + more > self.size else ():
                used -= self._delete(path)
                if used + more <= self.size:
                    break
            if used + more > self.size:
                self._full = True
                count = max(0, self.size - used) // PIECE if not kept else 0
                data = data[: count * PIECE]
            if not data:
                return
            if os.fstat(file).st_size < size:
                os.truncate(file, size)
            os.pwrite(file, data, piece * PIECE)
            os.pwrite(there, _KEPT * count, piece)
            os.pwrite(lock, b"%020d" % (used + min(more, len(data))), 0)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """A lock that lets one thread of one process at a time change the folder: the open file of the lock,
        which has the bytes of all pieces.
        """
        with self._lock:
            handle = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                yield handle
            finally:
                os.close(handle)

    def _open(self, name: str) -> tuple[int, int]:
        """The files of an object, which are not deleted as long as this process has them open."""
        if name not in self._opened:
            data, there = (
                os.open(self.folder / f"{name}{end}", os.O_RDWR | os.O_CREAT, 0o666)
                for end in (_DATA, _THERE)
            )
            fcntl.flock(data, fcntl.LOCK_SH)
            os.utime(data)
            self._opened[name] = data, there
        return self._opened[name]

    def _used(self, lock: int) -> int:
        """The bytes of all pieces: counted at first, as a process that was killed did not count its last."""
        text = os.pread(lock, 20, 0)
        if self._counted and text.isdigit():
            return int(text)
        self._counted = True
        return sum(_bytes_of(Path(entry)) for entry in os.scandir(self.folder) if entry.name.endswith(_DATA))

    def _unused(self) -> Iterator[Path]:
        """The files of objects that no process has open, those first that were opened longest ago."""
        paths = [Path(entry) for entry in os.scandir(self.folder) if entry.name.endswith(_DATA)]
        for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns):
            handle = os.open(path, os.O_RDONLY)
            try:
                with suppress(BlockingIOError):
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    yield path
            finally:
                os.close(handle)

    @staticmethod
    def _delete(path: Path) -> int:
        """Deletes the files of an object. Returns their bytes."""
        size = _bytes_of(path)
        path.with_suffix(_THERE).unlink(missing_ok=True)  # pieces without it are not there
        path.unlink()
        return size


def _bytes_of(path: Path) -> int:
    """The bytes of the pieces of a file that are written."""
    return path.stat().st_blocks * 512
