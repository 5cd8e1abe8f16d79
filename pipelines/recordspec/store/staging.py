"""A folder for copies of objects while they are read, of bounded size, shared by processes.

A copy is named by its sha256. Readers hold a shared lock on it; to make room for another copy, unlocked ones
are removed, the least recently used first. A `.part` is being downloaded by the process that has locked it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from recordspec.errors import Problem, RecordspecError, StoreError
from recordspec.locations import system_errors
from recordspec.remote import RemotePath

# Seconds between two looks at whether there is room, and after which there will be none.
_PAUSE, _PATIENCE = 0.05, 600.0
# Bytes that file systems allocate at a time.
_BLOCK = 4096
_COPY = re.compile(r"[0-9a-f]{64}(\.part)?")
# A download whose bytes are not those of the manifest is tried again.
_ATTEMPTS = 2


# The errors of copies that TensorFlow requested: its own errors have only the text.
FAILURES: deque[RecordspecError] = deque(maxlen=100)


def failure_in(error: Exception) -> RecordspecError | None:
    """The failure of a copy that caused an error of TensorFlow, if any."""
    return next((failure for failure in FAILURES if str(failure) in str(error)), None)


@dataclass(frozen=True, kw_only=True)
class StagedObject:
    """An object to read.

    Attributes:
        remote: its location.
        bytes: its size.
        sha256: the hash of its bytes; None without a manifest.
        e_tag: the store's identifier of the bytes, without a manifest.
    """

    remote: RemotePath
    bytes: int
    sha256: str | None
    e_tag: str = ""

    @property
    def name(self) -> str:
        """The name of its copy, 64 hexadecimal digits."""
        return self.sha256 or hashlib.sha256(f"{self.remote} {self.e_tag}".encode()).hexdigest()

    def check(self, found: str) -> Problem | None:
        """The problem of a download of the sha256 `found`."""
        where = str(self.remote)
        if self.sha256 is None:
            got = self.remote.stat().e_tag
            if got == self.e_tag:
                return None
            return Problem(where=where, expected="an object that does not change", got="one that has changed")
        if found == self.sha256:
            return None
        expected = f"bytes of the sha256 {self.sha256[:12]}..., as the manifest says"
        return Problem(where=where, expected=expected, got=f"{found[:12]}...")


class Lease:
    """A copy that is not removed before `release`, or the end of the process.

    Attributes:
        path: the path of the copy.
    """

    def __init__(self, path: Path, handle: int) -> None:
        self.path = path
        self._handle: int | None = handle

    def release(self) -> None:
        """Allows the copy to be removed. May be called twice."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


class StagingFolder:
    """Copies of objects, of at most `size` bytes together.

    Args:
        folder: created if it does not exist. Other files in it are not touched.
        size: the largest size of all copies, including those of other processes.
    """

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size = folder, size
        with system_errors("write", folder):
            folder.mkdir(parents=True, exist_ok=True)

    def fetch(self, wanted: StagedObject, stopped: Event | None = None) -> Lease:
        """Returns the copy of an object, downloads it if necessary, and waits until there is room.

        Args:
            stopped: stops waiting when it is set.

        Raises StoreError if it cannot be read, does not match its hash, or is larger than the
        folder may be; and if copies in use have left no room for ten minutes.
        """
        if on_disk(wanted.bytes) > self.size:
            expected = f"a staging size of {wanted.bytes:,} bytes at least"
            raise StoreError(Problem(where=str(wanted.remote), expected=expected, got=f"{self.size:,}"))
        path = self.folder / wanted.name
        stopped = Event() if stopped is None else stopped
        deadline = time.monotonic() + _PATIENCE
        with system_errors("write", self.folder):
            while True:
                with self._locked():
                    if (lease := _leased(path)) is not None:
                        return lease
                    part = self._begin(path, wanted.bytes)
                if part is not None:
                    return self._download(wanted, path, part, stopped)
                if stopped.wait(_PAUSE) or time.monotonic() > deadline:
                    hint = f"copies that are being read fill {self.folder}; give it a larger size"
                    expected = f"room for {wanted.bytes:,} bytes of {self.size:,}"
                    raise StoreError(
                        Problem(where=str(wanted.remote), expected=expected, got="none", hint=hint)
                    )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """A lock, so that one process at a time reads and changes the folder."""
        handle = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _begin(self, path: Path, size: int) -> int | None:
        """A locked file of the object's size to download into; None if another process downloads it, or
        there is no room."""
        part = path.with_name(f"{path.name}.part")
        handle = os.open(part, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        os.truncate(handle, 0)
        if not self._make_room(size):
            part.unlink()
            os.close(handle)
            return None
        os.truncate(handle, size)  # others count it
        return handle

    def _make_room(self, size: int) -> bool:
        """Removes copies until there is room for these bytes; False if the copies in use leave none."""
        copies = []
        for entry in os.scandir(self.folder):
            if _COPY.fullmatch(entry.name):
                found = entry.stat()
                copies.append((found.st_mtime_ns, on_disk(found.st_size), entry.path))
        held, size = sum(size for _, size, _ in copies), on_disk(size)
        for _, taken, name in sorted(copies):
            if held + size <= self.size:
                break
            if taken and _removed(name):
                held -= taken
        return held + size <= self.size

    def _download(self, wanted: StagedObject, path: Path, handle: int, stopped: Event) -> Lease:
        part = path.with_name(f"{path.name}.part")
        try:
            for _ in range(_ATTEMPTS):
                try:
                    problem = wanted.check(_copy(wanted, handle, stopped))
                except FileNotFoundError:
                    expected = "an object" if wanted.sha256 is None else "a shard, as the manifest says"
                    raise StoreError(
                        Problem(where=str(wanted.remote), expected=expected, got="no object")
                    ) from None
                if problem is None:
                    # the lock belongs to the open file: it goes with the file to its name
                    with self._locked():
                        part.rename(path)
                        fcntl.flock(handle, fcntl.LOCK_SH)
                    return Lease(path, handle)
            assert problem is not None
            raise StoreError(problem)
        except BaseException:
            with suppress(OSError), self._locked():
                part.unlink()
            os.close(handle)
            raise


def on_disk(size: int) -> int:
    """The bytes that a file takes: whole blocks."""
    return -(-size // _BLOCK) * _BLOCK


def _leased(path: Path) -> Lease | None:
    """A copy that is there."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    fcntl.flock(handle, fcntl.LOCK_SH)
    os.utime(path)
    return Lease(path, handle)


def _removed(name: str) -> bool:
    """Removes a copy unless somebody reads or downloads it."""
    handle = os.open(name, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def _copy(wanted: StagedObject, handle: int, stopped: Event) -> str:
    """Downloads an object into a file; returns the sha256 of what came."""
    digest = hashlib.sha256()
    with open(handle, "wb", buffering=0, closefd=False) as file:
        file.seek(0)
        for chunk in wanted.remote.stream():
            if stopped.is_set():
                raise StoreError(Problem(where=str(wanted.remote), expected="a whole copy", got="a part"))
            digest.update(chunk)
            held = memoryview(chunk)
            while held:
                held = held[file.write(held) :]
    return digest.hexdigest()
