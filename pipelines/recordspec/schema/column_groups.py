"""Columns of one value a row, and of one type, that are parsed together, and split when rows are taken.

A graph pays for each tensor: about a microsecond in each stage of tf.data, and, of a ragged one, which a
column with a default is, tens of milliseconds until the first batch. With a thousand columns that is more
than what their values cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recordspec._tf import tf
from recordspec.schema.feature_set import FeatureSet, columns_in
from recordspec.schema.features.feature import Feature
from recordspec.schema.tensors import Tensor, WithMissing
from recordspec.wire import blocks
from recordspec.wire.columns import TF_DTYPES, Column, Fixed, Place

# Columns of one type from which they are parsed together. Strings are copied when they are put together and
# taken apart: with fewer, that costs more than the tensors. Those with defaults are copied anyway.
_FEWEST, _FEWEST_STRINGS = 4, 64

AS_MANY = "expected as many values as the rows of a block have"


@dataclass(frozen=True)
class ColumnGroup:
    """Columns that are parsed to one tensor, `[rows, columns]`.

    Attributes:
        name: that of the tensor.
        dtype: the name of its dtype.
        columns: each with its place.
        optional: whether a row may have no value, but a default.
    """

    name: str
    dtype: str
    columns: tuple[tuple[Place, Column], ...]
    optional: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tensors: of the values, and of which are missing where a feature tells it."""
        tells = any(column.layout.ragged for _, column in self.columns if isinstance(column.layout, Fixed))
        return (self.name, f"{self.name}/missing") if self.optional and tells else (self.name,)

    def of_blocks(self, serialized: Tensor, rows: Tensor) -> dict[str, Tensor]:
        """The tensors of blocks, string `[p]`, of so many rows, int64 `[p]`. Other numbers of values are
        an InvalidArgumentError."""
        keys = [blocks.block_key(place) for place, _ in self.columns]
        ends = tf.cumsum(rows)[tf.newaxis]
        if not self.optional:
            values, splits = _parsed(serialized, dict.fromkeys(keys, self.dtype))
            with tf.control_dependencies([tf.debugging.assert_equal(splits[:, 1:], ends, AS_MANY)]):
                return {self.name: tf.stack(values, 1)}
        lengths_of, splits = _parsed(serialized, dict.fromkeys(map(blocks.lengths_key, keys), "int64"))
        with tf.control_dependencies([tf.debugging.assert_equal(splits[:, 1:], ends, AS_MANY)]):
            lengths = tf.stack(lengths_of)
        values, splits = _parsed(serialized, dict.fromkeys(keys, self.dtype))
        found = tf.gather(tf.pad(tf.cumsum(lengths, 1), [[0, 0], [1, 0]]), ends[0], axis=1)
        with tf.control_dependencies([tf.debugging.assert_equal(splits[:, 1:], found, AS_MANY)]):
            return self._filled(values, tf.identity(lengths))

    def of_records(self, serialized: Tensor) -> dict[str, Tensor]:
        """The tensors of records, string `[n]`."""
        values, splits = _parsed(
            serialized, dict.fromkeys((place.key for place, _ in self.columns), self.dtype)
        )
        return self._filled(values, splits[:, 1:] - splits[:, :-1])

    def _filled(self, values: list[Tensor], lengths: Tensor) -> dict[str, Tensor]:
        """The values, with defaults where there is none.

        Args:
            values: of each column, those that are there.
            lengths: how many each row has, int64 `[columns, rows]`.
        """
        others = tf.bitwise.bitwise_and(lengths, tf.constant(~1, tf.int64))  # of 0 and 1, none
        is_one = tf.debugging.assert_equal(others, tf.zeros([], tf.int64), "expected one value, or none")
        with tf.control_dependencies([is_one]):
            missing = lengths < 1
        defaults: list[Any] = [column.layout.default for _, column in self.columns]  # type: ignore[union-attr]
        flat = tf.concat([*values, tf.constant(defaults, self.dtype)], 0)
        places = tf.reshape(tf.cumsum(tf.reshape(lengths, [-1]), exclusive=True), tf.shape(lengths))
        first = tf.shape(flat, tf.int64)[0] - len(defaults)
        of_default = tf.range(first, tf.shape(flat, tf.int64)[0])[:, tf.newaxis]
        made = tf.gather(flat, tf.transpose(tf.where(missing, of_default, places)))
        return dict(zip(self.names, (made, tf.transpose(missing)), strict=False))

    def split(self, tensors: Mapping[str, Tensor]) -> Iterator[tuple[Place, Any]]:
        """Each column, by its place, `[rows]`; where its feature tells what is missing, WithMissing."""
        values, *missing = (tf.unstack(tensors[name], len(self.columns), 1) for name in self.names)
        for number, (place, column) in enumerate(self.columns):
            tells = isinstance(column.layout, Fixed) and column.layout.ragged
            value = WithMissing(values[number], missing[0][number]) if tells else values[number]
            yield place, value


def column_groups(schema: FeatureSet) -> tuple[ColumnGroup, ...]:
    """The groups of the columns of a schema that blocks are parsed to; others have a tensor of their own."""
    return tuple(group for group in _groups(schema) if len(group.columns) >= _fewest(group))


def record_groups(schema: FeatureSet) -> tuple[ColumnGroup, ...]:
    """Those of records: `tf.io.parse_example` parses others as fast."""
    return tuple(group for group in column_groups(schema) if len(group.names) > 1)


def _fewest(group: ColumnGroup) -> int:
    return _FEWEST_STRINGS if group.dtype == "string" and not group.optional else _FEWEST


def _groups(schema: FeatureSet) -> list[ColumnGroup]:
    columns: dict[tuple[str, bool], list[tuple[Place, Column]]] = {}
    for place, feature in schema._placed:
        if (column := _alone(feature, place)) is not None:
            of_type = TF_DTYPES[column.storage], column.has_default
            columns.setdefault(of_type, []).append((Place(place.section, column.key), column))
    return [
        ColumnGroup(f"{blocks.ROWS}/{dtype}{'/optional' * optional}", dtype, tuple(of_type), optional)
        for (dtype, optional), of_type in columns.items()
    ]


def _alone(feature: Feature, place: Place) -> Column | None:
    """The only column of a feature, if it has one value a row, or a default."""
    column, *others = columns_in(place, feature)
    is_single = isinstance(column.layout, Fixed) and column.cell == () and not place.in_steps
    # a custom kind that asks for a ragged tensor may use it otherwise
    asks = isinstance(column.layout, Fixed) and column.layout.ragged and feature.traits.indicator is None
    return column if is_single and not others and not asks else None


def _parsed(serialized: Tensor, dtypes: Mapping[str, str]) -> tuple[list[Tensor], Tensor]:
    """The values under each of these keys, end to end, and where those of each record begin and end among
    them, int64 `[keys, records + 1]`."""
    none = tf.constant([], tf.string)
    parsed = tf.raw_ops.ParseExampleV2(
        serialized=serialized,
        names=none,
        sparse_keys=none,
        dense_keys=none,
        ragged_keys=tf.constant(list(dtypes)),
        dense_defaults=[],
        num_sparse=0,
        sparse_types=[],
        ragged_value_types=[tf.as_dtype(dtype) for dtype in dtypes.values()],
        ragged_split_types=[tf.int64] * len(dtypes),
        dense_shapes=[],
    )
    return parsed.ragged_values, tf.stack(parsed.ragged_row_splits)
