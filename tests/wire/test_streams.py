"""Compressed streams: inflated in bounded memory, and read on where one stands behind another."""

from __future__ import annotations

import gzip
import random
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from damaged_files import compressed, found, peak

from frames_by_hand import frame, head
from recordspec._tf import tf
from recordspec.errors import RecordError
from recordspec.locations import location, open_file
from recordspec.wire.compression import CODECS
from recordspec.wire.file_types import FileStart
from recordspec.wire.recovery import rescue
from recordspec.wire.streams import JOINED, may_be_joined
from recordspec.wire.tfrecord import Damage, Record, check_joined, one_by_one, salvage

pytestmark = pytest.mark.usefixtures("codec")


def bomb(file: Path, data: bytes, times: int) -> None:
    """What inflates to a thousand times its size."""
    stream = zlib.compressobj(9)
    parts = [stream.compress(data) for _ in range(times)]
    file.write_bytes(b"".join(parts) + stream.flush())


@pytest.mark.slow
@pytest.mark.newest
def test_what_inflates_to_a_thousand_times_its_size_stays_small(file):
    bomb(file, frame(bytes(48)) * 16_384, 16)
    counted = []
    assert peak(lambda: counted.extend(len(one) for one in salvage(file, size=1 << 20))) < 15 << 20
    assert sum(counted) == 16_384 * 16


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


AFTER_EMPTY = "more after an empty stream, where TensorFlow may end"


@pytest.mark.parametrize("empty", [1, 100_000])
def test_empty_streams_one_behind_another_are_read_in_their_time(file, empty):
    """At their end they are nothing; before more, TensorFlow's reader ends there or not."""
    none, before, behind = (compressed(data, "gzip") for data in (b"", frame(b"a"), frame(b"b")))
    file.write_bytes(before + none * empty)
    assert [one[2] for one in found(file, 100)] == [b"a"]
    check_joined(location(file), "gzip")
    for data, first in ((before + none * empty + behind, b"a"), (none * empty + before + behind, None)):
        file.write_bytes(data)
        whole = [] if first is None else [first]
        assert [one[2] for one in found(file, 100)] == [*whole, ("whole compressed data", AFTER_EMPTY)]
        assert [record.numpy() for record in tf.data.TFRecordDataset(str(file), "GZIP")] == whole
        with pytest.raises(RecordError, match=f"got {AFTER_EMPTY} "):
            check_joined(location(file), "gzip")
        with open_file(location(file)) as opened:
            items = list(one_by_one(rescue(location(file), opened, FileStart(location(file), opened))))
        assert [item.data for item in items if isinstance(item, Record)] == [b"a", b"b"]
        assert [item.problem.got for item in items if isinstance(item, Damage)] == [AFTER_EMPTY]


@pytest.mark.parametrize("at", range(0, 60, 7))
@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_what_is_behind_a_join_is_rescued_wherever_it_is(file, compression, at):
    """Also in the middle of a record, of whose bytes the buffer holds some."""
    data = b"".join(frame(bytes([number]) * 5) for number in range(4))
    joints = [data[:at], b"", data[at : at + 9], b"", data[at + 9 :]]
    file.write_bytes(b"".join(compressed(part, compression) for part in joints))
    for size in (10, 1000):
        with open_file(location(file)) as opened:
            items = list(rescue(location(file), opened, FileStart(location(file), opened), size))
        records = [item.data for item in one_by_one(items) if isinstance(item, Record)]
        assert records == [bytes([number]) * 5 for number in range(4)]
        (damage,) = [item for item in items if isinstance(item, Damage)]
        assert damage.problem.got in JOINED


def test_the_mark_of_an_empty_stream_is_seen_across_two_pieces(file):
    """As it is looked for in pieces of a mebibyte."""
    empty = compressed(b"", "gzip")
    for size in range((1 << 20) - 40, (1 << 20) + 10, 3):
        data = random.Random(size).randbytes(size)
        first = gzip.compress(frame(data)[:size], 0)[: size - 10]
        file.write_bytes(first + empty + empty)
        with file.open("rb") as opened:
            assert may_be_joined(opened, "gzip")
        file.write_bytes(first + empty)
        with file.open("rb") as opened:
            assert not may_be_joined(opened, "gzip")
