"""The file format: what TensorFlow writes we read, what we write TensorFlow reads, and damage is named."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frames_by_hand import head
from recordspec import Problem, RecordError, StoreError
from recordspec._tf import tf
from recordspec.wire import arrays, file_types, framing, tfrecord
from recordspec.wire.compression import CODECS
from selection import scaled

pytestmark = pytest.mark.usefixtures("codec")

DATA = [b"", b"a", b"bc" * 200, bytes(range(256)), b"\x00" * 70_000]


def sealed(data: list[bytes]) -> bytes:
    return arrays.buffer_of(framing.frames(data)).tobytes()


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_we_read_what_tensorflow_writes(tmp_path, compression):
    path = tmp_path / "named.otherwise"
    with tf.io.TFRecordWriter(str(path), CODECS[compression].tensorflow) as writer:
        for one in DATA:
            writer.write(one)
    assert file_types.compression_of(path) == compression
    assert [record.data for record in tfrecord.scan(path)] == DATA
    assert tfrecord.count(path) == len(DATA)
    if compression == "none":
        assert path.read_bytes() == sealed(DATA)


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_tensorflow_reads_what_we_write(tmp_path, compression):
    path = tmp_path / "x.tfrecord"
    stream = CODECS[compression].compressor()
    path.write_bytes(bytes(stream.compress(sealed(DATA))) + stream.flush())
    dataset = tf.data.TFRecordDataset(str(path), CODECS[compression].tensorflow)
    assert [record.numpy() for record in dataset] == DATA


def test_streams_that_follow_each_other_count_as_one(tmp_path):
    path = tmp_path / "x.gz"
    data = b""
    for part in (DATA[:2], DATA[2:]):
        stream = CODECS["gzip"].compressor()
        data += bytes(stream.compress(sealed(part))) + stream.flush()
    path.write_bytes(data)
    assert [record.data for record in tfrecord.scan(path)] == DATA


def test_records_know_their_place(tmp_path):
    path = tmp_path / "x.tfrecord"
    path.write_bytes(sealed([b"ab", b"cde"]))
    assert [(record.number, record.offset) for record in tfrecord.scan(path)] == [(0, 0), (1, 18)]


def damaged(at: int, byte: int | None) -> bytes:
    """Three records of 10 bytes, with a byte changed, or cut."""
    data = bytearray(sealed([b"0123456789"] * 3))
    if byte is None:
        return bytes(data[:at])
    data[at] ^= byte
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (damaged(26 + 3, 1), "record 1 at byte 26: expected a length that matches its CRC, got other bytes"),
        (damaged(26 + 14, 1), "record 1 at byte 26: expected data that matches its CRC, got other bytes"),
        (damaged(26 + 24, 1), "record 1 at byte 26: expected data that matches its CRC, got other bytes"),
        (damaged(30, None), "record 1 at byte 26: expected 12 bytes of length and CRC, got the end of the file"),
        (
            damaged(60, None),
            "record 2 at byte 52: expected 12 bytes of length and CRC, got the end of the file",
        ),
        (
            damaged(70, None),
            "record 2 at byte 52: expected 10 bytes of data and its CRC, got the end of the file",
        ),
    ],
)  # fmt: skip
def test_damage_is_named(tmp_path, data, expected):
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(RecordError) as caught:
        list(tfrecord.scan(path))
    assert str(caught.value) == f"{path}: {expected}"


def test_a_length_past_the_end_allocates_nothing(tmp_path):
    path = tmp_path / "x"
    frame = bytearray(sealed([b"abc"]))
    frame[:12] = head(2**60)
    path.write_bytes(frame)
    for read in (tfrecord.count, lambda path: list(tfrecord.scan(path))):
        with pytest.raises(RecordError, match="expected 1,152,921,504,606,846,976 bytes of data"):
            read(path)


def test_a_stream_that_is_cut_is_named(tmp_path):
    path = tmp_path / "x.gz"
    stream = CODECS["gzip"].compressor()
    data = bytes(stream.compress(sealed(DATA))) + stream.flush()
    path.write_bytes(data[:-9])
    with pytest.raises(RecordError, match="expected whole compressed data, got the end of the file"):
        tfrecord.count(path)


def test_an_empty_file_has_no_records(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"")
    assert tfrecord.count(path) == 0
    assert list(tfrecord.scan(path)) == []


@given(st.lists(st.binary(max_size=300), max_size=20))
@settings(max_examples=scaled(50))
def test_any_bytes_come_back(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("any") / "x"
    path.write_bytes(sealed(data))
    assert [record.data for record in tfrecord.scan(path)] == data
    assert tfrecord.count(path) == len(data)


@pytest.mark.parametrize(
    ("at", "byte", "found"),
    [
        (26 + 14, 1, [0, "record 1 at byte 26: expected data that matches its CRC, got other bytes", 2]),
        (26 + 3, 1, [0, "record 1 at byte 26: expected a length that matches its CRC, got other bytes"]),
        (3, 1, ["record 0 at byte 0: expected a length that matches its CRC, got other bytes"]),
        (70, None, [0, 1, "record 2 at byte 52: expected 10 bytes of data and its CRC, got the end of the file"]),
        (5, None, ["record 0 at byte 0: expected 12 bytes of length and CRC, got the end of the file"]),
        (52, None, [0, 1]),
    ],
)  # fmt: skip
def test_what_is_left_of_a_damaged_file_is_salvaged(tmp_path, at, byte, found):
    path = tmp_path / "x"
    path.write_bytes(damaged(at, byte))
    expected = [one if isinstance(one, int) else f"{path}: {one}" for one in found]
    assert salvaged(path) == expected


def salvaged(path) -> list:
    """The numbers of the records, and the damage in words."""
    return [
        str(one.problem) if isinstance(one, tfrecord.Damage) else one.number
        for one in tfrecord.one_by_one(tfrecord.salvage(path))
    ]


def gzipped(data: bytes) -> bytes:
    stream = CODECS["gzip"].compressor()
    return bytes(stream.compress(data)) + stream.flush()


def test_a_stream_is_salvaged_up_to_its_fault(tmp_path):
    path = tmp_path / "x.gz"
    noise = np.random.default_rng(0).bytes(100)  # does not shrink
    data = bytearray(gzipped(sealed([noise] * 50 + [noise[:50] * 2] * 50)))
    data[-6] ^= 1  # in the CRC of the stream
    path.write_bytes(data)
    place = f"{path}: record 100 at byte 11,600: expected whole compressed data"
    assert salvaged(path) == [
        *range(100),
        f"{place}, got Error -3 while decompressing data: incorrect data check",
    ]
    path.write_bytes(data[:-8])
    assert salvaged(path) == [*range(100), f"{place}, got the end of the file"]


def test_compressed_data_of_something_else_is_said_to_be_that(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(gzipped(b"age,sex\n" * 9))
    with pytest.raises(RecordError) as caught:
        tfrecord.count(path)
    expected = f"{path}: expected a TFRecord file, got gzip data of text that begins 'age,sex\\nage,sex\\nage,sex\\n'"
    assert str(caught.value) == expected
    assert salvaged(path) == [expected]


@given(
    sizes=st.lists(st.integers(0, 9) | st.none(), max_size=20),
    size=st.integers(1, 12),
    most=st.integers(1, 5) | st.none(),
)
def test_records_are_gathered_in_order_as_soon_as_they_are_enough(sizes, size, most):
    damage = tfrecord.Damage(0, 0, Problem(expected="x", got="y"))
    found = [damage if one is None else tfrecord.Record(0, 0, bytes(one)) for one in sizes]
    lists = list(tfrecord.batched(found, size, most))
    assert [one for some in lists for one in some] == found
    held = [[len(one.data) if isinstance(one, tfrecord.Record) else 0 for one in some] for some in lists]
    assert all(len(some) == most or sum(some) >= size for some in held[:-1])
    assert all(sum(some[:-1]) < size and len(some) <= (most or len(some)) for some in held)


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_a_compressed_file_without_records_is_whole(tmp_path, compression):
    path = tmp_path / "x"
    path.write_bytes(CODECS[compression].compressor().flush())
    assert file_types.compression_of(path) == compression
    assert (tfrecord.count(path), list(tfrecord.scan(path))) == (0, [])
    theirs = tf.data.TFRecordDataset(str(path), CODECS[compression].tensorflow)
    assert list(theirs) == []
    path.write_bytes(path.read_bytes()[:-1])
    (damage,) = tfrecord.salvage(path)
    expected = "record 0 at byte 0: expected whole compressed data, got the end of the file"
    assert str(damage.problem) == f"{path}: {expected}"


@pytest.mark.parametrize(
    "read", [tfrecord.count, file_types.compression_of, lambda path: list(tfrecord.salvage(path))]
)
def test_a_pipe_is_not_waited_for(tmp_path, read):
    os.mkfifo(tmp_path / "x")
    with pytest.raises(StoreError, match="expected a regular file, got a pipe"):
        read(tmp_path / "x")
