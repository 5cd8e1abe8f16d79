"""Where rows come from. A source gives them in batches of columns, and names them in messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from recordspec.errors import Problem, SpecError, describe
from recordspec.writing.sources.arrays import Arrays
from recordspec.writing.sources.base import Rows, Source
from recordspec.writing.sources.frames import frame_columns, is_frame

__all__ = ["Rows", "Source", "source_of"]


def source_of(rows: Any) -> Source | Rows:
    """The source that `rows` are: as given, an iterable of dicts, a dict of arrays, or a frame."""
    if isinstance(rows, (Source, Rows)):
        return rows
    if is_frame(rows):
        return Arrays(frame_columns(rows))
    if isinstance(rows, Mapping):
        return Arrays(rows)
    if hasattr(rows, "to_pandas"):
        hint = "give its to_pandas()"
        expected = "an iterable of dicts, a dict of arrays, or a pandas frame"
        raise SpecError(Problem(path=("rows",), expected=expected, got=type(rows).__name__, hint=hint))
    if isinstance(rows, Iterable) and not isinstance(rows, (str, bytes)):
        return Rows(rows)
    expected = "an iterable of dicts, a dict of arrays, or a frame"
    raise SpecError(Problem(path=("rows",), expected=expected, got=describe(rows)))
