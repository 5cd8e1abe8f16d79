"""What users name: Python's names and signatures, the options of the command line, the keys of YAML.

Each is a list in `snapshots/public/`: see conftest.py for the update. A change there is a change for users.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any, Literal, Union

import click
import pytest

import recordspec as rs
import recordspec.kinds
import recordspec.testing
from recordspec.cli import commands
from recordspec.config import Config
from recordspec.schema.options import choices, hints

NAMES = {
    "recordspec": (rs, [name for name in rs.__all__ if name != "Backup"]),
    "recordspec.Backup": (rs, ["Backup"]),  # a Keras callback: it loads TensorFlow
    "recordspec.kinds": (recordspec.kinds, recordspec.kinds.__all__),
    "recordspec.testing": (
        recordspec.testing,
        sorted(
            name
            for name, value in vars(recordspec.testing).items()
            if not name.startswith("_")
            and (name.isupper() or getattr(value, "__module__", "") == "recordspec.testing")
            and name != "KINDS"
        ),
    ),
}


@pytest.mark.parametrize("module", NAMES)
def test_python_has_the_names_and_signatures_that_it_had(module, snapshot):
    home, names = NAMES[module]
    lines = [line for name in names for line in described(name, getattr(home, name))]
    snapshot(f"public/{module}.txt", "\n".join(lines) + "\n")


def test_commands_have_the_options_that_they_had(snapshot):
    snapshot("public/commands.txt", "\n".join(options()) + "\n")


def test_yaml_has_the_keys_that_it_had(snapshot):
    lines = [
        *fields_of("a schema", rs.Schema, but=("name",)),
        *(line for kind, cls in rs.KINDS.items() for line in fields_of(f"kind: {kind}", cls, but=("name",))),
        *(line for name, cls in sections("a config", Config) for line in fields_of(name, cls)),
    ]
    snapshot("public/yaml.txt", "\n".join(lines) + "\n")


def described(name: str, value: Any) -> Iterator[str]:
    """A name with its signature; of a class, with its public attributes."""
    if value is rs.KINDS:
        yield f"KINDS = {', '.join(f'{kind}: {cls.__name__}' for kind, cls in value.items())}"
        return
    if not inspect.isclass(value):
        yield f"{name}{signature(value)}" if callable(value) else f"{name} = {shown(value)}"
        return
    bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
    yield f"class {name}({bases})" if bases else f"class {name}"
    if any("__init__" in vars(cls) for cls in ours(value)):
        yield f"    {name}{signature(value)}"
    fields = getattr(value, "__dataclass_fields__", {})  # they are in the signature
    for attribute in sorted(set(dir(value)) - set(fields)):
        if not attribute.startswith("_") and any(attribute in vars(cls) for cls in ours(value)):
            yield f"    {member(attribute, inspect.getattr_static(value, attribute))}"


def ours(cls: type) -> list[type]:
    """The classes of the project that a class is made of."""
    return [base for base in cls.__mro__ if base.__module__.partition(".")[0] == "recordspec"]


def member(name: str, value: Any) -> str:
    if isinstance(value, (property, functools.cached_property)):
        return f"{name}: property"
    if isinstance(value, (classmethod, staticmethod)):
        return f"{type(value).__name__} {name}{signature(value.__func__)}"
    return f"{name}{signature(value)}" if callable(value) else f"{name} = {shown(value)}"


def signature(function: Any) -> str:
    """As it is written in the source."""
    found = inspect.signature(function)
    parameters, kinds = [], set()
    for one in found.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not kinds & {one.KEYWORD_ONLY, one.VAR_POSITIONAL}:
            parameters.append("*")
        kinds.add(one.kind)
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        said = "" if one.annotation is one.empty else f": {annotation(one.annotation)}"
        default = "" if one.default is one.empty else f" = {shown(one.default)}"
        parameters.append(f"{stars}{one.name}{said}{default}")
    result = found.return_annotation
    gives = "" if result is found.empty else f" -> {annotation(result)}"
    return f"({', '.join(parameters)}){gives}"


def annotation(value: Any) -> str:
    return value if isinstance(value, str) else words(value)


def shown(value: Any) -> str:
    if value is rs.KINDS:
        return "KINDS"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {shown(one)}' for key, one in value.items())}}}"
    if isinstance(value, tuple) and value:
        return f"({', '.join(map(shown, value))})"
    # a default that a function makes has an address in its repr
    return getattr(value, "__name__", None) or ("..." if repr(value).startswith("<") else repr(value))


def options() -> Iterator[str]:
    context = click.Context(commands)
    for name in commands.list_commands(context):
        yield f"recordspec {name}"
        command = commands.get_command(context, name)
        for one in command.params:
            if getattr(one, "hidden", False):  # it names what replaces it
                continue
            many = " ..." if one.multiple or one.nargs != 1 else ""
            needed = ", required" if one.required else ""
            # click has changed what says that there is no default
            default = one.default if isinstance(one.default, (int, float, str)) else None
            said = "" if default in (None, False) else f", default {default}"
            yield f"    {' '.join(one.opts)}{many}: {type_of(one)}{needed}{said}"


def type_of(option: Any) -> str:
    if getattr(option, "is_flag", False):
        return "flag"
    if isinstance(option.type, click.Choice):
        return " | ".join(map(str, option.type.choices))
    if isinstance(option.type, (click.IntRange, click.FloatRange)):
        return f"{option.type.name} from {option.type.min} to {option.type.max}"
    return str(option.type.name)


def sections(name: str, cls: type) -> Iterator[tuple[str, type]]:
    """A dataclass, and those that its fields take."""
    yield name, cls
    for field, hint in hints(cls).items():
        for choice in chain.from_iterable(map(choices, typing.get_args(hint) or (hint,))):
            if dataclasses.is_dataclass(choice):
                yield from sections(f"{name}, {field}: {choice.__name__}", choice)


def fields_of(name: str, cls: Any, but: tuple[str, ...] = ()) -> Iterator[str]:
    """The options of a dataclass, with their types and defaults."""
    short = f" (short form: {cls.SHORT_FORM})" if hasattr(cls, "SHORT_FORM") else ""
    yield f"{name}{short}"
    annotations = hints(cls)
    for field in dataclasses.fields(cls):
        if field.name not in but:
            yield f"    {field.name.rstrip('_')}: {words(annotations[field.name])}{default_of(field)}"


def default_of(field: Any) -> str:
    made = field.default_factory
    value = field.default if made is dataclasses.MISSING else made()
    if value is dataclasses.MISSING:
        return ", required"
    return ", optional" if dataclasses.is_dataclass(value) else f" = {value!r}"


def words(hint: Any) -> str:
    """A type as it is written in the source, on any version of Python."""
    if typing.get_origin(hint) is Annotated:
        return words(*choices(hint))
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) in (Union, types.UnionType):
        return " | ".join(map(words, arguments))
    if typing.get_origin(hint) is Literal:
        return " | ".join(map(repr, arguments))
    if arguments:
        return f"{typing.get_origin(hint).__name__}[{', '.join(map(words, arguments))}]"
    if hint is type(None):
        return "None"
    return "..." if hint is Ellipsis else str(getattr(hint, "__name__", hint))
