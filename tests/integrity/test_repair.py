"""What a repair publishes is whole, and says no more than is known, whatever was wrong before."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordspec as rs
from examples import sealed
from frames_by_hand import frame
from recordspec import RecordError, SpecError, StoreError
from recordspec.integrity.repair import RepairReport, repair
from recordspec.integrity.verify import FileIntegrity, verify
from recordspec.store.dataset import StoredDataset
from recordspec.store.scan import Scanner
from recordspec.store.shard_file import ShardFile
from recordspec.store.sidecars import add_sidecars
from recordspec.wire.compression import CODECS
from recordspec.wire.tfrecord import scan

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {id: int64, kind: {kind: label, names: [a, b]}}")
SHARD = "train-00000-of-00002.tfrecord"


def written(folder: Path, **options: Any) -> Path:
    """A dataset of two shards of 100 rows."""
    rows = [{"id": index, "kind": "ab"[index % 2]} for index in range(200)]
    rs.write(rows, SCHEMA, folder / "data", split="train", shards=2, progress=False, **options)
    return folder / "data"


def edit(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Another order or number of the records of a file, each of them whole."""
    path.write_bytes(b"".join(map(frame, change([record.data for record in scan(path)]))))


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def say(data: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Changes what the manifest says."""
    manifest = json.loads((data / "manifest.json").read_text())
    change(manifest)
    (data / "manifest.json").write_text(sealed(manifest))


def integrity_of(data: Path) -> FileIntegrity:
    """What is read of the first shard."""
    return verify(data)[0].integrity


def repaired(data: Path) -> RepairReport:
    """What comes of a repair, which is whole in any case."""
    saved = data.parent / "saved"
    done = repair(data, saved, force=True)
    assert [one.problems for one in verify(saved) if not one.intact] == []
    assert (done.manifest is not None) == (saved / "manifest.json").exists()
    return done


OTHERS = {
    "doubled": lambda records: records * 2,
    "one more": lambda records: [records[0], *records],
    "the first is gone": lambda records: records[1:],
    "the last is gone": lambda records: records[:-1],
    "the last comes first": lambda records: [records[-1], *records[:-1]],
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_nobody_knows_the_rows_of_other_blocks(tmp_path, change):
    data = written(tmp_path, layout={"blocks": 16})
    edit(data / SHARD, change)
    found = integrity_of(data)
    assert found.rows_lost == (0 if found.records == 7 else None)
    done = repaired(data)
    assert (done.manifest, done.note) == (
        None,
        f"no manifest: the number of rows saved of {SHARD} is unknown",
    )
    assert [one.rows_lost for one in done.files] == [None, 0]


def test_of_blocks_behind_a_bad_length_nobody_knows_the_rows(tmp_path):
    data = written(tmp_path, layout={"blocks": 16})
    second = [record.offset for record in scan(data / SHARD)][1]
    flip(data / SHARD, second)
    assert integrity_of(data).rows_lost == 84
    assert [one.rows_lost for one in repaired(data).files] == [None, 0]


def test_of_blocks_of_which_none_is_left_all_rows_are_lost(tmp_path):
    data = written(tmp_path, layout={"blocks": 16})
    (data / SHARD).write_bytes(b"")
    assert integrity_of(data).rows_lost == 100
    done = repaired(data)
    assert [one.rows_lost for one in done.files] == [100, 0]
    assert done.manifest.rows("train") == 100


def test_more_rows_than_the_manifest_counts_are_no_loss(tmp_path):
    data = written(tmp_path)
    say(data, lambda manifest: manifest["splits"]["train"][0].update(rows=7, records=7))
    done = repaired(data)
    assert [one.rows_lost for one in done.files] == [0, 0]
    assert done.manifest.rows("train") == 200
    flip(data / SHARD, 20)
    assert [one.rows_lost for one in repaired(data).files] == [1, 0]


def test_rows_that_no_records_hold_are_not_taken_over(tmp_path):
    data = written(tmp_path)
    say(data, lambda manifest: manifest.update(block=64))
    done = repaired(data)
    assert (done.manifest, done.note) == (
        None,
        f"no manifest: the number of rows saved of {SHARD} is unknown",
    )
    assert [one.rows_lost for one in done.files] == [None, None]


def full(folder: Path) -> Path:
    """A dataset with all that may lie beside the shards of one."""
    data = written(folder, key="id")
    add_sidecars(data, {"labels.txt": "a\nb\n"})
    (data / "rejects.jsonl").write_text("{}\n")
    say(data, lambda manifest: manifest.update(rejected=1))
    return data


def test_what_is_as_it_was_written_is_taken_over_byte_for_byte(tmp_path):
    data = full(tmp_path)
    (data / "schema.yaml").write_bytes((data / "schema.yaml").read_bytes().replace(b"\n", b"\r\n"))
    done = repaired(data)
    assert (done.manifest, done.note) == (rs.Manifest.load(data), "")
    for path in data.iterdir():
        if path.name != "manifest.json":
            assert (tmp_path / "saved" / path.name).read_bytes() == path.read_bytes()


def test_a_full_disk_names_the_shard(tmp_path, monkeypatch):
    data = written(tmp_path)

    def fail(self, frames):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(ShardFile, "_put", fail)
    with pytest.raises(rs.StoreError) as caught:
        repaired(data)
    shard = next(path.name for path in sorted(data.glob("*.tfrecord")))
    reason = "no space left on device (nothing was published)"
    assert str(caught.value) == f"{tmp_path}/saved: cannot write {shard}: {reason}"
    assert os.listdir(tmp_path) == ["data"]


def test_what_is_said_of_all_rows_is_not_said_of_others(tmp_path):
    data = full(tmp_path)
    edit(data / SHARD, lambda records: [records[1], *records[1:]])  # each whole, and as many
    done = repaired(data)
    assert done.manifest.rows("train") == 200
    assert (done.manifest.keys_sha256, done.manifest.label_counts, done.manifest.beside) == (None, {}, {})
    assert not {"keys.bin", "labels.txt"} & {path.name for path in (tmp_path / "saved").iterdir()}


def test_what_is_said_of_a_split_is_said_as_long_as_its_rows_are_all_there(tmp_path):
    rows = [{"id": index, "kind": index % 2} for index in range(200)]
    rs.write(rows, SCHEMA, tmp_path / "data", split={"a": 0.5, "b": 0.5}, key="id", progress=False)
    old = rs.Manifest.load(tmp_path / "data")
    flip(tmp_path / "data" / old.splits["a"][0].file, 20)
    new = repaired(tmp_path / "data").manifest
    assert new.label_counts == {"b": old.label_counts["b"]}


SECOND = "train-00001-of-00002.tfrecord"
# What happens to the files of a dataset, and whether the keys of the rows that are left are known afterwards.
KEYED: dict[str, tuple[Callable[[Path], Any], bool]] = {
    "a record": (lambda data: flip(data / SHARD, 20), True),
    "a length": (lambda data: flip(data / SHARD, [*scan(data / SHARD)][3].offset), True),
    "both files": (lambda data: [flip(data / SHARD, 20), flip(data / SECOND, 20)], True),
    "cut": (lambda data: os.truncate(data / SHARD, (data / SHARD).stat().st_size // 2), True),
    "empty": (lambda data: os.truncate(data / SHARD, 0), True),
    "gone": (lambda data: (data / SHARD).unlink(), True),
    "another order": (lambda data: edit(data / SHARD, lambda records: records[::-1]), True),
    "a row twice": (lambda data: edit(data / SHARD, lambda records: [records[1], *records[1:]]), False),
    "rows of another": (lambda data: shutil.copyfile(data / SECOND, data / SHARD), False),
    "no schema": (lambda data: [flip(data / SHARD, 20), (data / "schema.yaml").unlink()], False),
}


@pytest.mark.parametrize(("damage", "known"), KEYED.values(), ids=KEYED)
@pytest.mark.parametrize("options", [{}, {"layout": {"blocks": 16}}], ids=str)
@pytest.mark.parametrize("key", ["id", ["kind", "id"]], ids=str)
def test_rows_that_are_left_are_found_by_their_keys(tmp_path, damage, known, options, key):
    data = written(tmp_path, key=key, **options)
    damage(data)
    done = repaired(data)
    if done.manifest is None or not known:
        assert done.manifest is None or done.manifest.keys_sha256 is None
        assert not (tmp_path / "saved/keys.bin").exists()
        return
    rows = rs.open(tmp_path / "saved")
    left = {int(row["id"]) for row in rows}
    assert (len(left), done.manifest.keys_sha256 is None) == (len(rows), False)
    for index in range(200):
        name = index if key == "id" else (["a", "b"][index % 2], index)
        if index in left:
            assert int(rows.by_key(name)["id"]) == index
        else:
            with pytest.raises(KeyError):
                rows.by_key(name)
    lost = [{"id": index, "kind": "ab"[index % 2]} for index in range(200) if index not in left]
    append = partial(
        rs.write,
        schema=SCHEMA,
        directory=tmp_path / "saved",
        split="train",
        append=True,
        key=key,
        progress=False,
        **options,
    )
    assert append(rows=lost, allow_empty=True).rows("train") == 200
    with pytest.raises(RecordError, match="a key that no other row has"):
        append(rows=[{"id": 7, "kind": "b"}])


def test_a_key_that_is_no_feature_is_unknown_for_files_that_changed(tmp_path):
    rows = [{"name": f"r{index}", "id": index, "kind": index % 2} for index in range(200)]
    data = tmp_path / "data"
    rs.write(rows, SCHEMA, data, split="train", shards=2, key="name", progress=False)
    (data / SECOND).unlink()
    assert repaired(data).manifest.keys_sha256 is not None
    assert {int(rs.open(tmp_path / "saved").by_key(f"r{index}")["id"]) - index for index in range(100)} == {0}
    flip(data / SHARD, 20)
    done = repaired(data)
    assert done.manifest.keys_sha256 is None
    assert "has rows whose keys are unknown: the dataset has no unique keys any more" in done.note


DAMAGES = {
    "keys flipped": (lambda data: flip(data / "keys.bin", 5), ["keys.bin"]),
    "keys gone": (lambda data: (data / "keys.bin").unlink(), ["keys.bin"]),
    "keys a folder": (lambda data: folder_at(data / "keys.bin"), ["keys.bin"]),
    "schema gone": (lambda data: (data / "schema.yaml").unlink(), ["schema.yaml"]),
    "schema a folder": (lambda data: folder_at(data / "schema.yaml"), ["schema.yaml"]),
    "schema zeroed": (lambda data: (data / "schema.yaml").write_bytes(bytes(99)), ["schema.yaml"]),
    "schema no text": (lambda data: (data / "schema.yaml").write_bytes(b"# \xff"), ["schema.yaml"]),
    "another schema": (lambda data: (data / "schema.yaml").write_text("schema: s\nfeatures: {id: int64}"), ["schema.yaml"]),
    "rejects gone": (lambda data: (data / "rejects.jsonl").unlink(), ["rejects.jsonl"]),
    "beside gone": (lambda data: (data / "labels.txt").unlink(), ["labels.txt"]),
    "beside changed": (lambda data: (data / "labels.txt").write_text("a\nc\n"), ["labels.txt"]),
    "two gone": (lambda data: [(data / name).unlink() for name in ("keys.bin", "labels.txt")], ["keys.bin", "labels.txt"]),
    "another compression": (lambda data: say(data, lambda manifest: manifest.update(compression="gzip")), []),
}  # fmt: skip


def folder_at(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(("damage", "left_out"), DAMAGES.values(), ids=DAMAGES)
def test_what_is_not_as_it_was_written_is_left_out(tmp_path, damage, left_out):
    data = full(tmp_path)
    damage(data)
    assert not all(one.intact for one in verify(data))
    done = repaired(data)
    assert done.note == f"left out, as they may have changed: {', '.join(left_out)}" * bool(left_out)
    assert not {*left_out} & {path.name for path in (tmp_path / "saved").iterdir()}
    report = json.loads((tmp_path / "saved/repair.json").read_text())
    assert {Path(one["file"]).name for one in report["left out"]} == {*left_out}
    assert len(list(rs.read(tmp_path / "saved", SCHEMA))) == 200
    repair(tmp_path / "saved", tmp_path / "again")


def test_shards_that_are_missing_are_told(tmp_path):
    data = full(tmp_path)
    (data / SHARD).unlink()
    done = repaired(data)
    assert (done.missing, done.note) == ((SHARD,), f"missing: {SHARD}")
    assert json.loads((tmp_path / "saved/repair.json").read_text())["missing"] == [SHARD]
    assert done.manifest.rows("train") == 100
    (data / "manifest.json").rename(tmp_path / "manifest.json")
    saved = tmp_path / "saved"
    note = "no manifest: the files have none beside them that can be read"
    assert repair(data, saved, force=True).note == note
    (problem,) = (problem for one in verify(saved) for problem in one.problems)
    got = f"1; 1 of 2 missing: 0000{SHARD[10]}"
    assert (problem.where, problem.got) == (f"{saved}/train-v2-*-of-00002.tfrecord", got)


def test_a_repair_that_replaces_a_dataset_gives_its_shards_other_names(tmp_path):
    """One that still reads the old dataset finds its shards gone, and never reads the new ones."""
    data = full(tmp_path)
    shutil.copytree(data, tmp_path / "saved")
    for version in (2, 3):
        done = repaired(data)
        names = {f"train-v{version}-{shard:05d}-of-00002.tfrecord" for shard in range(2)}
        assert rs.Manifest.load(tmp_path / "saved").files == names == done.manifest.files
        assert done.manifest.rows("train") == 200
        assert done.manifest.keys_sha256 == rs.Manifest.load(data).keys_sha256
        assert done.manifest.beside == {}  # files of other readers name the shards
    (tmp_path / "saved/manifest.json").unlink()
    splits = Scanner.of_rows(StoredDataset.of(str(tmp_path / "saved"))).dataset.splits
    assert splits == {tmp_path / "saved" / name: "train" for name in names}


def test_many_missing_shards_are_told_in_a_line(tmp_path):
    rows = [{"id": index, "kind": 0} for index in range(6)]
    rs.write(rows, SCHEMA, tmp_path / "data", shards=6, progress=False)
    for path in sorted((tmp_path / "data").glob("*.tfrecord"))[1:]:
        path.unlink()
    names = [f"train-0000{index}-of-00006.tfrecord" for index in (1, 2, 3)]
    assert repaired(tmp_path / "data").note == f"missing: {', '.join(names)} and 2 more"


def test_a_manifest_that_says_another_compression_is_told(tmp_path):
    data = written(tmp_path)
    say(data, lambda manifest: manifest.update(compression="gzip"))
    problems = [str(problem) for one in verify(data) for problem in one.problems]
    says = "expected compression gzip, as the manifest says, got none"
    assert problems == [f"{path}: {says}" for path in sorted(data.glob("*.tfrecord"))]


def test_a_shard_with_a_bad_start_stays_compressed_as_its_manifest_says(tmp_path):
    data = written(tmp_path, compression="zlib")
    flip(data / f"{SHARD}.zlib", 0)
    assert integrity_of(data).losses[0].offset == 0
    assert [one.rows_lost for one in repaired(data).files] == [100, 0]


def test_a_name_that_is_no_text_is_saved_under_it(tmp_path):
    path = tmp_path / os.fsdecode(b"\xff.tfrecord")
    path.write_bytes(frame(b"a"))
    for _ in range(2):
        repair(path, tmp_path / "saved", force=True)
    assert (tmp_path / "saved" / path.name).read_bytes() == frame(b"a")


def test_a_repair_that_saves_nothing_publishes_nothing(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("a,b\n" + "1,2\n" * 100)
    with pytest.raises(RecordError) as caught:
        repair(path, tmp_path / "saved")
    assert str(caught.value) == (
        f"{path}: expected a TFRecord file, got text that begins 'a,b\\n1,2\\n1,2\\n1,2\\n1,2\\n1,2\\n' "
        "(nothing can be saved)"
    )
    assert [one.name for one in tmp_path.iterdir()] == ["rows.txt"]


def test_a_repair_replaces_an_earlier_one_and_nothing_else(tmp_path):
    path, saved = tmp_path / "x.tfrecord", tmp_path / "saved"
    path.write_bytes(frame(b"a"))
    repair(path, saved)
    with pytest.raises(StoreError, match="exists: force=True"):
        repair(path, saved)
    repair(path, saved, force=True)
    (saved / "notes.txt").touch()
    with pytest.raises(StoreError, match="which does not belong to a dataset: move it elsewhere first"):
        repair(path, saved, force=True)


def test_a_repair_in_place_is_refused(tmp_path):
    path = tmp_path / "x.tfrecord"
    path.write_bytes(frame(b"a"))
    with pytest.raises(SpecError) as caught:
        repair(path, tmp_path, force=True)
    assert str(caught.value) == f"directory: expected another folder than that of the files, got {tmp_path}"
    (tmp_path / "other").mkdir()
    shutil.copy(path, tmp_path / "other")
    with pytest.raises(SpecError) as caught:
        repair([path, tmp_path / "other/x.tfrecord"], tmp_path / "saved")
    assert str(caught.value) == "files: expected files of different names, got 2 `x.tfrecord`"
    assert path.read_bytes() == frame(b"a")


def test_a_stream_is_repaired_as_far_as_it_inflates(tmp_path):
    path = tmp_path / "x.gz"
    noise = np.random.default_rng(0)
    records = [noise.bytes(100) for _ in range(1000)]
    stream = CODECS["gzip"].compressor()
    data = bytes(stream.compress(b"".join(map(frame, records)))) + stream.flush()
    path.write_bytes(data[: len(data) // 2])
    saved = repair(path, tmp_path / "saved").files[0].integrity.saved
    assert 490 < saved < 500
    assert [record.data for record in scan(tmp_path / "saved/x.gz")] == records[:saved]
