"""`var_len`: any number of values, `tf.io.VarLenFeature`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem
from recordspec.schema import ragged_array
from recordspec.schema.features.feature import (
    LATER,
    READING,
    WRITING,
    Feature,
    Invalid,
    ListForm,
    Traits,
    ValueType,
)
from recordspec.schema.features.option_checks import (
    STORAGE,
    WithLength,
    check_dtype,
    check_positive,
    check_value,
    problem,
    sample_of,
    value_item,
)
from recordspec.schema.features.stored import refused_by_encode
from recordspec.schema.lists import bounded, items_or
from recordspec.schema.tensors import Tensor, TypeSpec, lengths_of, padded, ragged, ragged_spec
from recordspec.schema.values import encode_list
from recordspec.wire.arrays import ArrowArray, to_arrow
from recordspec.wire.columns import Column, VarLen


@dataclass(frozen=True, kw_only=True)
class VariableLen(WithLength, Feature):
    """Any number of values, including none. A record without the key reads as an empty list.

    Given as a list or an array `[k]`. Decodes to `[k]`. A batch is a RaggedTensor `[n, (k)]`, a dense tensor
    padded to the longest value, or a SparseTensor, depending on `as`.

    Attributes:
        dtype: float32, int64 or string.
        as_: the type of a decoded batch.
        pad: the padding value with `as: dense`, or if `fit` makes a batch dense, and of steps;
            zero or the empty string by default.
        max_length: the largest length; longer lists are errors at write. With `as: dense`, every value is
            padded to this length, so that the shape is static.
        with_length: with `as: dense`, whether the number of values is decoded as a second tensor, int64,
            named `<name>_length`, to distinguish padding from data.
        missing_item: the value that is stored in place of an item that is missing, such as null in JSON; by
            default such a list is an error at write.
    """

    kind: ClassVar[str] = "var_len"

    dtype: str
    as_: ListForm = field(default="ragged", metadata=READING)
    pad: Any = field(default=None, metadata=READING)
    max_length: int | None = None
    with_length: bool = field(default=False, metadata=READING)
    missing_item: Any = field(default=None, metadata=WRITING | LATER)

    def option_problems(self) -> Iterator[Problem]:
        yield from check_dtype(self.dtype)
        yield from check_positive("max_length", self.max_length)
        yield from check_value("pad", self.pad, self.dtype, ())
        yield from check_value("missing_item", self.missing_item, self.dtype, ())
        if self.with_length and self.as_ != "dense":
            yield problem("with_length", "false unless `as: dense`", "true", "a ragged value knows it")

    def read_options(self) -> dict[str, Any]:
        """`max_length` matters to a reader only if values are padded to it."""
        options = super().read_options()
        if self.as_ != "dense":
            del options["max_length"]
        return options

    @cached_property
    def traits(self) -> Traits:
        return Traits(
            takes_arrow=True,
            optional=self.missing == "empty",
            outputs=self._outputs,
            longest=self.max_length,
            list_form=self.as_,
            has_lengths=self.with_length or self.as_ != "dense",
        )

    @property
    def value_type(self) -> ValueType:
        return ValueType(value_item(self.dtype), (None,), missing_item=self.missing_item)

    def columns(self) -> tuple[Column, ...]:
        return (
            Column(key=self.stored, storage=STORAGE[self.dtype], layout=VarLen(ragged=self.as_ != "sparse")),
        )

    def encode(self, values: Any) -> tuple[ArrowArray, ...]:
        flat, lengths = items_or(values, self.dtype, (), self.missing_item)
        bounded(lengths, self.max_length)
        return (to_arrow(flat, lengths, len(values)),)

    def encode_one(self, value: Any) -> Sequence[Any] | None:
        flat = encode_list(value, self.dtype)
        too_long = flat is not None and self.max_length is not None and len(flat) > self.max_length
        return None if too_long else flat

    def invalid_stored(self, array: ArrowArray) -> Iterator[Invalid]:
        return refused_by_encode(self, array)

    def decode(self, columns: Mapping[str, Tensor]) -> Tensor | dict[str, Tensor]:
        value = columns[self.stored]
        if self.as_ == "sparse":
            return value
        value = ragged(value)
        if self.as_ == "ragged":
            return value
        return self._with_length(padded(value, self.pad, self.max_length), lambda: lengths_of(value))

    def decode_numpy(self, columns: Mapping[str, ArrowArray]) -> Any:
        if self.as_ == "dense":
            return self.padded_numpy(columns)
        values = self.values_numpy(columns)
        return values if self.as_ == "ragged" else ragged_array.listed(values)

    @property
    def is_padded_to_batch(self) -> bool:
        return self.as_ == "dense" and self.max_length is None

    @property
    def _takes_lists(self) -> bool:
        own = type(self)
        return own.decode_numpy is VariableLen.decode_numpy and own.values_numpy is VariableLen.values_numpy

    def values_numpy(self, columns: Mapping[str, ArrowArray]) -> ragged_array.RaggedArray:
        return ragged_array.ragged(columns[self.stored])

    def spec(self) -> TypeSpec | dict[str, TypeSpec]:
        if self.as_ == "sparse":
            return tf.SparseTensorSpec([None], self.dtype)
        if self.as_ == "dense":
            values = tf.TensorSpec([self.max_length], self.dtype)
            return self._with_length(values, lambda: tf.TensorSpec([], "int64"))
        return ragged_spec((None,), self.dtype)

    def sample(self, rng: np.random.Generator) -> Any:
        return sample_of(rng, self.dtype, (int(rng.integers(0, (self.max_length or 4) + 1)),))
