"""A folder for local copies of objects, of bounded size, shared by processes.

A copy is named by its sha256. Readers hold a shared lock on it. To make room for another copy, unlocked
copies are removed, the least recently used first. A `.part` file is being downloaded by the process that has
locked it.

A `.stamp` beside a copy records the size, the times and the inode of the file when its hash was correct; the
stamp's own mtime is the last use. A copy that differs from its stamp is hashed again before it is read.

`.lock` contains the total size of all copies. It is empty while a process changes them. If that process dies,
the next one counts the copies.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event

from recordspec.errors import (
    Problem,
    RecordspecError,
    State,
    StoreError,
    show_text,
    system_errors,
    system_problem,
    system_reason,
)
from recordspec.locations import read_bytes, sync_handle
from recordspec.remote import RemotePath, stream

log = logging.getLogger("recordspec")

# Seconds between two checks for room, and the time in seconds after which waiting fails.
_PAUSE, _PATIENCE = 0.05, 600.0
# The errors of a full disk or quota.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
# Bytes that file systems allocate at a time.
_BLOCK = 4096
# Bytes that are hashed at a time.
_PIECE = 1 << 20
_STAMP, _MOST_BYTES = ".stamp", 1 << 12
_COPY = re.compile(rf"[0-9a-f]{{64}}(\.part|\{_STAMP})?")
# A download whose bytes differ from the manifest is tried again.
_ATTEMPTS = 2


# The errors of copies that TensorFlow requested: its own errors contain only their text.
FAILURES: deque[RecordspecError] = deque(maxlen=100)


def failure_in(error: Exception) -> RecordspecError | None:
    """The failed copy that caused an error of TensorFlow, if any."""
    return next((failure for failure in FAILURES if str(failure) in str(error)), None)


@dataclass(frozen=True, kw_only=True)
class StagedObject:
    """An object to read.

    Attributes:
        remote: its location.
        bytes: its size.
        sha256: the hash of its bytes; None if it has no manifest.
        e_tag: the store's identifier of the bytes, used if there is no manifest.
    """

    remote: RemotePath
    bytes: int
    sha256: str | None
    e_tag: str = ""

    @property
    def name(self) -> str:
        """The name of the object's copy, 64 hexadecimal digits."""
        return self.sha256 or hashlib.sha256(f"{self.remote} {self.e_tag}".encode()).hexdigest()

    def check(self, sha256: str) -> Problem | None:
        """The problem of a download whose hash is `sha256`, if that is wrong."""
        where = str(self.remote)
        if self.sha256 is None:
            got = self.remote.stat().e_tag
            if got == self.e_tag:
                return None
            return Problem(where=where, expected="an object that does not change", got="one that has changed")
        if sha256 == self.sha256:
            return None
        expected = f"bytes of the sha256 {self.sha256[:12]}..., as the manifest says"
        return Problem(where=where, expected=expected, got=f"{sha256[:12]}...")


@dataclass(frozen=True, kw_only=True)
class FileStamp:
    """Identifies a file whose hash was correct: if the file is written again, its stamp differs.

    Attributes:
        bytes, mtime_ns, ctime_ns, inode: as `os.stat` gives them. A program can set the mtime, not the ctime.
        sha256: the hash of the copy.
    """

    bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    sha256: str

    @classmethod
    def of(cls, handle: int, sha256: str) -> FileStamp:
        """The stamp of an open file with this hash."""
        status = os.fstat(handle)
        return cls(
            bytes=status.st_size,
            mtime_ns=status.st_mtime_ns,
            ctime_ns=status.st_ctime_ns,
            inode=status.st_ino,
            sha256=sha256,
        )

    @classmethod
    def load(cls, path: Path) -> FileStamp | None:
        """The stamp of a copy; None if it has none."""
        try:
            return cls(**json.loads(read_bytes(_stamp_of(path), _MOST_BYTES)))
        except (StoreError, ValueError, TypeError):
            return None

    def dump(self, path: Path) -> None:
        """Writes the stamp of a copy. It is not flushed to the disk: without it, the copy is hashed again."""
        _stamp_of(path).write_text(json.dumps(asdict(self)))


