"""A dict of arrays: one column a feature."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from recordspec.errors import Problem, RecordError, SpecError, describe
from recordspec.spec.encoder import Gapped, part_of, refusal
from recordspec.spec.features import Feature
from recordspec.spec.schema import Schema
from recordspec.writing.sources.base import Batch

# Below it float64 has every whole number; above, an integer may have been rounded already.
_EXACT = 2**53


class Arrays:
    """Columns of equal length: NumPy arrays, lists, or `Gapped`."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.notes: list[str] = []
        names = [str(name) for name in columns]
        if len(set(names)) < len(names):
            raise SpecError(Problem(path=("rows",), expected="every name once", got=", ".join(names)))
        self._columns = {str(name): _column(str(name), values) for name, values in columns.items()}
        lengths = {name: len(values) for name, values in self._columns.items()}
        self.rows = next(iter(lengths.values()), 0)
        for name, length in lengths.items():
            if length != self.rows:
                first = next(iter(lengths))
                hint = f"`{first}` has so many"
                raise SpecError(
                    Problem(path=(name,), expected=f"{self.rows} rows", got=str(length), hint=hint)
                )

    def batches(self, schema: Schema, keys: tuple[str, ...]) -> Iterator[Batch]:
        columns = {name: _with_gaps(values, schema.names.get(name)) for name, values in self._columns.items()}
        yield Batch(self.rows, lambda start, stop: parts_of(columns, start, stop))

    def place(self, row: int) -> str:
        return f"row {row}"


def parts_of(columns: Mapping[str, Any], start: int, stop: int) -> dict[str, Any]:
    """Rows `start` to `stop` of every column."""
    return {name: part_of(values, start, stop) for name, values in columns.items()}


def _column(name: str, values: Any) -> Any:
    if isinstance(values, np.ma.MaskedArray):
        return _unmasked(name, values)
    if isinstance(values, (list, Gapped)):
        return values
    if isinstance(values, tuple):
        return list(values)
    if hasattr(values, "__array__"):
        array = np.asarray(values)
        if array.ndim:
            return array
    raise SpecError(Problem(path=(name,), expected="an array or a list", got=describe(values)))


def _unmasked(name: str, values: Any) -> Gapped:
    """Masked rows are missing; a row that is masked in part is neither."""
    cells = np.ma.getmaskarray(values).reshape(len(values), math.prod(values.shape[1:]))
    present = np.logical_not(cells.any(axis=1))
    partly = np.flatnonzero(cells.any(axis=1) & ~cells.all(axis=1))
    if len(partly):
        problem = Problem(
            where=f"row {partly[0]}", path=(name,), expected="a whole value", got="a mask in it"
        )
        raise RecordError(problem, int(partly[0]))
    return Gapped(values.data[present], present)


def _with_gaps(values: Any, feature: Feature | None) -> Any:
    """A float array for a feature of whole numbers is one with gaps where it has NaN.

    NumPy and pandas have no other way to say that an integer is missing. Without a NaN it is an array
    of floats, and the feature will refuse it.
    """
    floats = isinstance(values, np.ndarray) and values.dtype.kind == "f" and values.ndim == 1
    if not floats or feature is None:
        return values
    missing = np.isnan(values)
    kept = values[~missing]
    if not missing.any() or refusal(feature, float("nan")) is None or bool((kept % 1 != 0).any()):
        return values
    if bool((np.abs(kept) >= _EXACT).any()):
        return values
    return Gapped(kept.astype(np.int64), ~missing)
