"""Many frames at a time: the same verdicts as one by one, and as TensorFlow's, in bounded memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frames_by_hand import frame, head, salvaged
from recordspec.wire.compression import foreign
from recordspec.wire.frames import Damage, chunks
from recordspec.wire.tfrecord import compressor

WRITTEN = ["none", "gzip", "zlib"]


def compressed(data: bytes, compression: str) -> bytes:
    stream = compressor(compression)
    return bytes(stream.compress(data)) + stream.flush()


@st.composite
def damaged(draw) -> bytes:
    """Frames of records, many of one length, and what happens to files."""
    data = bytearray(
        b"".join(
            frame(one)
            for one in draw(st.lists(st.binary(max_size=40), max_size=30))
            for _ in range(draw(st.sampled_from([1, 1, 40])))
        )
    )
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
                data[at : at + 12] = head(draw(st.sampled_from([0, 1, 2**31, 2**60, 2**64 - 1])))
    return bytes(data)


def found(path: Path, size: int) -> list:
    """What chunks hold, one by one."""
    each = []
    for one in chunks(path, None, size):
        if isinstance(one, Damage):
            prefix = f"{path}: record {one.number} at byte {one.offset:,}"
            assert one.problem.where == prefix
            each.append((one.number, one.offset, (one.problem.expected, one.problem.got)))
            continue
        assert len(one) > 0
        for index, (start, stop) in enumerate(zip(one.starts, one.stops, strict=True)):
            each.append((one.number + index, one.offset + start - 12, one.buffer[start:stop].tobytes()))
    return each


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("frames") / "x"


@given(damaged(), st.sampled_from(WRITTEN), st.sampled_from([1, 13, 100, 1 << 20]), st.integers(0, 3))
@settings(max_examples=400, deadline=None)
def test_chunks_hold_what_is_there_one_by_one(file, data, compression, size, flips):
    packed = bytearray(compressed(data, compression))
    if compression != "none" and flips == 3:
        packed[len(packed) // 2] ^= 1
    file.write_bytes(packed)
    if foreign(file) is None:
        assert found(file, size) == list(salvaged(file))


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_damage_or_records(file, data):
    file.write_bytes(data)
    if foreign(file) is None:
        assert found(file, 50) == list(salvaged(file))
    else:
        assert list(chunks(file)) == [Damage(0, 0, foreign(file))]
