"""Files in parts that are counted apart, by several processes if there is much, and put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recordspec.errors import Problem, RecordError, StoreError
from recordspec.executors import executor
from recordspec.inspect.apart import are_blocks
from recordspec.inspect.shares import jobs_for, stretches
from recordspec.inspect.stats.rows import Part
from recordspec.inspect.stats.tally import Key, Tally, count_part
from recordspec.progress import Progress
from recordspec.store.files import schema_beside
from recordspec.store.manifest import KEYS_FILE, SCHEMA_FILE, Manifest, find
from recordspec.store.shards import Files, expand, parse_name

if TYPE_CHECKING:
    from recordspec.spec.schema import Schema

# The split of files that say nothing of one.
ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Source:
    """Files, and what is known of them.

    Attributes:
        paths: in order.
        manifest: of the folder where they lie; None without one.
        schema: what the records are; None where nobody says so.
    """

    paths: tuple[Path, ...]
    manifest: Manifest | None
    schema: Schema | None

    @classmethod
    def of(cls, files: Files, schema: Schema | None) -> Source:
        """Raises StoreError without files, and for blocks of rows of which nobody says what they are."""
        paths = expand(files)
        manifest = find(paths)
        folder = paths[0].parent
        schema = schema_beside(folder, manifest) if schema is None else schema
        if schema is None and manifest is not None and manifest.block is not None:
            where, hint = folder / SCHEMA_FILE, "blocks are taken apart by their schema: give it with --spec"
            raise StoreError(Problem(where=str(where), expected="the schema", got="no such file", hint=hint))
        return cls(paths=paths, manifest=manifest, schema=schema)

    @property
    def splits(self) -> dict[Path, str]:
        """The split of each file: by the manifest, or else by its name."""
        known = {} if self.manifest is None else self.manifest.splits
        of_file = {shard.file: split for split, shards in known.items() for shard in shards}
        names = {path: parse_name(path.name) for path in self.paths}
        return {
            path: of_file.get(path.name, ALL if name is None else name.split) for path, name in names.items()
        }

    @property
    def parts(self) -> Iterator[Part]:
        """All files, in order."""
        blocks, splits = self.schema if self._in_blocks else None, self.splits
        for file, path in enumerate(self.paths):
            for stretch in stretches(path):
                yield Part(path=path, file=file, split=splits[path], stretch=stretch, blocks=blocks)

    @property
    def _in_blocks(self) -> bool:
        try:
            return are_blocks(self.paths[0], self.manifest)
        except RecordError:  # what is broken is told when it is counted
            return False

    def without_keys(self) -> StoreError:
        """The error for files that are not compared by key."""
        hint = "datasets that were built with unique keys have it; give the whole folder"
        where = str(self.paths[0].parent)
        return StoreError(
            Problem(where=where, expected=f"`{KEYS_FILE}` with the keys of all rows", got="none", hint=hint)
        )


def count(source: Source, jobs: int | None = None, progress: Progress | None = None) -> dict[str, Tally]:
    """What is counted of each split, the same for any number of `jobs`; None for one a processor."""
    parts, jobs = list(source.parts), jobs_for(source.paths, jobs)
    found = _counted(parts, {}, jobs, progress)
    # Of keys beyond the first, a part may have dropped one that came first in another: so their values are
    # counted once more, now that it is known which they are.
    several = {split for split, many in Counter(part.split for part in parts).items() if many > 1}
    first = {
        split: frozenset(tally.features)
        for split, tally in found.items()
        if tally.crowded and split in several
    }
    anew = [part for part in parts if part.split in first]
    for split, tally in _counted(anew, first, jobs, progress).items():
        tally.crowded = True
        found[split] = tally
    return found


def _counted(
    parts: list[Part], only: Mapping[str, frozenset[Key]], jobs: int, progress: Progress | None
) -> dict[str, Tally]:
    """What is counted of the parts, in their order, by split."""
    found: dict[str, Tally] = {}
    tasks = ((part, only.get(part.split)) for part in parts)
    with executor(min(jobs, max(1, len(parts))), "counting") as pool:
        for part, tally in zip(parts, pool.map(count_part, tasks), strict=True):
            if progress is not None:
                progress.advance(tally.rows, tally.sizes.total)
            if part.split in found:
                found[part.split].merge(tally)
            else:
                found[part.split] = tally
    return found
