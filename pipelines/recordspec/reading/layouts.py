"""The two layouts on disk, as stages from serialized records to batches of rows before decoding.

Rows are serialized, or parsed columns of blocks. Rows of both forms can be filtered, permuted and rebatched
before their features are decoded.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from recordspec._tf import Dataset, tf
from recordspec.order.read_options import Batch
from recordspec.reading.shuffle_buffer import (
    SerializedRows,
    ShufflePlan,
    drawn,
    gathered,
    rows_of_pools,
    shuffled,
    together,
)
from recordspec.reading.transformations import CALLS, map_elements, rebatch
from recordspec.schema import decoder, row_blocks
from recordspec.schema.schema import Schema
from recordspec.schema.tensors import Tensor
from recordspec.wire.blocks import ROWS


@dataclass(frozen=True)
class DatasetLayout(abc.ABC):
    """How the rows of a dataset are stored.

    Attributes:
        schema: the features that are parsed.
        chunk: the number of rows that one call decodes if nothing is shuffled.
        early: whether a chunk is decoded before it is batched; otherwise, each batch is decoded.
    """

    schema: Schema
    chunk: int
    early: bool

    @abc.abstractmethod
    def rows(
        self, records: Dataset, batch: Batch | None, shuffle: ShufflePlan | None, skip: Tensor | None
    ) -> Dataset:
        """Batches of rows from batch `skip` on, or without `batch`, single rows from row `skip` on.

        The elements of `records` are strings, `[]`, or `[k]` for several records; or of blocks, tuples of
        `row_blocks.arrays_of`, which are neither shuffled nor skipped.
        """

    @abc.abstractmethod
    def rebatched(self, rows: Dataset, batch: Batch | None) -> Dataset:
        """Rows in batches of another size, or without `batch`, single rows."""

    @abc.abstractmethod
    def decode(self, records: SerializedRows) -> dict[str, Any]:
        """The features of rows. Rows that were decoded early may have more features than `schema`."""

    def only(self, names: Iterable[str]) -> DatasetLayout:
        """The layout with only the named features decoded."""
        return replace(self, schema=self.schema.only(names))


class RowLayout(DatasetLayout):
    """A record is one row."""

    def rows(
        self, records: Dataset, batch: Batch | None, shuffle: ShufflePlan | None, skip: Tensor | None
    ) -> Dataset:
        if shuffle is not None and shuffle.large:
            records, shuffle = shuffled(records, shuffle), None
        if shuffle is not None:
            pools, first = gathered(records, shuffle.buffer), _first_row(batch, skip)
            rows = drawn(pools, self._at_once(batch), self._held, shuffle=shuffle, first=first)
            return self.rebatched(rows, batch)
        chosen = records
        if skip is not None and together(records):
            chosen = self.rebatched(records, batch).skip(skip)
        elif skip is not None:
            chosen = records.skip(_first_row(batch, skip))
        if self.early and batch is not None:
            chosen = map_elements(gathered(chosen, self._at_once(batch)), self._held, CALLS)
        return self.rebatched(chosen, batch)

    def _at_once(self, batch: Batch | None) -> int:
        """About a chunk of rows, in whole batches, so that a batch is a slice of a chunk, without a copy."""
        if batch is None:
            return self.chunk
        return batch.size * (max(1, self.chunk // batch.size) if self.early else 1)

    def _held(self, serialized: Tensor) -> SerializedRows:
        return decoder.decode(self.schema, serialized) if self.early else serialized

    def rebatched(self, rows: Dataset, batch: Batch | None) -> Dataset:
        if batch is None:
            return rows.unbatch() if together(rows) else rows
        return gathered(rows, batch.size, drop_remainder=batch.drop_remainder)

    def decode(self, records: SerializedRows) -> dict[str, Any]:
        return records if self.early else decoder.decode(self.schema, records)


@dataclass(frozen=True)
class BlockLayout(DatasetLayout):
    """A record has up to `size` rows."""

    size: int

    def rows(
        self, records: Dataset, batch: Batch | None, shuffle: ShufflePlan | None, skip: Tensor | None
    ) -> Dataset:
        if isinstance(records.element_spec, tuple):
            return self.rebatched(map_elements(records, self._held_arrays, CALLS), batch)
        at_once = self.chunk if shuffle is None else shuffle.buffer
        pools = gathered(records, max(1, -(-at_once // self.size)))
        rows = rows_of_pools(
            pools,
            self._read_pool,
            self._held,
            lambda pool: tf.reduce_sum(row_blocks.rows_of(pool)),
            shuffle=shuffle,
            first=_first_row(batch, skip),
        )
        return self.rebatched(rows, batch)

    def _read_pool(self, pool: Tensor) -> tuple[SerializedRows, Tensor]:
        parsed = row_blocks.parse(self.schema, pool)
        return parsed, tf.shape(parsed[ROWS])[0]

    def _held_arrays(self, *arrays: Tensor) -> SerializedRows:
        handed = row_blocks.handed(self.schema, math.inf)
        assert handed is not None
        return self._held(row_blocks.of_arrays(handed, *arrays))

    def _held(self, parsed: dict[str, Any]) -> SerializedRows:
        return (
            decoder.decode_rows(self.schema, parsed) if self.early else row_blocks.split(self.schema, parsed)
        )

    def rebatched(self, rows: Dataset, batch: Batch | None) -> Dataset:
        if batch is None:
            return rebatch(rows, 1)
        return rebatch(rows, batch.size, drop_remainder=batch.drop_remainder)

    def decode(self, records: SerializedRows) -> dict[str, Any]:
        return records if self.early else decoder.decode_rows(self.schema, records)


def _first_row(batch: Batch | None, skip: Tensor | None) -> Tensor | None:
    """The first row of batch `skip`."""
    return None if skip is None else skip * (1 if batch is None else batch.size)
