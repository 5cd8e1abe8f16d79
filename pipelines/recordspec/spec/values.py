"""Values as they are given to arrays as they are stored: checked, and cast without loss.

A batch is converted at once where NumPy can. Where it cannot, or where something would be lost, the
values are gone through one by one, to name the one that is wrong. Rounding to a float type's
precision is the one loss that is allowed; overflow to infinity is not, nor is an integer that a float
type cannot hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.errors import Problem, describe, show_int, show_shape
from recordspec.wire.strings import Ints, Strings, lengths_of, offsets, squeeze

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

DTYPES = (
    "bool",
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
# The largest magnitude up to which a float type holds every whole number: 2 ** (bits of mantissa + 1).
_EXACT_INTS = {
    "float16": 2**11,
    "bfloat16": 2**8,
    "float32": 2**24,
    "float64": 2**53,
    "complex64": 2**24,
    "complex128": 2**53,
}


_MASKED = {np.ma.MaskedArray, type(np.ma.masked)}


class BadValue(Exception):
    """A value of a batch that does not fit. `index` counts from 0 within the batch."""

    def __init__(self, index: int, expected: str, got: str, hint: str = "") -> None:
        super().__init__(index, expected, got, hint)
        self.index = index
        self.problem = Problem(expected=expected, got=got, hint=hint)

    def moved(self, index: int) -> BadValue:
        """The same, as a value of another batch."""
        return BadValue(index, self.problem.expected, self.problem.got, self.problem.hint)


def _wrong(expected: str, got: str, hint: str = "") -> BadValue:
    """A value that stands alone; the batch gives it its index."""
    return BadValue(0, expected, got, hint)


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype of a name of the language."""
    if dtype == "bfloat16":
        import ml_dtypes  # comes with TensorFlow, and does not load it

        return np.dtype(ml_dtypes.bfloat16)  # type: ignore[no-any-return]
    return np.dtype(dtype)


def is_integer(dtype: str) -> bool:
    return "int" in dtype


