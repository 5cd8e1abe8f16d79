"""What is done with rows between reading and decoding: some are left out, or batched with their like.

Rows stay serialized, or as columns of blocks (see layouts.py); only the features that decide are decoded
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from recordspec._tf import tf
from recordspec.errors import Problem, SpecError
from recordspec.reading.layouts import Layout
from recordspec.reading.options import Batch, Bucket
from recordspec.reading.order import chances
from recordspec.reading.pools import Held, taken
from recordspec.reading.transformations import CALLS, map_elements
from recordspec.spec.decoder import batch_spec
from recordspec.spec.schema import Schema

Dataset = Any
Tensor = Any


def kept(rows: Dataset, layout: Layout, schema: Schema, keep: Callable[..., Any]) -> Dataset:
    """The rows for which `keep` says so: a function of the decoded batch that gives a bool `[n]`."""
    chosen = layout.only(names_asked(schema, keep))

    def some(held: Held) -> Held:
        return taken(held, tf.where(keep(chosen.decode(held)))[:, 0])

    return rows.map(some, CALLS, deterministic=True)  # `keep` may have Python to convert


def balanced(
    rows: Dataset, layout: Layout, label: str, shares: Sequence[float], seed: Tensor | None
) -> Dataset:
    """Of the rows of each class a share, which is drawn for each row by its place."""
    classes = layout.only([label])
    kept_of = tf.constant(shares, tf.float64)

    def some(number: Tensor, held: Held) -> Held:
        found = classes.decode(held)[label]
        drawn = chances(tf.size(found), seed, number)
        return taken(held, tf.where(drawn < tf.gather(kept_of, found))[:, 0])

    return map_elements(rows.enumerate(), some, CALLS)


def names_asked(schema: Schema, function: Callable[..., Any]) -> tuple[str, ...]:
    """The features that a filter looks at. It is traced once to see, and what it gives is checked."""
    asked: dict[str, None] = {}

    class Asked(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            value = super().__getitem__(name)
            asked[name] = None
            return value

    def trace(features: Mapping[str, Any]) -> Any:
        return function(Asked(features))

    try:
        mask = (
            tf.function(trace, autograph=False).get_concrete_function(batch_spec(schema)).structured_outputs
        )
    except KeyError as error:
        known = ", ".join(schema.outputs)
        raise SpecError(Problem(path=("filter",), expected=f"a feature: {known}", got=str(error))) from None
    if getattr(mask, "dtype", None) != tf.bool or mask.shape.rank != 1:
        got = f"{mask.dtype.name} {mask.shape}" if hasattr(mask, "dtype") else repr(mask)
        raise SpecError(Problem(path=("filter",), expected="a bool for each row, [n]", got=got))
    return tuple(asked) or schema.outputs


def bucketed(rows: Dataset, layout: Layout, bucket: Bucket, batch: Batch) -> Dataset:
    """Batches of rows whose lengths are between the same two boundaries."""
    measured = layout.only([bucket.by])
    boundaries = tf.constant(bucket.boundaries, tf.int64)

    def with_bucket(held: Held) -> tuple[Held, Tensor]:
        lengths = lengths_of(measured.decode(held)[bucket.by], bucket.by)
        return held, tf.searchsorted(boundaries, lengths, side="right", out_type=tf.int64)

    def one_bucket(_: Tensor, window: Dataset) -> Dataset:
        return window.batch(batch.size, batch.drop_remainder).map(lambda held, _: held)

    grouped = map_elements(rows, with_bucket, CALLS).unbatch()
    return grouped.group_by_window(lambda _, number: number, one_bucket, batch.size)


def lengths_of(value: Any, name: str) -> Tensor:
    """How many items each row has, int64 `[n]`."""
    if isinstance(value, tf.RaggedTensor):
        return tf.cast(value.row_lengths(), tf.int64)
    if isinstance(value, tf.sparse.SparseTensor):
        return tf.math.bincount(
            tf.cast(value.indices[:, 0], tf.int32),
            minlength=tf.cast(value.dense_shape[0], tf.int32),
            dtype=tf.int64,
        )
    if value.dtype == tf.string and value.shape.rank == 1:
        return tf.cast(tf.strings.length(value), tf.int64)
    if value.dtype.is_integer and value.shape.rank == 1:
        return tf.cast(value, tf.int64)
    expected = "a ragged or sparse feature, a text, or a number that is a length"
    raise SpecError(
        Problem(path=("read", "bucket", "by"), expected=expected, got=f"`{name}`, {value.dtype.name}")
    )
