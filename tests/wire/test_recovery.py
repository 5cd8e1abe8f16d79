"""Records behind a bad length: what is whole is found again, in bounded time."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from damaged_files import compressed, damaged, peak
from hypothesis import given, settings
from hypothesis import strategies as st

from frames_by_hand import frame, head
from recordspec.wire import framing, recovery, tfrecord
from recordspec.wire.file_types import FileStart
from recordspec.wire.framing import length_in
from recordspec.wire.recovery import LONGEST, headers_in, rescue
from recordspec.wire.streams import ReadBuffer
from recordspec.wire.tfrecord import Chunk, Damage, salvage
from selection import scaled

pytestmark = pytest.mark.usefixtures("codec")


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("search") / "x"


@pytest.fixture(params=[tfrecord.BELIEVED, 10], scope="module", autouse=True)
def believed(request) -> Iterator[None]:
    """Has larger records be read twice: where the file is compressed, and where they are looked for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tfrecord, "BELIEVED", request.param)
        patch.setattr(recovery, "BELIEVED", request.param)
        yield


def rescued(path: Path, size: int = 1 << 20) -> list[Chunk | Damage]:
    with path.open("rb") as file:
        return list(rescue(path, file, FileStart(path, file), size))


def data_of(found: list[Chunk | Damage]) -> list[bytes]:
    return [
        one.buffer[start:stop].tobytes()
        for one in found
        if isinstance(one, Chunk)
        for start, stop in zip(one.starts, one.stops, strict=True)
    ]


