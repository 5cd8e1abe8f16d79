"""`fixed_len`: a fixed number of values, `tf.io.FixedLenFeature`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem, show_shape
from recordspec.schema.dates import DateUnit, since_epoch
from recordspec.schema.features.feature import LATER, READING, Feature, Traits, ValueType
from recordspec.schema.features.option_checks import (
    STORAGE,
    WithDefault,
    check_dtype,
    check_sizes,
    check_value,
    problem,
    sample_of,
    static,
    value_item,
)
from recordspec.schema.lists import cells
from recordspec.schema.ragged_array import dense
from recordspec.schema.tensors import Tensor, TypeSpec, WithMissing, with_default
from recordspec.schema.values import encode_list, encode_scalar
from recordspec.wire.arrays import ArrowArray, to_arrow
from recordspec.wire.columns import Column, Fixed


@dataclass(frozen=True, kw_only=True)
class FixedLen(WithDefault, Feature):
    """Exactly `shape` values in every record.

    Given as a number or string, or nested lists or an array of `shape`. Decodes to a dense tensor `[*shape]`,
    and with `with_missing` also to a second tensor, bool `[]`.

    Attributes:
        dtype: float32, int64 or string.
        shape: a scalar by default.
        default: the value for a record without the key, in the full shape.
        date: the unit in which dates and times are stored, as int64, since 1970-01-01 in UTC: days, seconds,
            milliseconds, microseconds or nanoseconds. Nothing is rounded.
        with_missing: whether a second tensor, `<name>_missing`, is decoded, which distinguishes missing
            values from data. `fit.encode` then excludes them from its statistics.
    """

    kind: ClassVar[str] = "fixed_len"

    dtype: str
    shape: tuple[int | None, ...] = ()
    default: Any = field(default=None, metadata=READING)
    date: DateUnit | None = field(default=None, metadata=LATER)
    with_missing: bool = field(default=False, metadata=READING)

    def option_problems(self) -> Iterator[Problem]:
        yield from check_dtype(self.dtype)
        bad_sizes = list(check_sizes("shape", self.shape, "any number of values is `kind: var_len`"))
        yield from bad_sizes or check_value("default", self.default, self.dtype, static(self.shape))
        if self.default is not None and 0 in self.shape:
            hint = "tf.io reads an empty default as no default"
            yield problem(
                "default", "no default of a shape without values", f"shape {show_shape(self.shape)}", hint
            )
        if self.date is not None and (self.dtype != "int64" or self.shape):
            got = self.dtype if self.dtype != "int64" else f"shape {show_shape(self.shape)}"
            yield problem("date", "one int64", got)
        yield from self._default_problems()

    @cached_property
    def traits(self) -> Traits:
        return Traits(
            takes_arrow=True,
            takes_steps=False,
            takes_default=True,
            optional=self.default is not None,
            indicator=self._indicator,
        )

    @property
    def value_type(self) -> ValueType:
        return ValueType(value_item(self.dtype), self.shape, self.date)

    def columns(self) -> tuple[Column, ...]:
        layout = Fixed(shape=static(self.shape), default=self.default, ragged=self.with_missing)
        return (Column(key=self.stored, storage=STORAGE[self.dtype], layout=layout),)

    def encode(self, values: Any) -> tuple[ArrowArray, ...]:
        if self.date is not None:
            return (to_arrow(since_epoch(values, self.date)),)
        flat = cells(values, self.dtype, static(self.shape))
        return (to_arrow(flat, math.prod(static(self.shape)), len(values)),)

    def encode_one(self, value: Any) -> Sequence[Any] | None:
        if not self.shape:
            return encode_scalar(value, self.dtype)
        flat = encode_list(value, self.dtype)
        return flat if flat is not None and (len(flat),) == self.shape else None

    def decode(self, columns: Mapping[str, Tensor]) -> Tensor | dict[str, Tensor]:
        value = columns[self.stored]
        if not self.with_missing:
            return value
        if not isinstance(value, WithMissing):
            value = with_default(value, self.default, static(self.shape))
        return self._with_missing(*value)

    def decode_numpy(self, columns: Mapping[str, ArrowArray]) -> Any:
        values, missing = dense(columns[self.stored], static(self.shape), self.default)
        return self._with_missing(values, missing)

    @property
    def _fixed_shape(self) -> tuple[int, ...] | None:
        has_own = type(self).decode_numpy is not FixedLen.decode_numpy
        return None if has_own or self.with_missing else static(self.shape)

    def spec(self) -> TypeSpec | dict[str, TypeSpec]:
        return self._with_missing(tf.TensorSpec(self.shape, self.dtype), tf.TensorSpec([], "bool"))

    def sample(self, rng: np.random.Generator) -> Any:
        drawn = sample_of(rng, self.dtype, static(self.shape))
        # Arrow dates, whose days are int32, lie within 5.8 million years
        return drawn >> 32 if self.date == "days" else drawn
