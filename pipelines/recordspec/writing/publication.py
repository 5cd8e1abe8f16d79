"""The last stage of a build: files of shards become a dataset, in a folder or in an object store."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from recordspec.errors import StoreError, show_text
from recordspec.locations import sync_file
from recordspec.progress import Progress
from recordspec.store import key_hashes
from recordspec.store.index import indexed
from recordspec.store.manifest import (
    INDEX,
    KEYS,
    KEYS_FILE,
    PIECES,
    REJECTS_FILE,
    Manifest,
    Shard,
)
from recordspec.store.remote_transaction import ConflictError
from recordspec.store.transaction import Transaction
from recordspec.wire.hashes import Words
from recordspec.writing import rejects
from recordspec.writing.append import ExistingDataset
from recordspec.writing.build_plan import BuildPlan
from recordspec.writing.failures import DiskError, disk_errors
from recordspec.writing.label_counts import uneven_classes

log = logging.getLogger("recordspec")


class Publication:
    """Takes over the files of shards, and publishes them with a manifest, all at once.

    Within its `with` block the partial folder exists, and no other process writes to it.

    Args:
        transaction: publishes the partial folder.
        revise: completes the manifest; it may write files into the folder that it gets.
        is_sample: whether the dataset is deleted at once: no message tells of it, or refers to its files.
    """

    def __init__(
        self,
        transaction: Transaction,
        revise: Callable[[Manifest, Path], Manifest] = lambda manifest, folder: manifest,
        *,
        is_sample: bool = False,
    ) -> None:
        self.transaction = transaction
        self._revise, self._is_sample = revise, is_sample

    def __enter__(self) -> Publication:
        self.transaction.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.transaction.__exit__(*exception)

    def planned(self, plan: BuildPlan) -> BuildPlan:
        """The plan with what depends on the dataset that there is.

        Raises StoreError if rows like these cannot be added to it.
        """
        if self.transaction.appends:
            return plan.added_to(self.transaction)
        return replace(plan, suffix=self.transaction.shard_suffix)

    def take_over(self, plan: BuildPlan, file: str, shard: Shard) -> None:
        """Takes over a shard, and the hashes of its keys and its index, which a task has written as `file`,
        `file.keys` and `file.index` into the plan's folder."""
        (plan.folder / file).rename(self.transaction.partial / shard.file)
        for suffix in PIECES:
            if (piece := plan.folder / f"{file}{suffix}").exists():
                piece.rename(plan.folder / f"{shard.file}{suffix}")

    def list_rejects(self, plan: BuildPlan, lines: Iterable[tuple[Mapping[str, Any], int]]) -> Path:
        """Lists the invalid rows, after those that the dataset had before; returns the file."""
        path = self.transaction.partial / REJECTS_FILE
        with disk_errors(plan.name):
            path.unlink(missing_ok=True)  # of a build that is resumed
            if plan.base is not None:
                plan.base.put_rejects_into(self.transaction.partial)
            rejects.join(lines, path)
        return path

    def keep_rejects(self, lines: Iterable[tuple[Mapping[str, Any], int]]) -> Path | None:
        """Lists the invalid rows of a build that has too many, beside the folder of the dataset.

        Returns the file; None if that is impossible.
        """
        if self._is_sample:
            return None
        try:
            self._kept_rejects.unlink(missing_ok=True)
            rejects.join(lines, self._kept_rejects)
        except OSError:
            return None
        return self._kept_rejects

    @property
    def _kept_rejects(self) -> Path:
        return self.transaction.target.with_name(f"{self.transaction.target.name}.{REJECTS_FILE}")

    def revised(self, manifest: Manifest) -> Manifest:
        """The complete manifest of what was written."""
        return self._revise(manifest, self.transaction.partial)

    def publish(self, plan: BuildPlan, written: Manifest, bar: Progress) -> Manifest:
        """Publishes what was written, and what was there before. Returns the manifest of all.

        Raises ConflictError if another writer published first, DiskError, StoreError.
        """
        manifest = written if plan.base is None else plan.base.with_more(written)
        with disk_errors(plan.name):
            if plan.options.unique:
                parts = _key_hashes(manifest, plan.folder, plan.base)
                sha256 = key_hashes.write(self.transaction.partial / KEYS_FILE, parts)
                manifest = replace(manifest, keys_sha256=sha256)
            manifest = self._indexed(plan, manifest)
            sync_file(self.transaction.partial / REJECTS_FILE)
            schema = None if plan.schema is None else plan.schema.dump()
            try:
                manifest = self.transaction.commit(manifest, schema, bar) or manifest
            except StoreError as error:
                if isinstance(error, ConflictError) or any(problem.hint for problem in error.problems):
                    raise
                raise DiskError(error.problems) from error.__cause__
        with suppress(OSError):
            self._kept_rejects.unlink(missing_ok=True)  # of a build before
        if not self._is_sample:
            self._warn(written, manifest)
        return manifest

    def _indexed(self, plan: BuildPlan, manifest: Manifest) -> Manifest:
        """The manifest with the index of old shards as it was, and of new ones as they were written."""
        old = {} if plan.base is None or manifest.compression != "none" else plan.base.indices()

        def part(shard: Shard) -> bytes | memoryview:
            if shard.file in old:
                return old[shard.file].data
            return (plan.folder / f"{shard.file}{INDEX}").read_bytes()

        return indexed(manifest, self.transaction.partial, part)

    def _warn(self, written: Manifest, manifest: Manifest) -> None:
        if written.rejected:
            rows = written.rejected + sum(written.rows(split) for split in written.splits)
            path = show_text(f"{self.transaction.name}/{REJECTS_FILE}")
            log.warning("%s of %s rows are invalid: see %s", f"{written.rejected:,}", f"{rows:,}", path)
        for difference in uneven_classes(manifest):
            log.warning("%s", show_text(difference))


def _key_hashes(manifest: Manifest, folder: Path, existing: ExistingDataset | None) -> Iterator[Words]:
    """The hashes of the keys of every shard: of old ones as they were, of new ones as they were written."""
    for split, shards in manifest.splits.items():
        old = 0
        if existing is not None:
            starts, old = existing.manifest.starts(), len(existing.manifest.splits.get(split, ()))
            for shard in shards[:old]:
                yield key_hashes.read(existing.keys, starts[shard.file], shard.rows)
        for shard in shards[old:]:
            yield key_hashes.read(folder / f"{shard.file}{KEYS}", 0, shard.rows)
