"""`RemotePath` on each store: what a store is asked, and what is told of it."""

from __future__ import annotations

import hashlib
import random
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
from faulty_proxy import Fault
from servers import Server, fresh_stores

import recordspec as rs
from recordspec import remote
from recordspec.errors import MissingExtra, StoreError
from recordspec.remote import RemotePath

pytestmark = pytest.mark.newest


def test_an_object_is_created_once(bucket):
    place = bucket / "a" / "b.txt"
    assert not place.exists()
    remote.create(place, b"one")
    for data in (b"one", b"two"):
        with pytest.raises(FileExistsError):
            remote.create(place, data)
    assert place.read_bytes() == b"one"
    assert place.stat().st_size == 3


def test_an_object_is_replaced_if_it_is_still_the_same(bucket):
    place = bucket / "m.json"
    remote.create(place, b"one")
    data, first = remote.read_stamped(place)
    remote.replace(place, b"two", first)
    data, second = remote.read_stamped(place)
    assert data == b"two"
    for data in (b"two", b"three"):
        with pytest.raises(FileExistsError):
            remote.replace(place, data, first)
    remote.replace(place, b"four", second)
    assert place.read_bytes() == b"four"


def test_what_is_gone_is_not_replaced(bucket):
    place = bucket / "m.json"
    remote.create(place, b"one")
    stamp = remote.read_stamped(place)[1]
    place.unlink()
    place.unlink()
    with pytest.raises(FileExistsError):
        remote.replace(place, b"two", stamp)
    assert not place.exists()


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
@pytest.mark.parametrize("kind", ["status", "drop", "lost answer", "cut"])
def test_a_request_that_fails_is_repeated(bucket, server, method, kind):
    if (method, kind) == ("HEAD", "cut"):
        return  # it has no body
    place = bucket / "m.json"
    with server.proxy.failing(Fault(kind, method, times=2)):
        remote.create(place, b"one" * 100)
        data, stamp = remote.read_stamped(place)
        remote.replace(place, b"two" * 100, stamp)
        assert (data, place.read_bytes(), place.stat().st_size) == (b"one" * 100, b"two" * 100, 300)
        assert server.proxy.faults[0].done == 2


def test_a_manifest_whose_answer_is_cut_is_asked_for_again(bucket, server):
    rs.write({"a": [1, 2]}, rs.Schema.loads("schema: s\nfeatures: {a: int64}"), str(bucket))
    with server.proxy.failing(Fault("cut", "GET", "manifest", times=3)):
        assert rs.Manifest.load(str(bucket)).splits["train"][0].records == 2
        assert server.proxy.faults[0].done == 3


@pytest.fixture
def one_retry(monkeypatch):
    """Requests are repeated once. The stores of this test are not kept for others."""
    monkeypatch.setitem(remote._RETRY, "max_retries", 1)
    with fresh_stores():
        yield


def endpoint(server: Server) -> str:
    """The server, as messages name it."""
    return server.proxy.url


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_the_reason_of_a_refusal_is_told_though_a_head_has_none(bucket, server, method):
    place = bucket / "m.json"
    expired = Fault("status", times=99, status=400, body=b"<Error><Code>ExpiredToken</Code></Error>")
    asked = {
        "HEAD": [place.stat, place.exists, lambda: remote.uploaded(place)],
        "GET": [lambda: remote.read_range(place, 2, 9)],
    }
    for ask in asked[method]:
        with server.proxy.failing(expired), pytest.raises(StoreError) as error:
            ask()
        assert str(error.value) == (
            f"{place}: cannot read: {endpoint(server)} refuses the credentials: 400 Bad Request (ExpiredToken) "
            "(see `recordspec docs stores`)"
        )


@pytest.fixture
def role(monkeypatch, tmp_path, servers):
    """An environment of S3 without credentials, on a machine without a role."""
    server = servers("s3")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setitem(remote._RETRY, "max_retries", 0)
    with fresh_stores():
        yield server


