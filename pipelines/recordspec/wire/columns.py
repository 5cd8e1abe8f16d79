"""A column: the values under one key of an Example. Columns determine the parse dictionary and the stored
bytes.

The layouts are tf.io's own. `parse_call` converts a column to the tf.io call that parses it, as a value that
can be called (with TensorFlow) or printed (without).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from recordspec._tf import tf

Storage = Literal["int64", "float32", "bytes"]
# The list in a Feature, if any.
Kind = Literal["none", "bytes", "float32", "int64"]
# In the order of the fields of Feature.
LIST_KINDS: tuple[Kind, ...] = ("bytes", "float32", "int64")
# As the native library numbers them.
NATIVE_KINDS: tuple[Kind, ...] = ("none", *LIST_KINDS)
Section = Literal["features", "context", "sequence"]


class Place(NamedTuple):
    """Where values are stored in a record: the section and the key."""

    section: Section
    key: str

    @property
    def in_steps(self) -> bool:
        """Whether the values are in the feature lists of a SequenceExample, with an item for each step."""
        return self.section == "sequence"


TF_DTYPES: dict[str, str] = {"int64": "int64", "float32": "float32", "bytes": "string"}


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """Exactly `shape` values in every record; `default` if the key is absent.

    Attributes:
        ragged: whether it is decoded from a ragged tensor, in which a row without the key is empty, instead
            of the parse dictionary's dense tensor with defaults.
    """

    shape: tuple[int, ...] = ()
    default: Any = None
    ragged: bool = False


@dataclass(frozen=True, kw_only=True)
class VarLen:
    """Any number of values.

    Attributes:
        ragged: whether it is decoded from a ragged tensor, which TensorFlow parses faster, instead of the
            parse dictionary's sparse tensor. For a single record, the tensor is dense, `[k]`.
    """

    ragged: bool = False


@dataclass(frozen=True, kw_only=True)
class Sequence:
    """Any number of steps of `shape`, parsed as a dense tensor padded with `pad`.

    Attributes:
        may_be_missing: whether a SequenceExample may lack the feature list, and then has no steps.
    """

    shape: tuple[int, ...] = ()
    pad: Any = None
    may_be_missing: bool = False


@dataclass(frozen=True, kw_only=True)
class Ragged:
    """Rows of cells of `shape`, with their lengths under the keys `row_lengths`, outermost first.

    Attributes:
        aligned_with: the key of another column whose rows have the same number of items, in corresponding
            order.
    """

    row_lengths: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    aligned_with: str | None = None


@dataclass(frozen=True, kw_only=True)
class Sparse:
    """Values with indices under `index_keys`, one key per dimension of `size`."""

    index_keys: tuple[str, ...]
    size: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Component:
    """The layout of a column that another column parses: row lengths, indices."""


_ANY_WIDTH = 0xFFFFFFFF


@dataclass(frozen=True)
class FixedKeys:
    """Keys under which every record has a list of one kind.

    Attributes:
        of: the kind, and the number of values in every record, by key; None for any number.
    """

    of: Mapping[str, tuple[Storage, int | None]]

    @cached_property
    def packed(self) -> bytes:
        """The keys as the native library reads them."""
        named = ((key.encode(), NATIVE_KINDS.index(kind), width) for key, (kind, width) in self.of.items())
        return b"".join(
            struct.pack("<III", len(key), kind, _ANY_WIDTH if width is None else width) + key
            for key, kind, width in named
        )

    @cached_property
    def wanted(self) -> bytes:
        """The names of the keys as the native library reads them."""
        return packed_names(self.of)

    @cached_property
    def in_memory(self) -> tuple[tuple[str, tuple[Storage, int | None]], ...]:
        """The keys of which the library tells where values are: strings, and lists of any length."""
        return tuple((key, of) for key, of in self.of.items() if of[0] == "bytes" or of[1] is None)


def packed_names(keys: Iterable[str]) -> bytes:
    """Keys as the native library reads them."""
    return b"".join(struct.pack("<I", len(name)) + name for name in map(str.encode, keys))


# The messages that a record may be, as `record` of a schema has them.
RecordMessage = Literal["example", "sequence_example"]

Layout = Fixed | VarLen | Sequence | Ragged | Sparse | Component


@dataclass(frozen=True, kw_only=True)
class Column:
    """The values under a key of an Example: the type of their list, and their layout."""

    key: str
    storage: Storage
    layout: Layout

    @property
    def cell(self) -> tuple[int, ...]:
        """The shape of a cell: the values of a row, or one item of a list; `()` for a single value."""
        return getattr(self.layout, "shape", ())

    @property
    def has_default(self) -> bool:
        """Whether a record may omit the key."""
        return isinstance(self.layout, Fixed) and self.layout.default is not None

    def is_whole(self, section: Section) -> bool:
        """Whether every row, or every step, has exactly one cell."""
        if Place(section, self.key).in_steps:
            return isinstance(self.layout, Fixed | Sequence)
        return isinstance(self.layout, Fixed) and not self.has_default


@dataclass(frozen=True)
class Name:
    """A TensorFlow name, such as `int64`, as the argument of a call."""

    name: str

    def make(self) -> Any:
        return getattr(tf, self.name)

    def source(self) -> str:
        return f"tf.{self.name}"


@dataclass(frozen=True)
class Call:
    """A call of `tf.io`, as a value: `make` calls it, `source` prints it."""

    function: str
    arguments: tuple[tuple[str, Any], ...]

    def make(self) -> Any:
        target = tf.io
        for part in self.function.split("."):
            target = getattr(target, part)
        return target(**{name: _make(value) for name, value in self.arguments})

    def source(self) -> str:
        arguments = ", ".join(f"{name}={literal(value)}" for name, value in self.arguments)
        return f"tf.io.{self.function}({arguments})"


def parse_call(column: Column, *, in_steps: bool) -> Call | None:
    """The tf.io object that parses `column`, or None if another column's object does."""
    dtype = Name(TF_DTYPES[column.storage])
    layout = column.layout
    if isinstance(layout, Component):
        return None
    if isinstance(layout, Ragged):
        return _ragged_call(column.key, dtype, layout)
    if in_steps:
        return _step_call(column.key, dtype, layout)
    if isinstance(layout, Fixed):
        default = () if layout.default is None else (("default_value", _nested(layout.default)),)
        return Call("FixedLenFeature", (("shape", list(layout.shape)), ("dtype", dtype), *default))
    if isinstance(layout, VarLen):
        return Call("VarLenFeature", (("dtype", dtype),))
    if isinstance(layout, Sequence):
        pad = () if layout.pad is None else (("default_value", layout.pad),)
        shape = ("shape", list(layout.shape))
        return Call("FixedLenSequenceFeature", (shape, ("dtype", dtype), ("allow_missing", True), *pad))
    index = (("index_key", list(layout.index_keys)), ("value_key", column.key))
    return Call("SparseFeature", (*index, ("dtype", dtype), ("size", list(layout.size))))


