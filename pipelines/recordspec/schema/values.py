"""The dtypes of the language, the error for an invalid value, and the conversion of numbers.

Numbers are checked, and cast without loss. A batch is converted at once where NumPy can. Where it cannot,
or where something would be lost, the values are converted one by one, to name the one that is wrong.
Rounding to a float type's precision is the one loss that is allowed; overflow to infinity is not, nor is an
integer that a float type cannot hold. A bool is no number; 0 and 1 are bools.

As in Arrow, durations in a column are counted in its unit, and those in rows in microseconds; a time of day
is the microseconds since midnight; a Decimal is an integer, or else a float.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.errors import Problem, describe, show_int, show_shape
from recordspec.wire.arrays import counts_of, flat_of, is_arrow, is_list, offsets

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_FLOAT32_EXACT = 1 << 24  # a float32 is exact for whole numbers up to this
_NUMPY_SCALARS = (np.int64, np.int32, np.float64, np.float32)
_FLOAT32_MAX = float(np.finfo(np.float32).max)
# Longer strings are encoded as a batch: what is too large for a record is then found before it is copied.
_MOST_BYTES = 1 << 20
# For longer lists, converting all items with NumPy is faster.
_MOST_ITEMS = 64

# The most bytes of a row in files of any source. Reading one takes several times as much memory, and a few
# compressed bytes, or an unclosed quote, can make one of any size. 20 s of sound as JSON numbers have 17 MiB,
# a volume of 512 x 512 x 512 voxels of 16 bits 256 MiB.
LONGEST_ROW = 256 << 20

# The key of bytes in JSON, `{"b64": "..."}`, as TensorFlow Serving has it.
BASE64 = "b64"

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

DTYPES = (
    "bool",
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)


class BadValue(Exception):
    """An invalid value of a batch; `index` counts from 0 within the batch."""

    def __init__(self, index: int, expected: str, got: str, hint: str = "") -> None:
        super().__init__(index, expected, got, hint)
        self.index = index
        self.problem = Problem(expected=expected, got=got, hint=hint)

    def moved(self, index: int) -> BadValue:
        """The same error at another index."""
        return BadValue(index, self.problem.expected, self.problem.got, self.problem.hint)


def encode_scalar(value: Any, dtype: str) -> tuple[Any] | None:
    """The stored form of a number, str or bytes, by dtype; None if a type check is not enough."""
    cls = type(value)
    if cls in _NUMPY_SCALARS:
        value = value.item()
        cls = type(value)
    if dtype == "int64":
        return (value,) if cls is int and _INT64_MIN <= value <= _INT64_MAX else None
    if dtype == "float32":
        if cls is int:
            return (value,) if -_FLOAT32_EXACT <= value <= _FLOAT32_EXACT else None
        return (value,) if cls is float and -_FLOAT32_MAX <= value <= _FLOAT32_MAX else None
    if cls not in (str, bytes) or len(value) > _MOST_BYTES:
        return None
    try:
        return (value if cls is bytes else value.encode(),)
    except UnicodeEncodeError:
        return None


def encode_list(value: Any, dtype: str) -> Sequence[Any] | None:
    """The stored form of the items of a short list; None if a type check of each is not enough."""
    if type(value) is not list or not 0 < len(value) <= _MOST_ITEMS:
        return None
    stored = []
    for each in value:
        item = encode_scalar(each, dtype)
        if item is None:
            return None
        stored.append(item[0])
    return stored


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype of a name of the language."""
    if dtype == "bfloat16":
        import ml_dtypes  # a dependency of TensorFlow, which it does not import

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


# The largest magnitude up to which a float type holds every whole number: 2 ** (bits of mantissa + 1).
EXACT_INTS = {
    "float16": 2**11,
    "bfloat16": 2**8,
    "float32": 2**24,
    "float64": 2**53,
    "complex64": 2**24,
    "complex128": 2**53,
}

_MASKED = {np.ma.MaskedArray, type(np.ma.masked)}
_BOOLS = {bool, np.bool_}
# pandas' own missing values, known by name so that pandas need not be loaded.
_PANDAS_MISSING = ("NAType", "NaTType")
# The units of durations that Arrow has.
_DURATIONS = ("s", "ms", "us", "ns")
_MICROSECOND = datetime.timedelta(microseconds=1)


def nested(flat: Sequence[Any], shape: tuple[int | None, ...]) -> Any:
    """A flat list as nested lists of a shape, in which None is any size; items stay what they are."""
    if shape == ():
        (value,) = flat
        return value
    array = np.empty(len(flat), object)
    array[:] = flat
    any_size = -1 if len(flat) or None not in shape else 0
    return array.reshape([any_size if size is None else size for size in shape]).tolist()


