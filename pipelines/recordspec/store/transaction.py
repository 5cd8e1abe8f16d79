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
from recordspec.store.manifest import FILE, SCHEMA_FILE, Manifest, Shard
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
            self._recover()
        except OSError as error:
            raise _failed(self.name, error) from error
        try:
            self._check_target()  # once more: what a recovery brought back counts too
        except StoreError:
            shutil.rmtree(self.staging)
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
        if self.target.exists():
            self._swap()
        else:
            self.staging.rename(self.target)
        _sync_folder(self.target.parent)

    def _swap(self) -> None:
        self.target.rename(self._old)
        try:
            self.staging.rename(self.target)
        except OSError:
            self._old.rename(self.target)
            raise
        shutil.rmtree(self._old)

    def _recover(self) -> None:
        """A swap that died between its two renames left the old dataset aside: it comes back."""
        if not self._old.exists():
            return
        if self.target.exists():
            shutil.rmtree(self._old)
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
        if not (self.target / FILE).is_file():
            got = "something without a manifest"
            raise StoreError(Problem(where=self.name, expected="a dataset to replace", got=got))

    def _claim(self) -> None:
        """Makes the staging folder with its owner in it, at once: a rename cannot succeed twice."""
        fresh = Path(tempfile.mkdtemp(prefix=f"{self.staging.name}.", dir=self.target.parent))
        fresh.chmod(0o777 & ~_umask())
        owner = {"pid": os.getpid(), "host": socket.gethostname()}
        (fresh / _OWNER).write_text(json.dumps(owner))
        try:
            if self.staging.exists():
                self._refuse_if_alive()
                shutil.rmtree(self.staging)
            fresh.rename(self.staging)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise

    def _refuse_if_alive(self) -> None:
        owner = {}
        with contextlib.suppress(OSError, ValueError):
            owner = json.loads((self.staging / _OWNER).read_text())
        pid, host = owner.get("pid"), owner.get("host")
        if pid is None or (host == socket.gethostname() and not _alive(pid)):
            return
        raise StoreError(
            Problem(
                where=self.name,
                expected="no other writer",
                got=f"process {pid} on {host}, which writes it",
                hint=f"if it is gone, remove {self.staging}",
            )
        )


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
