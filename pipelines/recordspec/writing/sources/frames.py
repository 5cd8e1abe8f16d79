"""pandas frames, as columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from recordspec.spec.encoder import Gapped


def is_frame(rows: Any) -> bool:
    """Whether this is a pandas DataFrame; pandas is not loaded to find out."""
    kind = type(rows)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas"


def frame_columns(frame: Any) -> dict[str, Any]:
    """The columns of a frame by name; the index is none of them."""
    return {str(name): _column(frame[name]) for name in frame.columns}


def _column(series: Any) -> Any:
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biufcSU":
        return series.to_numpy()
    missing = series.isna().to_numpy()
    kept = series[~missing]
    values = kept.tolist() if kept.dtype == object else kept.to_numpy()
    return Gapped(values, ~missing) if missing.any() else values
