"""Who writes where: the owner of a staging folder, its lock, and names that change at once."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import os
import re
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from recordspec.errors import Problem, StoreError
from recordspec.locations import atomic_write, read_bytes

OWNER = "owner.json"
_MOST_BYTES = 1 << 16
# linux/fcntl.h and linux/fs.h: relative to the current folder; swap the two.
_HERE, _RENAME_EXCHANGE = -100, 2
# Some file systems of clusters know no locks; there the owner's name must do.
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)


def exchange(one: Path, other: Path) -> bool:
    """Gives each the name of the other, at once (renameat2(2)); False where the system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # no Linux, or an old one
        return False
    paths = os.fsencode(one), os.fsencode(other)
    return bool(rename(_HERE, paths[0], _HERE, paths[1], _RENAME_EXCHANGE) == 0)


def owner(staging: Path) -> tuple[int, str]:
    """Who writes there: process and host. A folder that does not say is not taken for a writer's."""
    with contextlib.suppress(StoreError, ValueError, TypeError, KeyError):
        named = json.loads(read_bytes(staging / OWNER, _MOST_BYTES))
        return int(named["pid"]), str(named["host"])
    hint = f"if nobody writes there, remove {staging}"
    expected = "a folder with its writer's name in it"
    raise StoreError(Problem(where=str(staging), expected=expected, got="none", hint=hint))


def write_owner(staging: Path, work: Path) -> None:
    """Says in a folder that this process writes there; `work` is a folder in it."""
    named = {"pid": os.getpid(), "host": socket.gethostname()}
    atomic_write(staging / OWNER, json.dumps(named).encode(), work / OWNER)


def reserve(staging: Path) -> tuple[Path, int]:
    """Makes an empty folder next to a staging folder. Returns its path and its lock.

    Its name has the host and the process, so that `abandoned` finds it after a crash.
    """
    while True:
        prefix = f"{staging.name}.{_host()}.{os.getpid()}."
        fresh = Path(tempfile.mkdtemp(prefix=prefix, dir=staging.parent))
        lock = locked(fresh)
        if lock is not None:
            return fresh, lock
        # Another writer saw it before it was locked, took it for abandoned and removes it.


def abandoned(staging: Path) -> Iterator[tuple[Path, int]]:
    """The folders that `reserve` made on this host for processes that have ended, each with its lock."""
    name = re.compile(rf"{re.escape(staging.name)}\.{_host()}\.(\d+)\.[^.]+")
    for path in staging.parent.iterdir():
        if found := name.fullmatch(path.name):
            with contextlib.suppress(OSError):  # of another user
                lock = locked(path, int(found[1]))
                if lock is not None:
                    yield path, lock


def _host() -> str:
    """A short form of the host's name: a lock says nothing about the processes of other hosts."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def locked(folder: Path, owner: int | None = None) -> int | None:
    """A lock that ends with this process, whatever ends it; None where another process has it, or removed
    the folder.

    Where there are no locks, that is process `owner`, as long as it lives.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # another may have replaced the folder after it was opened
        free = os.path.samestat(os.fstat(handle), folder.stat())
    except (BlockingIOError, FileNotFoundError):
        free = False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            os.close(handle)
            raise
        free = not _lives(owner)
    if not free:
        os.close(handle)
        return None
    return handle


def _lives(process: int | None) -> bool:
    """Whether it is another process of this machine, and has not ended."""
    if process is None or process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is somebody else's
        pass
    return True
