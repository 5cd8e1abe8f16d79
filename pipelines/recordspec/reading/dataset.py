"""The recipe: shards to decoded batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from recordspec._tf import tf
from recordspec.errors import Problem, SpecError
from recordspec.reading import stages
from recordspec.reading.options import Interleave, Read
from recordspec.reading.plan import Share, rows_in
from recordspec.spec.options import from_python
from recordspec.spec.schema import Schema
from recordspec.store.shards import Files, expand

Function = Callable[..., Any]


def read(
    schema: Schema,
    files: Files,
    *,
    batch: Any = None,
    shuffle: Any = None,
    seed: int | None = None,
    map: Function | None = None,  # noqa: A002  what tf.data calls it
    **options: Any,
) -> Any:
    """A tf.data.Dataset of decoded records: dicts from feature names to tensors.

    Args:
        schema: what the records are.
        files: a path, a pattern, a folder of shards, or several of these. Compression is recognised.
        batch: records in a batch, or a `Batch`; without it single records.
        shuffle: records in the shuffle buffer, or a `Shuffle`; needs a seed.
        seed: of the shuffle.
        map: a function on each decoded element.
        options: the other fields of `Read`: interleave, cache, repeat, prefetch, deterministic.

    Returns:
        A plain Dataset, whose cardinality is known where a manifest lies beside the files.

    Raises:
        SpecError: an option is wrong.
        StoreError: no such files, or they are not what their manifest says, or of another spec.
    """
    if isinstance(shuffle, int) and not isinstance(shuffle, bool):
        if seed is None:
            hint = "the order should be one that can be had again"
            raise SpecError(Problem(path=("seed",), expected="a seed to shuffle by", got="none", hint=hint))
        shuffle = {"buffer": shuffle, "seed": seed}
    elif seed is not None:
        hint = "give shuffle as a number of records"
        raise SpecError(Problem(path=("shuffle",), expected="a buffer for the seed", got="none", hint=hint))
    how = from_python(Read, {"batch": batch, "shuffle": shuffle, **options})
    return build(how, schema, expand(files), map=map)


def build(
    how: Read,
    schema: Schema,
    paths: tuple[Path, ...],
    *,
    map: Function | None = None,  # noqa: A002
    share: Share | None = None,
) -> Any:
    """Decoded batches, in an order fixed by `how` and `paths`.

    With `share`, what one worker of several gets.
    """
    mixed = how.interleave or (Interleave() if how.shuffle else None)
    rows = rows_in(paths, schema, share)
    records = stages.records(paths, how.shuffle, mixed, share, deterministic=how.deterministic)
    if how.cache == "memory":
        records = records.cache()
    if how.shuffle:
        records = stages.shuffle(records, how.shuffle)
    if how.repeat != 1:
        records = records.repeat(None if how.repeat == "forever" else how.repeat)
    if how.batch:
        records = stages.batch(records, how.batch)
    records = stages.known_cardinality(records, None if rows is None else how.batches(rows))
    decode = tf.autograph.experimental.do_not_convert(schema.decode)
    elements = stages.apply(records, decode, deterministic=how.deterministic)
    if map is not None:
        elements = stages.apply(elements, map, deterministic=how.deterministic)
    return elements if how.prefetch is None else stages.prefetch(elements, how.prefetch)


def per_replica(how: Read, replicas: int) -> Read:
    """The same, with the global batch divided among replicas. Raises SpecError if it does not divide."""
    if how.batch is None:
        raise SpecError(Problem(path=("read", "batch"), expected="a batch to divide", got="none"))
    if how.batch.size % replicas:
        expected = f"a batch that {replicas} replicas divide"
        raise SpecError(Problem(path=("read", "batch", "size"), expected=expected, got=str(how.batch.size)))
    return replace(how, batch=replace(how.batch, size=how.batch.size // replicas))