def unpacked(values: Any) -> Any:
    """Values of Arrow, of which none is null, as an array of NumPy where they have one shape, else as a list;
    others are unchanged."""
    if not is_arrow(values):
        return values
    flat = flat_of(values)
    if not is_list(values):
        return flat if isinstance(flat, np.ndarray) else flat.to_pylist()
    flat, counts = unpacked(flat), counts_of(values)
    if isinstance(flat, np.ndarray) and len(counts) and bool((counts == counts[0]).all()):
        return flat.reshape(len(counts), int(counts[0]), *flat.shape[1:])
    return [flat[start:stop] for start, stop in pairwise(offsets(counts).tolist())]


def is_missing(value: Any) -> bool:
    """Whether a value is None, or the NaT or NA of pandas or NumPy."""
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return value is None or type(value).__name__ in _PANDAS_MISSING


def numbers(values: Any, dtype: str, shape: Shape = ()) -> Array:
    """Casts values to an array `[n, *shape]` of `dtype`. Raises BadValue for the first invalid one."""
    values = unpacked(values)
    if isinstance(values, np.ndarray) and values.dtype.kind == "m" and is_integer(dtype):
        values = _counts(values)
    types = set() if isinstance(values, np.ndarray) else set(map(type, values))
    array = None if types & _MASKED else _as_array(values, types)
    if array is not None and dtype != "bool" and _hides_bools(array, values, types):
        array = None
    if array is not None and array.shape[1:] == shape:
        fast = _cast(array, dtype, trusted=isinstance(values, np.ndarray) or types == {float})
        if fast is not None:
            return fast
        if type(None) in types:  # the types of the others are found once this one is removed
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
    except Exception:  # rows of different lengths, or an `__array__` that raises
        return None


def _hides_bools(array: Array, values: Any, types: set[type]) -> bool:
    """Whether NumPy converted bools to numbers in the array of these values, which have these types."""
    if array.dtype.kind not in "iufc" or isinstance(values, np.ndarray):
        return False
    if types == {np.ndarray}:
        return any(value.dtype.kind == "b" for value in values)
    if array.ndim > 1:
        # a bool becomes 0 or 1: without these, items need no check, which would cost as much as the array
        if not bool(((array == 0) | (array == 1)).any()):
            return False
        for _ in range(array.ndim - 1):
            values = chain.from_iterable(values)
        try:
            types = set(map(type, values))
        except TypeError:  # arrays of another library have one dtype
            return False
    return not types.isdisjoint(_BOOLS)


def _cast(array: Array, dtype: str, *, trusted: bool) -> Array | None:
    """Casts the array to `dtype`; None if that loses something, or may.

    `trusted` is false where NumPy made the array, so that ints among floats have been lost already.
    """
    kind = array.dtype.kind
    if array.dtype == numpy_dtype(dtype):
        return array if trusted or kind not in "fc" or not _too_large(array, dtype) else None
    if array.dtype.name == dtype:  # of another byte order
        return array.astype(numpy_dtype(dtype))
    if is_integer(dtype):
        fits = kind in "iu" and (np.can_cast(array.dtype, dtype) or _within(array, *dtype_range(dtype)))
        return array.astype(dtype) if fits else None
    if dtype == "bool":
        return array.astype(np.bool_) if kind in "iu" and _within(array, 0, 1) else None
    if kind in "iu":
        limit = EXACT_INTS[dtype]
        return array.astype(numpy_dtype(dtype)) if _within(array, -limit, limit) else None
    if kind == "c" and not dtype.startswith("complex"):
        return None
    if kind not in "fc" and array.dtype.name != "bfloat16":
        return None
    if not trusted and _too_large(array, dtype):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(numpy_dtype(dtype))
    overflown = np.isinf(cast) & ~np.isinf(array)
    return None if bool(overflown.any()) else cast


def _too_large(array: Array, dtype: str) -> bool:
    """Whether the array has whole numbers so large that a float may have rounded them."""
    # float64: a limit of float16 would overflow
    return array.size > 0 and bool((np.abs(array) >= np.float64(EXACT_INTS[dtype])).any())


def _within(array: Array, low: int, high: int) -> bool:
    return array.size == 0 or (int(array.min()) >= low and int(array.max()) <= high)


def is_within(values: Any, low: int, high: int) -> bool:
    """Whether these are an array `[n]` of integers, all from `low` to `high`."""
    integers = isinstance(values, np.ndarray) and values.dtype.kind in "iu" and values.ndim == 1
    return integers and _within(values, low, high)


