"""Reads `.npy` files of arrays (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html)."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from recordspec.locations import is_path
from recordspec.schema.media import path_of, read_file
from recordspec.schema.values import Array, BadValue
from recordspec.wire.file_types import describe_type

SUFFIXES = (".npy",)
_MAGIC = b"\x93NUMPY"


def loaded(values: Any) -> Any:
    """Values of a row, with the arrays of `.npy` files in place of their paths and bytes. Raises BadValue."""
    if not isinstance(values, list | tuple):
        return values
    if not any(is_path(value) or isinstance(value, bytes) for value in values):
        return values
    return [_array(row, value) for row, value in enumerate(values)]


def _array(row: int, value: Any) -> Any:
    if is_path(value):
        path = path_of(row, value)
        return array_in(row, read_file(row, path, "a .npy file"), f"{path}: ")
    return array_in(row, value) if isinstance(value, bytes) and value.startswith(_MAGIC) else value


def array_in(row: int, data: bytes, name: str = "") -> Array:
    """The array of a `.npy` file. Objects of Python are not unpickled. Raises BadValue for other bytes."""
    if not data.startswith(_MAGIC):
        raise BadValue(row, "a .npy file", f"{name}{describe_type(data)}")
    try:
        array: Array = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        expected = "a whole .npy file of numbers"
        raise BadValue(row, expected, f"{name}{str(error).splitlines()[0]}") from None
    return array


def header_in(start: bytes) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
    """The shape and the dtype of the array of a `.npy` file, from its first bytes; None for other bytes."""
    file = io.BytesIO(start)
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version[0] == 1 else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    except (ValueError, OSError, EOFError):
        return None
    return shape, dtype
