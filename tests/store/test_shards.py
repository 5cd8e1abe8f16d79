"""Shard names and counts, the files of a pattern, the manifest, and publishing."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading

import pytest

import recordspec as rs
from recordspec import Manifest, StoreError
from recordspec.errors import IncompleteError
from recordspec.store.expand import expand, find_incomplete
from recordspec.store.manifest import Shard
from recordspec.store.shard_file import ShardFile
from recordspec.store.shard_names import ShardName, parse_name
from recordspec.store.transaction import Transaction

SHARD = "a-00000-of-00001.tfrecord"


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_a_shard_name_says_what_it_is(compression):
    name = ShardName(split="train-a", index=3, count=12)
    assert parse_name(name.file(compression)) == name


def test_a_shard_name_is_the_one_tensorflow_users_know():
    name = ShardName(split="train", index=0, count=8)
    assert name.file("none") == "train-00000-of-00008.tfrecord"
    assert name.file("gzip") == "train-00000-of-00008.tfrecord.gz"
    assert parse_name("train.tfrecord") is None


EMPTY = "no records, as there are 0 bytes (an interrupted copy leaves such a file)"


@pytest.mark.parametrize("arguments", ["count", "head", "info", "verify", "stats"])
@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_a_file_of_0_bytes_is_noted_once(arguments, name, tmp_path, command, caplog):
    path = tmp_path / name
    path.touch()
    assert command(arguments, path)[0] == 0
    assert caplog.messages == [f"{path}: {EMPTY}"]


def test_a_shard_of_0_bytes_is_noted_unless_its_manifest_has_it(tmp_path, caplog):
    schema = rs.Schema.loads("schema: s\nfeatures: {a: int64}")
    rs.write(schema, [{"a": 1}], tmp_path / "data", shards=1, split={"a": 1, "b": 0.001})
    shards = {path.stat().st_size: path for path in (tmp_path / "data").glob("*.tfrecord")}
    assert len(expand(tmp_path / "data")) == 2
    assert expand(shards[0]) == (shards.pop(0),)
    assert caplog.messages == []
    (whole,) = shards.values()
    whole.write_bytes(b"")
    assert expand(whole) == (whole,)
    for name in ("b", "c"):
        (tmp_path / f"{name}.tfrecord").touch()
    assert [*rs.read(schema, tmp_path / "*.tfrecord", batch=1)] == []
    assert caplog.messages == [f"{whole}: {EMPTY}", f"{tmp_path}/b.tfrecord and 1 more: {EMPTY}"]


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
        for suffix in ("", ".index.json", ".tfindex", ".idx"):
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
        for suffix in ("", ".tfindex", ".index.json"):
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


def manifest(**options) -> Manifest:
    shard = Shard(file="a-00000-of-00001.tfrecord", rows=3, records=3, bytes=4, sha256="0")
    known = {"schema": "s", "fingerprint": "f", "record": "example", "compression": "none"}
    return Manifest(**known, splits={"a": (shard,)}, labels={"l": ("x", "é")}, key=("id",), **options)


def test_a_folder_appears_at_commit(tmp_path):
    target = tmp_path / "deep" / "data"
    with Transaction(target) as transaction:
        (transaction.partial / "x").write_text("1")
        assert not target.exists()
        transaction.commit(manifest(), "schema: s")
    assert sorted(os.listdir(target)) == ["manifest.json", "schema.yaml", "x"]
    assert os.listdir(target.parent) == ["data"]


def test_an_exception_leaves_nothing(tmp_path):
    target = tmp_path / "data"

    def fail() -> None:
        with Transaction(target) as transaction:
            (transaction.partial / "x").write_text("1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert os.listdir(tmp_path) == []


def test_what_exists_is_replaced_by_force_alone(tmp_path):
    target = tmp_path / "data"
    for force in (False, True):
        with Transaction(target, force=force) as transaction:
            (transaction.partial / SHARD).write_text(str(force))
            transaction.commit(manifest(), "")
    assert sorted(os.listdir(target)) == [SHARD, "manifest.json", "schema.yaml"]
    assert (target / SHARD).read_text() == "True"
    assert os.listdir(tmp_path) == ["data"]
    with pytest.raises(StoreError) as caught, Transaction(target):
        pass
    assert str(caught.value) == (f"`{target}` exists: force=True, or --force, replaces it")


def test_force_replaces_datasets_and_nothing_else(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(StoreError) as caught, Transaction(tmp_path, force=True):
        pass
    assert str(caught.value) == (f"`{tmp_path}` is no dataset: it has no manifest")
    path, hint = tmp_path / "manifest.json", "(move it elsewhere first)"
    changed = "the manifest was changed after it was written: its values cannot be trusted"
    for text, message in [
        (
            '{"name": "an extension of a browser"}',
            f"{path}: expected a manifest of format 2, got KeyError: 'format' {hint}",
        ),
        (manifest().dump().replace("example", "sequence_example"), f"{path}: {changed} {hint}"),
        (
            manifest().dump(),
            f"`{tmp_path}` has `thesis.tex`, which is no file of a dataset: move it elsewhere first",
        ),
    ]:
        path.write_text(text)
        with pytest.raises(StoreError) as caught, Transaction(tmp_path, force=True):
            pass
        assert str(caught.value) == message
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_what_appears_at_the_target_during_a_build_stays(tmp_path):
    target = tmp_path / "data"

    def build() -> None:
        with Transaction(target) as transaction:
            target.mkdir()
            (target / "precious").touch()
            transaction.commit(manifest(), "")

    with pytest.raises(StoreError, match="exists"):
        build()
    assert os.listdir(target) == ["precious"]
    assert os.listdir(tmp_path) == ["data"]


@pytest.mark.parametrize("text", [None, "", "[1]", '{"pid": "x", "host": 3}'])
def test_a_staging_folder_of_nobody_is_not_removed(tmp_path, text):
    staging = tmp_path / ".data.partial"
    staging.mkdir()
    (staging / "precious").touch()
    if text is not None:
        (staging / "owner.json").write_text(text)
    with (
        pytest.raises(StoreError, match=r"has no owner\.json: if no process writes there, remove it"),
        Transaction(tmp_path / "data"),
    ):
        pass
    assert (staging / "precious").exists()
    assert os.listdir(tmp_path) == [".data.partial"]


def test_a_second_writer_is_refused_while_the_first_lives(tmp_path):
    target = tmp_path / "data"
    with Transaction(target), pytest.raises(StoreError) as caught, Transaction(target):
        pass
    assert str(caught.value) == (
        f"`{target}` is being written by process {os.getpid()} on {socket.gethostname()}: "
        f"if it is gone, remove {tmp_path}/.data.partial; see `recordspec docs explanation/publishing`"
    )


def test_what_a_dead_writer_left_is_cleared(tmp_path):
    staging = tmp_path / ".data.partial"
    staging.mkdir()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    (staging / "owner.json").write_text(json.dumps({"pid": pid, "host": socket.gethostname()}))
    (staging / "rest").touch()
    with Transaction(tmp_path / "data") as transaction:
        assert sorted(os.listdir(transaction.partial)) == ["owner.json", "work"]


def test_a_swap_that_died_is_undone(tmp_path):
    old = tmp_path / ".data.replaced"
    old.mkdir()
    (old / "manifest.json").write_text(manifest().dump())
    with pytest.raises(StoreError, match="exists"), Transaction(tmp_path / "data"):
        pass
    assert (tmp_path / "data" / "manifest.json").exists()


def test_a_shard_file_says_what_is_in_it(tmp_path):
    shard = ShardFile(tmp_path / "x", "none")
    shard.write(b"abc", 1, 10)
    shard.write(b"defg", 2, 20)
    assert shard.close("y") == Shard(
        file="y", rows=30, records=3, bytes=7, sha256=hashlib.sha256(b"abcdefg").hexdigest()
    )


def test_force_is_advised_of_datasets_alone(tmp_path):
    (tmp_path / "notes.txt").touch()
    for target in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(StoreError) as caught, Transaction(target):
            pass
        assert str(caught.value) == f"`{target}` exists: it is no dataset"


def test_a_shard_is_hashed_to_its_end(tmp_path, monkeypatch):
    shard, late = ShardFile(tmp_path / "x", "gzip"), threading.Event()
    submit = shard._hash._thread.submit

    def submit_late(function, data):
        if len(data) != 10:  # bytes of the header
            submit(late.wait, 60)
        return submit(function, data)

    monkeypatch.setattr(shard._hash._thread, "submit", submit_late)
    shard.write(b"abc", 1, 1)
    threading.Timer(0.1, late.set).start()
    sha256 = shard.close("x").sha256
    assert sha256 == hashlib.sha256((tmp_path / "x").read_bytes()).hexdigest()
