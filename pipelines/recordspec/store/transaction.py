"""A dataset appears whole or not at all: staged beside its target, then renamed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import socket
import tempfile
from pathlib import Path
from types import TracebackType

from recordspec.errors import Problem, StoreError
from recordspec.store.manifest import FILE, REJECTS_FILE, SCHEMA_FILE, Manifest, Shard
from recordspec.store.shards import local
from recordspec.wire.tfrecord import Compression, compressor

_OWNER = "owner.json"


class Transaction:
    """A folder to write in, that becomes `target` at `commit`, and is gone if that is not reached.

    Raises StoreError if `target` stands already and `force` is not given, if with `force` it is
    something else than a dataset, or if another process is at it.
    """

    def __init__(self, target: str | os.PathLike[str], *, force: bool = False) -> None:
        self.name = os.fspath(target)
        self.target = local(target).resolve()
        self.staging = self.target.parent / f".{self.target.name}.partial"
        self._old = self.target.parent / f".{self.target.name}.replaced"
        self._force = force

    def __enter__(self) -> Transaction:
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            self._check_target()
            self._claim()
        except OSError as error:
            raise _failed(self.name, error) from error
        try:
            self._recover()
            self._check_target()  # once more: what a recovery brought back counts too
        except BaseException:
            shutil.rmtree(self.staging, ignore_errors=True)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        shutil.rmtree(self.staging, ignore_errors=True)

    def commit(self, manifest: Manifest, schema: str) -> None:
        """Writes the schema, then the manifest, and puts the folder in its place."""
        for name, text in ((SCHEMA_FILE, schema), (FILE, manifest.dump())):
            with (self.staging / name).open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        (self.staging / _OWNER).unlink()
        _sync_folder(self.staging)
        self._check_target()  # again: the build took its time
        if self.target.exists():
            self._swap()
        else:
            self.staging.rename(self.target)
        _sync_folder(self.target.parent)

    def _swap(self) -> None:
        if not any(self.target.iterdir()):
            self.target.rmdir()
            self.staging.rename(self.target)
            return
        self.target.rename(self._old)
        try:
            self.staging.rename(self.target)
        except OSError:
            self._old.rename(self.target)
            raise
        with contextlib.suppress(OSError):  # published by now: what stays, the next writer clears
            _remove(self._old)

    def _recover(self) -> None:
        """A swap that died between its two renames left the old dataset aside: it comes back."""
        if not self._old.exists():
            return
        _check_is_dataset(self._old, str(self._old))
        if self.target.exists():
            _remove(self._old)
        else:
            self._old.rename(self.target)

    def _check_target(self) -> None:
        if not self.target.exists() or (self.target.is_dir() and not any(self.target.iterdir())):
            return
        if not self._force:
            hint = "force=True, or --force, replaces it"
            raise StoreError(
                Problem(where=self.name, expected="a new folder", got="one that exists", hint=hint)
            )
        _check_is_dataset(self.target, self.name)

    def _claim(self) -> None:
        """Makes the staging folder with its owner in it, at once: a rename cannot succeed twice."""
        fresh = Path(tempfile.mkdtemp(prefix=f"{self.staging.name}.", dir=self.target.parent))
        owner = {"pid": os.getpid(), "host": socket.gethostname()}
        try:
            fresh.chmod(0o777 & ~_umask())
            (fresh / _OWNER).write_text(json.dumps(owner))
            if self.staging.exists():
                self._refuse_if_alive()
                shutil.rmtree(self.staging)
            fresh.rename(self.staging)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise

    def _refuse_if_alive(self) -> None:
        pid, host = _owner(self.staging)
        if host == socket.gethostname() and not _alive(pid):
            return
        hint = f"if it is gone, remove {self.staging}"
        got = f"process {pid} on {host}, which writes it"
        raise StoreError(Problem(where=self.name, expected="no other writer", got=got, hint=hint))


class ShardFile:
    """One shard being written: compressed, hashed and counted on the way."""

    def __init__(self, path: Path, compression: Compression) -> None:
        self._path = path
        self._file = path.open("xb")
        self._compressor = compressor(compression)
        self._hash = hashlib.sha256()
        self._bytes = 0
        self._records = 0

    def write(self, frames: memoryview | bytes, records: int) -> None:
        """Appends framed records."""
        self._put(self._compressor.compress(frames))
        self._records += records

    def close(self) -> Shard:
        """Flushes the file to the disk, and says what is in it. Raises StoreError if the disk lost some."""
        self._put(self._compressor.flush())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        size = self._path.stat().st_size
        if size != self._bytes:
            raise StoreError(
                Problem(where=str(self._path), expected=f"{self._bytes:,} bytes", got=f"{size:,}")
            )
        return Shard(
            file=self._path.name,
            rows=self._records,
            records=self._records,
            bytes=size,
            sha256=self._hash.hexdigest(),
        )

    def _put(self, data: memoryview | bytes) -> None:
        self._file.write(data)
        self._hash.update(data)
        self._bytes += len(data)


def _check_is_dataset(folder: Path, name: str) -> None:
    """Raises StoreError unless a folder, which is to be removed, holds a dataset and nothing else."""
    expected = "a dataset to replace, and nothing else"
    if not (folder / FILE).is_file():
        raise StoreError(Problem(where=name, expected=expected, got="something without a manifest"))
    try:
        manifest = Manifest.load(folder)
    except StoreError as error:
        got = "a manifest of something else"
        raise StoreError(Problem(where=name, expected=expected, got=got)) from error
    known = {
        FILE,
        SCHEMA_FILE,
        REJECTS_FILE,
        *(one.file for shards in manifest.splits.values() for one in shards),
    }
    others = sorted({child.name for child in folder.iterdir()} - known)
    if others:
        hint = "move it elsewhere first"
        raise StoreError(Problem(where=name, expected=expected, got=f"`{others[0]}` in it", hint=hint))


def _remove(dataset: Path) -> None:
    """Removes a dataset, its manifest last: what is left half-way can still be told to be one."""
    for child in sorted(dataset.iterdir(), key=lambda child: child.name == FILE):
        child.unlink()
    dataset.rmdir()


def _owner(staging: Path) -> tuple[int, str]:
    """Who writes there: process and host. A folder that does not say is not taken for a writer's."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        owner = json.loads((staging / _OWNER).read_text())
        return int(owner["pid"]), str(owner["host"])
    hint = f"if nobody writes there, remove {staging}"
    expected = "a folder with its writer's name in it"
    raise StoreError(Problem(where=str(staging), expected=expected, got="none", hint=hint))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _sync_folder(folder: Path) -> None:
    """Makes the names in a folder last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _failed(target: str, error: OSError) -> StoreError:
    got = f"{error.strerror or error} ({error.filename})" if error.filename else str(error)
    return StoreError(Problem(where=target, expected="a folder to write in", got=got))
