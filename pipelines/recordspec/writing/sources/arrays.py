"""A dict of arrays: one column a feature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from recordspec.errors import Problem, SpecError, describe, nearest
from recordspec.spec.encoder import Gapped
from recordspec.spec.features import Feature
from recordspec.spec.schema import Schema
from recordspec.spec.values import BadValue
from recordspec.writing.sources.base import ROWS_AT_ONCE, Batch


class Arrays:
    """Columns of equal length: NumPy arrays, lists, or `Gapped`."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.notes: list[str] = []
        self._columns = {str(name): _column(str(name), values) for name, values in columns.items()}
        lengths = {name: _length(values) for name, values in self._columns.items()}
        self.rows = next(iter(lengths.values()), 0)
        for name, length in lengths.items():
            if length != self.rows:
                first = next(iter(lengths))
                hint = f"`{first}` has so many"
                raise SpecError(
                    Problem(path=(name,), expected=f"{self.rows} rows", got=str(length), hint=hint)
                )

    def batches(self, schema: Schema, keys: tuple[str, ...]) -> Iterator[Batch]:
        known = [*schema.names, *keys]
        for name in self._columns:
            if name not in known:
                expected = f"names of `{schema.name}`"
                absent = [one for one in known if one not in self._columns]
                hint = nearest(name, absent)
                raise SpecError(Problem(path=("rows",), expected=expected, got=f"`{name}`", hint=hint))
        columns = {name: _with_gaps(values, schema.names.get(name)) for name, values in self._columns.items()}
        for start in range(0, self.rows, ROWS_AT_ONCE):
            stop = min(start + ROWS_AT_ONCE, self.rows)
            yield {name: _cut(values, start, stop) for name, values in columns.items()}, stop - start

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


def _length(values: Any) -> int:
    return len(values.present) if isinstance(values, Gapped) else len(values)


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
    if not missing.any() or _takes_nan(feature) or bool((kept % 1 != 0).any()):
        return values
    whole = kept.astype(np.int64)
    return Gapped(whole, ~missing) if bool((whole == kept).all()) else values


def _takes_nan(feature: Feature) -> bool:
    try:
        feature.encode([float("nan")])
    except BadValue:
        return False
    return True


def _cut(values: Any, start: int, stop: int) -> Any:
    if not isinstance(values, Gapped):
        return values[start:stop]
    before, kept = np.count_nonzero(values.present[:start]), values.present[start:stop]
    return Gapped(values.values[before : before + np.count_nonzero(kept)], kept)
