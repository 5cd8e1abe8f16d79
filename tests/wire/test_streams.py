"""Compressed streams: inflated in bounded memory, and read on where one stands behind another."""

from __future__ import annotations

import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from damaged_files import compressed, found, peak

from frames_by_hand import frame, head
from recordspec._tf import tf
from recordspec.wire.compression import CODECS
from recordspec.wire.tfrecord import salvage

pytestmark = pytest.mark.usefixtures("codec")


def bomb(file: Path, data: bytes, times: int) -> None:
    """What inflates to a thousand times its size."""
    stream = zlib.compressobj(9)
    parts = [stream.compress(data) for _ in range(times)]
    file.write_bytes(b"".join(parts) + stream.flush())


@pytest.mark.slow
@pytest.mark.newest
def test_what_inflates_to_a_thousand_times_its_size_stays_small(file):
    bomb(file, frame(b"") * 65_536, 16)
    counted = []
    assert peak(lambda: counted.extend(len(one) for one in salvage(file, size=1 << 20))) < 15 << 20
    assert sum(counted) == 65_536 * 16


@pytest.mark.slow
@pytest.mark.parametrize("length", [100 << 20, 256 << 20])
def test_a_record_that_inflates_to_anything_is_not_held_where_it_is_wrong(file, length):
    bomb(file, head(length) + bytes((1 << 20) - 12), 256)
    ours: list = []
    assert peak(lambda: ours.extend(found(file, 4 << 20))) < 20 << 20
    wrong = [("data that matches its CRC", "other bytes"), ("a length that matches its CRC", "other bytes")]
    if length > 100 << 20:
        wrong = [(f"{length:,} bytes of data and its CRC", "the end of the file")]
    assert [one[2] for one in ours] == wrong


@pytest.mark.slow
def test_a_large_record_that_is_whole_is_held_once(file):
    file.write_bytes(compressed(frame(bytes(100 << 20)), "zlib"))
    counted: list = []
    assert peak(lambda: counted.extend(len(one) for one in salvage(file))) < 110 << 20
    assert counted == [1]


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
@pytest.mark.parametrize("behind", ["gzip", "zlib", "none"])
def test_of_streams_one_behind_another_those_are_read_that_tensorflow_reads(file, compression, behind):
    file.write_bytes(compressed(frame(b"a") * 3, compression) + compressed(frame(b"b") * 4, behind))
    theirs = []
    with suppress(tf.errors.DataLossError):
        for record in tf.data.TFRecordDataset(str(file), CODECS[compression].tensorflow):
            theirs.append(record.numpy())
    ours = [one[2] for one in found(file, 100)]
    assert [one for one in ours if isinstance(one, bytes)] == theirs
    fault = [one for one in ours if not isinstance(one, bytes)]
    if (compression, behind) == ("gzip", "gzip"):
        assert fault == []
    else:
        behind_zlib = ("whole compressed data", "bytes after the end of the stream")
        assert [one[0] for one in fault] == [behind_zlib[0]]
        assert compression == "gzip" or fault == [behind_zlib]


def test_empty_streams_one_behind_another_are_read_in_their_time(file):
    empty, before, behind = (compressed(data, "gzip") for data in (b"", frame(b"a"), frame(b"b")))
    file.write_bytes(before + empty * 100_000 + behind)
    assert [one[2] for one in found(file, 100)] == [b"a", b"b"]
