"""Varints: whole numbers in groups of 7 bits, least significant first, one group per byte. The top bit of
a byte is set if more follow.
"""

from __future__ import annotations


def varint_bytes(value: int) -> bytes:
    """Encodes a varint."""
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def read_varint(data: bytes | memoryview, place: int) -> tuple[int, int]:
    """Decodes the varint at an offset. Returns it and the offset after it."""
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