@pytest.mark.parametrize(
    ("url", "name", "value", "end"),
    [
        ("s3://b/x", "AWS_ENDPOINT_URL", "", "an empty value (unset it for the endpoint of the provider)"),
        ("s3://b/x", "AWS_ENDPOINT_URL", "foo", "`foo` (is `http://foo` meant?)"),
        ("s3://b/x", "AWS_ENDPOINT", "h:9000", "`h:9000` (is `http://h:9000` meant?)"),
        (
            "s3://b/x",
            "AWS_ENDPOINT_URL_S3",
            "ftp://h",
            "`ftp://h` (unset it for the endpoint of the provider)",
        ),
        ("gs://b/x", "GOOGLE_BASE_URL", "foo", "`foo` (is `http://foo` meant?)"),
        ("az://b/x", "AZURE_ENDPOINT", "h:9000", "`h:9000` (is `http://h:9000` meant?)"),
    ],
)
def test_an_endpoint_that_is_no_url_is_told(url, name, value, end, monkeypatch):
    """obstore panics, which is not an Exception."""
    monkeypatch.setenv(name, value)
    with fresh_stores(), pytest.raises(rs.StoreError) as caught:
        rs.Manifest.load(url)
    expected = "expected the URL of an endpoint such as https://minio.example.com"
    assert str(caught.value) == f"{name}: {expected}, got {end}"


def test_that_there_are_no_credentials_is_told_before_a_request(role):
    place = RemotePath.parse(f"{role.root}/a/b")
    with role.proxy.failing(), pytest.raises(StoreError) as error:
        place.read_bytes()
    assert str(error.value) == (
        f"{place}: cannot read: no credentials were found: the environment has none, and this machine no role "
        "(see `recordspec docs stores`)"
    )
    assert role.proxy.log == []


def test_a_profile_of_the_aws_command_has_credentials(role, monkeypatch, tmp_path):
    pytest.importorskip("boto3")
    (tmp_path / "AWS_SHARED_CREDENTIALS_FILE").write_text(
        "[default]\naws_access_key_id = AKIDEFAULT\naws_secret_access_key = x\n"
        "[team]\naws_access_key_id = AKITEAM\naws_secret_access_key = y\n"
    )
    asked: list[str] = []
    place = RemotePath.parse(f"{role.root}/profiles/{uuid.uuid4()}")
    monkeypatch.setattr(role.proxy, "seen", lambda headers: asked.append(headers.get("Authorization", "")))
    remote.create(place, b"1")
    monkeypatch.setenv("AWS_PROFILE", "team")
    with fresh_stores():
        assert place.read_bytes() == b"1"
    assert ["AKIDEFAULT" in asked[0], "AKITEAM" in asked[-1]] == [True, True]
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with fresh_stores(), pytest.raises(StoreError, match=r"cannot read the profiles of ~/\.aws: .*nobody"):
        place.read_bytes()
    monkeypatch.setitem(sys.modules, "boto3", None)
    with fresh_stores(), pytest.raises(MissingExtra, match=r"expected boto3 for the profiles of ~/\.aws"):
        place.read_bytes()


def test_a_slow_store_is_waited_for_while_bytes_come(servers, tmp_path, monkeypatch):
    """20 MiB take 4.2 s, longer than anything may be silent. A part of 5 MiB takes 1 s: the rest is for a busy machine."""
    monkeypatch.setitem(remote._CLIENT, "read_timeout", "4s")
    monkeypatch.setitem(remote._UPLOAD_CLIENT, "read_timeout", "4s")
    monkeypatch.setattr(remote, "_PARTS_AT_ONCE", 1)
    monkeypatch.setitem(remote._RETRY, "max_retries", 0)
    data = random.Random(1).randbytes(20 << 20)
    (tmp_path / "shard").write_bytes(data)
    server = servers("s3")
    place = RemotePath.parse(f"{server.root}/slow/shard")
    with fresh_stores(), server.proxy.failing(Fault("slow", times=99, rate=5e6)):
        assert remote.upload(place, tmp_path / "shard", hashlib.sha256(data).hexdigest())
        assert b"".join(map(bytes, remote.stream(place))) == data
    assert place.read_bytes() == data


