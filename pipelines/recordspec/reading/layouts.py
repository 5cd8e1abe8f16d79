"""How rows are held between reading and decoding: serialized, or as the columns of blocks.

Held either way, rows can be left out, permuted and batched anew before features are decoded from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from recordspec._tf import tf
from recordspec.reading.options import Batch
from recordspec.reading.order import Seeds, permuted, plain, shuffled
from recordspec.spec import blocks, decoder
from recordspec.spec.schema import Schema
from recordspec.wire.blocks import ROWS

Dataset = Any
Tensor = Any
# String `[n]`, or a dict of columns with n rows each; a single row is string `[]`, or one of n = 1.
Held = Any

# Rows of blocks that are parsed by one call where nothing is shuffled.
_AT_ONCE = 2048


@dataclass(frozen=True, kw_only=True)
class Mix:
    """How the rows of a pass are put in order.

    Attributes:
        buffer: rows that they are shuffled within.
        seeds: of the shuffles.
    """

    buffer: int
    seeds: Seeds


class Layout(Protocol):
    """How the rows of a dataset are stored."""

    def rows(self, records: Dataset, batch: Batch | None, mix: Mix | None, skip: Tensor | None) -> Dataset:
        """Held rows of records in batches, or single ones, without the first `skip` of these."""

    def rebatched(self, rows: Dataset, batch: Batch | None) -> Dataset:
        """Batches of held rows as others, or as single rows."""

    def only(self, names: Iterable[str]) -> Layout:
        """The same, where only these features are decoded."""

    @property
    def early(self) -> bool:
        """Whether held rows are their features already."""

    def decode(self, held: Held) -> dict[str, Any]:
        """The features of held rows."""


@dataclass(frozen=True)
class Rows:
    """A record a row."""

    schema: Schema
    early: ClassVar[bool] = False

    def rows(self, records: Dataset, batch: Batch | None, mix: Mix | None, skip: Tensor | None) -> Dataset:
        if mix is not None:
            records = shuffled(records, mix.buffer, mix.seeds.rows)
        if skip is not None:
            records = records.skip(skip * (1 if batch is None else batch.size))
        return records if batch is None else records.batch(batch.size, batch.drop_remainder)

    def rebatched(self, rows: Dataset, batch: Batch | None) -> Dataset:
        if batch is None:
            return rows.unbatch()
        return rows.rebatch(batch.size, drop_remainder=batch.drop_remainder)

    def only(self, names: Iterable[str]) -> Rows:
        return Rows(self.schema.only(names))

    def decode(self, held: Held) -> dict[str, Any]:
        return self.schema.decode(held)


@dataclass(frozen=True)
class Blocks:
    """A record has up to `size` rows. They are shuffled as blocks, then within pools of blocks.

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
        pooled = max(1, -(-(_AT_ONCE if mix is None else mix.buffer) // self.size))
        if mix is not None:
            records = shuffled(records, pooled, mix.seeds.rows)
        pools = records.batch(pooled).enumerate()
        if skip is not None:
            pools = _from(pools, skip * (1 if batch is None else batch.size))

        def rows(number: Tensor, pool: Tensor, left_out: Tensor | None = None) -> Held:
            parsed = blocks.parse(self.schema, pool)
            held = decoder.decode_rows(self.schema, parsed) if self.early else parsed
            if mix is None and left_out is None:
                return held
            places = tf.range(tf.shape(parsed[ROWS])[0])
            if mix is not None:
                places = permuted(places, mix.seeds.pools, number)
            return taken(held, places if left_out is None else places[left_out:])

        return self.rebatched(pools.map(plain(rows), tf.data.AUTOTUNE, deterministic=True), batch)

    def rebatched(self, rows: Dataset, batch: Batch | None) -> Dataset:
        if batch is None:
            return rows.rebatch(1)
        return rows.rebatch(batch.size, drop_remainder=batch.drop_remainder)

    def only(self, names: Iterable[str]) -> Blocks:
        return replace(self, schema=self.schema.only(names))

    def decode(self, held: Held) -> dict[str, Any]:
        if self.early:
            return {name: held[name] for name in self.schema.outputs}
        return decoder.decode_rows(self.schema, held)


def _keeps_in_any_batch(schema: Schema) -> bool:
    """Whether a row is decoded to the same whatever it is batched with, and to little more than its bytes."""
    if any(feature.per_example for _, feature in schema.placed):
        return False
    return all(_is_rowwise(spec) for spec in schema.batch_spec().values())


def _is_rowwise(spec: Any) -> bool:
    if isinstance(spec, tf.RaggedTensorSpec):
        return True
    return isinstance(spec, tf.TensorSpec) and None not in spec.shape.as_list()[1:]


def _from(pools: Dataset, row: Tensor) -> Dataset:
    """The pools from the one on that has this row, each with how many of its rows are before it.

    Of the others only the number of rows is read.
    """

    def counted(before: Tensor, numbered: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        number, pool = numbered
        after = before + tf.reduce_sum(blocks.rows_of(pool))
        return after, (number, pool, tf.maximum(row - before, 0), after)

    found = pools.scan(tf.zeros([], tf.int64), plain(counted))
    found = found.filter(plain(lambda number, pool, left_out, after: after > row))
    return found.map(plain(lambda number, pool, left_out, after: (number, pool, left_out)))


def taken(held: Held, places: Tensor) -> Held:
    """Some of the held rows."""
    if isinstance(held, dict):
        return {name: tf.gather(value, places) for name, value in held.items()}
    return tf.gather(held, places)
