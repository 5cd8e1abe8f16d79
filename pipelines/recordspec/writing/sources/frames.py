"""pandas frames, as columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from recordspec.errors import Problem, SpecError
from recordspec.spec.encoder import Gapped


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
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biufcSU":
        return series.to_numpy()
    if series.dtype == object:
        # in Python's own values NaN is a float like another; whether it is missing, the feature knows
        missing = series.isna() & ~series.map(lambda value: isinstance(value, float))
        return [None if gone else value for value, gone in zip(series.tolist(), missing, strict=True)]
    missing = series.isna().to_numpy()
    kept = series[~missing]
    values = kept.to_numpy()
    return Gapped(values, ~missing) if missing.any() else values
