"""Arrow's arrays as NumPy's, and back, straight from their buffers.

Arrow's own ways (`to_numpy`, `pyarrow.array`, `to_pandas_dtype`) look for pandas first. That import takes a
quarter of a second in every process of a build, and a Ctrl-C in the midst of it is lost: pyarrow takes it for
a missing pandas.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recordspec.wire.strings import Strings

_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}


def dtype_of(kind: Any) -> np.dtype[Any]:
    """NumPy's dtype for Arrow's type of numbers or truth values."""
    return np.dtype(_FLOATS.get(str(kind), str(kind)))


def numbers(array: Any) -> Any:
    """An array of numbers or truth values as NumPy's, anything where it has nulls; numbers are a view."""
    import pyarrow

    if pyarrow.types.is_boolean(array.type):
        return _truths(array)
    dtype = dtype_of(array.type)
    data = array.buffers()[1]
    values = np.frombuffer(b"" if data is None else data, np.uint8)
    return values[: (len(values) // dtype.itemsize) * dtype.itemsize].view(dtype)[_extent(array)]


def present(array: Any) -> Any:
    """bool, a value of the array each: whether it is no null."""
    return _truths(array.is_valid())


def kept(array: Any, where: Any) -> Any:
    """The values of an Arrow array where the bools of `where` are true."""
    import pyarrow

    bits = pyarrow.py_buffer(np.packbits(where, bitorder="little"))
    return array.filter(pyarrow.Array.from_buffers(pyarrow.bool_(), len(where), [None, bits]))


def strings(array: Any) -> Strings:
    """An array of text or bytes without nulls, without a copy of the text."""
    _, places, data = array.buffers()
    if data is None or not len(array):
        return Strings(b"", np.zeros(len(array) + 1, np.int64))
    width = np.int64 if str(array.type).startswith("large_") else np.int32
    ends = np.frombuffer(places, width)[array.offset : array.offset + len(array) + 1]
    text = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    return Strings(text, (ends - ends[0]).astype(np.int64))


def _truths(array: Any) -> Any:
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), bool)
    stop = array.offset + len(array)
    return np.unpackbits(np.frombuffer(data, np.uint8), count=stop, bitorder="little")[array.offset :].view(
        bool
    )


def _extent(array: Any) -> slice:
    return slice(array.offset, array.offset + len(array))
