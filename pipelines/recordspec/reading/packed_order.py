"""Reads packs as a tf.data.Dataset: Python fetches the rows of a batch of packs, and a graph decodes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from recordspec._tf import Dataset, tf
from recordspec.arrays.random_access import KeptBlocks, Rows
from recordspec.errors import SpecError
from recordspec.order.global_order import Share, check_share
from recordspec.order.lane_order import check_lanes
from recordspec.order.packing import Packs, RowsInPacks
from recordspec.order.read_options import Batch, Read
from recordspec.order.read_plan import Plan, WorkerShard
from recordspec.reading import global_shuffle
from recordspec.reading.dataset import EpochOrder
from recordspec.reading.seeds import Seeds
from recordspec.reading.transformations import CALLS, drop_iterators_at_exit, map_elements
from recordspec.schema import decoder, row_blocks
from recordspec.schema.row_blocks import Handed
from recordspec.schema.schema import Schema
from recordspec.schema.tensors import Tensor

PATH = ("read", "pack")


@dataclass(frozen=True, kw_only=True)
class PackedOrder(EpochOrder):
    """Batches of packs. Worker w of W has packs `w, w + W, ...` of each batch.

    An element is the rows of its packs, as `RowsInPacks` in two arrays, and their records.

    Attributes:
        packs: the packs of each epoch.
        rows: all rows.
        worker: the worker that reads.
    """

    packs: Packs
    rows: Rows
    worker: WorkerShard

    @classmethod
    def of(
        cls,
        options: Read,
        schema: Schema,
        plan: Plan,
        packed: Callable[[Rows], Packs],
        mixed: Callable[[], Rows] | None = None,
        **others: Any,
    ) -> PackedOrder:
        """The order of the packs of all rows; arguments as for `dataset.epoch_order`."""
        shuffle = options.shuffle
        has_lanes = shuffle is not None and shuffle.lanes is not None
        if not has_lanes and (problems := global_shuffle.problems_of_files(plan, PATH)):
            raise SpecError(problems)
        rows = Rows._of(plan.dataset(schema))._ordered(options) if mixed is None else mixed()
        return cls(options=options, schema=schema, plan=plan, packs=packed(rows), rows=rows, **others)

    def check(self) -> None:
        check_share(self.share, PATH)
        if self.rows._lanes is not None:
            check_lanes(self.share, self.rows._lanes[0], global_shuffle.LANES_PATH)

    @property
    def steps(self) -> int:
        return self.share.steps * self.replicas

    @property
    def replicas(self) -> int:
        return self.share.replicas

    @property
    def mean_rows(self) -> float:
        return self.packs.pieces / max(1, self.packs.count) * self.share.size

    def positions(self, number: Tensor) -> tuple[Tensor, int]:
        return self.share.positions_in(number)

    @property
    def block(self) -> int | None:
        return self.plan.block

    @cached_property
    def share(self) -> Share:
        """The part of this worker in each batch."""
        batch = self.options.batch or Batch(size=1)
        return Share(
            rows=self.packs.padded(batch),
            batch=batch.size,
            drop_remainder=batch.drop_remainder,
            **vars(self.worker),
        )

    def passes(self) -> Dataset:
        drop_iterators_at_exit()
        return self.numbered_passes(self._one_pass)

    def _one_pass(self, of_pass: Tensor, seeds: Seeds, skip: Tensor | None) -> Dataset:
        """A pass from batch `skip` on."""
        first = 0 if skip is None else tf.cast(skip, tf.int64) * self.replicas
        specs = [
            tf.TensorSpec([2 + 2 * len(self.packs.names), None], tf.int64),
            tf.TensorSpec([self.share.size], tf.int64),
            *self._fetcher.specs,
        ]
        types = [spec.dtype for spec in specs]

        def fetched(number: Tensor) -> tuple[Tensor, ...]:
            # not stateful, as equal arguments give equal records: so iterators can be in checkpoints
            parts = tf.numpy_function(self._fetch, [of_pass, number], types, stateful=False)
            return tuple(tf.ensure_shape(part, spec.shape) for part, spec in zip(parts, specs, strict=True))

        return map_elements(tf.data.Dataset.range(first, self.steps), fetched, CALLS)

    def _fetch(self, of_pass: Any, number: Any) -> list[Any]:
        step, replica = divmod(int(number), self.replicas)
        epoch = self._epochs.of(of_pass)
        found = self._packs_of(epoch, step, replica)
        if not self.rows._is_mapped and step + 1 < self.share.steps:
            self.rows._expect(self._packs_of(epoch, step + 1, replica).rows)
        records = self._fetcher.fetch(found.rows, self._recent)
        return [*found.arrays, *records]

    def _packs_of(self, epoch: int, step: int, replica: int) -> RowsInPacks:
        positions = self.share.positions(step, step + 1).reshape(self.replicas, -1)[replica]
        return self.packs.at(epoch, positions)

    @cached_property
    def _recent(self) -> KeptBlocks | None:
        return None if self._handed is None else self.rows._recent_blocks(self.parsed)

    @cached_property
    def _epochs(self) -> global_shuffle.EpochNumbers:
        return global_shuffle.EpochNumbers()

    @cached_property
    def _handed(self) -> tuple[Handed, ...] | None:
        return row_blocks.handed(self.parsed, self.rows._row_bytes)

    @cached_property
    def _fetcher(self) -> global_shuffle.RowFetcher:
        return global_shuffle.RowFetcher(self.rows, self.parsed, self._handed)

    @property
    def decoded(self) -> bool:
        return False

    def decode(self, *element: Any) -> Any:
        table, counts, *records = element
        schema, names = self.parsed, self.options.features
        if self._handed is not None:
            features = decoder.decode_rows(schema, row_blocks.of_arrays(self._handed, *records))
        elif self.rows._has_blocks:
            features = decoder.decode_rows(schema, row_blocks.parse(schema, records[0]))
        else:
            features = decoder.decode(schema, records[0])
        return table, counts, features if names is None else {name: features[name] for name in names}
