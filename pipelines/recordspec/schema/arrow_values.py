"""Arrow's arrays as the values of features, without a Python object for each cell where that can be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.schema.features import Feature
from recordspec.schema.media import FILE_NAMES, file_of
from recordspec.wire.arrays import is_arrow, is_number, is_text, list_array, offsets, present_in, to_numpy


def values_of(columns: Mapping[str, Any], features: Mapping[str, Feature]) -> dict[str, Any]:
    """Columns by the names of their features, those of Arrow as the values of these."""
    return {
        name: from_arrow(values, features.get(name)) if is_arrow(values) else values
        for name, values in columns.items()
    }


def from_arrow(column: Any, feature: Feature | None = None) -> Any:
    """An Arrow array as the values of a feature, in which null is missing: an array of numbers, dates, text
    or a dictionary of it, or of `large_list` of these; or else a list.

    Without a feature, it is numbers or text that stay an array.
    """
    array = _plain(column, feature)
    kind = array.type
    if feature is not None and feature.value_type.item.startswith("complex") and is_list(kind):
        return [_complex(value) for value in array.to_pylist()]
    if is_number(array) or (is_date(kind) and takes_dates(feature)):
        return array
    if is_text(array) and (feature is None or _takes_text(feature)):
        return array
    if is_list(kind) and _takes_lists(feature) and _has_plain_items(array):
        return array
    if arrow().types.is_dictionary(kind):
        if feature is None or _takes_text(feature):
            return array
        return from_arrow(array.dictionary_decode(), feature)
    if is_file(kind) or (is_list(kind) and is_file(kind.value_type)):
        return _files_of(array.to_pylist())
    if is_list(kind) and feature is not None and feature.value_type.item == "media":
        return _samples(array)
    return array.to_pylist()


def _plain(column: Any, feature: Feature | None) -> Any:
    """One array of a plain type: chunks are concatenated, and lists are `large_list`.

    Decimals are text for a feature of text, else numbers; times of day and durations are the number of their
    unit.
    """
    pyarrow = arrow()
    if isinstance(column, pyarrow.ChunkedArray):
        column = combined(column)
    if isinstance(column.type, pyarrow.FixedShapeTensorType):
        return _plain(_nested_lists(column), feature)
    if isinstance(column, pyarrow.ExtensionArray):
        return _plain(column.storage, feature)
    if isinstance(column, pyarrow.DictionaryArray):
        entries = column.dictionary
        if is_text(entries) and not entries.null_count:  # what has such an entry is missing, too
            return column
        return _plain(column.dictionary_decode(), feature)
    if is_list(column.type):
        lengths = pyarrow.compute.list_value_length(column)
        counts = to_numpy(lengths.fill_null(0) if lengths.null_count else lengths).astype(np.int64)
        items = _plain(column.flatten(), feature)
        if isinstance(items, pyarrow.DictionaryArray):
            items = items.dictionary_decode()
        if items.null_count and not is_list(items.type) and feature is not None:
            items = _without_gaps(items, feature.value_type.missing_item)
        return list_array(items, offsets(counts), present_in(column))
    return _number_or_text(column, feature)


def _without_gaps(items: Any, missing_item: Any) -> Any:
    """Items with a value in place of each that is missing; unchanged if their type does not hold the value,
    which their feature puts there then."""
    if missing_item is None:
        return items
    try:
        fill = arrow().scalar(missing_item, items.type)
    except (arrow().ArrowException, OverflowError, TypeError, ValueError):
        return items
    held = fill.as_py()
    held = held.decode() if isinstance(held, bytes) and isinstance(missing_item, str) else held
    is_same = held == missing_item or (held != held and missing_item != missing_item)
    return items.fill_null(fill) if is_same else items


def _nested_lists(tensors: Any) -> Any:
    """Lists in lists, of their sizes, instead of the flat lists that store tensors."""
    first, *sizes = tensors.type.shape
    items, present = tensors.storage.flatten(), present_in(tensors)
    for size in reversed(sizes):
        items = arrow().FixedSizeListArray.from_arrays(items, size)
    return list_array(items, offsets(np.where(present, first, 0)), present)


def _number_or_text(column: Any, feature: Feature | None) -> Any:
    types, kind = arrow().types, column.type
    if "view" in str(kind):  # which can be filtered by few functions
        plain = {"string_view": arrow().large_string(), "binary_view": arrow().large_binary()}
        return without_views(column, plain[str(kind)]) if str(kind) in plain else column
    if types.is_decimal(kind):
        return _decimals(column, feature)
    if types.is_fixed_size_binary(kind):
        return column.cast(arrow().large_binary())
    if types.is_time(kind) or types.is_duration(kind):
        return column.cast("int32" if kind.bit_width == 32 else "int64")
    return column


def without_views(column: Any, kind: Any) -> Any:
    """An array of views of strings, or of lists of these, in another type."""
    try:
        return column.cast(kind)
    except arrow().ArrowNotImplementedError:  # up to pyarrow 16
        return arrow().array(column.to_pylist(), kind)


def _decimals(column: Any, feature: Feature | None) -> Any:
    """Decimals as what a feature takes: text of all their digits, integers if all are whole, or float64."""
    if feature is None or feature.value_type.item == "text":
        return column.cast("large_string")
    if "int" in feature.value_type.item:
        try:
            return column.cast("int64")
        except arrow().ArrowInvalid:  # some have a fraction, which the feature refuses
            pass
    return column.cast("float64")


def _complex(value: Any) -> Any:
    """Complex numbers, of which a table has the real and the imaginary part as a list of two floats."""
    if not isinstance(value, list):
        return value
    return complex(*value) if value and isinstance(value[0], float) else list(map(_complex, value))


def _has_plain_items(lists: Any) -> bool:
    """Whether the innermost items are numbers or text, none of them missing; others are to be named by their
    feature."""
    items = lists.flatten()
    if items.null_count:
        return False
    return _has_plain_items(items) if is_list(items.type) else is_number(items) or is_text(items)


def combined(column: Any) -> Any:
    """The chunks of a column of a table as one array."""
    chunks = column.chunks
    if len(chunks) == 1:
        return chunks[0]
    return arrow().concat_arrays(chunks) if chunks else arrow().nulls(0, column.type)


def is_list(kind: Any) -> bool:
    """Whether this is a type of lists."""
    types = arrow().types
    return any(is_one(kind) for is_one in (types.is_list, types.is_large_list, types.is_fixed_size_list))


def item_type(kind: Any) -> Any:
    """The type of single values, and of items of lists."""
    while is_list(kind):
        kind = kind.value_type
    return kind


def is_file(kind: Any) -> bool:
    """Whether this is how Hugging Face stores images and sounds: as bytes, or else as a path."""
    return bool(arrow().types.is_struct(kind)) and {field.name for field in kind} == FILE_NAMES


def _files_of(value: Any) -> Any:
    return [_files_of(item) for item in value] if isinstance(value, list) else file_of(value)


def is_date(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_date(kind) or types.is_timestamp(kind))


def takes_dates(feature: Feature | None) -> bool:
    return feature is not None and feature.value_type.date is not None


def _takes_text(feature: Feature | None) -> bool:
    return feature is not None and feature.value_type.item in ("text", "class")


def _takes_lists(feature: Feature | None) -> bool:
    """Whether `encode` takes lists of Arrow."""
    return _takes_text(feature) or (feature is not None and feature.value_type.is_number)


def _samples(array: Any) -> list[Any]:
    """Pixels or samples, an array for each, or lists of arrays of different shapes; Arrow
    knows their dtype."""
    items = array
    while is_list(items.type):
        items = items.flatten()
    if not is_number(items):
        return list(array.to_pylist())
    dtype = to_numpy(items[:0]).dtype
    return [None if value is None else _array_of(value, dtype) for value in array.to_pylist()]


def _array_of(value: Any, dtype: np.dtype[Any]) -> Any:
    try:
        return np.array(value, dtype)
    except ValueError:  # of several sounds or images, which may differ in size
        return [_array_of(item, dtype) for item in value] if isinstance(value, list) else value
