"""A dict of arrays, or a pandas frame: one column per feature."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError, describe
from recordspec.schema.arrow_values import from_arrow
from recordspec.schema.encoder import part_of, with_missing
from recordspec.schema.features import Feature
from recordspec.schema.schema import Schema
from recordspec.wire.arrays import is_arrow
from recordspec.writing.sources.arrow import polars_to_arrow, whole_numbers
from recordspec.writing.sources.base import (
    EXACT,
    Batches,
    Columns,
    check_names,
    check_once,
    even_ranges,
    is_left_out,
)
from recordspec.writing.sources.objects import divided, members_in, plain_columns

# The number of values from which the size of a list is estimated.
_WEIGHED = 64


class Arrays:
    """Columns of equal length: NumPy arrays, lists, Arrow arrays, or Polars series.

    Attributes:
        columns: the columns by name: arrays, lists, or Arrow arrays; null is missing in the latter.
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.notes: list[str] = []
        self._left_out: frozenset[str] = frozenset()
        names = [str(name) for name in columns]
        if len(set(names)) < len(names):
            raise SpecError(Problem(path=("rows",), expected="every name once", got=", ".join(names)))
        self.columns = {str(name): _column(str(name), values) for name, values in columns.items()}
        lengths = {name: len(values) for name, values in self.columns.items()}
        self.rows = next(iter(lengths.values()), 0)
        for name, length in lengths.items():
            if length != self.rows:
                first = next(iter(lengths))
                hint = f"`{first}` has so many"
                raise SpecError(
                    Problem(path=(name,), expected=f"{self.rows} rows", got=str(length), hint=hint)
                )

    def identity(self) -> Any:
        return None

    def without(self, names: Collection[str]) -> Arrays:
        """The rows without the given columns."""
        made = copy(self)
        made._left_out = self._left_out.union(names)
        return made

    def parts(self, schema: Schema, extra: tuple[str, ...]) -> Iterator[ArrayPart]:
        known = {*schema.names, *extra}
        names, columns = [], {}
        for name, column in self._divided(known):
            if not is_left_out(name, self._left_out, known):
                names.append(name)
                columns[name] = column
        check_once(names)
        check_names(schema, extra, names)
        values = {name: _values(values, schema.names.get(name)) for name, values in columns.items()}
        rows = Columns(values, self.rows)
        for start, stop in even_ranges(self.rows, sum(map(_bytes_of_row, values.values()))):
            yield ArrayPart(first=start, columns=rows.part(start, stop))

    def _divided(self, known: Collection[str]) -> Iterator[tuple[str, Any]]:
        """Yields the columns; in place of objects with known members, or members that are left out, yields
        the columns of all members.
        """
        members = members_in(known, self._left_out)
        for top, column in self.columns.items():
            if top not in members:
                yield top, column
            elif is_arrow(column):
                yield from plain_columns(top, column).items()
            else:
                for one in divided(top, list(column), known):
                    # without objects, with None or an empty list in each row, all members have these values
                    is_empty = one.name in members and not any(map(_has_items, one.values))
                    names, values = members[one.name] if is_empty else {one.name}, one.nested()
                    yield from ((name, values) for name in names)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayPart:
    """Consecutive rows of columns, from row `first` on."""

    first: int
    columns: Columns

    def batches(self, schema: Schema, extra: tuple[str, ...]) -> Batches:
        yield self.columns

    def place(self, row: int) -> str:
        return f"row {self.first + row}"


def _has_items(value: Any) -> bool:
    """Whether a value is no list, or has items."""
    return value is not None and not (isinstance(value, (list, tuple, np.ndarray)) and len(value) == 0)


def _column(name: str, values: Any) -> Any:
    if isinstance(values, np.ma.MaskedArray):
        return _unmasked(name, values)
    if isinstance(values, list) or is_arrow(values):
        return values
    if isinstance(values, tuple):
        return list(values)
    if hasattr(values, "__array__") and not hasattr(values, "to_arrow"):
        array = np.asarray(values)
        if array.ndim:
            return array
    if hasattr(values, "to_arrow"):  # a Polars series
        return polars_to_arrow(values, name)
    raise SpecError(Problem(path=(name,), expected="an array or a list", got=describe(values)))


