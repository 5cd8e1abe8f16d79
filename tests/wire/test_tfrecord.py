"""The file format: what TensorFlow writes we read, what we write TensorFlow reads, and damage is named."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from recordspec import RecordError
from recordspec.wire import tfrecord
from recordspec.wire.strings import Strings

DATA = [b"", b"a", b"bc" * 200, bytes(range(256)), b"\x00" * 70_000]


def sealed(data: list[bytes]) -> bytes:
    framed = Strings.of([bytes(tfrecord.HEAD) + one + bytes(tfrecord.TAIL) for one in data])
    framed = Strings(framed.buffer.copy(), framed.offsets)
    return bytes(tfrecord.seal(framed))


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_we_read_what_tensorflow_writes(tmp_path, compression):
    path = tmp_path / "named.otherwise"
    with tf.io.TFRecordWriter(str(path), tfrecord.TF_COMPRESSION[compression]) as writer:
        for one in DATA:
            writer.write(one)
    assert tfrecord.compression_of(path) == compression
    assert [record.data for record in tfrecord.scan(path)] == DATA
    assert tfrecord.count(path) == len(DATA)
    if compression == "none":
        assert path.read_bytes() == sealed(DATA)


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_tensorflow_reads_what_we_write(tmp_path, compression):
    path = tmp_path / "x.tfrecord"
    stream = tfrecord.compressor(compression)
    path.write_bytes(bytes(stream.compress(sealed(DATA))) + stream.flush())
    dataset = tf.data.TFRecordDataset(str(path), tfrecord.TF_COMPRESSION[compression])
    assert [record.numpy() for record in dataset] == DATA


def test_streams_that_follow_each_other_count_as_one(tmp_path):
    path = tmp_path / "x.gz"
    data = b""
    for part in (DATA[:2], DATA[2:]):
        stream = tfrecord.compressor("gzip")
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
    frame[:12] = tfrecord._heads(np.array([2**60])).tobytes()
    path.write_bytes(frame)
    for read in (tfrecord.count, lambda path: list(tfrecord.scan(path))):
        with pytest.raises(RecordError, match="expected 1,152,921,504,606,846,976 bytes of data"):
            read(path)


@pytest.mark.parametrize(
    ("data", "got"),
    [
        (b"<!DOCTYPE html><html>", "a file that begins b'<!DOCTYPE ht'"),
        (b"version https://git-lfs", "a file that begins b'version http'"),
    ],
)
def test_what_is_no_tfrecord_is_said_to_be_none(tmp_path, data, got):
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(RecordError) as caught:
        tfrecord.count(path)
    assert str(caught.value) == f"{path}: expected a TFRecord file, got {got}"


def test_a_stream_that_is_cut_is_named(tmp_path):
    path = tmp_path / "x.gz"
    stream = tfrecord.compressor("gzip")
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
@settings(max_examples=50, deadline=None)
def test_any_bytes_come_back(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("any") / "x"
    path.write_bytes(sealed(data))
    assert [record.data for record in tfrecord.scan(path)] == data
    assert tfrecord.count(path) == len(data)
