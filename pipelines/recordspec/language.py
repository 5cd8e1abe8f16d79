"""The YAML language as a table and as a JSON Schema, from the dataclasses that read it."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from recordspec.config import Config, MixConfig
from recordspec.errors import SpecError, State, StoreError
from recordspec.locations import output_file, read_text
from recordspec.schema.feature_set import ALL_SECTIONS
from recordspec.schema.features import KINDS, Feature
from recordspec.schema.features.option_checks import STORAGE
from recordspec.schema.options import (
    MAPPINGS,
    choices,
    expected_of,
    hints,
    literals,
    required,
    short_form,
    switched_on,
    to_builtins,
)
from recordspec.schema.schema import DEFAULT_KIND, HEAD, Kinds, Schema

# The file name under which `init` and `infer` write the JSON Schema, and the line that leads editors to it.
FILE = "recordspec.schema.json"
_HEADER = "# yaml-language-server: $schema={}\n"
_TITLE = "recordspec: a feature spec or a config"

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_LARGEST = 16 << 20
_NULL = {"type": "null"}
# One entry of a docstring's `Attributes:`: names, and a text that may continue on the next lines.
_ATTRIBUTE = re.compile(r"^    (\w+(?:, \w+)*): (.+(?:\n {8}.*)*)", re.MULTILINE)

JsonSchema = dict[str, Any]


def json_schema(kinds: Kinds = KINDS) -> JsonSchema:
    """A JSON Schema (draft 2020-12) of feature specs and configs. Their keys distinguish the two.

    It rejects unknown keys, wrong types and unknown choices; `recordspec lint` finds more. `kinds` are the
    feature kinds of the specs.
    """
    definitions: JsonSchema = {}
    _define(Config, definitions)
    _define(MixConfig, definitions)
    for name, kind in kinds.items():
        options = _object(kind, definitions, leave_out=("name",))
        options["properties"] = {"kind": {"const": name}, **options["properties"]}
        definitions[f"kind_{name}"] = options
    definitions["feature"] = _feature(kinds)
    features = {"type": "object", "additionalProperties": {"$ref": "#/$defs/feature"}}
    documented = attributes(Schema)
    head = {
        key: {**_value(annotation, definitions), **_described(documented.get(_FIELDS.get(key, key), ""))}
        for key, annotation in HEAD.items()
    }
    sections = {
        section: {**features, "description": f"The features {documented[section]}"}
        for section in ALL_SECTIONS
    }
    definitions["spec"] = {
        "type": "object",
        "description": summary(Schema),
        "properties": {**head, **sections},
        "required": ["schema"],
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": _TITLE,
        "type": "object",
        "if": {"anyOf": [{"required": [section]} for section in ALL_SECTIONS]},
        "then": {"$ref": "#/$defs/spec"},
        "else": {
            "if": {"required": ["mix"]},
            "then": {"$ref": f"#/$defs/{MixConfig.__name__}"},
            "else": {"$ref": f"#/$defs/{Config.__name__}"},
        },
        "$defs": definitions,
    }


# Keys of a feature spec whose Python names differ.
_FIELDS = {"schema": "name"}


def _feature(kinds: Kinds) -> JsonSchema:
    """A feature: a dtype, a kind, or the options of its kind."""
    short = [*STORAGE, *(name for name, kind in kinds.items() if _needs_no_options(kind))]
    by_kind = [
        {
            "if": {
                "properties": {"kind": {"const": name}},
                "required": [] if name == DEFAULT_KIND else ["kind"],
            },
            "then": {"$ref": f"#/$defs/kind_{name}"},
        }
        for name in kinds
    ]
    return {
        "if": {"type": "string"},
        "then": {"enum": short, "description": "A dtype, or a kind with its usual options."},
        "else": {"type": "object", "properties": {"kind": {"enum": [*kinds]}}, "allOf": by_kind},
    }


def _needs_no_options(kind: type[Feature]) -> bool:
    try:
        return not _required(kind, ("name",)) and bool(kind(name="x"))
    except SpecError:
        return False


def _define(cls: type, definitions: JsonSchema) -> JsonSchema:
    """A reference to the definition of a dataclass."""
    if cls.__name__ not in definitions:
        definitions[cls.__name__] = {}  # set first, for a definition that contains itself
        definitions[cls.__name__] = _object(cls, definitions)
    return {"$ref": f"#/$defs/{cls.__name__}"}


def _object(cls: type, definitions: JsonSchema, leave_out: tuple[str, ...] = ()) -> JsonSchema:
    documented = attributes(cls)
    properties = {}
    for field in dataclasses.fields(cls):
        if field.name in leave_out:
            continue
        # a key without a value takes its default
        value = _value(hints(cls)[field.name], definitions, may_be_null=not required(field))
        default = {} if required(field) else _default(field)
        text = documented.get(field.name, "")
        properties[field.name.rstrip("_")] = {**value, **_described(text), **default}
    count = {"minProperties": 1, "maxProperties": 1} if getattr(cls, "EXACTLY_ONE", False) else {}
    return {
        "type": "object",
        "description": summary(cls),
        "properties": properties,
        "required": _required(cls, leave_out),
        "additionalProperties": False,
        **count,
    }


def _required(cls: type, leave_out: tuple[str, ...] = ()) -> list[str]:
    fields = [field for field in dataclasses.fields(cls) if field.name not in leave_out]
    return [field.name.rstrip("_") for field in fields if required(field)]


def _value(annotation: Any, definitions: JsonSchema, *, may_be_null: bool = False) -> JsonSchema:
    """The JSON Schema of an annotation."""
    forms: list[JsonSchema] = []
    for choice in choices(annotation):
        for form in _forms(choice, definitions):
            forms += form.get("anyOf", [form])
    if may_be_null and _NULL not in forms and annotation is not Any:
        forms.append(_NULL)
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def _forms(choice: Any, definitions: JsonSchema) -> Iterator[JsonSchema]:
    if choice is Any:
        yield {"not": {"type": "object"}}
    elif literals(choice):
        yield {"enum": [*literals(choice)]}
    elif typing.get_origin(choice) is tuple:
        yield {"type": "array", "items": _value(typing.get_args(choice)[0], definitions)}
    elif typing.get_origin(choice) in MAPPINGS:
        yield {"type": "object", "additionalProperties": _value(typing.get_args(choice)[1], definitions)}
    elif dataclasses.is_dataclass(choice):
        cls = typing.cast(type, choice)
        yield _define(cls, definitions)
        if (name := short_form(cls)) is not None:
            yield _value(hints(cls)[name], definitions)
        if switched_on(cls) is not None:
            yield {"type": "boolean"}
    else:
        yield {"type": _TYPES[choice]}


def _described(text: str) -> JsonSchema:
    return {"description": text[:1].upper() + text[1:]} if text else {}


def _default(field: dataclasses.Field[Any]) -> JsonSchema:
    """The default of an option, unless the default is that the option is absent."""
    factory = field.default_factory
    value = to_builtins(field.default if factory is dataclasses.MISSING else factory())
    return {} if value in (None, {}, [], "") else {"default": value}


@cache
def attributes(cls: type) -> Mapping[str, str]:
    """The descriptions of a dataclass's options, from the `Attributes:` of its docstring and its bases'
    docstrings.
    """
    meanings: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        _, _, text = inspect.cleandoc(vars(base).get("__doc__") or "").partition("Attributes:\n")
        for names, words in _ATTRIBUTE.findall(text):
            meanings |= dict.fromkeys(names.split(", "), " ".join(words.split()))
    return meanings


def summary(cls: type) -> str:
    """The first paragraph of a class's docstring."""
    return " ".join(inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0].split())


