"""`sparse`: values at indices, `tf.io.SparseFeature`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem, describe, show_shape
from recordspec.schema.features.feature import READING, Feature, ValueType
from recordspec.schema.features.option_checks import STORAGE, check_dtype, check_value, problem, sample_of
from recordspec.schema.lists import items
from recordspec.schema.tensors import TypeSpec
from recordspec.schema.values import BadValue, numbers
from recordspec.wire.arrays import ArrowArray, Ints, to_arrow
from recordspec.wire.columns import Column, Component, Sparse


@dataclass(frozen=True, kw_only=True)
class SparseValues(Feature):
    """A few values of a large tensor, and their indices.

    Given as a pair `(indices, values)` or a mapping with these keys: indices `[k]` if `size` is one number,
    else `[k, dimensions]`; values `[k]`. They are stored in the order of the indices. Decodes to a
    SparseTensor of `size`.

    Attributes:
        dtype: float32, int64 or string.
        size: the size of each dimension.
        index_keys: the keys of the indices, one per dimension; `<key>/indices`, or `<key>/indices_0` and so
            on, by default. The values are stored under `key`.
        pad: the value of missing elements if `fit` makes a batch dense; zero or the empty string by
            default.
    """

    kind: ClassVar[str] = "sparse"

    dtype: str
    size: int | tuple[int, ...]
    index_keys: tuple[str, ...] = ()
    pad: Any = field(default=None, metadata=READING)

    def option_problems(self) -> Iterator[Problem]:
        yield from check_dtype(self.dtype)
        if not self._sizes or any(size < 1 for size in self._sizes):
            yield problem("size", "sizes of at least 1", show_shape(self._sizes))
        elif math.prod(self._sizes) >= 2**63:
            yield problem("size", "a product below 2^63", show_shape(self._sizes))
        elif len(set(self._keys())) < len(self._keys()) or self.stored in self._keys():
            yield problem("index_keys", "every key once", ", ".join(self._keys()))
        elif self.index_keys and len(self.index_keys) != len(self._sizes):
            expected = f"{len(self._sizes)} keys, one for each dimension"
            yield problem("index_keys", expected, str(len(self.index_keys)))
        yield from check_value("pad", self.pad, self.dtype, ())

    def _spelled_out(self) -> dict[str, Any]:
        usual = replace(self, index_keys=()).columns() == self.columns()
        size = self._sizes[0] if len(self._sizes) == 1 else self._sizes
        return super()._spelled_out() | {"size": size} | ({"index_keys": ()} if usual else {})

    @property
    def _sizes(self) -> tuple[int, ...]:
        return (self.size,) if isinstance(self.size, int) else self.size

    def _keys(self) -> tuple[str, ...]:
        if self.index_keys:
            return self.index_keys
        if len(self._sizes) == 1:
            return (f"{self.stored}/indices",)
        return tuple(f"{self.stored}/indices_{place}" for place in range(len(self._sizes)))

    @property
    def value_type(self) -> ValueType:
        return ValueType("pair")

    def columns(self) -> tuple[Column, ...]:
        layout = Sparse(index_keys=self._keys(), size=self._sizes)
        values = Column(key=self.stored, storage=STORAGE[self.dtype], layout=layout)
        indices = (Column(key=key, storage="int64", layout=Component()) for key in self._keys())
        return (values, *indices)

    def encode(self, values: Any) -> tuple[ArrowArray, ...]:
        rows = [self._row(index, value) for index, value in enumerate(values)]
        flat, lengths = items([kept for _, kept in rows], self.dtype, ())
        empty = np.zeros((0, len(self._sizes)), np.int64)
        indices = np.concatenate([empty, *(place for place, _ in rows)])
        columns = (indices[:, at] for at in range(len(self._sizes)))
        return tuple(to_arrow(one, lengths, len(values)) for one in (flat, *columns))

    def _row(self, row: int, value: Any) -> tuple[Ints, list[Any]]:
        """The indices `[k, dimensions]` and the values of one row, in the order of the indices."""
        indices, values = self._pair(row, value)
        shape = () if len(self._sizes) == 1 else (len(self._sizes),)
        try:
            places = numbers(indices, "int64", shape).reshape(-1, len(self._sizes))
        except BadValue as bad:
            raise bad.moved(row) from None
        if len(places) != len(values):
            got = f"{len(places)} indices and {len(values)} values"
            raise BadValue(row, "as many indices as values", got)
        sizes = np.array(self._sizes)
        outside = ((places < 0) | (places >= sizes)).any(axis=1)
        if bool(outside.any()):
            got = str(places[int(outside.argmax())].tolist())
            raise BadValue(row, f"indices within {show_shape(self._sizes)}", got)
        flat = places @ np.cumprod([1, *self._sizes[:0:-1]])[::-1]
        order = np.argsort(flat, kind="stable")
        if bool((np.diff(flat[order]) == 0).any()):
            raise BadValue(row, "every index once", "one of them twice")
        return places[order], [values[at] for at in order.tolist()]

    def _pair(self, row: int, value: Any) -> tuple[Any, Any]:
        if isinstance(value, Mapping) and set(value) == {"indices", "values"}:
            value = (value["indices"], value["values"])
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            expected = "a pair (indices, values), or a mapping of these"
            raise BadValue(row, expected, describe(value))
        indices, values = value
        for part in (indices, values):
            is_array = isinstance(part, np.ndarray) and part.ndim > 0
            if not is_array and not isinstance(part, (list, tuple)):
                raise BadValue(row, "a list of indices and a list of values", describe(part))
        return indices, values

    def restored(self, stored: Mapping[str, Any]) -> Any:
        places = [stored.get(key) or [] for key in self._keys()]
        points = places[0] if len(places) == 1 else list(zip(*places, strict=True))
        return points, stored.get(self.stored) or []

    def spec(self) -> TypeSpec:
        return tf.SparseTensorSpec(self._sizes, self.dtype)

    def sample(self, rng: np.random.Generator) -> Any:
        count = int(rng.integers(0, min(4, self._sizes[0]) + 1))
        first = rng.permutation(self._sizes[0])[:count]
        rest = [rng.integers(0, size, count) for size in self._sizes[1:]]
        indices = np.stack([first, *rest], axis=1) if rest else first
        return indices.tolist(), list(sample_of(rng, self.dtype, (count,)))
