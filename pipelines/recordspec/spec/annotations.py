"""What a field's annotation allows: its choices, and what messages call them."""

from __future__ import annotations

import dataclasses
import os
import types
import typing
from collections.abc import Iterable
from collections.abc import Mapping as AnyMapping
from typing import Annotated, Any, Literal, Union

from recordspec.errors import Problem, one_of
from recordspec.locations import LOCATION, url_problem

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


def hints(cls: type) -> dict[str, Any]:
    """The annotations of a dataclass's fields, with their marks."""
    return typing.get_type_hints(cls, include_extras=True)


def choices(annotation: Any) -> tuple[Any, ...]:
    return tuple(map(_unmarked, _marked_choices(annotation)))


def wrong_path(value: Any, annotation: Any) -> Problem | None:
    """What is wrong with a value whose annotation says that it is a path: that it is a URL."""
    is_path = any(LOCATION in getattr(one, "__metadata__", ()) for one in _marked_choices(annotation))
    return url_problem(value) if is_path and isinstance(value, (str, os.PathLike)) else None


def _marked_choices(annotation: Any) -> tuple[Any, ...]:
    union = typing.get_origin(annotation) in (Union, types.UnionType)
    return typing.get_args(annotation) if union else (annotation,)


def _unmarked(choice: Any) -> Any:
    return typing.get_args(choice)[0] if typing.get_origin(choice) is Annotated else choice


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
