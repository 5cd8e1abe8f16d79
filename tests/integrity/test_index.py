"""Indexes are those of other tools, byte by byte; records are found by number with ours, and without."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

import recordspec as rs
from frames_by_hand import frame
from recordspec import RecordError, SpecError, StoreError
from recordspec.integrity import indexing as module_of_command
from recordspec.integrity.indexing import index
from recordspec.locations import location
from recordspec.progress import Progress
from recordspec.store import index as module
from recordspec.store.dataset import StoredDataset
from recordspec.store.index import of_bytes
from recordspec.store.scan import Scanner
from recordspec.wire import tfrecord
from recordspec.wire.compression import CODECS
from recordspec.wire.tfrecord import Record, record_ends, scan
from selection import scaled
from shell import run_here as run

SIZES = [0, 5, 5, 5, 300, 7, 20_000, 1, 1, 1] * 30
RECORDS = [number.to_bytes(4, "little") * (size // 4 + 1) for number, size in enumerate(SIZES)]


def records(path: Path, numbers: list[int]) -> list[Record]:
    found = Scanner.of_rows(StoredDataset.of(path)).pick(sorted(set(numbers)))
    return [Record(int(one.records[0]), int(one.offsets[0]), bytes(one.data(0))) for one in found]


def record(path: Path, number: int) -> Record:
    (found,) = records(path, [number])
    return found


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "x.tfrecord"
    path.write_bytes(b"".join(map(frame, RECORDS)))
    return path


def as_dali_does(path: Path) -> str:
    """What DALI's tfrecord2idx and that of the tfrecord package write: where a frame begins, and its size."""
    file, lines = io.BytesIO(path.read_bytes()), []
    while head := file.read(12):
        file.seek(struct.unpack_from("<Q", head)[0] + 4, io.SEEK_CUR)
        lines.append(file.tell())
    return "".join(f"{start} {stop - start}\n" for start, stop in zip([0, *lines], lines, strict=False))


@pytest.mark.parametrize(("form", "suffix"), [("dali", ".idx"), ("tfrecord", ".tfindex")])
def test_other_tools_find_what_they_write_themselves(file, form, suffix):
    (written,) = index(file, form)
    assert written.index == f"{file}{suffix}"
    assert written.records == len(RECORDS)
    assert Path(written.index).read_text() == as_dali_does(file)


