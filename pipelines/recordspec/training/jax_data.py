"""`Pipeline.jax_dataset`: batches as JAX arrays, on one device or on several."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax

from recordspec.arrays.iterate import Passes
from recordspec.errors import Problem, SpecError
from recordspec.order.global_order import Share
from recordspec.training.framework_arrays import check_arrays


class JaxDataset:
    """The batches of a split as JAX arrays, in the order of the config. Each iteration is the next pass.

    Args:
        passes: the batches.
        sharding: how an array is distributed over the devices of all processes; None for the default device.

    Raises the errors of reading, and SpecError for values that JAX has no array for.
    """

    def __init__(self, passes: Passes, sharding: Any = None) -> None:
        check_sharding(passes.reader.share, sharding)
        self._passes, self._next, self._sharding = passes, passes.start, sharding

    def __len__(self) -> int:
        if self._passes.batches is None:
            raise TypeError("a dataset with `repeat: forever` has no length")
        return self._passes.batches

    def __iter__(self) -> Iterator[Any]:
        begin, self._next = self._next, self._passes.after(self._next)
        # not in the thread that makes batches ahead: it does not see the caller's `jax.default_device`
        return map(self._put, self._passes.begin(begin))

    def _put(self, batch: Any) -> Any:
        check_arrays(batch, bits=bits())
        if self._sharding is None:
            return jax.device_put(batch)  # `jax.numpy.asarray` compiles a program for each new shape
        return jax.tree.map(
            lambda array: jax.make_array_from_process_local_data(self._sharding, array), batch
        )


def bits() -> int:
    """The largest number of bits of a number in JAX."""
    return 64 if jax.config.jax_enable_x64 else 32


def check_sharding(share: Share, sharding: Any) -> None:
    """Raises SpecError for batches that processes, or devices of a NamedSharding, do not divide evenly."""
    parts = share.workers
    if isinstance(sharding, jax.sharding.NamedSharding) and len(sharding.spec):
        axes = sharding.spec[0]
        names = () if axes is None else axes if isinstance(axes, tuple) else (axes,)
        parts = math.lcm(parts, math.prod(sharding.mesh.shape[name] for name in names))
    for size, what in (
        (share.batch, ""),
        (share.batch if share.drop_remainder else share.last, "a last one of "),
    ):
        if size % parts:
            hint = "drop_remainder drops it" if what else ""
            expected, got = f"batches that {parts} devices or processes divide", f"{what}{size}"
            raise SpecError(Problem(path=("read", "batch"), expected=expected, got=got, hint=hint))
