"""Many frames at a time: the same verdicts as one by one, and as TensorFlow's, in bounded memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from damaged_files import compressed, damaged, found, peak
from hypothesis import example, given, settings
from hypothesis import strategies as st

from frames_by_hand import frame, head, salvaged
from recordspec import RecordError
from recordspec._tf import tf
from recordspec.wire import framing, tfrecord
from recordspec.wire.compression import CODECS
from recordspec.wire.file_types import FileStart
from recordspec.wire.framing import framed, frames_in
from recordspec.wire.tfrecord import Damage, check_lengths, record_ends, record_ranges, salvage
from selection import scaled

pytestmark = pytest.mark.usefixtures("codec")

WRITTEN = ["none", "gzip", "zlib"]


# Of compressed files, records of more bytes than are believed are read twice.
@pytest.mark.slow
@pytest.mark.parametrize("believed", [tfrecord.BELIEVED, 10])
@given(damaged(), st.sampled_from(WRITTEN), st.sampled_from([1, 13, 100, 1 << 20]), st.integers(0, 3))
@settings(max_examples=scaled(400))
def test_chunks_hold_what_is_there_one_by_one(file, believed, data, compression, size, flips):
    packed = bytearray(compressed(data, compression))
    if compression != "none" and flips == 3:
        packed[len(packed) // 2] ^= 1
    file.write_bytes(packed)
    if FileStart(file).problem is None:
        # in the test, not in a fixture of the module: that would outlast it, and hide a wrong BELIEVED
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tfrecord, "BELIEVED", believed)
            assert found(file, size) == list(salvaged(file))


@given(st.binary(max_size=200))
@settings(max_examples=scaled(300))
def test_any_bytes_are_damage_or_records(file, data):
    file.write_bytes(data)
    if FileStart(file).problem is None:
        assert found(file, 50) == list(salvaged(file))
    else:
        assert list(salvage(file)) == [Damage(0, 0, FileStart(file).problem)]


# TensorFlow allocates what a length says before it looks for so many bytes.
@given(damaged(lies=(0, 1, 1000)), st.sampled_from(WRITTEN))
@settings(max_examples=scaled(150))
def test_tensorflow_finds_the_same_records_whole_up_to_the_first_damage(file, data, compression):
    file.write_bytes(compressed(data, compression))
    if FileStart(file).problem is not None:
        return
    theirs, fault = [], False
    try:
        for record in tf.data.TFRecordDataset(str(file), CODECS[compression].tensorflow):
            theirs.append(record.numpy())
    except tf.errors.DataLossError:
        fault = True
    ours = list(salvaged(file))
    wrong = next((index for index, one in enumerate(ours) if not isinstance(one[2], bytes)), None)
    assert [one[2] for one in ours[:wrong]] == theirs
    # a head that is cut, TensorFlow takes for the end of the file
    cut = wrong is not None and ours[wrong][2] == ("12 bytes of length and CRC", "the end of the file")
    assert fault == (wrong is not None and not cut)
    assert found(file, 100) == ours


@pytest.mark.slow
@given(damaged(), st.sampled_from([10, 100, 1000]))
@settings(max_examples=scaled(150))
def test_stretches_hold_all_records_once(file, data, size):
    file.write_bytes(data)
    whole = list(salvaged(file))
    if FileStart(file).problem is not None or any(not isinstance(one[2], bytes) for one in whole):
        return
    cut = list(record_ranges(file, size))
    assert all(stretch.stop - stretch.start >= size for stretch in cut[:-1])
    assert [one for stretch in cut for one in found(file, 30, stretch)] == whole


@given(damaged())
@example(b"\x1f\x8b")
@settings(max_examples=scaled(200))
def test_heads_alone_tell_how_many_records_there_are(file, data):
    file.write_bytes(data)
    # `record_ends` is for uncompressed files: two bytes that are left of a length may begin a gzip stream
    if FileStart(file).problem is not None or FileStart(file).likely_compression != "none":
        return
    each = list(salvaged(file))
    lost = [one for one in each if not isinstance(one[2], bytes) and one[2][0] != "data that matches its CRC"]
    if not lost:
        assert sum(len(places) for _, places in record_ends(file)) == len(each)
        return
    with pytest.raises(RecordError) as caught:
        list(record_ends(file))
    number, offset, (expected, got) = lost[0]
    assert str(caught.value) == f"{file}: record {number} at byte {offset:,}: expected {expected}, got {got}"


def test_large_records_and_small_ones_are_counted(file):
    data = [bytes(size) for size in (3, 2_000_000, 5, 7, 100_000, 100_000, 20_000)] + [bytes(10)] * 200_000
    file.write_bytes(b"".join(map(frame, data)))
    assert tfrecord.count(file) == len(data)
    assert sum(len(one) for one in salvage(file)) == len(data)


@pytest.mark.parametrize("compression", WRITTEN)
@pytest.mark.parametrize("length", [2**31 - 1, 2**31, 2**60, 2**64 - 16, 2**64 - 1])
def test_a_length_that_lies_allocates_nothing(file, compression, length):
    file.write_bytes(compressed(frame(b"abc") + head(length) + bytes(1000), compression))
    ours: list = []
    assert peak(lambda: ours.extend(found(file, 4 << 20))) < 10 << 20
    assert ours == list(salvaged(file))
    assert len(ours) == 2


@pytest.mark.slow
def test_many_records_take_a_few_times_the_size_of_a_chunk(file):
    file.write_bytes(frame(bytes(784)) * 100_000)  # 80 MB

    def read() -> None:
        assert sum(len(one) for one in salvage(file)) == 100_000

    assert peak(read) < 16 << 20


@given(st.lists(st.sampled_from([0, 1, 5, 300]), max_size=60), st.integers(0, 40), st.integers(0, 3))
@settings(max_examples=scaled(300))
def test_frames_are_found_from_any_byte_on(sizes, repeated, before):
    sizes = [size for size in sizes for _ in range(repeated)]
    data = bytes(before) + b"".join(frame(bytes(size)) for size in sizes)
    places = np.cumsum([before, *(size + 16 for size in sizes)])
    assert frames_in(np.frombuffer(data, np.uint8), before).tolist() == places.tolist()


AT_MOST = "a record of at most 2,147,483,647 bytes, the most that TensorFlow reads"


def sparse(path: Path, length: int, before: bytes = b"") -> Path:
    """A file whose last record has so many zeros, which the disk does not hold."""
    with path.open("wb") as file:
        file.write(before + head(length))
        file.truncate(len(before) + 12 + length + 4)
    return path


def test_the_largest_record_is_what_protobuf_can_hold(tmp_path):
    assert framing.LARGEST_RECORD == 2**31 - 1
    assert tfrecord.count(sparse(tmp_path / "x", 2**31 - 1, frame(b"a"))) == 2
    for use in (tfrecord.count, check_lengths):
        with pytest.raises(RecordError) as caught:
            use(sparse(tmp_path / "x", 2**31, frame(b"a")))
        where = f"{tmp_path}/x: record 1 at byte 17"
        assert str(caught.value) == f"{where}: expected {AT_MOST}, got 2,147,483,648 bytes"


@pytest.mark.parametrize("wrong", [False, True], ids=["whole", "wrong data"])
@pytest.mark.parametrize("compression", WRITTEN)
def test_a_larger_record_is_damage_and_stepped_over_where_that_is_cheap(
    tmp_path, monkeypatch, compression, wrong
):
    monkeypatch.setattr(tfrecord, "LARGEST_RECORD", 5 << 20)
    large = bytearray(frame(bytes(6 << 20)))
    large[-1] ^= wrong
    (tmp_path / "x").write_bytes(compressed(frame(b"a") + large + frame(b"b"), compression))
    what = (AT_MOST, "6,291,456 bytes")
    behind = [(2, 17 + len(large), b"b")] if compression == "none" else []
    assert found(tmp_path / "x", tfrecord.CHUNK_BYTES) == [(0, 0, b"a"), (1, 17, what), *behind]
    stops = [one.stop for one in salvage(tmp_path / "x") if isinstance(one, Damage)]
    assert stops == [17 + len(large) if behind else None]


@pytest.mark.parametrize("length", [100, 2**31, 2**60, 2**64 - 1])
def test_a_length_beyond_the_file_is_found_in_its_head(tmp_path, length):
    (tmp_path / "x").write_bytes(frame(b"a") + head(length) + b"abc")
    with pytest.raises(RecordError) as caught:
        check_lengths(tmp_path / "x")
    expected = f"{length:,} bytes of data and its CRC"
    where = f"{tmp_path}/x: record 1 at byte 17"
    assert str(caught.value) == f"{where}: expected {expected}, got the end of the file"


@pytest.mark.parametrize("rest", [b"", frame(b"b")[:11], b"x" * 12 + head(2**60), frame(b"b")])
def test_what_tensorflow_finds_itself_is_left_to_it(tmp_path, rest):
    (tmp_path / "x").write_bytes(frame(b"a") + rest)
    check_lengths(tmp_path / "x")


@pytest.mark.parametrize("lost", [1, 3, 5])
def test_a_file_that_lacks_its_last_bytes_is_cut(tmp_path, lost):
    path = tmp_path / "x"
    path.write_bytes((framed(b"a") + framed(b"bcd"))[:-lost])
    for read in (tfrecord.count, lambda path: list(tfrecord.scan(path))):
        with pytest.raises(
            RecordError, match="expected 3 bytes of data and its CRC, got the end of the file"
        ):
            read(path)
