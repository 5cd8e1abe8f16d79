"""Options as dataclasses: read from YAML or from Python values, and written as builtin values.

A field's annotation is its rule: `str`, `int`, `float`, `bool`, `Literal`, `tuple[T, ...]`,
`dict[str, T]`, another such dataclass, a union of these, or `Any` for plain values. A trailing
underscore keeps a field's name apart from Python's keywords (`as_` is `as` in YAML).
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import os
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property, lru_cache
from numbers import Integral, Real
from typing import Annotated, Any, Literal, Union

import numpy as np

from recordspec.errors import RENAMED, Path, Problem, SpecError, describe, did_you_mean, nearest, one_of
from recordspec.locations import ANYWHERE, LOCAL, location_problem, url_problem
from recordspec.schema.yaml_text import (
    FLOAT,
    INT,
    SPECIAL_FLOATS,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    TextPosition,
    kind_of,
    locate,
    number_hint,
    parse,
)

_MOST_PROBLEMS = 1000
# TensorFlow counts in int64.
_INT64 = range(-(2**63), 2**63)
_TOO_LARGE = "int64 does not hold it"
_TYPE_NAMES = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}
MAPPINGS = (dict, Mapping)
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*(B|KiB|MiB|GiB)")
_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,15})?)\s*%")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class _Invalid:
    """Represents a value whose problem is in the log, or that does not have the requested type."""


INVALID: Any = _Invalid()


class Log:
    """Collects the problems of one file, or of one call, so that all are reported at once."""

    def __init__(self, problems: Iterable[Problem] = ()) -> None:
        self.problems = dict.fromkeys(problems)

    def add(self, position: TextPosition | str, path: Path, expected: str, got: str, hint: str = "") -> Any:
        return self.put(Problem(where=str(position), path=path, expected=expected, got=got, hint=hint))

    def adopt(self, error: SpecError, value: Value, path: Path) -> Any:
        """Adds the problems of an instance made from `value`, each at the position of its option."""
        for problem in error.problems:
            self.put(problem.under(*path).at(value.position(problem.path) or problem.where))
        return INVALID

    def put(self, problem: Problem) -> Any:
        self.problems[problem] = None
        if len(self.problems) >= _MOST_PROBLEMS:
            self.close()
        return INVALID

    def close(self) -> None:
        """Raises SpecError with all the problems, in the order of the file."""
        if self.problems:
            raise SpecError(sorted(self.problems, key=_position))


def _position(problem: Problem) -> tuple[str, tuple[int, ...]]:
    file, *numbers = problem.where.rsplit(":", 2)
    return file, tuple(int(number) for number in numbers if number.isdigit())


@dataclasses.dataclass(frozen=True)
class YamlValue:
    """A node of YAML from which an option is read: a mapping, a list, or a scalar."""

    node: Node

    @cached_property
    def entries(self) -> Mapping[str, Value] | None:
        """The values of a mapping, by key."""
        if not isinstance(self.node, MappingNode):
            return None
        return {key: YamlValue(node) for key, node in self.node.values.items()}

    @cached_property
    def elements(self) -> Sequence[Value] | None:
        """The values of a list."""
        if not isinstance(self.node, SequenceNode):
            return None
        return [YamlValue(node) for node in self.node.values]

    @property
    def is_null(self) -> bool:
        return isinstance(self.node, ScalarNode) and self.node.type == "null"

    def position(self, path: Path = (), *, key: str | None = None) -> str:
        """The position in the file of the value at `path` below this one, or of its `key`."""
        if key is not None and isinstance(self.node, MappingNode):
            return str(self.node.keys[key].position)
        return str(locate(self.node, path))

    def as_type(self, choice: Any) -> Any:
        """The value as `choice`, a scalar type, a Literal, or a class; INVALID if it is not one of it."""
        node = self.node
        if not isinstance(node, ScalarNode):
            return INVALID
        if literals(choice):
            return node.text if node.text in literals(choice) and node.type != "null" else INVALID
        if choice is int:
            value = self._int()
            return value if value is not INVALID and value in _INT64 else INVALID
        if choice is float:
            return self._float()
        if choice is bool:
            return node.text.lower() in ("true", "yes", "on") if node.type == "bool" else INVALID
        if choice is type(None):
            return None if node.type == "null" else INVALID
        return node.text if choice is str and node.type == "str" else INVALID

    def _int(self) -> Any:
        text, plain = self._text
        return int(text) if plain and INT.fullmatch(text) else INVALID

    def _float(self) -> Any:
        text, plain = self._text
        if plain and text.lower() in SPECIAL_FLOATS:
            return frozen_value(float(SPECIAL_FLOATS[text.lower()]))
        finite = plain and FLOAT.fullmatch(text) and math.isfinite(float(text))
        return float(text) if finite else INVALID

    @property
    def _text(self) -> tuple[str, bool]:
        """The text of a scalar, and whether it is unquoted."""
        return (self.node.text, self.node.plain) if isinstance(self.node, ScalarNode) else ("", False)

    def as_builtin(self) -> Any:
        """The value of a scalar of any type; INVALID if its type is unknown."""
        for value in (self._int(), self._float(), self.as_type(bool), self.as_type(type(None))):
            if value is not INVALID:
                return value
        text, plain = self._text
        as_number = isinstance(self.node, ScalarNode) and self.node.type in ("int", "float")
        return INVALID if plain and (as_number or number_hint(text)) else text

    def mismatch(self, annotation: Any, *, in_list: bool = False) -> tuple[str, str]:
        """A description of the value and a hint, for a message that it does not have the annotated type.

        A bool in a list of texts is a name, such as the class `no`. Elsewhere it may be meant as a switch.
        """
        node = self.node
        if not isinstance(node, ScalarNode):
            return kind_of(node), ""
        quote = f'quote it: "{node.text}"' if node.type not in ("str", "null") else ""
        if annotation is Any:
            return f"`{node.text}`", number_hint(node.text) or quote
        names = [text for choice in choices(annotation) for text in literals(choice)]
        hint = quote if names or str in choices(annotation) else ""
        if node.type == "bool" and not in_list and node.text not in names:
            hint = "in quotes, it is a text" if str in choices(annotation) else ""
            if "none" in names and not self.as_type(bool):
                hint = did_you_mean("none")
        elif names and not hint:
            hint = nearest(node.text, map(str, names))
        if node.plain and {int, float} & set(choices(annotation)):
            hint = number_hint(node.text) or hint
            if int in choices(annotation) and _too_large(self._int()):
                hint = _TOO_LARGE
        return f"`{node.text}`" if names and node.type == "str" else kind_of(node), hint


@dataclasses.dataclass(frozen=True)
class PythonValue:
    """A Python value from which an option is read, with the methods of `YamlValue`; it is in no file."""

    value: Any

    @cached_property
    def entries(self) -> Mapping[str, Value] | None:
        if not isinstance(self.value, Mapping):
            return None
        return {str(key): PythonValue(value) for key, value in self.value.items()}

    @cached_property
    def elements(self) -> Sequence[Value] | None:
        return [PythonValue(value) for value in self.value] if isinstance(self.value, (list, tuple)) else None

    @property
    def is_null(self) -> bool:
        return self.value is None

    def position(self, path: Path = (), *, key: str | None = None) -> str:
        return ""

    def as_type(self, choice: Any) -> Any:
        value = self.value
        if literals(choice):
            return value if isinstance(value, str) and value in literals(choice) else INVALID
        if isinstance(value, (bool, np.bool_)) or choice is bool:
            return bool(value) if isinstance(value, (bool, np.bool_)) and choice is bool else INVALID
        if choice is int:  # also NumPy's
            return int(value) if isinstance(value, Integral) and int(value) in _INT64 else INVALID
        if choice is float:
            with suppress(OverflowError):
                return frozen_value(float(value)) if isinstance(value, Real) else INVALID
            return INVALID
        if choice is str:
            return value if isinstance(value, (str, os.PathLike)) else INVALID
        # in Python 3.10 `tuple[str, ...]` is a type, too, and isinstance refuses it
        is_type = isinstance(choice, type) and not typing.get_args(choice)
        return value if is_type and isinstance(value, choice) else INVALID

    def as_builtin(self) -> Any:
        return self.value

    def mismatch(self, annotation: Any, *, in_list: bool = False) -> tuple[str, str]:
        too_large = int in choices(annotation) and _too_large(self.value)
        return describe(self.value), _TOO_LARGE if too_large else ""


Value = YamlValue | PythonValue


def _too_large(value: Any) -> bool:
    return isinstance(value, Integral) and int(value) not in _INT64


def document(text: str, source: str) -> tuple[MappingNode, Log]:
    """The mapping that a file holds, and a log for its problems."""
    node, problems = parse(text, source)
    if not isinstance(node, MappingNode):
        raise SpecError(Problem(where=str(node.position), expected="a mapping", got=kind_of(node)))
    return node, Log(problems)


def from_python(cls: type, options: Mapping[str, Any]) -> Any:
    """An instance of the dataclass `cls` from Python values, validated like those of a file.

    A mapping is read as a dataclass, a list as a tuple, and a scalar as a short form. Raises
    SpecError with all the problems.
    """
    log = Log()
    instance = read_fields(cls, PythonValue(options), (), log)
    log.close()
    return instance


def read_fields(cls: type, value: Value, path: Path, log: Log, **fixed: Any) -> Any:
    """An instance of the dataclass `cls` from a mapping, or INVALID.

    `fixed` are fields that do not come from the mapping's own keys. `RENAMED` of the class has the keys of
    former releases, with the key that replaces each.
    """
    annotations = hints(cls)
    fields = {field.name.rstrip("_"): field for field in dataclasses.fields(cls) if field.name not in fixed}
    entries = value.entries or {}
    values = dict(fixed)
    renamed: Mapping[str, str] = getattr(cls, "RENAMED", {})
    known = {renamed.get(key, key) for key in entries}
    valid = True
    for key, entry in entries.items():
        if (new := renamed.get(key)) is not None:
            log.add(value.position(key=key), (*path, key), f"`{new}`", f"`{key}`", RENAMED)
            valid = False
            continue
        if key not in fields:
            hint = _one_level_below(key, cls, entries) or nearest(key, fields)
            log.add(value.position(key=key), (*path, key), one_of(fields), f"`{key}`", hint)
            valid = False
            continue
        name = fields[key].name
        if entry.is_null and type(None) not in choices(annotations[name]) and not required(fields[key]):
            continue  # `read:` with nothing after it
        values[name] = read(entry, annotations[name], (*path, key), log)
    for key, field in fields.items():
        if field.name not in values and key not in known and required(field):
            valid = False
            # the misspelt key has a problem already
            if not any(name not in fields and nearest(name, [key]) for name in entries):
                log.add(value.position(), path, f"the key `{key}`", "none")
    invalid = [name for name, one in values.items() if one is INVALID]
    if invalid or not valid:
        return _check_rest(cls, values, invalid, value, path, log)
    try:
        return cls(**values)
    except SpecError as error:
        return log.adopt(error, value, path)


def _one_level_below(key: str, cls: type, entries: Mapping[str, Value]) -> str:
    """A hint for an unknown key that is an option of an entry beside it; empty for other keys."""
    annotations = hints(cls)
    for name in entries:
        for choice in choices(annotations.get(name)):
            if dataclasses.is_dataclass(choice) and key in hints(typing.cast(type, choice)):
                first = short_form(typing.cast(type, choice))
                return f"`{name}: {{{f'{first}: ..., ' if first else ''}{key}: ...}}`"
    return ""


def _check_rest(
    cls: type, values: dict[str, Any], invalid: list[str], value: Value, path: Path, log: Log
) -> Any:
    """INVALID; but problems of the other fields are reported as well."""
    valid = {name: one for name, one in values.items() if name not in invalid}
    if any(required(field) and field.name not in valid for field in dataclasses.fields(cls)):
        return INVALID
    try:
        cls(**valid)
    except SpecError as error:
        # a problem of the whole, or of an invalid field, may only follow from these
        reported = {name.rstrip("_") for name in invalid}
        rest = [problem for problem in error.problems if problem.path and problem.path[0] not in reported]
        log.adopt(SpecError(rest), value, path)
    return INVALID


def read(value: Value, annotation: Any, path: Path, log: Log) -> Any:
    """The value by its annotation, or INVALID."""
    if annotation is Any:
        return _read_untyped(value, path, log)
    fitting = [choice for choice in choices(annotation) if _fits(value, choice)]
    if not fitting:
        in_list = bool(path) and isinstance(path[-1], int)
        got, hint = value.mismatch(annotation, in_list=in_list)
        return log.add(value.position(), path, expected_of(annotation), got, hint)
    result = _read_as(value, closest(fitting, value.entries), path, log)
    wrong = wrong_path(result, annotation)
    if wrong is not None:  # it is kept: without it, its owner would find other problems
        log.add(value.position(), path, wrong.expected, wrong.got, wrong.hint)
    return result


def _fits(value: Value, choice: Any) -> bool:
    """Whether a value has the form of a choice; its contents are not checked."""
    if value.elements is not None:
        form = short_form(choice) if dataclasses.is_dataclass(choice) else None
        forms = (choice,) if form is None else choices(hints(typing.cast(type, choice))[form])
        return any(typing.get_origin(one) is tuple for one in forms)
    if value.entries is not None:
        return typing.get_origin(choice) in MAPPINGS or dataclasses.is_dataclass(choice)
    if value.as_type(choice) is not INVALID:
        return True
    if value.as_type(bool) is not INVALID and switched_on(choice) is not None:
        return True
    return dataclasses.is_dataclass(choice) and short_form(choice) is not None and not value.is_null


def _read_as(value: Value, choice: Any, path: Path, log: Log) -> Any:
    elements, entries = value.elements, value.entries
    if elements is not None and dataclasses.is_dataclass(choice):
        return _read_short_form(value, choice, path, log)
    if elements is not None:
        item = typing.get_args(choice)[0]
        items = tuple(read(one, item, (*path, index), log) for index, one in enumerate(elements))
        return INVALID if any(one is INVALID for one in items) else items
    if entries is None:
        scalar = value.as_type(choice)
        return scalar if scalar is not INVALID else _read_short_form(value, choice, path, log)
    if dataclasses.is_dataclass(choice):
        return read_fields(typing.cast(type, choice), value, path, log)
    item = typing.get_args(choice)[1]
    by_key = {key: read(one, item, (*path, key), log) for key, one in entries.items()}
    return INVALID if any(one is INVALID for one in by_key.values()) else by_key


def _read_short_form(value: Value, cls: Any, path: Path, log: Log) -> Any:
    is_on, options = value.as_type(bool), switched_on(cls)
    if options is not None and is_on is not INVALID:
        return cls(**options) if is_on else None
    name = str(short_form(cls))
    annotation = hints(cls)[name]
    if options is not None and not any(_fits(value, one) for one in choices(annotation)):
        got, hint = value.mismatch(annotation)
        return log.add(value.position(), path, f"true or {expected_of(annotation)}", got, hint)
    item = read(value, annotation, path, log)
    if item is INVALID:
        return INVALID
    try:
        return cls(**{name: item})
    except SpecError as error:
        return log.adopt(error, value, path)


def _read_untyped(value: Value, path: Path, log: Log) -> Any:
    """A scalar or nested lists of them; what type it should have, its owner checks."""
    if value.entries is not None:
        return log.add(value.position(), path, "a value or a list of values", value.mismatch(Any)[0])
    if value.elements is not None:
        return _read_as(value, tuple[Any, ...], path, log)
    plain = value.as_builtin()
    if plain is INVALID:
        got, hint = value.mismatch(Any)
        return log.add(value.position(), path, "a decimal number, or text in quotes", got, hint)
    return plain


# The types that a field's annotation allows, and their names in messages.


def closest(forms: list[Any], entries: Mapping[str, Value] | None) -> Any:
    """Chooses among forms: for a mapping the dataclass that has all its names, else the last; else the first.

    A mapping with arbitrary names matches no form if its values have another form.
    """
    if entries is None:
        return forms[0]
    for form in forms[:-1] if entries else ():
        if set(entries) <= {field.name for field in dataclasses.fields(form)}:
            return form
    item = typing.get_args(forms[-1])[-1] if typing.get_origin(forms[-1]) in MAPPINGS else Any
    others = dataclasses.is_dataclass(item) and not all(_fits(entry, item) for entry in entries.values())
    return forms[0] if others else forms[-1]


@lru_cache(1 << 8)  # evaluating the annotations of each of 2,000 features takes half of the time of a schema
def hints(cls: type) -> Mapping[str, Any]:
    """The annotations of a dataclass's fields, with their marks."""
    return types.MappingProxyType(typing.get_type_hints(cls, include_extras=True))


