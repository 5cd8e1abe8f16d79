"""Publishes a dataset atomically: it is staged beside its target, then renamed.

A partial folder contains a file that names its owner, the process that writes it. It is locked as long as
that process runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from recordspec.errors import (
    ExistsError,
    Problem,
    State,
    StoreError,
    exists,
    see,
    show_text,
    system_errors,
    system_problem,
)
from recordspec.locations import (
    Location,
    atomic_write,
    local,
    read_bytes,
    sync_file,
    sync_folder,
    temporary_name,
)
from recordspec.progress import Progress
from recordspec.remote import RemotePath
from recordspec.store.journal import FILE as JOURNAL
from recordspec.store.manifest import (
    DATASET_FILES,
    FILE,
    INDEX_SUFFIXES,
    KEPT_FILES,
    REPORT_FILE,
    SCHEMA_FILE,
    Manifest,
    Shard,
)
from recordspec.store.shard_names import parse_name, version_of

# The folder of temporary files.
_WORK = "work"
_IDENTIFYING_FILES = (FILE, REPORT_FILE)
_MOST_BYTES = 1 << 30  # bytes of a report, which names each shard and up to 10,000 losses of each

OWNER = "owner.json"
# linux/fcntl.h and linux/fs.h: relative to the current folder; swap the two.
_HERE, _RENAME_EXCHANGE = -100, 2
_REMOVALS = 10
# The mounts of this process. os.path.ismount takes a subvolume for a mount, and misses bind mounts.
_MOUNTS = Path("/proc/self/mountinfo")
_OCTAL = re.compile(rb"\\([0-7]{3})")  # octal escapes of spaces and backslashes in it
# Some cluster file systems have no locks; there, only the owner's name protects a folder.
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)

log = logging.getLogger("recordspec")


class Transaction:
    """A partial folder, which becomes `target` at `commit` and is removed without it.

    Raises StoreError if `target` exists and neither `force` nor `append` is given; if one of them is given
    and `target` is something else than a dataset; if `append` is given and there is no dataset; or if another
    process is writing it.

    Attributes:
        dataset: the location of the dataset.
        partial: the folder that becomes the dataset.
        work: a folder in it for temporary files.
        keep: whether the partial folder is kept without a commit, for `resume`.
        appends: whether shards are added to the dataset.
        existing: the manifest of the dataset that `append` adds to, if it may change meanwhile.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        *,
        force: bool = False,
        resume: bool = False,
        append: bool = False,
    ) -> None:
        self.name = os.fspath(target)
        self.target = Path(os.path.realpath(local(target)))
        self.dataset: Location = self.target
        self.partial = self.target.parent / f".{self.target.name}.partial"
        self._old = self.target.parent / f".{self.target.name}.replaced"
        self.work = self.partial / _WORK
        self.keep = False
        self.existing: Manifest | None = None
        self.appends = append
        self._force, self._resume = force or append, resume
        self._lock: int | None = None
        self._process = os.getpid()

    def __enter__(self) -> Transaction:
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                self.target.stat()  # raises for a link to itself, which does not exist according to pathlib
            if not self._old.exists():
                self.check_target()  # fails early, if nothing has to be recovered first
            self._claim()
            self._recover()
            self.check_target()  # again, since a recovery may have restored a dataset
        except OSError as error:
            self.__exit__()
            raise StoreError(system_problem("write", error, self.name, str(error.filename or ""))) from error
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        if os.getpid() != self._process:  # a fork within the block: the parent process continues
            return
        # another writer may have created a folder of this name by now
        if not self.keep and self._is_at(self.partial):
            with contextlib.suppress(OSError):  # the next writer removes the rest
                self._discard()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def store(self) -> RemotePath | None:
        """The folder in a store to which tasks may upload shards; None if they are moved to `partial`."""
        return self.dataset if isinstance(self.dataset, RemotePath) else None

    def free_names(self, names: Iterable[str]) -> dict[str, str]:
        """The names under which shards are to be uploaded: no existing file there has the same name."""
        return {name: name for name in names}

    def keep_shards(self, manifest: Manifest) -> None:
        """Puts the shards of the dataset that `append` adds to into the partial folder: as hard links if
        the file system supports them, else as copies.
        """
        for shard in manifest.all_shards:
            _link(self.target / shard.file, self.partial / shard.file)

    @property
    def shard_suffix(self) -> str:
        """The suffix of the split in the names of new shards: `-v2`, then `-v3`, and so on, for a dataset
        that replaces another one, and for rows added to it later.

        Names of a replaced dataset are not used again: a reader with its manifest finds a shard missing,
        never a shard of another dataset.
        """
        if not self._force or not self.target.is_dir():
            return ""
        names = [path.name for path in self.target.iterdir()]
        version = version_of(names) + (not self.appends and any(map(parse_name, names)))
        return f"-v{version}" if version > 1 else ""

    @property
    def published(self) -> bool:
        """Whether the partial folder has become the target."""
        return self._is_at(self.target)

    def _is_at(self, path: Path) -> bool:
        """Whether `path` is the folder that this writer has locked. A flag would be wrong if Ctrl-C came
        between a rename and setting the flag.
        """
        with contextlib.suppress(OSError):
            return self._lock is not None and os.path.samestat(os.fstat(self._lock), path.stat())
        return False

    @property
    def resumable(self) -> bool:
        """Whether the partial folder has an unfinished build."""
        return (self.work / JOURNAL).exists()

    def commit(
        self, manifest: Manifest | None, schema: str | None, progress: Progress | None = None
    ) -> Manifest | None:
        """Writes the schema and the manifest, if given, and publishes the folder. Returns the published
        manifest.
        """
        for name, text in ((SCHEMA_FILE, schema), (FILE, None if manifest is None else manifest.dump())):
            if text is not None:
                atomic_write(self.partial / name, text.encode(), self.work / name)
        with self._without_work():
            sync_folder(self.partial)
            self.check_target()  # again, since the build took time
            if self.target.exists():
                self._swap()
            else:
                self._publish()
        return manifest

    @contextlib.contextmanager
    def _without_work(self) -> Iterator[None]:
        """Removes the temporary files if the block publishes the folder. Otherwise puts them back, so
        that the build can be resumed.
        """
        aside, lock = reserve(self.partial)
        try:
            self.work.rename(aside / _WORK)
            yield
        finally:
            if self._is_at(self.partial) and (aside / _WORK).exists():
                (aside / _WORK).rename(self.work)
            shutil.rmtree(aside, ignore_errors=True)  # the next writer removes the rest
            os.close(lock)

    def _publish(self) -> None:
        self.partial.rename(self.target)
        self._make_durable()

    def _make_durable(self) -> None:
        """Flushes the new names to the disk. Only then may the files needed for a recovery be removed:
        first the owner here, then the old dataset.
        """
        hint = "the new dataset is in place, but a loss of power may undo that"
        with system_errors("write", self.name, hint):
            sync_folder(self.target.parent)
        with contextlib.suppress(OSError):
            (self.target / OWNER).unlink()

    def _swap(self) -> None:
        if not any(self.target.iterdir()):
            self.target.rmdir()
            self._publish()
            return
        if exchange(self.partial, self.target):
            with contextlib.suppress(OSError):  # published by now: the next writer recognizes it by its files
                self.partial.rename(self._old)
            self._make_durable()
        else:  # two renames; between them there is no dataset
            replace_by(self.partial, self.target, self._old)
            self._make_durable()
        with contextlib.suppress(OSError):  # published by now: the next writer removes the rest
            _remove(self._old, *_IDENTIFYING_FILES)

    def _recover(self) -> None:
        """Restores the old dataset after a writer died between the two renames of a replacement."""
        if not self._old.exists():
            return
        if not any(self._old.iterdir()):  # its removal was interrupted just before the end
            self._old.rmdir()
            return
        _check_is_dataset(self._old, str(self._old))
        if self.target.exists():
            _remove(self._old, *_IDENTIFYING_FILES)
        else:
            self._old.rename(self.target)

    def check_target(self) -> None:
        """Raises StoreError unless the dataset may be published. Reads the dataset in a store again, to which
        another writer may have added shards.
        """
        check_movable(self.target, self.name, force=self._force)
        if self.appends:
            _check_is_dataset(self.target, self.name, appends=True)
        if not self.target.exists() or (self.target.is_dir() and not any(self.target.iterdir())):
            return
        if not self._force:
            is_dataset = any((self.target / name).exists() for name in _IDENTIFYING_FILES)
            raise ExistsError(exists(self.name) if is_dataset else exists(self.name, "it is not a dataset"))
        _check_is_dataset(self.target, self.name)

    def _claim(self) -> None:
        """Creates the partial folder with its owner atomically: only one of two renames succeeds."""
        self._set_aside_exchanged()
        self._clear_abandoned()
        if self.partial.exists():
            self._lock = self._take_over()
            if self._resume and self.resumable:
                self.keep = True
                write_owner(self.partial, self.work)
                return
            if self.resumable:
                name = show_text(self.name)
                log.warning("%s: an unfinished build is discarded (--resume would continue it)", name)
            self._discard()
            os.close(self._lock)
            self._lock = None
        self._create()

    def _create(self) -> None:
        """Creates and locks the partial folder. Raises StoreError if another writer was faster."""
        fresh, self._lock = reserve(self.partial)
        try:
            set_usual_mode(fresh)
            (fresh / _WORK).mkdir()
            write_owner(fresh, fresh / _WORK)
            sync_folder(fresh)  # after a loss of power, a folder must still name its owner
            fresh.rename(self.partial)
        except BaseException as error:
            shutil.rmtree(fresh, ignore_errors=True)
            if isinstance(error, OSError) and self.partial.exists():  # another writer was faster
                raise self._written_by(*owner(self.partial)) from error
            raise

    def hold(self) -> None:
        """Locks the dataset without building it; an unfinished build is left alone. If the parent folder is
        not writable, takes no lock, since no build can run there either.

        Raises StoreError if another process is writing the dataset.
        """
        try:
            self._clear_abandoned()
            if self.partial.exists():
                self._lock, self.keep = self._take_over(), self.resumable
            else:
                self._create()
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise

    def _discard(self) -> None:
        """Removes the partial folder, and its owner file last."""
        if self.work.exists():
            remove_folder(self.work)
        _remove(self.partial, OWNER)

    def _clear_abandoned(self) -> None:
        """Removes the folders of writers that died before they renamed theirs to the partial folder, and
        the rest of a partial folder whose removal was interrupted.
        """
        for path, lock in abandoned(self.partial):
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)
        with contextlib.suppress(OSError):  # it does not exist, or is not empty
            self.partial.rmdir()

    def _set_aside_exchanged(self) -> None:
        """Moves aside the old dataset, which is left in the partial folder if a writer died after the
        exchange.
        """
        published = any((self.partial / name).exists() for name in _IDENTIFYING_FILES)
        if published and not (self.partial / OWNER).exists():
            _check_is_dataset(self.partial, str(self.partial))
            _check_is_dataset(self.target, self.name)
            self.partial.rename(self._old)

    def _take_over(self) -> int:
        """Locks the partial folder of a writer that has died. Raises StoreError if the writer may still be
        running.

        A lock held on another host may be invisible here. Only `resume` relies on the lock in that case, for
        a job that was started again on another host.
        """
        pid, host = owner(self.partial)
        is_here = host == socket.gethostname()
        lock = None
        if is_here or (self._resume and self.resumable):
            lock = locked(self.partial, runs=not is_here or _runs(pid))
        if lock is None:
            raise self._written_by(pid, host)
        return lock

    def _written_by(self, pid: int, host: str) -> StoreError:
        gone = f"remove {self.partial}"
        if host != socket.gethostname() and self.resumable and not self._resume:
            gone = f"resume=True, or --resume, continues its build; or {gone}"
        hint = f"if it is gone, {gone}; {see('explanation/publishing')}"
        got = f"is being written by process {pid} on {host}"
        return StoreError(State(where=self.name, got=got, hint=hint))


