"""Files of another writer, made by hand, become a dataset; they are never changed, replaced or deleted."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

import recordspec as rs
from fields_by_hand import packed, sized
from frames_by_hand import frame, masked
from recordspec import RecordError, SpecError, StoreError
from recordspec.integrity.verify import verify
from recordspec.store.index import of_dataset
from recordspec.writing import adopt as module
from shell import run_here as run

SCHEMA = rs.Schema.loads("""
schema: flowers
features:
  x: {dtype: float32, shape: [2], key: measures}
  label: {kind: label, names: [iris, rose], key: class}
""")
CONFIG = """
schema: flowers.yaml
data: {data}
read: {{batch: 4}}
fit: {{inputs: x, targets: label, encode: {{x: normalize}}}}
"""


def example(x: Iterable[float], label: int) -> bytes:
    """A `tf.train.Example`, of its fields."""
    kinds = {"measures": (2, packed("float32", *x)), "class": (3, packed("int64", label))}
    entries = [sized(1, sized(1, key.encode()), sized(2, sized(*kind))) for key, kind in kinds.items()]
    return sized(1, *entries)


def rows(start: int, stop: int) -> list[bytes]:
    return [example([number, number / 2], number % 2) for number in range(start, stop)]


def put(path: Path, records: Iterable[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(frame, records)))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def theirs(tmp_path) -> Path:
    """A folder of 3 files of 30 rows, without a manifest."""
    put(tmp_path / "theirs/train_0.tfrecord", rows(0, 10))
    put(tmp_path / "theirs/train_1.tfrecord", rows(10, 22))
    put(tmp_path / "theirs/test_0.tfrecord", rows(22, 30))
    (tmp_path / "theirs/README").write_text("collected by others")
    (tmp_path / "flowers.yaml").write_text(SCHEMA.dump())
    return tmp_path / "theirs"


def test_a_manifest_beside_files(theirs):
    before = contents(theirs)
    manifest = rs.adopt(theirs, SCHEMA)
    after = contents(theirs)
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() == {"manifest.json", "index.bin", "schema.yaml"}
    assert manifest == rs.Manifest.load(theirs)
    assert (manifest.adopted, manifest.compression, manifest.block) == ("files", "none", None)
    assert manifest.labels == {"label": ("iris", "rose")}
    counts = {
        split: [(shard.file, shard.rows, shard.records, shard.bytes) for shard in shards]
        for split, shards in manifest.splits.items()
    }
    assert counts == {
        "train": [
            ("train_0.tfrecord", 10, 10, len(before["train_0.tfrecord"])),
            ("train_1.tfrecord", 12, 12, len(before["train_1.tfrecord"])),
        ],
        "test": [("test_0.tfrecord", 8, 8, len(before["test_0.tfrecord"]))],
    }
    # of each record the length and the CRCs, and no data
    for shard in manifest.all_shards:
        data, words, at = before[shard.file], [], 0
        while at < len(data):
            stop = at + 12 + int.from_bytes(data[at : at + 8], "little")
            words.append(data[at : at + 12] + data[stop : stop + 4])
            at = stop + 4
        assert (shard.sha256, shard.frames_sha256) == ("", hashlib.sha256(b"".join(words)).hexdigest())
    offsets = of_dataset(theirs, manifest)["train_1.tfrecord"]
    assert offsets.records == 12
    assert rs.Schema.load(str(theirs / "schema.yaml")) == SCHEMA


def test_a_folder_of_links(theirs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = contents(theirs)
    manifest = rs.adopt(["theirs/train_1.tfrecord", str(theirs / "test_0.tfrecord")], SCHEMA, "data/flowers")
    assert contents(theirs) == before
    data = tmp_path / "data/flowers"
    links = {path.name: os.readlink(path) for path in data.iterdir() if path.is_symlink()}
    assert links == {
        "train_1.tfrecord": "../../theirs/train_1.tfrecord",
        "test_0.tfrecord": str(theirs / "test_0.tfrecord"),
    }
    assert (manifest.adopted, {split: manifest.rows(split) for split in manifest.splits}) == (
        "links",
        {"train": 12, "test": 8},
    )
    assert all(file.intact for file in verify(data))
    (tmp_path / "data/flowers").rename(tmp_path / "data/moved")
    assert all(file.intact for file in verify(tmp_path / "data/moved"))


def test_files_of_one_name_in_folders_of_splits(tmp_path):
    for split, (start, stop) in {"train": (0, 6), "validation": (6, 9)}.items():
        put(tmp_path / f"theirs/{split}/part-00000", rows(start, stop))
    with pytest.raises(SpecError) as error:
        rs.adopt(tmp_path / "theirs", SCHEMA)
    folders = [tmp_path / "theirs" / split for split in ("train", "validation")]
    assert str(error.value) == (
        f"files: expected files in one folder, got {folders[0]} and {folders[1]}"
        " (out=FOLDER, or --out, makes a folder of links to them)"
    )
    manifest = rs.adopt(tmp_path / "theirs", SCHEMA, tmp_path / "data")
    assert {split: [one.file for one in shards] for split, shards in manifest.splits.items()} == {
        "train": ["train-part-00000"],
        "validation": ["validation-part-00000"],
    }
    for place in ("a/x", "b/x"):  # the names of the folders do not tell them apart either
        put(tmp_path / place / "part-00000", rows(0, 1))
    pattern = str(tmp_path / "[ab]/x/part-*")
    manifest = rs.adopt(pattern, SCHEMA, tmp_path / "numbered")
    assert sorted(manifest.files) == ["00000-part-00000", "00001-part-00000"]
    assert list(manifest.splits) == ["train"]


def test_splits(theirs, tmp_path):
    splits = {"validation": theirs / "test_0.tfrecord", "train": [theirs / "train_*"]}
    manifest = rs.adopt(splits, SCHEMA, tmp_path / "given")
    assert {split: manifest.rows(split) for split in manifest.splits} == {"train": 22, "validation": 8}
    alone = rs.adopt(theirs / "test_0.tfrecord", SCHEMA, tmp_path / "test")
    assert list(alone.splits) == ["train"]  # as of `reshard`: the names tell no several splits apart
    with pytest.raises(SpecError) as error:
        rs.adopt({"a": theirs / "train*", "b": theirs / "*_0.tfrecord"}, SCHEMA, tmp_path / "twice")
    assert str(error.value) == (
        f"files.a: expected a file of one split, got {theirs / 'train_0.tfrecord'}, which is in another split, too"
    )
    for number in range(2):
        (theirs / f"train_{number}.tfrecord").rename(theirs / f"trips-{number:05}-of-00002.tfrecord")
    named = rs.adopt(theirs / "trips-*", SCHEMA, tmp_path / "named")
    assert list(named.splits) == ["train"]  # the name of the data is that of no split


@pytest.mark.parametrize("where", ["files", "links"])
def test_a_config_trains_on_it(theirs, tmp_path, where):
    tf = pytest.importorskip("tensorflow")
    data = theirs if where == "files" else tmp_path / "links"
    rs.adopt(str(theirs / "*.tfrecord"), SCHEMA, None if where == "files" else data)
    (tmp_path / "config.yaml").write_text(CONFIG.format(data=data))
    pipeline = rs.Pipeline.load(tmp_path / "config.yaml")
    mean = np.mean([[number, number / 2] for number in range(22)], axis=0)
    np.testing.assert_allclose(pipeline.layers()["x"].mean.numpy().ravel(), mean, rtol=1e-6)
    assert (data / "layers.json").exists()
    batches = [*pipeline.dataset("train")]
    assert (len(batches), pipeline.steps("train")) == (6, 6)
    assert np.concatenate([labels for _, labels in batches]).tolist() == [number % 2 for number in range(22)]
    # a resumed pass, in the order of files and in a global one
    for shuffle in (None, {"global": True, "seed": 3}):
        every = [inputs.numpy().tolist() for inputs, _ in pipeline.dataset("train", shuffle=shuffle)]
        start = pipeline.position(epoch=0, step=2, shuffle=shuffle)
        rest = pipeline.dataset("train", shuffle=shuffle, start=start)
        assert [inputs.numpy().tolist() for inputs, _ in rest] == every[2:]
    rows_of_split = pipeline.open("train")
    assert rows_of_split[21]["x"].tolist() == [21, 10.5]
    step = pipeline.which(epoch=0, step=1, shuffle={"global": True, "seed": 3})
    assert len(step) == 4
    with pytest.raises(StoreError) as error:
        pipeline.class_weights("train")
    assert str(error.value) == (
        f"{data}: feature: expected the rows of every class of `label` in the manifest, got none"
        " (build the dataset again, or count them in adopted files: `recordspec adopt --check`)"
    )
    del tf


def test_commands_read_it(theirs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("adopt", "theirs", "--schema", "flowers.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"split": "train", "files": 2, "rows": 22, "bytes": 1320},
        {"split": "test", "files": 1, "rows": 8, "bytes": 480},
    ]
    assert json.loads(run("info", "theirs", "--json").stdout)["manifest"]["adopted"] == "files"
    for command in (
        ["verify", "theirs"],
        ["check", "theirs", "--schema", "flowers.yaml"],
        ["count", "theirs"],
        ["head", "theirs", "-n", "1"],
        ["show", "theirs", "29"],
        ["stats", "theirs"],
        ["index", "theirs"],
        ["export", "theirs", "--out", "flowers.jsonl"],
        ["repair", "theirs", "--out", "repaired"],
        ["reshard", "theirs", "resharded", "--shards", "2"],
        ["verify", "repaired", "resharded"],
    ):
        done = run(*command)
        assert done.returncode == 0, (command, done.stderr)
    exported = [json.loads(line) for line in (tmp_path / "flowers.jsonl").read_text().splitlines()]
    assert sorted(row["x"][0] for row in exported) == [*range(30)]
    for copy in ("repaired", "resharded"):
        manifest = rs.Manifest.load(copy)
        assert manifest.adopted == ""
        assert all(shard.sha256 and not shard.frames_sha256 for shard in manifest.all_shards)
        assert {split: manifest.rows(split) for split in manifest.splits} == {"train": 22, "test": 8}


def test_rows_are_added_to_a_copy_in_the_splits_that_they_name(theirs, tmp_path, monkeypatch):
    """No hash gave the rows their splits, so that none says the split of another row."""
    monkeypatch.chdir(tmp_path)
    SCHEMA.dump("s.yaml")
    assert run("reshard", "theirs", "of_files", "--schema", "s.yaml").returncode == 0
    rs.adopt(theirs, SCHEMA)
    assert run("reshard", "theirs", "of_adopted").returncode == 0
    assert run("repair", "theirs", "--out", "repaired").returncode == 0
    more = {"x": np.zeros((3, 2)), "label": ["iris"] * 3, "part": ["test", "train", "test"]}
    for copy in ("of_adopted", "of_files", "repaired"):
        with pytest.raises(StoreError, match=f"{copy}: splits: expected one split, or a column"):
            rs.write(more, SCHEMA, copy, append=True, shuffle=None, split={"train": 1, "test": 1})
        options = {"append": True, "shuffle": None}
        rs.write({**more, "part": ["-"] * 3}, SCHEMA, copy, split="test", ignore=["part"], **options)
        made = rs.write(more, SCHEMA, copy, split={"column": "part"}, **options)
        assert {split: made.rows(split) for split in made.splits} == {"train": 23, "test": 13}, copy
        assert run("verify", copy).returncode == 0


FOREIGN = (
    "`{folder}` has shards of another writer, which are not deleted:"
    " `recordspec adopt --force` writes its manifest again; build into another folder"
)
APPENDED = (
    "`{folder}` was adopted, and its shards are those of another writer:"
    " `recordspec reshard` writes a dataset to which rows can be added"
)


def test_no_build_replaces_or_deletes_the_files(theirs, tmp_path):
    (theirs / "README").unlink()
    rs.adopt(theirs, SCHEMA)
    before = contents(theirs)
    made = {"x": np.zeros((3, 2)), "label": ["iris"] * 3}
    for how, message in ({"force": True}, FOREIGN), ({"append": True}, APPENDED):
        with pytest.raises(StoreError) as error:
            rs.write(made, SCHEMA, theirs, **how)
        assert str(error.value) == message.format(folder=theirs)
    with pytest.raises(StoreError) as error:
        rs.reshard(put(tmp_path / "more/a.tfrecord", rows(0, 3)), theirs, force=True)
    assert str(error.value) == FOREIGN.format(folder=theirs)
    done = run("repair", tmp_path / "more/a.tfrecord", "--out", theirs, "--force")
    assert (done.returncode, done.stderr) == (3, FOREIGN.format(folder=theirs) + "\n")
    assert contents(theirs) == before


def test_a_build_replaces_links_and_leaves_the_files(theirs, tmp_path):
    data = tmp_path / "data"
    rs.adopt(theirs, SCHEMA, data)
    before = contents(theirs)
    made = {"x": np.zeros((3, 2)), "label": ["iris"] * 3}
    with pytest.raises(StoreError) as error:
        rs.write(made, SCHEMA, data, append=True)
    assert str(error.value) == APPENDED.format(folder=data)
    assert rs.write(made, SCHEMA, data, force=True).rows("train") == 3
    assert not any(path.is_symlink() for path in data.iterdir())
    assert contents(theirs) == before
    # a copy of the folder that follows links has files in their place
    rs.adopt(theirs, SCHEMA, tmp_path / "links")
    os.system(f"cp -rL {tmp_path}/links {tmp_path}/copy")
    with pytest.raises(StoreError) as error:
        rs.write(made, SCHEMA, tmp_path / "copy", force=True)
    assert str(error.value) == FOREIGN.format(folder=tmp_path / "copy")


def test_files_that_are_adopted_again(theirs):
    first = rs.adopt(theirs, SCHEMA)
    before = contents(theirs)
    with pytest.raises(StoreError) as error:
        rs.adopt(theirs, SCHEMA)
    assert str(error.value) == f"`{theirs}` was adopted: force=True, or --force, adopts it again"
    assert contents(theirs) == before
    put(theirs / "train_2.tfrecord", rows(30, 35))
    with pytest.raises(StoreError) as error:
        rs.read(theirs, SCHEMA, batch=2)
    assert str(error.value) == (
        f"{theirs}/train_2.tfrecord: expected shards that the manifest names, got another one "
        "(`recordspec adopt --force` adopts it, too)"
    )
    second = rs.adopt(theirs, SCHEMA, force=True)
    assert (first.rows("train"), second.rows("train")) == (22, 27)
    assert contents(theirs).keys() - before.keys() == {"train_2.tfrecord", "schema-v2.yaml", "index-v2.bin"}
    assert before.keys() - contents(theirs).keys() == {"schema.yaml", "index.bin"}
    assert all(file.intact for file in verify(theirs))
    third = rs.adopt(theirs, SCHEMA, force=True)
    assert third.suffix == ""
    assert third.identity != second.identity


def test_files_are_found_again_by_their_first_bytes(theirs, tmp_path):
    for number in range(2):
        put(tmp_path / f"nameless/chunk_{number}.bin", rows(number * 10, number * 10 + 10))
    assert rs.adopt(tmp_path / "nameless", SCHEMA).rows("train") == 20
    put(tmp_path / "nameless/chunk_2.bin", rows(20, 25))
    assert rs.adopt(tmp_path / "nameless", SCHEMA, force=True).rows("train") == 25
    rs.adopt(theirs, SCHEMA)
    put(theirs / "old.bak", rows(0, 3))
    with pytest.raises(StoreError) as error:
        rs.adopt(theirs, SCHEMA, force=True)
    assert str(error.value) == (
        f"{theirs}/old.bak: a TFRecord file by its first bytes, but not by its name, unlike test_0.tfrecord"
        f" (give '{theirs}/*.tfrecord' to read those alone, or the files one by one to read all)"
    )


def test_files_of_the_same_names_stay(theirs):
    (theirs / "schema.yaml").write_text("theirs")
    assert rs.adopt(theirs, SCHEMA).suffix == "-v2"
    assert (theirs / "schema.yaml").read_text() == "theirs"
    (theirs / "manifest.json").write_text("{}")
    with pytest.raises(StoreError) as error:
        rs.adopt(theirs, SCHEMA, force=True)
    assert str(error.value) == (
        f"{theirs}/manifest.json: expected a manifest of format 3, got KeyError: 'format'"
        " (out=FOLDER, or --out, makes a folder of links to them)"
    )
    assert (theirs / "manifest.json").read_text() == "{}"


def test_what_is_refused(theirs, tmp_path):
    before = contents(theirs)
    other = rs.Schema.loads(
        "schema: s\nfeatures: {x: {dtype: float32, shape: [3], key: measures}, size: int64}"
    )
    with pytest.raises(RecordError) as error:
        rs.adopt(theirs, other)
    assert str(error.value).splitlines() == [
        f"{theirs}/train_0.tfrecord: record 0 at byte 0: features.x: expected 3 float32, got 2 float32 (stored under `measures`)",
        f"{theirs}/train_0.tfrecord: record 0 at byte 0: features.size: expected 1 int64, got none",
    ]
    with pytest.raises(SpecError) as error:
        rs.adopt(theirs / "train_*.tfrecord", SCHEMA)
    assert str(error.value) == (
        f"files: expected all TFRecords of {theirs}, got them without test_0.tfrecord"
        " (out=FOLDER, or --out, makes a folder of links to them)"
    )
    rs.write({"x": np.zeros((3, 2)), "label": ["iris"] * 3}, SCHEMA, tmp_path / "ours")
    with pytest.raises(StoreError) as error:
        rs.adopt(tmp_path / "ours", SCHEMA, force=True)
    assert str(error.value) == (
        f"`{tmp_path}/ours` is a dataset already: a config and every command read it as it is"
    )
    with pytest.raises(StoreError) as error:
        rs.adopt(theirs, SCHEMA, tmp_path / "ours")
    assert str(error.value) == f"`{tmp_path}/ours` exists: force=True, or --force, replaces it"
    (theirs / "zipped.tfrecord").write_bytes(gzip.compress(b"".join(map(frame, rows(0, 2)))))
    with pytest.raises(SpecError) as error:
        rs.adopt(theirs, SCHEMA)
    assert str(error.value) == (
        "files: expected one compression, got test_0.tfrecord (none) and zipped.tfrecord (gzip)"
        " (`recordspec reshard` writes them again)"
    )
    (theirs / "zipped.tfrecord").unlink()
    assert contents(theirs) == before


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda data: data[:-3],
            "record 9 at byte 540: expected 44 bytes of data and its CRC, got the end of the file",
        ),
        (
            lambda data: data[:60] + b"?" + data[61:],
            "record 1 at byte 60: expected a length that matches its CRC, got other bytes",
        ),
        (
            lambda data: data[:90] + b"?" + data[91:],
            "record 1 at byte 60: expected data that matches its CRC, got other bytes",
        ),
    ],
)
def test_a_damaged_file(theirs, change, problem):
    path = theirs / "train_0.tfrecord"
    path.write_bytes(change(path.read_bytes()))
    before = contents(theirs)
    with pytest.raises(RecordError) as error:
        rs.adopt(theirs, SCHEMA)
    assert str(error.value) == f"{path}: {problem}"
    assert contents(theirs) == before


def test_all_records_are_checked(theirs):
    manifest = rs.adopt(theirs, SCHEMA, check=True)
    assert manifest.label_counts == {"train": {"label": (11, 11)}, "test": {"label": (4, 4)}}
    assert manifest.splits == rs.adopt(theirs, SCHEMA, force=True).splits
    path = put(theirs / "train_1.tfrecord", [*rows(10, 21), example([1, 2], 2)])
    assert rs.adopt(theirs, SCHEMA, force=True).rows("train") == 22
    with pytest.raises(RecordError) as error:
        rs.adopt(theirs, SCHEMA, force=True, check=True)
    assert str(error.value) == (
        f"{path}: record 11 at byte 660: features.label: expected an index from 0 to 1, got 2"
    )
    data = path.read_bytes()
    path.write_bytes(data[:-6] + b"?" + data[-5:])
    with pytest.raises(RecordError) as error:
        rs.adopt(theirs, SCHEMA, force=True, check=True)
    assert (
        str(error.value)
        == f"{path}: record 11 at byte 660: expected data that matches its CRC, got other bytes"
    )


def test_files_that_change_later(theirs):
    rs.adopt(theirs, SCHEMA)
    path = theirs / "train_0.tfrecord"
    same_size = put(path, rows(40, 50))
    problems = [str(problem) for file in verify(theirs) for problem in file.problems]
    assert problems == [f"{same_size}: expected the lengths and CRCs of records at its adoption, got others"]
    put(path, rows(0, 9))
    with pytest.raises(StoreError) as error:
        rs.reshard(theirs, theirs.parent / "resharded")
    assert str(error.value) == (
        f"{path}: expected 600 bytes, as the manifest says, got 540 (`recordspec adopt --force` adopts it again)"
    )
    path.unlink()
    problems = [str(problem) for file in verify(theirs) for problem in file.problems]
    assert problems == [f"{path}: expected a shard that the manifest names, got no file"]


def test_compressed_files(tmp_path):
    for number, (start, stop) in enumerate([(0, 5), (5, 8)]):
        data = gzip.compress(b"".join(map(frame, rows(start, stop))))
        (tmp_path / f"part-{number:05d}.gz").write_bytes(data)
    manifest = rs.adopt(tmp_path, SCHEMA)
    assert (manifest.compression, manifest.rows("train"), manifest.index_sha256) == ("gzip", 8, None)
    for shard in manifest.all_shards:
        expected = hashlib.sha256((tmp_path / shard.file).read_bytes()).hexdigest()
        assert (shard.sha256, shard.frames_sha256) == (expected, "")
    assert all(file.intact for file in verify(tmp_path))
    data = bytearray(b"".join(map(frame, rows(0, 20_000))))
    data[-10] ^= 1
    (tmp_path / "part-00001.gz").write_bytes(gzip.compress(bytes(data)))
    with pytest.raises(
        RecordError, match=r"part-00001\.gz: record 19999 at byte .* expected data that matches"
    ):
        rs.adopt(tmp_path, SCHEMA, force=True)
    assert rs.Manifest.load(tmp_path) == manifest


def test_blocks(tmp_path):
    made = {"x": np.arange(40, dtype=np.float32).reshape(20, 2), "label": ["iris", "rose"] * 10}
    rs.write(made, SCHEMA, tmp_path / "ours", layout={"blocks": 8}, shards=1)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (shard,) = (tmp_path / "ours").glob("*.tfrecord")
    shard.rename(theirs / "a.tfrecord")
    manifest = rs.adopt(theirs, SCHEMA)
    assert (manifest.block, manifest.rows("train"), manifest.shards("train")[0].records) == (8, 20, 3)
    assert sum(len(batch) for batch in rs.open(theirs)[:]["label"].reshape(20, 1)) == 20
    put(theirs / "b.tfrecord", rows(0, 2))
    with pytest.raises(SpecError) as error:
        rs.adopt(theirs, SCHEMA, force=True)
    assert str(error.value) == (
        f"{theirs}/b.tfrecord: expected blocks of 8 rows, but for the last, got 2 rows in 2 records"
    )


def test_a_folder_that_cannot_be_written(unprivileged):
    folder, as_nobody = unprivileged
    path = put(folder / "theirs/a.tfrecord", rows(0, 3))
    path.parent.chmod(0o555)
    rs.adopt(path, SCHEMA, folder / "before")  # imports what is needed
    with as_nobody(), pytest.raises(StoreError) as error:
        rs.adopt(path, SCHEMA)
    assert str(error.value) == (
        f"{path.parent}: cannot write: permission denied (out=FOLDER, or --out, makes a folder of links to them)"
    )
    assert contents(path.parent).keys() == {"a.tfrecord"}
    with as_nobody():
        assert rs.adopt(path, SCHEMA, folder / "links").rows("train") == 3


def test_a_large_record_and_an_empty_file(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_WINDOW", 100)
    schema = rs.Schema.loads("schema: s\nfeatures: {data: string}")
    texts = [b"x" * size for size in (0, 10, 300, 5, 70_000, 1)]
    records = [sized(1, sized(1, sized(1, b"data"), sized(2, sized(1, sized(1, text))))) for text in texts]
    put(tmp_path / "a.tfrecord", records)
    put(tmp_path / "b.tfrecord", [])
    manifest = rs.adopt(tmp_path, schema)
    assert [shard.records for shard in manifest.all_shards] == [6, 0]
    assert all(file.intact for file in verify(tmp_path))
    assert [len(row["data"]) for row in map(rs.open(tmp_path).__getitem__, range(6))] == [*map(len, texts)]
    length = struct.pack("<Q", 1 << 40)
    with (tmp_path / "a.tfrecord").open("ab") as file:
        file.write(length + struct.pack("<I", masked(length)))
    with pytest.raises(RecordError) as error:
        rs.adopt(tmp_path, schema, force=True)
    assert "record 6 at byte" in str(error.value)
    assert "expected 1,099,511,627,776 bytes of data and its CRC, got the end of the file" in str(error.value)


def test_command_line(theirs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("adopt", "--schema", "flowers.yaml")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "Error: name either FILES, or those of each --split",
    )
    done = run("adopt", "--schema", "flowers.yaml", "--split", "train")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "Error: Invalid value for '--split': expected a split and its files such as train='shards/a*', got 'train'",
    )
    given = ["--split", "a=theirs/train_0.tfrecord", "--split", "b=theirs/test*", "--split", "a=theirs/*_1.*"]
    done = run("adopt", "--schema", "flowers.yaml", *given, "--out", "data")
    assert (done.returncode, done.stderr) == (0, "")
    manifest = rs.Manifest.load("data")
    assert {split: manifest.rows(split) for split in manifest.splits} == {"a": 22, "b": 8}
