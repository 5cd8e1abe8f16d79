"""`Pipeline.torch_dataset`: batches for the DataLoader of PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from recordspec.arrays.iterate import Passes
from recordspec.errors import Problem, SpecError
from recordspec.order.global_order import whole_numbers
from recordspec.order.position import Position

# The most workers of a DataLoader.
_MOST_WORKERS = 1024


class TorchDataset(IterableDataset):  # type: ignore[misc]
    """The batches of a split as tensors, in the order of the config.

    Each of n workers of a DataLoader makes every n-th batch. Batches come in the same order for any number of
    workers, with each row once. Numbers are tensors that share the memory of the decoded arrays. Strings stay
    NumPy arrays, and values of different lengths stay a RaggedArray or a SparseArray.

    Without workers, each iteration is the next pass. With workers, `set_epoch` sets the pass to read.
    StatefulDataLoader of torchdata calls `state_dict` and `load_state_dict`.

    Raises the errors of reading.
    """

    def __init__(self, passes: Passes, manifest: str) -> None:
        self._passes = passes
        self._dataset = {
            "batch": passes.reader.share.batch,
            "manifest": manifest,
            "order": {**passes.order},
        }
        # in memory that workers share: the pass to read, whether `set_epoch` set it, and the last pass that
        # each worker has read
        self._epoch = torch.tensor([passes.start.epoch, 0]).share_memory_()
        self._read = torch.full([_MOST_WORKERS], -1).share_memory_()
        self._resumed: dict[str, Any] | None = None
        self._state = self._position(passes.start)

    def _position(self, begin: Position, batches: int = 0) -> dict[str, Any]:
        return {"epoch": begin.epoch, "step": begin.step, "batches": batches, **self._dataset}

    def set_epoch(self, epoch: int) -> None:
        """Sets the pass, from 0, that the next iteration reads."""
        (epoch,) = whole_numbers(epoch=(epoch, 0))
        self._epoch[0], self._epoch[1] = epoch, 1
        self._read.fill_(-1)

    def __len__(self) -> int:
        if self._passes.batches is None:
            raise TypeError("a dataset with `repeat: forever` has no length")
        return self._passes.batches

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        part, parts = (0, 1) if info is None else (info.id, info.num_workers)
        (epoch, is_told), resumed, self._resumed = self._epoch.tolist(), self._resumed, None
        if resumed is not None and is_told and resumed["epoch"] != epoch:
            resumed = None  # the state is of another pass
        if resumed is not None:
            epoch, begin = resumed["epoch"], Position(epoch=resumed["epoch"], step=resumed["step"])
        else:
            start = self._passes.start
            begin = start if epoch == start.epoch else Position(epoch=epoch)
        skipped = 0 if resumed is None else resumed["batches"]
        self._state = self._position(begin, skipped)
        return self._batches(begin, part + skipped * parts, info, resumed is not None)

    def _batches(self, begin: Position, first: int, info: Any, is_resumed: bool) -> Iterator[Any]:
        # not when the iterator is made: StatefulDataLoader makes iterators and takes few batches, or none
        if info is None:
            self._epoch[0] = self._passes.after(begin).epoch
        elif not is_resumed:
            self._check_epoch(info.id, begin.epoch)
        for batch in self._passes.begin(begin, first, 1 if info is None else info.num_workers):
            self._state["batches"] += 1
            yield _as_tensors(batch)
        if info is not None:
            self._read[info.id] = begin.epoch

    def _check_epoch(self, worker: int, epoch: int) -> None:
        """Raises SpecError if a worker reads a shuffled pass again: the order would be the same each time."""
        if self._passes.reader.seed is not None and int(self._read[worker]) == epoch:
            expected = "the number of the next pass"
            hint = "if the DataLoader has workers, call `set_epoch(n)` before each pass"
            raise SpecError(Problem(path=("epoch",), expected=expected, got=f"{epoch} again", hint=hint))

    def state_dict(self) -> dict[str, Any]:
        """The pass, its first batch, the number of batches made since, and the identity of the dataset."""
        return dict(self._state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes after the last batch before `state_dict`, unless `set_epoch` sets another pass.

        Raises SpecError for a state of another dataset, or of batches of another size or order.
        """
        for name, value in self._dataset.items():
            if state.get(name) != value:
                got = str(state.get(name))
                raise SpecError(Problem(path=("state", name), expected=str(value), got=got))
        self._resumed, self._state = dict(state), dict(state)


def _as_tensors(batch: Any) -> Any:
    """The arrays of numbers of a batch as tensors, without a copy."""
    if isinstance(batch, dict):
        return {name: _as_tensors(value) for name, value in batch.items()}
    if isinstance(batch, tuple | list):
        return type(batch)(map(_as_tensors, batch))
    if not isinstance(batch, np.ndarray) or batch.dtype == object:
        return batch
    if batch.dtype.name == "bfloat16":  # NumPy has it from another package
        return torch.from_numpy(batch.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(batch)
