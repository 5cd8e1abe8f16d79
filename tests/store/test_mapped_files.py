"""Records of mapped files by their number: those of a scan, whatever the index and the files say."""

from __future__ import annotations

import os
import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from crc32c import crc32c

from frames_by_hand import frame
from recordspec import RecordError, StoreError
from recordspec.store.index import made_again, of_bytes
from recordspec.store.mapped_files import MappedFiles

SIZES = [0, 5, 5, 300, 20_000, 1, 1] * 60
RECORDS = [[os.urandom(size + number) for size in SIZES[number:]] for number in range(3)]


@pytest.fixture
def paths(tmp_path) -> list[Path]:
    paths = [tmp_path / f"x{number}" for number in range(3)] + [tmp_path / "empty"]
    for path, records in zip(paths, RECORDS, strict=False):
        path.write_bytes(b"".join(map(frame, records)))
    paths[3].write_bytes(b"")
    return paths


def opened(paths: list[Path]) -> MappedFiles:
    return MappedFiles(paths, [made_again(path) for path in paths])


def read(files: MappedFiles, numbers: list[int]) -> list[bytes]:
    data, places = files.records(np.array(numbers, np.int64))
    return [data[start:stop].tobytes() for start, stop in pairwise(places)]


def test_records_are_those_of_the_files(codec, paths):
    files, every_one = opened(paths), [record for records in RECORDS for record in records]
    assert len(files) == len(every_one)
    numbers = np.random.default_rng(1).integers(0, len(files), 700).tolist()
    assert read(files, numbers) == [every_one[number] for number in numbers]
    assert read(files, []) == []


def test_records_can_stay_in_their_files(paths):
    files, every_one = opened(paths), [record for records in RECORDS for record in records]
    numbers = np.arange(3, len(files) - 2, 5)
    found = [
        data[start:stop].tobytes()
        for data, starts, stops in files.in_place(numbers)
        for start, stop in zip(starts, stops, strict=True)
    ]
    assert found == [every_one[number] for number in numbers]
    data = bytearray(paths[1].read_bytes())
    data[12] ^= 1
    paths[1].write_bytes(data)
    with pytest.raises(RecordError, match="x1: record 0 at byte 0: expected a record of the indexed length"):
        opened(paths).in_place(np.array([0, len(RECORDS[0])]))


@pytest.mark.parametrize("place", [0, 9, 12, 25])
def test_a_corrupt_record_is_named(codec, paths, place):
    files = opened(paths)
    data = bytearray(paths[1].read_bytes())
    start = sum(16 + len(record) for record in RECORDS[1][:2])
    data[start + place] ^= 1
    paths[1].write_bytes(data)
    first = len(RECORDS[0])
    assert read(files, [0, first + 1, first + 3]) == [RECORDS[0][0], RECORDS[1][1], RECORDS[1][3]]
    with pytest.raises(RecordError) as caught:
        read(files, [first + 3, first + 2])
    expected = "expected a record of the indexed length that matches its CRCs, got other bytes"
    hint = "`recordspec verify` checks the file; if it was changed, `recordspec index` indexes it again"
    assert str(caught.value) == f"{paths[1]}: record 2 at byte {start}: {expected} ({hint})"


def test_a_file_of_another_size_is_refused(codec, paths):
    files, size = opened(paths), paths[0].stat().st_size
    with Path(paths[0]).open("ab") as file:
        file.write(b"x")
    with pytest.raises(StoreError) as caught:
        read(files, [0])
    assert str(caught.value) == f"{paths[0]}: expected {size:,} bytes, got {size + 1:,}"
    paths[0].unlink()
    with pytest.raises(StoreError) as caught:
        read(files, [0])
    assert str(caught.value) == f"{paths[0]}: cannot read: no such file or directory"


@pytest.mark.parametrize(
    "group", [((1 << 63) - 100, 0, 150, 0), (1 << 63, 0, 0, 0), ((1 << 64) - 5, 0, 5, 0), (0, 1 << 63, 0, 8)]
)
def test_extreme_offsets_lead_to_no_other_memory(codec, tmp_path, group):
    path = tmp_path / "x"
    path.write_bytes(frame(b"a" * 10) * 2)
    data = bytearray(made_again(path).data)
    struct.pack_into("<QQIB", data, 72, *group)
    data[-4:] = crc32c(data[:-4]).to_bytes(4, "little")
    with pytest.raises((StoreError, RecordError)):
        read(MappedFiles([path], [of_bytes(bytes(data))]), [0])


@pytest.mark.parametrize("number", range(40))
def test_offsets_that_lie_lead_to_no_other_memory(codec, paths, number):
    """Bytes of an index are changed, and its CRC is made valid: it is refused, or records are."""
    rng = np.random.default_rng(number)
    data = bytearray(made_again(paths[0]).data)
    places = rng.integers(72, len(data) - 4, 4)
    for place in places.tolist():
        data[place] = int(rng.integers(0, 256))
    data[-4:] = crc32c(data[:-4]).to_bytes(4, "little")
    try:
        files = MappedFiles(paths[:1], [of_bytes(bytes(data))])
    except StoreError:
        return
    outcomes = []
    for record in range(len(RECORDS[0])):
        try:
            outcomes += read(files, [record])
        except RecordError:
            outcomes.append(RECORDS[0][record])
    assert set(outcomes) <= set(RECORDS[0])
