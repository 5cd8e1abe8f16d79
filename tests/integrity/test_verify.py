"""Verify names every damage; repair saves every record that is whole."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

import recordspec as rs
from examples import sealed
from frames_by_hand import frame
from recordspec import Manifest, StoreError
from recordspec.integrity import verify as module
from recordspec.integrity.repair import repair
from recordspec.integrity.verify import VerifiedFile, verify
from recordspec.store.expand import expand
from recordspec.wire import file_types, tfrecord
from recordspec.wire.compression import CODECS
from recordspec.wire.tfrecord import scan
from shell import run_here as run

COUNT, SIZE = 10_000, 40
STEP = SIZE + 16
RECORDS = [index.to_bytes(4, "little") * (SIZE // 4) for index in range(COUNT)]
REGIONS = {"length": 3, "length CRC": 9, "data": 20, "data CRC": STEP - 1}


def flipped(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 0x10
    return bytes(changed)


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("number", [0, 5_000, COUNT - 1])
@pytest.mark.parametrize("region", REGIONS)
def test_a_flipped_byte_is_named_and_every_whole_record_saved(tmp_path, region, number, compression):
    path = tmp_path / "x.tfrecord"
    start, stop = number * STEP, (number + 1) * STEP
    data = flipped(b"".join(map(frame, RECORDS)), start + REGIONS[region])
    stream = CODECS[compression].compressor()
    path.write_bytes(bytes(stream.compress(data)) + stream.flush())
    (found,) = verify(path)
    (loss,) = found.integrity.losses
    last = number == COUNT - 1 and region.startswith("length")
    assert (loss.record, loss.offset) == (number, start)
    assert loss.stop == (None if last and compression != "none" else stop)
    wrong = "a length that matches its CRC" if region.startswith("length") else "data that matches its CRC"
    assert (
        str(loss.problem) == f"{path}: record {number} at byte {start:,}: expected {wrong}, got other bytes"
    )
    assert found.integrity.bytes_lost == (None if loss.stop is None else STEP)
    behind = COUNT - 1 - number if region.startswith("length") else 0
    assert (found.integrity.records, found.integrity.recovered) == (COUNT - 1 - behind, behind)
    done = repair(path, tmp_path / "saved")
    assert [one.data for one in scan(tmp_path / "saved/x.tfrecord")] == RECORDS[:number] + RECORDS[
        number + 1 :
    ]
    assert file_types.compression_of(tmp_path / "saved/x.tfrecord") == compression
    assert (done.files[0].shard.records, done.manifest) == (COUNT - 1, None)


SCHEMA = rs.Schema.loads("schema: s\nfeatures: {id: int64, kind: {kind: label, names: [a, b]}}")


@pytest.fixture
def data(tmp_path) -> Path:
    """A dataset of two splits, two shards each."""
    rows = [{"id": index, "kind": index % 2} for index in range(1000)]
    rs.write(rows, SCHEMA, tmp_path / "data", split={"train": 0.8, "test": 0.2}, shards=2, key="id")
    return tmp_path / "data"


def told(data: Path) -> dict[str, list[str]]:
    """Of each file that is not whole what is wrong; not the hash of a shard, which is if anything is."""
    return {
        Path(one.file).name: [
            _short(one, problem)
            for problem in one.problems
            if "sha256" not in problem.expected or not one.integrity
        ]
        + [_short(one, loss.problem) for loss in (one.integrity.losses if one.integrity else ())]
        for one in verify(data)
        if not one.intact
    }


def _short(one: VerifiedFile, problem: rs.errors.Problem) -> str:
    assert problem.where.startswith(one.file)
    return str(problem).removeprefix(f"{one.file}: ")


def shards(data: Path) -> list[Path]:
    return sorted(data.glob("*.tfrecord"))


def test_a_dataset_as_it_was_written_is_whole(data):
    found = list(verify(data))
    assert [Path(one.file) for one in found] == shards(data)
    assert all(one.intact for one in found)
    assert sum(one.integrity.records for one in found) == 1000


def test_what_the_manifest_says_otherwise_is_told(data):
    test0, test1, train0, train1 = shards(data)
    test0.unlink()
    records = tfrecord.count(test1)
    stop = [record.stop for record in scan(test1)][-2]
    size = test1.stat().st_size
    test1.write_bytes(test1.read_bytes()[:stop])  # cut between two records
    train0.write_bytes(flipped(train0.read_bytes(), 5))
    extra = data / "train-00002-of-00003.tfrecord"
    shutil.copy(train1, extra)
    (data / "schema.yaml").write_text("schema: s\nfeatures: {id: int64}")
    (data / "keys.bin").unlink()
    fingerprint = Manifest.load(data).fingerprint
    assert told(data) == {
        test0.name: ["expected a shard that the manifest names, got no file"],
        test1.name: [
            f"expected {size:,} bytes, as the manifest says, got {stop:,}",
            f"expected {records} records, as the manifest says, got {records - 1}",
        ],
        train0.name: ["record 0 at byte 0: expected a length that matches its CRC, got other bytes"],
        extra.name: ["expected shards that the manifest names, got another one (move it to another folder)"],
        "schema.yaml": [
            f"expected the schema of fingerprint {fingerprint}, as the manifest says, got one of "
            f"{rs.Schema.load(data / 'schema.yaml').fingerprint}"
        ],
        "keys.bin": [f"expected sha256 {Manifest.load(data).keys_sha256}, as the manifest says, got no file"],
    }
    lost = {Path(one.file).name: one.integrity.rows_lost for one in verify(data) if one.integrity}
    rows = {shard.file: shard.rows for many in Manifest.load(data).splits.values() for shard in many}
    assert lost == {test1.name: 1, train0.name: rows[train0.name], train1.name: 0, extra.name: 0}


def test_another_content_of_the_same_size_is_told_by_its_hash(data):
    first, *_ = shards(data)
    records = [record.data for record in scan(first)]
    first.write_bytes(b"".join(map(frame, records[::-1])))
    (wrong,) = [one for one in verify(data) if not one.intact]
    (problem,) = wrong.problems
    assert problem.expected.startswith("sha256 ")
    assert problem.expected.endswith(", as the manifest says")
    assert wrong.integrity.records == len(records)


@pytest.mark.parametrize(("layout", "rows", "needed"), [("rows", 41, 41), ({"blocks": 8}, 41, 6)])
def test_rows_that_the_records_do_not_hold_are_told(tmp_path, layout, rows, needed):
    given = [{"id": index, "kind": 0} for index in range(40)]
    rs.write(given, SCHEMA, tmp_path / "data", shards=1, layout=layout, key=None, progress=False)
    path = tmp_path / "data/manifest.json"
    text = path.read_text()
    path.write_text(sealed(json.loads(text.replace('"rows": 40', f'"rows": {rows}'))))
    (found,) = verify(tmp_path / "data")
    (problem,) = found.problems
    records = 40 if layout == "rows" else 5
    assert str(problem) == (
        f"{found.file}: expected {needed} records of 41 rows, as the manifest says, got {records}, by the same manifest"
    )
    path.write_text(text)
    assert all(one.intact for one in verify(tmp_path / "data"))


def test_a_manifest_that_cannot_be_read_is_told(data):
    (data / "manifest.json").write_text("{")
    assert list(told(data)) == ["manifest.json"]


def test_of_many_losses_the_first_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_LISTED", 10)
    path = tmp_path / "x"
    path.write_bytes(flipped(frame(b"a"), 12) * 100)
    (found,) = verify(path)
    assert (len(found.integrity.losses), found.integrity.lost, found.integrity.bytes_lost) == (10, 100, 1700)
    assert found.integrity.dump()["not listed"] == 90


def test_a_repaired_dataset_is_a_dataset(data, tmp_path):
    first, second, third, _ = shards(data)
    first.write_bytes(flipped(first.read_bytes(), 100))
    second.unlink()
    third.write_bytes(flipped(third.read_bytes(), 2))
    done = repair(data, tmp_path / "saved")
    assert all(one.intact for one in verify(tmp_path / "saved"))
    old, new = Manifest.load(data), Manifest.load(tmp_path / "saved")
    assert new == done.manifest
    assert new.rows("train") == old.rows("train") - 1
    assert new.rows("test") == old.splits["test"][0].rows - 1
    assert dict(new.label_counts) == {}
    row = next(iter(saved := rs.open(tmp_path / "saved")))
    assert saved.by_key(int(row["id"])) == row
    assert len(list(rs.read(expand(tmp_path / "saved"), SCHEMA))) == new.rows("train") + new.rows("test")
    assert rs.Schema.load(tmp_path / "saved/schema.yaml").fingerprint == SCHEMA.fingerprint
    report = json.loads((tmp_path / "saved/repair.json").read_text())
    assert report == done.report()
    assert [(one["shard"], one["rows lost"]) for one in report["files"]] == [(first.name, 1), (third.name, 1), (shards(data)[-1].name, 0)]  # fmt: skip


def test_a_whole_dataset_stays_what_it_is(data, tmp_path):
    repair(data, tmp_path / "saved")
    names = {path.name for path in data.iterdir()}
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {*names, "repair.json"}
    for name in names:
        assert (tmp_path / "saved" / name).read_bytes() == (data / name).read_bytes()


def test_blocks_are_counted_as_far_as_records_can_be_numbered(tmp_path):
    rows = [{"id": index, "kind": 0} for index in range(1000)]
    rs.write(rows, SCHEMA, tmp_path / "data", layout={"blocks": 64})
    (path,) = shards(tmp_path / "data")
    offsets = [record.offset for record in scan(path)]
    whole = path.read_bytes()
    path.write_bytes(flipped(whole, offsets[-1] + 20))
    done = repair(path, tmp_path / "saved")
    assert done.manifest.rows("train") == 1000 - 1000 % 64
    path.write_bytes(flipped(whole, offsets[3] + 20))
    assert repair(path, tmp_path / "saved", force=True).manifest.rows("train") == 1000 - 64
    path.write_bytes(flipped(whole, offsets[3]))
    done = repair(path, tmp_path / "saved", force=True)
    note = f"no manifest: the number of rows saved of {path.name} is unknown"
    assert (done.manifest, done.note) == (None, note)
    assert done.files[0].integrity.saved == len(offsets) - 1


def test_a_file_that_cannot_be_read_is_told_and_the_others_are_read(data, monkeypatch):
    first, second, _, fourth = shards(data)
    first.unlink()
    first.mkdir()
    real = module.rescue

    def failing(path, file, start):
        if path == second:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(path, file, start)

    monkeypatch.setattr(module, "rescue", failing)
    fourth.write_bytes(flipped(fourth.read_bytes(), 20))
    assert told(data) == {
        first.name: ["cannot read: is a directory"],
        second.name: ["cannot read: input/output error"],
        fourth.name: ["record 0 at byte 0: expected data that matches its CRC, got other bytes"],
    }
    with pytest.raises(StoreError, match="cannot read: is a directory"):
        repair(data, data.parent / "saved")


def test_any_number_of_processes_finds_the_same(data):
    first, second, _, fourth = shards(data)
    first.write_bytes(flipped(first.read_bytes(), 20))
    second.unlink()
    fourth.rename(data / "gone")
    fourth.symlink_to(data / "nowhere")
    found = {jobs: list(verify(data, jobs=jobs)) for jobs in (1, 2, None)}
    problems = {
        jobs: [(one.file, one.unreadable, list(map(str, one.problems)), one.integrity) for one in files]
        for jobs, files in found.items()
    }
    assert problems[1] == problems[2] == problems[None]
    assert sum(not one.intact for one in found[1]) >= 3


def test_shards_that_names_announce_are_named_without_a_manifest(data):
    (data / "manifest.json").unlink()
    test0, _, train0, train1 = shards(data)
    test0.unlink()
    train0.rename(stray := data / "train-00003-of-00010.tfrecord")
    listed = "(files that are listed one by one are taken as they are)"
    pattern = "(to read only some, give a pattern such as 'train-*-of-00002*')"
    assert told(data) == {
        "test-*-of-00002.tfrecord": [f"expected 2 shards, got 1; 1 of 2 missing: 00000 {listed}"],
        "train-*-of-00002.tfrecord": [f"expected 2 shards, got 1; 1 of 2 missing: 00000 {listed}"],
        stray.name: [f"expected shards of 2, as train-*-of-00002, got one of 10 {pattern}"],
    }
    assert told(f"{data}/train-00001*") == {}
    assert told([train1, stray]) == {}
    for command in ("count", "verify", "head"):
        done = run(command, data)
        assert done.returncode == 1
    assert done.stderr.splitlines()[0] == (
        f"{data}/test-*-of-00002.tfrecord: expected 2 shards, got 1; 1 of 2 missing: 00000 {listed}"
    )
    assert len(repair(data, data.with_name("saved")).files) == 3


def test_a_record_that_tensorflow_cannot_read_is_bad(tmp_path, monkeypatch):
    monkeypatch.setattr(tfrecord, "LARGEST_RECORD", 5 << 20)
    path = tmp_path / "x.tfrecord"
    path.write_bytes(frame(b"a") + frame(bytes(6 << 20)) + frame(b"b"))
    (found,) = verify(path)
    assert (found.intact, found.integrity.records, found.integrity.corrupt, found.integrity.rows_lost) == (
        False,
        2,
        1,
        None,
    )
    (loss,) = found.integrity.losses
    expected = "a record of at most 2,147,483,647 bytes, the most that TensorFlow reads"
    assert str(loss.problem) == f"{path}: record 1 at byte 17: expected {expected}, got 6,291,456 bytes"
    repair(path, tmp_path / "saved")
    assert [one.data for one in scan(tmp_path / "saved/x.tfrecord")] == [b"a", b"b"]
