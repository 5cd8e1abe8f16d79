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

    def records(file: Any, compression: Any, number: Any) -> Dataset:
        found = tf.data.TFRecordDataset(file, compression, _READ_BUFFER)
        if share is None:
            return found
        # Within each file, so that no order of the files lets two workers have one record.
        return found.shard(share.workers, (share.worker + number) % share.workers)

    if how is None:
        return named.flat_map(records)
    if how.parallel is None:
        return named.interleave(records, cycle_length=how.cycle, block_length=how.block)
    calls = tf.data.AUTOTUNE if how.parallel == "auto" else how.parallel
    # Batch inside the interleave: handing over single records between threads costs 4x.
    blocks = named.interleave(
        lambda *file: records(*file).batch(how.block),
        cycle_length=how.cycle,
        num_parallel_calls=calls,
        deterministic=deterministic,
    )
    return blocks.unbatch()


def known_cardinality(records: Dataset, rows: int | None) -> Dataset:
    """The same records, of which tf.data knows how many there are."""
    return records if rows is None else records.apply(tf.data.experimental.assert_cardinality(rows))


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
