"""`recordspec.iterate`: batches of NumPy arrays in the one order of an epoch, without TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recordspec.errors import Problem, SpecError
from recordspec.reading.global_order import EpochOrder, Share, check_share, epoch_order, whole_numbers
from recordspec.reading.random_access import Rows
from recordspec.schema.ragged_array import divided
from recordspec.schema.schema import Schema
from recordspec.store.expand import Files


def iterate(
    files: Files | Rows,
    schema: Schema | None = None,
    *,
    batch: int,
    shuffle: bool = False,
    seed: int | None = None,
    epoch: int = 0,
    start: int = 0,
    worker: int = 0,
    workers: int = 1,
    drop_remainder: bool = False,
) -> Iterator[dict[str, Any]]:
    """Yields the batches of one epoch as values of NumPy, in the order that `read: {shuffle: {global: true}}`
    has in TensorFlow.

    Args:
        files: a path, a folder of shards, a pattern, several of these, or what `recordspec.open` returned.
        schema: the schema of the rows; by default that of the dataset.
        batch: the rows of a global batch, of all workers.
        shuffle: whether the rows are permuted, all of them; if not, they come in the order of the files.
        seed: of the permutation.
        epoch: the number of the epoch, from 0.
        start: the first global batch; those before it are skipped, and are not read.
        worker, workers: which of how many workers this is: it gets rows `worker, worker + workers, ...` of
            each global batch. For every number of workers the global batches are the same.
        drop_remainder: whether a smaller last batch is dropped.

    Returns:
        Dicts by feature: arrays `[n, ...]`; a RaggedArray or a SparseArray where rows differ.

    Raises:
        SpecError: an argument is invalid, or the last batch has fewer rows than there are workers.
        StoreError, RecordError: as for `recordspec.open`; a record is corrupt.

    Example:
        >>> batches = list(rs.iterate("data/points/train-*", batch=4, shuffle=True, seed=17))
        >>> [len(batch["x"]) for batch in batches]
        [4, 4, 4, 3]
    """
    batch, epoch, start, workers = whole_numbers(
        batch=(batch, 1), epoch=(epoch, 0), start=(start, 0), workers=(workers, 1)
    )
    worker, *_ = whole_numbers(worker=(worker, 0))
    if not shuffle:
        seed = None
    elif seed is None:
        raise SpecError(Problem(path=("seed",), expected="a seed to shuffle by", got="none"))
    else:
        (seed,) = whole_numbers(seed=(seed, -1 << 63))
    rows = files if isinstance(files, Rows) else Rows(files, schema)
    share = Share(rows=len(rows), batch=batch, drop_remainder=drop_remainder, worker=worker, workers=workers)
    check_share(share, ("workers",))
    return _batches(rows, share, epoch_order(len(rows), seed, epoch, rows.block_sizes), start)


def _batches(rows: Rows, share: Share, order: EpochOrder, start: int) -> Iterator[dict[str, Any]]:
    together = max(1, rows.decoded_chunk // -(-share.batch // share.workers))
    for step in range(start, share.steps, together):
        stop = min(step + together, share.steps)
        decoded = rows[order.rows_at(share.positions(step, stop))]
        sizes = share.sizes(step, stop)
        parts = {name: divided(value, sizes) for name, value in decoded.items()}
        for number in range(stop - step):
            yield {name: values[number] for name, values in parts.items()}
