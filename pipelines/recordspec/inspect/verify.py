"""Whether files are whole: each length, each CRC, and what the manifest beside them says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, starmap
from pathlib import Path

from recordspec.errors import Problem, StoreError
from recordspec.inspect.beside import Found, differences, manifest_in
from recordspec.inspect.tally import Tally
from recordspec.progress import Progress
from recordspec.store.manifest import Manifest, Shard
from recordspec.store.shards import Files, expand, find_incomplete

# The manifest of a folder without one, and what is wrong with it.
_NONE: tuple[Manifest | None, list[Found]] = (None, [])


@dataclass(frozen=True, kw_only=True)
class Verified:
    """A file.

    Attributes:
        file: its path.
        tally: what was read of it; None of what is there besides shards, is missing, or cannot be read.
        problems: what its manifest says otherwise.
    """

    file: str
    tally: Tally | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.problems and (self.tally is None or not self.tally.losses)


def verify(files: Files, progress: Progress | None = None) -> Iterator[Verified]:
    """Reads files, every byte of them, and checks each length, each CRC, and what follows a bad length.

    Where a manifest lies beside a file, its size, hash and number of records are compared, too, and what
    else the manifest names: after the files come those in their folders that are missing, foreign, or
    changed. Of a folder or a pattern without a manifest, the names tell which are. Damage is found, not
    raised; so is a file that cannot be read.

    Raises StoreError where there is no file.
    """
    paths = expand(files, as_found=True)
    folders = {folder: manifest_in(folder) for folder in dict.fromkeys(path.parent for path in paths)}
    tallies = [Tally.of(path, folders[path.parent][0]) for path in paths]
    progress = progress or Progress(show=False)
    rows = [None if tally.shard is None else tally.shard.records for tally in tallies]
    progress.begin("verifying", None if None in rows else sum(row for row in rows if row is not None))
    others: dict[Path, tuple[Problem, ...]] = {}
    by_name = [(Path(problem.where), problem) for problem in find_incomplete(files)]
    unknown = [one for one in by_name if folders.get(one[0].parent, _NONE)[0] is None]  # else it tells
    for path, problem in chain(*starmap(_beside, folders.items()), unknown):
        others[path] = (*others.get(path, ()), problem)
    for tally in tallies:
        read = _verified(tally, progress)
        yield replace(read, problems=(*others.pop(tally.path, ()), *read.problems))
    for path, problems in others.items():
        yield Verified(file=str(path), problems=problems)


def _beside(folder: Path, read: tuple[Manifest | None, list[Found]]) -> list[Found]:
    manifest, problems = read
    return problems if manifest is None else [*problems, *differences(folder, manifest)]


def _verified(tally: Tally, progress: Progress) -> Verified:
    try:
        for _ in tally.read(progress):
            pass
    except StoreError as error:
        return Verified(file=str(tally.path), problems=error.problems)
    problems = () if tally.shard is None else tuple(_compared(tally, tally.shard))
    return Verified(file=str(tally.path), tally=tally, problems=problems)


def _compared(tally: Tally, shard: Shard) -> Iterator[Problem]:
    """What the manifest says otherwise. Where a length is bad, nobody knows how many records there are."""
    where, size = str(tally.path), tally.path.stat().st_size
    if size != shard.bytes:
        yield Problem(where=where, expected=f"{shard.bytes:,} bytes, as the manifest says", got=f"{size:,}")
    if tally.compression != tally.said:
        yield Problem(
            where=where, expected=f"compression {tally.said}, as the manifest says", got=tally.compression
        )
    if tally.reaches_end and (records := tally.records + tally.bad) != shard.records:
        expected = f"{shard.records:,} records, as the manifest says"
        yield Problem(where=where, expected=expected, got=f"{records:,}")
    if (needed := tally.file.records_needed) != shard.records:
        expected = f"{needed:,} records of {shard.rows:,} rows, as the manifest says"
        yield Problem(where=where, expected=expected, got=f"{shard.records:,}, as it also says")
    if tally.sha256 != shard.sha256:
        expected = f"sha256 {shard.sha256}, as the manifest says"
        yield Problem(where=where, expected=expected, got=tally.sha256)