def _step_call(key: str, dtype: Name, layout: Layout) -> Call:
    """The call for a column of a FeatureList.

    VarLen would drop empty steps at the end, and a default is not allowed. Only FixedLenSequence requires the
    list.
    """
    if isinstance(layout, Sequence) and layout.pad is None and not layout.may_be_missing:
        return Call("FixedLenSequenceFeature", (("shape", list(layout.shape)), ("dtype", dtype)))
    shape = () if isinstance(layout, VarLen | Sparse | Component) else layout.shape
    return _ragged_call(key, dtype, Ragged(shape=shape))


def _ragged_call(key: str, dtype: Name, layout: Ragged) -> Call:
    partitions = [*map(row_lengths_call, layout.row_lengths), *map(uniform_call, layout.shape)]
    return ragged_call(key, dtype, partitions)


def ragged_call(key: str, dtype: Name, partitions: list[Call]) -> Call:
    """The tf.io.RaggedFeature for the values under a key."""
    # Without `validate`, row lengths that do not add up silently give wrong rows.
    checked: tuple[tuple[str, Any], ...] = (("partitions", partitions), ("validate", True))
    return Call(
        "RaggedFeature",
        (
            ("dtype", dtype),
            ("value_key", key),
            *(checked if partitions else ()),
            ("row_splits_dtype", Name("int64")),
        ),
    )


def row_lengths_call(key: str) -> Call:
    """The partition of a RaggedFeature by the row lengths under a key."""
    return Call("RaggedFeature.RowLengths", (("key", key),))


def uniform_call(size: int) -> Call:
    """The partition of a RaggedFeature into rows of equal size."""
    return Call("RaggedFeature.UniformRowLength", (("length", size),))


def parse_calls(columns: Iterable[Column], section: Section) -> dict[str, Call]:
    """The parse dictionary of a section's columns, by key, as calls."""
    places = ((Place(section, column.key), column) for column in columns)
    calls = ((place.key, parse_call(column, in_steps=place.in_steps)) for place, column in places)
    return {key: call for key, call in calls if call is not None}


def as_decoded(column: Column) -> Column:
    """The column as the decoder parses it, which may differ from the parse dictionary."""
    layout = column.layout
    if isinstance(layout, VarLen | Fixed) and layout.ragged:
        return replace(column, layout=Ragged(shape=column.cell))
    return column


def _make(value: Any) -> Any:
    if isinstance(value, Name | Call):
        return value.make()
    return [_make(item) for item in value] if isinstance(value, list) else value


def literal(value: Any) -> str:
    """An option's value, or a call of `tf.io`, as Python source."""
    if isinstance(value, Name | Call):
        return value.source()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, float) and not np.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)


def _nested(value: Any) -> Any:
    return [_nested(item) for item in value] if isinstance(value, tuple) else value
