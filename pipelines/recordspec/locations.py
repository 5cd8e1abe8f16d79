"""Locations of data, and what is done with both kinds of them: listing folders, opening and reading files,
and writing files durably and atomically.

Every file that must be complete is written by `atomic_file` or `atomic_write`; a file at a user's path, by
`output_file`.
"""

from __future__ import annotations

import errno
import fcntl
import io
import logging
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import IO, Annotated, Any

from recordspec import remote
from recordspec.errors import (
    ExistsError,
    Problem,
    RecordspecError,
    SpecError,
    StoreError,
    exists,
    system_errors,
    system_problem,
    system_reason,
)
from recordspec.remote import PLACE, ObjectStat, RemotePath, is_url, shown_url

log = logging.getLogger("recordspec")

# The start of a URL, even if pathlib has collapsed its slashes from `s3://bucket` to `s3:/bucket`. A scheme
# has at least two letters: `a:/b` is a file in a folder.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_PIECE = 1 << 20
# Errors of file systems, such as some FUSE ones, that cannot flush a file or a folder.
_NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
_MANY = 100  # from so many objects on, a folder is listed instead; a listing request returns up to a thousand
_LONGEST_STEM = 60  # characters of a temporary file's name, each of at most 4 bytes
_SPECIAL = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

# Marks for options that are paths, checked by the readers of options: a file on this machine, and a file that
# may be in an object store.
LOCAL, ANYWHERE = "local", "anywhere"
PathText = Annotated[str, LOCAL]
LocationText = Annotated[str, ANYWHERE]