def _number(value: Any, dtype: str, shape: Shape) -> Any:
    """Casts one value; the index of a BadValue is 0. This is the rule; `_cast` is its fast form."""
    if isinstance(value, np.ndarray):
        if np.ma.is_masked(value):
            raise BadValue(0, of_shape(dtype, shape), "a masked value")
        array = np.asarray(value)
        if array.dtype.kind == "m" and is_integer(dtype):
            array = _microseconds(array)
        if array.dtype.kind in "mM":
            raise BadValue(0, of_shape(dtype, shape), describe(value))
    elif isinstance(value, np.timedelta64) and is_integer(dtype):
        array = _microseconds(np.asarray(value))
    elif isinstance(value, (np.datetime64, np.timedelta64, str, bytes, Mapping, Set)) or value is None:
        raise BadValue(0, of_shape(dtype, shape), describe(value))
    else:
        try:
            array = np.asarray(value, object if not hasattr(value, "dtype") else None)
        except (ValueError, TypeError):
            raise BadValue(0, of_shape(dtype, shape), describe(value)) from None
    if array.shape != shape:
        raise BadValue(0, of_shape(dtype, shape), f"shape {show_shape(array.shape)}")
    cast = _cast(array, dtype, trusted=True)
    if cast is not None:
        return cast
    cells = [_cell(cell, dtype) for cell in array.reshape(-1).tolist()]
    return np.array(cells, numpy_dtype(dtype)).reshape(shape)


def _counts(durations: Array) -> Array:
    """Counts the durations of a column in its unit. Raises BadValue for NaT, and a unit that Arrow lacks."""
    unit, step = np.datetime_data(durations.dtype)
    if unit not in _DURATIONS or step != 1:
        hint = "cast it to `timedelta64[s]`"
        raise BadValue(0, "a duration in s, ms, us or ns", str(durations.dtype), hint)
    missing = np.flatnonzero(np.isnat(durations))
    if len(missing):
        raise BadValue(int(missing[0]), "a duration", "NaT")
    return durations.astype(np.int64)


def _microseconds(durations: Array) -> Array:
    """The microseconds of durations in a row, which may have other units in other rows. Raises BadValue."""
    counted = durations.astype("timedelta64[us]")
    if bool((counted.astype(durations.dtype) != durations).any()):  # also for NaT
        raise BadValue(0, "a duration of whole microseconds", describe(durations.reshape(-1)[0]))
    return counted.astype(np.int64)


def _plain_number(value: Any, dtype: str) -> Any:
    """A Decimal as a float; for an integer dtype, a duration, a time of day, or a whole Decimal as an
    integer. Other values are unchanged.
    """
    if not is_integer(dtype):
        return float(value) if is_decimal(value) and dtype != "bool" else value
    if isinstance(value, datetime.timedelta) and not getattr(value, "nanoseconds", 0):  # those of pandas
        return int(value // _MICROSECOND)
    if isinstance(value, datetime.time):
        seconds = (60 * value.hour + value.minute) * 60 + value.second
        return 10**6 * seconds + value.microsecond
    is_whole = is_decimal(value) and value.is_finite() and value == value.to_integral_value()
    return int(value) if is_whole else value


def is_uuid(kind: type) -> bool:
    """Whether this is the type of UUIDs; does not import `uuid`."""
    return kind.__name__ == "UUID" and kind.__module__ == "uuid"


def is_decimal(value: Any) -> bool:
    """Whether a value is a Decimal; does not import `decimal`."""
    kind = type(value)
    return kind.__name__ == "Decimal" and kind.__module__ == "decimal"


def _cell(value: Any, dtype: str) -> Any:
    """Casts one Python number."""
    value = _plain_number(value, dtype)
    if isinstance(value, (bool, np.bool_)) and dtype == "bool":
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return _int_cell(int(value), dtype)
    if isinstance(value, (float, complex, np.inexact)) and not is_integer(dtype) and dtype != "bool":
        if isinstance(value, complex) and not dtype.startswith("complex"):
            raise BadValue(0, dtype, describe(value))
        with np.errstate(over="ignore"):
            stored = np.array(value).astype(numpy_dtype(dtype))
        if not bool(np.isinf(stored)) or bool(np.isinf(value)):
            return stored
        raise BadValue(0, f"{dtype}, which holds it without overflow", repr(value))
    hint = ""
    if isinstance(value, (bool, np.bool_)):
        hint = f"write {int(value)}, or store it as `kind: tensor` with `dtype: bool`"
    if isinstance(value, float) and is_integer(dtype):
        hint = "`float32` holds fractions" if value % 1 else f"write {value:.0f}"
        if abs(value) >= 2**53:
            hint = "from 2^53 on a float may be rounded; the dtype Int64 of pandas keeps integers with gaps"
    raise BadValue(0, dtype, describe(value), hint)


def _int_cell(value: int, dtype: str) -> int:
    if is_integer(dtype) or dtype == "bool":
        low, high = (0, 1) if dtype == "bool" else dtype_range(dtype)
        if not low <= value <= high:
            raise BadValue(0, f"{dtype} ({low} to {high})", show_int(value))
    elif not holds(value, dtype):
        raise BadValue(0, f"{dtype}, which holds whole numbers exactly", show_int(value))
    return value


def holds(value: int, dtype: str) -> bool:
    """Whether a float type has this whole number exactly."""
    if abs(value) <= EXACT_INTS[dtype]:
        return True
    try:
        with np.errstate(over="ignore"):
            stored = float(np.array(float(value)).astype(numpy_dtype(dtype)).real)
    except OverflowError:
        return False
    return math.isfinite(stored) and int(stored) == value
