"""Python values to typed options, by the rules by which `options` reads them from YAML."""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import Mapping as AnyMapping
from numbers import Integral, Real
from typing import Any

from recordspec.errors import Path, Problem, SpecError, describe, nearest, one_of
from recordspec.spec.annotations import (
    MAPPINGS,
    choices,
    closest,
    expected_of,
    hints,
    literals,
    short_form,
    wrong_path,
)
from recordspec.spec.options import INVALID
from recordspec.spec.plain import required

# TensorFlow counts in int64.
_LARGEST = 2**63


def from_python(cls: type, given: AnyMapping[str, Any], path: Path = ()) -> Any:
    """An instance of the dataclass `cls` from Python values, checked as those of a file are.

    A mapping stands for a dataclass, a list for a tuple, and a scalar for a short form. Raises
    SpecError with all the problems.
    """
    types = hints(cls)
    fields = {field.name.rstrip("_"): field.name for field in dataclasses.fields(cls)}
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key not in fields:
            hint = nearest(key, fields)
            problems.append(Problem(path=path, expected=one_of(fields), got=f"`{key}`", hint=hint))
            continue
        try:
            values[fields[key]] = _taken(value, types[fields[key]], (*path, key))
        except SpecError as error:
            problems += error.problems
    for name, field in ((field.name, field) for field in dataclasses.fields(cls)):
        if name not in values and required(field):
            problems.append(Problem(path=path, expected=f"the key `{name.rstrip('_')}`", got="none"))
    if problems:
        raise SpecError(problems)
    try:
        return cls(**values)
    except SpecError as error:
        raise SpecError([problem.under(*path) for problem in error.problems]) from None


def _taken(value: Any, annotation: Any, path: Path) -> Any:
    if annotation is Any:
        return value
    allowed = list(choices(annotation))
    if isinstance(value, AnyMapping):
        forms = [
            one for one in allowed if typing.get_origin(one) in MAPPINGS or dataclasses.is_dataclass(one)
        ]
        allowed = [closest(forms, list(map(str, value)))] if forms else allowed
    for choice in allowed:
        taken = _taken_as(value, choice, path)
        if taken is INVALID:
            continue
        if (problem := wrong_path(taken, annotation)) is not None:
            raise SpecError(problem.under(*path))
        return taken
    raise SpecError(Problem(path=path, expected=expected_of(annotation), got=describe(value)))


def _taken_as(value: Any, choice: Any, path: Path) -> Any:
    """The value in the form of one choice, INVALID where it has another form."""
    origin = typing.get_origin(choice)
    if origin is tuple and isinstance(value, (list, tuple)):
        item = typing.get_args(choice)[0]
        return tuple(_taken(one, item, (*path, place)) for place, one in enumerate(value))
    if origin in MAPPINGS and isinstance(value, AnyMapping):
        item = typing.get_args(choice)[1]
        return {str(key): _taken(one, item, (*path, str(key))) for key, one in value.items()}
    if dataclasses.is_dataclass(choice) and isinstance(choice, type):
        return _taken_as_dataclass(value, choice, path)
    if isinstance(value, str) and value in literals(choice):
        return value
    if _is(value, choice):
        return choice(value) if choice in (int, float) else value  # NumPy's numbers as Python's
    return INVALID


def _taken_as_dataclass(value: Any, choice: type, path: Path) -> Any:
    if isinstance(value, choice):
        return value
    if isinstance(value, AnyMapping):
        return from_python(choice, value, path)
    short = short_form(choice)
    if short is not None and any(_is(value, one) for one in choices(hints(choice)[short])):
        return from_python(choice, {short: value}, path)
    return INVALID


def _is(value: Any, choice: Any) -> bool:
    """Whether a Python value is of a scalar type; a bool is no number."""
    if choice is bool or isinstance(value, bool):
        return choice is bool and isinstance(value, bool)
    if choice in (int, float):
        number = isinstance(value, Real if choice is float else Integral)
        return number and abs(value) < _LARGEST
    if choice is str:
        return isinstance(value, (str, os.PathLike))
    return choice is type(None) and value is None
