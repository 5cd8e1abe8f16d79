"""The stages of a reading pipeline: functions from Dataset to Dataset."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from recordspec._tf import tf
from recordspec.reading.options import Batch, Interleave, Shuffle
from recordspec.reading.plan import Share
from recordspec.wire.tfrecord import TF_COMPRESSION, compression_of

Dataset = Any

# TFRecordDataset reads 256 KiB at once by default; larger requests cost nothing locally and save
# round trips elsewhere.
_READ_BUFFER = 1 << 20


def records(
    paths: tuple[Path, ...],
    order: Shuffle | None,
    how: Interleave | None,
    share: Share | None,
    *,
    deterministic: bool,
) -> Dataset:
    """The serialized records of files; of a share, its own alone."""
    compressions = {TF_COMPRESSION[compression_of(path)] for path in paths}
    in_turn = how is None or len(paths) == 1
    if in_turn and share is None and len(compressions) == 1:
        # One dataset of all the files: a flat_map over them costs a fifth more a record.
        return tf.data.TFRecordDataset(list(map(str, paths)), compressions.pop(), _READ_BUFFER)
    return interleave(files(paths, order), how, share, deterministic=deterministic)


def files(paths: tuple[Path, ...], shuffle: Shuffle | None) -> Dataset:
    """Each file with its compression, recognised by the file's first bytes, and its number."""
    compressions = [TF_COMPRESSION[compression_of(path)] for path in paths]
    numbers = tf.range(len(paths), dtype=tf.int64)
    named = tf.data.Dataset.from_tensor_slices((list(map(str, paths)), compressions, numbers))
    if shuffle is None or len(paths) == 1:
        return named
    return named.shuffle(len(paths), seed=shuffle.seed, reshuffle_each_iteration=True)


def interleave(
    named: Dataset, how: Interleave | None, share: Share | None, *, deterministic: bool
) -> Dataset:
    """The serialized records of files: one file after another, or mixed; of a share, its own alone."""

    def of_file(file: Any, compression: Any, number: Any) -> Dataset:
        found = tf.data.TFRecordDataset(file, compression, _READ_BUFFER)
        if share is None:
            return found
        # Within each file, so that no order of the files lets two workers have one record.
        return found.shard(share.workers, (share.worker + number) % share.workers)

    if how is None:
        return named.flat_map(of_file)
    if how.parallel is None:
        return named.interleave(of_file, cycle_length=how.cycle, block_length=how.block)
    calls = tf.data.AUTOTUNE if how.parallel == "auto" else how.parallel
    # Batch inside the interleave: handing over single records between threads costs 4x.
    blocks = named.interleave(
        lambda *file: of_file(*file).batch(how.block),
        cycle_length=how.cycle,
        num_parallel_calls=calls,
        deterministic=deterministic,
    )
    return blocks.unbatch()


def known_cardinality(elements: Dataset, count: int | None) -> Dataset:
    """The same elements, of which tf.data knows how many there are; of batches it costs next to nothing."""
    return elements if count is None else elements.apply(tf.data.experimental.assert_cardinality(count))


def shuffle(records: Dataset, how: Shuffle) -> Dataset:
    """Shuffled within a buffer. Before decoding: it holds bytes, not tensors."""
    return records.shuffle(how.buffer, seed=how.seed, reshuffle_each_iteration=True)


def batch(records: Dataset, how: Batch) -> Dataset:
    """Batched before decoding: parsing a batch costs a fifth of parsing its records."""
    return records.batch(how.size, drop_remainder=how.drop_remainder)


def apply(elements: Dataset, function: Callable[..., Any], *, deterministic: bool) -> Dataset:
    """A function on every element, in parallel."""
    return elements.map(function, num_parallel_calls=tf.data.AUTOTUNE, deterministic=deterministic)


def prefetch(elements: Dataset, count: Any) -> Dataset:
    """Made ahead, while the model is busy."""
    return elements.prefetch(tf.data.AUTOTUNE if count == "auto" else count)
