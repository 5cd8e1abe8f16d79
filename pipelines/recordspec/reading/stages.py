"""The stages of a reading pipeline: functions from Dataset to Dataset."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from recordspec._tf import Dataset, tf
from recordspec.errors import Problem, StoreError
from recordspec.locations import absolute
from recordspec.order.read_options import Interleave, address_of
from recordspec.order.read_plan import Plan
from recordspec.reading.seeds import Seeds, pass_seed, passes, permuted
from recordspec.reading.staged_shards import records_of_copies
from recordspec.reading.transformations import (
    CALLS,
    MOST_CALLS,
    READ_BUFFER,
    flat_map,
    interleave,
    tfrecord_dataset,
)
from recordspec.schema.tensors import Tensor, without_autograph
from recordspec.store.staging import StagingFolder
from recordspec.wire.compression import CODECS

# The number of batches made ahead: one waits while another is made.
_AHEAD = 2
# Seconds in which a dispatcher must accept a connection.
_CONNECT_SECONDS = 10.0
# The most files that are open at a time, unless the options state a cycle.
MOST_OPEN = 128


def records(
    plan: Plan,
    options: Interleave | None,
    seeds: Seeds | None,
    *,
    deterministic: bool,
    staging: StagingFolder | None = None,
) -> Dataset:
    """The serialized records of a plan: string `[]`, or `[k]` if records that are not large are interleaved.

    With seeds, the pieces are shuffled.
    """
    if staging is not None:
        return _staged(plan, options, seeds, staging, deterministic=deterministic)
    pieces = plan.pieces
    # The paths are absolute, as the workers of a service run in other folders.
    names = [str(absolute(piece.path)) for piece in pieces]
    compressions = [CODECS[piece.compression].tensorflow for piece in pieces]
    # Whether the pieces follow each other without a gap.
    follow = not any(piece.first for piece in pieces[1:]) and all(
        piece.count is None or not piece.cut for piece in pieces[:-1]
    )
    if (options is None or len(pieces) == 1) and len(set(compressions)) == 1 and follow:
        # One dataset of all the files: a flat_map over them costs a fifth more a record.
        rows = tf.data.TFRecordDataset(names, compressions[0], READ_BUFFER)
        if all(piece.count is None for piece in pieces):
            return rows
        return rows.skip(pieces[0].first).take(sum(piece.count or 0 for piece in pieces))
    columns = (
        tf.constant(names),
        tf.constant(compressions),
        tf.constant([piece.first for piece in pieces], tf.int64),
        tf.constant([-1 if piece.count is None else piece.count for piece in pieces], tf.int64),
    )

    def of_piece(path: Tensor, compression: Tensor, first: Tensor, count: Tensor) -> Dataset:
        return tfrecord_dataset(path, compression).skip(first).take(count)

    return _mixed(_in_order(columns, seeds), of_piece, options, plan, deterministic=deterministic)


def _staged(
    plan: Plan, options: Interleave | None, seeds: Seeds | None, folder: StagingFolder, *, deterministic: bool
) -> Dataset:
    """The records of a plan whose files are in an object store."""
    order = tf.range(len(plan.pieces), dtype=tf.int64)
    order = order if seeds is None else permuted(order, seeds.files)
    return records_of_copies(
        plan.pieces,
        order,
        folder,
        lambda named, of_piece: _mixed(named, of_piece, options, plan, deterministic=deterministic),
    )


def _in_order(columns: tuple[Tensor, ...], seeds: Seeds | None) -> Dataset:
    """A dataset with an element for each row of the columns, shuffled by the seed of files."""
    if seeds is not None:
        order = permuted(tf.range(tf.size(columns[0])), seeds.files)
        columns = tuple(tf.gather(column, order) for column in columns)
    return tf.data.Dataset.from_tensor_slices(columns)


def _mixed(
    named: Dataset,
    of_piece: Callable[..., Dataset],
    options: Interleave | None,
    plan: Plan,
    *,
    deterministic: bool,
) -> Dataset:
    """The datasets that `of_piece` returns for the pieces, concatenated, or interleaved by `options`."""
    if options is None:
        return flat_map(named, of_piece)
    cycle = min(len(plan.pieces), MOST_OPEN) if options.cycle == "auto" else options.cycle
    calls = min(MOST_CALLS if options.parallel == "auto" else options.parallel or 0, cycle) or None
    read = of_piece if plan.large else lambda *piece: of_piece(*piece).batch(options.block)
    block = options.block if plan.large else 1
    if calls is None:
        return interleave(named, read, cycle=cycle, block=block)
    return named.interleave(without_autograph(read), cycle, block, calls, deterministic)


def known_cardinality(elements: Dataset, count: int) -> Dataset:
    """States the cardinality of a dataset; for batches, that costs next to nothing."""
    return elements.apply(tf.data.experimental.assert_cardinality(count))


def numbered(elements: Dataset, first: Any, seed: Tensor) -> Dataset:
    """Triples of the seed, int64 `[2]`, a number from `first` on, int64 `[]`, and the element."""
    numbers = tf.data.Dataset.range(first, tf.int64.max)
    return tf.data.Dataset.zip((tf.data.Dataset.from_tensors(seed).repeat(), numbers, elements))


def cut_short(elements: Dataset, count: int, missing: int) -> Dataset:
    """A dataset of cardinality `count`; its first iteration has `missing` elements fewer.

    tf.data has only one way to state a cardinality that an iteration does not reach: the elements come from a
    dataset that is declared infinite, and a dataset of choices ends.
    """
    first = pass_seed(0)

    def choices(of_pass: Tensor) -> Dataset:
        left = tf.where(tf.reduce_all(of_pass == first), tf.constant(count - missing, tf.int64), count)
        return tf.data.Dataset.from_tensors(tf.zeros([], tf.int64)).repeat(left)

    endless = known_cardinality(elements, tf.data.INFINITE_CARDINALITY)
    chosen = flat_map(passes(0, 1), choices)
    return tf.data.Dataset.choose_from_datasets([endless], chosen, stop_on_empty_dataset=False).take(count)


def apply(elements: Dataset, function: Callable[..., Any], *, deterministic: bool) -> Dataset:
    """Maps a user's function over the elements, in parallel."""
    return elements.map(function, num_parallel_calls=CALLS, deterministic=deterministic)


def prefetch(elements: Dataset, count: Any) -> Dataset:
    """Prefetches elements while the model is busy."""
    return elements.prefetch(_AHEAD if count == "auto" else count)


def distributed(elements: Dataset, service: str) -> Dataset:
    """Reads elements by the workers of a tf.data service: each file by one worker, in order of arrival.

    Raises StoreError if nothing listens at the address: TensorFlow would retry for ever, silently.
    """
    try:
        socket.create_connection(address_of(service), _CONNECT_SECONDS).close()
    except OSError as error:
        expected = "the dispatcher of a tf.data service"
        hint = "start it first"
        got = error.strerror or str(error)
        raise StoreError(Problem(where=service, expected=expected, got=got, hint=hint)) from None
    policy = tf.data.experimental.service.ShardingPolicy.DYNAMIC
    return elements.apply(tf.data.experimental.service.distribute(processing_mode=policy, service=service))


def untuned(elements: Dataset) -> Dataset:
    """The dataset without autotuning, a thread that times all stages to choose parallelism and buffers.

    The thread takes 12 to 22 % of the CPU time of light pipelines, and dropping an iterator often waits for
    the thread: 3 seconds after 8 seconds of reading (TensorFlow 2.16 and 2.21).
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return elements.with_options(options)
