"""YAML nodes to typed options: the fields of a dataclass are its options.

A field's annotation is its rule: `str`, `int`, `float`, `bool`, `Literal`, `tuple[T, ...]`,
`dict[str, T]`, another such dataclass, a union of these, or `Any` for plain values. A trailing
underscore keeps a field's name apart from Python's keywords (`as_` is `as` in YAML).
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping as AnyMapping
from typing import Any

from recordspec.errors import Path, Problem, SpecError, nearest, one_of
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
from recordspec.spec.located import Items, Mapping, Node, Place, Scalar, kind_of, locate, parse
from recordspec.spec.plain import FLOAT, INT, SPECIAL_FLOATS, as_float, number_hint, required, settled

_MOST_PROBLEMS = 1000


class _Invalid:
    """Stands for a value whose problem is in the log."""


INVALID: Any = _Invalid()


class Log:
    """Gathers the problems of one file, so that all are told at once."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = dict.fromkeys(problems)

    def add(self, place: Place, path: Path, expected: str, got: str, hint: str = "") -> Any:
        return self.put(Problem(where=str(place), path=path, expected=expected, got=got, hint=hint))

    def relocate(self, error: SpecError, node: Node, path: Path) -> Any:
        """Takes over the problems of a value made from `node`, each at its own option's place."""
        for problem in error.problems:
            self.put(problem.under(*path).at(str(locate(node, problem.path))))
        return INVALID

    def put(self, problem: Problem) -> Any:
        self.problems[problem] = None
        if len(self.problems) >= _MOST_PROBLEMS:
            self.close()
        return INVALID

    def close(self) -> None:
        """Raises SpecError with all the problems, in the order of the file."""
        if self.problems:
            raise SpecError(sorted(self.problems, key=_place))


def _place(problem: Problem) -> tuple[str, tuple[int, ...]]:
    file, *places = problem.where.rsplit(":", 2)
    return file, tuple(int(place) for place in places if place.isdigit())


def document(text: str, source: str) -> tuple[Mapping, Log]:
    """The mapping that a file holds, and a log for its problems."""
    node, problems = parse(text, source)
    if not isinstance(node, Mapping):
        raise SpecError(Problem(where=str(node.place), expected="a mapping", got=kind_of(node)))
    return node, Log(problems)


def read_fields(cls: type, node: Mapping, path: Path, log: Log, **given: Any) -> Any:
    """An instance of the dataclass `cls` from a mapping, or INVALID.

    `given` are fields that do not come from the mapping's own keys.
    """
    types = hints(cls)
    fields = {field.name.rstrip("_"): field for field in dataclasses.fields(cls) if field.name not in given}
    values = dict(given)
    valid = True
    for key, value in node.values.items():
        if key not in fields:
            log.add(node.keys[key].place, (*path, key), one_of(fields), f"`{key}`", nearest(key, fields))
            valid = False
            continue
        name = fields[key].name
        if _is_null(value) and type(None) not in choices(types[name]) and not required(fields[key]):
            continue  # `read:` with nothing behind it
        values[name] = read(value, types[name], (*path, key), log)
    for key, field in fields.items():
        if field.name not in values and required(field):
            log.add(node.place, path, f"the key `{key}`", "none", _hint_of_required(node, key, fields))
            valid = False
    broken = [name for name, value in values.items() if value is INVALID]
    if broken or not valid:
        return _check_rest(cls, values, broken, node, path, log)
    try:
        return cls(**values)
    except SpecError as error:
        return log.relocate(error, node, path)


