"""Functions of the user: their arguments, and the features that they ask for."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from recordspec.errors import Problem, SpecError, nearest, one_of
from recordspec.schema.tensors import without_autograph


def check_arguments(option: str, function: Callable[..., Any], count: int, arguments: str) -> None:
    """Raises SpecError for a function that does not accept this number of arguments.

    Otherwise AutoGraph would say so, with a trace of its own code.
    """
    expected = f"a function of {arguments}"
    if not callable(function):
        raise SpecError(Problem(path=(option,), expected=expected, got=type(function).__name__))
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a builtin
        return
    try:
        signature.bind(*range(count))
    except TypeError:
        got = f"{getattr(function, '__name__', 'one')}{signature}"
        raise SpecError(Problem(path=(option,), expected=expected, got=got)) from None


def naming_features(option: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a user, whose KeyError for a feature becomes a SpecError that has the features."""

    def call(features: Any, *others: Any) -> Any:
        try:
            return function(features, *others)
        except KeyError as error:
            explain = _unknown_feature
            if "tensorflow" in sys.modules:
                # AutoGraph converts what is called here, and warns of what it cannot convert
                explain = without_autograph(_unknown_feature)
            if problem := explain(option, features, error):
                raise SpecError(problem) from error
            raise

    return call


def _unknown_feature(option: str, features: Any, error: KeyError) -> Problem | None:
    """The problem of a KeyError for an unknown feature; None for another key."""
    (name,) = error.args if len(error.args) == 1 else (None,)
    if not isinstance(features, Mapping) or not isinstance(name, str) or name in features:
        return None
    return Problem(path=(option,), expected=one_of(features), got=f"`{name}`", hint=nearest(name, features))
