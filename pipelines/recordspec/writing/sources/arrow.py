"""Arrow's typed columns as the values of features, without a Python object for each cell where it can be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError
from recordspec.spec.encoder import Gapped, part_of
from recordspec.spec.features import KINDS, Feature
from recordspec.spec.features.audio import Audio
from recordspec.spec.features.image import Image
from recordspec.spec.features.label import Label
from recordspec.spec.features.sparse import SparseValues
from recordspec.spec.features.text import Text
from recordspec.spec.features.video import Video
from recordspec.spec.lists import Lists
from recordspec.spec.schema import Schema
from recordspec.spec.values import BadValue
from recordspec.writing.sources import buffers
from recordspec.writing.sources.cells import inside

_MEDIA = (Image, Audio, Video)


def is_array(values: Any) -> bool:
    """Whether this is an array of Arrow's; pyarrow is not loaded to find out."""
    return _is_arrows(values) and hasattr(values, "null_count") and hasattr(values, "type")


def is_table(rows: Any) -> bool:
    """Whether this is a table, a record batch, or a reader of these."""
    return _is_arrows(rows) and type(rows).__name__ in ("Table", "RecordBatch", "RecordBatchReader")


def _is_arrows(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pyarrow"


def from_arrow(column: Any, feature: Feature | None = None) -> Any:
    """An Arrow array as the values of a feature: an array, `Strings`, `Lists`, or a list; null is missing.

    Without a feature, text is Python's.
    """
    array = _plain(column)
    if not array.null_count:
        return _values(array, feature)
    return Gapped(_values(array.filter(array.is_valid()), feature), buffers.present(array))


def _plain(column: Any) -> Any:
    """One array, of a type without a disguise: chunks are put together, dictionaries looked up."""
    pyarrow = arrow()
    if isinstance(column, pyarrow.ChunkedArray):
        chunks = [_plain(chunk) for chunk in column.chunks]
        if len(chunks) == 1:
            return chunks[0]
        return pyarrow.concat_arrays(chunks) if chunks else _plain(pyarrow.array([], column.type))
    if isinstance(column, pyarrow.ExtensionArray):
        return _plain(column.storage)
    if isinstance(column, pyarrow.DictionaryArray):
        return _plain(column.dictionary_decode())
    if "view" in str(column.type):  # which can be filtered by few functions
        plain = {"string_view": pyarrow.large_string(), "binary_view": pyarrow.large_binary()}
        return column.cast(plain[str(column.type)]) if str(column.type) in plain else column
    return column


def _values(array: Any, feature: Feature | None) -> Any:
    """Of an array without nulls."""
    kind = array.type
    if _is_number(kind):
        return buffers.numbers(array)
    if _is_text(kind) and _takes_text(feature):
        return buffers.strings(array)
    if _is_list(kind) and _takes_lists(feature):
        return _lists(array, feature)
    if _is_list(kind) and isinstance(feature, (Image, Audio)):
        return _samples(array)
    return array.to_pylist()


def _is_number(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_text(kind: Any) -> bool:
    types = arrow().types
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return any(is_one(kind) for is_one in texts)


def _is_list(kind: Any) -> bool:
    types = arrow().types
    return any(is_one(kind) for is_one in (types.is_list, types.is_large_list, types.is_fixed_size_list))


def _takes_text(feature: Feature | None) -> bool:
    return isinstance(feature, (Text, Label)) or getattr(feature, "dtype", None) == "string"


def _takes_lists(feature: Feature | None) -> bool:
    """Whether it goes through its values by the functions of spec/values.py."""
    apart = isinstance(feature, (*_MEDIA, SparseValues))
    return type(feature) in KINDS.values() and not apart


def _lists(array: Any, feature: Feature | None) -> Any:
    """Lists of one length as an array with one more dimension."""
    inner = _plain(array.flatten())
    if inner.null_count:  # to be named by its feature
        return array.to_pylist()
    flat = _values(inner, feature)
    if isinstance(flat, list):
        return array.to_pylist()
    lengths = buffers.numbers(arrow().compute.list_value_length(array)).astype(np.int64)
    if isinstance(flat, np.ndarray) and len(lengths) and bool((lengths == lengths[0]).all()):
        return flat.reshape(len(lengths), int(lengths[0]), *flat.shape[1:])
    return Lists(flat, lengths)


def _samples(array: Any) -> list[Any]:
    """Pixels or samples, an array for each; Arrow knows their dtype."""
    kind = array.type
    while _is_list(kind):
        kind = kind.value_type
    if not _is_number(kind):
        return list(array.to_pylist())
    dtype = buffers.dtype_of(kind)
    return [np.array(value, dtype) for value in array.to_pylist()]


def check_types(schema: Schema, types: Mapping[str, Any], where: str = "") -> None:
    """Raises SpecError for every feature whose column has a type that is neither number, text nor list."""
    problems = [
        Problem(where=where, path=(name,), expected=expected, got=str(types[name]), hint=hint)
        for name, feature in schema.names.items()
        if name in types and _is_foreign(types[name]) and type(feature) in KINDS.values()
        for expected, hint in [_needs(feature)]
    ]
    if problems:
        raise SpecError(problems)


def _is_foreign(kind: Any) -> bool:
    types = arrow().types
    while _is_list(kind):
        kind = kind.value_type
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_temporal(kind) or types.is_decimal(kind) or types.is_map(kind))


def _needs(feature: Feature) -> tuple[str, str]:
    """What a column for the feature holds, and how one of times or decimals becomes that."""
    dtype = str(getattr(feature, "dtype", "int64"))
    if isinstance(feature, _MEDIA):
        return "a column of paths or bytes", ""
    if isinstance(feature, Label):
        return "a column of names or indices", "cast it to string"
    if _takes_text(feature):
        return "a column of text", "cast it to string"
    if "int" in dtype:
        return f"a column for {dtype}", "cast it to int64, in the unit that you mean"
    return f"a column for {dtype}", "cast it to float64"


class TableColumns:
    """Columns of a table, for a `Batch`. They are converted once; slices are taken of what comes out.

    Args:
        table: an Arrow table or record batch.
        wanted: the column of each feature, and of each extra name.
        schema: of the features.
        folder: where there is one, what paths of images and sounds are relative to, and stay in.
    """

    def __init__(
        self, table: Any, wanted: Mapping[str, str], schema: Schema, folder: Path | None = None
    ) -> None:
        self._features = schema.names
        self._folder = folder
        self._values = {
            name: from_arrow(table.column(column), schema.names.get(name)) for name, column in wanted.items()
        }

    def __call__(self, start: int, stop: int) -> dict[str, Any]:
        columns = {name: part_of(values, start, stop) for name, values in self._values.items()}
        if self._folder is None:
            return columns
        media = [name for name in columns if isinstance(self._features.get(name), _MEDIA)]
        return columns | placed(columns, media, self._folder)


def placed(columns: Mapping[str, Any], names: Iterable[str], folder: Path) -> dict[str, Any]:
    """The columns of these names, the paths in them below `folder`.

    Raises RecordError for the first row with a path that is not.
    """
    found: dict[str, Any] = {}
    bad: list[tuple[int, Problem]] = []
    for name in names:
        try:
            found[name] = inside(columns[name], folder)
        except BadValue as error:
            bad.append((error.index, error.problem.under("features", name)))
    if bad:
        first = min(row for row, _ in bad)
        raise RecordError([problem for row, problem in bad if row == first], first)
    return found
