"""`fixed_len`: a fixed number of values, `tf.io.FixedLenFeature`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem, show_shape
from recordspec.spec.features.base import READING, Feature, ValueType
from recordspec.spec.features.options import (
    STORAGE,
    check_dtype,
    check_sizes,
    check_value,
    problem,
    sample_of,
    static,
    value_item,
)
from recordspec.spec.lists import cells
from recordspec.spec.tensors import TypeSpec
from recordspec.spec.values import encode_list, encode_scalar
from recordspec.wire.columns import Cells, Column, Fixed


@dataclass(frozen=True, kw_only=True)
class FixedLen(Feature):
    """Exactly `shape` values in every record.

    Given as a number or string, or nested lists or an array of `shape`. Decodes to a dense tensor
    `[*shape]`.

    Attributes:
        dtype: float32, int64 or string.
        shape: a scalar by default.
        default: what a record without the key reads as; it has the full shape.
    """

    kind: ClassVar[str] = "fixed_len"

    dtype: str
    shape: tuple[int | None, ...] = ()
    default: Any = field(default=None, metadata=READING)

    def check(self) -> Iterator[Problem]:
        yield from check_dtype(self.dtype)
        bad_sizes = list(check_sizes("shape", self.shape, "any number of values is `kind: var_len`"))
        yield from bad_sizes or check_value("default", self.default, self.dtype, static(self.shape))
        if self.default is not None and 0 in self.shape:
            hint = "to tf.io an empty default is none"
            yield problem(
                "default", "no default of a shape without values", f"shape {show_shape(self.shape)}", hint
            )

    @property
    def optional(self) -> bool:
        return self.default is not None

    @property
    def value_type(self) -> ValueType:
        return ValueType(value_item(self.dtype), self.shape)

    def columns(self) -> tuple[Column, ...]:
        layout = Fixed(shape=static(self.shape), default=self.default)
        return (Column(key=self.stored, storage=STORAGE[self.dtype], layout=layout),)

    def encode(self, values: Any) -> tuple[Cells, ...]:
        flat = cells(values, self.dtype, static(self.shape))
        return (Cells(flat=flat, lengths=math.prod(static(self.shape)), rows=len(values)),)

    def encode_one(self, value: Any) -> Sequence[Any] | None:
        if not self.shape:
            return encode_scalar(value, self.dtype)
        flat = encode_list(value, self.dtype)
        return flat if flat is not None and (len(flat),) == self.shape else None

    def spec(self) -> TypeSpec:
        return tf.TensorSpec(self.shape, self.dtype)

    def sample(self, rng: np.random.Generator) -> Any:
        return sample_of(rng, self.dtype, static(self.shape))
