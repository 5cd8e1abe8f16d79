"""The last stage of a build: publishes shards as a dataset, in a folder or in an object store."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from recordspec.errors import StoreError, show_text
from recordspec.locations import sync_file
from recordspec.progress import Progress
from recordspec.store import key_hashes
from recordspec.store.index import indexed
from recordspec.store.manifest import INDEX, KEYS, KEYS_FILE, REJECTS_FILE, Manifest, Shard
from recordspec.store.remote_transaction import ConflictError
from recordspec.store.transaction import Transaction
from recordspec.wire.hashes import Words
from recordspec.writing import rejects
from recordspec.writing.append import ExistingDataset
from recordspec.writing.build_plan import BuildPlan
from recordspec.writing.failures import DiskError, disk_errors
from recordspec.writing.label_counts import uneven_classes

log = logging.getLogger("recordspec")


def list_rejects(plan: BuildPlan, files: Iterable[tuple[Path, int]]) -> Path:
    """Lists the invalid rows, after the ones already listed by the existing dataset. Returns the file.

    Args:
        files: as for `rejects.join`.
    """
    path = plan.output / REJECTS_FILE
    with disk_errors(plan.name):
        path.unlink(missing_ok=True)  # the file of an interrupted build
        if plan.base is not None:
            plan.base.put_rejects_into(plan.output)
        rejects.join(files, path)
    return path


def keep_rejects(dataset: Path, files: Iterable[tuple[Path, int]]) -> Path | None:
    """Lists the invalid rows of a build with too many, in a file beside the folder of the dataset.

    Returns the file; None if it cannot be written.
    """
    path = _kept_rejects(dataset)
    try:
        path.unlink(missing_ok=True)
        rejects.join(files, path)
    except OSError:
        return None
    return path


def _kept_rejects(dataset: Path) -> Path:
    return dataset.with_name(f"{dataset.name}.{REJECTS_FILE}")


def publish(plan: BuildPlan, transaction: Transaction, written: Manifest, bar: Progress) -> Manifest:
    """Publishes the shards written, together with existing ones. Returns the manifest of all shards.

    Args:
        written: the manifest of the shards in the plan's `output`.

    Raises ConflictError if another writer published first, DiskError, StoreError.
    """
    manifest = written if plan.base is None else plan.base.with_more(written)
    with disk_errors(plan.name):
        if plan.options.unique:
            parts = _key_hashes(manifest, plan.folder, plan.base)
            manifest = replace(manifest, keys_sha256=key_hashes.write(plan.output / KEYS_FILE, parts))
        manifest = _indexed(plan, manifest)
        sync_file(plan.output / REJECTS_FILE)
        schema = None if plan.schema is None else plan.schema.dump()
        try:
            manifest = transaction.commit(manifest, schema, bar) or manifest
        except StoreError as error:
            if isinstance(error, ConflictError) or any(problem.hint for problem in error.problems):
                raise
            raise DiskError(error.problems) from error.__cause__
    with suppress(OSError):
        _kept_rejects(transaction.target).unlink(missing_ok=True)  # the file of an earlier build
    return manifest


def _indexed(plan: BuildPlan, manifest: Manifest) -> Manifest:
    """Adds an index to the manifest: the existing entries of old shards, new entries of new shards. There is
    no index if old shards have none.
    """
    old = {} if plan.base is None else plan.base.indices()
    if plan.base is not None and len(old) < len(plan.base.manifest.all_shards):
        return replace(manifest, index_sha256=None)

    def part(shard: Shard) -> bytes | memoryview:
        if shard.file in old:
            return old[shard.file].data
        return (plan.folder / f"{shard.file}{INDEX}").read_bytes()

    return indexed(manifest, plan.output, part)


def warn(name: str, written: Manifest, manifest: Manifest) -> None:
    """Logs the number of invalid rows of a dataset just published, and labels of uneven classes."""
    if written.rejected:
        rows = written.rejected + sum(written.rows(split) for split in written.splits)
        path = show_text(f"{name}/{REJECTS_FILE}")
        log.warning("%s of %s rows are invalid: see %s", f"{written.rejected:,}", f"{rows:,}", path)
    for difference in uneven_classes(manifest):
        log.warning("%s", show_text(difference))


def _key_hashes(manifest: Manifest, folder: Path, existing: ExistingDataset | None) -> Iterator[Words]:
    """Yields the hashes of the keys of every shard: for old shards from the existing dataset, for new shards
    from the files of their tasks."""
    for split, shards in manifest.splits.items():
        old = 0
        if existing is not None:
            starts, old = existing.manifest._starts(), len(existing.manifest.splits.get(split, ()))
            for shard in shards[:old]:
                yield key_hashes.read(existing.keys, starts[shard.file], shard.rows)
        for shard in shards[old:]:
            yield key_hashes.read(folder / f"{shard.file}{KEYS}", 0, shard.rows)
