"""`RemotePath` on each store: what a store is asked, and what is told of it."""

from __future__ import annotations

import hashlib
import random

import pytest

from recordspec.errors import StoreError
from recordspec.remote import RemotePath


def test_an_object_is_created_once(bucket):
    place = bucket / "a" / "b.txt"
    assert not place.exists()
    stamp = place.create(b"one")
    with pytest.raises(FileExistsError):
        place.create(b"two")
    assert place.read_bytes() == b"one"
    assert place.read_stamped() == (b"one", stamp)
    assert place.stat().st_size == 3


def test_an_object_is_replaced_if_it_is_still_the_same(bucket):
    place = bucket / "m.json"
    first = place.create(b"one")
    second = place.replace(b"two", first)
    assert place.read_stamped() == (b"two", second)
    with pytest.raises(FileExistsError):
        place.replace(b"three", first)
    assert place.read_bytes() == b"two"


def test_what_is_gone_is_not_replaced(bucket):
    place = bucket / "m.json"
    stamp = place.create(b"one")
    place.unlink()
    place.unlink()
    with pytest.raises(FileExistsError):
        place.replace(b"two", stamp)
    assert not place.exists()


def test_an_upload_has_its_sha256(bucket, server, tmp_path):
    data = random.Random(1).randbytes(40 << 20)  # in three parts
    (tmp_path / "shard").write_bytes(data)
    place = bucket / "shard"
    assert place.sha256() is None
    place.upload(tmp_path / "shard", hashlib.sha256(data).hexdigest())
    assert place.sha256() == hashlib.sha256(data).hexdigest()
    assert place.stat().st_size == len(data)
    assert place.read_range(5, 5) == b""
    assert place.read_range(17 << 20, (17 << 20) + 9) == data[17 << 20 : (17 << 20) + 9]
    assert place.read_range(len(data) - 3, len(data) + 8) == data[-3:]
    with place.open() as file:
        assert file.seek(-4, 2) == len(data) - 4
        assert (file.read(100), file.read(1)) == (data[-4:], b"")
        file.seek(0)
        with server.proxy.failing():
            whole = file.read()
        assert len(server.proxy.log) == 1
        assert hashlib.sha256(whole).digest() == hashlib.sha256(data).digest()


def test_an_empty_object_is_read(bucket):
    place = bucket / "empty"
    place.create(b"")
    assert (place.read_bytes(), place.stat().st_size) == (b"", 0)
    with place.open() as file:
        assert file.read() == b""


KEYS = ["a/b/c", "a/b.txt", "a b/ü%20+&=#?", "a/z", "ab", "a/b/c/d"]


def test_objects_are_listed_below_a_folder(bucket):
    for number, key in enumerate(KEYS):
        (bucket / key).create(b"x" * number)
    assert {str(place.relative_to(bucket)): found.st_size for place, found in bucket.walk()} == {
        key: number for number, key in enumerate(KEYS)
    }
    assert [str(place.relative_to(bucket)) for place, _ in (bucket / "a").walk()] == [
        "a/b.txt",
        "a/b/c",
        "a/b/c/d",
        "a/z",
    ]
    assert [place.name for place in (bucket / "a").iterdir()] == ["b.txt", "z"]
    assert (bucket / "a").is_dir()
    assert not (bucket / "a/z").is_dir()
    assert not (bucket / "nothing").is_dir()
    assert (bucket / KEYS[2]).read_bytes() == b"xx"


def test_a_long_list_comes_in_pages(servers):
    server = servers("gs")
    assert server.gcs is not None
    bucket = RemotePath.parse(f"{server.root}/pages")
    for number in range(10):
        (bucket / str(number)).create(b"")
    server.gcs.page = 3
    try:
        with server.proxy.failing():
            assert [place.name for place, _ in bucket.walk()] == list("0123456789")
        assert server.proxy.requests == {"GET": 4}
    finally:
        server.gcs.page = 1000


@pytest.mark.parametrize("action", ["read_bytes", "stat", "open"])
def test_a_missing_object_is_not_found(bucket, action):
    with pytest.raises(FileNotFoundError) as error:
        getattr(bucket / "no" / "such", action)()
    assert str(error.value) == f"[Errno 2] No such file or directory: '{bucket}/no/such'"


def test_a_missing_bucket_is_named(server):
    place = RemotePath.parse(f"{server.scheme}://no-such-bucket/a/b")
    expected = f"{place}: expected the bucket of {server.scheme}://no-such-bucket, got none"
    for action in (place.read_bytes, lambda: list(place.walk()), lambda: place.create(b"x")):
        with pytest.raises(StoreError) as error:
            action()
        assert str(error.value) == expected
