"""Messages that nobody has a definition of, also those that are made to be a burden."""

from __future__ import annotations

import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from recordspec.wire.dump import Message, WireField, dump
from recordspec.wire.varints import varint_bytes
from selection import scaled


def tag(number: int, wire: int) -> bytes:
    return varint_bytes(number << 3 | wire)


def delimited(number: int, data: bytes) -> bytes:
    return tag(number, 2) + varint_bytes(len(data)) + data


def test_every_wire_type_is_told():
    data = b"".join(
        [
            tag(1, 0) + varint_bytes(300),
            tag(2, 1) + struct.pack("<d", 1.0),
            delimited(3, b"a text"),
            delimited(4, b"\xff\xfe"),
            delimited(5, tag(1, 0) + varint_bytes(7)),
            tag(6, 3) + tag(1, 0) + varint_bytes(8) + tag(6, 4),
            tag(7, 5) + struct.pack("<I", 9),
            tag((1 << 29) - 1, 0) + varint_bytes((1 << 64) - 1),
        ]
    )
    assert dump(data) == Message(
        (
            WireField(1, "varint", 300),
            WireField(2, "fixed64", 0x3FF0000000000000),
            WireField(3, "text", "a text"),
            WireField(4, "bytes", b"\xff\xfe"),
            WireField(5, "message", Message((WireField(1, "varint", 7),), cut=False)),
            WireField(6, "group", None),
            WireField(1, "varint", 8),
            WireField(6, "end of group", None),
            WireField(7, "fixed32", 9),
            WireField((1 << 29) - 1, "varint", (1 << 64) - 1),
        ),
        cut=False,
    )


def test_what_is_no_message_is_none():
    assert dump(b"") is None
    assert dump(b"\xff\xff") is None
    assert dump(tag(1, 0) + b"\x80" * 10 + b"\x01") is None  # a varint of 11 bytes
    assert dump(tag(1, 3) * 10_000) is None
    assert dump(tag(1, 3) * 10_000 + tag(1, 4) * 10_000) is None
    assert dump(tag(1, 2) + varint_bytes(1 << 60)) is None


def test_messages_in_messages_end_at_a_depth():
    data = tag(1, 0) + varint_bytes(1)
    for _ in range(10_000):
        data = delimited(1, data)
    depth, message = 0, dump(data)
    while isinstance(message, Message):
        depth, (field,) = depth + 1, message.fields
        message = field.value
    assert depth == 16
    assert isinstance(message, bytes)


def test_no_more_fields_are_told_than_asked_for():
    data = delimited(1, (tag(1, 0) + b"\x01") * 5) * 100_000
    found = dump(data, most=8)
    assert found.cut
    first, second = found.fields
    assert (len(first.value.fields), first.value.cut) == (5, False)
    assert (len(second.value.fields), second.value.cut) == (1, True)


MESSAGES = st.recursive(
    st.lists(st.tuples(st.integers(1, (1 << 29) - 1), st.integers(0, (1 << 64) - 1)), min_size=1, max_size=3),
    lambda inner: st.lists(st.tuples(st.integers(1, 99), inner), min_size=1, max_size=3),
    max_leaves=8,
)


def encoded(fields) -> bytes:
    return b"".join(
        tag(number, 0) + varint_bytes(value) if isinstance(value, int) else delimited(number, encoded(value))
        for number, value in fields
    )


def numbers(message: Message) -> list:
    return [
        (one.number, numbers(one.value) if isinstance(one.value, Message) else one.value)
        for one in message.fields
    ]


def readable(fields) -> bool:
    """Whether a message in it reads as text."""
    from recordspec.wire.file_types import printable

    inner = [value for _, value in fields if not isinstance(value, int)]
    return any(printable(encoded(one)) is not None or readable(one) for one in inner)


@given(MESSAGES)
def test_a_message_is_told_as_it_was_made(fields):
    if not readable(fields):
        assert numbers(dump(encoded(fields))) == fields


@settings(max_examples=scaled(500))
@given(st.binary(max_size=200))
def test_no_bytes_are_too_much(data):
    found = dump(data, most=20)
    assert found is None or len(found.fields) <= 20
