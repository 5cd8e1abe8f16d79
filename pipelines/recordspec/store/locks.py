"""Who writes where: the owner of a staging folder, its lock, and names that change at once."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import socket
from pathlib import Path

from recordspec.errors import Problem, StoreError
from recordspec.locations import read_bytes

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
    fresh = work / OWNER
    fresh.write_text(json.dumps(named))
    fresh.replace(staging / OWNER)


def locked(folder: Path, owner: int | None = None) -> int | None:
    """A lock that ends with this process, whatever ends it; None where another process has it.

    Where there are no locks, that is process `owner`, as long as it lives.
    """
    handle = os.open(folder, os.O_RDONLY)
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
