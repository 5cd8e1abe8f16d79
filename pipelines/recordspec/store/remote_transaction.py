"""Publishes a dataset in an object store: its files first, then the manifest, which makes it appear.

Only the manifest is overwritten, and nothing is deleted: readers of the previous manifest find all files that
it names. If a file's name is taken, the file is called `train-v2-00000-of-00008.tfrecord`, `schema-v2.yaml`,
and so on.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from recordspec import remote
from recordspec.errors import ExistsError, Problem, State, StoreError, exists, system_errors
from recordspec.executors import ThreadPool
from recordspec.locations import AnyPath, atomic_write, location
from recordspec.progress import Progress
from recordspec.remote import RemotePath, Stamp
from recordspec.store.manifest import FILE, SCHEMA_FILE, Manifest, Shard, parse_manifest, with_suffix
from recordspec.store.shard_names import add_suffix, parse_name, version_suffixes
from recordspec.store.transaction import OWNER, Transaction, check_is_own, foreign_shards, no_dataset
from recordspec.wire.hashes import sha256_of

# Files uploaded at a time; each is in memory meanwhile.
_UPLOADS = 4


class ConflictError(StoreError):
    """Another writer has changed the dataset since it was read."""


class RemoteTransaction(Transaction):
    """A partial folder on this machine whose files are uploaded at `commit`.

    Raises StoreError if there is a dataset and neither `force` nor `append` is given; if there is none and
    `append` is given; and if another process of this machine is writing it.
    """

    def __init__(
        self, target: RemotePath, *, force: bool = False, resume: bool = False, append: bool = False
    ) -> None:
        remote.check_writable(target)
        super().__init__(work_folder(target), force=force or append, resume=resume)
        self.remote = self.dataset = target
        self.name = str(target)
        self.appends = append
        self._stamp: Stamp | None = None
        self._uploaded = False
        self._text: bytes | None = None  # the manifest's text, once it is written

    @property
    def shard_suffix(self) -> str:
        return ""  # names are chosen when the files are uploaded

    @property
    def published(self) -> bool:
        return self._uploaded or (self._text is not None and self._is_there(self._text))

    def _is_there(self, text: bytes) -> bool:
        """Whether the manifest is in its place; asked after an interruption, or a request without an
        answer.
        """
        with suppress(StoreError, FileNotFoundError):
            return (self.remote / FILE).read_bytes() == text
        return False

    def check_target(self) -> None:
        try:
            text, self._stamp = remote.read_stamped(self.remote / FILE)
        except FileNotFoundError:
            if self.appends:
                raise StoreError(no_dataset(self.name)) from None
            self._stamp, self.existing = None, None
            return
        if not self._force:
            raise self._exists()
        known = None
        # `force` replaces even an unreadable manifest, unless it was adopted; only `append` must understand
        # it
        with nullcontext() if self.appends else suppress(StoreError):
            known = parse_manifest(text, str(self.remote / FILE))
        if self.appends and known is not None:
            check_is_own(known, self.name)
        elif known is not None and known.adopted:
            raise StoreError(foreign_shards(self.name))
        self.existing = known if self.appends else None

    def _exists(self) -> StoreError:
        return ExistsError(exists(self.name))

    def commit(
        self, manifest: Manifest | None, schema: str | None, progress: Progress | None = None
    ) -> Manifest | None:
        """Uploads all files, and then the manifest, whose shards may have been uploaded already.

        Raises ConflictError if another writer published first, StoreError, OSError.
        """
        assert manifest is not None
        if schema is not None:
            atomic_write(self.partial / SCHEMA_FILE, schema.encode(), self.work / SCHEMA_FILE)
        # `work` is kept until the end, so that the build can be resumed
        names = sorted({path.name for path in self.partial.iterdir() if path.is_file()} - {FILE, OWNER})
        hashes = {shard.file: shard.sha256 for shard in self._added(manifest)}
        hashes |= {name: sha256_of(self.partial / name) for name in names if name not in hashes}
        rows = {shard.file: shard.rows for shard in self._added(manifest)}
        progress = progress or Progress(show=False)
        progress.begin("uploading", sum(rows.values()))
        suffix = next(
            suffix
            for suffix in version_suffixes()
            if self._may_be_free(names, hashes, suffix)
            and self._upload(names, hashes, suffix, rows, progress)
        )
        published = self._renamed(manifest, suffix, {*names})
        self._check_uploaded(published, names, suffix)
        place, self._text = self.remote / FILE, published.dump().encode()
        try:
            remote.replace(place, self._text, self._stamp)
        except FileExistsError:
            self._text = None
            if self._force:
                raise ConflictError(State(where=self.name, got="was changed by another writer")) from None
            raise self._exists() from None
        self._uploaded = True
        self.keep = False
        return published

    def keep_shards(self, manifest: Manifest) -> None:
        """Does nothing: the shards stay where they are."""

    def free_names(self, names: Iterable[str]) -> dict[str, str]:
        there = {path.name for path in self.remote.iterdir()}
        renamed = ({name: _renamed(name, suffix) for name in names} for suffix in version_suffixes())
        return next(found for found in renamed if there.isdisjoint(found.values()))

    def _added(self, manifest: Manifest) -> Iterator[Shard]:
        """The shards that are new in the dataset."""
        for split, shards in manifest.splits.items():
            before = () if self.existing is None else self.existing.splits.get(split, ())
            yield from shards[len(before) :]

    def _renamed(self, manifest: Manifest, suffix: str, names: set[str]) -> Manifest:
        """The manifest with the names under which the files of this transaction were uploaded."""
        added = {id(shard) for shard in self._added(manifest)}
        splits = {
            split: tuple(
                replace(shard, file=_renamed(shard.file, suffix))
                if id(shard) in added and shard.file in names
                else shard
                for shard in shards
            )
            for split, shards in manifest.splits.items()
        }
        return replace(manifest, splits=splits, suffix=suffix)

    def _may_be_free(self, names: Iterable[str], hashes: dict[str, str], suffix: str) -> bool:
        """Whether the names of the first shard and of all other files are free, or belong to an interrupted
        upload of the same bytes.
        """
        # another writer may have added the same bytes meanwhile: they are different shards
        taken = frozenset() if self.existing is None else self.existing.files
        if any(parse_name(name) and _renamed(name, suffix) in taken for name in names):
            return False
        shard = next(filter(parse_name, names), None)
        for name in (name for name in names if name == shard or parse_name(name) is None):
            there = remote.uploaded(self.remote / _renamed(name, suffix))
            if there is not None and there[0] != hashes[name]:
                return False
        return True

    def _upload(
        self,
        names: Iterable[str],
        hashes: dict[str, str],
        suffix: str,
        rows: dict[str, int],
        progress: Progress,
    ) -> bool:
        """Uploads files. Returns False if a different file has the name of one of them."""

        def upload(name: str) -> bool:
            return remote.upload(self.remote / _renamed(name, suffix), self.partial / name, hashes[name])

        pool = ThreadPool("recordspec-upload", _UPLOADS)
        try:
            with system_errors("upload", self.name):
                for name, future in [(name, pool.submit(upload, name)) for name in names]:
                    if not future.result():
                        return False
                    if name in rows:
                        progress.advance(rows[name], (self.partial / name).stat().st_size)
            return True
        finally:
            pool.close()

    def _check_uploaded(self, manifest: Manifest, names: Iterable[str], suffix: str) -> None:
        """Raises StoreError if an uploaded file is gone: `recordspec sweep` may have deleted it."""
        there = {path.name: stat.st_size for path, stat in remote.entries(self.remote)}
        wanted: dict[str, int | None] = {_renamed(name, suffix): None for name in names}
        wanted |= {shard.file: shard.bytes for shard in manifest.all_shards}
        for name, size in wanted.items():
            if name not in there or size not in (None, there[name]):
                got = f"{there[name]:,} bytes" if name in there else "no object"
                expected = "the file that was uploaded" if size is None else f"a shard of {size:,} bytes"
                raise StoreError(Problem(where=str(self.remote / name), expected=expected, got=got))


def transaction(target: AnyPath, **how: bool) -> Transaction:
    """Returns the transaction that publishes a dataset at `target`; takes the arguments of `Transaction`."""
    place = location(target)
    return RemoteTransaction(place, **how) if isinstance(place, RemotePath) else Transaction(place, **how)


def _renamed(file: str, suffix: str) -> str:
    """The name of a dataset's file with a suffix."""
    return with_suffix(file, suffix) if parse_name(file) is None else add_suffix(file, suffix)


def work_folder(target: RemotePath) -> Path:
    """The local folder of a build for a store: in `$TMPDIR/recordspec-USER`, named by the hash of its URL."""
    folder = Path(tempfile.gettempdir()) / f"recordspec-{os.getuid()}"
    with system_errors("write", folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise PermissionError(errno.EPERM, "it belongs to another user", str(folder))
    return folder / hashlib.sha256(str(target).encode()).hexdigest()[:16]
