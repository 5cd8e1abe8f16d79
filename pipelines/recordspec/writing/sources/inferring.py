"""The columns of a CSV or Parquet file, as the features that hold their rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError
from recordspec.spec.features import Feature
from recordspec.spec.features.fixed_len import FixedLen
from recordspec.spec.features.label import Label
from recordspec.spec.features.tensor import AnyTensor
from recordspec.spec.features.text import Text
from recordspec.spec.features.var_len import VariableLen
from recordspec.writing.sources.columns import Column, is_list
from recordspec.writing.sources.csv import CsvRows
from recordspec.writing.sources.naming import not_once

# Texts that are few, each so often on average, are taken for classes.
_ROWS_OF_A_CLASS = 10
_ROWS_AT_ONCE = 1 << 16


def features(path: Path, sample: int | None = None) -> tuple[list[Feature], list[str], int]:
    """The features, what is to be said of them, and how many rows were looked at: the first `sample`, or all.

    Raises RecordError for a file that cannot be read, or has no values; SpecError for two columns of one
    name; MissingExtra without pyarrow.
    """
    columns: dict[str, Column] = {}
    rows, in_text = 0, path.suffix != ".parquet"
    for whole in _blocks(path):
        block = whole if sample is None else whole.slice(0, sample - rows)
        rows += block.num_rows
        for name, column in zip(block.schema.names, block.columns, strict=True):
            columns.setdefault(name, Column(name, column.type, in_text)).add(column)
        if rows == sample:
            break
    notes: list[str] = []
    made = [_feature(column, notes) for column in columns.values()]
    some = [feature for feature in made if feature is not None]
    if not some:
        hint = "; ".join(notes[:3])
        raise RecordError(Problem(where=str(path), expected="a column with values", got="none", hint=hint))
    return some, notes, rows


def _blocks(path: Path) -> Iterator[Any]:
    """Record batches of all columns; of a CSV file, of text."""
    if path.suffix == ".parquet":
        yield from _of_parquet(path)
    else:
        yield from CsvRows(path, "\t" if path.suffix == ".tsv" else ",", {}).blocks()


def _of_parquet(path: Path) -> Iterator[Any]:
    pyarrow = arrow()
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
        names = file.schema_arrow.names
        if problems := list(not_once({name: name for name in names}, names)):
            raise SpecError([problem.at(str(path)) for problem in problems])
        yield from file.iter_batches(_ROWS_AT_ONCE)
    except (pyarrow.ArrowException, OSError) as error:
        said = str(error).partition("\n")[0]
        raise RecordError(Problem(where=str(path), expected="a table", got=said)) from None


def _feature(column: Column, notes: list[str]) -> Feature | None:
    """A column's feature, or None of one that no feature holds; the notes say why."""
    name, rows = column.name or '""', f"{column.rows:,} rows"
    if column.missing == column.rows:
        notes.append(f"{name}: always empty, in {rows}: its type is unknown, so it is left out")
        return None
    made = _made(column)
    if made is None:
        notes.append(f"{name}: {_what(column)}, which no feature holds, so it is left out")
        return None
    if column.missing:
        default = " and reads as its default" if made.optional else ""
        notes.append(f"{name}: missing in {column.missing:,} of {rows}{default}")
    notes += [f"{name}: {note}" for note in _losses(column, made)]
    return made


def _what(column: Column) -> str:
    """What a column is that no feature holds."""
    if not column.name:
        return "a column without a name"
    if column.nulls and (is_list(column.type) or str(column.type) == "bool"):
        return f"{column.type} that is missing in {column.nulls:,} of {column.rows:,} rows"
    if column.gaps:
        return f"{column.type} with items that are missing"
    return f"{column.type}{f', too large for {column.narrow}' * column.large}"


def _losses(column: Column, made: Feature) -> Iterator[str]:
    """What the feature does not keep of the values, or has to be another for."""
    dtype = getattr(made, "dtype", "string")
    if dtype == "float32" and column.rounded is not None:
        keeps = ": `{kind: tensor, dtype: float64}` keeps them"
        if column.missing:
            keeps = ": `{dtype: string, default: ''}` keeps them" if column.in_text else ""
        yield f"float32 rounds {column.rounded:.0f}, and others{keeps}"
    if column.large:
        yield f"numbers that {column.narrow} does not hold: kept as {dtype}"


def _made(column: Column) -> Feature | None:
    if not column.name:
        return None
    missing = f"missing in {column.missing:,} of {column.rows:,}" if column.missing else ""
    said: dict[str, Any] = {"name": column.name, "description": missing}
    return _of_text(column, said) if column.in_text else _of_type(column, column.type, said)


def _of_text(column: Column, said: dict[str, Any]) -> Feature | None:
    """Of a CSV file's column, by the values of all cells."""
    if column.dtype == "bool" and not column.missing:
        return AnyTensor(dtype="bool", **said)
    if column.dtype == "int64":
        return FixedLen(dtype="int64", default=0 if column.missing else None, **said)
    if column.dtype == "float64" and not (column.large and column.missing):
        return _of_floats(column, said)
    return _of_texts(column, said)


def _of_type(column: Column, kind: Any, said: dict[str, Any]) -> Feature | None:
    """Of a Parquet file's column, by its type."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        return _of_type(column, kind.value_type, said)
    if types.is_boolean(kind):  # of which no feature has a default
        return None if column.nulls else AnyTensor(dtype="bool", **said)
    if types.is_integer(kind) and column.large:
        return None if column.nulls else AnyTensor(dtype="uint64", **said)
    if types.is_integer(kind):
        return FixedLen(dtype="int64", default=0 if column.nulls else None, **said)
    if types.is_floating(kind):
        return None if column.large and column.nulls else _of_floats(column, said)
    if types.is_string(kind) or types.is_large_string(kind):
        return _of_texts(column, said)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return FixedLen(dtype="string", default="" if column.nulls else None, **said)
    return None if column.nulls or column.gaps else _of_list(kind, said)


def _of_floats(column: Column, said: dict[str, Any]) -> Feature:
    if column.large:
        return AnyTensor(dtype="float64", **said)
    return FixedLen(dtype="float32", default=0.0 if column.missing else None, **said)


def _of_texts(column: Column, said: dict[str, Any]) -> Feature:
    values = column.values or set()
    few = len(values) > 1 and _ROWS_OF_A_CLASS * len(values) <= column.rows
    if few and not column.missing and "" not in values:
        return Label(names=tuple(sorted(values)), **said)
    return FixedLen(dtype="string", default="", **said) if column.missing else Text(**said)


def _of_list(kind: Any, said: dict[str, Any]) -> Feature | None:
    import pyarrow.types as types

    dtype = _dtype(kind.value_type) if is_list(kind) else None
    if dtype is None:
        return None
    if types.is_fixed_size_list(kind):
        return FixedLen(dtype=dtype, shape=(kind.list_size,), **said)
    return VariableLen(dtype=dtype, **said)


def _dtype(kind: Any) -> str | None:
    """Of the items of lists."""
    import pyarrow.types as types

    if types.is_integer(kind):
        return "int64"
    if types.is_floating(kind):
        return "float32"
    tests = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return "string" if any(is_one(kind) for is_one in tests) else None
