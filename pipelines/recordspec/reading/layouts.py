"""How rows are held between reading and decoding: serialized, or as the columns of blocks.

Held either way, rows can be left out, permuted and batched anew before features are decoded from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from recordspec._tf import tf
from recordspec.reading.options import Batch
from recordspec.reading.pools import Held, Mix, drawn, gathered, rows_of_pools, shuffled, together
from recordspec.reading.transformations import CALLS, map_elements, rebatch
from recordspec.spec import blocks, decoder
from recordspec.spec.schema import Schema
from recordspec.wire.blocks import ROWS

Dataset = Any
Tensor = Any


class Layout(Protocol):
    """How the rows of a dataset are stored."""

    @property
    def schema(self) -> Schema:
        """What is parsed of them."""

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
    """A record a row.

    Attributes:
        chunk: rows that are decoded by one call.
        early: whether they are decoded so, before they are batched; else each batch is.
    """

    schema: Schema
    chunk: int
    early: bool

    def rows(self, records: Dataset, batch: Batch | None, mix: Mix | None, skip: Tensor | None) -> Dataset:
        if mix is not None and mix.large:
            records, mix = shuffled(records, mix), None
        if mix is not None:
            pools, first = gathered(records, mix.buffer), _first_row(batch, skip)
            return self.rebatched(drawn(pools, self._at_once(batch), self._held, mix=mix, first=first), batch)
        found = self._in_order(records, batch, skip)
        if self.early and batch is not None:
            found = map_elements(gathered(found, self._at_once(batch)), self._held, CALLS)
        return self.rebatched(found, batch)

    def _at_once(self, batch: Batch | None) -> int:
        """About as many rows as a chunk has, in whole batches: a slice of a chunk is no copy of it."""
        if batch is None:
            return self.chunk
        return batch.size * (max(1, self.chunk // batch.size) if self.early else 1)

    def _held(self, serialized: Tensor) -> Held:
        return self.schema.decode(serialized) if self.early else serialized

    def _in_order(self, records: Dataset, batch: Batch | None, skip: Tensor | None) -> Dataset:
        if skip is None:
            return records
        if together(records):
            return self.rebatched(records, batch).skip(skip)
        return records.skip(_first_row(batch, skip))

    def rebatched(self, rows: Dataset, batch: Batch | None) -> Dataset:
        if batch is None:
            return rows.unbatch() if together(rows) else rows
        return gathered(rows, batch.size, drop_remainder=batch.drop_remainder)

    def only(self, names: Iterable[str]) -> Rows:
        return replace(self, schema=self.schema.only(names))

    def parse(self, held: Held) -> Any:
        return held if self.early else decoder.parse(self.schema, held)

    def decode(self, held: Held) -> dict[str, Any]:
        return _named(self.schema, held) if self.early else self.schema.decode(held)


@dataclass(frozen=True)
class Blocks:
    """A record has up to `size` rows.

    Attributes:
        chunk: rows that are parsed by one call where nothing is shuffled.
        early: whether they are decoded by it.
    """

    schema: Schema
    size: int
    chunk: int
    early: bool

    def rows(self, records: Dataset, batch: Batch | None, mix: Mix | None, skip: Tensor | None) -> Dataset:
        pools = gathered(records, max(1, -(-(self.chunk if mix is None else mix.buffer) // self.size)))
        first = _first_row(batch, skip)
        return self.rebatched(rows_of_pools(pools, self._held, _rows_in, mix=mix, first=first), batch)

    def _held(self, pool: Tensor) -> tuple[Held, Tensor]:
        parsed = blocks.parse(self.schema, pool)
        count = tf.shape(parsed[ROWS])[0]
        return (decoder.decode_rows(self.schema, parsed) if self.early else parsed), count

    def rebatched(self, rows: Dataset, batch: Batch | None) -> Dataset:
        if batch is None:
            return rebatch(rows, 1)
        return rebatch(rows, batch.size, drop_remainder=batch.drop_remainder)

    def only(self, names: Iterable[str]) -> Blocks:
        return replace(self, schema=self.schema.only(names))

    def parse(self, held: Held) -> Any:
        return held

    def decode(self, held: Held) -> dict[str, Any]:
        return _named(self.schema, held) if self.early else decoder.decode_rows(self.schema, held)


def _first_row(batch: Batch | None, skip: Tensor | None) -> Tensor | None:
    """The row that the first batch begins with which is not passed over."""
    return None if skip is None else skip * (1 if batch is None else batch.size)


def _named(schema: Schema, held: Held) -> dict[str, Any]:
    """The features of a schema, of those that are decoded already."""
    return {name: held[name] for name in schema.outputs}


def _rows_in(pool: Tensor) -> Tensor:
    return tf.reduce_sum(blocks.rows_of(pool))


def keeps_in_any_batch(schema: Schema) -> bool:
    """Whether a row is decoded to the same whatever it is batched with, and to little more than its bytes.

    Such rows are decoded before they are batched, many by one call, which costs less than a call for each
    batch. Others are images, say, or padded to the longest of their batch.
    """
    if any(feature.per_example for _, feature in schema.placed):
        return False
    return all(_is_rowwise(spec) for spec in decoder.batch_spec(schema).values())


def _is_rowwise(spec: Any) -> bool:
    if isinstance(spec, tf.RaggedTensorSpec):
        return True
    return isinstance(spec, tf.TensorSpec) and None not in spec.shape.as_list()[1:]
