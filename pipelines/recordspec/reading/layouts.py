"""How rows are held between reading and decoding: serialized, or as the columns of blocks.

Held either way, rows can be left out, permuted and batched anew before features are decoded from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from recordspec._tf import tf
from recordspec.reading.options import Batch
from recordspec.reading.pools import Held, Mix, gathered, rows_of_pools
from recordspec.spec import blocks, decoder
from recordspec.spec.schema import Schema
from recordspec.wire.blocks import ROWS

Dataset = Any
Tensor = Any

# Rows of blocks that are parsed by one call where nothing is shuffled.
_AT_ONCE = 2048


class Layout(Protocol):
    """How the rows of a dataset are stored."""

    def rows(self, records: Dataset, batch: Batch | None, mix: Mix | None, skip: Tensor | None) -> Dataset:
        """Held rows in batches, or single ones, without the first `skip` of these.

        `records` are strings, `[]` or some together, `[k]`.
        """

    def rebatched(self, rows: Dataset, batch: Batch | None) -> Dataset:
        """Batches of held rows as others, or as single rows."""

    def only(self, names: Iterable[str]) -> Layout:
        """The same, where only these features are decoded."""

    @property
    def early(self) -> bool:
        """Whether held rows are their features already."""

    def parse(self, held: Held) -> Any:
        """The columns of held rows."""

    def decode(self, held: Held) -> dict[str, Any]:
        """The features of held rows."""


@dataclass(frozen=True)
class Rows:
    """A record a row."""

    schema: Schema
    early: ClassVar[bool] = False

    def rows(self, records: Dataset, batch: Batch | None, mix: Mix | None, skip: Tensor | None) -> Dataset:
        first = _first_row(batch, skip)
        if mix is not None:
            pools = gathered(records, mix.buffer)
            return self.rebatched(rows_of_pools(pools, _as_it_is, tf.size, mix=mix, first=first), batch)
        if records.element_spec.shape.rank == 0:
            records = records if first is None else records.skip(first)
            return records if batch is None else records.batch(batch.size, batch.drop_remainder)
        rows = self.rebatched(records, batch)
        return rows if skip is None else rows.skip(skip)

    def rebatched(self, rows: Dataset, batch: Batch | None) -> Dataset:
        if batch is None:
            return rows.unbatch()
        return rows.rebatch(batch.size, drop_remainder=batch.drop_remainder)

    def only(self, names: Iterable[str]) -> Rows:
        return Rows(self.schema.only(names))

    def parse(self, held: Held) -> Any:
        return decoder.parse(self.schema, held)

    def decode(self, held: Held) -> dict[str, Any]:
        return self.schema.decode(held)


@dataclass(frozen=True)
class Blocks:
    """A record has up to `size` rows.

    Attributes:
        early: whether features are decoded before rows are batched, as a pool at a time costs less than a
            batch. Not those that become much larger, images say, nor those padded to the longest of a batch.
    """

    schema: Schema
    size: int
    early: bool

    @classmethod
    def of(cls, schema: Schema, size: int) -> Blocks:
        """With features decoded early where they may be."""
        return cls(schema, size, early=_keeps_in_any_batch(schema))

    def rows(self, records: Dataset, batch: Batch | None, mix: Mix | None, skip: Tensor | None) -> Dataset:
        pools = gathered(records, max(1, -(-(_AT_ONCE if mix is None else mix.buffer) // self.size)))
        first = _first_row(batch, skip)
        return self.rebatched(rows_of_pools(pools, self._held, _rows_in, mix=mix, first=first), batch)

    def _held(self, pool: Tensor) -> tuple[Held, Tensor]:
        parsed = blocks.parse(self.schema, pool)
        count = tf.shape(parsed[ROWS])[0]
        return (decoder.decode_rows(self.schema, parsed) if self.early else parsed), count

    def rebatched(self, rows: Dataset, batch: Batch | None) -> Dataset:
        if batch is None:
            return rows.rebatch(1)
        return rows.rebatch(batch.size, drop_remainder=batch.drop_remainder)

    def only(self, names: Iterable[str]) -> Blocks:
        return replace(self, schema=self.schema.only(names))

    def parse(self, held: Held) -> Any:
        return held

    def decode(self, held: Held) -> dict[str, Any]:
        if self.early:
            return {name: held[name] for name in self.schema.outputs}
        return decoder.decode_rows(self.schema, held)


def _first_row(batch: Batch | None, skip: Tensor | None) -> Tensor | None:
    """The row that the first batch begins with which is not passed over."""
    return None if skip is None else skip * (1 if batch is None else batch.size)


def _as_it_is(pool: Tensor) -> tuple[Held, Tensor]:
    return pool, tf.size(pool)


def _rows_in(pool: Tensor) -> Tensor:
    return tf.reduce_sum(blocks.rows_of(pool))


def _keeps_in_any_batch(schema: Schema) -> bool:
    """Whether a row is decoded to the same whatever it is batched with, and to little more than its bytes."""
    if any(feature.per_example for _, feature in schema.placed):
        return False
    return all(_is_rowwise(spec) for spec in schema.batch_spec().values())


def _is_rowwise(spec: Any) -> bool:
    if isinstance(spec, tf.RaggedTensorSpec):
        return True
    return isinstance(spec, tf.TensorSpec) and None not in spec.shape.as_list()[1:]
