"""Finds files in an object store that interrupted builds or replaced datasets left behind."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from recordspec import remote
from recordspec.errors import Problem, SpecError
from recordspec.locations import Location
from recordspec.remote import ObjectStat, RemotePath
from recordspec.store.manifest import DATASET_FILES, FILE, INDEX_SUFFIXES, PIECES, manifest_in
from recordspec.store.shard_names import parse_name

_DAY = timedelta(days=1)
_STEMS = "|".join(re.escape(file.partition(".")[0]) for file in DATASET_FILES)
_OWN = re.compile(rf"({_STEMS})(-v\d+)?\.\w+")
# Information about a shard's records, which a build on Spark stores with the shard until its driver has read
# it.
_PIECE = re.compile(rf"\.[0-9a-f]{{12}}({'|'.join(map(re.escape, PIECES))})")


@dataclass(frozen=True, kw_only=True)
class Orphan:
    """A file that no manifest names.

    Attributes:
        file: its URL.
        bytes: its size.
        age: the seconds since it was written.
    """

    file: str
    bytes: int
    age: float


def sweep(place: Location, *, older_than: timedelta = _DAY, delete: bool = False) -> Iterator[Orphan]:
    """Yields the files of builds, in a folder of an object store and below it, that the manifest beside them
    does not name. With `delete`, deletes them.

    Files are recognized by their names and by the sha256 in their metadata; all others are kept. A running
    build has files that no manifest names yet, and a reader may use the manifest of a replaced dataset:
    `older_than` must be longer than either runs.

    Raises SpecError for a local path, StoreError if the store cannot be read or a manifest is invalid.
    """
    if isinstance(place, Path):
        hint = "the next local build clears an interrupted one"
        raise SpecError(Problem(where=str(place), expected="a URL", got="a local path", hint=hint))
    folders: dict[RemotePath, dict[str, ObjectStat]] = defaultdict(dict)
    for path, stat in remote.walk(place):
        folders[path.parent][path.name] = stat
    for folder, files in folders.items():
        # read after the files were listed, so that it names files published meanwhile
        for name in _orphans(folder, files, older_than.total_seconds()):
            if delete:
                (folder / name).unlink()
            yield Orphan(file=str(folder / name), bytes=files[name].st_size, age=files[name].age)


def _orphans(folder: RemotePath, files: dict[str, ObjectStat], seconds: float) -> list[str]:
    manifest = manifest_in(folder)
    named = {FILE}
    if manifest is not None:
        named |= {*manifest.files, *manifest.beside, *map(manifest.name_of, DATASET_FILES)}
    orphans = [
        name
        for name, stat in files.items()
        if name not in named and stat.age >= seconds and _is_ours(folder / name)
    ]
    indices = [f"{name}{suffix}" for name in orphans for suffix in INDEX_SUFFIXES.values()]
    return orphans + [name for name in indices if name in files]


def _is_ours(path: RemotePath) -> bool:
    if parse_name(_PIECE.sub("", path.name)) is None and not _OWN.fullmatch(path.name):
        return False
    there = remote.uploaded(path)
    return there is not None and there[0] is not None
