"""Filters rows, balances them by class and buckets them by length, between reading and decoding.

Rows stay serialized, or columns of blocks (see layouts.py). Only the features that select rows are decoded
here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from recordspec._tf import Dataset, tf
from recordspec.errors import Path as OptionPath
from recordspec.errors import Problem, SpecError, StoreError, nearest, one_of
from recordspec.locations import Location
from recordspec.order.read_options import MEASURED, Batch, Bucket
from recordspec.reading.layouts import DatasetLayout
from recordspec.reading.seeds import chances
from recordspec.reading.shuffle_buffer import SerializedRows, taken
from recordspec.reading.transformations import CALLS, map_elements
from recordspec.schema.decoder import batch_spec
from recordspec.schema.schema import Schema
from recordspec.schema.tensors import Tensor, without_autograph

Counts = tuple[int, ...]


def filtered(rows: Dataset, layout: DatasetLayout, schema: Schema, predicate: Callable[..., Any]) -> Dataset:
    """The rows to keep by `predicate`, a function from the decoded batch to bool `[n]`."""
    decode = without_autograph(layout.only(names_asked(schema, predicate)).decode)
    take = without_autograph(taken)

    def some(records: SerializedRows) -> SerializedRows:
        return take(records, tf.where(predicate(decode(records)))[:, 0])

    return rows.map(some, CALLS, deterministic=True)  # AutoGraph may have to convert `predicate`


def balanced(
    rows: Dataset, layout: DatasetLayout, label: str, keep_rates: Sequence[float], seed: Tensor | None
) -> Dataset:
    """Keeps rows of each class at its rate, and no row whose label is missing. The draw of a row depends only
    on the seed and its place.
    """
    classes = layout.only([label])
    kept_of = tf.constant(keep_rates, tf.float64)

    def some(number: Tensor, records: SerializedRows) -> SerializedRows:
        labels = classes.decode(records)[label]
        drawn = chances(tf.size(labels), seed, number)
        kept = tf.where(labels < 0, tf.zeros([], tf.float64), tf.gather(kept_of, tf.maximum(labels, 0)))
        return taken(records, tf.where(drawn < kept)[:, 0])

    return map_elements(rows.enumerate(), some, CALLS)


class _Asked(dict[str, Any]):
    """A dict of features that records the names that a function asks for, or all if not asked by name.

    Attributes:
        names: the names, in the order in which they were asked for.
    """

    def __init__(self, features: Mapping[str, Any]) -> None:
        super().__init__(features)
        self.names: dict[str, None] = {}

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        self.names[name] = None
        return value

    def __contains__(self, name: object) -> bool:
        if not super().__contains__(name):
            return False
        self.names[str(name)] = None
        return True

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if super().__contains__(name) else default


def _asking_for_all(method: str) -> Callable[..., Any]:
    def call(self: _Asked, *arguments: Any) -> Any:
        self.names |= dict.fromkeys(dict.keys(self))
        return getattr(dict, method)(self, *arguments)

    return call


# `dict(features)` and `f(**features)` call `keys` only if the class has an `__iter__` of its own.
for _method in (
    *("__iter__", "__reversed__", "__len__", "__eq__", "__ne__", "__or__", "__ror__", "__delitem__"),
    *("keys", "values", "items", "copy", "pop", "popitem", "setdefault"),
):
    setattr(_Asked, _method, _asking_for_all(_method))


def names_asked(schema: Schema, function: Callable[..., Any]) -> tuple[str, ...]:
    """The features that a filter uses, from one trace of it.

    Raises SpecError if the filter asks for an unknown feature, or does not return bool `[n]`.
    """
    asked: dict[str, None] = {}

    def trace(features: Mapping[str, Any]) -> Any:
        given = _Asked(features)
        mask = function(given)
        asked.update(given.names)
        return mask

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


def bucketed(
    rows: Dataset,
    layout: DatasetLayout,
    bucket: Bucket,
    batch: Batch,
    measure: Callable[[Tensor], Tensor] | None,
) -> Dataset:
    """Batches rows by length: the lengths of a batch lie between the same two boundaries.

    Args:
        measure: a function from decoded values to their lengths, int64 `[n]`; None for `lengths_of`.
    """
    measured = layout.only([bucket.by])
    boundaries = tf.constant(bucket.boundaries, tf.int64)

    def with_bucket(records: SerializedRows) -> tuple[SerializedRows, Tensor]:
        value = measured.decode(records)[bucket.by]
        lengths = lengths_of(value, bucket.by) if measure is None else measure(value)
        return records, tf.searchsorted(boundaries, lengths, side="right", out_type=tf.int64)

    @without_autograph
    def one_bucket(_: Tensor, window: Dataset) -> Dataset:
        batches = window.batch(batch.size, batch.drop_remainder)
        return batches.map(without_autograph(lambda records, _: records))

    grouped = map_elements(rows, with_bucket, CALLS).unbatch()
    return grouped.group_by_window(without_autograph(lambda _, number: number), one_bucket, batch.size)


def lengths_of(value: Any, name: str) -> Tensor:
    """The length of each row, int64 `[n]`: the number of items or bytes, or the value of an integer."""
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
    raise SpecError(
        Problem(path=("read", "bucket", "by"), expected=MEASURED, got=f"`{name}`, {value.dtype.name}")
    )


def class_counts(
    label: str, schema: Schema, known: Mapping[str, Counts], data: Location, option: OptionPath
) -> Counts:
    """The number of rows of each class of a label, by index.

    `option` is the path of the option that names the label. Raises SpecError if the feature is not a label
    with one class for each row, StoreError if the manifest has no counts.
    """
    if problems := list(check_label(label, schema, option)):
        raise SpecError(problems)
    if label not in known:
        expected = f"the rows of every class of `{label}` in the manifest"
        hint = "build the dataset again, or count them in adopted files: `recordspec adopt --check`"
        raise StoreError(Problem(where=str(data), path=option, expected=expected, got="none", hint=hint))
    return known[label]


def check_label(label: str, schema: Schema, option: OptionPath) -> Iterator[Problem]:
    """Yields the problem of a name that is not a label with one class for each row."""
    if label not in schema.classes:
        expected = one_of(schema.classes) if schema.classes else "a schema with a label, one for each row"
        hint = nearest(label, schema.classes)
        yield Problem(path=option, expected=expected, got=f"`{label}`", hint=hint)


def class_weights(counts: Sequence[int]) -> dict[int, float]:
    """The weight of each class, rows / (classes * rows of the class): scikit-learn's "balanced".

    A class without rows is not counted among the classes. Its weight is 1, as Keras requires all weights.
    """
    present = sum(count > 0 for count in counts)
    rows = sum(counts)
    return {index: rows / (present * count) if count else 1.0 for index, count in enumerate(counts)}


def keep_rates(counts: Sequence[int]) -> list[float]:
    """The fraction of rows to keep of each class, so that it is as frequent as the rarest with rows."""
    least = min((count for count in counts if count), default=0)
    return [least / count if count else 1.0 for count in counts]
