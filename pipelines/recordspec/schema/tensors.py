"""Tensor operations that kinds of features share, and their effect on type specs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from recordspec._tf import tf

Tensor = Any
TypeSpec = Any
_T = TypeVar("_T")


def without_autograph(function: Callable[..., _T]) -> Callable[..., _T]:
    """The same function, traced as it is: AutoGraph looks for no Python to convert in it."""
    return tf.autograph.experimental.do_not_convert(function)  # type: ignore[no-any-return]


def ragged(value: Tensor) -> Tensor:
    """Converts a parsed VarLen: of one record to dense `[k]`, of a batch to ragged `[n, (k)]`."""
    if not isinstance(value, tf.sparse.SparseTensor):
        return value
    if value.shape.rank == 1:
        return value.values
    rows = value.dense_shape[0]
    return tf.RaggedTensor.from_value_rowids(value.values, value.indices[:, 0], nrows=rows, validate=False)


def lengths_of(value: Tensor) -> Tensor:
    """The number of items of a value, int64: `[]` of one record, `[n]` of a ragged batch."""
    if isinstance(value, tf.RaggedTensor):
        return value.row_lengths()
    return tf.shape(value, tf.int64)[0]


class WithMissing(NamedTuple):
    """Values of which some are missing, and have a default.

    Attributes:
        values: `[n, ...]`, with the default where one is missing.
        missing: which are, bool `[n]`.
    """

    values: Tensor
    missing: Tensor


def with_default(value: Tensor, default: Any, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Replaces missing values.

    Args:
        value: RaggedTensor `[n, (0 or 1), *shape]`, or of one record `[0 or 1, *shape]`.
        default: replaces a missing value, of `shape`.

    Returns:
        The values, dense `[n, *shape]` or `[*shape]`, and which of them are missing, bool `[n]` or `[]`.
        More than one value is an InvalidArgumentError.
    """
    alone = value.shape.rank == 1 + len(shape)
    flat = tf.reshape(value.flat_values if isinstance(value, tf.RaggedTensor) else value, [-1, *shape])
    counts = tf.shape(flat, tf.int64)[:1] if alone else value.row_lengths()
    at_most_one = tf.debugging.assert_less(counts, tf.constant(2, tf.int64), "expected one value, or none")
    with tf.control_dependencies([at_most_one]):
        missing = counts < 1
    places = tf.where(missing, tf.shape(flat, tf.int64)[0], tf.cumsum(counts, exclusive=True))
    filler = tf.reshape(tf.constant(default, flat.dtype), [1, *shape])
    filled = tf.ensure_shape(tf.gather(tf.concat([flat, filler], 0), places), [None, *shape])
    return (filled[0], missing[0]) if alone else (filled, missing)


def padded(value: Tensor, pad: Any, length: int | None, shape: Sequence[int | None] = ()) -> Tensor:
    """Pads items of `shape` and different numbers to a dense tensor of `length`, or of the longest.

    Args:
        value: RaggedTensor `[n, (k), *shape]`, or dense `[..., k, *shape]`.
        pad: the padding; None for zero or the empty string.
        length: a static length. A longer value is an InvalidArgumentError; it is never truncated.
    """
    filler = None if pad is None else tf.constant(pad, value.dtype)
    if isinstance(value, tf.RaggedTensor):
        value = value.to_tensor(filler)
    if length is None:
        return value
    axis = value.shape.rank - len(shape) - 1
    missing = length - tf.shape(value)[axis]
    message = f"expected at most {length} items (max_length), got more"
    with tf.control_dependencies([tf.debugging.assert_non_negative(missing, message)]):
        paddings = [[0, missing] if place == axis else [0, 0] for place in range(value.shape.rank)]
        filler = tf.zeros([], value.dtype) if filler is None else filler
        value = tf.pad(value, paddings, constant_values=filler)
    return tf.ensure_shape(value, [*value.shape[:axis], length, *value.shape[axis + 1 :]])


