"""Text and bytes of TensorFlow Metadata to a message and back; fields that are unknown here are told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from google.protobuf import message, text_format
from google.protobuf.unknown_fields import UnknownFieldSet

from recordspec.errors import Path, Problem, SpecError, escape_unseen
from recordspec.interop.notes import Note
from recordspec.interop.tfmd.declared import PACKAGE, classes, field_names

# A string, a comment, or the name of a field: what stands before a colon or a brace.
_TOKEN = re.compile(
    r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\#[^\n]*)|(\[?[A-Za-z_][\w./]*\]?)\s*(?=[:{<])"""
)

# The line that an error is about, before what is wrong there.
_PREAMBLE = re.compile(r"^'.*?': ", re.DOTALL)


def text(given: str, source: str) -> tuple[Any, list[Note]]:
    """A Schema, and notes on the fields in its text that no release known here has. Raises SpecError."""
    schema = classes()["Schema"]()
    try:
        text_format.Parse(given, schema, allow_unknown_field=True, allow_unknown_extension=True)
    except (text_format.ParseError, RecursionError) as error:
        place, _, got = str(error).partition(" : ")
        where, got = (f"{source}:{place}", got) if got else (source, place)
        got = _PREAMBLE.sub("", got).replace(f"{PACKAGE}.", "")
        expected = "a schema of TensorFlow Metadata, as text"
        raise SpecError(Problem(where=where, expected=expected, got=_short(got))) from None
    names = {match[2]: None for match in _TOKEN.finditer(given) if match[2]}
    unknown = [name for name in names if name not in field_names()]
    return schema, [
        Note(path=(name,), text="a field that is not known here: passed over") for name in unknown
    ]


def binary(given: bytes, source: str) -> tuple[Any, list[Note]]:
    """A Schema, and notes on the fields in its bytes that no release known here has. Raises SpecError."""
    try:
        schema = classes()["Schema"].FromString(given)
    except message.DecodeError:
        got = f"{len(given):,} bytes that are none"
        expected = "a schema of TensorFlow Metadata, as bytes"
        raise SpecError(Problem(where=source, expected=expected, got=got)) from None
    return schema, list(_unknown(schema, ()))


def printed(schema: Any) -> str:
    """The text of a message."""
    return escape_unseen(text_format.MessageToString(schema, as_utf8=True), _escape)


def _escape(char: str) -> str:
    """Its bytes, as text_format reads them."""
    return "".join(f"\\{byte:03o}" for byte in char.encode())


def inline(value: Any) -> str:
    """A field's value on one line, short enough for a note."""
    shown = printed(value) if isinstance(value, message.Message) else repr(value)
    return _short(shown)


def _short(shown: str) -> str:
    shown = " ".join(shown.split())
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _unknown(part: Any, path: Path) -> Iterator[Note]:
    for field in UnknownFieldSet(part):  # type: ignore[attr-defined]
        name = f"field {field.field_number}"
        yield Note(path=(*path, name), text="a field that is not known here: passed over")
    for descriptor, value in part.ListFields():
        if descriptor.message_type is None:
            continue
        parts = value if hasattr(value, "append") else [value]
        for one in parts:
            yield from _unknown(one, (*path, descriptor.name))
