"""In what two datasets differ: by the keys of their rows, or by their distributions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from recordspec.errors import RecordError
from recordspec.inspect.diff.distributions import Measure, compare, lacking
from recordspec.inspect.diff.keys import ByKey, Keyed, by_key
from recordspec.inspect.diff.schemas import Change, changes
from recordspec.inspect.stats.parts import ALL, Source, count
from recordspec.inspect.stats.tally import Tally
from recordspec.progress import Progress
from recordspec.spec.schema import Schema
from recordspec.store.shards import Files

__all__ = ["THRESHOLD", "ByKey", "Change", "Difference", "Measure", "changes", "diff"]

# A distance that is worth a word: one value in twenty would have to be another.
THRESHOLD = 0.05


@dataclass(frozen=True, kw_only=True)
class Difference:
    """In what two datasets differ.

    Attributes:
        schema: changes of their schemas, where both have one.
        keys: what became of their rows, where these were compared by key.
        measures: how far apart their features are, where they were compared by distribution.
    """

    schema: tuple[Change, ...] = ()
    keys: ByKey | None = None
    measures: tuple[Measure, ...] = ()

    @property
    def different(self) -> bool:
        """Whether a change of the schema breaks something, rows are others, or distances are large."""
        broken = any(change.breaks for change in self.schema)
        moved = self.keys is not None and self.keys.different
        return broken or moved or any(measure.different for measure in self.measures)


def diff(
    old: Files,
    new: Files,
    schema: Schema | None = None,
    *,
    threshold: float = THRESHOLD,
    keys: bool | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Difference:
    """Compares two datasets.

    Args:
        old, new: paths, patterns, or a folder.
        schema: what the records are; without one, that which lies beside each.
        threshold: the distance from which on a distribution is another.
        keys: whether rows are compared by their keys, True, or by distribution, False; None for by key where
            both are whole datasets with `keys.bin`.
        jobs, progress: as for `stats`.

    Raises:
        StoreError: without files, or without keys where they are wanted.
        RecordError: where records cannot be read.
    """
    sources = Source.of(old, schema), Source.of(new, schema)
    known = [source.schema for source in sources]
    changed = changes(known[0], known[1]) if known[0] is not None and known[1] is not None else ()
    keyed = [_keyed(source) for source in sources]
    if keys is not False and keyed[0] is not None and keyed[1] is not None:
        return Difference(schema=changed, keys=by_key(keyed[0], keyed[1]))
    if keys:
        for source, one in zip(sources, keyed, strict=True):
            if one is None:
                raise source.without_keys()
    counted = [_whole(count(source, jobs, progress)) for source in sources]
    return Difference(schema=changed, measures=tuple(_measures(counted[0], counted[1], threshold)))


def _keyed(source: Source) -> Keyed | None:
    """The dataset, if these are all of its files, and its rows have keys."""
    manifest = source.manifest
    if manifest is None:
        return None
    if manifest.files != {path.name for path in source.paths}:
        return None
    blocks = None if manifest.block is None else source.schema
    keyed = Keyed(folder=source.paths[0].parent, manifest=manifest, blocks=blocks)
    return keyed if keyed.whole else None


def _whole(counted: dict[str, Tally]) -> dict[str, Tally]:
    """Raises RecordError where a record could not be read: what it held is not known."""
    problems = [problem for tally in counted.values() for problem in tally.problems]
    if problems:
        raise RecordError(problems)
    return counted


def _measures(old: Mapping[str, Tally], new: Mapping[str, Tally], threshold: float) -> Iterator[Measure]:
    """Split by split; if they have none in common, all together."""
    if old.keys().isdisjoint(new):
        yield from compare(ALL, _together(old), _together(new), threshold)
        return
    for split in dict.fromkeys((*old, *new)):
        if split in old and split in new:
            yield from compare(split, old[split], new[split], threshold)
        else:
            yield lacking(split, f"no such split in the {'new' if split in old else 'old'} one")


def _together(counted: Mapping[str, Tally]) -> Tally:
    together = Tally()
    for tally in counted.values():
        together.merge(tally)
    return together
