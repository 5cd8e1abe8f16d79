"""Compares two datasets: by the keys of their rows, or by the distributions of their features."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recordspec.errors import Problem, RecordError, SpecError, State, StoreError, describe
from recordspec.integrity.verify import key_problems
from recordspec.locations import AnyPath, Location
from recordspec.progress import Progress
from recordspec.schema.schema import Schema, given_schema
from recordspec.statistics.diff_distributions import PERCENTILES, Measure, compare, lacking
from recordspec.statistics.profile import Profile, profile_all, profile_splits
from recordspec.statistics.schema_changes import Change, changes
from recordspec.store import key_hashes
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import ALL, Files
from recordspec.store.manifest import KEYS_FILE, Manifest
from recordspec.store.scan import FileRange, Scanner, UnreadableRecord, file_ranges, run, scan
from recordspec.tables.feature_names import FeatureNames
from recordspec.wire.arrays import Ints
from recordspec.wire.hashes import Words

__all__ = ["THRESHOLD", "ByKey", "Change", "Difference", "Measure", "changes", "diff"]

# The distance that is reported by default: one value in twenty would have to change.
THRESHOLD = 0.05
# Rows of each dataset that are compared at once, on average: 40 bytes each.
_AT_ONCE = 1 << 21
_NO_KEYS = "datasets that were built with unique keys have it; give the whole folder"


@dataclass(frozen=True, kw_only=True)
class Keyed:
    """A dataset whose rows have keys; `keys.bin` holds their hashes.

    Attributes:
        folder: the folder of the dataset.
        manifest: the manifest of the dataset.
        keys: the file with the hashes of the keys of all rows.
        blocks: the schema, if the records are blocks of rows; otherwise None.
    """

    folder: Location
    manifest: Manifest
    keys: Location
    blocks: Schema | None

    @classmethod
    def of(cls, scanner: Scanner) -> Keyed | None:
        """The dataset, if the scanner has all of its files and its rows have keys; otherwise None."""
        dataset = scanner.dataset
        if dataset.manifest is None or not dataset.is_whole or (keys := dataset.keys) is None:
            return None
        blocks = None if dataset.manifest.block is None else dataset.schema
        return cls(folder=dataset.folder, manifest=dataset.manifest, keys=keys, blocks=blocks)

    @property
    def rows(self) -> int:
        return sum(map(self.manifest.rows, self.manifest.splits))

    def split_of(self, places: Ints) -> Ints:
        """The index of the split of rows, counted through all splits."""
        ends = np.cumsum([self.manifest.rows(split) for split in self.manifest.splits])
        return np.searchsorted(ends, places, side="right")

    def contents(self) -> Iterator[Words]:
        """The hashes of the bytes of all rows, in the order of the shards. Raises RecordError at a corrupt
        record, and if a file has another number of rows than the manifest says: the numbers of later rows
        would be wrong."""
        rows = {self.folder / shard.file: shard.rows for shard in self.manifest.all_shards}
        files = [FileRange(path=path, blocks=self.blocks) for path in rows]
        parts = list(file_ranges(files))
        counts = dict.fromkeys(rows, 0)
        hashed = run(_contents, [(part,) for part in parts], rows, 1, "comparing rows")
        for part, words in zip(parts, hashed, strict=True):
            counts[part.path] += len(words)
            yield words
        for path, count in counts.items():
            if count != rows[path]:
                expected = f"{rows[path]:,} rows, as the manifest says"
                raise RecordError(Problem(where=str(path), expected=expected, got=f"{count:,}"))


def _contents(part: FileRange, attempt: str) -> Words:
    """The hashes of the bytes of the rows of a file, or of a range of it. Raises RecordError at a corrupt
    record.
    """
    found = [np.zeros(0, np.uint64)]
    for rows in scan(part):
        if isinstance(rows, UnreadableRecord):
            raise rows.error
        found.append(rows.hashes)
    return np.concatenate(found)


@dataclass(frozen=True, kw_only=True)
class ByKey:
    """The differences of the rows of two datasets.

    Attributes:
        old, new: the number of rows of each dataset.
        added, removed: the number of rows with a key that only the new, or only the old, dataset has.
        moved: the number of rows of both that are in another split.
        changed: the number of rows of both that have different bytes; None if the bytes were not compared,
            since the schemas store rows differently.
    """

    old: int
    new: int
    added: int
    removed: int
    moved: int
    changed: int | None

    @property
    def different(self) -> bool:
        return bool(self.added or self.removed or self.moved or self.changed)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The differences of two datasets.

    Attributes:
        schema: the changes of the schema, if both have a schema.
        keys: the differences of the rows, if they were compared by key.
        measures: the distances of the features, if they were compared by distribution.
    """

    schema: tuple[Change, ...] = ()
    keys: ByKey | None = None
    measures: tuple[Measure, ...] = ()

    @property
    def different(self) -> bool:
        """Whether a change of the schema breaks something, rows differ, or a distance exceeds its limit."""
        broken = any(change.breaks for change in self.schema)
        moved = self.keys is not None and self.keys.different
        return broken or moved or any(measure.different for measure in self.measures)


