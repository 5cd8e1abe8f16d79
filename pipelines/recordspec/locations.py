"""Files on this machine: their paths, opening regular ones, and writing them durably and atomically.

Every file that must be complete is written by `atomic_file` or `atomic_write`; that of a path of a user by
`output_file`.
"""

from __future__ import annotations

import fcntl
import io
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path, PurePath
from typing import IO, Annotated, Any, TypeVar

from recordspec.errors import Problem, RecordspecError, SpecError, StoreError, system_problem
from recordspec.remote import PLACE, RemotePath, is_url, shown_url

# The start of a URL, even if pathlib has collapsed its slashes: `s3://bucket` is `s3:/bucket` then. A scheme
# has two letters at least: `a:/b` is a file in a folder.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_PIECE = 1 << 20
_LONGEST_STEM = 60  # characters of a temporary file's name, of 4 bytes at most each
_SPECIAL = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

# The marks of options that are paths, which the readers of options look at: of a file on this machine, and of
# one that may be in an object store.
LOCAL, ANYWHERE = "local", "anywhere"
PathText = Annotated[str, LOCAL]
LocationText = Annotated[str, ANYWHERE]

# The location of data, on this machine or in an object store.
Location = Path | RemotePath
Place = TypeVar("Place", Path, RemotePath, Path | RemotePath)


@contextmanager
def system_errors(action: str, where: object, hint: str = "") -> Iterator[None]:
    """Raises an OSError as a StoreError: `where: cannot ACTION: REASON`; that of an object with its URL."""
    try:
        yield
    except OSError as error:
        if is_url(error.filename) and error.filename != str(where):
            raise StoreError(system_problem("read", error, error.filename)) from error
        raise StoreError(system_problem(action, error, str(where), hint)) from error


def url_problem(path: str | os.PathLike[str]) -> Problem | None:
    """The problem of a path that is a URL; None for any other path."""
    text = os.fspath(path)
    if "://" not in text and _SCHEME.match(text) is None:
        return None
    hint = "" if "://" in text else "a URL has two slashes; pathlib drops one"
    return Problem(expected="a local path", got=f"the URL `{shown_url(text)}`", hint=hint)


def location_problem(path: str | os.PathLike[str]) -> Problem | None:
    """The problem of what is neither a path nor a URL of a store; None for any other."""
    try:
        location(path)
    except SpecError as error:
        return error.problems[0]
    return None


def local(path: str | os.PathLike[str], where: str = "") -> Path:
    """The path of a local file; `where` is the place of the path in messages.

    Raises SpecError for a URL, which pathlib would turn into a relative path, `s3:/bucket/data`.
    """
    problem = url_problem(path)
    if problem is not None:
        raise SpecError(problem.at(where))
    return Path(path)


def location(path: str | os.PathLike[str] | RemotePath) -> Location:
    """The location of a path or a URL. Raises SpecError for an unsupported URL."""
    if isinstance(path, RemotePath):
        return path
    text = os.fspath(path)
    if is_url(text):
        return RemotePath.parse(text)
    problem = url_problem(text)
    if problem is not None:
        raise SpecError(replace(problem, expected=PLACE))
    return Path(text)


def absolute(path: str | os.PathLike[str] | RemotePath) -> Location:
    """The same place, wherever the current folder is."""
    place = location(path)
    return place if isinstance(place, RemotePath) else Path(os.path.abspath(place))


def resolved(path: Place) -> Place:
    """The same place without symbolic links. A link to itself stays, for those who open it to report.

    `Path.resolve` raises RuntimeError for it, before Python 3.13.
    """
    return path if isinstance(path, RemotePath) else Path(os.path.realpath(path))


def below(folder: Location, path: str) -> Location:
    """The location of data that a config in a folder names: a URL, or a relative path.

    Raises SpecError for an unsupported URL, and for an absolute path in a bucket: the data of a config in a
    bucket must be in a store.
    """
    place = location(path)
    if isinstance(place, RemotePath):
        return place
    if isinstance(folder, Path):
        return Path(os.path.normpath(folder / place))
    if place.is_absolute():
        raise SpecError(Problem(expected=f"a URL, or a path from {folder}", got=f"`{place}`"))
    return folder / str(place)


