"""Converts strings to byte strings, and lists to their concatenated items and lengths."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np

from recordspec.errors import describe, show_shape
from recordspec.schema.values import (
    Array,
    BadValue,
    Shape,
    is_decimal,
    is_missing,
    is_uuid,
    numbers,
    of_shape,
    unpacked,
)
from recordspec.wire import arrays
from recordspec.wire.arrays import (
    Ints,
    binary_array,
    counts_of,
    flat_of,
    is_arrow,
    is_list,
    lengths_of,
    offsets,
    strings_array,
)


def cells(values: Any, dtype: str, shape: Shape) -> Any:
    """Converts values of this shape by `numbers` or `strings`, and concatenates them."""
    if dtype != "string":
        return numbers(values, dtype, shape).reshape(-1)
    if not shape:
        return strings(values)
    values = unpacked(values)
    flat: list[Any] = []
    for index, value in enumerate(values):
        array = _objects(value)
        if array is None or array.shape != shape:
            got = describe(value) if array is None else f"shape {show_shape(array.shape)}"
            raise BadValue(index, of_shape(dtype, shape), got)
        flat.extend(array.reshape(-1).tolist())
    try:
        return strings(flat)
    except BadValue as bad:
        raise bad.moved(bad.index // math.prod(shape)) from None


def _objects(value: Any) -> Array | None:
    if not isinstance(value, (list, tuple, np.ndarray)) or np.ma.is_masked(value):
        return None
    try:
        return np.array(value, object)
    except ValueError:  # arrays of different shapes
        return None


def rows_of(values: Any, what: str) -> tuple[Any, Ints | int]:
    """The concatenated items of all values, and the number of items of each; one number if all are equal.

    Raises BadValue if a value is not a list.
    """
    if is_arrow(values) and is_list(values):
        counts = counts_of(values)
        even = len(counts) and bool((counts == counts[0]).all())
        return flat_of(values), int(counts[0]) if even else counts
    if isinstance(values, np.ma.MaskedArray):
        values = list(values) if np.ma.is_masked(values) else values.data
    if isinstance(values, np.ndarray) and values.dtype.kind != "O" and values.ndim > 1:
        count, length, *rest = values.shape
        return values.reshape(count * length, *rest), length
    types = set(map(type, values))
    if not types <= {list, tuple, np.ndarray}:
        _check_lists(values, what)
    try:
        lengths = lengths_of(values)
    except TypeError:  # an array without dimensions
        _check_lists(values, what)
        raise
    if types and all(issubclass(one, np.ndarray) for one in types):
        tails = {value.shape[1:] for value in values}
        # only arrays of one dtype: concatenation would cast others
        kinds = {one.kind if one.kind in "US" else one for one in {value.dtype for value in values}}
        if len(tails) == 1 and len(kinds) == 1 and values[0].dtype.kind != "m":
            return np.concatenate(values), lengths
    return list(chain.from_iterable(values)), lengths


def _check_lists(values: Any, what: str) -> None:
    """Raises BadValue for the first value that is not a list."""
    for index, value in enumerate(values):
        listed = hasattr(value, "__len__") and hasattr(value, "__iter__")
        if isinstance(value, (str, bytes, Mapping, Set, np.void)) or not listed or np.ma.is_masked(value):
            raise BadValue(index, what, describe(value), "an empty list is []" * (value is None))
        if isinstance(value, np.ndarray) and value.ndim == 0:
            raise BadValue(index, what, describe(value))


@contextmanager
def by_row(lengths: Ints | int) -> Iterator[None]:
    """Converts the BadValue of an item of `rows_of` to one of its row; the message names the item."""
    try:
        yield
    except BadValue as bad:
        if isinstance(lengths, int):
            row, item = divmod(bad.index, lengths)
        else:
            ends = np.cumsum(lengths)
            row = int(np.searchsorted(ends, bad.index, side="right"))
            item = bad.index - int(ends[row] - lengths[row])
        got = f"{bad.problem.got} at item {item}"
        raise BadValue(row, bad.problem.expected, got, bad.problem.hint) from None


def items(values: Any, dtype: str, shape: Shape) -> tuple[Any, Ints | int]:
    """The concatenated items of lists of items of `shape`, and the number of items of each list."""
    flat, lengths = rows_of(values, f"a list of {of_shape(dtype, shape)}")
    with by_row(lengths):
        return cells(flat, dtype, shape), lengths


def items_or(values: Any, dtype: str, shape: Shape, missing_item: Any) -> tuple[Any, Ints | int]:
    """`items`, with `missing_item` in place of each item that is missing. Without it, which is None, such an
    item is a BadValue that names the option.
    """
    flat, lengths = rows_of(values, f"a list of {of_shape(dtype, shape)}")
    may_lack = isinstance(flat, list) or (isinstance(flat, np.ndarray) and flat.dtype.kind == "O")
    if missing_item is not None and may_lack:
        flat = [missing_item if is_missing(item) else item for item in flat]
    with by_row(lengths):
        try:
            return cells(flat, dtype, shape), lengths
        except BadValue as bad:
            if shape or bad.problem.got != describe(None):
                raise
            hint = "`missing_item` of the feature gives a value to store in its place"
            raise BadValue(bad.index, bad.problem.expected, bad.problem.got, hint) from None


def bounded(lengths: Ints | int, longest: int | None) -> None:
    """Raises BadValue for the first list that has more than `longest` items."""
    if longest is not None:
        check_lengths(lengths, np.asarray(lengths) <= longest, f"at most {longest} items (max_length)")


def check_lengths(lengths: Ints | int, valid: Any, expected: str) -> None:
    """Raises BadValue for the first list whose number of items is not valid, by a mask `[n]`."""
    wrong = np.flatnonzero(~np.atleast_1d(valid))
    if len(wrong):
        raise BadValue(int(wrong[0]), expected, str(np.atleast_1d(lengths)[wrong[0]]))


def strings(values: Any, what: str = "string") -> Any:
    """Converts str, as UTF-8, bytes, Decimals and UUIDs to strings of Arrow, `large_binary`; long bytes stay
    in a list, as `wire.arrays.to_arrow` takes them. Raises BadValue for the first other value."""
    if is_arrow(values) and not is_list(values):
        return arrays.to_binary(values)
    values = unpacked(values)
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "US" and values.ndim == 1:
            return _numpy_strings(values)
        values = values.tolist()
    try:
        text = "".join(values)
    except TypeError:
        if set(map(type, values)) == {bytes}:
            return arrays.unjoined(list(values))
        text = None
    if text is None or not text.isascii():
        return arrays.unjoined([_string(index, value, what) for index, value in enumerate(values)])
    return binary_array(text.encode(), offsets(lengths_of(values)))  # ASCII: one byte a character


def _string(index: int, value: Any, what: str) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            got = f"the lone surrogate {value[error.start]!r} at character {error.start}"
            raise BadValue(index, f"{what} that UTF-8 can encode", got) from None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if is_decimal(value):
        return format(value, "f").encode()
    if is_uuid(type(value)):  # bytes, as in Arrow
        return bytes(value.bytes) if what == "string" else str(value).encode()
    raise BadValue(index, what, describe(value))


def _numpy_strings(values: Array) -> Any:
    """Converts a NumPy string array. NULs at the end are padding."""
    if values.dtype.itemsize == 0 or not len(values):
        return strings_array([b""] * len(values))
    unit = np.uint32 if values.dtype.kind == "U" else np.uint8
    values = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("="), copy=False)
    codes: Array = values.view(unit).reshape(len(values), -1)
    if values.dtype.kind == "U":
        if int(codes.max()) > 0x7F:
            return strings(values.tolist())
        codes = codes.astype(np.uint8)
    if bool(codes[:, -1].all()):
        return arrays.rows_array(codes)
    places = np.arange(1, codes.shape[1] + 1, dtype=np.int32)
    return arrays.squeezed(codes, ((codes != 0) * places).max(axis=1))
