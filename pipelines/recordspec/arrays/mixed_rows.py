"""The rows of a mixture: the files of its datasets, one dataset after the other, in the order of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from recordspec.arrays.random_access import KeptBlocks, Rows
from recordspec.locations import Location
from recordspec.order.global_order import Permutation
from recordspec.order.mix_options import MixOptions, MixturePlan
from recordspec.schema.schema import Schema
from recordspec.store.dataset import StoredDataset
from recordspec.wire.arrays import Ints


class MixedRows(Rows):
    """Random access to the rows of several datasets, whose epochs mix them.

    Args:
        datasets: the files of each dataset, by name.
        dataset: the files of all, in the same order, with the schema to read them with.
        options: how they are mixed.
        batch: the rows of a global batch.
        sizes, lanes: as for `MixturePlan`.

    Raises the errors of `Rows`; StoreError for datasets of different layouts; SpecError for a mixture that
    does not exist.
    """

    def __init__(
        self,
        datasets: Mapping[str, Sequence[Location]],
        dataset: StoredDataset,
        options: MixOptions,
        batch: int,
        sizes: tuple[int, ...] | None = None,
        lanes: int | None = None,
    ) -> None:
        self._read_dataset(dataset)
        self._ends = np.cumsum([len(paths) for paths in datasets.values()])
        counts = np.diff(self._first[self._ends], prepend=0).tolist()
        self.plan = MixturePlan(
            names=tuple(datasets),
            rows=tuple(counts),
            options=options,
            batch=batch,
            sizes=sizes,
            lanes=lanes,
        )
        self._name_as = options.name_as

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"mixed": (self._ends, self.plan, self._name_as)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._ends, self.plan, self._name_as = state["mixed"]

    def _blocks_of(self, dataset: StoredDataset) -> tuple[int | None, list[int] | None]:
        self.schema = dataset.schema
        files = dataset.files  # raises for layouts that differ
        block = files[0].block
        return block, None if block is None else [file.rows_from(0) or 0 for file in files]

    def only(self, names: Iterable[str]) -> Rows:
        names = tuple(names)
        assert self.schema is not None
        stored = [name for name in names if name != self._name_as]
        made = super().only(stored or list(self.schema.names)[:1])
        assert isinstance(made, MixedRows)
        made._name_as = self._name_as if self._name_as in names else None
        return made

    def datasets_of(self, rows: Ints) -> Ints:
        """The number of the dataset of each row, int64 `[n]`."""
        numbers: Ints = np.searchsorted(self._first[self._ends], rows, "right").astype(np.int64)
        return numbers

    @property
    def _epoch_rows(self) -> int:
        return self.plan.epoch_rows

    @property
    def _order_options(self) -> dict[str, Any]:
        return {"mix": self.plan.options.order_of(self.plan.names)}

    @property
    def first_rows(self) -> Ints:
        """The first row of each dataset, int64 `[d]`."""
        firsts: Ints = np.append(0, self._first[self._ends])[:-1]
        return firsts

    @property
    def files(self) -> list[Ints]:
        """The rows of the files of each dataset."""
        return np.split(np.diff(self._first), self._ends[:-1])

    @property
    def blocks_by_dataset(self) -> list[Ints] | None:
        """The rows of each block of each dataset; None if rows are not in blocks."""
        sizes = self._block_sizes
        if sizes is None:
            return None
        records = np.array([index.records for index in self._indices])
        firsts = np.concatenate([[0], np.cumsum(records)])[self._ends]
        return np.split(sizes, firsts[:-1])

    def _in_epoch(self, epoch: int, seed: int | None) -> Permutation:
        assert seed is not None  # a mixture is shuffled
        if self._lanes is not None:
            return self.plan.order_in_lanes(seed, epoch, self.files, self._lanes[1])
        return self.plan.order(seed, epoch, self.blocks_by_dataset)

    def _windows(self, schema: Schema | None, order: Permutation, position: int = 0) -> KeptBlocks | None:
        # the windows of all datasets have together the rows of one window, and are read at once
        return self._recent_blocks(schema)

    def _decoded(
        self, numbers: Ints, *, padded: bool = True, windows: KeptBlocks | None = None
    ) -> dict[str, Any]:
        decoded = super()._decoded(numbers, padded=padded, windows=windows)
        if self._name_as is not None:
            decoded[self._name_as] = self.datasets_of(numbers)
        return decoded
