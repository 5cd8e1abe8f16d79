"""Transformations of datasets whose functions cost little to instantiate.

tf.data instantiates every function of a dataset each time the dataset is iterated, and again in each
iteration of a function that holds the dataset. For `Dataset.map`, this runs grappler and the placement of a
multi-device function: 3 ms of CPU time for `x + 1`, 12 ms for a shuffle of indices, at each epoch (TensorFlow
2.21, 2 cores). A function for one device is instantiated in 0.2 ms, and the functions here run on the CPU
alone. tf.data makes a function for one device if the function has the attribute
`experimental_ints_on_device`, which a caller can set only by raw ops.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from recordspec._tf import Dataset, tf
from recordspec.schema.tensors import Tensor, without_autograph

# The largest useful number of parallel calls: tf.data uses the same number without autotuning.
MOST_CALLS = 16
# TFRecordDataset reads 256 KiB at once by default; larger requests cost nothing locally and save
# round trips elsewhere.
READ_BUFFER = 1 << 20
# The number of parallel calls of a function.
CALLS = min(MOST_CALLS, max(2, os.cpu_count() or 1))


def map_elements(
    dataset: Dataset, function: Callable[..., Any], calls: int | None = None, *, deterministic: bool = True
) -> Dataset:
    """Maps a function over elements, with `calls` parallel calls, and in order if `deterministic`.

    The function is not converted by autograph.
    """
    specs: list[Any] = []

    def components(*element: Tensor) -> list[Tensor]:
        made = function(*element)
        parts = tf.nest.flatten(made)
        if not all(isinstance(part, tf.Tensor | tf.RaggedTensor | tf.sparse.SparseTensor) for part in parts):
            return []
        specs.append(tf.nest.map_structure(tf.type_spec_from_value, made))
        return [_component(part) for part in parts]

    traced = _traced(components, dataset) if _is_dense(dataset.element_spec) else None
    if not specs:  # `Dataset.map` encodes and converts other values, such as those of a custom kind
        return dataset.map(without_autograph(function), calls, deterministic=deterministic if calls else None)
    shared = _arguments(dataset, traced, specs[-1]) | {"preserve_cardinality": True}
    if calls is None:
        made = tf.raw_ops.MapDataset(**shared)
    else:
        ordered = "true" if deterministic else "false"
        made = tf.raw_ops.ParallelMapDatasetV2(
            num_parallel_calls=tf.constant(calls, tf.int64), deterministic=ordered, **shared
        )
    return tf.data.experimental.from_variant(made, specs[-1])


def flat_map(dataset: Dataset, function: Callable[..., Dataset]) -> Dataset:
    """The elements of the datasets that a function returns for each element, one dataset after the other."""
    traced, spec = _traced_dataset(function, dataset)
    made = tf.raw_ops.FlatMapDataset(**_arguments(dataset, traced, spec))
    return tf.data.experimental.from_variant(made, spec)


def interleave(dataset: Dataset, function: Callable[..., Dataset], *, cycle: int, block: int) -> Dataset:
    """The elements of the datasets that a function returns: `block` of each of `cycle` datasets in turn."""
    traced, spec = _traced_dataset(function, dataset)
    made = tf.raw_ops.InterleaveDataset(
        cycle_length=tf.constant(cycle, tf.int64),
        block_length=tf.constant(block, tf.int64),
        **_arguments(dataset, traced, spec),
    )
    return tf.data.experimental.from_variant(made, spec)


def rebatch(batches: Dataset, size: int, *, drop_remainder: bool = False) -> Dataset:
    """Rebatches rows to another size. `Dataset.rebatch` first calls a function on each batch."""
    if not _is_dense(batches.element_spec):
        return batches.rebatch(size, drop_remainder=drop_remainder)
    rows = size if drop_remainder else None
    spec = tf.nest.map_structure(
        lambda old_spec: tf.TensorSpec([rows, *old_spec.shape[1:]], old_spec.dtype), batches.element_spec
    )
    made = tf.raw_ops.RebatchDatasetV2(
        input_dataset=tf.data.experimental.to_variant(batches),
        batch_sizes=tf.constant([size], tf.int64),
        drop_remainder=drop_remainder,
        **_types(spec),
    )
    return tf.data.experimental.from_variant(made, spec)


def at_least_one(elements: Dataset, problem: str) -> Dataset:
    """The elements. If there is none, the end raises InvalidArgumentError with `problem`."""
    optional, spec = tf.experimental.Optional, elements.element_spec
    end = tf.data.Dataset.from_tensors(optional.empty(spec))

    def present(*parts: Any) -> Any:
        return optional.from_value(parts if isinstance(spec, tuple) else parts[0])

    def checked(any_before: Tensor, element: Any) -> tuple[Tensor, Any]:
        has_value = element.has_value()
        with tf.control_dependencies([tf.debugging.Assert(any_before | has_value, [problem])]):
            return tf.identity(has_value), element

    scanned = (
        elements.map(without_autograph(present))
        .concatenate(end)
        .scan(tf.constant(False), without_autograph(checked))
    )
    kept = scanned.filter(without_autograph(lambda element: element.has_value()))
    return kept.map(without_autograph(lambda element: element.get_value()))


def tfrecord_dataset(path: Tensor, compression: Tensor) -> Dataset:
    """The records of a file, string `[]`. `tf.data.TFRecordDataset` is a flat_map of this dataset."""
    made = tf.raw_ops.TFRecordDataset(
        filenames=path, compression_type=compression, buffer_size=tf.constant(READ_BUFFER, tf.int64)
    )
    return tf.data.experimental.from_variant(made, tf.TensorSpec([], tf.string))


@cache
def drop_iterators_at_exit() -> None:
    """Ends the iterators that are left when the process ends, before Python is finalized.

    Threads of tf.data that call Python prefetch until their iterator is deleted, and the deletion waits for
    the threads. If the iterator is deleted when the interpreter no longer runs them, the process never ends.
    """

    def drop() -> None:
        for name in ("last_value", "last_traceback", "last_exc"):  # their frames may hold an iterator
            setattr(sys, name, None)
        kind = type(iter(tf.data.Dataset.range(0)))
        for left in [one for one in gc.get_objects() if isinstance(one, kind)]:
            vars(left).pop("_iterator_resource", None)

    atexit.register(drop)


def _is_dense(spec: Any) -> bool:
    """Whether elements are dense tensors. Only tf.data can encode and decode other values for a function."""
    return all(isinstance(one, tf.TensorSpec | tf.Tensor) for one in tf.nest.flatten(spec))


def _component(value: Tensor) -> Tensor:
    """A tensor as a component of an element in tf.data; a ragged or sparse tensor as a variant."""
    if isinstance(value, tf.RaggedTensor):
        return tf.raw_ops.RaggedTensorToVariant(
            rt_nested_splits=value.nested_row_splits, rt_dense_values=value.flat_values, batched_input=False
        )
    if isinstance(value, tf.sparse.SparseTensor):
        return tf.io.serialize_sparse(value, tf.variant)
    return value


def _traced_dataset(function: Callable[..., Dataset], dataset: Dataset) -> tuple[Any, Any]:
    """The graph of a function that returns a dataset, and the type of the elements of that dataset."""
    specs: list[Any] = []

    def variant(*element: Tensor) -> Tensor:
        inner = function(*element)
        specs.append(inner.element_spec)
        return tf.data.experimental.to_variant(inner)

    return _traced(variant, dataset), specs[-1]


def _traced(function: Callable[..., Any], dataset: Dataset) -> Any:
    """The graph of a function of an element. A tuple is passed as several arguments, as tf.data does."""
    spec = dataset.element_spec
    made = tf.function(
        function, autograph=False, experimental_attributes={"experimental_ints_on_device": True}
    )
    return made.get_concrete_function(*(spec if isinstance(spec, tuple) else (spec,)))


def _arguments(dataset: Dataset, traced: Any, spec: Any) -> dict[str, Any]:
    """The arguments of all raw ops with a function."""
    return {
        "input_dataset": tf.data.experimental.to_variant(dataset),
        "other_arguments": traced.captured_inputs,
        "f": traced,
        **_types(spec),
    }


def _types(spec: Any) -> dict[str, Any]:
    """The types of elements, as all raw ops take them.

    A ragged or sparse tensor is one component of an element, a variant of no stated shape.
    """
    flat = [
        part if isinstance(part, tf.TensorSpec) else tf.TensorSpec(None, tf.variant)
        for part in tf.nest.flatten(spec)
    ]
    return {"output_types": [one.dtype for one in flat], "output_shapes": [one.shape for one in flat]}
