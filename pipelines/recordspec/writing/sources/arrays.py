"""A dict of arrays: one column a feature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from recordspec.errors import Problem, SpecError, describe
from recordspec.spec.encoder import Gapped, refusal
from recordspec.spec.features import Feature
from recordspec.spec.schema import Schema
from recordspec.writing.sources.base import Batch

# Below it float64 has every whole number; above, an integer may have been rounded already.
_EXACT = 2**53


class Arrays:
    """Columns of equal length: NumPy arrays, lists, or `Gapped`."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.notes: list[str] = []
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
        yield columns, self.rows

    def place(self, row: int) -> str:
        return f"row {row}"


def _column(name: str, values: Any) -> Any:
    if isinstance(values, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(values).reshape(len(values), -1).any(axis=1)
        present = np.logical_not(masked)
        return Gapped(values.data[present], present)
    if isinstance(values, (list, Gapped)):
        return values
    if isinstance(values, tuple):
        return list(values)
    if hasattr(values, "__array__"):
        array = np.asarray(values)
        if array.ndim:
            return array
    raise SpecError(Problem(path=(name,), expected="an array or a list", got=describe(values)))


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