def _unmasked(name: str, values: Any) -> Any:
    """Converts a masked array: a masked row is missing. A row that is masked in part is an error."""
    cells = np.ma.getmaskarray(values).reshape(len(values), math.prod(values.shape[1:]))
    present = np.logical_not(cells.any(axis=1))
    partly = np.flatnonzero(cells.any(axis=1) & ~cells.all(axis=1))
    if len(partly):
        problem = Problem(
            where=f"row {partly[0]}", path=(name,), expected="a whole value", got="a mask in it"
        )
        raise RecordError(problem, int(partly[0]))
    return with_missing(values.data[present], present)


def _values(values: Any, feature: Feature | None) -> Any:
    """Converts the values of a column for a feature.

    For an integer feature, floats with NaN become integers, and missing where there is NaN: NumPy and pandas
    have no other way to mark a missing integer. Floats without a NaN stay floats, which the feature refuses.
    """
    if is_arrow(values):
        whole = whole_numbers(values, feature)
        return from_arrow(whole, feature) if is_arrow(whole) else whole
    if feature is None or not _is_floats(values):
        return values
    missing = np.isnan(values)
    column = with_missing(values[~missing], ~missing) if missing.any() else values
    whole = whole_numbers(column, feature) if is_arrow(column) else column
    return values if whole is column else whole


def _is_floats(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind == "f" and values.ndim == 1


def _bytes_of_row(values: Any) -> int:
    """The approximate bytes per row of a column."""
    if hasattr(values, "nbytes") and len(values) and str(getattr(values, "dtype", "")) != "object":
        return int(values.nbytes) // len(values)
    some = part_of(values, 0, _WEIGHED)
    return sum(map(_weight, some)) // max(1, len(some))


def _weight(value: Any) -> int:
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if isinstance(value, (list, tuple)):
        return sum(map(_weight, value[:_WEIGHED])) * len(value) // max(1, len(value[:_WEIGHED]))
    size = getattr(value, "size", None)  # for a PIL image, its width and height
    return 4 * math.prod(size) if isinstance(size, tuple) else sys.getsizeof(value)


# All missing values of pandas are missing: None, NaN, NaT and NA. Hence a frame and the Arrow table of
# `pyarrow.Table.from_pandas` give the same records. NaN within a list or an array in a cell is a value.


def is_frame(rows: Any) -> bool:
    """Whether a value is a pandas DataFrame; does not import pandas."""
    kind = type(rows)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas"


def frame_columns(frame: Any) -> dict[str, Any]:
    """The columns of a frame by name, without the index."""
    names = [str(name) for name in frame.columns]
    check_once(names)
    return {name: _frame_column(frame[column]) for name, column in zip(names, frame.columns, strict=True)}


def _frame_column(series: Any) -> Any:
    if getattr(series.dtype, "ordered", False) and all(isinstance(one, str) for one in series.cat.categories):
        return arrow().array(series)  # keeps the order of the categories
    missing = series.isna().to_numpy()
    kept = series[~missing] if missing.any() else series
    # without a dtype, pandas before 2.2 converts its nullable numbers to Python objects
    dtype = getattr(series.dtype, "numpy_dtype", None)
    values = _object_column(kept.tolist()) if series.dtype == object else kept.to_numpy(dtype)
    return with_missing(values, ~missing)


def _object_column(values: list[Any]) -> Any:
    """The values of a column of Python objects: an array if Arrow also converts them to floats."""
    kinds = set(map(type, values))
    floats = {kind for kind in kinds if issubclass(kind, float | np.floating)}
    others = kinds - floats
    if not floats or not all(issubclass(kind, int | np.integer) and kind is not bool for kind in others):
        return values
    exact = all(type(value) in floats or -EXACT < value < EXACT for value in values)
    return np.array(values, np.float64) if exact else values