@pytest.mark.parametrize("kind", ["lost answer", "no answer", "status"])
def test_each_request_of_an_upload_is_repeated(bucket, server, tmp_path, monkeypatch, kind):
    monkeypatch.setitem(remote._RETRY, "max_retries", 1)
    for size in (3, 6 << 20):  # one request, and two parts after an empty object
        (tmp_path / "shard").write_bytes(bytes(size))
        with fresh_stores(), server.proxy.failing(Fault("status", "NONE")):
            assert remote.upload(bucket / f"{size}", tmp_path / "shard", "0")
            requests = sum(server.proxy.requests[method] for method in ("PUT", "POST"))
        with monkeypatch.context() as patched:
            skips = range(requests)
            if kind == "no answer":  # for two seconds each: of the first and the last
                skips = sorted({0, requests - 1})
                patched.setitem(remote._UPLOAD_CLIENT, "read_timeout", "2s")
            for skip in skips:
                place = bucket / f"{size}-{skip}"
                with fresh_stores(), server.proxy.failing(Fault(kind, "PUT|POST", skip=skip)):
                    assert remote.upload(
                        place, tmp_path / "shard", hashlib.sha256(bytes(size)).hexdigest()
                    ), skip
                    assert server.proxy.faults[0].done == 1
                assert place.read_bytes() == bytes(size)


def test_a_store_that_does_not_answer_is_told(bucket, server, monkeypatch):
    for client in (remote._CLIENT, remote._UPLOAD_CLIENT):
        monkeypatch.setitem(client, "read_timeout", "200ms")
    monkeypatch.setitem(remote._RETRY, "max_retries", 1)
    place = bucket / "m.json"
    with fresh_stores(), server.proxy.failing(Fault("no answer", times=99)):
        with pytest.raises(StoreError) as error:
            place.read_bytes()
        assert str(error.value) == f"{place}: cannot read: no answer from {endpoint(server)} (tried 2 times)"
        with pytest.raises(StoreError, match=f"cannot write: no answer from {endpoint(server)}"):
            remote.create(place, b"x")


def test_a_download_goes_on_where_it_was_cut(bucket, server, monkeypatch):
    data = random.Random(1).randbytes(3 << 20)
    place = bucket / "shard"
    remote.create(place, data)
    monkeypatch.setitem(remote._RETRY, "max_retries", 0)
    with fresh_stores(), server.proxy.failing(Fault("cut", "GET", times=4)):
        assert b"".join(map(bytes, remote.stream(place))) == data
        assert server.proxy.requests == {"GET": 5}
    with fresh_stores(), server.proxy.failing(Fault("cut", "GET", times=99)), pytest.raises(StoreError):
        list(remote.stream(place))


def test_a_file_that_is_not_uploaded_leaves_nothing(bucket, server, tmp_path, one_retry):
    (tmp_path / "page").write_bytes(b"1" * 10)
    with server.proxy.failing(Fault("status", "PUT", times=99, skip=1)), pytest.raises(StoreError):
        remote.put_file(bucket / "page", tmp_path / "page", overwrite=False)
    assert not (bucket / "page").exists()
    assert remote.put_file(bucket / "page", tmp_path / "page", overwrite=False)
    assert not remote.put_file(bucket / "page", tmp_path / "page", overwrite=False)
    assert (bucket / "page").read_bytes() == b"1" * 10


def test_a_failure_that_stays_is_told_with_its_url(bucket, server, one_retry):
    place = bucket / "m.json"
    with server.proxy.failing(Fault("status", times=99, status=503)), pytest.raises(StoreError) as error:
        place.read_bytes()
    assert str(error.value) == f"{place}: cannot read: {endpoint(server)} answers: 503 Service Unavailable"
    refused = Fault("status", times=99, status=403, body=b"<Error><Code>AccessDenied</Code></Error>")
    with server.proxy.failing(refused), pytest.raises(StoreError) as error:
        remote.create(place, b"x")
    assert str(error.value) == (
        f"{place}: cannot write: {endpoint(server)} refuses the credentials: 403 Forbidden (AccessDenied) "
        "(see `recordspec docs stores`)"
    )
    assert len(server.proxy.log) == 1
    assert not place.exists()


