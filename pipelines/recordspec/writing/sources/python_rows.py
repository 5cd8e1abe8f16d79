"""Finds the source for rows given in Python."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from recordspec._arrow import arrow
from recordspec.errors import Problem, SpecError, describe
from recordspec.writing.sources.arrow import TableRows, is_table, polars_to_arrow
from recordspec.writing.sources.base import Source
from recordspec.writing.sources.hugging_face import hugging_face_source, is_hugging_face
from recordspec.writing.sources.numpy_arrays import Arrays, frame_columns, is_frame
from recordspec.writing.sources.rows import DatasetRows, DictRows, is_dataset

_EXPECTED = "an iterable of dicts, a dict of arrays, a frame, or an Arrow table"


def source_of(rows: Any) -> Source:
    """Returns the source for `rows`.

    `rows` may be a source, which is returned unchanged; an iterable of dicts; a dict of arrays; a pandas or
    Polars frame; an Arrow table, record batch, or reader of these; a tf.data.Dataset of dicts; a Hugging Face
    Dataset or IterableDataset, a dict of these by split, or the `data` of a Dataset. Raises SpecError.
    """
    if isinstance(rows, Source):
        return rows
    if is_dataset(rows):
        return DictRows(DatasetRows(rows))
    if is_hugging_face(rows):
        return hugging_face_source(rows)
    if is_frame(rows):
        return Arrays(frame_columns(rows))
    if isinstance(rows, Mapping):
        return Arrays(rows)
    if hasattr(rows, "to_frame"):  # one column of pandas or Polars
        raise _refused(f"a {type(rows).__name__}", "give its to_frame()")
    table = _table(rows)
    if table is not None:
        return TableRows(table)
    if hasattr(rows, "to_pandas"):
        raise _refused(type(rows).__name__, "give its to_pandas()")
    if isinstance(rows, Iterable) and not isinstance(rows, (str, bytes)):
        return DictRows(rows)
    hint = "a config's `write: {source: ...}` names files" if isinstance(rows, (str, os.PathLike)) else ""
    raise _refused(describe(rows), hint)


def _table(rows: Any) -> Any:
    """An Arrow table or a reader; None for other rows."""
    if is_table(rows):
        return rows
    if type(rows).__module__ == "datasets.table" and is_table(getattr(rows, "table", None)):
        return rows.table
    if type(rows).__module__.partition(".")[0] == "polars":
        return polars_to_arrow(_collected(rows))
    if hasattr(rows, "__arrow_c_stream__"):
        return arrow().RecordBatchReader.from_stream(rows)
    return None


def _collected(frame: Any) -> Any:
    if type(frame).__name__ == "LazyFrame":
        raise _refused("a LazyFrame", "give its .collect()")
    if not hasattr(frame, "get_columns"):
        raise _refused(type(frame).__name__)
    arrow()
    return frame


def _refused(got: str, hint: str = "") -> SpecError:
    return SpecError(Problem(path=("rows",), expected=_EXPECTED, got=got, hint=hint))
