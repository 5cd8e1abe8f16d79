"""What Pillow passes over in a file, and TensorFlow's decoders do not: told by the bytes."""

from __future__ import annotations

from typing import Any

# The last chunk of a PNG: no data, its type, and the CRC of that (ISO/IEC 15948, 11.2.5).
_IEND = b"\0\0\0\0IEND\xaeB`\x82"
_EXTENSION, _IMAGE, _TRAILER = b"!,;"


def check_png(data: bytes, stop: int) -> None:
    """Raises ValueError for a PNG whose last chunk is not whole; `stop` is behind its type."""
    if not data.startswith(_IEND, stop - 8):
        raise ValueError("its IEND chunk is not whole")


def check_gif(data: bytes, image: Any) -> None:
    """Raises ValueError for a GIF (of one image, loaded) without an end, or with colours that it has not."""
    try:
        colours = _colours(data)
    except IndexError:
        raise ValueError("it has no end") from None
    highest = image.getextrema()[1]
    if highest >= colours:
        raise ValueError(f"it has {colours} colours, and a pixel of colour {highest}")


def _colours(data: bytes) -> int:
    """How many colours the first image has, after a walk to the end (GIF89a, 17 to 27).

    Raises IndexError if there is no end.
    """
    shared, colours = _in_table(data[10]), None
    at = 13 + 3 * shared
    while data[at] != _TRAILER:
        if data[at] == _IMAGE:
            own = _in_table(data[at + 9])
            colours = (own or shared) if colours is None else colours
            at = _behind(data, at + 11 + 3 * own)
        elif data[at] == _EXTENSION:
            at = _behind(data, at + 2)
        else:
            raise ValueError(f"it has a block of type {data[at]}")
    return colours or 0


def _in_table(flags: int) -> int:
    """How many colours follow; 0 without a table."""
    return 2 << (flags & 7) if flags & 0x80 else 0


def _behind(data: bytes, at: int) -> int:
    """Where a row of blocks ends, each of which begins with its size; the last has none."""
    while data[at]:
        at += 1 + data[at]
    return at + 1
