"""Class names that accompany indices, such as those of Hugging Face in the metadata of an Arrow schema, and
the types of arrays there.

An index alone is ambiguous if a schema has its classes in another order; hence it is converted by its name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, SpecError
from recordspec.schema.features import Feature
from recordspec.wire.arrays import (
    counts_of,
    is_arrow,
    is_list,
    items_of,
    list_array,
    numbers_array,
    offsets,
    present_in,
    strings_array,
    to_numpy,
)

# The class names of columns of indices, or of lists of indices.
ColumnClasses = Mapping[str, tuple[str, ...]]
# The dtype and the shape of arrays.
ArrayType = tuple[str, tuple[int | None, ...]]

_METADATA = b"huggingface"
_LISTS = ("Sequence", "List", "LargeList")
# The value that Hugging Face stores for an example without a class.
_MISSING = -1


@dataclass(frozen=True)
class ClassIndex:
    """An index without a class; features refuse it."""

    index: int

    def __repr__(self) -> str:
        return f"{self.index}, which has no name"


def class_names_in(schema: Any) -> ColumnClasses:
    """The class names of an Arrow schema's columns. Raises SpecError for invalid metadata."""
    return {
        name: tuple(map(str, kind["names"]))
        for name, kind, _ in _declared(schema)
        if kind.get("_type") == "ClassLabel"
    }


def array_types_in(schema: Any) -> dict[str, ArrayType]:
    """The types of the arrays in an Arrow schema's columns, of two dimensions or more. Raises SpecError for
    invalid metadata.
    """
    return {
        name: (str(kind["dtype"]), tuple(kind["shape"]))
        for name, kind, in_lists in _declared(schema)
        if not in_lists and re.fullmatch(r"Array\dD", kind.get("_type", ""))
    }


def _declared(schema: Any) -> list[tuple[str, Mapping[str, Any], bool]]:
    """The name of each column and member of an object, the JSON description of its Hugging Face feature, and
    whether it is in lists. Raises SpecError for invalid metadata.
    """
    text = (schema.metadata or {}).get(_METADATA, b"{}")
    try:
        features = json.loads(text).get("info", {}).get("features") or {}
        return [one for name, kind in features.items() for one in _members(name, kind)]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        expected, got = "the features of a dataset of Hugging Face", f"{type(error).__name__}: {error}"
        raise SpecError(Problem(path=("huggingface",), expected=expected, got=got)) from None


def _members(name: str, kind: Any, in_lists: bool = False) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yields a feature, or the members of an object, also in lists."""
    if isinstance(kind, list):  # in versions before 4, a list with one feature
        yield from _members(name, kind[0], True)
    elif isinstance(kind.get("_type", {}), Mapping):  # an object, perhaps with a member of this name
        for member, one in kind.items():
            yield from _members(f"{name}.{member}", one, in_lists)
    elif kind["_type"] in _LISTS:
        yield from _members(name, kind["feature"], True)
    else:
        yield name, kind, in_lists


def takes_names(feature: Feature | None) -> bool:
    """Whether a feature takes the name of a class."""
    return feature is not None and feature.value_type.item in ("class", "text")


def named(values: Any, names: tuple[str, ...], feature: Feature | None) -> Any:
    """Converts a column of indices to names, if the feature takes names.

    An index of -1 is missing. Values that are no indices are returned unchanged. An index without a name
    becomes a `ClassIndex`.
    """
    if feature is None or not takes_names(feature):
        return values
    converted = _named(values, names)
    if converted is not None:
        return converted
    if is_arrow(values):
        if not (is_list(values) or arrow().types.is_integer(values.type)):
            return values
        values = values.to_pylist()
    return [name_of(value, names) for value in values]


def _named(values: Any, names: tuple[str, ...]) -> Any:
    """`named` for an Arrow array in which every index has a name or is missing; None for other values."""
    if not is_arrow(values):
        return None
    if is_list(values):
        items = _named(items_of(values), names)
        if items is None or items.null_count:
            return None
        return list_array(items, offsets(counts_of(values)), present_in(values))
    if not arrow().types.is_integer(values.type):
        return None
    indices, present = to_numpy(values), present_in(values)
    valid = present & (indices >= 0) & (indices < len(names))
    if not (valid | ~present | (indices == _MISSING)).all():
        return None
    indices = numbers_array(np.where(valid, indices, 0).astype(np.int64), valid)
    return arrow().DictionaryArray.from_arrays(indices, strings_array([name.encode() for name in names]))


def name_of(value: Any, names: tuple[str, ...]) -> Any:
    """The name of an index, or the names of a list of indices; other values are returned unchanged."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [name_of(item, names) for item in value]
    if not is_index(value) or value == _MISSING:
        return None if is_index(value) else value
    return names[value] if 0 <= value < len(names) else ClassIndex(int(value))


def is_index(value: Any) -> bool:
    """Whether a value is an integer, hence possibly the index of a class."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)
