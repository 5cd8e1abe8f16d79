"""Cells of text, in Arrow arrays, as the values of a feature."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from recordspec.errors import Problem, SpecError
from recordspec.locations import Location
from recordspec.spec.encoder import Gapped
from recordspec.spec.features import Feature
from recordspec.spec.values import BadValue, is_integer
from recordspec.writing.sources.arrow import inside, is_present, kept, to_numpy, to_strings
from recordspec.writing.sources.base import EXACT

# Texts that are certainly int64, and texts that are numbers at all: no hexadecimals, no underscores.
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_LONG_WHOLE = re.compile(r"[-+]?[0-9]{1,40}")
_DECIMAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_SPECIAL = ("nan", "inf", "-inf", "+inf", "infinity", "-infinity")


def from_text(column: Any, feature: Feature, folder: Location) -> Any:
    """A column of text (an Arrow string array) as values of the feature; null is missing.

    Paths of images and sounds are relative to `folder`, and stay in it.

    Raises BadValue for the first invalid cell, SpecError for a feature that one cell
    cannot hold.
    """
    present = _present(column, feature)
    try:
        values = _values(kept(column, present), feature, folder)
    except BadValue as bad:
        raise bad.moved(int(np.flatnonzero(present)[bad.index])) from None
    return values if present.all() else Gapped(values, present)


def are(column: Any, dtype: str) -> bool:
    """Whether cells of text, none of them empty, are all values of int64, float64 or bool, by their form."""
    from pyarrow import compute

    return bool(compute.all(form(column, dtype), min_count=0).as_py())


def form(column: Any, dtype: str) -> Any:
    """Which cells of text are values of int64, float64 or bool, by their form."""
    from pyarrow import compute

    forms = {"int64": _LONG_WHOLE.pattern, "bool": "(?i:true|false)"}
    pattern = forms.get(dtype, f"{_DECIMAL.pattern}|(?i:{'|'.join(map(re.escape, _SPECIAL))})")
    return compute.match_substring_regex(column, f"^({pattern})$")


def _present(column: Any, feature: Feature) -> Any:
    """Which cells have a value: an empty quoted cell is a text, but not a number, label or path."""
    from pyarrow import compute

    present = is_present(column)
    if feature.value_type.item == "text":
        return present
    return present & (to_numpy(compute.binary_length(column)) > 0)


def _values(column: Any, feature: Feature, folder: Location) -> Any:
    kind = feature.value_type
    if getattr(feature, "date", None) is not None:
        return list(column.to_pylist())
    if kind.item == "any":  # a custom kind: what it makes of a text, it says
        return list(column.to_pylist())
    if kind.shape == () and kind.item == "media":
        return inside(column.to_pylist(), folder)
    if kind.shape == () and kind.item == "class":
        return [_name_or_index(text, feature) for text in column.to_pylist()]
    if kind.shape == () and kind.is_number:
        return _bools(column) if kind.item == "bool" else _numbers(column, kind.item)
    if kind.shape == () and kind.item == "text":
        return to_strings(column)
    raise SpecError(
        Problem(
            path=(feature.name,),
            expected="a feature that one cell of text can give: a number, a string, a label, a path",
            got=feature.kind,
        )
    )


def _numbers(column: Any, dtype: str) -> Any:
    from pyarrow import compute

    plain = _WHOLE if is_integer(dtype) else _DECIMAL
    if compute.all(compute.match_substring_regex(column, f"^{plain.pattern}$")).as_py() in (True, None):
        values = to_numpy(compute.cast(column, "int64" if is_integer(dtype) else "float64"))
        if is_integer(dtype) or bool(np.isfinite(values).all()):
            return values
    return [_number(row, text, dtype) for row, text in enumerate(column.to_pylist())]


def _number(row: int, text: str, dtype: str) -> int | float:
    """One cell. `180.0` is a whole number: so does a column of integers with gaps come to be written."""
    if is_integer(dtype) and _LONG_WHOLE.fullmatch(text):
        return int(text)
    if not _DECIMAL.fullmatch(text) and text.lower() not in _SPECIAL:
        raise BadValue(row, dtype, f"`{text}`")
    value = float(text)
    if not is_integer(dtype):
        if np.isinf(value) and text.lower() not in _SPECIAL:
            raise BadValue(row, f"{dtype}, which holds it without overflow", f"`{text}`")
        return value
    if not value.is_integer():
        raise BadValue(row, dtype, f"`{text}`", "it is no whole number")
    if abs(value) >= EXACT:
        raise BadValue(row, dtype, f"`{text}`", "so large a number is exact only without a point")
    return int(value)


def _name_or_index(text: str, feature: Feature) -> str | int:
    """A cell that is no name but digits is an index."""
    return int(text) if text not in feature.class_names and re.fullmatch("[0-9]{1,18}", text) else text


def _bools(column: Any) -> list[bool]:
    known = {"true": True, "false": False, "1": True, "0": False}
    cells = []
    for row, text in enumerate(column.to_pylist()):
        if text.lower() not in known:
            raise BadValue(row, "true or false", f"`{text}`")
        cells.append(known[text.lower()])
    return cells
