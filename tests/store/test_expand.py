"""The files of a folder, path or pattern are the same for every command; missing shards are named."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from obstore.store import MemoryStore

import recordspec as rs
from fields_by_hand import entry, ints, sized
from frames_by_hand import frame
from recordspec import Manifest, StoreError, remote
from recordspec.errors import IncompleteError
from recordspec.integrity.verify import verify
from recordspec.locations import location
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import expand, find_incomplete
from recordspec.store.manifest import Shard
from shell import run_here as run

SCHEMA = "schema: s\nfeatures: {id: int64}\n"


def record(number: int) -> bytes:
    """An Example `{id: number}`, framed, laid down by hand."""
    return frame(sized(1, entry("id", ints(number))))


def packed(name: str, records: Sequence[bytes]) -> bytes:
    data = b"".join(records)
    return {".gz": gzip.compress, ".deflate": zlib.compress, ".zlib": zlib.compress}.get(
        Path(name).suffix, bytes
    )(data)


def filled(folder, names: Sequence[str], others: Mapping[str, bytes]) -> list[int]:
    """Writes the files, of three records each: gives the numbers of all records, in the order of the names."""
    every = []
    for index, name in enumerate(sorted(names)):
        numbers = [10 * index + row for row in range(3)]
        write(folder / name, packed(name, [*map(record, numbers)]))
        every += numbers
    for name, data in others.items():
        write(folder / name, data)
    return every


def write(place, data: bytes) -> None:
    if isinstance(place, Path):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    else:
        remote.create(place, data)


# The names that others give to the TFRecords of a folder, and what lies beside them.
JOB = {"_SUCCESS": b"", "._SUCCESS.crc": b"crc\0", ".part-r-00000.crc": b"crc\0\0\0\0"}
LAYOUTS: dict[str, tuple[list[str], dict[str, bytes]]] = {
    "recordspec": (["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord"], {}),
    "imagenet": ([f"train-0000{n}-of-00002" for n in range(2)], {"notes.txt": b"of ImageNet"}),
    "tfds": ([f"mnist-{split}.tfrecord-00000-of-00001" for split in ("train", "test")], {"label.labels.txt": b"0\n1\n"}),
    "spark": ([f"part-r-0000{n}" for n in range(3)], JOB),
    "spark with a codec": ([f"part-r-0000{n}.gz" for n in range(2)], JOB),
    "spark of today": ([f"part-0000{n}-3f2a-c000.tfrecord.deflate" for n in range(2)], JOB),
    "beam": ([f"data-0000{n}-of-00002" for n in range(2)], {".temp-beam": b""}),
    ".tfrecords": (["a.tfrecords", "b.tfrecords"], {"a.tfrecords.idx": b"0 44\n", "README": b"read me\n"}),
    ".tfrec": ([f"{n:02d}-1024.tfrec" for n in range(2)], {}),
    ".tfr": (["a.tfr", "b.tfr.gz"], {}),
    ".record": (["pets.record", "pets_val.record-00000-of-00001"], {"label_map.pbtxt": b"item {}\n"}),
    "mesh tensorflow": ([f"__local-train.tfrecord-0000{n}-of-00002" for n in range(2)], {"_SUCCESS": b"", "_meta": b"x"}),
    "youtube-8m": (["train0000.tfrecord", "train0001.tfrecord"], {"x.tfrecord.crc": b"crc"}),
    "other names": (["shard_0.bin", "shard_1.bin"], {"readme.md": b"# Records\n", "index.json": b"{}"}),
    "other names, compressed": (["a.gz", "b.gz"], {"data.zip": b"PK\x03\x04zip"}),
    "folders of splits": (["train/part-r-00000", "val/x.tfrecord"], {"LICENSE": b"MIT", "train/_SUCCESS": b""}),
}  # fmt: skip


@pytest.fixture(params=LAYOUTS)
def layout(request, tmp_path) -> tuple[Path, list[int], int]:
    """A folder, the numbers of its records, and how many files they are in."""
    names, others = LAYOUTS[request.param]
    (tmp_path / "s.yaml").write_text(SCHEMA)
    return tmp_path / "data", filled(tmp_path / "data", names, others), len(names)


def test_every_command_reads_the_records_of_a_folder(layout, tmp_path):
    data, numbers, files = layout
    total = len(numbers)

    def rows(*arguments: object) -> list[dict]:
        done = run(*arguments, "--json", cwd=tmp_path)
        assert done.returncode == 0, (arguments, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def ids(*arguments: object) -> list[int]:
        return sorted(row["features"]["id"] for row in rows(*arguments))

    def records(*arguments: object) -> tuple[int, int]:
        found = rows(*arguments)
        return sum(row["records"] for row in found), len(found)

    expected = (total, files)
    assert records("count", data) == expected
    assert records("verify", data) == expected
    (found,) = rows("info", data)
    assert (found["records"], len(found["files"])) == expected
    assert ids("head", data, "-n", 100) == ids("sample", data, "-n", 100) == numbers
    assert ids("show", data, total - 1) == numbers[-1:]
    assert rows("check", data, "--schema", "s.yaml")[-1] == {
        "files": files,
        "rows": total,
        "invalid": 0,
        "lost": 0,
    }
    assert sum(row["rows"] for row in rows("stats", data) if "section" not in row) == total
    assert rows("diff", data, data)[-1]["different"] is False
    assert run("export", data, "--out", "rows.jsonl", cwd=tmp_path).returncode == 0
    exported = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["id"] for line in exported) == numbers
    assert rs.infer(data).rows == rows("infer", data)[0]["rows"] == total
    read = rs.read(expand(data), rs.Schema.loads(SCHEMA), batch=5)
    assert sorted(number for batch in read.as_numpy_iterator() for number in batch["id"].tolist()) == numbers
    assert sum(row["rows"] for row in rows("reshard", data, "again")) == total
    assert ids("head", "again", "-n", 100) == numbers
    assert sum(row["saved"] for row in rows("repair", data, "--out", "saved")) == total
    assert ids("head", "saved", "-n", 100) == numbers
    (tmp_path / "c.yaml").write_text(f"schema: s.yaml\ndata: copy\nwrite: {{source: {{tfrecord: {data}}}}}\n")
    assert run("build", "c.yaml", "--json", cwd=tmp_path).returncode == 0
    assert ids("head", "copy", "-n", 100) == numbers
    if not any(path.suffix in (".gz", ".deflate") for path in expand(data)):
        assert records("index", data) == records("count", data) == expected


def test_a_folder_of_a_store_has_the_same_files(layout, monkeypatch):
    data, _, files = layout
    stores = lru_cache(lambda root: MemoryStore())
    for name in ("_store", "_upload_store"):
        monkeypatch.setattr(remote, name, stores)
    for path in sorted(data.rglob("*")):
        if path.is_file():
            write(location("s3://bucket/data") / str(path.relative_to(data)), path.read_bytes())
    found = [str(path) for path in expand("s3://bucket/data")]
    assert found == [str(path).replace(str(data), "s3://bucket/data") for path in expand(data)]
    assert len(found) == files


def refusal(files: object) -> str:
    with pytest.raises(rs.StoreError) as caught:
        expand(files)
    return str(caught.value)


def test_a_tfrecord_of_another_name_is_not_left_out(tmp_path):
    filled(tmp_path, ["a.tfrecord", "b.tfrecord", "old.bak"], {"notes.txt": b"of these"})
    said = (
        f"{tmp_path}/old.bak: a TFRecord file by its first bytes, but not by its name, unlike a.tfrecord "
        f"(give '{tmp_path}/*.tfrecord' to read those alone, or the files one by one to read all)"
    )
    assert refusal(tmp_path) == said
    assert [path.name for path in expand(f"{tmp_path}/*.tfrecord")] == ["a.tfrecord", "b.tfrecord"]
    assert [str(one) for file in verify(tmp_path) for one in file.problems] == [said]
    assert run("verify", tmp_path).returncode == 1
    (tmp_path / "notes.txt").unlink()
    assert refusal(tmp_path).endswith(f"to read those alone, or '{tmp_path}/*' to read all)")
    assert len(expand(f"{tmp_path}/*")) == 3


def test_a_damaged_shard_of_another_name_is_not_left_out(tmp_path):
    filled(tmp_path, ["shard-1.bin", "shard-2.bin", "shard-10.bin"], {"weights.bin": bytes(100)})
    damaged = tmp_path / "shard-2.bin"
    damaged.write_bytes(b"\1" + damaged.read_bytes()[1:])
    (tmp_path / "shard-3.bin").touch()
    names = [f"shard-{number}.bin" for number in (1, 10, 2, 3)]
    assert [path.name for path in expand(tmp_path)] == names
    assert run("count", tmp_path).returncode == 1


def test_shards_that_others_announce_are_missed(tmp_path):
    filled(tmp_path, ["mnist-train.tfrecord-00000-of-00002", "mnist-test.tfrecord-00000-of-00001"], {})
    with pytest.raises(IncompleteError) as caught:
        expand(tmp_path)
    assert str(caught.value).startswith(
        f"{tmp_path}/mnist-train.tfrecord-*-of-00002: expected 2 shards, got 1; 1 of 2 missing: 00001 "
    )
    assert run("infer", tmp_path).stderr.strip() == str(caught.value)


def test_a_refusal_names_the_pattern_that_reads_what_is_there(tmp_path):
    filled(tmp_path / "old", ["train/part-r-00000", "train_2/part-r-00001"], {"train/_SUCCESS": b""})
    filled(tmp_path / "deep", ["2025/11/a.tfrecord", "2025/12/b.tfrecord"], {"2025/12/a.csv": b"a\n1\n"})
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "notes.txt").write_text("of these")
    none = "has no TFRecords"
    for name, pattern in [("old", "*/part-r-*"), ("deep", "*/*/*.tfrecord")]:
        place = tmp_path / name
        assert refusal(place) == f"`{place}` {none}: give '{place}/{pattern}' to read those below it"
        assert len(expand(f"{place}/{pattern}")) == 2
        data = "has no TFRecords, no tables, and no images, audio files or arrays by class"
        assert (
            run("infer", place).stderr
            == f"`{place}` {data}: give '{place}/{pattern}' to read those below it\n"
        )
    assert refusal(tmp_path / "text") == f"`{tmp_path}/text` {none}: {tmp_path}/text has notes.txt"


def test_a_folder_of_records_and_tables_is_of_one_format(tmp_path):
    filled(tmp_path, ["a.tfrecord"], {"rows.csv": b"id\n1\n"})
    assert [path.name for path in expand(tmp_path)] == ["a.tfrecord"]
    assert run("infer", tmp_path).stderr.strip() == (
        f"{tmp_path}/a.tfrecord: expected files of one format, got a.tfrecord (tfrecord) and rows.csv (csv)"
    )


def test_the_files_of_a_dataset_are_those_of_its_manifest(tmp_path):
    rs.write([{"id": 7}], rs.Schema.loads(SCHEMA), tmp_path / "data", key=None, progress=False)
    (tmp_path / "data" / "notes.csv").write_text("id\n1\n")
    assert rs.infer(tmp_path / "data").rows == 1
    write(tmp_path / "data" / "more.tfrec", record(8))
    said = f"{tmp_path}/data/more.tfrec: expected shards that the manifest names, got another one (move it to another folder)"
    assert refusal(tmp_path / "data") == said
    assert [str(one) for file in verify(tmp_path / "data") for one in file.problems] == [said]


def test_resharding_keeps_the_splits_that_other_names_tell(tmp_path):
    """Rows for testing would otherwise be trained on."""
    for name in ("tfds", "folders of splits"):
        data = tmp_path / name
        filled(data, *LAYOUTS[name])
        assert run("reshard", data, tmp_path / f"{name} again").returncode == 0
        manifest = rs.Manifest.load(tmp_path / f"{name} again")
        other = "test" if name == "tfds" else "val"
        assert {split: manifest.rows(split) for split in manifest.splits} == {other: 3, "train": 3}


EMPTY = "no records, as there are 0 bytes (an interrupted copy leaves such a file)"


@pytest.mark.parametrize(
    "arguments",
    [
        ["count"],
        ["head"],
        ["info"],
        ["verify"],
        ["stats"],
        ["query", "SELECT count(*) FROM records"],
        ["leaks"],
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_a_file_of_0_bytes_is_noted_once(arguments, name, tmp_path, command, caplog):
    path = tmp_path / name
    path.touch()
    assert command(*arguments, path)[0] == 0
    assert caplog.messages == [f"{path}: {EMPTY}"]


@pytest.mark.parametrize("arguments", ["count", "head", "verify"])
def test_a_pattern_that_matches_a_folder_is_refused(arguments, tmp_path, command):
    filled(tmp_path, ["labels/train.tfrecord", "labels.tfrecord"], {})
    status, _, error = command(arguments, tmp_path / "lab*")
    assert (status, error) == (
        3,
        f"`{tmp_path}/lab*` matches the folder {tmp_path}/labels: give `{tmp_path}/labels` instead of the "
        f"pattern, or `{tmp_path}/labels/*`\n",
    )


def test_a_shard_of_0_bytes_is_noted_unless_its_manifest_has_it(tmp_path, caplog):
    schema = rs.Schema.loads("schema: s\nfeatures: {a: int64}")
    rs.write([{"a": 1}], schema, tmp_path / "data", shards=1, split={"a": 1, "b": 0.001})
    shards = {path.stat().st_size: path for path in (tmp_path / "data").glob("*.tfrecord")}
    assert len(expand(tmp_path / "data")) == 2
    assert expand(shards[0]) == (shards.pop(0),)
    assert caplog.messages == []
    (whole,) = shards.values()
    whole.write_bytes(b"")
    assert expand(whole) == (whole,)
    for name in ("b", "c"):
        (tmp_path / f"{name}.tfrecord").touch()
    assert [*rs.read(tmp_path / "*.tfrecord", schema, batch=1)] == []
    assert caplog.messages == [f"{whole}: {EMPTY}", f"{tmp_path}/b.tfrecord and 1 more: {EMPTY}"]


@pytest.mark.parametrize(
    "arguments", [["count"], ["head"], ["info"], ["stats"], ["query", "SELECT count(*) FROM train"]], ids=str
)
def test_a_shard_of_another_size_than_its_manifest_says_is_noted(arguments, tmp_path, command, caplog):
    """A shard that is cut between two records looks whole."""
    schema = rs.Schema.loads(SCHEMA)
    rs.write([{"id": 1}] * 4, schema, tmp_path / "data", shards=2)
    assert command(*arguments, tmp_path / "data")[0] == 0
    assert caplog.messages == []
    shard = sorted((tmp_path / "data").glob("*.tfrecord"))[0]
    size = shard.stat().st_size
    os.truncate(shard, size // 2)
    assert command(*arguments, tmp_path / "data")[0] == 0
    note = f"{shard}: not the {size} bytes of the manifest (`recordspec verify` finds what changed)"
    assert caplog.messages == [note]
    assert [*expand(tmp_path / "data")] == sorted((tmp_path / "data").glob("*.tfrecord"))
    assert caplog.messages == [note]  # not where reading refuses it


def test_files_are_found_by_path_pattern_and_folder(tmp_path):
    names = ["a-00000-of-00002.tfrecord", "a-00001-of-00002.tfrecord", "notes.txt"]
    for name in names:
        (tmp_path / name).touch()
    shards = tuple(tmp_path / name for name in names[:2])
    assert expand(tmp_path) == shards
    assert expand(f"{tmp_path}/a-*") == shards
    assert expand([shards[1], tmp_path]) == (shards[1], shards[0])


def test_an_index_beside_a_file_is_not_one_of_the_files(tmp_path):
    shards = tuple(tmp_path / f"a-0000{index}-of-00002.tfrecord" for index in range(2))
    for shard in shards:
        for suffix in ("", ".index", ".tfindex", ".idx"):
            shard.with_name(shard.name + suffix).touch()
    assert expand(f"{tmp_path}/a-*") == shards
    assert expand(sorted(tmp_path.iterdir())) == shards  # as a shell writes the pattern out
    alone = shards[0].with_name(f"{shards[0].name}.idx")
    assert expand(alone) == (alone,)


def test_files_that_are_not_there_are_named_with_what_is(tmp_path):
    (tmp_path / "train-00000-of-00001.tfrecord").touch()
    with pytest.raises(StoreError) as caught:
        expand(f"{tmp_path}/test-*")
    assert str(caught.value) == (
        f"`{tmp_path}/test-*` matches no file: {tmp_path} has train-00000-of-00001.tfrecord"
    )
    with pytest.raises(StoreError, match="expected at least one file, got none"):
        expand([])


def touched(folder, *names: str) -> list:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / f"{name}.tfrecord").touch()
    return [folder / f"{name}.tfrecord" for name in names]


def refused(files) -> list[str]:
    with pytest.raises(IncompleteError) as caught:
        expand(files)
    assert list(caught.value.problems) == list(find_incomplete(files))
    assert caught.value.exit_code == 1
    return [str(problem) for problem in caught.value.problems]


ONE_BY_ONE = "(files that are listed one by one are taken as they are)"


def test_a_missing_shard_and_a_foreign_one_are_named_without_a_manifest(tmp_path):
    four = [f"train-0000{index}-of-00004" for index in (0, 1, 3)]
    listed = touched(tmp_path, *four, "train-00003-of-00010", "test-00000-of-00001")
    absent = (
        f"{tmp_path}/train-*-of-00004.tfrecord: expected 4 shards, got 3; 1 of 4 missing: 00002 {ONE_BY_ONE}"
    )
    foreign = (
        f"{tmp_path}/train-00003-of-00010.tfrecord: expected shards of 4, as train-*-of-00004, got one of 10 "
        "(to read only some, give a pattern such as 'train-*-of-00004*')"
    )
    for files in (tmp_path, f"{tmp_path}/*", f"{tmp_path}/train-*", [listed[0], tmp_path]):
        assert refused(files) == [absent, foreign]
    assert refused(f"{tmp_path}/train-*-of-00004*") == [absent]
    assert expand(listed) == tuple(listed)
    assert len(expand(tmp_path, as_found=True)) == 5
    assert expand(f"{tmp_path}/test-*") == (listed[-1],)
    # a pattern of numbers asks for these only
    assert expand(f"{tmp_path}/train-0000[01]-of-00004*") == tuple(listed[:2])
    assert refused(f"{tmp_path}/train-0000[0-2]-of-00004*") == [
        f"{tmp_path}/train-*-of-00004.tfrecord: expected 4 shards, got 2; 1 of 4 missing: 00002 {ONE_BY_ONE}"
    ]


def test_many_shards_are_named_by_their_ranges(tmp_path):
    touched(tmp_path, *(f"a-{index:05d}-of-00012" for index in (0, 3, 4, 5, 7)))
    touched(tmp_path, *(f"a-{index:05d}-of-00003" for index in (0, 1)))
    assert refused(tmp_path) == [
        f"{tmp_path}/a-*-of-00003.tfrecord: expected 3 shards, got 2; 1 of 3 missing: 00002 {ONE_BY_ONE}",
        f"{tmp_path}/a-*-of-00012.tfrecord: expected shards of 3, as a-*-of-00003, got 5 of 12: 00000, 00003 to "
        "00005, 00007 (to read only some, give a pattern such as 'a-*-of-00003*')",
    ]
    (tmp_path / "a-00001-of-00003.tfrecord").unlink()
    (tmp_path / "a-00000-of-00003.tfrecord").unlink()
    assert refused(tmp_path) == [
        f"{tmp_path}/a-*-of-00012.tfrecord: expected 12 shards, got 5; 7 of 12 missing: 00001 to 00002, 00006, "
        f"00008 to 00011 {ONE_BY_ONE}"
    ]


@pytest.mark.parametrize(
    "name", ["train-{}-of-00003", "mnist-train.tfrecord-{}-of-00003", "x-{}-of-00003.gz"]
)
def test_shards_of_other_writers_are_known_by_their_numbers(tmp_path, name):
    for index in (0, 2):
        for suffix in ("", ".tfindex", ".index"):
            (tmp_path / (name.format(f"0000{index}") + suffix)).touch()
    pattern = name.format("*")
    got = "2; 1 of 3 missing: 00001"
    for files in (f"{tmp_path}/*", f"{tmp_path}/{pattern}"):
        assert refused(files) == [f"{tmp_path}/{pattern}: expected 3 shards, got {got} {ONE_BY_ONE}"]


def test_splits_of_other_numbers_are_each_complete(tmp_path):
    shards = touched(tmp_path, "test-00000-of-00001", *(f"train-0000{index}-of-00003" for index in range(3)))
    assert expand(tmp_path) == tuple(shards)
    assert expand(f"{tmp_path}/t*") == tuple(shards)


def test_a_number_that_a_name_cannot_have_and_one_that_two_have_are_refused(tmp_path):
    touched(tmp_path, "a-00000-of-00001", "a-00001-of-00001")
    (tmp_path / "a-00000-of-00001.tfrecord.gz").touch()
    assert refused(tmp_path) == [
        f"{tmp_path}/a-00000-of-00001.tfrecord.gz: expected one shard of this number, "
        "a-00000-of-00001.tfrecord, got two",
        f"{tmp_path}/a-00001-of-00001.tfrecord: expected a number below 1, got 1",
    ]


def test_a_name_that_announces_any_number_of_shards_takes_no_time(tmp_path):
    touched(tmp_path, "a-00001-of-99999999999999")
    (problem,) = refused(tmp_path)
    assert "at least 100,000 of 99999999999999 missing: 00000, 00002 to 100000 " in problem


def test_a_manifest_tells_which_shards_a_pattern_should_match(tmp_path):
    kept, other = touched(tmp_path, "a-00000-of-00003", "a-00001-of-00003")
    (tmp_path / "manifest.json").write_text(manifest_of(kept.name, "a-00002-of-00003.tfrecord").dump())
    assert refused(f"{tmp_path}/a-*") == refused(tmp_path)
    assert refused(tmp_path) == [
        f"{tmp_path}/a-00002-of-00003.tfrecord: expected a shard that the manifest names, got no file",
        f"{other}: expected shards that the manifest names, got another one (move it to another folder)",
    ]
    assert expand(f"{tmp_path}/a-00000*") == (kept,)
    (tmp_path / "manifest.json").write_text(manifest_of(kept.name).dump())
    other.unlink()
    assert expand(f"{tmp_path}/a-*") == (kept,)  # what a repair saved


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for meant, name, got in [
        ("pipe", "pipe", "a pipe"),
        ("p*", "pipe", "a pipe"),
        ("/dev/zero", "", "a device"),
    ]:
        with pytest.raises(StoreError) as caught:
            expand(tmp_path / meant)
        where = tmp_path / name if name else meant
        hint = "copy its contents to a file first"
        assert str(caught.value) == f"{where}: expected a regular file, got {got} ({hint})"


def manifest_of(*files: str) -> Manifest:
    shards = tuple(Shard(file=file, rows=1, records=1, bytes=0, sha256="0") for file in files)
    return Manifest(schema="s", fingerprint="f", record="example", compression="none", splits={"a": shards})


def rows_read(schema: rs.Schema, files, **options) -> list[list[int]]:
    """The numbers that `read` yields, and those that `iterate` does."""
    return [
        sorted(number for batch in batches for number in np.asarray(batch["id"]).tolist())
        for batches in (
            rs.read(files, schema, batch=4, **options),
            rs.iterate(files, schema, batch=4, **options),
        )
    ]


@pytest.mark.tensorflow
@pytest.mark.parametrize("is_ours", [True, False], ids=["manifest", "names"])
def test_a_folder_of_several_splits_is_read_by_the_split(tmp_path, is_ours):
    schema, data = rs.Schema.loads(SCHEMA), tmp_path / "data"
    splits = {"train": list(range(10)), "test": list(range(10, 15))}
    if is_ours:
        rs.write([{"id": n} for n in range(10)], schema, data)
        one = rs.iterate(data, batch=4)  # a single split need not be named
        assert sorted(n for batch in one for n in batch["id"].tolist()) == splits["train"]
        rows = ({"id": n, "split": "test" if n >= 10 else "train"} for n in range(15))
        rs.write(rows, schema, data, split={"column": "split"}, force=True)
    else:
        data.mkdir()
        for split, some in splits.items():
            records = b"".join(map(record, some))
            (data / f"x-{split}.tfrecord-00000-of-00001").write_bytes(records)
    for split, some in splits.items():
        assert rows_read(schema, data, split=split) == [some, some]
        assert rows_read(schema, f"{data}/*{split}*", split=split) == [some, some]
    both = sorted(splits["train"] + splits["test"])
    assert len(list(rs.iterate((path for path in [data]), schema, split="train", batch=4))) == 3
    assert rows_read(schema, f"{data}/*-of-*") == [both, both]
    for read in (rs.read, rs.iterate):
        with pytest.raises(
            rs.StoreError, match=r'` has the splits .*: `split="t.*"` reads one of them, and `split=None` all'
        ):
            read(data, schema, batch=4)
        assert len(list(read(data, schema, batch=4, split=None))) == -(-len(both) // 4)
        with pytest.raises(rs.SpecError, match=r"^split: expected one of t.*, got `val`$"):
            read(data, schema, batch=4, split="val")
        with pytest.raises(rs.SpecError, match=r"got `tran` \(did you mean `train`\?\)$"):
            read(data, schema, batch=4, split="tran")
    with pytest.raises(rs.SpecError, match=r"^split: expected none of opened rows, got `train` "):
        rs.iterate(rs.open(data, schema), batch=4, split="train")


@pytest.mark.tensorflow
def test_what_was_appended_is_read_in_the_order_of_the_manifest(tmp_path):
    """Of twelve, the tenth has not the last name."""
    schema, data = rs.Schema.loads(SCHEMA), tmp_path / "data"
    for number in range(12):
        rs.write([{"id": number}], schema, data, append=number > 0)
    expected = list(range(12))
    assert [path.name for path in map(Path, expand(data))] != sorted(
        path.name for path in data.glob("*.tfrecord")
    )
    for files in (data, f"{data}/train-*", f"{data}/*.tfrecord"):
        batches = rs.read(files, schema, batch=12), rs.iterate(files, schema, batch=12), [rs.open(files)[:]]
        assert [np.asarray(batch["id"]).tolist() for (batch,) in batches] == [expected] * 3
    backwards = sorted(data.glob("*.tfrecord"), reverse=True)
    assert list(map(str, expand(backwards))) == list(map(str, backwards))


@pytest.mark.tensorflow
@pytest.mark.parametrize("layout", ["rows", {"blocks": 2}])
def test_files_of_two_datasets_are_each_what_its_manifest_says(tmp_path, layout):
    ours = rs.Schema.loads("schema: s\nfeatures: {y: {kind: label, names: [cat, dog]}}")
    theirs = rs.Schema.loads("schema: s\nfeatures: {y: {kind: label, names: [dog, cat]}}")
    for name, schema in {"a": ours, "b": theirs, "c": ours}.items():
        rs.write([{"y": "cat"}] * 3, schema, tmp_path / name, layout=layout)
    readers = {
        "read": lambda files: rs.read(files, ours, batch=9),
        "open": lambda files: [rs.open(files, ours)[:]],
        "iterate": lambda files: rs.iterate(files, ours, batch=9),
    }
    if layout != "rows":  # of several folders, they have no numbers
        readers = {"read": readers["read"]}
    both = [tmp_path / "a/train-*", tmp_path / "c/train-*"]
    (cut,) = (tmp_path / "c").glob("train-*.tfrecord")
    whole = cut.read_bytes()
    for read in readers.values():
        ((batch),) = read(both)
        assert np.asarray(batch["y"]).tolist() == [0] * 6
        with pytest.raises(rs.StoreError, match=r"/b: features\.y\.names: expected .\[.dog., .cat.\]"):
            list(read([tmp_path / "a/train-*", tmp_path / "b/train-*"]))
        cut.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(rs.StoreError, match=rf"{cut}: expected {len(whole)} bytes, as the manifest says"):
            list(read(both))
        cut.write_bytes(whole)


def test_records_of_several_folders_have_as_many_rows(tmp_path):
    schema = rs.Schema.loads(SCHEMA)
    for name, layout in {"a": {"blocks": 2}, "b": {"blocks": 4}, "c": "rows"}.items():
        rs.write([{"id": n} for n in range(8)], schema, tmp_path / name, layout=layout)
    for other, got in {"b": "blocks of 4 rows", "c": "records of one row"}.items():
        paths = expand([tmp_path / "a/train-*", tmp_path / other / "train-*"])
        with pytest.raises(rs.StoreError, match=rf"expected blocks of 2 rows, as .*/a/.* has, got {got}$"):
            StoredDataset(paths, None, schema).checked_files()
