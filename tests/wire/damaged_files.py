"""Damaged files of frames, and the records found in them."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

from hypothesis import strategies as st

from frames_by_hand import frame, head
from recordspec.wire.compression import CODECS
from recordspec.wire.tfrecord import Damage, RecordRange, salvage


def compressed(data: bytes, compression: str) -> bytes:
    stream = CODECS[compression].compressor()
    return bytes(stream.compress(data)) + stream.flush()


@st.composite
def damaged(draw, lies=(0, 1, 2**31, 2**60, 2**64 - 1)) -> bytes:
    """Frames of records, many of equal length, with the damage that files suffer."""
    records = draw(st.lists(st.binary(max_size=40), max_size=30))
    data = bytearray(b"".join(frame(one) * draw(st.sampled_from([1, 1, 40])) for one in records))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(["flip", "cut", "put", "lose", "lie"])):
            case "flip" if at < len(data):
                data[at] ^= draw(st.integers(1, 255))
            case "cut":
                del data[at:]
            case "put":
                data[at:at] = draw(st.binary(max_size=30))
            case "lose":
                del data[at : at + draw(st.integers(1, 60))]
            case "lie":
                data[at : at + 12] = head(draw(st.sampled_from(lies)))
    return bytes(data)


def found(path: Path, size: int, stretch: RecordRange | None = None) -> list:
    """The results of `salvage`, one record at a time."""
    each = []
    for one in salvage(path, stretch, size):
        if isinstance(one, Damage):
            prefix = f"{path}: record {one.number} at byte {one.offset:,}"
            assert one.problem.where == prefix
            each.append((one.number, one.offset, (one.problem.expected, one.problem.got)))
            continue
        assert len(one) > 0
        for index, (start, stop) in enumerate(zip(one.starts, one.stops, strict=True)):
            each.append((one.number + index, one.offset + start - 12, one.buffer[start:stop].tobytes()))
    return each


def peak(function) -> int:
    """The peak of the memory that a function allocates, in bytes."""
    tracemalloc.start()
    function()
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return size