def dense(value: Tensor, pad: Any, length: int | None = None) -> Tensor:
    """Converts a ragged or sparse batch to a dense one of the size of its largest row.

    Args:
        value: the batch.
        pad: the padding; None for zero or the empty string.
        length: the length of the rows of a ragged batch; longer ones are truncated.
    """
    filler = None if pad is None else tf.constant(pad, value.dtype)
    if isinstance(value, tf.sparse.SparseTensor):
        return tf.sparse.to_dense(value, filler)
    if isinstance(value, tf.RaggedTensor):
        shape = None if length is None else [None, length, *value.shape[2:]]
        return value.to_tensor(filler, shape=shape)
    return value


def none_is(wrong: Tensor, values: Tensor, message: str) -> Any:
    """An assertion that no value is wrong, else an InvalidArgumentError, with the first that is in `message`.

    Args:
        wrong: bool `[n]`.
        values: `[n]`, strings or numbers.
        message: the last `{}` in it is the value.
    """
    before, _, after = message.rpartition("{}")
    first = tf.boolean_mask(values, wrong)[:1]
    shown = tf.strings.reduce_join(first if first.dtype == tf.string else tf.strings.as_string(first))
    return tf.debugging.Assert(~tf.reduce_any(wrong), [tf.strings.join([before, shown, after])])


def mask_of(value: Tensor, lengths: Tensor | None, length: int | None = None) -> Tensor:
    """A mask of the values of `dense(value, ...)` that are not padding, bool.

    Args:
        value: a batch: sparse; ragged; or dense, with the numbers of its items in `lengths`.
        lengths: int64 `[n]` of a dense value `[n, k, ...]`; of a ragged value whose innermost items are
            dense, ragged like the value, or None.
        length: as for `dense`.

    Returns:
        Of a sparse batch a mask of its shape, of a dense one `[n, k]`; of a ragged one a dimension for each
        ragged dimension and, with `lengths`, one for those items.
    """
    if isinstance(value, tf.sparse.SparseTensor):
        present = tf.ones_like(value.values, tf.bool)
        return tf.sparse.to_dense(tf.SparseTensor(value.indices, present, value.dense_shape))
    if not isinstance(value, tf.RaggedTensor):
        return _first_items(lengths, value)
    flat = value.flat_values
    present = (
        tf.ones(tf.shape(flat)[:1], tf.bool) if lengths is None else _first_items(lengths.flat_values, flat)
    )
    return dense(value.with_flat_values(present), False, length)


def _first_items(lengths: Tensor, value: Tensor) -> Tensor:
    """A mask of the first `lengths` items of `[m, k, ...]`, bool `[m, k]`."""
    longest = value.shape[1]
    return tf.sequence_mask(lengths, tf.shape(value)[1] if longest is None else longest)


def masked(value: Tensor, kept: Tensor) -> Tensor:
    """The items of lists for which `kept` is true.

    Args:
        value: `[k, ...]` of one list, also ragged after k; else ragged, such as `[n, (k), ...]`.
        kept: bool, of the same lists; other numbers of items are an InvalidArgumentError.
    """
    message = "expected an item for each box of `drop`"
    if not isinstance(kept, tf.RaggedTensor):
        ragged = isinstance(value, tf.RaggedTensor)  # each item of one list is a list
        count = tf.cast(value.nrows() if ragged else tf.shape(value)[0], tf.int32)
        with tf.control_dependencies([tf.debugging.assert_equal(count, tf.shape(kept)[0], message)]):
            mask = tf.ragged.boolean_mask if ragged else tf.boolean_mask
            return mask(value, tf.identity(kept))
    splits = zip(value.nested_row_splits, kept.nested_row_splits, strict=False)
    same = [tf.debugging.assert_equal(*pair, message) for pair in splits]
    with tf.control_dependencies(same):
        return tf.ragged.boolean_mask(value, kept.with_flat_values(tf.identity(kept.flat_values)))


def merged_steps(steps: Tensor) -> Tensor:
    """Converts a ragged `[steps, (k), ...]` in which every k is 1 to `[steps, ...]`."""
    single = tf.ones([], tf.int64)
    message = "expected one item in every step"
    with tf.control_dependencies([tf.debugging.assert_equal(steps.row_lengths(), single, message)]):
        return tf.identity(steps.values)


