"""The fields of protobuf messages of unknown types.

The wire format does not distinguish text, bytes and messages: what is printable UTF-8 is shown as text, and
what parses as a message as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from recordspec.wire.file_types import printable
from recordspec.wire.proto import unknown_fields

FieldType = Literal["varint", "fixed64", "bytes", "text", "message", "group", "end of group", "fixed32"]

# The largest number of levels: each is parsed again, so the bytes of a record are read this often.
_DEEPEST = 16
# For all levels together. A field can have two bytes, and a hundred times that when it is shown.
MOST_FIELDS = 200

_GROUP = 3
_TYPES: dict[int, FieldType] = {0: "varint", 1: "fixed64", 2: "bytes", 5: "fixed32"}


@dataclass(frozen=True)
class WireField:
    """A field: its number, and its value: a number, text, bytes, or the fields of a message."""

    number: int
    type: FieldType
    value: int | bytes | str | Message | None


@dataclass(frozen=True)
class Message:
    """The fields of a message; `cut` says whether there are more."""

    fields: tuple[WireField, ...]
    cut: bool


def dump(data: bytes, most: int = MOST_FIELDS) -> Message | None:
    """The first `most` fields of a message, with those of the messages in it; None for other bytes."""
    fields = unknown_fields(data) if data else None
    return None if fields is None else _MessageDumper(most).message(fields, _DEEPEST)


class _MessageDumper:
    def __init__(self, most: int) -> None:
        self._left = most

    def message(self, fields: Iterable[Any], depth: int) -> Message:
        shown: list[WireField] = []
        for field in _flat(fields):
            if self._left == 0:
                return Message(tuple(shown), cut=True)
            self._left -= 1
            shown.append(self._typed(field, field.value, depth) if isinstance(field.value, bytes) else field)
        return Message(tuple(shown), cut=False)

    def _typed(self, field: WireField, value: bytes, depth: int) -> WireField:
        text = printable(value)
        if text is not None:
            return WireField(field.number, "text", text)
        inner = unknown_fields(value) if depth > 1 else None
        return field if inner is None else WireField(field.number, "message", self.message(inner, depth - 1))


def _flat(fields: Iterable[Any]) -> Iterator[WireField]:
    """The fields as they follow each other, with those of groups."""
    for field in fields:
        if field.wire_type == _GROUP:
            yield WireField(field.field_number, "group", None)
            yield from _flat(field.data)
            yield WireField(field.field_number, "end of group", None)
        else:
            yield WireField(field.field_number, _TYPES[field.wire_type], field.data)
