"""The columns of a CSV or Parquet file, as the features that hold their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.errors import Problem, RecordError, missing_extra
from recordspec.spec.features import Feature
from recordspec.spec.features.fixed_len import FixedLen
from recordspec.spec.features.label import Label
from recordspec.spec.features.tensor import AnyTensor
from recordspec.spec.features.text import Text
from recordspec.spec.features.var_len import VariableLen

# Texts of no more different values, each ten times on average, are taken for classes.
_MOST_CLASSES = 20
_ROWS_OF_A_CLASS = 10
_ROWS_AT_ONCE = 1 << 16


@dataclass
class _Column:
    """What was seen of a column.

    Attributes:
        type: Arrow's.
        values: the different texts, while they are few.
        rounded: the first whole number that float32 does not hold, an identifier perhaps.
    """

    name: str
    type: Any
    rows: int = 0
    nulls: int = 0
    values: set[str] | None = field(default_factory=set)
    rounded: float | None = None

    def add(self, column: Any) -> None:
        import pyarrow.compute as compute
        import pyarrow.types as types

        self.rows += len(column)
        self.nulls += column.null_count
        if types.is_float64(self.type) and self.rounded is None:
            self.rounded = _rounded(column.drop_null().to_numpy(zero_copy_only=False))
        if not (types.is_string(self.type) or types.is_large_string(self.type)):
            self.values = None
        if self.values is not None:
            self.values |= set(compute.unique(column.drop_null()).to_pylist()[: _MOST_CLASSES + 1])
            self.values = None if len(self.values) > _MOST_CLASSES else self.values


def _rounded(numbers: npt.NDArray[np.float64]) -> float | None:
    """The first whole number that float64 holds and float32 does not: that has all up to 2^24."""
    whole = numbers[(np.trunc(numbers) == numbers) & (abs(numbers) <= 1 << 53)]
    lost = whole.astype(np.float32) != whole
    return float(whole[lost][0]) if lost.any() else None


def features(path: Path, sample: int | None = None) -> tuple[list[Feature], list[str], int]:
    """The features, what is to be said of them, and how many rows were looked at: the first `sample`, or all.

    Raises RecordError for a file that cannot be read, MissingExtra without pyarrow.
    """
    columns: dict[str, _Column] = {}
    rows = 0
    for whole in _batches(path):
        batch = whole if sample is None else whole.slice(0, sample - rows)
        rows += batch.num_rows
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            columns.setdefault(name, _Column(name, column.type)).add(column)
        if rows == sample:
            break
    notes: list[str] = []
    made = [_feature(column, notes) for column in columns.values()]
    return [feature for feature in made if feature is not None], notes, rows


def _batches(path: Path) -> Iterator[Any]:
    try:
        import pyarrow
        from pyarrow import csv, parquet
    except ImportError as error:
        raise missing_extra("pyarrow", "arrow", "tables", error) from error
    try:
        if path.suffix == ".parquet":
            yield from parquet.ParquetFile(path).iter_batches(_ROWS_AT_ONCE)
        else:
            delimiter = "\t" if path.suffix == ".tsv" else ","
            options = csv.ConvertOptions(strings_can_be_null=True)
            parse = csv.ParseOptions(delimiter=delimiter)
            yield from csv.open_csv(path, parse_options=parse, convert_options=options)
    except (pyarrow.ArrowException, OSError) as error:
        said = str(error).partition("\n")[0]
        hint = "columns are typed by their first rows: give the schema by hand" if "column" in said else ""
        raise RecordError(Problem(where=str(path), expected="a table", got=said, hint=hint)) from None


def _feature(column: _Column, notes: list[str]) -> Feature | None:
    """A column's feature, or None of one that no feature holds; the notes say why."""
    if column.nulls == column.rows:
        notes.append(
            f"{column.name}: always empty, in {column.rows:,} rows: its type is unknown, so it is left out"
        )
        return None
    made = _of_type(column)
    if made is None:
        notes.append(f"{column.name}: {column.type}, which no feature holds, so it is left out")
    elif column.nulls:
        default = " and reads as its default" if made.optional else ""
        notes.append(f"{column.name}: missing in {column.nulls:,} of {column.rows:,} rows{default}")
    if column.rounded is not None:
        kept = "`{kind: tensor, dtype: float64}`" if not column.nulls else "`{dtype: string, default: ''}`"
        notes.append(f"{column.name}: float32 rounds {column.rounded:.0f}, and others: {kept} keeps them")
    return made


def _of_type(column: _Column) -> Feature | None:
    import pyarrow.types as types

    kind, lacking = column.type, f"missing in {column.nulls:,} of {column.rows:,}" if column.nulls else ""
    said: dict[str, Any] = {"name": column.name, "description": lacking}
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind) and not column.nulls:
        return AnyTensor(dtype="bool", **said)
    if types.is_integer(kind) or types.is_boolean(kind):
        return FixedLen(dtype="int64", default=0 if column.nulls else None, **said)
    if types.is_floating(kind):
        return FixedLen(dtype="float32", default=0.0 if column.nulls else None, **said)
    if types.is_string(kind) or types.is_large_string(kind):
        return _of_text(column, said)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return FixedLen(dtype="string", default="" if column.nulls else None, **said)
    if types.is_list(kind) or types.is_large_list(kind):
        return _of_list(kind.value_type, said)
    return None


def _of_text(column: _Column, said: dict[str, Any]) -> Feature:
    values = column.values or set()
    if not column.nulls and len(values) > 1 and column.rows >= _ROWS_OF_A_CLASS * len(values):
        return Label(names=tuple(sorted(values)), **said)
    return FixedLen(dtype="string", default="", **said) if column.nulls else Text(**said)


def _of_list(inner: Any, said: dict[str, Any]) -> Feature | None:
    import pyarrow.types as types

    if types.is_integer(inner):
        return VariableLen(dtype="int64", **said)
    if types.is_floating(inner):
        return VariableLen(dtype="float32", **said)
    if types.is_string(inner) or types.is_binary(inner):
        return VariableLen(dtype="string", **said)
    return None
