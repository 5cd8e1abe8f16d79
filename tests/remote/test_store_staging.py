"""A folder of copies: its size is kept, copies are what the manifest says, processes share it and may be killed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
from faulty_proxy import Fault

from recordspec import remote
from recordspec.errors import StoreError
from recordspec.remote import RemotePath
from recordspec.store import staging
from recordspec.store.staging import StagedObject, StagingFolder
from waiting import wait_for_a_later_time, wait_until

KIB = 1 << 10


@pytest.fixture
def server(servers):
    return servers("gs")


def put(place: RemotePath, seed: int, size: int) -> StagedObject:
    data = random.Random(seed).randbytes(size)
    remote.create(place, data)
    return StagedObject(remote=place, bytes=size, sha256=hashlib.sha256(data).hexdigest())


def names(folder: Path) -> list[str]:
    """The copies, and the downloads that run."""
    found = sorted(path.name for path in folder.iterdir() if path.name != ".lock")
    return [name for name in found if not name.endswith(".stamp")]


def held(folder: Path) -> int:
    """The bytes of copies on the disk, by size or by blocks, the larger; 0 where files came or went meanwhile."""
    before = sorted(set(os.listdir(folder)) - {".lock"})
    total = 0
    for name in before:
        try:
            found = os.stat(folder / name)
        except FileNotFoundError:
            return 0
        total += max(found.st_size, found.st_blocks * 512)
    return total if before == sorted(set(os.listdir(folder)) - {".lock"}) else 0


def test_an_object_is_copied_once(bucket, server, tmp_path):
    one = put(bucket / "one", 1, 300 * KIB)
    folder = StagingFolder(tmp_path, 1 << 20)
    with server.proxy.failing():
        leases = [folder.fetch(one) for _ in range(3)]
    assert server.proxy.requests["GET"] == 1
    for lease in leases:
        assert lease.path.read_bytes() == one.remote.read_bytes()
        lease.release()
        lease.release()
    assert names(tmp_path) == [one.sha256]


def flip(path: Path, byte: int | None = None) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if byte is None else byte] ^= 1
    path.write_bytes(data)


def flip_in_place(path: Path) -> None:
    """Flips a bit and sets the time of the file back."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(1000)
        byte = file.read(1)
        file.seek(1000)
        file.write(bytes([byte[0] ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


DAMAGE = {
    "flipped": flip,
    "flipped in place": flip_in_place,
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
}


def message(path: Path, one: StagedObject, got: str = "other bytes") -> str:
    hint = "it is deleted, and the object is copied again to be read"
    return f"{path}: expected a copy of {one.remote}, got {got} ({hint})"


def test_a_copy_that_was_changed_is_named_and_made_again(bucket, server, tmp_path, caplog):
    objects = {name: put(bucket / str(seed), seed, 20 * KIB) for seed, name in enumerate(DAMAGE)}
    folder = StagingFolder(tmp_path, 1 << 20)
    for name, one in objects.items():
        lease = folder.fetch(one)
        lease.release()
        wait_for_a_later_time(lease.path)
        DAMAGE[name](lease.path)
        for requests in (1, 0):
            with server.proxy.failing():
                again = folder.fetch(one)
            assert server.proxy.requests["GET"] == requests
            assert hashlib.sha256(again.path.read_bytes()).hexdigest() == one.sha256
            again.release()
    assert caplog.messages == [message(tmp_path / one.sha256, one) for one in objects.values()]
    assert names(tmp_path) == sorted(one.sha256 for one in objects.values())


def test_a_copy_is_hashed_again_only_if_its_file_is_another(bucket, server, tmp_path, monkeypatch):
    one = put(bucket / "one", 1, 20 * KIB)
    folder = StagingFolder(tmp_path, 1 << 20)
    folder.fetch(one).release()
    hashed = []
    sha256 = staging._sha256
    monkeypatch.setattr(staging, "_sha256", lambda handle: hashed.append(handle) or sha256(handle))
    path = tmp_path / one.sha256
    moved = path.with_name("moved")

    def copied() -> None:
        moved.write_bytes(path.read_bytes())
        moved.replace(path)

    changes = [lambda: None, path.touch, copied, path.with_name(f"{path.name}.stamp").unlink]
    for change, count in zip(changes, (0, 1, 2, 3), strict=True):
        wait_for_a_later_time(path)
        change()
        for _ in range(2):
            with server.proxy.failing():
                folder.fetch(one).release()
            assert server.proxy.requests.get("GET", 0) == 0
            assert len(hashed) == count


def test_an_object_without_a_hash_is_compared_with_its_download(bucket, server, tmp_path, caplog):
    data = random.Random(1).randbytes(20 * KIB)
    remote.create(bucket / "one", data)
    one = StagedObject(
        remote=bucket / "one", bytes=20 * KIB, sha256=None, e_tag=(bucket / "one").stat().e_tag
    )
    folder = StagingFolder(tmp_path, 1 << 20)
    path = tmp_path / one.name
    stamp = path.with_name(f"{path.name}.stamp")
    for change, requests in ((path.touch, 0), (lambda: flip(path), 1), (stamp.unlink, 1)):
        folder.fetch(one).release()
        wait_for_a_later_time(path)
        change()
        with server.proxy.failing():
            folder.fetch(one).release()
        assert server.proxy.requests.get("GET", 0) == requests
        assert path.read_bytes() == data
    assert caplog.messages == [message(path, one), message(path, one, "one without its hash")]


def test_a_copy_is_on_the_disk_before_it_has_its_name(bucket, tmp_path, monkeypatch):
    calls, fsync, rename = [], os.fsync, Path.rename

    def flushed(handle: int) -> None:
        calls.append(("fsync", os.fstat(handle).st_ino))
        fsync(handle)

    def renamed(path: Path, target: Path) -> Path:
        calls.append(("rename", path.stat().st_ino))
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(Path, "rename", renamed)
    lease = StagingFolder(tmp_path, 1 << 20).fetch(put(bucket / "one", 1, 20 * KIB))
    inode = lease.path.stat().st_ino
    assert calls == [("fsync", inode), ("rename", inode)]
    lease.release()


def use(folder: StagingFolder, one: StagedObject) -> None:
    """Fetches a copy. The next use is at a later time."""
    folder.fetch(one).release()
    wait_for_a_later_time(folder.folder / f"{one.name}.stamp")


def test_the_copy_that_was_used_the_longest_ago_goes(bucket, tmp_path):
    folder = StagingFolder(tmp_path, 1000 * KIB)
    objects = [put(bucket / str(number), number, 300 * KIB) for number in range(5)]
    for one in (*objects[:3], objects[0]):
        use(folder, one)
    folder.fetch(objects[3]).release()
    assert names(tmp_path) == sorted(objects[number].sha256 for number in (0, 2, 3))
    held_by_reader = folder.fetch(objects[2])
    wait_for_a_later_time(held_by_reader.path.with_name(f"{objects[2].name}.stamp"))
    for number in (0, 3):
        use(folder, objects[number])
    folder.fetch(objects[4]).release()
    assert held_by_reader.path.exists()
    left = sorted(objects[number].sha256 for number in (2, 3, 4))
    assert names(tmp_path) == left
    assert sorted(path.stem for path in tmp_path.glob("*.stamp")) == left


def test_copies_are_counted_once_and_not_for_each_other_one(bucket, tmp_path, monkeypatch):
    """To look at all copies for each was quadratic: 33 s of CPU for 2,000."""
    looks, real = [], os.scandir

    def look(folder):
        looks.append(folder)
        return real(folder)

    def counted() -> int:
        return int((tmp_path / ".lock").read_text())

    monkeypatch.setattr(staging.os, "scandir", look)
    objects = [put(bucket / str(number), number, 10 * KIB) for number in range(24)]
    folder = StagingFolder(tmp_path, 160 * KIB)  # ten copies
    for one in objects[:20]:
        use(folder, one)
    assert len(looks) == 2  # at the start, and for the first that goes
    assert names(tmp_path) == sorted(one.sha256 for one in objects[10:20])
    assert counted() == held(tmp_path) == 160 * KIB
    (tmp_path / objects[10].sha256).unlink()  # somebody else has deleted it
    use(folder, objects[11])
    (tmp_path / ".lock").write_text("")  # a process died
    use(StagingFolder(tmp_path, 160 * KIB), objects[20])
    assert counted() == held(tmp_path) == 160 * KIB
    use(folder, objects[21])
    use(folder, objects[22])
    use(folder, objects[23])
    assert names(tmp_path) == sorted(objects[number].sha256 for number in (11, *range(15, 24)))
    assert counted() == held(tmp_path) == 160 * KIB


def test_a_full_disk_gets_room_by_unused_copies(bucket, tmp_path, monkeypatch):
    copy, disk = staging._copy, 700 * KIB

    def full(wanted: StagedObject, handle: int, stopped: Event) -> str:
        if sum((tmp_path / name).stat().st_size for name in names(tmp_path)) > disk:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return copy(wanted, handle, stopped)

    monkeypatch.setattr(staging, "_copy", full)
    folder = StagingFolder(tmp_path, 1 << 30)
    objects = [put(bucket / str(number), number, 300 * KIB) for number in range(4)]
    for one in objects[:3]:
        lease = folder.fetch(one)
        assert hashlib.sha256(lease.path.read_bytes()).hexdigest() == one.sha256
        lease.release()
        wait_for_a_later_time(lease.path.with_name(f"{one.name}.stamp"))
    assert names(tmp_path) == sorted(one.sha256 for one in objects[1:3])
    leases = [folder.fetch(one) for one in objects[1:3]]
    with pytest.raises(StoreError) as error:
        folder.fetch(objects[3])
    start, _, end = str(error.value).partition(" bytes, ")
    assert start == (
        f"{objects[3].remote}: cannot copy it to {tmp_path}: no space left on device"
        f" (`staging.size` is {1 << 30:,}"
    )
    assert re.fullmatch(r"[0-9,]+ are free, and no copy is unused\)", end)
    assert names(tmp_path) == sorted(one.sha256 for one in objects[1:3])
    leases[0].release()
    folder.fetch(objects[3]).release()
    assert names(tmp_path) == sorted(one.sha256 for one in objects[2:])
    leases[1].release()


def test_what_others_read_leaves_no_room(bucket, tmp_path, monkeypatch):
    monkeypatch.setattr("recordspec.store.staging._PATIENCE", 0.2)
    folder = StagingFolder(tmp_path, 500 * KIB)
    one, two = (put(bucket / str(number), number, 300 * KIB) for number in range(2))
    lease = folder.fetch(one)
    with pytest.raises(StoreError) as error:
        folder.fetch(two)
    hint = f"copies that are being read fill {tmp_path}; give it a larger size"
    assert (
        str(error.value)
        == f"`{two.remote}` finds no room for its 307,200 bytes in a folder of 512,000: {hint}"
    )
    assert names(tmp_path) == [one.sha256]
    lease.release()
    folder.fetch(two).release()
    assert names(tmp_path) == [two.sha256]


def test_what_is_larger_than_the_folder_is_refused(bucket, tmp_path):
    one = put(bucket / "one", 1, 300 * KIB)
    with pytest.raises(StoreError) as error:
        StagingFolder(tmp_path, 100 * KIB).fetch(one)
    assert str(error.value) == f"{one.remote}: expected a staging size of 307,200 bytes at least, got 102,400"


def test_other_files_of_the_folder_stay(bucket, tmp_path):
    (tmp_path / "notes.txt").write_bytes(b"x" * 900 * KIB)
    folder = StagingFolder(tmp_path, 400 * KIB)
    for number in range(3):
        folder.fetch(put(bucket / str(number), number, 300 * KIB)).release()
    assert len(names(tmp_path)) == 2
    assert (tmp_path / "notes.txt").stat().st_size == 900 * KIB


@pytest.mark.parametrize("kind", ["flip", "cut", "drop", "status"])
def test_a_fault_is_repeated_once_for_bytes_and_often_for_requests(bucket, server, tmp_path, kind):
    one = put(bucket / "one", 1, 300 * KIB)
    folder = StagingFolder(tmp_path, 1 << 20)
    with server.proxy.failing(Fault(kind, "GET")):
        lease = folder.fetch(one)
        assert server.proxy.faults[0].done == 1
    assert hashlib.sha256(lease.path.read_bytes()).hexdigest() == one.sha256
    lease.release()


def test_bytes_that_stay_wrong_are_an_error(bucket, server, tmp_path):
    one = put(bucket / "one", 1, 300 * KIB)
    folder = StagingFolder(tmp_path, 1 << 20)
    with server.proxy.failing(Fault("flip", "GET", times=9)), pytest.raises(StoreError) as error:
        folder.fetch(one)
    assert str(error.value).startswith(
        f"{one.remote}: expected bytes of the sha256 {one.sha256[:12]}..., as the manifest says, got "
    )
    assert names(tmp_path) == []
    one.remote.unlink()
    with pytest.raises(StoreError) as error:
        folder.fetch(one)
    assert str(error.value) == f"`{one.remote}` does not exist, and the manifest lists it"
    assert names(tmp_path) == []


def test_an_object_of_another_size_is_an_error(bucket, tmp_path):
    for size in (200 * KIB, 400 * KIB):
        wanted = StagedObject(remote=bucket / str(size), bytes=300 * KIB, sha256="0" * 64)
        remote.create(wanted.remote, b"x" * size)
        with pytest.raises(StoreError, match="as the manifest says"):
            StagingFolder(tmp_path, 1 << 20).fetch(wanted)
        assert names(tmp_path) == []


# Fetches objects in a random order, reads each copy and compares its hash, until the file `stop` exists; prints the number of reads.
READER = """
import hashlib, json, random, sys, time
from pathlib import Path
from recordspec.remote import RemotePath
from recordspec.store.staging import StagedObject, StagingFolder
folder, size, seed, stop, objects = json.loads(sys.argv[1])
objects = [StagedObject(remote=RemotePath.parse(url), bytes=bytes, sha256=sha256) for url, bytes, sha256 in objects]
staging, numbers, done = StagingFolder(Path(folder), size), random.Random(seed), 0
print("begun", flush=True)
while done < 20 or not Path(stop).exists():
    one = numbers.choice(objects)
    lease = staging.fetch(one)
    time.sleep(0.003)  # others need room meanwhile
    assert hashlib.sha256(lease.path.read_bytes()).hexdigest() == one.sha256
    lease.release()
    done += 1
print(done)
"""


@pytest.mark.services
def test_processes_share_a_folder_whose_size_is_kept_while_one_is_killed(bucket, server, tmp_path):
    objects = [put(bucket / str(number), number, 100 * KIB + number * 7001) for number in range(12)]
    told = [(str(one.remote), one.bytes, one.sha256) for one in objects]
    size = 700 * KIB
    folder, stop = tmp_path / "copies", tmp_path / "stop"

    def reader(seed: int) -> subprocess.Popen:
        given = json.dumps([str(folder), size, seed, str(stop), told])
        process = subprocess.Popen([sys.executable, "-c", READER, given], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        return process

    folder.mkdir()
    most = 0

    def is_downloaded() -> bool:
        """Looks many times at the size, and then whether there is a download, of whichever process."""
        nonlocal most
        most = max(most, *(held(folder) for _ in range(50)))
        return most > size * 0.5 and any(name.endswith(".part") for name in names(folder))

    readers = [reader(seed) for seed in range(2)]
    for seed in range(2, 12):
        killed = reader(seed)
        wait_until(is_downloaded)
        killed.kill()
        killed.wait()
    stop.touch()
    done = [one.communicate()[0] for one in readers]
    assert [one.returncode for one in readers] == [0, 0]
    assert min(map(int, done)) >= 20
    assert most <= size
    # nothing is left locked or half
    last = StagingFolder(folder, size)
    for one in objects:
        lease = last.fetch(one)
        assert hashlib.sha256(lease.path.read_bytes()).hexdigest() == one.sha256
        lease.release()
    assert held(folder) <= size
    assert not any(name.endswith(".part") for name in names(folder))
