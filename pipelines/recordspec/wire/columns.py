"""A column: what one key of an Example holds. From columns come the parse dictionary and the bytes.

`Cells` are the values of a column for a batch of rows, and `KeyValues` the values of some records under a
key.

The layouts are tf.io's own. `parse_call` turns a column into the tf.io call that parses it, as a value
that can be made (with TensorFlow) or printed (without).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from recordspec._tf import tf
from recordspec.wire.strings import Ints, Mask, Strings, offsets, ranges

Storage = Literal["int64", "float32", "bytes"]
# The list of a Feature, if any.
Kind = Literal["none", "bytes", "float32", "int64"]
# In the order of their fields in a Feature.
LIST_KINDS: tuple[Kind, ...] = ("bytes", "float32", "int64")
Section = Literal["features", "context", "sequence"]

TF_DTYPES: dict[str, str] = {"int64": "int64", "float32": "float32", "bytes": "string"}


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """Exactly `shape` values in every record; `default` if the key is absent.

    Attributes:
        ragged: whether it is decoded from a ragged tensor, in which a row without the key is empty, and not
            from the dense one with defaults of the parse dictionary.
    """

    shape: tuple[int, ...] = ()
    default: Any = None
    ragged: bool = False


@dataclass(frozen=True, kw_only=True)
class VarLen:
    """Any number of values.

    Attributes:
        ragged: whether it is decoded from a ragged tensor, which TensorFlow parses faster, and not from the
            sparse one of the parse dictionary. For a single record that is a dense one, `[k]`.
    """

    ragged: bool = False


@dataclass(frozen=True, kw_only=True)
class Sequence:
    """Any number of steps of `shape`, parsed as a dense tensor padded with `pad`.

    Attributes:
        may_be_missing: whether a SequenceExample may lack the feature list, which then has no steps.
    """

    shape: tuple[int, ...] = ()
    pad: Any = None
    may_be_missing: bool = False


@dataclass(frozen=True, kw_only=True)
class Ragged:
    """Rows of cells of `shape`, with their lengths under the keys `row_lengths`, outermost first.

    Attributes:
        aligned_with: the key of another column, whose rows have as many items, which correspond one by one.
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
class Part:
    """Belongs to another column, which parses it: row lengths, indices."""


Layout = Fixed | VarLen | Sequence | Ragged | Sparse | Part


@dataclass(frozen=True, kw_only=True)
class Column:
    """The values under a key of an Example: the type of their list, and their layout."""

    key: str
    storage: Storage
    layout: Layout

    @property
    def cell(self) -> tuple[int, ...]:
        """The shape of a cell: of a row's values, or of one item of a list; `()` for a single value."""
        return getattr(self.layout, "shape", ())

    @property
    def has_default(self) -> bool:
        """Whether a record may omit the key."""
        return isinstance(self.layout, Fixed) and self.layout.default is not None

    def is_whole(self, section: Section) -> bool:
        """Whether every row, or every step, has one cell."""
        if section == "sequence":
            return isinstance(self.layout, Fixed | Sequence)
        return isinstance(self.layout, Fixed) and not self.has_default


@dataclass(frozen=True, kw_only=True)
class Cells:
    """The values of one column for a batch of rows.

    `flat` has the values of all rows, end to end: int64 `[m]`, float32 `[m]`, or `Strings` of length m.
    `lengths` says how many belong to each row: one number for all, or int64 `[rows]`.
    """

    flat: npt.NDArray[Any] | Strings
    lengths: int | Ints
    rows: int

    @property
    def counts(self) -> Ints:
        """The number of values of each row, int64 `[rows]`."""
        return np.broadcast_to(np.asarray(self.lengths, np.int64), (self.rows,))

    def spread(self, present: npt.NDArray[np.bool_]) -> Cells:
        """The same values as cells of `len(present)` rows, of which only the present ones have any."""
        lengths = np.zeros(len(present), np.int64)
        lengths[present] = self.lengths
        return Cells(flat=self.flat, lengths=lengths, rows=len(present))

    def part(self, start: int, stop: int) -> Cells:
        """The cells of rows `start` to `stop`, without a copy of their values."""
        if isinstance(self.lengths, int):
            lengths: int | Ints = self.lengths
            first, last = start * self.lengths, stop * self.lengths
        else:
            lengths = self.lengths[start:stop]
            first = int(self.lengths[:start].sum())
            last = first + int(lengths.sum())
        flat = self.flat.part(first, last) if isinstance(self.flat, Strings) else self.flat[first:last]
        return Cells(flat=flat, lengths=lengths, rows=stop - start)

    def take(self, rows: Ints) -> Cells:
        """The cells of these rows, in this order."""
        if isinstance(self.lengths, int):
            lengths: int | Ints = self.lengths
            places = (rows[:, None] * self.lengths + np.arange(self.lengths)).reshape(-1)
        else:
            lengths = self.lengths[rows]
            places = ranges(offsets(self.lengths)[rows], lengths)
        flat = self.flat.take(places) if isinstance(self.flat, Strings) else self.flat[places]
        return Cells(flat=flat, lengths=lengths, rows=len(rows))

    @classmethod
    def joined(cls, many: Iterable[Cells]) -> Cells:
        """The cells of all of these, one after the other."""
        many = tuple(many)
        strings = [cells.flat for cells in many if isinstance(cells.flat, Strings)]
        flat: Any = Strings.joined(strings) if strings else np.concatenate([cells.flat for cells in many])
        lengths = many[0].lengths
        if not all(isinstance(cells.lengths, int) and cells.lengths == lengths for cells in many):
            lengths = np.concatenate([cells.counts for cells in many])
        return cls(flat=flat, lengths=lengths, rows=sum(cells.rows for cells in many))


