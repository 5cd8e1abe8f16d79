"""`ragged`: lists of lists, `tf.io.RaggedFeature`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from recordspec.errors import Problem, show_shape
from recordspec.schema.features.feature import LATER, READING, WRITING, Feature, Traits, ValueType
from recordspec.schema.features.option_checks import (
    STORAGE,
    check_dtype,
    check_missing_item,
    check_value,
    problem,
    sample_of,
    value_item,
)
from recordspec.schema.lists import by_row, items_or, rows_of
from recordspec.schema.tensors import TypeSpec, ragged_spec
from recordspec.schema.values import nested
from recordspec.wire.arrays import ArrowArray, to_arrow
from recordspec.wire.columns import Column, Component, Ragged
from recordspec.wire.example import sizes_of_groups


@dataclass(frozen=True, kw_only=True)
class RaggedLists(Feature):
    """Nested lists of different lengths, of cells of a fixed shape.

    Given as nested lists. Decodes to a RaggedTensor with a ragged dimension for each `null` of `shape`; in a
    single record, the first of them is a plain dimension.

    Attributes:
        dtype: float32, int64 or string.
        shape: one `null` for each ragged level, then the sizes of a cell: `[null, null]`,
            `[null, 4]`.
        row_lengths: the keys of the lengths of the inner lists, outermost first;
            `<key>/row_lengths`, `<key>/row_lengths_2`, ... by default.
        pad: the padding value if `fit` makes a batch dense; zero or the empty string by default.
        missing_item: the value that is stored in place of an item that is missing, such as null in JSON, if
            items are single values; by default such a list is an error at write.
    """

    kind: ClassVar[str] = "ragged"

    dtype: str
    shape: tuple[int | None, ...]
    row_lengths: tuple[str, ...] = ()
    pad: Any = field(default=None, metadata=READING)
    missing_item: Any = field(default=None, metadata=WRITING | LATER)

    def option_problems(self) -> Iterator[Problem]:
        yield from check_dtype(self.dtype)
        if self._levels == 0 or None in self._cell or any(size < 1 for size in self._cell):
            expected = "one null for each ragged level, then sizes of at least 1"
            yield problem("shape", expected, show_shape(self.shape))
        elif self.row_lengths and len(self.row_lengths) != self._levels - 1:
            expected = f"{self._levels - 1} keys, one for each null but the first"
            yield problem("row_lengths", expected, str(len(self.row_lengths)))
        yield from check_value("pad", self.pad, self.dtype, ())
        yield from check_missing_item(self.missing_item, self.dtype, self.shape)

    def _spelled_out(self) -> dict[str, Any]:
        usual = replace(self, row_lengths=()).columns() == self.columns()
        return super()._spelled_out() | ({"row_lengths": ()} if usual else {})

    @property
    def _levels(self) -> int:
        return next((at for at, size in enumerate(self.shape) if size is not None), len(self.shape))

    @property
    def _cell(self) -> tuple[Any, ...]:
        return self.shape[self._levels :]

    def _length_keys(self) -> tuple[str, ...]:
        places = range(1, self._levels)
        default = (f"{self.stored}/row_lengths{f'_{at}' * (at > 1)}" for at in places)
        return self.row_lengths or tuple(default)

    @cached_property
    def traits(self) -> Traits:
        return Traits(takes_arrow=True, optional=self.missing == "empty")

    @property
    def value_type(self) -> ValueType:
        return ValueType(value_item(self.dtype), self.shape, missing_item=self.missing_item)

    def columns(self) -> tuple[Column, ...]:
        layout = Ragged(row_lengths=self._length_keys(), shape=self._cell)
        values = Column(key=self.stored, storage=STORAGE[self.dtype], layout=layout)
        lengths = (Column(key=key, storage="int64", layout=Component()) for key in self._length_keys())
        return (values, *lengths)

    def encode(self, values: Any) -> tuple[ArrowArray, ...]:
        flat, lengths = _flatten(values, self._levels, self)
        belongs = lengths[0]  # the number of items of the current level in each row
        parts = []
        for inner in lengths[1:]:
            parts.append(to_arrow(inner, belongs))
            belongs = sizes_of_groups(inner, belongs)
        return (to_arrow(flat, belongs * math.prod(self._cell)), *parts)

    def restored(self, stored: Mapping[str, Any]) -> Any:
        rows: Any = nested(stored.get(self.stored) or [], (None, *self._cell))
        for key in reversed(self._length_keys()):
            ends = np.cumsum([0, *(stored.get(key) or [])])
            rows = [rows[start:stop] for start, stop in pairwise(ends)]
        return rows

    def spec(self) -> TypeSpec:
        return ragged_spec(self.shape, self.dtype, self._levels - 1)

    def sample(self, rng: np.random.Generator) -> Any:
        return self._sample(rng, self._levels)

    def _sample(self, rng: np.random.Generator, levels: int) -> Any:
        count = int(rng.integers(0, 4))
        if levels == 1:
            return sample_of(rng, self.dtype, (count, *self._cell))
        return [self._sample(rng, levels - 1) for _ in range(count)]


def _flatten(values: Any, levels: int, feature: RaggedLists) -> Any:
    """Flattens nested lists to their cells and the lengths of each level, int64 `[m]`, outermost first."""
    if levels == 1:
        flat, lengths = items_or(values, feature.dtype, feature._cell, feature.missing_item)
        return flat, [_each(lengths, len(values))]
    inner, lengths = rows_of(values, f"a list of lists of {feature.dtype}")
    with by_row(lengths):
        flat, below = _flatten(inner, levels - 1, feature)
    return flat, [_each(lengths, len(values)), *below]


def _each(lengths: Any, rows: int) -> Any:
    return np.full(rows, lengths, np.int64) if isinstance(lengths, int) else lengths
