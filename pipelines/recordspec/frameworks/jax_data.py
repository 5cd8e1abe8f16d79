"""`Pipeline.jax_dataset`: batches as arrays of JAX, on one device or on several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax

from recordspec.frameworks.arrays import check_arrays
from recordspec.reading.iterate import Passes


class JaxDataset:
    """The batches of a split as arrays of JAX, in the order of the config. Each iteration is the next pass.

    Args:
        passes: the batches.
        sharding: how an array is distributed over devices, of all processes; None for the default device.

    Raises what reading raises, and SpecError for values that JAX has no array for.
    """

    def __init__(self, passes: Passes, sharding: Any = None) -> None:
        self._passes, self._next, self._sharding = passes, passes.start, sharding

    def __len__(self) -> int:
        if self._passes.batches is None:
            raise TypeError("a dataset with `repeat: forever` has no length")
        return self._passes.batches

    def __iter__(self) -> Iterator[Any]:
        begin, self._next = self._next, self._passes.after(self._next)
        return map(self._put, self._passes.begin(begin))

    def _put(self, batch: Any) -> Any:
        check_arrays(batch, bits=integer_bits())
        if self._sharding is None:
            return jax.tree.map(jax.numpy.asarray, batch)
        return jax.tree.map(
            lambda array: jax.make_array_from_process_local_data(self._sharding, array), batch
        )


def integer_bits() -> int:
    """The bits of the integers of JAX."""
    return 64 if jax.config.jax_enable_x64 else 32
