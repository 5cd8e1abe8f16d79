"""Encodes messages field by field, also in valid forms that no protobuf library writes."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from random import Random

from recordspec.wire.varints import varint_bytes

LISTS = {"bytes": 1, "float32": 2, "int64": 3}
KEYS = {"bytes": "b", "float32": "f", "int64": "i"}


def tag(number: int, wire: int = 2, width: int = 1) -> bytes:
    """A tag. `width` can make it longer than necessary."""
    data = varint_bytes(number << 3 | wire)
    padding = width - len(data)
    return data if padding <= 0 else data[:-1] + bytes([data[-1] | 0x80]) + b"\x80" * (padding - 1) + b"\0"


def sized(number: int, *parts: bytes, width: int = 1) -> bytes:
    """A length-delimited field."""
    payload = b"".join(parts)
    return tag(number, 2, width) + varint_bytes(len(payload)) + payload


def unknown(number: int, wire: int) -> bytes:
    """A field of any wire type."""
    payloads = {0: b"\x05", 1: bytes(8), 2: b"\x01x", 3: tag(number, 4), 5: bytes(4)}
    return tag(number, wire) + payloads[wire]


def packed(kind: str, *values: float, width: int = 1) -> bytes:
    """Values of a list in one field."""
    return sized(1, *(_value(kind, value) for value in values), width=width)


def single(kind: str, value: float | bytes) -> bytes:
    """A single value of a list, not packed."""
    if isinstance(value, bytes):
        return sized(1, value)
    return tag(1, 5 if kind == "float32" else 0) + _value(kind, value)


def _value(kind: str, value: float) -> bytes:
    return struct.pack("<f", value) if kind == "float32" else varint_bytes(int(value) % (1 << 64))


def listed(kind: str, *parts: bytes, width: int = 1) -> bytes:
    """A list in a Feature."""
    return sized(LISTS[kind], *parts, width=width)


def entry(key: str, *value: bytes) -> bytes:
    """An entry of a map."""
    return sized(1, sized(1, key.encode()), sized(2, *value))


def ints(*values: int) -> bytes:
    """A Feature of integers."""
    return listed("int64", packed("int64", *values))


def example(*entries: bytes) -> bytes:
    """An Example, or a SequenceExample without feature lists."""
    return sized(1, *entries)


def any_record(draw: Random, *, sequence: bool) -> bytes:
    """A random record. Most of its parts have the usual form."""
    parts = [sized(1, *_entries(draw, _feature), width=_width(draw)) for _ in range(_few(draw))]
    if sequence:
        parts += [sized(2, *_entries(draw, _steps), width=_width(draw)) for _ in range(_few(draw))]
    return _mixed(draw, parts)


def _entries(draw: Random, value) -> list[bytes]:
    found = []
    for _ in range(draw.choice([0, 1, 1, 2, 3])):
        kind = draw.choice(list(KEYS))
        key = sized(1, KEYS[kind].encode(), width=_width(draw))
        fields = [key, sized(2, value(draw, kind), width=_width(draw))]
        if _rarely(draw):
            fields = draw.choices([*fields, sized(2, value(draw, kind))], k=draw.randrange(4))
        found.append(sized(1, _mixed(draw, fields), width=_width(draw)))
    return [_mixed(draw, found)]


def _steps(draw: Random, kind: str) -> bytes:
    return _mixed(draw, [sized(1, _feature(draw, kind)) for _ in range(draw.randrange(4))])


def _feature(draw: Random, kind: str) -> bytes:
    lists = [_list(draw, kind) for _ in range(_few(draw))]
    if _rarely(draw):
        lists.append(_list(draw, draw.choice(list(KEYS))))
    return _mixed(draw, lists)


def _list(draw: Random, kind: str) -> bytes:
    values = [draw.choice([0, 1, 5, 300]) for _ in range(draw.randrange(3))]
    if kind == "bytes":
        parts = [single(kind, b"x" * value) for value in values]
    elif _rarely(draw):
        some = [single(kind, value) for value in values]
        parts = [*some, packed(kind, 7, 8)] if _rarely(draw) else some
    else:
        parts = [packed(kind, *values, width=_width(draw)) for _ in range(_few(draw))]
    return listed(kind, _mixed(draw, parts), width=_width(draw))


def _mixed(draw: Random, parts: Iterable[bytes]) -> bytes:
    """The parts, sometimes mixed with an unknown field."""
    parts = list(parts)
    if _rarely(draw):
        parts.insert(
            draw.randrange(len(parts) + 1), unknown(draw.choice([4, 9, 200]), draw.choice([0, 1, 2, 3, 5]))
        )
    return b"".join(parts)


def _few(draw: Random) -> int:
    return draw.choice([0, 2]) if _rarely(draw) else 1


def _width(draw: Random) -> int:
    return 2 if draw.randrange(60) == 0 else 1


def _rarely(draw: Random) -> bool:
    return draw.randrange(16) == 0