def _check_rest(
    cls: type, values: dict[str, Any], broken: list[str], node: Mapping, path: Path, log: Log
) -> Any:
    """INVALID; but what is wrong with the other fields is told as well."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    if any(required(field) and name not in values for name, field in fields.items()):
        return INVALID
    if any(required(fields[name]) for name in broken):
        return INVALID
    try:
        cls(**{name: value for name, value in values.items() if name not in broken})
    except SpecError as error:
        # what is wrong with the whole, or with a field of the broken ones, may only follow from these
        told = {name.rstrip("_") for name in broken}
        rest = [one for one in error.problems if one.path and one.path[0] not in told]
        log.relocate(SpecError(rest), node, path)
    return INVALID


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.type == "null"


def _hint_of_required(node: Mapping, key: str, fields: AnyMapping[str, Any]) -> str:
    unknown = [name for name in node.values if name not in fields]
    close = [name for name in unknown if nearest(name, [key])]
    return f"is `{close[0]}` meant?" if close else ""


def read(node: Node, annotation: Any, path: Path, log: Log) -> Any:
    """The value of `node` by its annotation, or INVALID."""
    if annotation is Any:
        return _untyped(node, path, log)
    fitting = [choice for choice in choices(annotation) if _fits(node, choice)]
    if fitting:
        keys = node.values if isinstance(node, Mapping) else None
        value = _read_as(node, closest(fitting, keys), path, log)
        wrong = wrong_path(value, annotation)
        if wrong is not None:  # it is kept: without it, its owner would find other problems
            log.add(node.place, path, wrong.expected, wrong.got, wrong.hint)
        return value
    names = [text for choice in choices(annotation) for text in literals(choice)]
    hint = _quote_hint(node) if names or str in choices(annotation) else ""
    if isinstance(node, Scalar) and names and not hint:
        hint = nearest(node.text, map(str, names))
    if isinstance(node, Scalar) and node.plain and {int, float} & set(choices(annotation)):
        hint = number_hint(node.text) or hint
    got = kind_of(node)
    if names and isinstance(node, Scalar) and node.type == "str":
        got = f"`{node.text}`"
    return log.add(node.place, path, expected_of(annotation), got, hint)


def _fits(node: Node, choice: Any) -> bool:
    """Whether a node has the form of a choice; what is inside is not looked at."""
    if isinstance(node, Items):
        return typing.get_origin(choice) is tuple
    if isinstance(node, Mapping):
        return typing.get_origin(choice) in MAPPINGS or dataclasses.is_dataclass(choice)
    if literals(choice):
        return node.text in literals(choice) and node.type != "null"
    if dataclasses.is_dataclass(choice):
        return short_form(choice) is not None and node.type != "null"
    if choice is int:
        return node.plain and INT.fullmatch(node.text) is not None
    if choice is float:
        finite = FLOAT.fullmatch(node.text) is not None and math.isfinite(as_float(node.text))
        return node.plain and (finite or node.text.lower() in SPECIAL_FLOATS)
    if choice is bool:
        return node.type == "bool"
    if choice is type(None):
        return node.type == "null"
    return choice is str and node.type == "str"


def _read_as(node: Node, choice: Any, path: Path, log: Log) -> Any:
    if isinstance(node, Items):
        item = typing.get_args(choice)[0]
        values = [read(value, item, (*path, index), log) for index, value in enumerate(node.values)]
        return INVALID if any(value is INVALID for value in values) else tuple(values)
    if isinstance(node, Mapping):
        if dataclasses.is_dataclass(choice):
            return read_fields(typing.cast(type, choice), node, path, log)
        item = typing.get_args(choice)[1]
        entries = {key: read(value, item, (*path, key), log) for key, value in node.values.items()}
        return INVALID if any(value is INVALID for value in entries.values()) else entries
    if dataclasses.is_dataclass(choice):
        return _from_short_form(node, choice, path, log)
    return _scalar(node, choice)


def _untyped(node: Node, path: Path, log: Log) -> Any:
    """A scalar or nested lists of them; what type it should have, its owner checks."""
    if isinstance(node, Mapping):
        return log.add(node.place, path, "a value or a list of values", "a mapping")
    if isinstance(node, Items):
        return _read_as(node, tuple[Any, ...], path, log)
    form = next(
        (form for form in (int, float, bool, type(None)) if _fits(node, form)),
        str,
    )
    if form is str and node.plain and (node.type in ("int", "float") or number_hint(node.text)):
        hint = number_hint(node.text) or _quote_hint(node)
        return log.add(node.place, path, "a decimal number, or text in quotes", f"`{node.text}`", hint)
    return _scalar(node, form)


def _scalar(node: Scalar, choice: Any) -> Any:
    if choice is int:
        return int(node.text.replace("_", ""))
    if choice is float:
        special = SPECIAL_FLOATS.get(node.text.lower())
        return settled(float(special) if special else as_float(node.text))
    if choice is bool:
        return node.text.lower() in ("true", "yes", "on")
    return None if choice is type(None) else node.text


def _from_short_form(node: Scalar, cls: Any, path: Path, log: Log) -> Any:
    name = str(short_form(cls))
    value = read(node, hints(cls)[name], path, log)
    if value is INVALID:
        return INVALID
    try:
        return cls(**{name: value})
    except SpecError as error:
        return log.relocate(error, node, path)


def _quote_hint(node: Node) -> str:
    if isinstance(node, Scalar) and node.type not in ("str", "null"):
        return f'quote it: "{node.text}"'
    return ""