@given(st.lists(st.integers(0, len(RECORDS) - 1), max_size=8), st.booleans())
@settings(max_examples=scaled(60))
def test_records_are_those_of_a_scan(tmp_path_factory, numbers, indexed):
    path = tmp_path_factory.mktemp("index") / "x"
    path.write_bytes(b"".join(map(frame, RECORDS)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tfrecord, "_HEADERS_AT_ONCE", 1000)
        if indexed:
            index(path)
        found = records(path, numbers)
    every_one = list(scan(path))
    assert found == [every_one[number] for number in sorted(set(numbers))]


def test_an_index_is_used_as_long_as_the_file_stays_the_same(file, monkeypatch):
    index(file)
    walked: list[Path] = []

    def walking(path):
        walked.append(path)
        yield from record_ends(path)

    monkeypatch.setattr(module, "record_ends", walking)
    assert record(file, 200).data == RECORDS[200]
    assert Scanner.of_rows(StoredDataset.of(file)).count(location(file)) == len(RECORDS)
    assert walked == []
    os.utime(file, ns=(0, 0))
    assert record(file, 200).data == RECORDS[200]
    assert walked == [file]


@pytest.mark.parametrize("data", [b"", b"{}", b"rsindex\x01", b"rsindex\x01" + bytes(200)])
def test_an_index_that_cannot_be_read_is_not_used(file, data):
    Path(f"{file}.index").write_bytes(data)
    assert record(file, 7).data == RECORDS[7]


@pytest.mark.parametrize("place", range(0, 900, 29))
def test_an_index_that_was_changed_changes_no_record(file, place):
    index(file)
    path = Path(f"{file}.index")
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= 0x55
    for made_valid in (False, True):
        if made_valid:
            data[-4:] = crc32c(data[:-4]).to_bytes(4, "little")
        path.write_bytes(data)
        for numbers in ([200], [70, 130, 199, 299], [3]):
            assert [one.data for one in records(file, numbers)] == [RECORDS[number] for number in numbers]


def test_an_index_of_other_records_of_equal_size_and_time_is_not_used(file, caplog):
    index(file)
    before = file.stat()
    others = sorted(RECORDS)
    file.write_bytes(b"".join(map(frame, others)))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert [one.data for one in records(file, [70, 130, 200])] == [others[n] for n in (70, 130, 200)]
    text = "its index is not used, as it is of another file (`recordspec index` makes it again)"
    assert caplog.messages == [f"{file}: {text}"]
    index(file)
    assert record(file, 200).data == others[200]
    assert len(caplog.messages) == 1


def test_a_dataset_has_one_index_which_is_made_again(tmp_path):
    schema = rs.Schema.loads("{schema: s, features: {a: text}}")
    rows = [{"a": "x" * number} for number in range(40)]
    manifest = rs.write(rows, schema, tmp_path / "data", shards=3, key="a", progress=False)
    built = {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()}
    for kept in (True, False):
        if not kept:  # as an older release wrote it
            (tmp_path / "data/index.bin").unlink()
            (tmp_path / "data/manifest.json").write_text(replace(manifest, index_sha256=None).dump())
        done = index(tmp_path / "data/train-00001-of-00003.tfrecord")
        records_there = manifest.shards("train")[1].records
        name = str(tmp_path / "data/train-00001-of-00003.tfrecord")
        assert done == [
            module_of_command.Written(
                file=name, index=str(tmp_path / "data/index.bin"), records=records_there
            )
        ]
        assert {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()} == built
    shard = tmp_path / "data/train-00000-of-00003.tfrecord"
    shard.write_bytes(shard.read_bytes() + frame(b"more"))
    with pytest.raises(StoreError) as caught:
        index(tmp_path / "data")
    counted = manifest.shards("train")[0].records
    assert (
        str(caught.value) == f"{shard}: expected {counted} records, as the manifest says, got {counted + 1}"
    )


def test_a_compressed_file_has_an_index_with_restart_points(tmp_path):
    path, data = tmp_path / "x.gz", b"".join(map(frame, RECORDS))
    path.write_bytes(gzip.compress(data))
    with pytest.raises(RecordError) as caught:
        index(path)
    assert str(caught.value) == (
        f"{path}: expected a file of which records can be read alone, got gzip without restart points "
        "(`recordspec reshard` compresses it with restart points)"
    )
    stream = CODECS["gzip"].compressor()
    path.write_bytes(bytes(stream.compress(data)) + stream.flush())
    with pytest.raises(RecordError) as caught:
        index(path, "dali")
    hint = "(`recordspec reshard --compression none` makes one)"
    assert str(caught.value) == f"{path}: expected an uncompressed file, got gzip {hint}"
    (written,) = index(path)
    assert written.records == 300
    made = of_bytes(Path(written.index).read_bytes())
    assert (made.size, made.restarts[:-1].tolist()) == (len(data), stream.restarts)
    rows = rs.open(path)
    wanted = [299, 3, 150, 3]
    assert rows.records(wanted) == [RECORDS[row] for row in wanted]
    assert [rows.records([row])[0] for row in wanted] == rows.records(wanted)
    assert [one.data for one in records(path, [299, 3])] == [RECORDS[3], RECORDS[299]]
    with pytest.raises(SpecError) as missing:
        record(path, 300)
    assert str(missing.value) == "record: expected a number from 0 to 299, got 300"


def test_records_that_are_not_there_are_refused(file):
    for indexed in (False, True):
        if indexed:
            index(file)
        with pytest.raises(SpecError) as caught:
            records(file, [2, 300])
        assert str(caught.value) == "record: expected a number from 0 to 299, got 300"
    with pytest.raises(SpecError) as caught:
        record(file, -1)
    assert str(caught.value) == "record: expected a number from 0 to 299, got -1"
    with pytest.raises(SpecError) as caught:
        index(file, "csv")
    assert str(caught.value) == "format: expected one of recordspec, tfrecord, dali, got `csv`"


def test_bad_data_is_no_obstacle_to_others(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(frame(b"a") + frame(b"b")[:-1] + b"?" + frame(b"c"))
    assert record(path, 2).data == b"c"
    with pytest.raises(RecordError) as caught:
        record(path, 1)
    assert (
        str(caught.value)
        == f"{path}: record 1 at byte 17: expected data that matches its CRC, got other bytes"
    )


def test_the_command_line_writes_them(file):
    done = run("index", file, "--format", "dali")
    assert json.loads(done.stdout) == {"file": str(file), "index": f"{file}.idx", "records": 300}
    assert sorted(path.name for path in file.parent.iterdir()) == ["x.tfrecord", "x.tfrecord.idx"]


def test_an_index_that_cannot_be_written_is_said_in_a_line(file):
    target = file.with_name(f"{file.name}.idx")
    target.mkdir()
    with pytest.raises(StoreError) as caught:
        index(file, "dali")
    assert str(caught.value) == f"{target}: cannot write: is a directory"
    assert sorted(file.parent.iterdir()) == [file, target]


def test_progress_is_of_the_records(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64}")
    rs.write([{"id": number} for number in range(10)], schema, tmp_path / "data", shards=2)
    shutil.copy(next((tmp_path / "data").glob("train-*")), tmp_path / "alone.tfrecord")
    told: list[int] = []
    progress = Progress(show=False)
    progress.advance = lambda rows, size=0: told.append(rows)
    index([str(tmp_path / "data"), str(tmp_path / "alone.tfrecord")], progress=progress)
    assert told == [5, 5, 5]