@pytest.mark.parametrize("parts", [1, 3])
def test_an_upload_has_its_sha256(bucket, server, tmp_path, monkeypatch, parts):
    data = random.Random(1).randbytes(20 << 20)
    (tmp_path / "shard").write_bytes(data)
    place = bucket / "shard"
    sha256 = hashlib.sha256(data).hexdigest()
    assert remote.uploaded(place) is None
    monkeypatch.setattr(remote, "_PART", -(-len(data) // parts))
    assert remote.upload(place, tmp_path / "shard", sha256)
    assert remote.uploaded(place) == (sha256, place.stat())
    with server.proxy.failing():
        assert remote.upload(place, tmp_path / "shard", sha256)
    assert len(server.proxy.log) == 1
    assert not remote.upload(place, Path(__file__), "0" * 64)
    assert place.stat().st_size == len(data)
    assert remote.read_range(place, 5, 5) == b""
    assert remote.read_range(place, 7 << 20, (7 << 20) + 9) == data[7 << 20 : (7 << 20) + 9]
    assert remote.read_range(place, len(data) - 3, len(data) + 8) == data[-3:]
    with remote.open_object(place) as file:
        assert file.seek(-4, 2) == len(data) - 4
        assert (file.read(100), file.read(1)) == (data[-4:], b"")
        file.seek(0)
        with server.proxy.failing():
            whole = file.read()
        assert len(server.proxy.log) <= 20
        assert hashlib.sha256(whole).digest() == hashlib.sha256(data).digest()


def test_an_empty_object_is_read(bucket):
    place = bucket / "empty"
    remote.create(place, b"")
    assert (place.read_bytes(), place.stat().st_size) == (b"", 0)
    with remote.open_object(place) as file:
        assert file.read() == b""


KEYS = ["a/b/c", "a/b.txt", "a b/ü%20+&=#?", "a/z", "ab", "a/b/c/d", "d/e/f"]


def test_objects_are_listed_below_a_folder(bucket):
    for number, key in enumerate(KEYS):
        remote.create(bucket / key, b"x" * number)
    assert {str(place.relative_to(bucket)): found.st_size for place, found in remote.walk(bucket)} == {
        key: number for number, key in enumerate(KEYS)
    }
    assert [str(place.relative_to(bucket)) for place, _ in remote.walk(bucket / "a")] == [
        "a/b.txt",
        "a/b/c",
        "a/b/c/d",
        "a/z",
    ]
    assert [place.name for place in (bucket / "a").iterdir()] == ["b.txt", "z"]
    assert (bucket / "a").is_dir()
    assert (bucket / "d").is_dir()
    assert list((bucket / "d").iterdir()) == []
    assert not (bucket / "a/z").is_dir()
    assert not (bucket / "nothing").is_dir()
    assert (bucket / KEYS[2]).read_bytes() == b"xx"


def test_a_long_list_comes_in_pages(servers):
    server = servers("gs")
    assert server.gcs is not None
    bucket = RemotePath.parse(f"{server.root}/pages")
    for number in range(10):
        remote.create(bucket / str(number), b"")
    server.gcs.page = 3
    try:
        with server.proxy.failing():
            assert [place.name for place, _ in remote.walk(bucket)] == list("0123456789")
        assert server.proxy.requests == {"GET": 4}
    finally:
        server.gcs.page = 1000


@pytest.mark.parametrize("action", [RemotePath.read_bytes, RemotePath.stat, remote.open_object])
def test_a_missing_object_is_not_found(bucket, action):
    with pytest.raises(FileNotFoundError) as error:
        action(bucket / "no" / "such")
    assert str(error.value) == f"[Errno 2] No such file or directory: '{bucket}/no/such'"


def test_a_missing_bucket_is_named(server):
    place = RemotePath.parse(f"{server.scheme}://no-such-bucket/a/b")
    expected = f"{place}: expected the bucket of {server.scheme}://no-such-bucket, got none"
    for action in (place.read_bytes, lambda: list(remote.walk(place)), lambda: remote.create(place, b"x")):
        with pytest.raises(StoreError) as error:
            action()
        assert str(error.value) == expected


@pytest.mark.parametrize("name", ["a b", "100%", "a%20b", "a#1?b=c&d", "ü/e\u0301", "a+b", "[1]*", "~;,:@="])
def test_an_object_of_an_odd_name(bucket, name):
    place = bucket / name
    remote.create(place, b"one")
    assert (place.read_bytes(), remote.read_range(place, 1, 2), place.stat().st_size) == (b"one", b"n", 3)
    assert [path for path, _ in remote.walk(bucket)] == [place]
    assert [*place.parent.iterdir()] == [place]
    remote.replace(place, b"two", remote.read_stamped(place)[1])
    assert remote.open_object(place).read() == b"two"
    place.unlink()
    assert not place.exists()


@pytest.fixture
def raw(bucket, server) -> Callable[[str], None]:
    """Makes an object of any name; obstore takes no such one."""
    if server.scheme != "s3":
        pytest.skip("the server of S3 takes requests without a signature")

    def put(name: str) -> None:
        url = f"{server.environment['AWS_ENDPOINT_URL']}/{bucket.root[5:]}/{quote(f'{bucket.key}/{name}')}"
        urlopen(Request(url, b"", method="PUT")).close()

    return put


def test_the_mark_of_a_folder_is_not_in_it(bucket, raw):
    raw("")
    assert bucket.is_dir()
    remote.create(bucket / "x", b"1")
    assert [path for path, _ in remote.walk(bucket)] == [*bucket.iterdir()] == [bucket / "x"]


@pytest.mark.parametrize("name", ["a//b", "a/../b", "a\x01b"])
def test_an_object_that_cannot_be_named_is_told(bucket, raw, name):
    raw(name)
    with pytest.raises(
        StoreError, match=f"{bucket}: cannot list: encountered object with invalid path: "
    ) as e:
        list(remote.walk(bucket))
    assert "\n" not in str(e.value)


def test_credentials_that_are_refused_are_told_of_a_list(bucket, server):
    refused = Fault("status", times=99, status=403, body=b"<Error><Code>AccessDenied</Code></Error>")
    for listing in (lambda: remote.walk(bucket), bucket.iterdir, bucket.is_dir):
        with server.proxy.failing(refused), pytest.raises(StoreError) as error:
            list(listing())
        assert str(error.value) == (
            f"{bucket}: cannot list: {endpoint(server)} refuses the credentials: 403 Forbidden (AccessDenied) "
            "(see `recordspec docs stores`)"
        )


def test_a_list_that_fails_is_repeated_once_more_by_nobody(bucket, server, one_retry):
    """obstore has repeated it, also where the answer is a page with a body."""
    page = Fault("status", times=99, status=503, body=b"<html><body>no</body></html>")
    with server.proxy.failing(page), pytest.raises(StoreError, match="503 Service Unavailable"):
        list(remote.walk(bucket))
    assert len(server.proxy.log) == 2


@pytest.mark.parametrize(
    "read",
    [
        RemotePath.read_bytes,
        lambda place: remote.open_object(place).read(),
        lambda place: remote.read_at_most(place, 500),
    ],
)
def test_a_wrong_byte_of_a_whole_object_is_seen(bucket, server, read):
    place = bucket / "m.json"
    remote.create(place, b"right" * 100)
    with server.proxy.failing(Fault("flip", "GET")):
        assert read(place) == b"right" * 100
        assert server.proxy.requests["GET"] == 2
    with server.proxy.failing(Fault("flip", "GET", times=9)), pytest.raises(StoreError) as error:
        read(place)
    assert str(error.value).startswith(f"{place}: expected bytes of the sha256 ")
