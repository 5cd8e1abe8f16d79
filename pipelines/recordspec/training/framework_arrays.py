"""Checks for values that a framework has no array for, or would change silently."""

from __future__ import annotations

from typing import Any

import numpy as np

from recordspec.errors import Problem, SpecError

# The types to which JAX converts numbers of 64 bits, without x64.
_HALVES = {"int64": np.iinfo(np.int32), "uint64": np.iinfo(np.uint32), "float64": np.finfo(np.float32)}


def check_arrays(batch: Any, *, bits: int = 64) -> None:
    """Raises SpecError for a value that is not an array of numbers, and for numbers that `bits` cannot hold.

    Args:
        batch: an array, or tuples and dicts of arrays.
        bits: 32 for JAX if x64 is not enabled: JAX rounds floats to 32 bits, converts larger floats to
            infinity, and keeps the lower half of larger integers.
    """
    _check(batch, ("fit",), bits)


def _check(value: Any, path: tuple[str, ...], bits: int) -> None:
    if isinstance(value, tuple):
        for part in value:
            _check(part, path, bits)
    elif isinstance(value, dict):
        for name, part in value.items():
            _check(part, (*path, name), bits)
    elif not isinstance(value, np.ndarray) or value.dtype == object:
        got = "string" if isinstance(value, np.ndarray) else type(value).__name__
        hint = "`fit` encodes text and pads lists, and leaves out what it does not name"
        raise SpecError(Problem(path=path, expected="an array of numbers", got=got, hint=hint))
    elif bits == 32 and value.dtype.name in _HALVES:
        limits: Any = _HALVES[value.dtype.name]
        finite = value[np.isfinite(value)] if value.dtype.kind == "f" else value
        if finite.size and (finite.min() < limits.min or finite.max() > limits.max):
            got = str(finite.min() if finite.min() < limits.min else finite.max())
            hint = "`jax.config.update('jax_enable_x64', True)` takes 64"
            raise SpecError(Problem(path=path, expected="numbers of 32 bits", got=got, hint=hint))
