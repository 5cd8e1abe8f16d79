"""The values of rows under a key, in the order of the rows, as arrays and as Python values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec._arrow import arrow
from recordspec.inspect.feature_names import FeatureKey
from recordspec.wire.arrays import (
    ArrowArray,
    bytes_in,
    counts_of,
    flat_of,
    is_list,
    items_of,
    list_array,
    numbers_array,
    offsets,
    present_in,
    spread,
    storage_of,
    to_numpy,
)
from recordspec.wire.record_batch import RecordBatch


def keys_of(decoded: RecordBatch) -> list[FeatureKey]:
    """The keys of records, in order: those of features (or the context), then those of feature lists."""
    return [(False, key) for key in sorted(decoded.features)] + [
        (True, key) for key in sorted(decoded.sequence)
    ]


def values_by_kind(decoded: RecordBatch, key: FeatureKey) -> list[ArrowArray]:
    """The values under a key, separately for each kind of list. In a feature list each kind has all steps, of
    which those of other kinds are null. Where no list has a kind, all lists are null.
    """
    in_sequence, name = key
    arrays = (decoded.sequence if in_sequence else decoded.features).get(name, ())
    lists = map(items_of, arrays) if in_sequence else arrays
    some = [
        array
        for array, values in zip(arrays, lists, strict=True)
        if storage_of(values) != "none" and values.null_count < len(values)
    ]
    if some:
        return some
    pyarrow = arrow()
    nothing = pyarrow.large_list(pyarrow.null())
    if not in_sequence or not arrays:
        return [pyarrow.nulls(decoded.rows, pyarrow.large_list(nothing) if in_sequence else nothing)]
    counts = counts_of(arrays[0])
    return [list_array(pyarrow.nulls(int(counts.sum()), nothing), offsets(counts), present_in(arrays[0]))]


def with_values(array: ArrowArray, convert: Callable[[npt.NDArray[Any]], ArrowArray]) -> ArrowArray:
    """The same lists of other values, which `convert` makes of the numbers of all."""
    if is_list(array):
        items = with_values(items_of(array), convert)
        return list_array(items, offsets(counts_of(array)), present_in(array))
    made = convert(flat_of(array))
    return spread(made, present_in(array)) if array.null_count else made


def to_pylist(flat: Any) -> list[Any]:
    """Converts to Python's numbers and bytes. A float32 becomes the shortest number that reads back equal."""
    if not isinstance(flat, np.ndarray):
        return bytes_in(flat) if len(flat) else []
    return shortest(flat) if flat.dtype == np.float32 else list(flat.tolist())


def shortest(numbers: npt.NDArray[Any]) -> list[float]:
    """float32 `[n]` as floats of as few digits as make the difference: 0.1, not 0.10000000149011612."""
    compute = arrow().compute
    digits = compute.cast(numbers_array(numbers), "string")
    return list(to_numpy(compute.cast(digits, "float64")).tolist())