def relative(path: Location, folder: Location) -> PurePath:
    """A path below a folder, from there. Raises ValueError for another one."""
    if isinstance(path, RemotePath) and isinstance(folder, RemotePath):
        return path.relative_to(folder)
    if isinstance(path, Path) and isinstance(folder, Path):
        return path.relative_to(folder)
    raise ValueError(f"{path} is not below {folder}")


def is_below(path: Location, folder: Location) -> bool:
    """Whether a place is in a folder, or is it; both are resolved."""
    try:
        relative(path, folder)
    except ValueError:
        return False
    return True


def files_in(folder: Location) -> list[Location]:
    """The files in a folder, in the order of their names. Raises StoreError."""
    if isinstance(folder, RemotePath):
        return sorted(folder.iterdir())
    with system_errors("read", folder):
        return sorted(path for path in folder.iterdir() if not path.is_dir())


def folders_in(folder: Location) -> list[Location]:
    """The folders in a folder but for hidden ones and those that begin with `_`, in the order of their names.

    Raises StoreError.
    """
    if isinstance(folder, RemotePath):
        found: list[Location] = [*folder.folders()]
    else:
        with system_errors("read", folder):
            found = [path for path in folder.iterdir() if path.is_dir()]
    return sorted(path for path in found if not path.name.startswith((".", "_")))


def check_regular(path: Location) -> None:
    """Raises StoreError for a pipe or a device: files are read more than once, and from any offset; and for
    what is no file."""
    if isinstance(path, RemotePath):
        return
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise StoreError(system_problem("read", error, str(path))) from error
    _check_mode(path, mode)


@contextmanager
def naming(file: object) -> Iterator[None]:
    """Names a file in the OSErrors of reading and writing it; those of opening it have the name already."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(file)
        raise


class _Named(io.FileIO):
    """A file whose name is in the errors of reading; Python names it in those of opening alone."""

    def readinto(self, buffer: Any, /) -> int | None:
        with naming(self.name):
            return super().readinto(buffer)

    def readall(self) -> bytes:
        with naming(self.name):
            return super().readall()


def open_file(path: Location) -> io.BufferedReader:
    """Opens a regular file, or an object, for reading.

    Raises StoreError if it cannot be read, and immediately for a pipe or a device, which may never end.
    """
    if isinstance(path, RemotePath):
        with system_errors("read", path):
            return path.open()

    def opener(name: str, flags: int) -> int:
        # Without O_NONBLOCK, opening a pipe waits for a writer. What was opened is asked, not the path, which
        # may mean another file by then.
        handle = os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            _check_mode(path, os.fstat(handle).st_mode)
        except StoreError:
            os.close(handle)
            raise
        return handle

    try:
        return io.BufferedReader(_Named(path, opener=opener))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise StoreError(system_problem("read", error, str(path))) from error


def read_bytes(path: Location, most: int, too_large: type[RecordspecError] = StoreError) -> bytes:
    """Reads a regular file of at most `most` bytes.

    The limit applies while reading: a file may grow, and those of /proc have size 0.

    Raises StoreError if it cannot be read, and `too_large` for a larger file.
    """
    data: bytearray | bytes | None = None
    if isinstance(path, RemotePath):
        with system_errors("read", path):
            data = path.read_at_most(most)
    else:
        data = bytearray()
        with open_file(path) as file, system_errors("read", path):
            # None, of a file of /proc that would wait for more, ends it too
            while len(data) <= most and (piece := file.read(_PIECE)):
                data += piece
    if data is None or len(data) > most:
        limit = f"{most >> 20} MiB" if most >> 20 else f"{most} bytes"
        raise too_large(Problem(where=str(path), expected=f"a file of at most {limit}", got="a larger one"))
    return bytes(data)


def read_text(path: Location, most: int, encoding: str = "utf-8") -> str:
    """Reads the text of a regular file of at most `most` bytes, with universal newlines.

    Raises StoreError if it cannot be read, SpecError for a larger file and for invalid UTF-8.
    """
    data = read_bytes(path, most, SpecError)
    try:
        return io.TextIOWrapper(io.BytesIO(data), encoding).read()
    except UnicodeDecodeError as error:
        got = f"the byte 0x{error.object[error.start]:02x} at position {error.start}"
        raise SpecError(Problem(where=str(path), expected="UTF-8 text", got=got)) from None


def _check_mode(path: Path, mode: int) -> None:
    for is_kind, got in _SPECIAL:
        if is_kind(mode):
            hint = "copy its contents to a file first"
            raise StoreError(Problem(where=str(path), expected="a regular file", got=got, hint=hint))


def sync(file: IO[Any]) -> None:
    """Flushes an open file to the disk, so that it survives a loss of power."""
    file.flush()
    os.fsync(file.fileno())


def sync_file(path: Path) -> None:
    """Flushes a file that was written before to the disk, if it exists."""
    if path.exists():
        with path.open("ab") as file:
            sync(file)


def sync_folder(folder: Path) -> None:
    """Flushes the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def temporary_name(name: str) -> str:
    """The name of the temporary file of `atomic_file`: hidden, so that no pattern of a reader matches it, and
    short enough for any file system."""
    return f".{name[-_LONGEST_STEM:]}.partial"