@contextlib.contextmanager
def changing(folder: Path, manifest: Manifest | None = None) -> Iterator[None]:
    """Locks a dataset, as a build does, for a command that writes into its folder.

    Args:
        manifest: the manifest that the command has read before, if any.

    Raises StoreError if another process is writing the dataset, or has changed it since.
    """
    writer = Transaction(folder)
    try:
        writer.hold()
        if manifest is not None and Manifest.load(folder) != manifest:
            raise StoreError(State(where=str(folder), got="was changed by another writer", hint="try again"))
        yield
    finally:
        writer.__exit__()


def _link(old: Path, new: Path) -> None:
    new.unlink(missing_ok=True)  # left by a resumed build: a copy may be truncated
    try:
        os.link(old, new)
    except OSError:
        shutil.copyfile(old, new)
        sync_file(new)


def _check_is_dataset(folder: Path, name: str, *, appends: bool = False) -> None:
    """Raises StoreError unless a folder about to be removed contains only a dataset, or the output of a
    repair. Also raises it for an adopted dataset with files of another writer, and for any adopted
    dataset if `appends`.
    """
    shards = _shards_in(folder, name, appends)
    known = {
        FILE,
        REPORT_FILE,
        *KEPT_FILES,
        *DATASET_FILES,
        OWNER,  # left by a writer that died just after publishing
        *shards,
        *(f"{shard}{suffix}" for shard in shards for suffix in INDEX_SUFFIXES.values()),
    }
    known |= set(map(temporary_name, known))  # their temporary files, left by a process that died
    others = sorted({child.name for child in folder.iterdir()} - known)
    if others:
        got, hint = f"has `{others[0]}`, which does not belong to a dataset", "move it elsewhere first"
        raise StoreError(State(where=name, got=got, hint=hint))


