"""The last stage of a build: publishes shards as a dataset, in a folder or in an object store."""

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
    """Takes over the files of shards, and publishes them with a manifest, atomically.

    Within the `with` block the partial folder exists, and no other process writes to it.

    Args:
        transaction: publishes the partial folder.
        revise: completes the manifest; it may write files to its argument, the partial folder.
        is_sample: whether the dataset is deleted at once, so that no message mentions it or its files.
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
        """Completes the plan with the facts about the existing dataset.

        Raises StoreError if the rows of the plan cannot be appended to the dataset.
        """
        if self.transaction.appends:
            return plan.added_to(self.transaction)
        return replace(plan, suffix=self.transaction.shard_suffix)

    def take_over(self, plan: BuildPlan, file: str, shard: Shard) -> None:
        """Takes over a shard, the hashes of its keys, and its index. A task has written them to the plan's
        folder as `file`, `file.keys` and `file.index`."""
        (plan.folder / file).rename(self.transaction.partial / shard.file)
        for suffix in PIECES:
            if (piece := plan.folder / f"{file}{suffix}").exists():
                piece.rename(plan.folder / f"{shard.file}{suffix}")

    def list_rejects(self, plan: BuildPlan, lines: Iterable[tuple[Mapping[str, Any], int]]) -> Path:
        """Lists the invalid rows, after the ones already listed by the existing dataset. Returns the file."""
        path = self.transaction.partial / REJECTS_FILE
        with disk_errors(plan.name):
            path.unlink(missing_ok=True)  # the file of an interrupted build
            if plan.base is not None:
                plan.base.put_rejects_into(self.transaction.partial)
            rejects.join(lines, path)
        return path

    def keep_rejects(self, lines: Iterable[tuple[Mapping[str, Any], int]]) -> Path | None:
        """Lists the invalid rows of a build with too many, in a file beside the folder of the dataset.

        Returns the file; None if it cannot be written.
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
        """The complete manifest of the shards written."""
        return self._revise(manifest, self.transaction.partial)

    def publish(self, plan: BuildPlan, written: Manifest, bar: Progress) -> Manifest:
        """Publishes the shards written, together with existing ones. Returns the manifest of all shards.

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
            self._kept_rejects.unlink(missing_ok=True)  # the file of an earlier build
        if not self._is_sample:
            self._warn(written, manifest)
        return manifest

    def _indexed(self, plan: BuildPlan, manifest: Manifest) -> Manifest:
        """Adds an index to the manifest: the existing entries of old shards, new entries of new shards."""
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
    """Yields the hashes of the keys of every shard: for old shards from the existing dataset, for new shards
    from the files of their tasks."""
    for split, shards in manifest.splits.items():
        old = 0
        if existing is not None:
            starts, old = existing.manifest.starts(), len(existing.manifest.splits.get(split, ()))
            for shard in shards[:old]:
                yield key_hashes.read(existing.keys, starts[shard.file], shard.rows)
        for shard in shards[old:]:
            yield key_hashes.read(folder / f"{shard.file}{KEYS}", 0, shard.rows)