@contextmanager
def atomic_file(path: Path, temporary: Path | None = None) -> Iterator[Path]:
    """Yields the path of a temporary file, which replaces the file at the end, durably and atomically.

    After an error the file is unchanged. `temporary` must be on the same file system; by default it
    is a hidden file in the same folder, which is locked. What a process that died has left of it, the next
    one removes; another process that writes the file is waited for. A device or a pipe is written itself.

    Raises OSError.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        yield path
        return
    if temporary is None:
        path = resolved(path)  # a link stays
    with _locked_temporary(path) if temporary is None else nullcontext(temporary) as fresh:
        try:
            yield fresh
            sync_file(fresh)
            os.replace(fresh, path)
        except BaseException:
            with suppress(OSError):
                fresh.unlink()
            raise
        # the name of the temporary file may be that of another process by now
        sync_folder(path.parent)


@contextmanager
def _locked_temporary(path: Path) -> Iterator[Path]:
    """An empty temporary file, which is locked as long as this process writes it."""
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
    """Creates a file and locks it; None if it must be tried again: its name was taken."""
    try:
        handle, is_new = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), True
    except FileExistsError:
        try:
            handle, is_new = os.open(path, os.O_RDWR), False
        except FileNotFoundError:
            return None
    try:
        with suppress(OSError):  # some file systems of clusters know no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        is_there = os.path.samestat(os.fstat(handle), os.stat(path))
        if is_new and is_there:
            return handle
        if is_there:  # its writer has died, or has not locked it yet and creates another
            path.unlink()
    except FileNotFoundError:  # it has become the file, or another process has removed it
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _discard(path: Path) -> None:
    """Removes a temporary file that was created while Ctrl-C came, unless another process has locked it."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(handle)


def atomic_write(path: Path, data: bytes, temporary: Path | None = None) -> None:
    """Replaces the bytes of a file, durably and at once. Raises OSError."""
    with atomic_file(path, temporary) as fresh:
        fresh.write_bytes(data)


@contextmanager
def output_file(path: Location, *, force: bool) -> Iterator[Path]:
    """An `atomic_file` for a path of a user; a file for a store is a temporary file until the end.

    Raises StoreError if it exists, unless `force` replaces it, and if it cannot be written; SpecError
    for a URL of a web server, and for a bucket.
    """
    if isinstance(path, RemotePath):
        path.check_writable()
        if not path.key:
            raise SpecError(Problem(where=str(path), expected="a file in a bucket", got="the bucket"))
    hint = "force=True, or --force, replaces it"
    refused = StoreError(Problem(where=str(path), expected="a new file", got="one that exists", hint=hint))
    if not force and (path.exists() if isinstance(path, RemotePath) else os.path.lexists(path)):
        raise refused
    if isinstance(path, RemotePath):
        with tempfile.TemporaryDirectory(prefix="recordspec-") as folder, system_errors("write", path):
            fresh = Path(folder, path.name)
            fresh.touch()
            yield fresh
            if not path.put_file(fresh, overwrite=force):
                raise refused
        return
    with system_errors("write", path), atomic_file(path) as fresh:
        yield fresh
