"""The stages of a reading pipeline: functions from Dataset to Dataset."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

from recordspec._tf import tf
from recordspec.reading.options import Interleave
from recordspec.reading.order import Seeds, key_of, passes, plain, shuffled
from recordspec.reading.plan import Piece, Plan
from recordspec.wire.tfrecord import TF_COMPRESSION

Dataset = Any
Tensor = Any

# TFRecordDataset reads 256 KiB at once by default; larger requests cost nothing locally and save
# round trips elsewhere.
_READ_BUFFER = 1 << 20
# Files that are open at a time unless the options say otherwise.
_MOST_OPEN = 128


def records(plan: Plan, how: Interleave | None, seeds: Seeds | None, *, deterministic: bool) -> Dataset:
    """The serialized records of the plan's pieces: one piece after another, or mixed as `how` says.

    With seeds, the pieces come in another order.
    """
    pieces = plan.pieces
    alike = len({piece.compression for piece in pieces}) == 1
    if (how is None or len(pieces) == 1) and alike and _follow_each_other(pieces):
        return _in_turn(pieces)
    named = _named(pieces)
    if seeds is not None:
        named = shuffled(named, len(pieces), seeds.files)
    whole = all(piece.count is None for piece in pieces)

    def of_piece(path: Tensor, compression: Tensor, first: Tensor, count: Tensor) -> Dataset:
        found = tf.data.TFRecordDataset(path, compression, _READ_BUFFER)
        return found if whole else found.skip(first).take(count)

    return _mixed(named, of_piece, how, len(pieces), deterministic=deterministic)


def places(plan: Plan, how: Interleave | None, seeds: Seeds | None, *, deterministic: bool) -> Dataset:
    """What `records` gives, in its order, but of each the place of its row among those of all pieces.

    int64 `[]`; of a block the places of its first row and of its last, `[2]`. Nothing is read.
    """
    ends = list(accumulate((piece.rows or 0 for piece in plan.pieces), initial=0))
    named = tf.data.Dataset.from_tensor_slices(
        (tf.constant(ends[:-1], tf.int64), tf.constant(ends[1:], tf.int64))
    )
    if seeds is not None:
        named = shuffled(named, len(plan.pieces), seeds.files)

    def of_piece(start: Tensor, end: Tensor) -> Dataset:
        if plan.block is None:
            return tf.data.Dataset.range(start, end)
        firsts = tf.data.Dataset.range(start, end, plan.block)
        return firsts.map(plain(lambda first: tf.stack([first, tf.minimum(first + plan.block, end) - 1])))

    return _mixed(named, of_piece, how, len(plan.pieces), deterministic=deterministic)


def _follow_each_other(pieces: tuple[Piece, ...]) -> bool:
    """Whether no record is left out between the first that is read and the last."""
    return not any(piece.first for piece in pieces[1:]) and all(
        piece.count is None or not piece.cut for piece in pieces[:-1]
    )


def _in_turn(pieces: tuple[Piece, ...]) -> Dataset:
    """One dataset of all the files: a flat_map over them costs a fifth more a record."""
    names = [str(piece.path) for piece in pieces]
    found = tf.data.TFRecordDataset(names, TF_COMPRESSION[pieces[0].compression], _READ_BUFFER)
    if all(piece.count is None for piece in pieces):
        return found
    return found.skip(pieces[0].first).take(sum(piece.count or 0 for piece in pieces))


def _named(pieces: tuple[Piece, ...]) -> Dataset:
    """The path of each piece, its compression, its first record, and how many it has (-1: all)."""
    columns = (
        [str(piece.path) for piece in pieces],
        [TF_COMPRESSION[piece.compression] for piece in pieces],
        tf.constant([piece.first for piece in pieces], tf.int64),
        tf.constant([-1 if piece.count is None else piece.count for piece in pieces], tf.int64),
    )
    return tf.data.Dataset.from_tensor_slices(columns)


def _mixed(
    named: Dataset,
    of_piece: Callable[..., Dataset],
    how: Interleave | None,
    pieces: int,
    *,
    deterministic: bool,
) -> Dataset:
    """The records of all pieces: `of_piece` makes those of one, of what is named of it."""
    if how is None:
        return named.flat_map(plain(of_piece))
    cycle = min(pieces, _MOST_OPEN) if how.cycle == "auto" else how.cycle
    if how.parallel is None:
        return named.interleave(plain(of_piece), cycle_length=cycle, block_length=how.block)
    calls = tf.data.AUTOTUNE if how.parallel == "auto" else min(how.parallel, cycle)
    # Batch inside the interleave: handing over single records between threads costs 4x.
    blocks = named.interleave(
        plain(lambda *piece: of_piece(*piece).batch(how.block)),
        cycle_length=cycle,
        num_parallel_calls=calls,
        deterministic=deterministic,
    )
    return blocks.unbatch()


def known_cardinality(elements: Dataset, count: int | None) -> Dataset:
    """The same elements, of which tf.data knows how many there are; of batches it costs next to nothing."""
    return elements if count is None else elements.apply(tf.data.experimental.assert_cardinality(count))


def cut_short(elements: Dataset, count: int, missing: int) -> Dataset:
    """What has `count` elements, said to tf.data, but for the first iteration, in which so many are missing.

    tf.data knows no other way to state a cardinality that an iteration falls short of: a part of what is said
    to have no end, chosen by a dataset that ends.
    """
    first = key_of(0)

    def choices(key: Tensor) -> Dataset:
        left = tf.where(tf.reduce_all(key == first), tf.constant(count - missing, tf.int64), count)
        return tf.data.Dataset.from_tensors(tf.zeros([], tf.int64)).repeat(left)

    endless = known_cardinality(elements, tf.data.INFINITE_CARDINALITY)
    chosen = passes(0, 1).flat_map(plain(choices))
    return tf.data.Dataset.choose_from_datasets([endless], chosen, stop_on_empty_dataset=False).take(count)


def distributed(elements: Dataset, service: str) -> Dataset:
    """Made by the workers of a tf.data service, each file by one of them, in the order of their arrival."""
    policy = tf.data.experimental.service.ShardingPolicy.DYNAMIC
    return elements.apply(tf.data.experimental.service.distribute(processing_mode=policy, service=service))


def apply(elements: Dataset, function: Callable[..., Any], *, deterministic: bool) -> Dataset:
    """A function on every element, in parallel."""
    return elements.map(function, num_parallel_calls=tf.data.AUTOTUNE, deterministic=deterministic)


def prefetch(elements: Dataset, count: Any) -> Dataset:
    """Made ahead, while the model is busy."""
    return elements.prefetch(tf.data.AUTOTUNE if count == "auto" else count)
