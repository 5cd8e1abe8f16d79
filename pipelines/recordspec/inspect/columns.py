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
    lengths_of,
    list_array,
    numbers_array,
    offsets,
    present_in,
    spread,
    storage_of,
    strings_array,
    to_numpy,
)
from recordspec.wire.record_batch import RecordBatch


def nested_array(values: list[Any], levels: int, dtype: str) -> ArrowArray:
    """The values of a feature, nested lists or arrays of `levels` dimensions; null where one is None.

    Args:
        dtype: of numbers; `bytes` of strings.
    """
    if levels and values and all(isinstance(value, np.ndarray) for value in values):
        return _array_of_arrays(values, levels, dtype)
    present = np.array([value is not None for value in values], bool)
    if levels:
        lists = [() if value is None else value for value in values]
        items = nested_array([item for array in lists for item in array], levels - 1, dtype)
        return list_array(items, offsets(lengths_of(lists)), present)
    there = [value for value in values if value is not None]
    made = strings_array(there) if dtype == "bytes" else numbers_array(np.array(there, dtype))
    return made if present.all() else spread(made, present)


def _array_of_arrays(values: list[npt.NDArray[Any]], levels: int, dtype: str) -> ArrowArray:
    """The same of arrays, which all have `levels` dimensions."""
    made = numbers_array(np.concatenate([value.reshape(-1) for value in values]).astype(dtype))
    for level in range(levels - 1, -1, -1):
        times = [int(np.prod(value.shape[:level])) for value in values]
        made = list_array(made, offsets(np.repeat([value.shape[level] for value in values], times)))
    return made


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
    if not in_sequence:
        return [pyarrow.nulls(decoded.rows, nothing)]
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
