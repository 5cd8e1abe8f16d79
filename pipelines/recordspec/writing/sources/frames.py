"""pandas frames, as columns.

What pandas calls missing is missing: None, NaN, NaT and NA, so that a frame and the Arrow table that
`pyarrow.Table.from_pandas` makes of it give the same records. NaN in a list or an array in a cell is a value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recordspec.errors import Problem, SpecError
from recordspec.spec.encoder import Gapped
from recordspec.writing.sources.base import EXACT


def is_frame(rows: Any) -> bool:
    """Whether this is a pandas DataFrame; pandas is not loaded to find out."""
    kind = type(rows)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas"


def frame_columns(frame: Any) -> dict[str, Any]:
    """The columns of a frame by name; the index is none of them."""
    names = [str(name) for name in frame.columns]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        expected = "every column once"
        raise SpecError(Problem(path=("rows",), expected=expected, got=f"`{repeated[0]}` again"))
    return {name: _column(frame[column]) for name, column in zip(names, frame.columns, strict=True)}


def _column(series: Any) -> Any:
    missing = series.isna().to_numpy()
    kept = series[~missing] if missing.any() else series
    # pandas before 2.2 makes Python objects of its own nullable numbers, unless it is told what to make
    dtype = getattr(series.dtype, "numpy_dtype", None)
    values = _of_objects(kept.tolist()) if series.dtype == object else kept.to_numpy(dtype)
    return Gapped(values, ~missing) if missing.any() else values


def _of_objects(values: list[Any]) -> Any:
    """The values of a column of Python objects: an array where Arrow, too, takes them for floats."""
    kinds = set(map(type, values))
    floats = {kind for kind in kinds if issubclass(kind, float | np.floating)}
    others = kinds - floats
    if not floats or not all(issubclass(kind, int | np.integer) and kind is not bool for kind in others):
        return values
    exact = all(type(value) in floats or -EXACT < value < EXACT for value in values)
    return np.array(values, np.float64) if exact else values