@contextmanager
def naming(file: object) -> Iterator[None]:
    """Adds the file name to OSErrors of reading and writing; errors of opening have it already."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(file)
        raise


class _Named(io.FileIO):
    """A file with its name in errors of reading; Python adds the name only to errors of opening."""

    def readinto(self, buffer: Any, /) -> int | None:
        with naming(self.name):
            return super().readinto(buffer)

    def readall(self) -> bytes:
        with naming(self.name):
            return super().readall()


# The location of data, on this machine or in an object store. Code that reads both uses the functions of this
# module, and the methods of `pathlib.Path` that `RemotePath` has.
Location = Path | RemotePath
# A location as users pass it: its text may be a URL.
AnyPath = str | os.PathLike[str] | RemotePath


def is_path(value: object) -> bool:
    """Whether a value is a path or a URL, as opposed to the contents of a file."""
    return isinstance(value, (str, os.PathLike, RemotePath))


def url_problem(path: str | os.PathLike[str]) -> Problem | None:
    """The problem of a path that is a URL; None for any other path."""
    text = os.fspath(path)
    if "://" not in text and _SCHEME.match(text) is None:
        return None
    hint = "" if "://" in text else "a URL has two slashes; pathlib drops one"
    return Problem(expected="a local path", got=f"the URL `{shown_url(text)}`", hint=hint)


def location_problem(path: AnyPath) -> Problem | None:
    """The problem of a value that is neither a path nor a URL of a store; None otherwise."""
    try:
        location(path)
    except SpecError as error:
        return error.problems[0]
    return None


def local(path: str | os.PathLike[str], where: str = "") -> Path:
    """The path of a local file; `where` is the location of the path in messages.

    Raises SpecError for a URL, which pathlib would turn into a relative path, `s3:/bucket/data`.
    """
    problem = url_problem(path)
    if problem is not None:
        raise SpecError(problem.at(where))
    return Path(path)


def location(path: AnyPath) -> Location:
    """The location of a path or a URL. Raises SpecError for an unsupported URL."""
    if isinstance(path, RemotePath):
        return path
    text = os.fspath(path)
    if ":/" not in text:  # most paths, without a search for a scheme
        return path if isinstance(path, Path) else Path(text)
    if is_url(text):
        return RemotePath.parse(text)
    problem = url_problem(text)
    if problem is not None:
        raise SpecError(replace(problem, expected=PLACE))
    return path if isinstance(path, Path) else Path(text)


def absolute(path: AnyPath) -> Location:
    """The same place, independent of the current folder, and without `..`.

    Raises SpecError for an unsupported URL.
    """
    place = location(path)
    if isinstance(place, RemotePath) or (place.is_absolute() and ".." not in place.parts):
        return place
    return Path(os.path.abspath(place))


def resolved(path: Location) -> Location:
    """The same place without links. A link to itself is returned unchanged, so that opening it reports the
    error; before Python 3.13, `Path.resolve` raises RuntimeError for it.
    """
    return path if isinstance(path, RemotePath) else Path(os.path.realpath(path))


def joined(folder: Location, path: AnyPath) -> Location:
    """The place that a path in `folder` names: a URL, or a path, which is below the folder if it is relative.

    Raises SpecError for an unsupported URL, and for an absolute path in a bucket: the data of a config in a
    bucket must be in a store.
    """
    place = location(path)
    if isinstance(place, RemotePath):
        return place
    if isinstance(folder, Path):
        return folder / place
    if place.is_absolute():
        raise SpecError(Problem(expected=f"a URL, or a path from {folder}", got=f"`{place}`"))
    return folder / str(place)


def below(folder: AnyPath, path: str) -> Location:
    """The location of data named by a config in `folder`, without `..` except leading ones.

    Raises SpecError as `joined` does.
    """
    place = joined(location(folder), path)
    return place if isinstance(place, RemotePath) else Path(os.path.normpath(place))


def local_below(folder: Location, path: str) -> str:
    """The path on this machine named by a config in `folder`.

    Raises SpecError for a URL, and for a relative path if the config is in a bucket.
    """
    if isinstance(folder, Path):
        return os.path.normpath(folder / local(path))
    if is_url(path) or not os.path.isabs(path):
        raise SpecError(Problem(expected=f"an absolute path, as the config is in {folder}", got=f"`{path}`"))
    return path


def relative(path: Location, folder: Location) -> PurePath:
    """The path relative to `folder`. Raises ValueError if it is not below the folder."""
    if isinstance(path, RemotePath) and isinstance(folder, RemotePath):
        return path.relative_to(folder)
    if isinstance(path, Path) and isinstance(folder, Path):
        return path.relative_to(folder)
    raise ValueError(f"{path} is not below {folder}")


def is_below(path: Location, folder: Location) -> bool:
    """Whether a place is in a folder or equals it; both are resolved first."""
    try:
        relative(path, folder)
    except ValueError:
        return False
    return True


def statuses(paths: Sequence[Location]) -> list[os.stat_result | ObjectStat]:
    """The status of each file. Many objects of one folder take their status from its listing. Raises
    StoreError.
    """
    objects = [path for path in paths if isinstance(path, RemotePath) and not path.is_http]
    folders = [folder for folder, count in Counter(path.parent for path in objects).items() if count >= _MANY]
    listed: dict[Location, ObjectStat] = {
        path: status for folder in folders for path, status in remote.entries(folder)
    }
    found: list[os.stat_result | ObjectStat] = []
    for path in paths:
        with system_errors("read", path):
            found.append(listed.get(path) or path.stat())
    return found


def disk_status(path: Location) -> os.stat_result | None:
    """The status of a file on this machine. None for an object, without a request: it does not change, and
    its manifest is believed. Raises OSError.
    """
    return None if isinstance(path, RemotePath) else path.stat()


def check_regular(path: Location) -> os.stat_result | None:
    """Returns the `disk_status` of a file.

    Raises StoreError for a pipe or a device, since files are read more than once and from any offset, and for
    anything else that is no file.
    """
    try:
        status = disk_status(path)
    except _UNREADABLE as error:
        raise _unreadable(path, error) from error
    if status is not None:
        _check_mode(path, status.st_mode)
    return status


def files_in(folder: Location) -> list[Location]:
    """The files in a folder, without those of its folders, sorted by name. Raises StoreError."""
    if isinstance(folder, RemotePath):
        return sorted(folder.iterdir())
    with system_errors("read", folder), os.scandir(folder) as entries:  # without a call of `stat` for each
        names = sorted(entry.name for entry in entries if not entry.is_dir())
    return [folder / name for name in names]


def folders_in(folder: Location) -> list[Location]:
    """The folders in a folder, sorted by name, without hidden ones and names that begin with `_`: they belong
    to other programs. Raises StoreError.
    """
    if isinstance(folder, RemotePath):
        found: Sequence[Location] = sorted(remote.folders(folder))
    else:
        with system_errors("read", folder):
            found = sorted(path for path in folder.iterdir() if path.is_dir())
    return [path for path in found if not path.name.startswith((".", "_"))]


# Errors of opening and reading a file: a ValueError is a NUL in its path. Functions that are called for each
# of thousands of files catch them themselves: `system_errors` takes a microsecond more.
_UNREADABLE = (OSError, ValueError)


def _unreadable(path: Location, error: Exception) -> StoreError:
    return StoreError(system_problem("read", error, str(path)))


def open_file(path: AnyPath) -> io.BufferedReader:
    """Opens a regular file, or an object, for reading.

    Raises StoreError if it cannot be read, and immediately for a pipe or a device, which may never end.
    """
    place = location(path)
    try:
        if isinstance(place, RemotePath):
            return remote.open_object(place)
        return io.BufferedReader(_Named(place, opener=_open_regular))
    except _UNREADABLE as error:
        raise _unreadable(place, error) from error


def read_start(path: Location, most: int) -> bytes:
    """The first bytes of a file or an object. Raises StoreError."""
    try:
        if isinstance(path, RemotePath):
            return remote.read_start(path, most)[0]
        # For thousands of files, creating a Python file object for each takes most of the time
        handle = _open_regular(os.fspath(path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.read(handle, most)
            while len(data) < most and (piece := os.read(handle, most - len(data))):
                data += piece
            return data
        finally:
            os.close(handle)
    except _UNREADABLE as error:
        raise _unreadable(path, error) from error


def read_bytes(path: AnyPath, most: int, too_large: type[RecordspecError] = StoreError) -> bytes:
    """Reads a regular file, or an object, of at most `most` bytes.

    The limit applies while reading, since a file may grow, and files in /proc have size 0.

    Raises StoreError if it cannot be read, and `too_large` for a larger file.
    """
    place = location(path)
    with system_errors("read", place):
        if isinstance(place, RemotePath):
            data = remote.read_at_most(place, most)
        else:
            data = _read_at_most(place, most)
    if data is None:
        limit = f"{most >> 20} MiB" if most >> 20 else f"{most} bytes"
        raise too_large(Problem(where=str(path), expected=f"a file of at most {limit}", got="a larger one"))
    return data


def _read_at_most(path: Path, most: int) -> bytes | None:
    """The bytes of a file; None if it is larger. Raises StoreError, OSError."""
    data = bytearray()
    with open_file(path) as file:
        # None also ends the loop: a file in /proc that would block
        while len(data) <= most and (piece := file.read(_PIECE)):
            data += piece
    return bytes(data) if len(data) <= most else None


def read_text(path: AnyPath, most: int, encoding: str = "utf-8") -> str:
    """Reads the text of a regular file of at most `most` bytes, with universal newlines.

    Raises StoreError if it cannot be read, SpecError for a larger file and for invalid UTF-8.
    """
    data = read_bytes(path, most, SpecError)
    try:
        return io.TextIOWrapper(io.BytesIO(data), encoding).read()
    except UnicodeDecodeError as error:
        got = f"the byte 0x{error.object[error.start]:02x} at position {error.start}"
        raise SpecError(Problem(where=str(path), expected="UTF-8 text", got=got)) from None


def _open_regular(name: str, flags: int) -> int:
    # Without O_NONBLOCK, opening a pipe waits for a writer. The open file is checked, not the path, which may
    # name another file by then.
    handle = os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        _check_mode(name, os.fstat(handle).st_mode)
    except StoreError:
        os.close(handle)
        raise
    return handle


def _check_mode(path: AnyPath, mode: int) -> None:
    for is_kind, got in _SPECIAL:
        if is_kind(mode):
            hint = "copy its contents to a file first"
            raise StoreError(Problem(where=str(path), expected="a regular file", got=got, hint=hint))


def sync(file: IO[Any]) -> None:
    """Flushes an open file to the disk, so that it survives a loss of power."""
    file.flush()
    sync_handle(file.fileno())


def sync_handle(handle: int, *, data_only: bool = False) -> None:
    """Flushes the handle of a file or a folder to the disk, or only a file's data. Warns once if the file
    system cannot.
    """
    flush = getattr(os, "fdatasync", os.fsync) if data_only else os.fsync  # macOS has no fdatasync
    try:
        flush(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
        _note_no_sync(system_reason(error))


@cache
def _note_no_sync(reason: str) -> None:
    log.warning("the file system cannot flush files (%s): a loss of power may undo what is written", reason)


def sync_file(path: Path) -> None:
    """Flushes a file written earlier to the disk, if it exists."""
    if path.exists():
        with path.open("ab") as file:
            sync(file)


def sync_folder(folder: Path) -> None:
    """Flushes the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        sync_handle(handle)
    finally:
        os.close(handle)


