"""What values may be: the dtypes of the language, and the error for one that does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.errors import Problem, show_shape

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

DTYPES = (
    "bool",
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)


class BadValue(Exception):
    """A value of a batch that does not fit. `index` counts from 0 within the batch."""

    def __init__(self, index: int, expected: str, got: str, hint: str = "") -> None:
        super().__init__(index, expected, got, hint)
        self.index = index
        self.problem = Problem(expected=expected, got=got, hint=hint)

    def moved(self, index: int) -> BadValue:
        """The same, as a value of another batch."""
        return BadValue(index, self.problem.expected, self.problem.got, self.problem.hint)


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
