"""What can be saved of damaged files, in new shards."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recordspec.errors import Problem, RecordError, SpecError
from recordspec.inspect.beside import manifest_in
from recordspec.inspect.tally import Tally, described
from recordspec.progress import Progress
from recordspec.store.durable import sync, sync_file
from recordspec.store.manifest import KEYS_FILE, REJECTS_FILE, REPORT_FILE, SCHEMA_FILE, Manifest, Shard
from recordspec.store.shard_file import ShardFile
from recordspec.store.shards import Files, expand
from recordspec.store.transaction import Transaction
from recordspec.wire.compression import likely_compression


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A file, what was read of it, and the shard with what could be saved. That has a row for each record
    where nobody knows how many."""

    tally: Tally
    shard: Shard

    @property
    def rows_lost(self) -> int | None:
        """Rows that the manifest counts, and the shard lacks; None where nobody knows."""
        counted, saved = self.tally.shard, self.tally.rows_saved
        # where there are more than the manifest counts, those with wrong data are lost all the same
        return None if counted is None or saved is None else max(self.tally.bad, counted.rows - saved)


@dataclass(frozen=True, kw_only=True)
class Repaired:
    """What was written.

    Attributes:
        files: in their order.
        manifest: of the new folder; None where it has none.
        note: why it has none, or empty.
    """

    files: tuple[Saved, ...]
    manifest: Manifest | None
    note: str

    def report(self) -> dict[str, Any]:
        """As JSON has it."""
        files = [
            {
                **described(one.tally),
                "shard": one.shard.file,
                "saved": one.tally.saved,
                "rows lost": one.rows_lost,
            }
            for one in self.files
        ]
        return {"files": files, "note": self.note}


def repair(
    files: Files, directory: str | os.PathLike[str], *, force: bool = False, progress: Progress | None = None
) -> Repaired:
    """Writes the records of files that are whole to new shards of the same names, in a folder that appears
    whole or not at all, with a report beside them, `repair.json`.

    Records behind a bad length are found again where they are whole. Of a dataset, the new folder has a
    manifest of what was saved, the schema, and the rejected rows.

    Args:
        files: a path, a folder of shards, a pattern, or several of these; they stay as they are.
        directory: a folder that does not exist yet.
        force: replaces the folder if it exists, and holds a dataset or an earlier repair.
        progress: is told what is done.

    Raises StoreError, SpecError where two files have one name or lie in the folder, and RecordError where
    something is lost and nothing can be saved.
    """
    paths = expand(files, as_found=True)
    _check_names(paths, Path(directory))
    old = _manifest_of(paths)
    progress = progress or Progress(show=False)
    progress.begin("repairing", None)
    with Transaction(directory, force=force) as transaction:
        saved = tuple(_save(Tally.of(path, old), transaction.staging, progress) for path in paths)
        _check_any(saved)
        manifest, note = _new_manifest(old, saved)
        done = Repaired(files=saved, manifest=manifest, note=note)
        with (transaction.staging / REPORT_FILE).open("w", encoding="utf-8") as file:
            file.write(json.dumps(done.report(), indent=1, ensure_ascii=False) + "\n")
            sync(file)
        if manifest is not None:
            _copy_rest(paths[0].parent, transaction.staging, manifest)
        transaction.commit(manifest, _schema_beside(paths[0].parent, manifest))
    return done


def _check_any(saved: Sequence[Saved]) -> None:
    """Refuses to publish a folder of empty files, as of a CSV file."""
    lost = [one.tally.losses[0].problem for one in saved if one.tally.losses]
    if lost and not any(one.tally.saved for one in saved):
        hint = "nothing can be saved"
        raise RecordError([replace(problem, hint=problem.hint or hint) for problem in lost])


def _check_names(paths: Sequence[Path], directory: Path) -> None:
    name, count = Counter(path.name for path in paths).most_common(1)[0]
    if count > 1:
        raise SpecError(
            Problem(path=("files",), expected="files of different names", got=f"{count} `{name}`")
        )
    if any(path.parent.resolve() == directory.resolve() for path in paths):
        expected = "another folder than that of the files"
        raise SpecError(Problem(path=("directory",), expected=expected, got=str(directory)))


def _manifest_of(paths: Sequence[Path]) -> Manifest | None:
    """The manifest beside all of these, if there is one that can be read."""
    folders = {path.parent for path in paths}
    return manifest_in(folders.pop())[0] if len(folders) == 1 else None


def _save(tally: Tally, folder: Path, progress: Progress) -> Saved:
    shard = ShardFile(folder / tally.path.name, likely_compression(tally.path))
    try:
        for chunk in tally.read(progress):
            shard.write(chunk.frames, len(chunk), len(chunk))
        written, rows = shard.close(tally.path.name), tally.rows_saved
        return Saved(tally=tally, shard=written if rows is None else replace(written, rows=rows))
    except BaseException:
        shard.abandon()
        raise


def _new_manifest(old: Manifest | None, saved: Sequence[Saved]) -> tuple[Manifest | None, str]:
    """The manifest of what was saved, or why there is none."""
    if old is None:
        return None, "no manifest: the files have none beside them that can be read"
    unknown = [one for one in saved if one.tally.shard is None]
    if unknown:
        return None, f"no manifest: that of the files does not name {unknown[0].shard.file}"
    uncounted = [one.tally for one in saved if one.tally.rows_saved is None]
    if uncounted:
        return None, f"no manifest: {uncounted[0].path.name} {_why_uncounted(uncounted[0])}"
    return _of_saved(old, saved), ""


def _why_uncounted(tally: Tally) -> str:
    shard = tally.shard
    if shard is not None and shard.records != tally.file.records_needed:
        return f"cannot have {shard.rows:,} rows in {shard.records:,} records, as that of the files says"
    where = "that are not those of its manifest" if tally.reaches_end else "behind a bad length"
    return f"has records of many rows {where}; nobody knows how many"


def _of_saved(old: Manifest, saved: Sequence[Saved]) -> Manifest:
    shards = {one.shard.file: one.shard for one in saved}
    given = {
        split: tuple(shards[one.file] for one in many if one.file in shards)
        for split, many in old.splits.items()
    }
    new = replace(old, splits={split: many for split, many in given.items() if many})
    kept = [split for split in new.splits if new.rows(split) == old.rows(split)]
    return replace(
        new,
        label_counts={split: old.label_counts[split] for split in kept if split in old.label_counts},
        # the keys of all rows, or none: which are lost, nobody knows
        keys_sha256=old.keys_sha256 if kept == list(old.splits) else None,
    )


def _copy_rest(folder: Path, staging: Path, manifest: Manifest) -> None:
    """What else belongs to the dataset, as far as it is there."""
    names = (REJECTS_FILE if manifest.rejected else None, KEYS_FILE if manifest.keys_sha256 else None)
    for name in names:
        if name is not None and (folder / name).exists():
            shutil.copyfile(folder / name, staging / name)
            sync_file(staging / name)


def _schema_beside(folder: Path, manifest: Manifest | None) -> str | None:
    path = folder / SCHEMA_FILE
    return path.read_text(encoding="utf-8") if manifest is not None and path.exists() else None