def _shards_in(folder: Path, name: str, appends: bool) -> set[str]:
    """The names of the files in a folder's manifest, or if it has none, in its report of a repair."""
    if not (folder / FILE).is_file():
        return _repaired_in(folder, name)
    try:
        manifest = Manifest.load(folder)
    except StoreError as error:
        hint = "move it elsewhere first"
        raise StoreError([replace(problem, hint=hint) for problem in error.problems]) from error
    if appends:
        check_is_own(manifest, name)
    shards = (folder / file for file in manifest.files if manifest.adopted)
    # links made by `adopt` may be removed; a copy of the dataset has files in their place
    if any(manifest.adopted == "files" or not path.is_symlink() for path in shards if path.exists()):
        raise StoreError(foreign_shards(name))
    return {*manifest.files, *manifest.beside, *map(manifest.name_of, DATASET_FILES)}


def _repaired_in(folder: Path, name: str) -> set[str]:
    """The names of the existing shards in a report of a repair. Raises StoreError if a shard has changed."""
    try:
        report = json.loads(read_bytes(folder / REPORT_FILE, _MOST_BYTES))
        shards = [Shard(rows=0, **one) for one in report["shards"]]  # the number of rows may be unknown
    except (StoreError, ValueError, TypeError, KeyError, RecursionError):
        raise StoreError(no_dataset(name)) from None
    there = [one for one in shards if (folder / one.file).exists()]
    for shard in there:
        size = (folder / shard.file).stat().st_size
        if size != shard.bytes:
            got, hint = f"`{shard.file}` of {size:,}", "move it elsewhere first"
            expected = f"{shard.bytes:,} bytes, as {REPORT_FILE} says"
            raise StoreError(Problem(where=name, expected=expected, got=got, hint=hint))
    return {shard.file for shard in there}