@dataclass(frozen=True)
class KeyValues:
    """The values that some rows have under a key, all in lists of the same kind.

    Attributes:
        rows: the numbers of the rows, ascending, int64 `[m]`.
        cells: their values; a list of the kind `none` has none.
    """

    kind: Kind
    rows: Ints
    cells: Cells


@dataclass(frozen=True)
class KeySteps:
    """The steps that some rows have in the feature list of a key.

    Attributes:
        rows: the numbers of the rows, ascending, int64 `[m]`.
        counts: the number of steps of each row, int64 `[m]`.
        values: the values of the steps; their `rows` are steps, counted over all of these rows.
    """

    rows: Ints
    counts: Ints
    values: tuple[KeyValues, ...]


def without_values(kind: Kind, rows: Ints) -> KeyValues:
    """Empty lists."""
    return KeyValues(kind, rows, Cells(flat=Strings.of([]), lengths=0, rows=len(rows)))


def only(values: KeyValues, rows: Mask) -> KeyValues:
    """The values of some of the rows."""
    kept = rows[values.rows]
    if kept.all():
        return values
    return KeyValues(values.kind, values.rows[kept], values.cells.take(np.flatnonzero(kept)))


def merged(found: list[KeyValues] | tuple[KeyValues, ...]) -> KeyValues:
    """Values of one kind that were decoded separately, in the order of their rows."""
    if len(found) == 1:
        return found[0]
    rows = np.concatenate([values.rows for values in found])
    order = np.argsort(rows)
    cells = Cells.joined(values.cells for values in found).take(order)
    return KeyValues(found[0].kind, rows[order], cells)


def of_kind(found: tuple[KeyValues, ...], kind: Kind, rows: Mask) -> tuple[KeyValues, ...]:
    """The values of some of the rows, of one kind."""
    return tuple(only(values, rows) for values in found if values.kind == kind)


def only_steps(steps: KeySteps, rows: Mask) -> KeySteps:
    """The steps of some of the rows."""
    kept = rows[steps.rows]
    of_kept = np.repeat(kept, steps.counts)
    number = np.cumsum(of_kept) - 1
    values = [only(one, of_kept) for one in steps.values]
    renumbered = tuple(replace(one, rows=number[one.rows]) for one in values if len(one.rows))
    return KeySteps(steps.rows[kept], steps.counts[kept], renumbered)


@dataclass(frozen=True)
class Name:
    """A name of TensorFlow, such as `int64`, as the argument of a call."""

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


def parse_call(column: Column, section: Section) -> Call | None:
    """The tf.io object that parses `column`, or None if another column's object does."""
    dtype = Name(TF_DTYPES[column.storage])
    layout = column.layout
    if isinstance(layout, Part):
        return None
    if isinstance(layout, Ragged):
        return _ragged_call(column.key, dtype, layout)
    if section == "sequence":
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
    """In a FeatureList, VarLen would drop empty steps at the end, and a default is not allowed. Only
    FixedLenSequence requires the list."""
    if isinstance(layout, Sequence) and layout.pad is None and not layout.may_be_missing:
        return Call("FixedLenSequenceFeature", (("shape", list(layout.shape)), ("dtype", dtype)))
    shape = () if isinstance(layout, VarLen | Sparse | Part) else layout.shape
    return _ragged_call(key, dtype, Ragged(shape=shape))


def _ragged_call(key: str, dtype: Name, layout: Ragged) -> Call:
    partitions = [*map(row_lengths_call, layout.row_lengths), *map(uniform_call, layout.shape)]
    return ragged_call(key, dtype, partitions)


def ragged_call(key: str, dtype: Name, partitions: list[Call]) -> Call:
    """The tf.io.RaggedFeature of the values under a key."""
    # Without `validate`, row lengths that do not add up give wrong rows in silence.
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
    """The partition of a RaggedFeature with row lengths under a key."""
    return Call("RaggedFeature.RowLengths", (("key", key),))


def uniform_call(size: int) -> Call:
    """The partition of a RaggedFeature into rows of one size."""
    return Call("RaggedFeature.UniformRowLength", (("length", size),))


def parse_calls(columns: Iterable[Column], section: Section) -> dict[str, Call]:
    """The parse dictionary of these columns, by key, as calls."""
    calls = ((column.key, parse_call(column, section)) for column in columns)
    return {key: call for key, call in calls if call is not None}


def as_decoded(column: Column) -> Column:
    """The column as the decoder parses it, which for some differs from the parse dictionary."""
    layout = column.layout
    if isinstance(layout, VarLen | Fixed) and layout.ragged:
        return replace(column, layout=Ragged(shape=column.cell))
    return column


def _make(value: Any) -> Any:
    if isinstance(value, Name | Call):
        return value.make()
    return [_make(item) for item in value] if isinstance(value, list) else value


def literal(value: Any) -> str:
    """A value of an option, or a call of `tf.io`, as Python."""
    if isinstance(value, Name | Call):
        return value.source()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, float) and not np.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)


def _nested(value: Any) -> Any:
    return [_nested(item) for item in value] if isinstance(value, tuple) else value