def numbered(size: int, count: int) -> list[bytes]:
    """Records that differ, without frames in them."""
    return [struct.pack("<I", index) * (size // 4) for index in range(count)]


@given(
    st.binary(max_size=300) | st.integers(0, 300).map(bytes),
    st.lists(st.sampled_from([0, 1]) | st.integers(0, 2 * LONGEST), max_size=5),
)
@settings(max_examples=scaled(200))
def test_heads_are_found_wherever_they_stand(data, lengths):
    data = data.join(head(length) for length in lengths) + data
    places = [
        at
        for at in range(len(data) - 11)
        if (length := length_in(data[at : at + 12])) is not None and length <= LONGEST
    ]
    assert headers_in(np.frombuffer(data, np.uint8), LONGEST).tolist() == places


@pytest.mark.parametrize("zeros", [1, 500, (1 << 18) - 12, (1 << 18) - 5, 1 << 18, (1 << 18) + 3, 1 << 20])
def test_a_record_behind_zeros_is_found(tmp_path, zeros):
    assert headers_in(np.zeros(zeros + 12, np.uint8), LONGEST).tolist() == []
    before, after = b"before", bytes(20) + b"after"
    (tmp_path / "x").write_bytes(frame(before) + bytes(zeros) + frame(after))
    assert data_of(rescued(tmp_path / "x", 1 << 16)) == [before, after]


@pytest.mark.slow
@given(damaged(), st.sampled_from(["none", "gzip"]), st.sampled_from([1, 100, 1 << 20]))
@settings(max_examples=scaled(300))
def test_before_a_bad_length_it_is_what_chunks_gives(file, data, compression, size):
    file.write_bytes(compressed(data, compression))
    plain, found = list(salvage(file, None, size)), rescued(file, size)
    ends = next(
        (at for at, one in enumerate(found) if isinstance(one, Damage) and one.stop is None), len(found)
    )
    upto = plain[: ends + 1]
    assert data_of(upto) == data_of(found[: ends + 1])
    assert [one for one in upto if isinstance(one, Damage)][:-1] == [one for one in found[: ends + 1] if isinstance(one, Damage)][:-1]  # fmt: skip


@pytest.mark.slow
@given(
    st.integers(2, 12),
    st.sampled_from([0, 4, 40]),
    st.sampled_from(["flip", "put", "lose"]),
    st.data(),
    st.sampled_from(["none", "zlib"]),
    st.sampled_from([1, 50, 1 << 20]),
)
@settings(max_examples=scaled(500))
def test_one_damage_anywhere_loses_the_records_that_it_touches(
    file, count, size, kind, draw, compression, chunk
):
    records = numbered(size, count)
    data = bytearray(b"".join(map(frame, records)))
    step = size + 16
    at = draw.draw(st.integers(0, len(data) - 1))
    stop = at
    match kind:
        case "flip":
            data[at] ^= draw.draw(st.integers(1, 255))
        case "put":
            data[at:at] = draw.draw(st.binary(min_size=1, max_size=9))
        case "lose":
            stop = min(len(data), at + draw.draw(st.integers(1, 50))) - 1
            del data[at : stop + 1]
    touched = range(at // step, stop // step + 1) if kind != "put" or at % step else ()
    file.write_bytes(compressed(bytes(data), compression))
    found = rescued(file, chunk)
    kept = [record for index, record in enumerate(records) if index not in touched]
    if size:
        assert [one for one in data_of(found) if one in kept] == kept
        assert set(data_of(found)) <= set(records)  # what is lost may leave a whole record of two halves
    else:
        assert len(data_of(found)) >= len(kept)
    for before, after in pairwise(found):
        assert isinstance(after, Chunk) or not isinstance(before, Damage) or before.stop is not None


@pytest.fixture
def counted(monkeypatch) -> dict[str, int]:
    """Bytes that are looked at for headers, of data whose CRC is computed, and that buffers are filled with."""
    seen = {"headers": 0, "data": 0, "moved": 0}
    find, whole = recovery.headers_in, framing.is_whole

    def headers(piece, longest):
        seen["headers"] += len(piece)
        return find(piece, longest)

    def data(frame):
        seen["data"] += len(frame) - 16
        return whole(frame)

    def moved(window, start, stop):
        before = window.buffer
        load(window, start, stop)
        seen["moved"] += 0 if window.buffer is before else len(window.buffer)

    load = ReadBuffer.load
    monkeypatch.setattr(ReadBuffer, "load", moved)
    monkeypatch.setattr(recovery, "headers_in", headers)
    monkeypatch.setattr(recovery, "is_whole", data)
    monkeypatch.setattr(recovery, "_IN_VAIN_AT_LEAST", 0)
    return seen


@pytest.mark.parametrize("compression", ["none", "zlib"])
def test_heads_that_lie_do_not_make_the_search_quadratic(file, counted, compression):
    """Each of 20,000 heads says that it goes on to the end: all their data together are 2.4 GB."""
    count = 20_000
    lies = b"".join(head(12 * (count - index) + 2000) for index in range(count))
    data = b"x" + lies + bytes(2016) + frame(b"whole")
    file.write_bytes(compressed(data, compression))
    assert data_of(rescued(file)) == [b"whole"]
    assert counted["headers"] < 1.1 * len(data)
    assert counted["data"] < 5 * len(data)


@pytest.mark.slow
def test_many_losses_do_not_make_the_search_quadratic(file, counted):
    data = (frame(b"a" * 200) + b"x") * 5_000
    file.write_bytes(data)
    assert data_of(rescued(file)) == [b"a" * 200] * 5_000
    assert counted["headers"] < 1.1 * len(data)
    assert counted["data"] < len(data)
    assert counted["moved"] < 3 * len(data)


def test_of_data_that_are_wrong_64_mib_are_looked_at_in_vain_and_no_more(file):
    """Each of 40 heads says that 10 MiB follow, which is true, and whose CRC is wrong."""
    length = 10 << 20
    file.write_bytes(b"x" + head(length) * 40 + bytes(length + 4))
    with file.open("rb", buffering=0) as opened:
        of_file = tfrecord.FrameReader(file, opened, "none", None, 1 << 20)
        one = recovery.RecordSearch(of_file.buffer, of_file.limit)
        of_file.buffer.load(0, 1)
        assert one.after(1) is None
    assert one._in_vain == 6 * length


@pytest.mark.slow
def test_a_large_record_that_is_wrong_is_not_held(file):
    """100 MiB of zeros, compressed to 100 KB, behind a head that the search finds."""
    stream = zlib.compressobj(1)
    parts = [stream.compress(b"bad length.." + head(100 << 20))]
    parts += [stream.compress(bytes(1 << 20)) for _ in range(101)]
    file.write_bytes(b"".join(parts) + stream.flush())
    found: list = []
    assert peak(lambda: found.extend(rescued(file))) < 20 << 20
    assert data_of(found) == []


def test_a_file_that_begins_with_zeros_has_records_behind(file):
    file.write_bytes(bytes(4096) + frame(b"a") * 3)
    damage, chunk = rescued(file)
    assert str(damage.problem) == f"{file}: expected a TFRecord file, got bytes that begin with zeros"
    assert (damage.stop, chunk.number, len(chunk)) == (None, 1, 3)


def test_records_that_are_too_large_are_not_looked_for(file, monkeypatch):
    monkeypatch.setattr(recovery, "LONGEST", (1 << 24) - 1)
    file.write_bytes(b"bad length.." + frame(bytes(1 << 24)) + frame(b"a"))
    assert data_of(rescued(file)) == [b"a"]


@pytest.mark.parametrize(
    ("first", "at", "changed", "found_again"),
    [
        (0x8B1F, 9, b"?", 50),  # a length that begins as gzip does
        (0x088B1F, 9, b"?", 50),
        (100, 0, b"\x1f\x8b", 50),
        (100, 0, b"\x1f\x8b\x08", 50),
        (0x0178, 9, b"?", 3),  # as zlib does
        (0x9C78, 9, b"?", 3),
        (100, 0, b"\x78\x9c\x03\0", 3),
    ],
)
def test_a_plain_file_that_begins_as_a_compressed_one_is_plain(file, first, at, changed, found_again):
    data = bytearray(frame(b"." * first))
    data[at : at + len(changed)] = changed
    file.write_bytes(data + frame(b"whole") * found_again)
    assert data_of(rescued(file)) == [b"whole"] * found_again
