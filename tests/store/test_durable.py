"""Published files survive a power failure, with the files that `store.sidecars` writes beside them."""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import recordspec as rs
from recordspec import locations
from recordspec.integrity.repair import repair
from recordspec.locations import atomic_write, output_file
from recordspec.store import shard_file
from recordspec.store.journal import FILE as JOURNAL
from recordspec.store.sidecars import add_sidecars
from recordspec.writing.sources.csv import Csv

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {id: int64, x: float32}")
OPTIONS: dict[str, Any] = {"key": "id", "shuffle": 1, "split": {"a": 1, "b": 1}, "invalid": "quarantine"}


class Disk:
    """What is sure to be on the disk: what fsync was called for.

    Attributes:
        files: size and time of each file, by its inode, when it was last synced; and what stood at the target.
        folders: the same of folders, with the names in them.
    """

    def __init__(self, monkeypatch, target: Path) -> None:
        self.files: dict[int, tuple[tuple[int, int], int]] = {}
        self.folders: dict[int, tuple[set[str], int]] = {}
        self._target, self._fsync = target, os.fsync
        monkeypatch.setattr(os, "fsync", self._synced)

    def _synced(self, handle: int) -> None:
        self._fsync(handle)
        found = os.fstat(handle)
        at_target = self._target.stat().st_ino if self._target.exists() else 0
        if stat.S_ISDIR(found.st_mode):
            self.folders[found.st_ino] = set(os.listdir(handle)), at_target
        else:
            self.files[found.st_ino] = _state(found), at_target
            self._check_journal(found.st_ino)

    def _check_journal(self, synced: int) -> None:
        """A line of the journal is not on the disk before the files that it names."""
        work = self._target.parent / f".{self._target.name}.partial" / "work"
        journal = work / JOURNAL
        if journal.exists() and journal.stat().st_ino == synced:
            assert [path.name for path in work.iterdir() if not self.has(path)] == []

    def has(self, path: Path) -> bool:
        """Whether all of a file is there."""
        found = path.stat()
        return self.files.get(found.st_ino, (None,))[0] == _state(found)

    def check_published(self) -> None:
        """The files, then their names, then the name of their folder, in this order."""
        own = self._target.stat().st_ino
        for path in self._target.iterdir():
            assert self.has(path), path
            assert self.files[path.stat().st_ino][1] != own, f"{path} was published before it was synced"
        names, at_target = self.folders[own]
        assert set(os.listdir(self._target)) <= names
        assert at_target != own, "the folder was published before it was synced"
        assert self._target.name in self.folders[self._target.parent.stat().st_ino][0]


def _state(found: os.stat_result) -> tuple[int, int]:
    return found.st_size, found.st_mtime_ns


@pytest.fixture
def csv(tmp_path) -> Path:
    lines = [f"{index},{'?' if index == 7 else index / 2}\n" for index in range(200)]
    (tmp_path / "rows.csv").write_text("id,x\n" + "".join(lines))
    (tmp_path / "more.csv").write_text("id,x\n" + "".join(f"{index},1\n" for index in range(200, 250)))
    return tmp_path


def build(folder: Path, source: str = "rows.csv", **options: Any) -> None:
    rows = Csv(files=source).open(folder)
    rs.write(rows, SCHEMA, folder / "data", progress=False, **OPTIONS, **options)


def test_a_build_from_a_file(csv, monkeypatch):
    disk = Disk(monkeypatch, csv / "data")
    build(csv)
    disk.check_published()
    # the journal was there, by its name, before the first part was done
    assert any(JOURNAL in names for names, _ in disk.folders.values())
    assert {"manifest.json", "schema.yaml", "keys.bin", "rejects.jsonl"} <= set(os.listdir(csv / "data"))


@pytest.mark.parametrize("how", [{"force": True}, {"append": True, "source": "more.csv"}], ids=str)
def test_a_build_over_another(csv, monkeypatch, how):
    disk = Disk(monkeypatch, csv / "data")  # before the first: its shards are kept where rows are added
    build(csv)
    build(csv, **how)
    disk.check_published()


