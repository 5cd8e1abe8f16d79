"""The dataset to which `append` adds rows, in new shards; the existing shards do not change."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from recordspec.errors import Problem, StoreError
from recordspec.locations import Location, open_file
from recordspec.schema.schema import Schema
from recordspec.store import key_hashes
from recordspec.store.index import FileIndex, of_bytes, of_dataset, of_shard
from recordspec.store.manifest import KEYS_FILE, REJECTS_FILE, Manifest
from recordspec.store.shard_names import parse_name
from recordspec.writing.label_counts import summed_counts
from recordspec.writing.write_options import Write


def different_options(manifest: Manifest, schema: Schema, options: Write) -> dict[str, tuple[object, object]]:
    """The options of a build that differ from those of a dataset, by name: the values of the dataset and of
    the build. A manifest has no source and no number of shards, and may have no division.
    """
    pairs: dict[str, tuple[object, object]] = {
        "schema": (manifest.fingerprint, schema.fingerprint),
        "key": (list(manifest.key), list(options.keys)),
        "compression": (manifest.compression, options.compression),
        "layout": (manifest.block, options.block),
        "shuffle": (manifest.shuffle_seed, options.shuffle and options.shuffle.seed),
    }
    if manifest.division:
        pairs["splits"] = (_division(manifest, options), options.division)
    return {name: (old, new) for name, (old, new) in pairs.items() if old != new}


def _division(manifest: Manifest, options: Write) -> dict[str, object]:
    division = dict(manifest.division)
    # a manifest of format 1 has no `copies`, not even after another command has rewritten it
    if options.splits_by_content:
        division.setdefault("copies", "together")
    return division


@dataclass(frozen=True, kw_only=True)
class ExistingDataset:
    """An existing dataset, to which rows are appended.

    Attributes:
        folder: the folder of the dataset.
        manifest: the manifest of the dataset.
    """

    folder: Location
    manifest: Manifest

    @classmethod
    def load(
        cls, folder: Location, manifest: Manifest | None, schema: Schema, options: Write
    ) -> ExistingDataset:
        """Loads a dataset; pass `manifest` if it was read already.

        Raises StoreError if rows of this schema with these options cannot be appended to it.
        """
        base = cls(folder=folder, manifest=manifest or Manifest.load(folder))
        problems = [problem.at(str(folder)) for problem in base._differences(schema, options)]
        if problems:
            raise StoreError(problems)
        of_dataset(base.folder, base.manifest)  # reports a damaged index before rows are encoded, not after
        return base

    def _differences(self, schema: Schema, options: Write) -> Iterator[Problem]:
        # file names determined the splits of the rows, not hashes
        if not self.manifest.division and len(options.weights or ()) > 1:
            expected = "one split, or a column of splits, as file names determined the splits"
            yield Problem(path=("splits",), expected=expected, got=json.dumps(options.division["splits"]))
        for name, (old, new) in different_options(self.manifest, schema, options).items():
            expected = f"{json.dumps(old)}, as the dataset has it"
            together = name == "splits" and _division(self.manifest, options).get("copies") == "together"
            hint = "`key: {unique: false}` keeps copies together" if together else ""
            yield Problem(path=(name,), expected=expected, got=json.dumps(new), hint=hint)
        if not options.unique:
            return
        rows = sum(map(self.manifest.rows, self.manifest.splits))
        if not self.keys.exists():
            hint = "a repair may have left it out; a new build writes it"
            yield Problem(path=("key",), expected=f"`{KEYS_FILE}` in the dataset", got="none", hint=hint)
        elif (keyed := key_hashes.rows(self.keys)) != rows:
            expected = f"the keys of {rows:,} rows in `{KEYS_FILE}`"
            yield Problem(path=("key",), expected=expected, got=f"{keyed:,}")

    @property
    def keys(self) -> Location:
        """The file of the hashes of the keys of all rows."""
        return self.folder / self.manifest.name_of(KEYS_FILE)

    def indices(self) -> Mapping[str, FileIndex]:
        """The index of each shard, by file; computed if an older release has not written one. Empty if its
        shards are compressed: they have no restart points.

        Raises StoreError if the index was changed, RecordError if a shard is corrupt.
        """
        known = of_dataset(self.folder, self.manifest)
        if known or self.manifest.compression != "none":
            return known
        return {one.file: of_bytes(of_shard(self.folder, one)) for one in self.manifest.all_shards}

    def suffix(self, version: str) -> str:
        """The suffix of the split in the names of new shards: `version`, then `-add1`, or `-add2` ..."""
        stems = {name.split for name in map(parse_name, self.manifest.files) if name is not None}
        number = 1
        while any(f"{split}{version}-add{number}" in stems for split in self.manifest.splits):
            number += 1
        return f"{version}-add{number}"

    def place(self, row: int) -> str:
        """The location of a row for messages, counted across all splits and shards of the dataset."""
        # if several shards begin at one row, all of them but the last are empty
        file, start = [one for one in self.manifest._starts().items() if one[1] <= row][-1]
        return f"{self.folder / file}: row {row - start}"

    def put_rejects_into(self, partial: Path) -> None:
        """Copies the list of the rows rejected so far to the partial folder, where a build adds to it."""
        if self.manifest.rejected:
            rejects = self.folder / self.manifest.name_of(REJECTS_FILE)
            with open_file(rejects) as old, (partial / REJECTS_FILE).open("wb") as new:
                shutil.copyfileobj(old, new)

    def with_more(self, manifest: Manifest) -> Manifest:
        """The manifest of the existing and the new rows; the new shards come last."""
        old, new = self.manifest.splits, manifest.splits
        splits = {name: (*old.get(name, ()), *new.get(name, ())) for name in dict.fromkeys((*old, *new))}
        counted = summed_counts([self.manifest.label_counts, manifest.label_counts])
        return replace(
            manifest,
            splits=splits,
            # the sum is unknown where the old rows were not counted
            label_counts={
                split: counts
                for split, counts in counted.items()
                if split in self.manifest.label_counts or split not in old
            },
            rejected=self.manifest.rejected + manifest.rejected,
            division=self.manifest.division and manifest.division,
        )