class Lease:
    """A copy that is not removed before `release`, or the end of the process.

    Attributes:
        path: the path of the copy.
    """

    def __init__(self, path: Path, handle: int) -> None:
        self.path = path
        self._handle: int | None = handle
        self._state = self._stat()

    @property
    def handle(self) -> int:
        """The open copy."""
        assert self._handle is not None, "released"
        return self._handle

    @property
    def open_path(self) -> str:
        """The path of the open copy, valid even if its file was unlinked."""
        return f"/dev/fd/{self.handle}"

    @property
    def is_changed(self) -> bool:
        """Whether the copy was written since it was opened."""
        return self._stat() != self._state

    def _stat(self) -> tuple[int, int]:
        status = os.fstat(self.handle)
        return status.st_size, status.st_mtime_ns

    def release(self) -> None:
        """Allows the copy to be removed. May be called twice."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


class StagingFolder:
    """Copies of objects, of at most `size` bytes in total.

    Args:
        folder: the folder, created if it does not exist. Other files in it are not touched.
        size: the largest size of all copies, including copies of other processes.
    """

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size = Path(folder), size
        # Both are valid while the folder is locked. Counting the files of the folder for each copy would be
        # quadratic.
        self._used: int | None = None  # the bytes of all copies; None if they must be counted
        self._unused: deque[tuple[int, int, Path]] = deque()  # the rest of the list of `_scan`
        with system_errors("write", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)

    def fetch(self, wanted: StagedObject, stopped: Event | None = None, *, believed: bool = True) -> Lease:
        """Returns the copy of an object. Downloads it if necessary, and waits until there is room.

        Args:
            stopped: stops waiting when it is set.
            believed: whether a copy whose file has not changed is taken as correct.

        A copy that was changed is logged, deleted, and downloaded again.

        Unused copies are also removed if the disk has less room than the folder may take.

        Raises StoreError if the object cannot be read, does not match its hash, or is larger than the folder
        may be; if copies in use have left no room for ten minutes; and if the disk is full and there are no
        unused copies.
        """
        if on_disk(wanted.bytes) > self.size:
            expected = f"a staging size of {wanted.bytes:,} bytes at least"
            raise StoreError(Problem(where=str(wanted.remote), expected=expected, got=f"{self.size:,}"))
        path = self.folder / wanted.name
        stopped = Event() if stopped is None else stopped
        deadline = time.monotonic() + _PATIENCE
        with system_errors("write", self.folder):
            while True:
                part = None
                with self._locked():
                    handle = _opened(path)
                    if handle is None:
                        part = self._begin(path, wanted.bytes)
                    elif believed and _is_unchanged(path, handle):
                        os.utime(_stamp_of(path))
                        return Lease(path, handle)
                if handle is not None:
                    if (problem := self._hash(wanted, path, handle)) is None:
                        return Lease(path, handle)
                    os.close(handle)
                    log.warning("%s", show_text(str(problem)))
                    continue  # another process removed it
                if part is not None:
                    if (lease := self._downloaded(wanted, path, part, stopped)) is not None:
                        return lease
                    continue  # there is room now
                if stopped.wait(_PAUSE) or time.monotonic() > deadline:
                    hint = f"copies that are being read fill {self.folder}; give it a larger size"
                    got = f"finds no room for its {wanted.bytes:,} bytes in a folder of {self.size:,}"
                    raise StoreError(State(where=str(wanted.remote), got=got, hint=hint))

    def check(self, lease: Lease, wanted: StagedObject) -> Problem | None:
        """Hashes the copy of an object. If its bytes are wrong, deletes it and returns its problem."""
        with system_errors("write", self.folder):
            return self._hash(wanted, lease.path, lease.handle)

    def _hash(self, wanted: StagedObject, path: Path, handle: int) -> Problem | None:
        """Hashes a copy, which others may be reading, and stamps it, or deletes it if it is wrong."""
        stamp = FileStamp.load(path)
        # without a manifest, the hash is that of the download
        right = wanted.sha256 or ("" if stamp is None else stamp.sha256)
        stamp = FileStamp.of(handle, right)
        got = "other bytes" if right else "one without its hash"
        try:
            is_right = bool(right) and _sha256(handle) == right
        except OSError as error:
            is_right, got = False, f"one that cannot be read: {system_reason(error)}"
        with self._locked():
            # another process may have replaced it meanwhile
            is_there = path.exists() and os.path.samestat(os.fstat(handle), path.stat())
            if is_right and is_there:
                stamp.dump(path)
            elif is_there:
                self._used = None
                _unlink(path)
        if is_right:
            return None
        hint = "it is deleted, and the object is copied again to be read"
        return Problem(where=str(path), expected=f"a copy of {wanted.remote}", got=got, hint=hint)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """A lock that lets one process at a time read and change the folder."""
        handle = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            text = os.pread(handle, _MOST_BYTES, 0)
            self._used = int(text) if text.isdigit() else None
            os.truncate(handle, 0)
            try:
                yield
            finally:
                if self._used is not None:
                    os.pwrite(handle, str(self._used).encode(), 0)
        finally:
            os.close(handle)

    def _begin(self, path: Path, size: int) -> int | None:
        """A locked file of the object's size to download into; None if another process is downloading it,
        or there is no room.
        """
        part = path.with_name(f"{path.name}.part")
        handle = os.open(part, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        if os.fstat(handle).st_size:  # left by a process that died
            self._used = None
        os.truncate(handle, 0)
        if not self._make_room(size, part.name):
            part.unlink()
            os.close(handle)
            return None
        self._add(size)
        os.truncate(handle, size)  # counted by other processes
        return handle

    def _add(self, size: int, sign: int = 1) -> None:
        """Counts a copy, or with `sign` -1 a removed copy."""
        if self._used is not None:
            self._used += sign * on_disk(size)

    def _make_room(self, size: int, part: str) -> bool:
        """Removes copies until there is room for `size` bytes of `part`. Returns False if copies in use
        leave no room.
        """
        if self._used is None:
            self._scan(part)
        removals = self._removals(part)
        while self._used is not None and self._used + on_disk(size) > self.size:
            if next(removals, None) is None:
                return False
        return True

    def _free(self, size: int) -> bool:
        """Removes copies of about `size` bytes, for a full disk. Returns False if all are in use."""
        freed = 0
        with self._locked():
            for taken in self._removals():
                freed += taken
                if freed >= size:
                    break
        return freed > 0

    def _removals(self, part: str = "") -> Iterator[int]:
        """Removes unused copies except `part`, the least recently used first.

        Yields the bytes freed by each removal, and 0 after counting all copies again.
        """
        for counted in (False, True):
            if counted:
                self._scan(part)
                yield 0
            while self._unused:
                used, taken, copy = self._unused.popleft()
                if _last_use(copy) == used and _removed(copy):
                    if self._used is not None:
                        self._used -= taken
                    yield taken

    def _full(self, wanted: StagedObject, error: OSError) -> StoreError:
        free = shutil.disk_usage(self.folder).free
        hint = f"`staging.size` is {self.size:,} bytes, {free:,} are free, and no copy is unused"
        return StoreError(system_problem(f"copy it to {self.folder}", error, str(wanted.remote), hint))

    def _scan(self, part: str) -> None:
        """Counts the bytes of all copies. Lists all but `part` by last use, the least recent first: the
        time of the last use, the size on the disk, and the path.
        """
        entries = [entry for entry in os.scandir(self.folder) if _COPY.fullmatch(entry.name)]
        files = {entry.name: entry.stat() for entry in entries if entry.name != part}
        copies = []
        for name, seen in files.items():
            if name.endswith(_STAMP):
                if name.removesuffix(_STAMP) not in files:  # the copy was deleted
                    (self.folder / name).unlink()
                continue
            used = files.get(f"{name}{_STAMP}", seen).st_mtime_ns
            copies.append((used, on_disk(seen.st_size), self.folder / name))
        self._used = sum(size for _, size, _ in copies)
        self._unused = deque(sorted(copies))

    def _downloaded(self, wanted: StagedObject, path: Path, handle: int, stopped: Event) -> Lease | None:
        """The copy of an object; None if the disk was full and unused copies have been removed.

        Raises StoreError if the disk is full and there are no unused copies.
        """
        try:
            return Lease(path, self._download(wanted, path, handle, stopped))
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            if not self._free(wanted.bytes):
                raise self._full(wanted, error) from error
            return None

    def _download(self, wanted: StagedObject, path: Path, handle: int, stopped: Event) -> int:
        """Downloads an object into a locked file, and returns its handle."""
        part = path.with_name(f"{path.name}.part")
        try:
            for _ in range(_ATTEMPTS):
                try:
                    copied = _copy(wanted, handle, stopped)
                    problem = wanted.check(copied)
                except FileNotFoundError:
                    got = (
                        "does not exist"
                        if wanted.sha256 is None
                        else "does not exist, and the manifest lists it"
                    )
                    raise StoreError(State(where=str(wanted.remote), got=got)) from None
                if problem is None:
                    sync_handle(handle)
                    # the lock belongs to the open file, so that it stays with the renamed file
                    with self._locked():
                        part.rename(path)
                        fcntl.flock(handle, fcntl.LOCK_SH)
                        FileStamp.of(handle, copied).dump(path)
                    return handle
            assert problem is not None
            raise StoreError(problem)
        except BaseException:
            with suppress(OSError), self._locked():
                part.unlink()
                self._add(wanted.bytes, -1)
            os.close(handle)
            raise


def on_disk(size: int) -> int:
    """The bytes that a copy takes on the disk: whole blocks, and one for its stamp."""
    return (-(-size // _BLOCK) + 1) * _BLOCK


def _stamp_of(path: Path) -> Path:
    """The path of the stamp of a copy."""
    return path.with_name(f"{path.name}{_STAMP}")


def _opened(path: Path) -> int | None:
    """Opens a copy with a shared lock; None if it does not exist."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    fcntl.flock(handle, fcntl.LOCK_SH)
    return handle


