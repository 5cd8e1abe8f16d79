"""`Pipeline.keras_dataset`: the dataset for `model.fit` on the backends JAX and PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recordspec._keras import keras
from recordspec.arrays.iterate import Passes
from recordspec.errors import Problem, SpecError
from recordspec.training.framework_arrays import check_arrays

_END = object()


class KerasDataset(keras.utils.PyDataset):  # type: ignore[misc]
    """The batches of a split, in the order of the config: each epoch of `fit` is the next pass.

    `fit` asks a PyDataset for batches by index, in an order that it shuffles. The index has no influence
    here: the first request gets the first batch, and so on. Threads of recordspec make batches ahead, so
    `workers` is 1. A pass that begins at a later step is shorter, and Keras warns that it is.

    Raises the errors of reading.
    """

    def __init__(self, passes: Passes) -> None:
        super().__init__(workers=1, use_multiprocessing=False)
        self._passes, self._next = passes, passes.start
        self._batches: Iterator[Any] | None = None
        self._left = 0
        # whether the next batch is the first of an iteration, and whether an epoch has begun without a batch
        self._is_new, self._begins = True, False

    @property
    def num_batches(self) -> int | None:
        """The batches of an epoch; None for `repeat: forever`.

        Keras asks before the first batch of each iteration, and never during an iteration. To build a model,
        Keras also begins iterations and breaks them off: their first batches are read again. Keras keeps the
        number for all epochs. The smaller number of a pass that begins later is therefore returned only while
        the iteration over that pass begins.
        """
        self._is_new = True
        total = self._passes.batches
        return total if total is None or not self._begins else total - self._next.step

    def on_epoch_begin(self) -> None:
        """Notes that an epoch begins. Keras calls it before each epoch."""
        self._begins = True

    def on_epoch_end(self) -> None:
        """Continues with the next pass if nothing is left of this pass. Keras calls it after each epoch."""
        if self._next.step and self._next.step == self._passes.steps:
            self._next = self._passes.after(self._next)

    def __len__(self) -> int:
        if self._passes.batches is None:
            raise TypeError("a dataset with `repeat: forever` has no length")
        return self._passes.batches

    def restart(self) -> None:
        """Begins at the first position again, as if nothing had been read."""
        self._next, self._batches = self._passes.start, None

    def __getitem__(self, index: int) -> Any:
        self._begins = False
        if self._batches is None or self._is_new:
            total = self._passes.batches
            self._is_new, self._left = False, 0 if total is None else total - self._next.step
            self._batches = self._passes.begin(self._next)
        batch = next(self._batches, _END)
        self._left -= 1
        ended = batch is _END
        if not self._left and not ended:
            ended = next(self._batches, _END) is not _END
            self._next, self._batches = self._passes.after(self._next), None
        if ended:
            expected = f"{self._passes.steps} batches in every pass, as in the first"
            raise SpecError(Problem(path=("filter",), expected=expected, got="another number"))
        check_arrays(batch, bits=_bits())
        return batch


def _bits() -> int:
    if keras.backend.backend() != "jax":
        return 64
    from recordspec.training.jax_data import bits

    return bits()
