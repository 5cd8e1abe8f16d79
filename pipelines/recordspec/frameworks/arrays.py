"""What frameworks have no array for, or would change without a word."""

from __future__ import annotations

from typing import Any

import numpy as np

from recordspec.errors import Problem, SpecError


def check_arrays(batch: Any, *, bits: int = 64) -> None:
    """Raises SpecError for a value of a batch that is no array of numbers, and for integers of more bits.

    Args:
        batch: an array, or tuples and dicts of arrays.
        bits: 32 for JAX, which keeps the lower half of larger integers if x64 is not enabled.
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
    elif bits == 32 and value.dtype.name in ("int64", "uint64") and value.size:
        limits = np.iinfo(np.int32 if value.dtype.kind == "i" else np.uint32)
        least, most = int(value.min()), int(value.max())
        if least < limits.min or most > limits.max:
            got = str(least if least < limits.min else most)
            hint = "`jax.config.update('jax_enable_x64', True)` takes 64"
            raise SpecError(Problem(path=path, expected="integers of 32 bits", got=got, hint=hint))