def _is_unchanged(path: Path, handle: int) -> bool:
    """Whether an open copy matches its stamp."""
    stamp = FileStamp.load(path)
    return stamp is not None and stamp == FileStamp.of(handle, stamp.sha256)


def _unlink(path: Path) -> None:
    """Removes a copy and its stamp."""
    path.unlink()
    _stamp_of(path).unlink(missing_ok=True)


def _last_use(path: Path) -> int | None:
    """The time of the last use of a copy; None if it is gone."""
    try:
        used = path.stat().st_mtime_ns
    except FileNotFoundError:
        return None
    with suppress(FileNotFoundError):
        used = _stamp_of(path).stat().st_mtime_ns
    return used


def _removed(path: Path) -> bool:
    """Removes a copy unless a process is reading or downloading it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _unlink(path)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def _sha256(handle: int) -> str:
    """The hash of an open file. Raises OSError."""
    digest = hashlib.sha256()
    os.lseek(handle, 0, os.SEEK_SET)
    while chunk := os.read(handle, _PIECE):
        digest.update(chunk)
    return digest.hexdigest()


def _copy(wanted: StagedObject, handle: int, stopped: Event) -> str:
    """Downloads an object into a file. Returns the sha256 of the downloaded bytes."""
    digest = hashlib.sha256()
    with open(handle, "wb", buffering=0, closefd=False) as file:
        file.seek(0)
        for chunk in stream(wanted.remote):
            if stopped.is_set():
                raise StoreError(State(where=str(wanted.remote), got="was copied in part"))
            digest.update(chunk)
            view = memoryview(chunk)
            while view:
                view = view[file.write(view) :]
    return digest.hexdigest()


def default_folder() -> Path:
    """The folder `$XDG_CACHE_HOME/recordspec/shards`, by default `~/.cache/recordspec/shards`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recordspec" / "shards"