def dtype_range(dtype: str) -> tuple[int, int]:
    """The smallest and the largest value of an integer dtype."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def of_shape(dtype: str, shape: Sequence[int | None]) -> str:
    """`int64`, or `int64 of shape [3]`."""
    return f"{dtype} of shape {show_shape(shape)}" if shape else dtype


def numbers(values: Any, dtype: str, shape: Shape = ()) -> Array:
    """The values as `[n, *shape]` of `dtype`. Raises BadValue for the first that does not fit."""
    types = set() if isinstance(values, np.ndarray) else set(map(type, values))
    array = None if types & _MASKED else _as_array(values, types)
    if array is not None and array.shape[1:] == shape:
        fast = _cast(array, dtype, trusted=isinstance(values, np.ndarray) or types == {float})
        if fast is not None:
            return fast
        if type(None) in types:  # what the others are is seen once this one is out
            missing = next(index for index, value in enumerate(values) if value is None)
            raise BadValue(missing, of_shape(dtype, shape), describe(None))
    singles = np.empty((len(values), *shape), numpy_dtype(dtype))
    for index, value in enumerate(values):
        try:
            singles[index] = _number(value, dtype, shape)
        except BadValue as bad:
            raise bad.moved(index) from None
    return singles


def _as_array(values: Any, types: set[type]) -> Array | None:
    if types == {float}:
        return np.fromiter(values, np.float64, len(values))  # half the time of np.array
    if types == {int}:
        with suppress(OverflowError):
            return np.fromiter(values, np.int64, len(values))
    if isinstance(values, np.ma.MaskedArray):
        return None if np.ma.is_masked(values) else values.data
    if isinstance(values, np.ndarray):
        return values
    try:
        return np.array(values)
    except Exception:  # rows of different lengths, or objects that know no better
        return None


def _cast(array: Array, dtype: str, *, trusted: bool) -> Array | None:
    """The array as `dtype`, or None where that loses something or cannot be told.

    `trusted` is false where NumPy made the array, so that ints among floats have been lost already.
    """
    kind = array.dtype.kind
    if array.dtype == numpy_dtype(dtype):
        return array if trusted or kind not in "fc" or not _too_large(array, dtype) else None
    if array.dtype.name == dtype:  # of the other byte order
        return array.astype(numpy_dtype(dtype))
    if is_integer(dtype):
        return _cast_to_integers(array, dtype) if kind in "iub" else None
    if dtype == "bool":
        return array.astype(np.bool_) if kind in "iu" and _within(array, 0, 1) else None
    if kind in "iub":
        limit = _EXACT_INTS[dtype]
        return array.astype(numpy_dtype(dtype)) if _within(array, -limit, limit) else None
    if kind == "c" and not dtype.startswith("complex"):
        return None
    if kind in "fc" or array.dtype.name == "bfloat16":
        return _cast_floats(array, dtype, trusted)
    return None


def _cast_to_integers(array: Array, dtype: str) -> Array | None:
    low, high = dtype_range(dtype)
    fits = np.can_cast(array.dtype, dtype) or _within(array, low, high)
    return array.astype(dtype) if fits else None


def _cast_floats(array: Array, dtype: str, trusted: bool) -> Array | None:
    if not trusted and _too_large(array, dtype):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(numpy_dtype(dtype))
    overflown = np.isinf(cast) & ~np.isinf(array)
    return None if bool(overflown.any()) else cast


def _too_large(array: Array, dtype: str) -> bool:
    """Whether a whole number among these could have been one that a float does not hold."""
    return array.size > 0 and bool((np.abs(array) >= _EXACT_INTS[dtype]).any())


def _within(array: Array, low: int, high: int) -> bool:
    return array.size == 0 or (int(array.min()) >= low and int(array.max()) <= high)


def _number(value: Any, dtype: str, shape: Shape) -> Any:
    """One value, cast. This is the rule; `_cast` is its fast form."""
    if isinstance(value, np.ndarray):
        if np.ma.is_masked(value):
            raise _wrong(of_shape(dtype, shape), "a masked value")
        array = np.asarray(value)
        if array.dtype.kind in "mM":
            raise _wrong(of_shape(dtype, shape), describe(value))
    elif isinstance(value, (np.datetime64, np.timedelta64, str, bytes, Mapping, Set)) or value is None:
        raise _wrong(of_shape(dtype, shape), describe(value))
    else:
        array = _nested(value, dtype, shape)
    if array.shape != shape:
        raise _wrong(of_shape(dtype, shape), f"shape {show_shape(array.shape)}")
    cast = _cast(array, dtype, trusted=True)
    if cast is not None:
        return cast
    cells = [_cell(cell, dtype) for cell in array.reshape(-1).tolist()]
    return np.array(cells, numpy_dtype(dtype)).reshape(shape)


def _nested(value: Any, dtype: str, shape: Shape) -> Array:
    try:
        return np.asarray(value, object if not hasattr(value, "dtype") else None)
    except (ValueError, TypeError):
        raise _wrong(of_shape(dtype, shape), describe(value)) from None


def _cell(value: Any, dtype: str) -> Any:
    """One Python number."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, np.integer)):
        return _int_cell(int(value), dtype)
    if isinstance(value, (float, complex, np.inexact)) and not is_integer(dtype) and dtype != "bool":
        if isinstance(value, complex) and not dtype.startswith("complex"):
            raise _wrong(dtype, describe(value))
        return _float_cell(value, dtype)
    hint = ""
    if isinstance(value, float) and is_integer(dtype):
        hint = "round it, or store it as a float" if value % 1 else f"write {value:.0f}"
    raise _wrong(dtype, describe(value), hint)


def _int_cell(value: int, dtype: str) -> int:
    if is_integer(dtype) or dtype == "bool":
        low, high = (0, 1) if dtype == "bool" else dtype_range(dtype)
        if not low <= value <= high:
            raise _wrong(f"{dtype} ({low} to {high})", show_int(value))
    elif abs(value) > _EXACT_INTS[dtype] and not _holds(value, dtype):
        raise _wrong(f"{dtype}, which holds whole numbers exactly", show_int(value))
    return value


def _holds(value: int, dtype: str) -> bool:
    try:
        stored = float(np.array(float(value)).astype(numpy_dtype(dtype)).real)
    except OverflowError:
        return False
    return math.isfinite(stored) and int(stored) == value


def _float_cell(value: Any, dtype: str) -> Any:
    with np.errstate(over="ignore"):
        stored = np.array(value).astype(numpy_dtype(dtype))
    if bool(np.isinf(stored)) and not bool(np.isinf(value)):
        raise _wrong(f"{dtype}, which holds it without overflow", repr(value))
    return stored


def strings(values: Any, what: str = "string") -> Strings:
    """The values as byte strings; text is encoded as UTF-8. Raises BadValue for the first that is neither."""
    if isinstance(values, Strings):
        return values
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "US" and values.ndim == 1:
            return _numpy_strings(values)
        values = values.tolist()
    try:
        text = "".join(values)
    except TypeError:
        if set(map(type, values)) == {bytes}:
            return Strings.of(values)
        text = None
    if text is None or not text.isascii():
        return Strings.of([_string(index, value, what) for index, value in enumerate(values)])
    return Strings(text.encode(), offsets(lengths_of(values)))  # one character, one byte


def _string(index: int, value: Any, what: str) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            got = f"the lone surrogate {value[error.start]!r} at character {error.start}"
            raise BadValue(index, f"{what} that UTF-8 can encode", got) from None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise BadValue(index, what, describe(value))


