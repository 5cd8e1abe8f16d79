"""How rows are held between reading and decoding: serialized, or as the columns of blocks.

Held either way, rows can be left out, permuted and batched anew before features are decoded from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from recordspec._tf import tf
from recordspec.reading.options import Batch
from recordspec.reading.order import Seeds, permutation, plain, shuffled
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

    def parse(self, held: Held) -> Any:
        """The columns of held rows."""

    def decode(self, held: Held) -> dict[str, Any]:
        """The features of held rows."""

    def places(self) -> Layout:
        """The same, of the records of `stages.places`; rows are held as their places on disk, int64 `[n]`."""


@dataclass(frozen=True)
class Rows:
    """A record a row."""

    schema: Schema

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

    def places(self) -> Rows:
        return self

    def parse(self, held: Held) -> Any:
        return decoder.parse(self.schema, held)

    def decode(self, held: Held) -> dict[str, Any]:
        return self.schema.decode(held)


@dataclass(frozen=True)
class Blocks:
    """A record has up to `size` rows. They are shuffled as blocks, then within pools of blocks."""

    schema: Schema
    size: int

    def rows(self, records: Dataset, batch: Batch | None, mix: Mix | None, skip: Tensor | None) -> Dataset:
        pooled = max(1, -(-(_AT_ONCE if mix is None else mix.buffer) // self.size))
        if mix is None:
            pools = records.batch(pooled).map(plain(self._parse), tf.data.AUTOTUNE, deterministic=True)
        else:
            numbered = shuffled(records, pooled, mix.seeds.rows).batch(pooled).enumerate()

            def pool(number: Tensor, serialized: Tensor) -> Held:
                held = self._parse(serialized)
                return taken(held, permutation(tf.shape(held[ROWS])[0], mix.seeds.pools, number))

            pools = numbered.map(plain(pool), tf.data.AUTOTUNE, deterministic=True)
        rows = self.rebatched(pools, batch)
        return rows if skip is None else rows.skip(skip)

    def rebatched(self, rows: Dataset, batch: Batch | None) -> Dataset:
        if batch is None:
            return rows.rebatch(1)
        return rows.rebatch(batch.size, drop_remainder=batch.drop_remainder)

    def only(self, names: Iterable[str]) -> Blocks:
        return replace(self, schema=self.schema.only(names))

    def places(self) -> Blocks:
        return _BlockPlaces(self.schema, self.size)

    def parse(self, held: Held) -> Any:
        return held

    def _parse(self, serialized: Tensor) -> Held:
        return blocks.parse(self.schema, serialized)

    def decode(self, held: Held) -> dict[str, Any]:
        return decoder.decode_rows(self.schema, held)


@dataclass(frozen=True)
class _BlockPlaces(Blocks):
    """Blocks that are nothing but the first and the last of their places on disk, int64 `[2]`."""

    def _parse(self, serialized: Tensor) -> Held:
        return {ROWS: tf.ragged.range(serialized[:, 0], serialized[:, 1] + 1).flat_values}


def taken(held: Held, places: Tensor) -> Held:
    """Some of the held rows."""
    if isinstance(held, dict):
        return {name: tf.gather(value, places) for name, value in held.items()}
    return tf.gather(held, places)