@dataclasses.dataclass(frozen=True)
class Imported:
    """Marks a choice: a dataclass of options, which is imported when a value, a message or a page has it.

    Attributes:
        module: the name of its module.
        name: its name there.
    """

    module: str
    name: str

    def load(self) -> Any:
        return getattr(importlib.import_module(self.module), self.name)


def choices(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, without their marks."""
    return tuple(map(_unmarked, _marked_choices(annotation)))


def _unmarked(choice: Any) -> Any:
    if typing.get_origin(choice) is not Annotated:
        return choice
    plain, mark = typing.get_args(choice)
    return mark.load() if isinstance(mark, Imported) else plain


def wrong_path(value: Any, annotation: Any) -> Problem | None:
    """The problem of a value that is annotated as a path, or as a path or URL."""
    marks = {mark for one in _marked_choices(annotation) for mark in getattr(one, "__metadata__", ())}
    if not isinstance(value, (str, os.PathLike)) or marks.isdisjoint({LOCAL, ANYWHERE}):
        return None
    return url_problem(value) if LOCAL in marks else location_problem(value)


def _marked_choices(annotation: Any) -> tuple[Any, ...]:
    union = typing.get_origin(annotation) in (Union, types.UnionType)
    return typing.get_args(annotation) if union else (annotation,)


def literals(choice: Any) -> tuple[Any, ...]:
    return typing.get_args(choice) if typing.get_origin(choice) is Literal else ()


def short_form(cls: Any) -> str | None:
    """The field to which a scalar is assigned, if the class declares one (`SHORT_FORM`)."""
    return getattr(cls, "SHORT_FORM", None)


def switched_on(cls: Any) -> Mapping[str, Any] | None:
    """The options for which `true` stands, if the class declares them (`TRUE`); `false` stands for null."""
    return getattr(cls, "TRUE", None)


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
        return [*(["true"] if switched_on(choice) is not None else []), f"a mapping of {fields}"]
    return [_TYPE_NAMES.get(choice, "a value")]


# Instances of options as values.


def required(field: dataclasses.Field[Any]) -> bool:
    """Whether the option must be given."""
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def to_builtins(value: Any) -> Any:
    """A dataclass as what YAML holds: the fields that differ from their defaults."""
    if dataclasses.is_dataclass(value):
        return {
            field.name.rstrip("_"): to_builtins(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if required(field) or getattr(value, field.name) != _default(field)
        }
    if isinstance(value, Mapping):
        return {key: to_builtins(item) for key, item in value.items()}
    return [to_builtins(item) for item in value] if isinstance(value, tuple) else value


def option_texts(instance: Any) -> dict[str, str]:
    """The options of a dataclass that differ from their defaults, each as text on one line; without its name
    and description."""
    options = to_builtins(instance)
    return {name: _one_line(options[name]) for name in options if name not in ("name", "description")}


def _one_line(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, default=str)


def _default(field: dataclasses.Field[Any]) -> Any:
    factory = field.default_factory
    return field.default if factory is dataclasses.MISSING else factory()


def options_of(instance: Any) -> dict[str, Any]:
    """The fields of a dataclass by their names in YAML; their values are not converted."""
    return {field.name.rstrip("_"): getattr(instance, field.name) for field in dataclasses.fields(instance)}


def freeze(instance: Any) -> None:
    """Freezes the values of the fields of a frozen dataclass, from its `__post_init__`."""
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        object.__setattr__(instance, field.name, frozen_value(value))


def frozen_value(value: Any) -> Any:
    """A value that equals itself and cannot change: lists as tuples, and one NaN for all."""
    if isinstance(value, (list, tuple)):
        return tuple(frozen_value(item) for item in value)
    return math.nan if isinstance(value, float) and value != value else value


# Sizes in bytes, as people write them.


def parse_bytes(size: str, *path: str) -> int:
    """`128MiB` as a number. Raises SpecError, with `path`, for what is no size."""
    match = _SIZE.fullmatch(size) if isinstance(size, str) else None
    count = 0 if match is None else int(float(match[1]) * _UNITS[match[2]])
    if not count:
        expected = "a size such as 128MiB (B, KiB, MiB, GiB)"
        raise SpecError(Problem(path=path, expected=expected, got=f"`{size}`"))
    return count


def parse_share(share: str, *path: str) -> Fraction:
    """`5%` as a fraction. Raises SpecError, with `path`, for what is no share."""
    match = _SHARE.fullmatch(share)
    fraction = None if match is None else Fraction(match[1]) / 100
    if fraction is None or fraction > 1:
        raise SpecError(Problem(path=path, expected="a share of 0% to 100%, such as 5%", got=f"`{share}`"))
    return fraction


def format_bytes(count: float) -> str:
    """`134217728` as `128 MiB`."""
    for unit in ("GiB", "MiB", "KiB"):
        if count >= _UNITS[unit]:
            return f"{count / _UNITS[unit]:.3g} {unit}"
    return f"{count:.0f} B"