def temporary_name(name: str) -> str:
    """The name of the temporary file of `atomic_file`: hidden, so that no reader's pattern matches it, and
    short enough for any file system.
    """
    return f".{name[-_LONGEST_STEM:]}.partial"


@contextmanager
def atomic_file(path: Path, temporary: Path | None = None) -> Iterator[Path]:
    """Yields the path of a temporary file, which replaces the file at the end, durably and atomically.

    After an error the file is unchanged. `temporary` must be on the same file system; by default it is a
    hidden, locked file in the same folder. The next writer removes the temporary file of a process that died,
    and waits for another process that is writing the file. A device or a pipe is written directly.

    Raises OSError.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        yield path
        return
    if temporary is None:
        path = Path(os.path.realpath(path))  # keeps a link
    with _locked_temporary(path) if temporary is None else nullcontext(temporary) as fresh:
        try:
            yield fresh
            sync_file(fresh)
            os.replace(fresh, path)
        except BaseException:
            with suppress(OSError):
                fresh.unlink()
            raise
        # the temporary name may belong to another process by now
        sync_folder(path.parent)


@contextmanager
def _locked_temporary(path: Path) -> Iterator[Path]:
    """An empty temporary file, locked while this process writes it."""
    fresh = path.with_name(temporary_name(path.name))
    try:
        while (handle := _begin(fresh)) is None:
            pass
    except KeyboardInterrupt:
        _discard(fresh)
        raise
    try:
        yield fresh
    finally:
        os.close(handle)


def _begin(path: Path) -> int | None:
    """Creates a file and locks it. Returns None if its name was taken; the caller tries again."""
    try:
        handle, is_new = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), True
    except FileExistsError:
        try:
            handle, is_new = os.open(path, os.O_RDWR), False
        except FileNotFoundError:
            return None
    try:
        with suppress(OSError):  # some cluster file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        is_there = os.path.samestat(os.fstat(handle), os.stat(path))
        if is_new and is_there:
            return handle
        if is_there:  # its writer has died, or has not locked it yet and will create another
            path.unlink()
    except FileNotFoundError:  # it was renamed to the final file, or another process removed it
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _discard(path: Path) -> None:
    """Removes a temporary file left behind by Ctrl-C, unless another process has locked it."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(handle)


def atomic_write(path: Path, data: bytes, temporary: Path | None = None) -> None:
    """Replaces the contents of a file, durably and atomically. Raises OSError."""
    with atomic_file(path, temporary) as fresh:
        fresh.write_bytes(data)


@contextmanager
def output_file(path: AnyPath, *, force: bool) -> Iterator[Path]:
    """An `atomic_file` for a path from a user. A file for a store is a temporary file until the end.

    Raises StoreError if the file exists and `force` is false, or if it cannot be written; SpecError for a URL
    of a web server, and for a bucket.
    """
    place, refused = location(path), ExistsError(exists(path))
    if isinstance(place, Path):
        if not force and os.path.lexists(place):  # even a broken link
            raise refused
        with system_errors("write", place), atomic_file(place) as fresh:
            yield fresh
        return
    remote.check_writable(place)
    if not place.key:
        raise SpecError(Problem(where=str(place), expected="a file in a bucket", got="the bucket"))
    if not force and place.exists():
        raise refused
    with TemporaryDirectory(prefix="recordspec-") as folder, system_errors("write", place):
        fresh = Path(folder, place.name)
        fresh.touch()
        yield fresh
        is_written = remote.put_file(place, fresh, overwrite=force)
    if not is_written:
        raise refused
