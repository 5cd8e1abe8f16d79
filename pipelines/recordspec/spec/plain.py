"""Dataclasses of options as plain values, and these as canonical YAML."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any

import yaml

from recordspec.errors import escape_unseen

# Numbers are decimal, without leading zeros: YAML 1.1 reads 012 as 10, YAML 1.2 as 12. Underscores may stand
# between digits. No number of a spec has more digits; Python refuses to convert thousands.
_DIGITS = "(?:0|[1-9](?:_?[0-9]){0,99})"
INT = re.compile(f"[-+]?{_DIGITS}")
FLOAT = re.compile(rf"[-+]?({_DIGITS}(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
# What one YAML reader takes for another number than the next, or for text: octal, hexadecimal, binary.
_LEADING_ZERO = re.compile(r"([-+]?)0[0-9_]+((\.[0-9_]*)?([eE][-+]?[0-9]+)?)")
_OTHER_BASE = re.compile(r"[-+]?(0o[0-7]{1,40}|0x[0-9a-fA-F]{1,40}|0b[01]{1,100})")
SPECIAL_FLOATS = {".nan": "nan", ".inf": "inf", "+.inf": "inf", "-.inf": "-inf", "nan": "nan"}


def number_hint(text: str) -> str:
    """What to write in place of a number that is not read as one; nothing for what no YAML reader takes for a
    number, and for what is read."""
    if INT.fullmatch(text):
        return ""
    if FLOAT.fullmatch(text):
        return "float64 does not hold it" if math.isinf(as_float(text)) else ""
    if _LEADING_ZERO.fullmatch(text):
        sign, digits = re.fullmatch("([-+]?)0[0_]*(.*)", text).groups()  # type: ignore[union-attr]
        decimal = digits if digits[:1].isdigit() else f"0{digits}"
        return f"a leading zero can mean octal: write {sign}{decimal}"
    if _OTHER_BASE.fullmatch(text):
        return f"numbers are decimal: write {int(text, 0)}"
    return ""


def as_float(text: str) -> float:
    """The number of a text that `FLOAT` takes; infinite where float64 does not hold it."""
    return float(text.replace("_", ""))


def required(field: dataclasses.Field[Any]) -> bool:
    """Whether the option must be given."""
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def plain(value: Any) -> Any:
    """A dataclass as what YAML holds: the fields that differ from their defaults."""
    if dataclasses.is_dataclass(value):
        return {
            field.name.rstrip("_"): plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if required(field) or getattr(value, field.name) != _default(field)
        }
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def settled(value: Any) -> Any:
    """A value that equals itself and cannot change: lists as tuples, and one NaN for all."""
    if isinstance(value, (list, tuple)):
        return tuple(settled(item) for item in value)
    return math.nan if isinstance(value, float) and value != value else value


def settle(instance: Any) -> None:
    """Settles the fields of a frozen dataclass, from its `__post_init__`."""
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        object.__setattr__(instance, field.name, settled(value))


def shallow(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, as they are."""
    return {field.name.rstrip("_"): getattr(value, field.name) for field in dataclasses.fields(value)}


def _default(field: dataclasses.Field[Any]) -> Any:
    factory = field.default_factory
    return field.default if factory is dataclasses.MISSING else factory()


class _Dumper(yaml.SafeDumper):
    """Writes every value out: an alias would only make the file harder to read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Quoted where our reader would take the text for a number, which PyYAML's resolver need not; and where
    `dump` has to escape a character, such as a break of lines that would read as a space."""
    forms = (INT, FLOAT, _LEADING_ZERO, _OTHER_BASE)
    number = any(form.fullmatch(text) for form in forms) or text.lower() in SPECIAL_FLOATS
    quoted = number or not text.replace("\n", "").isprintable()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if quoted else None)


_Dumper.add_representer(str, _represent_text)


def dump(value: Any) -> str:
    """Canonical YAML of plain values: keys in their order, short collections on one line.

    Characters that are not seen, such as U+202E, which turns the direction of writing, are escaped.
    """
    text = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=100,
    )
    return escape_unseen(text, _escape)


def _escape(char: str) -> str:
    """An escape of YAML."""
    return f"\\u{ord(char):04x}" if ord(char) < 1 << 16 else f"\\U{ord(char):08x}"