def reshaped(value: Tensor, leading: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Reshapes `value` to the leading dimensions of the tensor `leading`, then `shape`."""
    target = tf.concat([tf.shape(leading), tf.constant(shape, tf.int32)], 0)
    return tf.ensure_shape(tf.reshape(value, target), leading.shape.concatenate(shape))


def split_raw(strings: Tensor, decode: Callable[[Tensor], Tensor], row: int, shape: Any) -> Tensor:
    """Decodes strings of any number of rows of `row` bytes each, all at once.

    Args:
        strings: string `[]` or `[n]`.
        decode: bytes `[]` to numbers `[m]`.
        row: bytes in one row.
        shape: the shape of one row.

    Returns:
        Of one string `[k, *shape]`; of several a RaggedTensor `[n, (k), *shape]`.
    """
    sizes = tf.cast(tf.strings.length(strings), tf.int64)
    message = f"expected a multiple of {row} bytes"
    whole = tf.debugging.assert_equal(sizes % row, tf.zeros([], tf.int64), message)
    with tf.control_dependencies([whole]):
        joined = strings if strings.shape.rank == 0 else tf.strings.reduce_join(strings)
        values = tf.reshape(decode(joined), [-1, *shape])
    if strings.shape.rank == 0:
        return values
    return tf.RaggedTensor.from_row_lengths(values, sizes // row, validate=False)


def one_by_one(
    decode: Callable[[Mapping[str, Tensor]], Any], columns: Mapping[str, Tensor], spec: Any, rank: int = 0
) -> Any:
    """Applies `decode`, which takes one record, to a batch. Values of different sizes become ragged.

    tf.map_fn within the batch's own graph, since that was measured (benchmarks/media.py, 2 cores) against
    records that are decoded one by one and batched then: 2.5 to 3 times as fast for PNG of 8x8 and 28x28
    pixels, where handing over a record costs more than decoding it, and equally fast for JPEG of 500x375.

    Args:
        decode: returns a tensor, or a structure of tensors.
        columns: of one record or of a batch.
        spec: the types of what `decode` returns.
        rank: the rank of the first column of one record.
    """
    first = next(iter(columns.values()))
    if first.shape.rank == rank:
        return decode(columns)
    if not any(isinstance(one, tf.RaggedTensorSpec) for one in tf.nest.flatten(spec)):
        return mapped(decode, dict(columns), spec)

    def as_ragged(record: Mapping[str, Tensor]) -> Any:
        return tf.nest.map_structure(as_row, spec, decode(record))

    # tf.map_fn with a ragged output fails on an empty batch (TensorFlow 2.16 and 2.21)
    return tf.cond(
        rows_of_batch(first) > 0,
        lambda: mapped(as_ragged, dict(columns), tf.nest.map_structure(row_spec, spec)),
        lambda: tf.nest.map_structure(no_rows, spec),
    )


def rows_of_batch(value: Tensor) -> Tensor:
    """The number of rows of a batch, int64 `[]`."""
    if isinstance(value, tf.RaggedTensor):
        return value.nrows()
    return value.dense_shape[0] if isinstance(value, tf.sparse.SparseTensor) else tf.shape(value, tf.int64)[0]


def row_spec(spec: TypeSpec) -> TypeSpec:
    """The type of a row of a batch, as `as_row` returns it."""
    if not isinstance(spec, tf.RaggedTensorSpec):
        return spec
    return tf.RaggedTensorSpec(spec.shape, spec.dtype, _last_unknown(spec), tf.int64)


def as_row(spec: TypeSpec, value: Tensor) -> Tensor:
    """A decoded value, ragged in the dimensions that become ragged in a batch."""
    levels = _last_unknown(spec) if isinstance(spec, tf.RaggedTensorSpec) else 0
    return tf.RaggedTensor.from_tensor(value, ragged_rank=levels) if levels else value


def no_rows(spec: TypeSpec) -> Tensor:
    """A batch without rows."""
    if not isinstance(spec, tf.RaggedTensorSpec):
        return tf.zeros([0, *spec.shape], spec.dtype)
    levels = _last_unknown(spec)
    return tf.RaggedTensor.from_nested_row_splits(
        tf.zeros([0, *spec.shape.as_list()[levels + 1 :]], spec.dtype),
        [tf.zeros([1], tf.int64)] * (levels + 1),
    )


def mapped(function: Callable[[Any], Tensor], elements: Any, signature: TypeSpec) -> Tensor:
    """tf.map_fn, with the variable scope restored if `function` raises: otherwise its caching device stays
    set in the process, and tf.distribute fails later (TensorFlow 2.16 and 2.21)."""
    scope = tf.compat.v1.get_variable_scope()
    before = scope.caching_device
    try:
        return tf.map_fn(function, elements, fn_output_signature=signature)
    except BaseException:
        if not tf.executing_eagerly():
            scope.set_caching_device(before)
        raise


def _last_unknown(spec: TypeSpec) -> int:
    """The index of the last unknown dimension: the ragged rank of a batch is one more."""
    return max(index for index, size in enumerate(spec.shape.as_list()) if size is None)


def alone(spec: TypeSpec) -> TypeSpec:
    """The type of one record's tensor: without ragged dimensions it is a plain tensor."""
    if isinstance(spec, tf.RaggedTensorSpec) and spec.ragged_rank == 0:
        return tf.TensorSpec(spec.shape, spec.dtype)
    return spec


def batched(spec: TypeSpec, size: int | None) -> TypeSpec:
    """The type of a batch of `size` such values; None if unknown."""
    if isinstance(spec, tf.RaggedTensorSpec):
        return _ragged_rows(spec, size)
    shape = tf.TensorShape([size]).concatenate(spec.shape)
    if isinstance(spec, tf.SparseTensorSpec):
        return tf.SparseTensorSpec(shape, spec.dtype)
    return tf.TensorSpec(shape, spec.dtype)


def of_steps(spec: TypeSpec) -> TypeSpec:
    """The type of a sequence whose steps have this type."""
    if isinstance(spec, tf.RaggedTensorSpec):
        return _ragged_rows(spec, None)
    return ragged_spec((None, *spec.shape.as_list()), spec.dtype)


def _ragged_rows(spec: TypeSpec, rows: int | None) -> TypeSpec:
    """The type of consecutive values of different sizes. Each dimension before the last unknown one is
    ragged, too, since tf.map_fn loses its size."""
    rank = _last_unknown(spec) + 1
    shape = [rows, *[None] * rank, *spec.shape.as_list()[rank:]]
    return tf.RaggedTensorSpec(shape, spec.dtype, rank, tf.int64)


def ragged_spec(shape: tuple[int | None, ...], dtype: Any, rank: int = 0) -> TypeSpec:
    """One value whose unknown dimensions become ragged in a batch."""
    return tf.RaggedTensorSpec(shape, dtype, rank, tf.int64)


def checked_lists(serialized: Tensor, keys: Sequence[str], lists: Sequence[Tensor]) -> list[Tensor]:
    """A check that SequenceExamples have a feature list of each key; a missing one is an
    InvalidArgumentError. For steps of any size, the parser of TensorFlow takes it for an empty one.

    Args:
        serialized: string `[]` or `[n]`.
        keys: of the lists.
        lists: the parsed lists, ragged `[(steps), ...]` or `[n, (steps), ...]`. To find the keys in records
            takes two thirds of the time of parsing: it is done if a list is empty.
    """
    if not lists:
        return []
    single = serialized.shape.rank == 0
    steps = [array.nrows() if single else array.row_lengths() for array in lists]
    some_empty = tf.reduce_any(tf.concat([tf.reshape(step, [-1]) for step in steps], 0) == 0)
    return [tf.cond(some_empty, lambda: _have_lists(serialized, keys), lambda: True)]


def _have_lists(serialized: Tensor, keys: Sequence[str]) -> Tensor:
    records = tf.reshape(serialized, [-1])
    lists = _parts_of(records, "SequenceExample", "feature_lists")
    entries = _parts_of(tf.strings.reduce_join(lists, 1), "FeatureLists", "feature_list")
    names = _parts_of(entries, "FeatureLists.FeatureListEntry", "key")
    checks = [
        tf.debugging.assert_equal(
            tf.reduce_any(names == key, [1, 2]), True, f"expected a list of steps under {key}"
        )
        for key in keys
    ]
    with tf.control_dependencies(checks):
        return tf.constant(True)


def _parts_of(messages: Tensor, name: str, field: str) -> Tensor:
    """The strings of a field of protobuf messages, with one dimension more."""
    return tf.io.decode_proto(messages, f"tensorflow.{name}", [field], [tf.string]).values[0]
