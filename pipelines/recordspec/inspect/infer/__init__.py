"""A schema of files that have none: by what stands in them, or by a schema of another language."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from recordspec.errors import Problem, RecordError, SpecError
from recordspec.inspect.infer.features import Found, feature_of
from recordspec.inspect.stats.parts import Source, count
from recordspec.inspect.stats.rows import read
from recordspec.inspect.stats.tally import Tally
from recordspec.progress import Progress
from recordspec.spec.features import Feature
from recordspec.spec.schema import Schema
from recordspec.store.shards import Files

__all__ = ["Inferred", "infer"]


@dataclass(frozen=True, kw_only=True)
class Inferred:
    """A schema, and what is to be said of it.

    Attributes:
        rows: that were looked at; None where a schema was translated.
    """

    schema: Schema
    notes: tuple[str, ...]
    rows: int | None


def infer(
    files: Files,
    name: str,
    *,
    sample: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Inferred:
    """A schema with which these TFRecords are read.

    Args:
        name: of the schema.
        sample: look at so many records of each file, from its start; None for all. What only others have
            is then missing from the schema.
        jobs: processes that share the work; None for one a processor where there is much to read.

    Raises:
        StoreError: no such files.
        RecordError: a record is not whole, or none has any features.
    """
    source = Source.of(files, None)
    tally = _sampled(source, sample) if sample is not None else _whole(source, jobs, progress)
    if tally.problems:
        raise RecordError(tally.problems)
    found = list(_found(tally))
    features = [(one, feature) for one in found if (feature := feature_of(one)) is not None]
    notes = [note for one in found for note in one.notes]
    if tally.conflicts:
        count = f"{tally.conflicts:,} of {tally.rows:,} rows"
        notes.append(f"TensorFlow refuses {count}, or reads other values: `check` tells which")
    if not features:
        expected, where = "records with features", str(source.paths[0])
        got = "other messages, which `head` shows" if tally.foreign == tally.rows > 0 else "none"
        raise RecordError(Problem(where=where, expected=expected, got=got, hint="; ".join(notes[:3])))
    schema = _schema(name, features)
    return Inferred(schema=schema, notes=(*notes, *_repeated(tally)), rows=tally.rows)


def _whole(source: Source, jobs: int | None, progress: Progress | None) -> Tally:
    """What is counted of all splits."""
    return reduce(_merged, count(source, jobs, progress).values())


def _merged(one: Tally, other: Tally) -> Tally:
    one.merge(other)
    return one


def _sampled(source: Source, rows: int) -> Tally:
    """What is counted of the first records of each file."""
    tally, left = Tally(), dict.fromkeys(source.paths, rows)
    for part in source.parts:
        for found in read(part) if left[part.path] > 0 else ():
            if isinstance(found, Problem):
                tally.add_broken(found)
                break
            some = found.first(left[part.path])
            tally.add(some)
            left[part.path] -= len(some.starts)
            if left[part.path] <= 0:
                break
    return tally


def _found(tally: Tally) -> list[Found]:
    """The keys, each with a name of its own."""
    found: list[Found] = []
    names = {key for sequence, key in tally.features if not sequence}
    for (sequence, key), counted in sorted(tally.features.items()):
        name = key
        while sequence and name in names:
            name += "_steps"
        names.add(name)
        rows = sum(counted.kinds.values()) if sequence else tally.rows
        without = tally.rows - counted.present if sequence else 0
        found.append(
            Found(name=name, key=key, sequence=sequence, counted=counted, rows=rows, without_steps=without)
        )
    return found


def _schema(name: str, features: list[tuple[Found, Feature]]) -> Schema:
    of_steps = tuple(feature for found, feature in features if found.sequence)
    others = tuple(feature for found, feature in features if not found.sequence)
    try:
        if not of_steps:
            return Schema(name=name, features=others)
        return Schema(name=name, record="sequence_example", context=others, sequence=of_steps)
    except SpecError as error:
        raise RecordError(error.problems) from error


def _repeated(tally: Tally) -> list[str]:
    return [
        f"{key}: twice in {count:,} records, of which the last counts"
        for key, count in tally.repeated.items()
    ]
