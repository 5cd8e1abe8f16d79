"""`tensor`: numbers of any dtype, stored exactly."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem, nearest, one_of, show_shape
from recordspec.schema.features.feature import LATER, READING, WRITING, Feature, Invalid, Traits, ValueType
from recordspec.schema.features.option_checks import (
    WithDefault,
    check_missing_item,
    check_sizes,
    check_value,
    problem,
    static,
)
from recordspec.schema.features.stored import check_bytes, each_refused, outside
from recordspec.schema.lists import items_or
from recordspec.schema.media import array_files
from recordspec.schema.options import frozen_value
from recordspec.schema.ragged_array import RaggedArray, dense, ragged
from recordspec.schema.tensors import (
    Tensor,
    TypeSpec,
    WithMissing,
    ragged_spec,
    reshaped,
    split_raw,
    with_default,
)
from recordspec.schema.values import DTYPES, Array, BadValue, dtype_range, is_integer, numbers, numpy_dtype
from recordspec.wire.arrays import (
    ArrowArray,
    Ints,
    binary_array,
    bytes_in,
    flat_of,
    lengths_of,
    offsets,
    storage_of,
    to_arrow,
    views_of,
)
from recordspec.wire.columns import Column, Fixed, Layout, Ragged, Storage

# Bytes of a compressed tensor that are inflated at a time; only their number is kept.
_INFLATED_AT_ONCE = 1 << 20
# A larger tensor would not fit into a record, which is a protobuf message.
_MOST_INFLATED = 1 << 31
# The list of an Example that stores every value of the dtype exactly; all other dtypes are stored raw.
_LISTS: dict[str, Storage] = {
    **{name: "int64" for name in DTYPES if is_integer(name) and name != "uint64"},
    "bool": "int64",
    **dict.fromkeys(("float16", "bfloat16", "float32"), "float32"),
}
# tf.io.decode_raw does not support these dtypes; it reads their bits as the dtype given here.
_BIT_TWINS = {"uint32": "int32", "uint64": "int64"}


@dataclass(frozen=True, kw_only=True)
class AnyTensor(WithDefault, Feature):
    """A tensor of any dtype. Every value comes back bit for bit.

    Given as a number, nested lists or an array of `shape`; or, unless it is a scalar, as the path or the
    bytes of a `.npy` file. Decodes to a dense tensor `[*shape]`; with an unknown first dimension a batch is a
    RaggedTensor `[n, (k), *rest]`.

    Attributes:
        dtype: bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, complex64
            or complex128.
        shape: a scalar by default; the first dimension may be null.
        encoding: `list`, an Int64List or FloatList; `raw`, little-endian bytes; `zlib`, compressed bytes. By
            default, `list` if it represents the dtype exactly, else `raw`.
        pad: the padding value of values of different sizes, and of steps; zero by default.
        default: the value for a record without the key, in the full shape.
        with_missing: whether a second tensor, `<name>_missing`, is decoded, which distinguishes missing
            values from data. `fit.encode` then excludes them from its statistics.
        missing_item: with the shape `[null]`, the value that is stored in place of an item that is missing,
            such as null in JSON; by default such a list is an error at write.
    """

    kind: ClassVar[str] = "tensor"

    dtype: str
    shape: tuple[int | None, ...] = ()
    encoding: Literal["list", "raw", "zlib"] | None = None
    pad: Any = field(default=None, metadata=READING)
    default: Any = field(default=None, metadata=READING)
    with_missing: bool = field(default=False, metadata=READING)
    missing_item: Any = field(default=None, metadata=WRITING | LATER)

    def option_problems(self) -> Iterator[Problem]:
        if self.dtype not in DTYPES:
            hint = "`kind: text`" if self.dtype == "string" else nearest(self.dtype, DTYPES)
            yield problem("dtype", one_of(DTYPES), f"`{self.dtype}`", hint)
        elif self.encoding == "list" and self.dtype not in _LISTS:
            expected = f"raw or zlib for {self.dtype}"
            yield problem("encoding", expected, "`list`", "no list of an Example holds it exactly")
        yield from check_sizes("shape", self.shape[1:], "only the first may be null")
        yield from check_sizes("shape", static(self.shape[:1]))
        if self._varies and 0 in self.shape:
            yield problem("shape", "sizes of at least 1 after a null", "0")
        yield from check_value("pad", self.pad, self.dtype, ())
        if self.default is not None and (self._varies or 0 in self.shape):
            expected = "no default of a shape that varies, or without values"
            yield problem("default", expected, f"shape {show_shape(self.shape)}")
        else:
            yield from check_value("default", self.default, self.dtype, self._cell)
        yield from check_missing_item(self.missing_item, self.dtype, self.shape)
        yield from self._default_problems()

    def _spelled_out(self) -> dict[str, Any]:
        usual = "list" if self.dtype in _LISTS else "raw"
        return super()._spelled_out() | ({"encoding": None} if self.encoding == usual else {})

    @property
    def _varies(self) -> bool:
        return self.shape[:1] == (None,)

    @property
    def _cell(self) -> tuple[int, ...]:
        """The shape of one item if the first dimension varies, else of the whole tensor."""
        return static(self.shape[1:] if self._varies else self.shape)

    @property
    def _is_list(self) -> bool:
        return self.encoding == "list" or (self.encoding is None and self.dtype in _LISTS)

    @property
    def _stored_cell(self) -> tuple[int, ...]:
        """The stored shape of a value that does not vary: the numbers of a list, or one string."""
        return self._cell if self._is_list else ()

    @cached_property
    def _stored_default(self) -> Any:
        """The default in its stored form."""
        if self.default is None:
            return None
        (stored,) = self.encode([self.default])
        flat = flat_of(stored)
        if not self._is_list:
            return bytes_in(flat)[0]
        return frozen_value(np.asarray(flat).reshape(self._cell).tolist())

    @cached_property
    def traits(self) -> Traits:
        return Traits(
            takes_arrow=True,
            takes_default=True,
            optional=self.default is not None,
            indicator=self._indicator,
            takes_files=self.shape != (),
        )

    @property
    def value_type(self) -> ValueType:
        return ValueType(self.dtype, self.shape, missing_item=self.missing_item)

    def columns(self) -> tuple[Column, ...]:
        layout: Layout = Fixed(
            shape=self._stored_cell, default=self._stored_default, ragged=self.with_missing
        )
        if self._varies and self._is_list:
            layout = Ragged(shape=self._cell)
        storage = _LISTS[self.dtype] if self._is_list else "bytes"
        return (Column(key=self.stored, storage=storage, layout=layout),)

    def encode(self, values: Any) -> tuple[ArrowArray, ...]:
        rows = len(values)
        size = math.prod(self._cell)
        values = array_files.loaded(values) if self.shape else values
        if self._varies:
            flat, lengths = items_or(values, self.dtype, self._cell, self.missing_item)
        else:
            flat, lengths = numbers(values, self.dtype, self._cell).reshape(-1), 1
        if self._is_list:
            listed = flat.astype(np.int64 if _LISTS[self.dtype] == "int64" else np.float32)
            return (to_arrow(listed, lengths * size, rows),)
        array = np.asarray(flat)
        order = array.dtype if array.dtype.kind == "V" else array.dtype.newbyteorder("<")
        data = np.ascontiguousarray(array.astype(order, copy=False)).view(np.uint8).reshape(-1)
        sizes = np.broadcast_to(np.asarray(lengths * size * array.dtype.itemsize), (rows,))
        raw = binary_array(data, offsets(sizes))
        if self.encoding == "zlib":
            return (to_arrow([zlib.compress(one) for one in views_of(raw)]),)
        return (to_arrow(raw),)

    @property
    def restored_type(self) -> ValueType | None:
        if not self._is_list:
            return ValueType(self.dtype, self.shape)
        return ValueType(_LISTS[self.dtype], self.shape) if len(self.shape) > 1 else None

    def restored(self, stored: Mapping[str, Any]) -> Array | None:
        """The value as an array. Numbers of a list have the dtype of the list, so that `encode` checks
        whether they fit.
        """
        flat = stored.get(self.stored)
        if flat is None:
            return None
        shape = (*((-1,) if self._varies else ()), *self._cell)
        if self._is_list:
            return np.array(flat).reshape(shape)
        (data,) = flat
        raw = zlib.decompress(data) if self.encoding == "zlib" else data
        return np.frombuffer(raw, numpy_dtype(self.dtype)).reshape(shape)

    def invalid_stored(self, array: ArrowArray) -> Iterator[Invalid]:
        if storage_of(array) == "bytes":
            yield from each_refused(array, self._check_size)
        elif is_integer(self.dtype) or self.dtype == "bool":
            low, high = (0, 1) if self.dtype == "bool" else dtype_range(self.dtype)
            yield from outside(array, low, high, self.dtype)

    def _check_size(self, data: bytes) -> None:
        """Raises BadValue if the number of bytes differs from the size of the tensor."""
        size = len(data) if self.encoding != "zlib" else _inflated_size(data)
        cell = math.prod(1 if one is None else one for one in self.shape) * numpy_dtype(self.dtype).itemsize
        check_bytes(size, cell, varies=None in self.shape)

    def decode(self, columns: Mapping[str, Tensor]) -> Tensor | dict[str, Tensor]:
        value = columns[self.stored]
        if not self.with_missing:
            return self._decoded(value)
        if not isinstance(value, WithMissing):
            value = WithMissing(*with_default(value, self._stored_default, self._stored_cell))
        return self._with_missing(self._decoded(value.values), value.missing)

    def _decoded(self, value: Tensor) -> Tensor:
        if self._is_list:
            return narrowed(value, self.dtype)
        if self.encoding == "zlib":
            value = tf.io.decode_compressed(value, "ZLIB")
        if self._varies:
            row = math.prod(self._cell) * numpy_dtype(self.dtype).itemsize
            return split_raw(value, self._numbers, row, self._cell)
        return reshaped(self._numbers(value), value, self._cell)

    def _numbers(self, data: Tensor) -> Tensor:
        twin = _BIT_TWINS.get(self.dtype)
        if twin is None:
            return tf.io.decode_raw(data, self.dtype)
        return tf.bitcast(tf.io.decode_raw(data, twin), self.dtype)

    def decode_numpy(self, columns: Mapping[str, ArrowArray]) -> Any:
        array, dtype = columns[self.stored], numpy_dtype(self.dtype)
        if self._varies:
            return self._decoded_numpy(array, dtype)
        values, missing = dense(array, self._stored_cell, self._stored_default)
        if self._is_list:
            made = _cast(values, dtype, np.ones(len(values), np.int64))
        else:
            made = self._of_bytes(values.tolist(), dtype)
        return self._with_missing(made, missing)

    def _decoded_numpy(self, array: ArrowArray, dtype: np.dtype[Any]) -> RaggedArray:
        """Decodes values whose first dimension varies."""
        if not self._is_list:
            made: RaggedArray = self._of_bytes(bytes_in(flat_of(array)), dtype)
            return made
        values = ragged(array, self._cell)
        return RaggedArray(_cast(values.values, dtype, values.lengths), values.lengths)

    def _of_bytes(self, data: list[bytes], dtype: np.dtype[Any]) -> Any:
        if self.encoding == "zlib":
            data = [_inflated(row, one) for row, one in enumerate(data)]
        size, cell = math.prod(self._cell) * dtype.itemsize, self._cell
        for row, one in enumerate(data):
            try:
                check_bytes(len(one), size, varies=self._varies)
            except BadValue as bad:
                raise bad.moved(row) from None
        numbers = np.frombuffer(b"".join(data), dtype.newbyteorder("<")).astype(dtype, copy=False)
        if not self._varies:
            return numbers.reshape(len(data), *cell)
        return RaggedArray(numbers.reshape(-1, *cell), lengths_of(data) // size)

    def spec(self) -> TypeSpec | dict[str, TypeSpec]:
        if self._varies:
            return ragged_spec(self.shape, self.dtype)
        return self._with_missing(tf.TensorSpec(self.shape, self.dtype), tf.TensorSpec([], "bool"))

    def sample(self, rng: np.random.Generator) -> Any:
        shape, dtype = self._cell, self.dtype
        if self._varies:
            shape = (int(rng.integers(0, 4)), *shape)
        if dtype == "bool":
            return rng.integers(0, 2, shape).astype(np.bool_)
        if is_integer(dtype):
            low, high = dtype_range(dtype)
            return np.asarray(rng.integers(low, high, shape, dtype, endpoint=True))
        real = rng.normal(size=shape)
        imaginary = 1j * rng.normal(size=shape) if dtype.startswith("complex") else 0
        return np.asarray(real + imaginary).astype(numpy_dtype(dtype))


def _cast(values: Array, dtype: np.dtype[Any], lengths: Ints) -> Array:
    """Casts numbers of a list to `dtype`. Raises BadValue, with the row, for an integer that overflows."""
    cast = values.astype(dtype)
    wrong = cast != values if dtype.kind in "iu" else np.zeros(0, bool)
    if wrong.any():
        item = int(np.argmax(wrong.reshape(len(values), -1).any(axis=1)))
        row = int(np.searchsorted(np.cumsum(lengths), item, "right"))
        raise BadValue(row, f"numbers that {dtype} holds", str(values[wrong][0]))
    return cast


def narrowed(value: Tensor, dtype: str) -> Tensor:
    """Casts the numbers of a list to `dtype`. A number that overflows, stored by another writer, is an
    error.
    """
    narrow = tf.cast(value, dtype)
    if narrow.dtype == value.dtype or not narrow.dtype.is_integer:
        return narrow
    numbers, cast = (getattr(one, "flat_values", one) for one in (value, narrow))
    message = f"expected {dtype}, got numbers that it cannot hold"
    same = tf.debugging.assert_equal(tf.cast(cast, value.dtype), numbers, message)
    with tf.control_dependencies([same]):
        return tf.identity(narrow)


def _inflated(row: int, data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise BadValue(row, "whole zlib data", str(error)) from None


def _inflated_size(data: bytes) -> int:
    """The size of zlib data once inflated, counted piece by piece."""
    stream, size = zlib.decompressobj(), 0
    try:
        while size <= _MOST_INFLATED and (data or not size):
            some = stream.decompress(data, _INFLATED_AT_ONCE)
            size, data = size + len(some), stream.unconsumed_tail
            if not some:
                break
    except zlib.error as error:
        raise BadValue(0, "whole zlib data", str(error)) from None
    if not stream.eof:
        raise BadValue(0, "whole zlib data", f"{size:,} bytes and no end")
    return size
