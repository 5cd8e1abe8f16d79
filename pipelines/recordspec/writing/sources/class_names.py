"""Class names that travel with indices: those of Hugging Face, in the metadata of an Arrow schema.

An index alone says nothing where a schema has its classes in another order, so it is converted by its name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordspec.errors import Problem, SpecError
from recordspec.spec.encoder import Gapped
from recordspec.spec.features import Feature
from recordspec.spec.lists import Lists
from recordspec.wire.strings import Ints, Strings

# The class names of columns of indices, or of lists of these.
ColumnClasses = Mapping[str, tuple[str, ...]]

_METADATA = b"huggingface"
_LISTS = ("Sequence", "List", "LargeList")
# What Hugging Face stores for an example without a class.
_MISSING = -1


@dataclass(frozen=True)
class ClassIndex:
    """An index that no class has; a feature refuses it."""

    index: int

    def __repr__(self) -> str:
        return f"{self.index}, which has no name"


def class_names_in(schema: Any) -> ColumnClasses:
    """The class names of the columns of an Arrow schema. Raises SpecError for metadata that is damaged."""
    text = (schema.metadata or {}).get(_METADATA, b"{}")
    try:
        features = json.loads(text).get("info", {}).get("features") or {}
        found = {name: _names(kind) for name, kind in features.items()}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        expected, got = "the features of a dataset of Hugging Face", f"{type(error).__name__}: {error}"
        raise SpecError(Problem(path=("huggingface",), expected=expected, got=got)) from None
    return {name: names for name, names in found.items() if names is not None}


def _names(kind: Any) -> tuple[str, ...] | None:
    """The names of a ClassLabel, or of lists of one, as JSON describes it; None for another feature."""
    if isinstance(kind, list):  # a list of one feature, in versions before 4
        return _names(kind[0])
    if kind.get("_type") == "ClassLabel":
        return tuple(map(str, kind["names"]))
    return _names(kind["feature"]) if kind.get("_type") in _LISTS else None


def takes_names(feature: Feature | None) -> bool:
    """Whether a feature takes the name of a class."""
    return feature is not None and feature.value_type.item in ("class", "text")


def named(values: Any, names: tuple[str, ...], feature: Feature | None) -> Any:
    """A column of indices as names, if the feature takes names; unchanged if it has these in this order.

    An index of -1 is missing. Values that are no indices do not change; an index without a name becomes a
    `ClassIndex`.
    """
    if feature is None or not takes_names(feature):
        return values
    same = names == feature.class_names
    return _named(values, names, None if same else Strings.of([name.encode() for name in names]))


def _named(values: Any, names: tuple[str, ...], strings: Strings | None) -> Any:
    """The same; without `strings`, indices stay what they are."""
    if isinstance(values, Gapped):
        kept = _named(values.values, names, strings)
        if not isinstance(kept, Gapped):
            return Gapped(kept, values.present)
        present = values.present.copy()
        present[values.present] = kept.present
        return Gapped(kept.values, present)
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        valid = (values >= 0) & (values < len(names))
        if bool(valid.all()):
            return values if strings is None else _taken(strings, values)
        if values.ndim == 1 and bool((valid | (values == _MISSING)).all()):
            kept = values[valid]
            return Gapped(kept if strings is None else _taken(strings, kept), valid)
        return [name_of(value, names) for value in values.tolist()]
    if isinstance(values, Lists):
        flat = _named(values.flat, names, strings)
        if not isinstance(flat, list | Gapped):
            return Lists(flat, values.lengths)
    return [name_of(value, names) for value in values] if isinstance(values, list | Lists) else values


def _taken(strings: Strings, indices: Ints) -> Strings | Lists:
    """The strings at indices `[n, ...]`; those of more dimensions as nested lists."""
    taken: Strings | Lists = strings.take(indices.reshape(-1).astype(np.int64))
    for axis in range(indices.ndim - 1, 0, -1):
        lengths: Ints = np.full(math.prod(indices.shape[:axis]), indices.shape[axis], np.int64)
        taken = Lists(taken, lengths)
    return taken


def name_of(value: Any, names: tuple[str, ...]) -> Any:
    """The name of an index, or those of a list; other values do not change."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [name_of(one, names) for one in value]
    if not is_index(value) or value == _MISSING:
        return None if is_index(value) else value
    return names[value] if 0 <= value < len(names) else ClassIndex(int(value))


def is_index(value: Any) -> bool:
    """Whether a value is an integer, and so may be the index of a class."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)