def test_a_build_from_rows(tmp_path, monkeypatch):
    disk = Disk(monkeypatch, tmp_path / "data")
    rows = ({"id": index, "x": 0.5} for index in range(200))
    rs.write(rows, SCHEMA, tmp_path / "data", progress=False, **OPTIONS)
    disk.check_published()


def test_a_reshard(csv, monkeypatch):
    build(csv)
    disk = Disk(monkeypatch, csv / "other")
    rs.reshard(csv / "data", csv / "other", shards=3, progress=False)
    disk.check_published()


def test_a_repair(csv, monkeypatch):
    build(csv)
    disk = Disk(monkeypatch, csv / "saved")
    repair(csv / "data", csv / "saved")
    disk.check_published()


def test_files_put_into_a_dataset(csv, monkeypatch):
    build(csv)
    disk = Disk(monkeypatch, csv / "none")
    add_sidecars(csv / "data", {"features.json": "{}\n"})
    assert all(disk.has(csv / "data" / name) for name in ("features.json", "manifest.json"))
    assert "features.json" in disk.folders[(csv / "data").stat().st_ino][0]


def test_a_single_file(tmp_path, monkeypatch):
    disk = Disk(monkeypatch, tmp_path / "none")
    with output_file(tmp_path / "rows.jsonl", force=False) as begun:
        begun.write_text("{}\n")
    assert disk.has(tmp_path / "rows.jsonl")
    assert "rows.jsonl" in disk.folders[tmp_path.stat().st_ino][0]


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    (tmp_path / "x").write_bytes(b"old")

    def full(handle):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        atomic_write(tmp_path / "x", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"x": b"old"}
    with (
        pytest.raises(rs.StoreError) as caught,
        output_file(tmp_path / "y", force=False) as fresh,
    ):
        fresh.write_bytes(b"new")
    assert str(caught.value) == f"{tmp_path}/y: cannot write: no space left on device"
    assert os.listdir(tmp_path) == ["x"]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    (tmp_path / "x").write_bytes(b"old")
    child = os.fork()
    if not child:
        with output_file(tmp_path / "x", force=True) as fresh:
            fresh.write_bytes(b"half")
            os._exit(0)
    os.waitpid(child, 0)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "x": b"old",
        ".x.partial": b"half",
    }
    atomic_write(tmp_path / "x", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"x": b"new"}


def test_writers_of_a_file_wait_for_each_other(tmp_path):
    texts = [bytes([65 + number]) * 1000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: atomic_write(tmp_path / "x", text), texts * 2))
    assert (tmp_path / "x").read_bytes() in texts
    assert os.listdir(tmp_path) == ["x"]


def test_a_link_stays_and_a_device_is_written(tmp_path):
    (tmp_path / "link").symlink_to("x")
    (tmp_path / "null").symlink_to("/dev/null")
    for name in ("link", "null"):
        atomic_write(tmp_path / name, b"new")
    assert sorted(os.listdir(tmp_path)) == ["link", "null", "x"]
    assert (tmp_path / "link").readlink() == Path("x")
    assert (tmp_path / "x").read_bytes() == b"new"
    assert (tmp_path / "null").readlink() == Path("/dev/null")


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.ENOTSUP])
def test_a_file_system_that_cannot_flush_is_noted_once(csv, monkeypatch, caplog, number):
    def unsupported(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", unsupported)
    monkeypatch.setattr(os, "fdatasync", unsupported)
    monkeypatch.setattr(shard_file, "_FLUSHED", 100)
    locations._note_no_sync.cache_clear()
    build(csv)
    assert (csv / "data/manifest.json").exists()
    reason = os.strerror(number)
    note = (
        f"the file system cannot flush files ({reason[0].lower()}{reason[1:]}): "
        "a loss of power may undo what is written"
    )
    assert [text for text in caplog.messages if "flush" in text] == [note]


def test_a_disk_that_fails_to_flush_is_an_error(csv, monkeypatch):
    def failing(handle: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(rs.StoreError, match="input/output error"):
        build(csv)
