"""Checks of options shared by several kinds, and random values for samples."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from recordspec.errors import Problem, describe, nearest, one_of, show_shape
from recordspec.schema.lists import cells
from recordspec.schema.ragged_array import RaggedArray
from recordspec.schema.values import DTYPES, BadValue
from recordspec.wire.arrays import ArrowArray
from recordspec.wire.columns import Storage

# The dtypes that tf.io parses, and the list of an Example that stores each dtype.
STORAGE: dict[str, Storage] = {"float32": "float32", "int64": "int64", "string": "bytes"}

# A record is a protobuf message, which holds less than 2 GiB.
_MOST_VALUES = 1 << 31
_OTHER_NAMES = {"bytes": "string", "str": "string", "text": "string", "int": "int64"} | {
    "float": "float32",
    "double": "float64",
}


def value_item(dtype: str) -> str:
    """The item of a `ValueType` for a dtype that tf.io parses."""
    return "text" if dtype == "string" else dtype


class WithLength(ABC):
    """A kind that decodes to padded values, and with `with_length` also to their number, `<name>_length`."""

    name: str
    pad: Any
    max_length: int | None
    with_length: bool

    @property
    def _outputs(self) -> tuple[str, ...]:
        """The names of the decoded tensors."""
        return (self.name, f"{self.name}_length") if self.with_length else (self.name,)

    @property
    def is_padded_to_batch(self) -> bool:
        """Whether values are padded to the longest value of a batch."""
        return self.max_length is None

    @abstractmethod
    def values_numpy(self, columns: Mapping[str, ArrowArray]) -> RaggedArray:
        """The values without padding."""

    def padded_numpy(self, columns: Mapping[str, ArrowArray]) -> Any:
        """The values padded to the longest value, or to `max_length`."""
        values = self.values_numpy(columns)
        return self._with_length(values.to_dense(self.pad, self.max_length), lambda: values.lengths)

    def unpadded_numpy(self, columns: Mapping[str, ArrowArray]) -> Any:
        """The values without padding, with their lengths if `with_length`."""
        values = self.values_numpy(columns)
        return self._with_length(values, lambda: values.lengths)

    def _with_length(self, values: Any, length: Callable[[], Any]) -> Any:
        """The values alone, or a dict of both tensors or specs by name."""
        return dict(zip(self._outputs, (values, length()), strict=True)) if self.with_length else values


class WithDefault:
    """A kind with one value per row and a default for a missing value. With `with_missing`, a second
    tensor, `<name>_missing`, marks missing values.
    """

    name: str
    default: Any
    with_missing: bool

    @property
    def _indicator(self) -> str | None:
        return f"{self.name}_missing" if self.with_missing else None

    def indicating(self, missing: bool) -> Any:
        return self if self.default is None else replace(self, with_missing=missing)  # type: ignore[type-var]

    def _default_problems(self) -> Iterator[Problem]:
        if self.with_missing and self.default is None:
            yield problem("with_missing", "false without a default", "true", "no value is ever missing")

    def _with_missing(self, values: Any, missing: Any) -> Any:
        """The values alone, or a dict of both tensors or specs by name."""
        return {self.name: values, f"{self.name}_missing": missing} if self.with_missing else values


def problem(option: str, expected: str, got: str, hint: str = "") -> Problem:
    """A problem with one option of a kind."""
    return Problem(path=(option,), expected=expected, got=got, hint=hint)


def static(shape: tuple[int | None, ...]) -> tuple[int, ...]:
    """The sizes of a shape, which are fixed according to `check_sizes`; 0 for an unknown size."""
    return tuple(size or 0 for size in shape)


def check_dtype(dtype: str) -> Iterator[Problem]:
    """Yields the problem of a dtype that tf.io does not parse, with a hint what to use instead."""
    if dtype in STORAGE:
        return
    if dtype in DTYPES:
        hint = "`kind: tensor` stores it exactly"
    elif dtype in _OTHER_NAMES:
        hint = f"write `{_OTHER_NAMES[dtype]}`"
    else:
        hint = nearest(dtype, STORAGE)
    yield problem("dtype", one_of(STORAGE), f"`{dtype}`", hint)


def check_sizes(option: str, shape: tuple[int | None, ...], hint: str = "") -> Iterator[Problem]:
    """Yields the problems of a shape with unknown or too large sizes."""
    bad = [size for size in shape if size is None or size < 0]
    if bad:
        got = "null" if bad[0] is None else str(bad[0])
        yield problem(option, "sizes that are fixed", got, hint)
    elif math.prod(size or 0 for size in shape) >= _MOST_VALUES:
        yield problem(option, f"fewer than {_MOST_VALUES:,} values", show_shape(shape))


def check_positive(option: str, value: int | None) -> Iterator[Problem]:
    """Yields the problem of a bound below 1."""
    if value is not None and value < 1:
        yield problem(option, "at least 1", str(value))


def check_value(option: str, value: Any, dtype: str, shape: tuple[int, ...]) -> Iterator[Problem]:
    """Yields the problem of a default or a padding value of another dtype or shape, which tf.io would
    refuse.
    """
    if value is None or dtype not in (*STORAGE, *DTYPES):
        return
    refused = (bytes, complex) if dtype == "bool" else (bytes, complex, bool)
    odd = [item for item in _leaves(value) if isinstance(item, refused)]
    if odd:
        yield problem(option, "text" if dtype == "string" else dtype, describe(odd[0]))
        return
    try:
        cells([value], dtype, shape)
    except BadValue as bad:
        hint = bad.problem.hint or ("quote it" if dtype == "string" and not shape else "")
        yield problem(option, bad.problem.expected, bad.problem.got, hint)


def check_missing_item(value: Any, dtype: str, shape: tuple[int | None, ...]) -> Iterator[Problem]:
    """Yields the problems of a value in place of an item, which has to be a single value of a list."""
    if value is not None and (not shape or set(shape) != {None}):
        expected = "a list of single values, whose shape has only nulls"
        yield problem("missing_item", expected, f"shape {show_shape(shape)}")
    yield from check_value("missing_item", value, dtype, ())


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def sample_of(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Any:
    """Random numbers or strings of a shape; a Python value for the shape `()`."""
    if dtype == "string":
        values = np.empty(shape, object)
        for index in np.ndindex(shape):
            values[index] = rng.bytes(int(rng.integers(0, 9)))
        return values.tolist()
    if dtype == "int64":
        shift = int(rng.integers(0, 63))
        array = rng.integers(-(2**63), 2**63 - 1, shape, np.int64, endpoint=True) >> shift
    else:
        array = rng.normal(size=shape).astype(np.float32)
    return np.asarray(array).item() if shape == () else array
