"""`Pipeline.torch_dataset`: batches for the DataLoader of PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from recordspec.errors import Problem, SpecError
from recordspec.reading.iterate import Passes
from recordspec.reading.order import Position

# Workers of a DataLoader, at most.
_MOST_WORKERS = 1024


class TorchDataset(IterableDataset):  # type: ignore[misc]
    """The batches of a split as tensors, in the order of the config.

    With several workers of a DataLoader each makes every n-th batch, so that these come in the same order for
    any number of workers, each row once. Numbers are tensors that share the memory of the decoded arrays;
    strings stay arrays of NumPy, values of different lengths a RaggedArray or a SparseArray.

    Without workers, each iteration is the next pass. Workers are told by `set_epoch` which one to read.
    `state_dict` and `load_state_dict` are those that torchdata's StatefulDataLoader calls.

    Raises what reading raises.
    """

    def __init__(self, passes: Passes) -> None:
        self._passes, self._start = passes, passes.start
        # in memory that workers share: the pass to read, and that which each worker has begun
        self._epoch = torch.tensor([passes.start.epoch]).share_memory_()
        self._begun = torch.full([_MOST_WORKERS], -1).share_memory_()
        self._skipped = 0
        self._state = {"epoch": passes.start.epoch, "step": passes.start.step, "batches": 0}

    def set_epoch(self, epoch: int) -> None:
        """Says which pass, from 0, the next iteration reads."""
        self._epoch[0] = epoch
        self._begun.fill_(-1)

    def __len__(self) -> int:
        if self._passes.batches is None:
            raise TypeError("a dataset with `repeat: forever` has no length")
        return self._passes.batches

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        part, parts = (0, 1) if info is None else (info.id, info.num_workers)
        epoch, skipped, self._skipped = int(self._epoch[0]), self._skipped, 0
        if info is None:
            self._epoch[0] = self._passes.after(Position(epoch=epoch)).epoch
        else:
            self._check_epoch(part, epoch)
        begin = self._start if epoch == self._start.epoch else Position(epoch=epoch)
        self._state = {"epoch": epoch, "step": begin.step, "batches": skipped}
        return self._batches(begin, part + skipped * parts, parts)

    def _batches(self, begin: Position, first: int, parts: int) -> Iterator[Any]:
        for batch in self._passes.begin(begin, first, parts):
            self._state["batches"] += 1
            yield _as_tensors(batch)

    def _check_epoch(self, worker: int, epoch: int) -> None:
        """Raises SpecError if a worker reads a shuffled pass again: the order would be the same each time."""
        again, self._begun[worker] = int(self._begun[worker]) == epoch, epoch
        if again and self._passes.reader.seed is not None:
            expected = "the number of the next pass"
            hint = "call `set_epoch(n)` before each, where a DataLoader has workers"
            raise SpecError(Problem(path=("epoch",), expected=expected, got=f"{epoch} again", hint=hint))

    def state_dict(self) -> dict[str, int]:
        """The pass, its first batch, and how many this process has made since."""
        return dict(self._state)

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Goes on after the last batch that was made when `state_dict` was called."""
        self._start = Position(epoch=state["epoch"], step=state["step"])
        self._skipped = state["batches"]
        self.set_epoch(state["epoch"])


def _as_tensors(batch: Any) -> Any:
    """The arrays of numbers of a batch as tensors, without a copy."""
    if isinstance(batch, dict):
        return {name: _as_tensors(value) for name, value in batch.items()}
    if isinstance(batch, tuple):
        return tuple(map(_as_tensors, batch))
    if not isinstance(batch, np.ndarray) or batch.dtype == object:
        return batch
    if batch.dtype.name == "bfloat16":  # which NumPy has from another package
        return torch.from_numpy(batch.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(batch)
