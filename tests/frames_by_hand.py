"""A reference reader of frames, one by one and as plain as possible. Every faster reader must agree with
it."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import crc32c

Found = tuple[int, int, "bytes | tuple[str, str]"]  # number, byte, and the data or the error


def masked(data: bytes) -> int:
    crc = crc32c.crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def head(length: int) -> bytes:
    """A length and its CRC."""
    packed = struct.pack("<Q", length)
    return packed + struct.pack("<I", masked(packed))


def frame(data: bytes) -> bytes:
    return head(len(data)) + data + struct.pack("<I", masked(data))


def salvaged(path: Path) -> Iterator[Found]:
    """The records and errors of a file, up to the last one that can be found."""
    packed = path.read_bytes()
    start = packed[:12]
    if len(start) == 12 and start[8:] == struct.pack("<I", masked(start[:8])):
        kind = "none"
    elif start[:2] == b"\x1f\x8b" or (
        len(start) > 1 and start[0] == 0x78 and (start[0] * 256 + start[1]) % 31 == 0
    ):
        kind = "compressed"
    else:
        kind = "none"
    if kind == "compressed" and nothing_but_a_fault(packed[:512]):
        kind = "none"
    data, fault = (packed, "") if kind == "none" else inflated(packed)
    yield from walked(data, fault, known=kind == "none")


def walked(data: bytes, fault: str, *, known: bool) -> Iterator[Found]:
    file, number, offset = io.BytesIO(data), 0, 0
    end = ("whole compressed data", fault)
    while (start := file.read(12)) or fault:
        if len(start) < 12:
            yield number, offset, end if fault else ("12 bytes of length and CRC", "the end of the file")
            return
        if start[8:] != struct.pack("<I", masked(start[:8])):
            yield number, offset, ("a length that matches its CRC", "other bytes")
            return
        (length,) = struct.unpack("<Q", start[:8])
        rest = data[offset + 12 : offset + 16 + length]
        if len(rest) < length + 4:
            missing = (f"{length:,} bytes of data and its CRC", "the end of the file")
            if not known and length > 2**31 - 1:
                missing = (AT_MOST, f"{length:,} bytes")
                yield number, offset, missing
            else:
                yield number, offset, end if fault else missing
            return
        wrong = struct.unpack("<I", rest[-4:])[0] != masked(rest[:-4])
        yield number, offset, ("data that matches its CRC", "other bytes") if wrong else rest[:-4]
        number, offset = number + 1, offset + 16 + length
        file.seek(offset)


def nothing_but_a_fault(start: bytes) -> bool:
    """Whether bytes that look like the beginning of a compressed file are not one."""
    data, fault = inflated(start)
    return not data and fault not in ("", "the end of the file", BEHIND)


AT_MOST = "a record of at most 2,147,483,647 bytes, the most that TensorFlow reads"
BEHIND = "bytes after the end of the stream"


def inflated(packed: bytes) -> tuple[bytes, str]:
    """The inflated data of streams, read byte by byte, and the error, or nothing."""
    wbits = 15 if packed[0] == 0x78 else 31
    parts, stream = [], zlib.decompressobj(wbits)
    for place in range(len(packed)):
        if stream.eof:
            if packed[0] == 0x78:  # zlib: a single stream
                return b"".join(parts), BEHIND
            stream = zlib.decompressobj(wbits)
        try:
            parts.append(stream.decompress(packed[place : place + 1]))
        except zlib.error as error:
            return b"".join(parts), str(error)
    return b"".join(parts), "" if stream.eof else "the end of the file"