def _numpy_strings(values: Array) -> Strings:
    """A NumPy string array: its padding with NULs is not content."""
    if values.dtype.itemsize == 0 or not len(values):
        return Strings(b"", np.zeros(len(values) + 1, np.int64))
    unit = np.uint32 if values.dtype.kind == "U" else np.uint8
    values = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("="), copy=False)
    codes: Array = values.view(unit).reshape(len(values), -1)
    if values.dtype.kind == "U":
        if int(codes.max()) > 0x7F:
            return strings(values.tolist())
        codes = codes.astype(np.uint8)
    if bool(codes[:, -1].all()):
        return Strings.rows(codes)
    places = np.arange(1, codes.shape[1] + 1, dtype=np.int32)
    return squeeze(codes, ((codes != 0) * places).max(axis=1))


def cells(values: Any, dtype: str, shape: Shape) -> Array | Strings:
    """`numbers` or `strings` of this shape, end to end."""
    if dtype != "string":
        return numbers(values, dtype, shape).reshape(-1)
    if not shape:
        return strings(values)
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


@dataclass(frozen=True, eq=False)
class Lists:
    """Lists end to end: `flat` has the items of all of them, `lengths` how many each has, int64 `[n]`.

    `flat` is an array `[m, ...]`, `Strings`, or `Lists` in their turn.
    """

    flat: Any
    lengths: Ints

    @cached_property
    def _places(self) -> Ints:
        return offsets(self.lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> Any:
        """One of them: an array, or a list."""
        index = range(len(self))[index]
        items = self._items(int(self._places[index]), int(self._places[index + 1]))
        return items if isinstance(items, np.ndarray) else list(items)

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))

    def _items(self, start: int, stop: int) -> Any:
        flat = self.flat
        return flat[start:stop] if isinstance(flat, np.ndarray) else flat.part(start, stop)

    def part(self, start: int, stop: int) -> Lists:
        """Lists `start` to `stop`, without a copy."""
        lengths = self.lengths[start:stop]
        first = int(self._places[start : start + 1].sum())
        return Lists(self._items(first, first + int(lengths.sum())), lengths)


def rows_of(values: Any, what: str) -> tuple[Any, Ints | int]:
    """The items of every value end to end, and how many each has (one number where all have it).

    Raises BadValue where a value is not a list.
    """
    if isinstance(values, Lists):
        return values.flat, values.lengths
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
    except TypeError:  # an array of no dimension
        _check_lists(values, what)
        raise
    if types and all(issubclass(one, np.ndarray) for one in types):
        tails = {value.shape[1:] for value in values}
        # of numbers only those of one dtype: put together, others would take on that of their neighbours
        kinds = {one.kind if one.kind in "US" else one for one in {value.dtype for value in values}}
        if len(tails) == 1 and len(kinds) == 1:
            return np.concatenate(values), lengths
    return list(chain.from_iterable(values)), lengths


def _check_lists(values: Any, what: str) -> None:
    """Raises BadValue for the first that is no list."""
    for index, value in enumerate(values):
        listed = hasattr(value, "__len__") and hasattr(value, "__iter__")
        if isinstance(value, (str, bytes, Mapping, Set, np.void)) or not listed or np.ma.is_masked(value):
            raise BadValue(index, what, describe(value), "an empty list is []" * (value is None))
        if isinstance(value, np.ndarray) and value.ndim == 0:
            raise BadValue(index, what, describe(value))


def by_row(bad: BadValue, lengths: Ints | int) -> BadValue:
    """A bad item of `rows_of` as a bad value: the message says which item."""
    if isinstance(lengths, int):
        row, item = divmod(bad.index, lengths)
    else:
        ends = np.cumsum(lengths)
        row = int(np.searchsorted(ends, bad.index, side="right"))
        item = bad.index - int(ends[row] - lengths[row])
    got = f"{bad.problem.got} at item {item}"
    return BadValue(row, bad.problem.expected, got, bad.problem.hint)


def items(values: Any, dtype: str, shape: Shape) -> tuple[Array | Strings, Ints | int]:
    """Lists of items of `shape`: all the items end to end, and how many each list has."""
    flat, lengths = rows_of(values, f"a list of {of_shape(dtype, shape)}")
    try:
        return cells(flat, dtype, shape), lengths
    except BadValue as bad:
        raise by_row(bad, lengths) from None


def bounded(lengths: Ints | int, longest: int | None) -> None:
    """Raises BadValue for the first list that has more than `longest` items."""
    if longest is None:
        return
    over = np.flatnonzero(np.atleast_1d(np.asarray(lengths)) > longest)
    if len(over):
        found = int(np.atleast_1d(np.asarray(lengths))[over[0]])
        raise BadValue(int(over[0]), f"at most {longest} items (max_length)", str(found))
