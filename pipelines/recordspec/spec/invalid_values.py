"""Validates stored values of the right type and number, by kind of feature, without TensorFlow.

Of a kind without a rule here, no value is invalid; `invalid_values.register` adds one for a custom kind.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import singledispatch

import numpy as np

from recordspec.errors import Problem
from recordspec.spec.features import Feature
from recordspec.spec.features.audio import Audio
from recordspec.spec.features.base import as_taken
from recordspec.spec.features.box import Box
from recordspec.spec.features.fixed_len_sequence import FixedLenSequence
from recordspec.spec.features.image import Image
from recordspec.spec.features.label import Label
from recordspec.spec.features.options import static
from recordspec.spec.features.tensor import AnyTensor
from recordspec.spec.features.text import Text
from recordspec.spec.features.var_len import VariableLen
from recordspec.spec.features.video import Video
from recordspec.spec.values import BadValue, dtype_range, is_integer, numpy_dtype
from recordspec.wire.arrays import (
    ArrowArray,
    Ints,
    are_text,
    bytes_in,
    counts_of,
    fixed_lists,
    flat_of,
    list_array,
    offsets,
    part,
    storage_of,
    values_array,
    views_of,
)
from recordspec.wire.file_types import describe_type

# Bytes of a compressed tensor that are inflated at once; only their number is kept.
_INFLATED_AT_ONCE = 1 << 20
# A larger tensor would not fit into a record, which is a protobuf message.
_MOST_INFLATED = 1 << 31


# The rows that have invalid values, all for one reason, rising, int64 `[m]`; and the problem of one of them.
Invalid = tuple[Ints, Callable[[int], Problem]]


@singledispatch
def invalid_values(feature: Feature, array: ArrowArray) -> Iterator[Invalid]:
    """Yields the invalid stored values of the first column of a feature.

    Args:
        array: the values of each row in Arrow, without nulls.
    """
    return iter(())


@invalid_values.register
def _label(feature: Label, array: ArrowArray) -> Iterator[Invalid]:
    if storage_of(array) == "bytes":
        return _encoded(feature, array)
    last = feature.classes - 1
    return _outside(array, 0, last, f"an index from 0 to {last}")


@invalid_values.register
def _tensor(feature: AnyTensor, array: ArrowArray) -> Iterator[Invalid]:
    if storage_of(array) == "bytes":
        yield from _each(array, lambda data: _check_tensor(feature, data))
    elif is_integer(feature.dtype) or feature.dtype == "bool":
        low, high = (0, 1) if feature.dtype == "bool" else dtype_range(feature.dtype)
        yield from _outside(array, low, high, feature.dtype)


@invalid_values.register
def _text(feature: Text, array: ArrowArray) -> Iterator[Invalid]:
    if not are_text(flat_of(array)):
        # `max_bytes` is a rule of writing
        yield from _encoded(replace(feature, max_bytes=None), array)


@invalid_values.register
def _image(feature: Image, array: ArrowArray) -> Iterator[Invalid]:
    if feature.encoding == "raw":
        size = math.prod(static(feature.shape)) * numpy_dtype(feature.dtype).itemsize
        yield from _each(array, lambda data: _check_size(len(data), size, varies=False))
    else:
        yield from _each(array, lambda data: _check_media(feature, data))


@invalid_values.register
def _audio(feature: Audio, array: ArrowArray) -> Iterator[Invalid]:
    if feature.encoding == "raw":
        size = feature.channels * numpy_dtype(feature.dtype).itemsize
        yield from _each(array, lambda data: _check_size(len(data), size, varies=True))
    else:
        yield from _each(array, lambda data: _check_media(feature, data))


@invalid_values.register
def _video(feature: Video, array: ArrowArray) -> Iterator[Invalid]:
    if feature.encoding != "raw":
        yield from _encoded(feature, array)
        return
    yield from _image(feature.frame, array)


@invalid_values.register(VariableLen)
@invalid_values.register(FixedLenSequence)
@invalid_values.register(Box)
def _as_encoded(feature: VariableLen | FixedLenSequence | Box, array: ArrowArray) -> Iterator[Invalid]:
    yield from _encoded(feature, array)


def _outside(array: ArrowArray, low: int, high: int, expected: str) -> Iterator[Invalid]:
    """Yields integers below `low` or above `high`."""
    flat = flat_of(array)
    bad = np.flatnonzero((flat < low) | (flat > high))
    if len(bad):
        rows, first = np.unique(_rows_of(array, bad), return_index=True)
        found = dict(zip(rows.tolist(), flat[bad[first]].tolist(), strict=True))
        yield rows, lambda row: Problem(expected=expected, got=str(found[row]))


def _each(array: ArrowArray, check: Callable[[bytes], None]) -> Iterator[Invalid]:
    """Yields the strings for which `check` raises BadValue."""
    found: dict[int, Problem] = {}
    strings = flat_of(array)
    rows = _rows_of(array, np.arange(len(strings))).tolist()
    for row, data in zip(rows, map(bytes, views_of(strings)), strict=True):
        try:
            check(data)
        except BadValue as bad:
            found.setdefault(row, bad.problem)
    if found:
        yield np.fromiter(found, np.int64, len(found)), found.__getitem__


def _encoded(feature: Feature, array: ArrowArray) -> Iterator[Invalid]:
    """Yields the values that the feature's encoder refuses, which accepts what it stores."""
    values, shape = values_array(flat_of(array)), feature.value_type.shape
    if shape:
        cell = static(shape[1:])
        for size in reversed(cell):
            values = fixed_lists(values, size)
        values = list_array(values, offsets(counts_of(array) // math.prod(cell)))
    try:
        feature.encode(as_taken(feature, values))
        return
    except BadValue:
        found: dict[int, Problem] = {}
    for row in range(len(values)):
        try:
            feature.encode(as_taken(feature, part(values, row, row + 1)))
        except BadValue as bad:
            found[row] = bad.problem
    yield np.fromiter(found, np.int64, len(found)), found.__getitem__


def _check_media(feature: Image | Audio, data: bytes) -> None:
    """Raises BadValue for bytes that the feature would re-encode."""
    (stored,) = feature.encode([data])
    if bytes_in(stored) != [data]:
        raise BadValue(0, f"{feature.encoding} data that TensorFlow decodes", describe_type(data))


def _check_tensor(feature: AnyTensor, data: bytes) -> None:
    """Raises BadValue for bytes of another size than the tensor."""
    size = len(data) if feature.encoding != "zlib" else _inflated_size(data)
    cell = (
        math.prod(1 if size is None else size for size in feature.shape) * numpy_dtype(feature.dtype).itemsize
    )
    _check_size(size, cell, varies=None in feature.shape)


def _check_size(size: int, cell: int, *, varies: bool) -> None:
    """Raises BadValue for a number of bytes that is not `cell`, or no multiple of it."""
    if (size % max(1, cell) != 0) if varies else (size != cell):
        raise BadValue(0, f"a multiple of {cell} bytes" if varies else f"{cell} bytes", str(size))


def _inflated_size(data: bytes) -> int:
    """The size of inflated zlib data, which is inflated in parts."""
    stream, size = zlib.decompressobj(), 0
    try:
        while size <= _MOST_INFLATED and (data or not size):
            some = stream.decompress(data, _INFLATED_AT_ONCE)
            size, data = size + len(some), stream.unconsumed_tail
            if not some:
                break
    except zlib.error as error:
        raise BadValue(0, "whole zlib data", str(error)) from None
    if not stream.eof:
        raise BadValue(0, "whole zlib data", f"{size:,} bytes and no end")
    return size


def _rows_of(array: ArrowArray, places: Ints) -> Ints:
    """The rows of the values at these places."""
    return np.searchsorted(offsets(counts_of(array)), places, side="right") - 1
