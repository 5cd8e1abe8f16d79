"""What a field's annotation allows: its choices, and what messages call them."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable
from collections.abc import Mapping as AnyMapping
from typing import Any, Literal, Union

from recordspec.errors import one_of

_TYPE_NAMES = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}

MAPPINGS = (dict, AnyMapping)


def closest(forms: list[Any], names: Iterable[str] | None) -> Any:
    """Of several forms of a mapping the dataclass that has all its names, else the last; else the first."""
    if names is None:
        return forms[0]
    for form in forms[:-1] if names else ():
        if set(names) <= {field.name for field in dataclasses.fields(form)}:
            return form
    return forms[-1]


def choices(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) in (Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def literals(choice: Any) -> tuple[Any, ...]:
    return typing.get_args(choice) if typing.get_origin(choice) is Literal else ()


def short_form(cls: Any) -> str | None:
    """The field that a scalar stands for, where the class declares one (`SHORT_FORM`)."""
    return getattr(cls, "SHORT_FORM", None)


def expected_of(annotation: Any) -> str:
    """An annotation in words."""
    words = [word for choice in choices(annotation) for word in _words(choice)]
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _words(choice: Any) -> list[str]:
    if literals(choice):
        return [one_of(map(str, literals(choice)))]
    if typing.get_origin(choice) is tuple:
        return ["a list"]
    if typing.get_origin(choice) in MAPPINGS:
        return ["a mapping"]
    if dataclasses.is_dataclass(choice):
        fields = ", ".join(field.name.rstrip("_") for field in dataclasses.fields(choice))
        return [f"a mapping of {fields}"]
    return [_TYPE_NAMES.get(choice, "a value")]