def remove_folder(folder: Path) -> None:
    """Removes a folder of temporary files; retries, since an abandoned task of a cluster may still create
    files.
    """
    for _ in range(_REMOVALS):
        with contextlib.suppress(OSError):
            return shutil.rmtree(folder)
    return shutil.rmtree(folder)


def _remove(folder: Path, *last: str) -> None:
    """Removes a folder of files. The files `last` are removed last, since they identify an interrupted
    removal.
    """
    for child in sorted(folder.iterdir(), key=lambda child: child.name in last):
        child.unlink()
    folder.rmdir()


def check_movable(target: Path, name: str, *, force: bool) -> None:
    """Raises StoreError early if a file or folder cannot be renamed, instead of after all data is written.

    Args:
        name: the file or folder in messages.
        force: whether it is to be replaced. If not, and it exists, that is another error.
    """
    try:
        status, parent = target.stat(), target.parent.stat()
    except FileNotFoundError:
        return
    if _is_mount_point(target):
        hint = "write into a folder in it, or mount the folder above it"
        got = "is a mount point, as a container's volume is, and cannot be replaced"
        raise StoreError(State(where=name, got=got, hint=hint))
    if force and parent.st_mode & stat.S_ISVTX and os.geteuid() not in (0, status.st_uid, parent.st_uid):
        hint = f"it belongs to another user, and {target.parent} has the sticky bit"
        raise StoreError(system_problem("replace", PermissionError(errno.EPERM, ""), name, hint))


def replace_by(fresh: Path, target: Path, old: Path) -> None:
    """Gives a folder the name of another file or folder, which becomes `old`: by two renames, of which the
    first is undone if the second fails.
    """
    target.rename(old)
    try:
        fresh.rename(target)
    except OSError:
        old.rename(target)
        raise


