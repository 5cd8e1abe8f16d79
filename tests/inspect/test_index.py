"""Indexes are those of other tools, byte by byte; records are found by number with ours, and without."""

from __future__ import annotations

import io
import json
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frames_by_hand import frame
from recordspec import RecordError, SpecError, StoreError
from recordspec.inspect import index as module
from recordspec.inspect.index import index
from recordspec.inspect.scan import Scanner
from recordspec.wire import tfrecord
from recordspec.wire.compression import CODECS
from recordspec.wire.tfrecord import Record, scan
from shell import run_here as run

SIZES = [0, 5, 5, 5, 300, 7, 20_000, 1, 1, 1] * 30
RECORDS = [number.to_bytes(4, "little") * (size // 4 + 1) for number, size in enumerate(SIZES)]


def records(path: Path, numbers: list[int]) -> list[Record]:
    found = Scanner(path).pick(sorted(set(numbers)))
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


@given(
    st.lists(st.integers(0, len(RECORDS) - 1), max_size=8), st.booleans(), st.sampled_from([1, 3, 64, 1000])
)
@settings(max_examples=60)
def test_records_are_those_of_a_scan(tmp_path_factory, numbers, indexed, every):
    path = tmp_path_factory.mktemp("index") / "x"
    path.write_bytes(b"".join(map(frame, RECORDS)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_EVERY", every)
        patch.setattr(tfrecord, "_HEADERS_AT_ONCE", 1000)
        if indexed:
            index(path)
        found = records(path, numbers)
    every_one = list(scan(path))
    assert found == [every_one[number] for number in sorted(set(numbers))]


def test_an_index_is_used_as_long_as_the_file_stays_the_same(file, monkeypatch):
    index(file)
    known = Path(f"{file}.index.json")
    held = json.loads(known.read_text())
    assert held["records"] == len(RECORDS)
    walked: list[int] = []
    ends = tfrecord.record_ends

    def counting(path, number=0, offset=0):
        walked.append(number)
        return ends(path, number, offset)

    monkeypatch.setattr(module, "record_ends", counting)
    assert record(file, 200).data == RECORDS[200]
    assert walked[-1] == 192
    os.utime(file, ns=(0, 0))
    assert record(file, 200).data == RECORDS[200]
    assert walked[-1] == 0


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"version": 1}', "[" * 100_000])
def test_an_index_that_cannot_be_read_is_not_used(file, text):
    Path(f"{file}.index.json").write_text(text)
    assert record(file, 7).data == RECORDS[7]


def lying(file: Path, **changes) -> None:
    """Changes the index of a file."""
    path = Path(f"{file}.index.json")
    held = json.loads(path.read_text())
    path.write_text(json.dumps(held | {key: change(held[key]) for key, change in changes.items()}))


@pytest.mark.parametrize(
    "changes",
    [
        *({"every": lambda every, wrong=wrong: wrong} for wrong in (0, -1, "a", None, 64.0, True, 32)),
        *({"records": lambda records, wrong=wrong: wrong} for wrong in (0, -1, "a", None, 1 << 80)),
        {"offsets": lambda offsets: [-offset for offset in offsets]},
        {"offsets": lambda offsets: [0] * len(offsets)},
        {"offsets": lambda offsets: dict.fromkeys(map(str, offsets))},
        {"offsets": lambda offsets: [float(offset) for offset in offsets]},
        {"offsets": lambda offsets: "0" * len(offsets)},
        {"offsets": lambda offsets: None},
        {"offsets": lambda offsets: [*offsets[:3], offsets[3] + 1, *offsets[4:]]},
        {"offsets": lambda offsets: [*offsets[:3], offsets[3] + 24, *offsets[4:]]},  # where another begins
        {"offsets": lambda offsets: [*offsets[:-1], 1 << 40]},
    ],
)
def test_an_index_that_lies_changes_no_record(file, changes):
    index(file)
    lying(file, **changes)
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
    text = "not used, as it is of another file (`recordspec index` makes it again)"
    assert caplog.messages == [f"{file}.index.json: {text}"]
    index(file)
    assert record(file, 200).data == others[200]
    assert len(caplog.messages) == 1


def test_an_index_of_many_records_stays_small(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_OFFSETS", 10)
    path = tmp_path / "x"
    path.write_bytes(frame(b"ab") * 5000)
    index(path)
    held = json.loads(Path(f"{path}.index.json").read_text())
    assert len(held["offsets"]) <= 10
    assert held["offsets"] == [18 * number for number in range(0, 5000, held["every"])]
    assert record(path, 4999).offset == 4999 * 18


def test_a_compressed_file_has_no_index_but_records(tmp_path):
    path = tmp_path / "x.gz"
    stream = CODECS["gzip"].compressor()
    path.write_bytes(bytes(stream.compress(b"".join(map(frame, RECORDS)))) + stream.flush())
    with pytest.raises(RecordError) as caught:
        index(path)
    hint = "(`recordspec reshard --compression none` makes one)"
    assert (
        str(caught.value)
        == f"{path}: expected an uncompressed file, got gzip, which has no random access {hint}"
    )
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
