"""Several writers of one dataset at once (`store.remote_transaction`), and readers meanwhile."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import unquote

import numpy as np
import pytest

import recordspec as rs
from recordspec import locations
from recordspec.remote import RemotePath
from recordspec.store import remote_transaction
from recordspec.store.expand import expand
from recordspec.wire.hashes import sha256_of
from waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.newest]

SCHEMA = rs.Schema.loads("schema: s\nfeatures:\n  id: int64\n  text: string\n")
OPTIONS = {"key": "id", "split": {"train": 3, "test": 1}, "shuffle": 2, "shards": 2}


def rows(start: int, stop: int) -> list[dict]:
    return [{"id": number, "text": f"row {number}"} for number in range(start, stop)]


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """Each thread builds as a machine of its own would: in a folder of its own."""
    folder = remote_transaction.work_folder

    def of_thread(target: RemotePath):
        (tmp_path / threading.current_thread().name).mkdir(exist_ok=True)
        return tmp_path / threading.current_thread().name / folder(target).name

    monkeypatch.setattr(remote_transaction, "work_folder", of_thread)


def run(*actions) -> list[object]:
    """What each gives or raises, all at once."""
    begin = threading.Barrier(len(actions))

    def one(action):
        begin.wait()
        try:
            return action()
        except rs.RecordspecError as error:
            return error

    with ThreadPoolExecutor(len(actions), thread_name_prefix="machine") as pool:
        return list(pool.map(one, actions))


def check_whole(place: RemotePath) -> rs.Manifest:
    manifest = rs.Manifest.load(place)
    for shard in manifest.all_shards:
        assert sha256_of(place / shard.file) == shard.sha256
    assert sha256_of(place / manifest.name_of("keys.bin")) == manifest.keys_sha256
    assert sha256_of(place / manifest.name_of("index.bin")) == manifest.index_sha256
    return manifest


def ids(place: RemotePath, tmp_path) -> list[int]:
    staging = {"folder": str(tmp_path / "copies"), "size": "1MiB"}
    dataset = rs.read(expand(place), SCHEMA, batch=16, staging=staging)
    return sorted(np.concatenate([batch["id"].numpy() for batch in dataset]).tolist())


@pytest.mark.parametrize("starts", [(0, 100, 200), (0, 0, 0)])
def test_one_of_several_writers_wins(bucket, elsewhere, tmp_path, starts):
    for attempt in range(2):
        place = bucket / str(attempt)

        def write(start: int, place: RemotePath = place) -> rs.Manifest:
            return rs.write(rows(start, start + 50), SCHEMA, place, **OPTIONS)

        found = run(*(partial(write, start) for start in starts))
        errors = [one for one in found if isinstance(one, rs.RecordspecError)]
        assert len(errors) == 2
        for error in errors:
            assert str(error) == f"`{place}` exists: force=True, or --force, replaces it"
        (number,) = (number for number, one in enumerate(found) if isinstance(one, rs.Manifest))
        assert check_whole(place) == found[number]
        assert ids(place, tmp_path) == list(range(starts[number], starts[number] + 50))


def test_one_of_several_that_replace_wins(bucket, elsewhere, tmp_path):
    rs.write(rows(0, 20), SCHEMA, bucket, **OPTIONS)
    found = run(
        *(
            lambda start=start: rs.write(rows(start, start + 50), SCHEMA, bucket, force=True, **OPTIONS)
            for start in (100, 200)
        )
    )
    made = [one for one in found if isinstance(one, rs.Manifest)]
    assert check_whole(bucket) in made
    for one in found:
        if isinstance(one, rs.RecordspecError):
            assert str(one) == f"`{bucket}` was changed by another writer"
    assert len(ids(bucket, tmp_path)) == 50


def test_all_who_add_rows_add_them(bucket, elsewhere, tmp_path):
    rs.write(rows(0, 20), SCHEMA, bucket, **OPTIONS)
    starts = [100, 200, 300]
    found = run(
        *(
            lambda start=start: rs.write(rows(start, start + 30), SCHEMA, bucket, append=True, **OPTIONS)
            for start in starts
        )
    )
    assert [one for one in found if isinstance(one, Exception)] == []
    manifest = check_whole(bucket)
    files = [shard.file for shard in manifest.all_shards]
    assert len(files) == len(set(files)) == 16
    assert ids(bucket, tmp_path) == [*range(20), *(start + n for start in starts for n in range(30))]
    # whatever the order in which they came, no key comes twice
    with pytest.raises(rs.RecordError, match="expected a key that no other row has"):
        rs.write(rows(329, 331), SCHEMA, bucket, append=True, **OPTIONS)


def test_of_two_who_add_the_same_key_one_is_refused(bucket, elsewhere, tmp_path):
    rs.write(rows(0, 20), SCHEMA, bucket, **OPTIONS)
    found = run(*(lambda: rs.write(rows(100, 130), SCHEMA, bucket, append=True, **OPTIONS) for _ in range(2)))
    errors = [one for one in found if isinstance(one, Exception)]
    assert len(errors) == 1
    assert "expected a key that no other row has" in str(errors[0])
    check_whole(bucket)
    assert ids(bucket, tmp_path) == [*range(20), *range(100, 130)]


def test_equal_rows_without_a_key_are_added_by_each(bucket, elsewhere, tmp_path):
    rs.write(rows(0, 20), SCHEMA, bucket)
    found = run(*(lambda: rs.write(rows(100, 130), SCHEMA, bucket, append=True) for _ in range(2)))
    assert [one for one in found if isinstance(one, Exception)] == []
    assert ids(bucket, tmp_path) == sorted([*range(20), *range(100, 130), *range(100, 130)])


def test_readers_see_whole_datasets_while_one_is_replaced(bucket, tmp_path):
    rs.write(rows(0, 40), SCHEMA, bucket, **OPTIONS)
    done, seen, wrong = threading.Event(), set(), []

    def look() -> None:
        while not done.is_set():
            try:
                manifest = check_whole(bucket)
                seen.add(sum(manifest.rows(split) for split in manifest.splits))
            except Exception as error:
                wrong.append(error)

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(6):
        # the reader goes on to look while the next one is written
        wait_until(lambda number=number: 40 + number in seen or wrong)
        rs.write(rows(0, 41 + number), SCHEMA, bucket, force=True, **OPTIONS)
    wait_until(lambda: 46 in seen or wrong)
    done.set()
    reader.join()
    assert wrong == []
    assert seen == set(range(40, 47))


def test_resharding_asks_once_for_each_shard(bucket, server, tmp_path, monkeypatch):
    """It asked six times for each, twice for its keys, and for other files again and again."""
    monkeypatch.setattr(locations, "_MANY", 10)
    made = rs.write(rows(0, 40), SCHEMA, bucket / "data", shards=20, key="id")
    with server.proxy.failing():
        again = rs.reshard(bucket / "data", tmp_path / "data", shards=2)
    assert again.rows("train") == 40
    log = [(method, unquote(path).rpartition("/")[2]) for method, path in server.proxy.log]
    assert Counter(one for one in log if one[1] in made.files) == {("GET", name): 1 for name in made.files}
    assert sum(server.proxy.requests.values()) < 2 * 20 + 20