def exchange(path: Path, other: Path) -> bool:
    """Exchanges the names of two folders atomically (renameat2(2)). Returns False if the system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # no Linux, or an old one
        return False
    paths = os.fsencode(path), os.fsencode(other)
    return bool(rename(_HERE, paths[0], _HERE, paths[1], _RENAME_EXCHANGE) == 0)


def no_dataset(name: str) -> State:
    """The state of a folder that is to be replaced or added to, but is not a dataset."""
    return State(where=name, got="is not a dataset", hint="it has no manifest")


def foreign_shards(name: str) -> State:
    """The state of an adopted dataset, whose shards must not be deleted by a replacement."""
    hint = "`recordspec adopt --force` writes its manifest again; build into another folder"
    return State(where=name, got="has shards of another writer, which are not deleted", hint=hint)


def check_is_own(manifest: Manifest, name: str) -> None:
    """Raises StoreError for an adopted dataset, to which no rows can be added."""
    if manifest.adopted:
        hint = "`recordspec reshard` writes a dataset to which rows can be added"
        got = "was adopted, and its shards are those of another writer"
        raise StoreError(State(where=name, got=got, hint=hint))


def owner(partial: Path) -> tuple[int, str]:
    """The process and the host that write a partial folder. Raises StoreError for a folder without an
    owner.
    """
    with contextlib.suppress(StoreError, ValueError, TypeError, KeyError):
        named = json.loads(read_bytes(partial / OWNER, _MOST_BYTES))
        return int(named["pid"]), str(named["host"])
    hint = "if no process writes there, remove it"
    raise StoreError(State(where=str(partial), got=f"has no {OWNER}", hint=hint))


def write_owner(partial: Path, work: Path) -> None:
    """Makes this process the owner of a partial folder; `work` is a folder in it."""
    named = {"pid": os.getpid(), "host": socket.gethostname()}
    atomic_write(partial / OWNER, json.dumps(named).encode(), work / OWNER)


def reserve(partial: Path) -> tuple[Path, int]:
    """Creates an empty folder next to a partial folder. Returns its path and its lock.

    The name contains the host and the process, so that `abandoned` finds the folder after a crash.
    """
    while True:
        prefix = f"{partial.name}.{_host()}.{os.getpid()}."
        fresh = Path(tempfile.mkdtemp(prefix=prefix, dir=partial.parent))
        lock = locked(fresh)
        if lock is not None:
            return fresh, lock
        # Another writer saw it before it was locked, considers it abandoned and removes it.


def set_usual_mode(folder: Path) -> None:
    """Gives a folder of `reserve`, which only its owner can read, the mode of a new folder."""
    mask = os.umask(0)
    os.umask(mask)
    folder.chmod(0o777 & ~mask)


def abandoned(partial: Path) -> Iterator[tuple[Path, int]]:
    """The folders that `reserve` created on this host for processes that have since ended, each with its
    lock.
    """
    name = re.compile(rf"{re.escape(partial.name)}\.{_host()}\.(\d+)\.[^.]+")
    for path in partial.parent.iterdir():
        if match := name.fullmatch(path.name):
            with contextlib.suppress(OSError):  # a folder of another user
                lock = locked(path, runs=_runs(int(match[1])))
                if lock is not None:
                    yield path, lock


def _host() -> str:
    """A hash of the host's name: a lock says nothing about the processes of other hosts."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def locked(folder: Path, *, runs: bool = False) -> int | None:
    """Locks a folder until this process ends; None if another process holds the lock, or removed the folder.

    Args:
        runs: whether the owner may be running: on a file system without locks, it then counts as locked.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # another process may have replaced the folder after it was opened
        free = os.path.samestat(os.fstat(handle), folder.stat())
    except (BlockingIOError, FileNotFoundError):
        free = False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            os.close(handle)
            raise
        free = not runs
    if not free:
        os.close(handle)
        return None
    return handle


def _is_mount_point(folder: Path) -> bool:
    """Whether a file system, or another folder (a bind mount), is mounted at a folder."""
    try:
        mounts = _MOUNTS.read_bytes().splitlines()
    except OSError:  # no Linux
        return os.path.ismount(folder)
    points = (_OCTAL.sub(lambda code: bytes([int(code[1], 8)]), line.split()[4]) for line in mounts)
    return os.fsencode(folder) in points


def _runs(process: int) -> bool:
    """Whether a process other than this one is running on this machine."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # a process of another user
        pass
    return True
