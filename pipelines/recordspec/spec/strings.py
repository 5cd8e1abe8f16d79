"""Text and bytes as they are given to byte strings as they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from recordspec.errors import describe
from recordspec.spec.values import (
    Array,
    BadValue,
)
from recordspec.wire.strings import Strings, lengths_of, offsets, squeeze


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
