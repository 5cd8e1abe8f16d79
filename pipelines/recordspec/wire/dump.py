"""The fields of protobuf messages of unknown types.

The wire format does not distinguish text, bytes and messages: what is printable UTF-8 is shown as text, and
what parses as a message as one. protobuf parses it first, and refuses varints of 11 bytes and groups in
groups without end; so the bytes that are walked here are valid.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from recordspec.wire import proto
from recordspec.wire.file_types import printable
from recordspec.wire.varints import read_varint

FieldType = Literal["varint", "fixed64", "bytes", "text", "message", "group", "end of group", "fixed32"]

# Each level is parsed once more: so many times the bytes of a record are read at most.
_DEEPEST = 16
# Of all levels together. A field can take two bytes, and a hundred times that when it is shown.
MOST_FIELDS = 200

_VARINT, _FIXED64, _LENGTH, _GROUP, _END, _FIXED32 = range(6)


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
    return _MessageDumper(most).message(data, _DEEPEST) if data and proto.parses(data) else None


class _MessageDumper:
    def __init__(self, most: int) -> None:
        self._left = most

    def message(self, data: bytes, depth: int) -> Message:
        found: list[WireField] = []
        for number, wire, value in _fields(data):
            if self._left == 0:
                return Message(tuple(found), cut=True)
            self._left -= 1
            found.append(self._field(number, wire, value, depth))
        return Message(tuple(found), cut=False)

    def _field(self, number: int, wire: int, value: int | bytes, depth: int) -> WireField:
        if isinstance(value, bytes):
            return self._delimited(number, value, depth)
        if wire in (_GROUP, _END):
            return WireField(number, "group" if wire == _GROUP else "end of group", None)
        names: dict[int, FieldType] = {_VARINT: "varint", _FIXED64: "fixed64", _FIXED32: "fixed32"}
        return WireField(number, names[wire], value)

    def _delimited(self, number: int, value: bytes, depth: int) -> WireField:
        text = printable(value)
        if text is not None:
            return WireField(number, "text", text)
        if depth > 1 and proto.parses(value):
            return WireField(number, "message", self.message(value, depth - 1))
        return WireField(number, "bytes", value)


def _fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """The number, the wire type and the value of each field of a valid message."""
    place = 0
    while place < len(data):
        tag, place = read_varint(data, place)
        number, wire = tag >> 3, tag & 7
        value: int | bytes = 0
        if wire == _VARINT:
            value, place = read_varint(data, place)
        elif wire == _LENGTH:
            size, place = read_varint(data, place)
            value, place = data[place : place + size], place + size
        elif wire in (_FIXED64, _FIXED32):
            form, size = ("<Q", 8) if wire == _FIXED64 else ("<I", 4)
            value, place = struct.unpack_from(form, data, place)[0], place + size
        yield number, wire, value
