"""SIGKILL of a process that builds into a store, at each of its requests: before the server does it, and after."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from queue import SimpleQueue

import pytest
from faulty_proxy import Fault
from forking import Forking

import recordspec as rs
from recordspec import remote
from recordspec.remote import RemotePath
from recordspec.wire.hashes import sha256_of

pytestmark = [pytest.mark.services, pytest.mark.newest, pytest.mark.long]

SCHEMA = "schema: s\nfeatures:\n  id: int64\n  text: string\n"
CONFIG = """\
schema: schema.yaml
data: data
write: {{source: {{csv: {rows}.csv}}, key: id, splits: {{train: 3, test: 1}}, shards: 2, shuffle: {{seed: 2}}}}
"""
STATES = {"old": range(40), "new": range(100, 160), "more": range(40, 70)}
# What is killed, what is there before it, and how it goes on.
BUILDS = {
    "build": (["new"], None, [["new"], ["new", "--resume"]]),
    "force": (["new", "--force"], "old", [["new", "--force"], ["new", "--force", "--resume"]]),
    "append": (["more", "--append"], "old", [["more", "--append"], ["more", "--append", "--resume"]]),
}
KILLS = 8


@pytest.fixture(params=["gs", "s3"])
def server(request, servers):
    return servers(request.param)


@pytest.fixture
def forking(server, tmp_path) -> Iterator[Forking]:
    (tmp_path / "tmp").mkdir()
    one = Forking(tmp_path / "log", {"TMPDIR": str(tmp_path / "tmp")})
    yield one
    one.close()


def put_inputs(place: RemotePath) -> None:
    remote.create(place / "schema.yaml", SCHEMA.encode())
    for name, numbers in STATES.items():
        remote.create(
            place / f"{name}.csv", b"id,text\n" + b"".join(b"%d,row %d\n" % (n, n) for n in numbers)
        )
        remote.create(place / f"{name}.yaml", CONFIG.format(rows=name).encode())


def build(place: RemotePath, config: str, *more: str) -> list[str]:
    return ["build", f"{place}/{config}.yaml", *more]


def dataset(place: RemotePath) -> dict[str, str] | None:
    """The sha256 of each shard by split and number, as a reader finds the dataset, which is whole; None without one."""
    data = place / "data"
    if not (data / "manifest.json").exists():
        return None
    manifest = rs.Manifest.load(data)
    assert rs.Schema.load(data / manifest.name_of("schema.yaml")).fingerprint == manifest.fingerprint
    assert sha256_of(data / manifest.name_of("keys.bin")) == manifest.keys_sha256
    assert sha256_of(data / manifest.name_of("index.bin")) == manifest.index_sha256
    for shard in manifest.all_shards:
        assert sha256_of(data / shard.file) == shard.sha256
    return {
        f"{split} {number}": shard.sha256
        for split, shards in manifest.splits.items()
        for number, shard in enumerate(shards)
    }


@pytest.mark.parametrize("name", [*BUILDS])
def test_a_build_that_is_killed_leaves_the_dataset_before_or_after(server, bucket, forking, name):
    killed, before, again = BUILDS[name]
    random_numbers = random.Random(f"{name} {server.scheme}")

    def prepared(number: object) -> RemotePath:
        place = bucket / str(number)
        put_inputs(place)
        if before is not None:
            assert forking.run(*build(place, before)) == 0, forking.said()
        return place

    place = prepared("undisturbed")
    old = dataset(place)
    with server.proxy.failing():
        assert forking.run(*build(place, *killed)) == 0, forking.said()
    requests, new = len(server.proxy.log), dataset(place)
    assert new not in (None, old)
    seen = set()
    # the last requests, which publish, and others
    points = [*range(requests - 4, requests), *random_numbers.sample(range(requests - 4), KILLS - 4)]
    for number, point in enumerate(points):
        place = prepared(number)
        kind = ("drop", "lost answer")[number % 2]
        child: SimpleQueue[int] = SimpleQueue()  # its request may come before this process knows its number
        fault = Fault(
            kind, skip=point, then=lambda child=child: os.kill(child.get(timeout=60), signal.SIGKILL)
        )
        with server.proxy.failing(fault):
            child.put(forking.start(*build(place, *killed)))
            assert forking.wait() == -signal.SIGKILL, forking.said()
        found = dataset(place)
        assert found in (old, new)
        seen.add(found == new)
        if found == old:
            assert forking.run(*build(place, *again[number // 2 % 2])) == 0, forking.said()
            assert dataset(place) == new
        assert forking.run("sweep", place, "--older-than", "0s", "--delete") == 0, forking.said()
        manifest = rs.Manifest.load(place / "data")
        named = {manifest.name_of(file) for file in ("schema.yaml", "keys.bin", "index.bin")} | manifest.files
        assert {path.name for path in (place / "data").iterdir()} == named | {"manifest.json"}
        assert dataset(place) == new
    assert seen == {False, True}