def options_table(kinds: Kinds = KINDS) -> Iterator[dict[str, Any]]:
    """Each option of the language: its place, type, default and description."""
    for name, kind in kinds.items():
        yield from _rows(kind, f"kind: {name}", ("name",))
    seen: set[type] = set()
    sections: list[tuple[str, type]] = [("config", Config), ("config of a mixture", MixConfig)]
    while sections:
        place, cls = sections.pop(0)
        if cls in seen:
            continue
        seen.add(cls)
        yield from _rows(cls, place)
        for field in dataclasses.fields(cls):
            below = field.name if cls in (Config, MixConfig) else f"{place}.{field.name}"
            sections += [(below.rstrip("_"), one) for one in _dataclasses(hints(cls)[field.name])]


def _dataclasses(annotation: Any) -> Iterator[type]:
    for choice in choices(annotation):
        if dataclasses.is_dataclass(choice):
            yield typing.cast(type, choice)
        elif typing.get_origin(choice) in (*MAPPINGS, tuple):
            for item in typing.get_args(choice):
                yield from _dataclasses(item)


def _rows(cls: type, place: str, leave_out: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    documented = attributes(cls)
    for field in dataclasses.fields(cls):
        if field.name not in leave_out:
            yield {
                "in": place,
                "option": field.name.rstrip("_"),
                "type": expected_of(hints(cls)[field.name]),
                "default": "required" if required(field) else _default(field).get("default"),
                "description": documented.get(field.name, ""),
            }


def header(schema_path: str = FILE) -> str:
    """The first line of a YAML file, which leads editors to its JSON Schema; the path is relative to the
    file.
    """
    return _HEADER.format(schema_path)


def write_json_schema(folder: Path) -> Path | None:
    """Writes the JSON Schema into a folder. Returns its path, or None if it exists already.

    Raises StoreError if a different file has its name, or if it cannot be written.
    """
    path, text = folder / FILE, json.dumps(json_schema(), indent=1) + "\n"
    if path.exists():
        old = read_text(path, _LARGEST)
        if old == text:
            return None
        if _TITLE not in old:
            raise StoreError(State(where=str(path), got="exists, and is not the JSON Schema of recordspec"))
    folder.mkdir(parents=True, exist_ok=True)
    with output_file(path, force=True) as begun:
        begun.write_text(text, encoding="utf-8")
    return path
