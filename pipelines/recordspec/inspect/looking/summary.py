"""Values as a person wants to see them: long lists and texts cut, images and sounds described."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from recordspec.inspect.looking.media import described
from recordspec.inspect.looking.values import shortest
from recordspec.wire.columns import Kind
from recordspec.wire.file_types import printable
from recordspec.wire.proto import Listed

# `short` cuts what is long. `full` does not. `raw` leaves bytes what they are, too.
Style = Literal["short", "full", "raw"]

_LONGEST_TEXT = 200
_MOST_VALUES = 16
_WORDS = {"int64": "integer", "float32": "float", "bytes": "bytes value"}


def shown_list(listed: Listed, style: Style) -> Any:
    """A list of a Feature: the value where it is one, None where there is no list."""
    kind, values = listed
    if kind == "none":
        return None
    if len(values) == 1:
        return shown_values(kind, values, style)[0]
    if style == "short" and len(values) > _MOST_VALUES:
        return f"<{_counted(kind, values)}>"
    return shown_values(kind, values, style)


def shown_steps(steps: list[Listed], style: Style) -> Any:
    """The lists of a feature list."""
    if style == "short" and len(steps) > _MOST_VALUES:
        return f"<{len(steps):,} steps: {_all_together(steps)}>"
    return [shown_list(step, style) for step in steps]


def shown_values(kind: Kind, values: list[Any], style: Style) -> list[Any]:
    if kind == "float32":
        return list(shortest(np.array(values, np.float32)))
    return [shown_value(value, style) for value in values]


def shown_value(value: Any, style: Style) -> Any:
    """A number, or the name of a label, as it is. Bytes as text, where they are one, else in words."""
    if not isinstance(value, bytes) or style == "raw":
        return value
    text = printable(value)
    if text is None:
        return f"<{described(value)}>"
    if style == "full" or len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[:_LONGEST_TEXT]}... {len(text):,} characters"


def _all_together(steps: list[Listed]) -> str:
    """The values of steps of one kind; of several, how many."""
    kinds = {kind for kind, values in steps if values}
    if len(kinds) != 1:
        return f"{sum(len(values) for _, values in steps):,} values"
    return _counted(kinds.pop(), [value for _, values in steps for value in values])


def _counted(kind: Kind, values: list[Any]) -> str:
    """`784 floats in [-0.5, 0.5]`."""
    count = f"{len(values):,} {_WORDS[kind]}{'s' * (len(values) != 1)}"
    if kind == "bytes" or any(isinstance(value, str) for value in values):
        return f"{count}, the first {shown_value(values[0], 'short')!r}"
    numbers = np.array(values, "float32" if kind == "float32" else "int64")
    whole = numbers[~np.isnan(numbers)] if kind == "float32" else numbers
    nan = f", {len(numbers) - len(whole):,} NaN" if len(whole) < len(numbers) else ""
    if not len(whole):
        return f"{len(numbers):,} NaN"
    low, high = (
        [whole.min(), whole.max()] if kind == "int64" else shortest(np.array([whole.min(), whole.max()]))
    )
    return f"{count} in [{low}, {high}]{nan}"
