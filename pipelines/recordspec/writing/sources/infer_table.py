"""A schema for the rows of a CSV or Parquet file, inferred from the types of its columns and their values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.errors import Problem, RecordError, SpecError
from recordspec.locations import Location
from recordspec.spec.features import Feature
from recordspec.spec.infer import MAX_CLASSES, Evidence, Inferred, infer_feature
from recordspec.spec.schema import Schema
from recordspec.writing.sources import text
from recordspec.writing.sources.arrow import is_list
from recordspec.writing.sources.base import not_once
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.parquet import opened

_BATCH_ROWS = 1 << 16
_INT64 = range(-(1 << 63), 1 << 63)
_SURELY_INT64 = "^[-+]?[0-9]{1,18}$"
_MAX_FLOAT32 = float(np.finfo(np.float32).max)
# An index of a class, as its name is printed.
_INDEX = re.compile("0|[1-9][0-9]{0,3}")


def infer_table(path: Location, name: str, sample: int | None = None) -> Inferred:
    """A schema for the first `sample` rows of a table, or for all.

    Raises RecordError for a file that cannot be read, or has no values; SpecError for two columns of one
    name; MissingExtra without pyarrow.
    """
    columns: dict[str, ColumnProfile] = {}
    rows, in_text = 0, path.suffix != ".parquet"
    csv = Csv(path=str(path), delimiter="\t" if path.suffix == ".tsv" else ",")
    for whole in csv.blocks() if in_text else _parquet_batches(path):
        batch = whole if sample is None else whole.slice(0, sample - rows)
        rows += batch.num_rows
        for column, values in zip(batch.schema.names, batch.columns, strict=True):
            columns.setdefault(column, ColumnProfile(column, values.type, in_text)).add(values)
        if rows == sample:
            break
    features: list[Feature] = []
    notes: list[str] = []
    for profile in columns.values():
        feature, more = infer_feature(profile.evidence())
        notes += more
        features += [] if feature is None else [feature]
    if not features:
        hint = "; ".join(notes[:3])
        raise RecordError(Problem(where=str(path), expected="a column with values", got="none", hint=hint))
    return Inferred(schema=Schema(name=name, features=tuple(features)), notes=tuple(notes), rows=rows)


def _parquet_batches(path: Location) -> Iterator[Any]:
    """Record batches of all columns."""
    with opened(path) as file:
        names = file.schema_arrow.names
        if problems := list(not_once({name: name for name in names}, names)):
            raise SpecError([problem.at(str(path)) for problem in problems])
        yield from file.iter_batches(_BATCH_ROWS)


@dataclass
class ColumnProfile:
    """What the values of a column have in common.

    Attributes:
        type: the Arrow type; string for any column of a CSV file.
        in_text: whether the values are cells of a CSV file.
        nulls: the number of rows without a value.
        empty: the number of quoted empty cells, which are text, but no numbers.
        values: the distinct texts or integers; None if there are more than `MAX_CLASSES`.
        rounded: the first integer that float32 does not hold, perhaps an identifier.
        large: whether float32 does not hold a number at all, or int64 an integer.
        gaps: whether a list has a missing item.
    """

    name: str
    type: Any
    in_text: bool
    rows: int = 0
    nulls: int = 0
    empty: int = 0
    values: set[Any] | None = field(default_factory=set)
    rounded: float | None = None
    large: bool = False
    gaps: bool = False
    _dtypes: tuple[str, ...] = ("int64", "float64", "bool")

    def add(self, column: Any) -> None:
        """Adds the next rows: an Arrow array."""
        import pyarrow.types as types

        self.rows += len(column)
        self.nulls += column.null_count
        some = column.drop_null()
        if types.is_dictionary(column.type):
            some = some.dictionary_decode()
        if types.is_string(some.type) or types.is_large_string(some.type):
            self._add_values(some)
            if self.in_text:
                self._add_cells(some)
        elif types.is_integer(some.type):
            self._add_values(some)
            self.large |= types.is_uint64(some.type) and bool((some.to_numpy() > _INT64[-1]).any())
        elif types.is_floating(some.type):
            self._add_numbers(some.to_numpy(zero_copy_only=False).astype(np.float64))
        elif is_list(some.type):
            self.gaps |= some.flatten().null_count > 0

    def _add_values(self, some: Any) -> None:
        if self.values is not None:
            distinct = some.unique()
            if len(distinct) <= MAX_CLASSES:
                self.values |= set(distinct.to_pylist())
            if len(distinct) > MAX_CLASSES or len(self.values) > MAX_CLASSES:
                self.values = None

    def _add_cells(self, some: Any) -> None:
        import pyarrow.compute as compute

        filled = some.filter(compute.greater(compute.binary_length(some), 0))
        self.empty += len(some) - len(filled)
        were_numbers = "float64" in self._dtypes
        self._dtypes = tuple(dtype for dtype in self._dtypes if text.are(filled, dtype))
        if were_numbers and "float64" not in self._dtypes:
            self.large = False
        if "int64" in self._dtypes and not _in_int64(filled):
            self._dtypes, self.large = (), True
        elif "float64" in self._dtypes:
            self._add_numbers(np.array(filled.to_pylist(), np.float64))

    def _add_numbers(self, numbers: npt.NDArray[np.float64]) -> None:
        finite = numbers[np.isfinite(numbers)]
        self.large |= bool((abs(finite) > _MAX_FLOAT32).any())
        whole = finite[(np.trunc(finite) == finite) & (abs(finite) <= _MAX_FLOAT32)]
        lost = whole[whole.astype(np.float32) != whole]  # float32 has all up to 2^24
        if self.rounded is None and len(lost):
            self.rounded = float(lost[0])

    def evidence(self) -> Evidence:
        """The evidence of all rows that were added."""
        dtype, shape = ("string", ()) if self.gaps else _dtype_and_shape(self.type)
        if self.in_text and self._dtypes and self.rows > self.nulls + self.empty:
            dtype = {"float64": "float32"}.get(self._dtypes[0], self._dtypes[0])
        missing = self.nulls + (self.empty if self.in_text and dtype != "string" else 0)
        type_name = f"{self.type} with items that are missing" if self.gaps else str(self.type)
        return Evidence(
            name=self.name,
            rows=self.rows,
            missing=missing,
            type_name=type_name if self.name else "a column without a name",
            dtype=None if self.gaps or missing == self.rows else self._wide(dtype),
            shape=shape,
            is_text=_is_text(self.type),
            may_be_string=self.in_text,
            values=self._distinct(dtype),
            too_large_for=("float32" if dtype == "float32" else "int64") if self.large else "",
            rounded=self.rounded,
        )

    def _wide(self, dtype: str | None) -> str | None:
        """The dtype that holds large numbers; those of a CSV file beyond int64 are text already."""
        wide = {"float32": "float64", "int64": "uint64"}
        return wide.get(dtype, dtype) if self.large and dtype is not None else dtype

    def _distinct(self, dtype: str | None) -> frozenset[Any] | None:
        if self.values is None or not (self.in_text and dtype == "int64"):
            return None if self.values is None else frozenset(self.values)
        if not all(map(_INDEX.fullmatch, self.values)):
            return None
        return frozenset(map(int, self.values))


def _dtype_and_shape(kind: Any) -> tuple[str | None, tuple[int | None, ...]]:
    """The first choice of a dtype for an Arrow type, None if no feature holds it; and a value's shape."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        return _dtype_and_shape(kind.value_type)
    if is_list(kind):
        dtype, shape = _dtype_and_shape(kind.value_type)
        known = dtype != "bool" and shape == ()
        return dtype if known else None, (kind.list_size if types.is_fixed_size_list(kind) else None,)
    if types.is_boolean(kind):
        return "bool", ()
    if types.is_integer(kind):
        return "int64", ()
    if types.is_floating(kind):
        return "float32", ()
    return "string" if _is_text(kind) or types.is_binary(kind) or types.is_large_binary(kind) else None, ()


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    if types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _in_int64(some: Any) -> bool:
    """Whether int64 holds all integers of cells of text."""
    import pyarrow.compute as compute

    others = some.filter(compute.invert(compute.match_substring_regex(some, _SURELY_INT64)))
    return all(int(text) in _INT64 for text in others.to_pylist())
