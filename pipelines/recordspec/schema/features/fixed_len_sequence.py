"""`fixed_len_sequence`: any number of steps of one shape, `tf.io.FixedLenSequenceFeature`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem
from recordspec.schema.features.feature import READING, Feature, Invalid, Traits, ValueType
from recordspec.schema.features.option_checks import (
    STORAGE,
    WithLength,
    check_dtype,
    check_positive,
    check_sizes,
    check_value,
    problem,
    sample_of,
    static,
    value_item,
)
from recordspec.schema.features.stored import refused_by_encode
from recordspec.schema.lists import bounded, items
from recordspec.schema.ragged_array import RaggedArray, ragged
from recordspec.schema.tensors import Tensor, TypeSpec, lengths_of, padded
from recordspec.wire.arrays import ArrowArray, to_arrow
from recordspec.wire.columns import Column, Ragged, Sequence


@dataclass(frozen=True, kw_only=True)
class FixedLenSequence(WithLength, Feature):
    """Any number of steps, each of `shape`.

    Given as a list of steps or an array `[steps, *shape]`. Decodes to a dense tensor
    `[steps, *shape]`; a batch is padded to its longest value. `with_length` decodes the number of steps as
    a second tensor, int64, named `<name>_length`, which distinguishes padding from data.

    Attributes:
        dtype: float32, int64 or string.
        shape: the shape of a step; a scalar by default.
        pad: the padding value; zero or the empty string by default.
        max_length: the largest number of steps; more steps are an error at write. Every value is padded to
            this length, so that the shape is static.
        with_length: whether the number of steps is decoded as well.
    """

    kind: ClassVar[str] = "fixed_len_sequence"

    dtype: str
    shape: tuple[int | None, ...] = ()
    pad: Any = field(default=None, metadata=READING)
    max_length: int | None = None
    with_length: bool = field(default=False, metadata=READING)

    def option_problems(self) -> Iterator[Problem]:
        yield from check_dtype(self.dtype)
        yield from check_sizes("shape", self.shape, "the shape of one step, without the number of steps")
        if 0 in self.shape:
            yield problem("shape", "sizes of at least 1", "0", "such steps could not be counted")
        yield from check_positive("max_length", self.max_length)
        yield from check_value("pad", self.pad, self.dtype, ())

    @cached_property
    def traits(self) -> Traits:
        return Traits(
            takes_arrow=True,
            spans_steps=True,
            outputs=self._outputs,
            longest=self.max_length,
            has_lengths=self.with_length,
        )

    @property
    def value_type(self) -> ValueType:
        return ValueType(value_item(self.dtype), (None, *self.shape))

    def columns(self) -> tuple[Column, ...]:
        layout = Sequence(shape=static(self.shape), pad=self.pad, may_be_missing=self.missing == "empty")
        counted = Ragged(shape=static(self.shape))
        return (
            Column(
                key=self.stored,
                storage=STORAGE[self.dtype],
                layout=counted if self.with_length else layout,
            ),
        )

    def encode(self, values: Any) -> tuple[ArrowArray, ...]:
        flat, lengths = items(values, self.dtype, static(self.shape))
        bounded(lengths, self.max_length)
        return (to_arrow(flat, lengths * math.prod(static(self.shape)), len(values)),)

    def invalid_stored(self, array: ArrowArray) -> Iterator[Invalid]:
        return refused_by_encode(self, array)

    def decode(self, columns: Mapping[str, Tensor]) -> Tensor | dict[str, Tensor]:
        value = columns[self.stored]
        return self._with_length(
            padded(value, self.pad, self.max_length, self.shape), lambda: lengths_of(value)
        )

    def decode_numpy(self, columns: Mapping[str, ArrowArray]) -> Any:
        return self.padded_numpy(columns)

    def values_numpy(self, columns: Mapping[str, ArrowArray]) -> RaggedArray:
        return ragged(columns[self.stored], static(self.shape))

    def spec(self) -> TypeSpec | dict[str, TypeSpec]:
        values = tf.TensorSpec([self.max_length, *self.shape], self.dtype)
        return self._with_length(values, lambda: tf.TensorSpec([], "int64"))

    def sample(self, rng: np.random.Generator) -> Any:
        steps = int(rng.integers(0, (self.max_length or 4) + 1))
        return sample_of(rng, self.dtype, (steps, *static(self.shape)))