def diff(
    old: Files | Schema,
    new: Files | Schema,
    schema: Schema | AnyPath | None = None,
    *,
    threshold: float = THRESHOLD,
    keys: bool | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Difference:
    """Compares two datasets, or two schemas.

    Args:
        old, new: paths, patterns, or a folder; or two schemas.
        schema: the schema of the records, or its path; by default the schema stored with each dataset.
        threshold: the distance above which distributions differ.
        keys: True compares rows by key, False compares distributions. None compares by key if both are whole
            datasets with `keys.bin`, otherwise by distribution.
        jobs, progress: as for `stats`.

    Raises:
        StoreError: there are no files, or no keys although `keys` is True.
        RecordError: a record cannot be read.
        SpecError: a dataset is compared with a schema.

    Example:
        >>> rs.diff("data/points", "data/points").different
        False
    """
    if isinstance(old, Schema) or isinstance(new, Schema):
        if not (isinstance(old, Schema) and isinstance(new, Schema)):
            name, got = ("new", new) if isinstance(old, Schema) else ("old", old)
            raise SpecError(Problem(path=(name,), expected="a Schema, as the other", got=describe(got)))
        return Difference(schema=changes(old, new))
    schema = given_schema(schema)
    scanners = [Scanner.of_rows(StoredDataset.of(files, schema)) for files in (old, new)]
    known = [scanner.dataset.schema for scanner in scanners]
    changed = changes(known[0], known[1]) if known[0] is not None and known[1] is not None else ()
    keyed = [Keyed.of(scanner) for scanner in scanners]
    if keys is not False and keyed[0] is not None and keyed[1] is not None:
        return Difference(schema=changed, keys=by_key(keyed[0], keyed[1]))
    if keys:
        for scanner, dataset in zip(scanners, keyed, strict=True):
            if dataset is None:
                where = str(scanner.dataset.folder)
                got = f"has no `{KEYS_FILE}` with the keys of its rows"
                raise StoreError(State(where=where, got=got, hint=_NO_KEYS))
    have_splits = not {*scanners[0].dataset.splits.values()}.isdisjoint(scanners[1].dataset.splits.values())
    if progress is not None:
        progress.begin("reading", None)
    profiles = [_whole(scanner, have_splits, jobs, progress) for scanner in scanners]
    names = FeatureNames.of(known[0])
    return Difference(schema=changed, measures=tuple(_measures(profiles[0], profiles[1], threshold, names)))


def _whole(
    scanner: Scanner, have_splits: bool, jobs: int | None, progress: Progress | None
) -> dict[str, Profile]:
    """The profile of each split of a dataset, or of all records if the datasets have no split in common.

    Raises RecordError if a record cannot be read: its content is unknown.
    """
    if have_splits:
        profiles = profile_splits(scanner, jobs, progress, shares=PERCENTILES)
    else:
        profiles = {ALL: profile_all(scanner, jobs, progress, shares=PERCENTILES)}
    problems = [problem for profile in profiles.values() for problem in profile.problems]
    if problems:
        raise RecordError(problems)
    return profiles


def _measures(
    old: Mapping[str, Profile],
    new: Mapping[str, Profile],
    threshold: float,
    names: FeatureNames,
) -> Iterator[Measure]:
    for split in dict.fromkeys((*old, *new)):
        if split in old and split in new:
            yield from compare(split, old[split], new[split], threshold, names)
        else:
            yield lacking(split, f"no such split in the {'new' if split in old else 'old'} one")


def by_key(old: Keyed, new: Keyed) -> ByKey:
    """Compares rows with equal keys. Uses bounded memory, and a few bytes a row of temporary files.

    Raises RecordError if a record cannot be read, or if `keys.bin` differs from the file that was built.
    """
    problems = [problem for one in (old, new) for problem in key_problems(one.folder, one.manifest)]
    if problems:
        raise RecordError(problems)
    alike = old.manifest.fingerprint == new.manifest.fingerprint
    kept = moved = changed = 0
    with tempfile.TemporaryDirectory(prefix="recordspec-") as folder:
        contents = [
            _written(source, Path(folder) / name) if alike else None
            for source, name in ((old, "old"), (new, "new"))
        ]
        for ends in key_hashes.ranges(-(-max(old.rows, new.rows) // _AT_ONCE)):
            places = _pairs(*(key_hashes.in_range(one.keys, *ends) for one in (old, new)))
            kept += len(places[0])
            names = [
                np.array([*keyed.manifest.splits])[keyed.split_of(some)]
                for keyed, some in zip((old, new), places, strict=True)
            ]
            moved += int((names[0] != names[1]).sum())
            if alike:
                hashed = [some[held] for some, held in zip(contents, places, strict=True) if some is not None]
                changed += int((hashed[0] != hashed[1]).sum())
    return ByKey(
        old=old.rows,
        new=new.rows,
        added=new.rows - kept,
        removed=old.rows - kept,
        moved=moved,
        changed=changed if alike else None,
    )


def _written(dataset: Keyed, path: Path) -> Words:
    """The hashes of all rows, in a memory-mapped file."""
    with path.open("wb") as file:
        for hashed in dataset.contents():
            file.write(hashed.data)
    return np.memmap(path, np.uint64, "r") if path.stat().st_size else np.zeros(0, np.uint64)


def _pairs(old: tuple[Words, Words], new: tuple[Words, Words]) -> tuple[Ints, Ints]:
    """The positions of rows with equal keys in both datasets."""
    hashed = np.concatenate([old[0], new[0]])
    places = np.concatenate([old[1], new[1]]).astype(np.int64)
    order = np.lexsort((hashed[:, 1], hashed[:, 0]))  # stable: if two are equal, the old one comes first
    same = np.flatnonzero((hashed[order[1:]] == hashed[order[:-1]]).all(axis=1))
    return places[order[same]], places[order[same + 1]]
