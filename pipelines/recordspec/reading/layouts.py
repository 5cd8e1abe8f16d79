"""The two layouts on disk, as stages: from serialized records to batches of rows that are not decoded yet.

Rows are serialized, or parsed columns of blocks. Either way they can be filtered, permuted and batched again
before features are decoded from them.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from recordspec._tf import Dataset, tf
from recordspec.reading.options import Batch
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
from recordspec.schema import blocks, decoder
from recordspec.schema.column_groups import ColumnGroup, column_groups
from recordspec.schema.schema import Schema
from recordspec.schema.tensors import Tensor
from recordspec.wire.blocks import ROWS


@dataclass(frozen=True)
class DatasetLayout(abc.ABC):
    """How the rows of a dataset are stored.

    Attributes:
        schema: the features that are parsed.
        chunk: rows that are decoded by one call where nothing is shuffled.
        early: whether a chunk is decoded before it is batched; else each batch is.
    """

    schema: Schema
    chunk: int
    early: bool

    @abc.abstractmethod
    def rows(
        self, records: Dataset, batch: Batch | None, shuffle: ShufflePlan | None, skip: Tensor | None
    ) -> Dataset:
        """Rows in batches, or single rows, from batch or row `skip` on.

        `records` are strings `[]`, or `[k]` of several.
        """

    @abc.abstractmethod
    def rebatched(self, rows: Dataset, batch: Batch | None) -> Dataset:
        """The same rows in batches of another size, or one by one."""

    @abc.abstractmethod
    def decode(self, records: SerializedRows) -> dict[str, Any]:
        """The features of rows. Rows that were decoded early may have more than those of `schema`."""

    @property
    def is_decoded(self) -> bool:
        """Whether `rows` are decoded already, all features of them."""
        return self.early

    def only(self, names: Iterable[str]) -> DatasetLayout:
        """The same layout, of which only these features are decoded."""
        return replace(self, schema=self.schema.only(names))


class RowLayout(DatasetLayout):
    """One record one row."""

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
        """About a chunk of rows, in whole batches: a slice of a chunk is not copied."""
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
    """A record has up to `size` rows.

    Attributes:
        size: the rows of a record at most.
        parsed: the features that are parsed, of which `schema` may have fewer.
    """

    size: int
    parsed: Schema

    @cached_property
    def _groups(self) -> tuple[ColumnGroup, ...]:
        return column_groups(self.parsed)

    @cached_property
    def _in_groups(self) -> set[str]:
        """The names of what features in groups decode to: each batch of these is taken apart when it is
        decoded, which costs less than to pass on all of their columns."""
        grouped = {place for group in self._groups for place in group.places}
        return {
            name
            for section, feature in self.parsed.placed
            for name in feature.outputs
            if not grouped.isdisjoint((section, column.key) for column in feature.columns())
        }

    def rows(
        self, records: Dataset, batch: Batch | None, shuffle: ShufflePlan | None, skip: Tensor | None
    ) -> Dataset:
        at_once = self.chunk if shuffle is None else shuffle.buffer
        pools = gathered(records, max(1, -(-at_once // self.size)))
        rows = rows_of_pools(
            pools,
            self._held,
            lambda pool: tf.reduce_sum(blocks.rows_of(pool)),
            shuffle=shuffle,
            first=_first_row(batch, skip),
        )
        return self.rebatched(rows, batch)

    def _held(self, pool: Tensor) -> tuple[SerializedRows, Tensor]:
        parsed = blocks.parse(self.parsed, pool)
        count = tf.shape(parsed[ROWS])[0]
        if not self.early:
            return parsed, count
        alone = [name for name in self.parsed.outputs if name not in self._in_groups]
        decoded = decoder.decode_rows(self.parsed.only(alone), parsed, ()) if alone else {}
        return decoded | {name: parsed[name] for group in self._groups for name in group.names}, count

    def rebatched(self, rows: Dataset, batch: Batch | None) -> Dataset:
        if batch is None:
            return rebatch(rows, 1)
        return rebatch(rows, batch.size, drop_remainder=batch.drop_remainder)

    def decode(self, records: SerializedRows) -> dict[str, Any]:
        if not self.early:
            return decoder.decode_rows(self.schema, records, self._groups)
        together = [name for name in self.schema.outputs if name in self._in_groups]
        late = decoder.decode_rows(self.schema.only(together), records, self._groups) if together else {}
        return {name: late[name] if name in late else records[name] for name in self.schema.outputs}

    @property
    def is_decoded(self) -> bool:
        return self.early and not self._groups


def _first_row(batch: Batch | None, skip: Tensor | None) -> Tensor | None:
    """The first row of batch `skip`."""
    return None if skip is None else skip * (1 if batch is None else batch.size)
