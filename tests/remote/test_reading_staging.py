"""Reading through copies: the order of local files, from wherever it begins, and no lease that is left."""

from __future__ import annotations

import fcntl
import gc
import gzip
import json
import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from faulty_proxy import Fault
from test_store_staging import DAMAGE, flip

import recordspec as rs
from recordspec import remote
from recordspec.order.read_options import Read
from recordspec.order.read_plan import WorkerShard, plan_files
from recordspec.reading import staged_shards as reading_staging
from recordspec.reading.dataset import build
from recordspec.remote import RemotePath
from recordspec.schema.options import from_python
from recordspec.store.dataset import StoredDataset
from recordspec.store.manifest import FILE as MANIFEST
from recordspec.wire.framing import framed
from shell import run_here
from waiting import wait_until

pytestmark = pytest.mark.slow

SCHEMA = rs.Schema.loads("schema: s\nfeatures:\n  id: int64\n  text: string\n")
SHUFFLE = {"shuffle": 40, "seed": 5}


def rows(start: int, stop: int) -> list[dict]:
    return [{"id": number, "text": f"row {number} " * 50} for number in range(start, stop)]


@pytest.fixture(params=["gs", "s3"])
def server(request, servers):
    return servers(request.param)


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("home") / "local"
    rs.write(rows(0, 400), SCHEMA, folder, key="id", shards=8)
    return folder


@pytest.fixture
def both(bucket, local) -> tuple[Path, RemotePath]:
    rs.write(rows(0, 400), SCHEMA, bucket, key="id", shards=8)
    return local, bucket


@pytest.fixture
def copies(both, tmp_path) -> dict[str, str]:
    """Room for six of eight shards; an interleave of three that is parallel opens them all."""
    largest = max(shard.bytes for shard in rs.Manifest.load(both[0]).all_shards)
    return {"folder": str(tmp_path / "copies"), "size": f"{6 * (largest // 1024 + 8)}KiB"}


def ids(dataset) -> list[int]:
    return [number for batch in dataset for number in np.atleast_1d(batch["id"].numpy()).tolist()]


def unlocked(folder: str) -> bool:
    """Whether no process has a lock on a copy."""
    for path in Path(folder).glob("[0-9a-f]*"):
        with suppress(FileNotFoundError), path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
    return True


def wait_until_unlocked(folder: str) -> None:
    """Returns once no lease is left after the last iterator was dropped: threads of TensorFlow end some time later."""
    gc.collect()
    wait_until(lambda: unlocked(folder) and not reading_staging._passes)


def held(folder: Path) -> int:
    """The bytes of all copies; 0 where some came or went meanwhile."""
    before = sorted(os.listdir(folder))
    with suppress(FileNotFoundError):
        total = sum(os.stat(folder / name).st_size for name in before)
        return total if before == sorted(os.listdir(folder)) else 0
    return 0


OPTIONS = {
    "rows": {},
    "batches": {"batch": 16},
    "cycle": {"batch": 16, "interleave": {"cycle": 3, "block": 4}},
    "parallel": {"batch": 16, "interleave": {"cycle": 3, "block": 4, "parallel": 2}},
    "shuffled": {"batch": 16, "repeat": 3, "interleave": {"cycle": 3, "block": 4}, **SHUFFLE},
    "from the middle": {"batch": 16, "repeat": 3, "interleave": {"cycle": 3}, **SHUFFLE, "start": (1, 7)},
    "filtered": {"batch": 16, "filter": lambda row: row["id"] % 3 == 0},
}


@pytest.fixture(scope="module")
def in_order(local) -> Callable[[str], list[int]]:
    """The ids that reading local files with some options gives."""
    return cache(lambda name: ids(rs.read(local, SCHEMA, **OPTIONS[name])))


@pytest.mark.parametrize("name", [*OPTIONS])
def test_the_order_is_that_of_local_files(both, copies, name, in_order):
    _, remote = both
    if name == "parallel":
        with pytest.raises(rs.SpecError, match="for 9 shards that are open at a time, got "):
            rs.read(remote, SCHEMA, staging=copies, **OPTIONS[name])
        copies["size"] = "1MiB"
    dataset = rs.read(remote, SCHEMA, staging=copies, **OPTIONS[name])
    expected = in_order(name)
    assert ids(dataset) == expected
    if "seed" not in OPTIONS[name]:
        assert ids(dataset) == expected  # a second pass
    wait_until_unlocked(copies["folder"])


def test_blocks_are_read(bucket, tmp_path, copies):
    for place in (tmp_path / "blocks", bucket / "blocks"):
        rs.write(rows(0, 400), SCHEMA, place, key="id", shards=4, layout={"blocks": 32})
    copies["size"] = "1MiB"
    options = {"batch": 24, "repeat": 2, "interleave": {"cycle": 2}, **SHUFFLE}
    expected = ids(rs.read(tmp_path / "blocks", SCHEMA, **options))
    assert ids(rs.read(bucket / "blocks", SCHEMA, staging=copies, **options)) == expected


def test_an_iterator_that_is_dropped_leaves_no_lease(both, copies):
    for count in (0, 1, 30, 399):
        iterator = iter(rs.read(both[1], SCHEMA, staging=copies, interleave={"cycle": 3}))
        for _ in range(count):
            next(iterator)
        del iterator
        wait_until_unlocked(copies["folder"])


def test_reading_goes_on_where_it_was(both, copies):
    options = {"batch": 16, "repeat": 2, "interleave": {"cycle": 3}, **SHUFFLE}
    expected = ids(rs.read(both[0], SCHEMA, **options))
    seen = ids(rs.read(both[1], SCHEMA, staging=copies, **options).take(9))
    rest = rs.read(both[1], SCHEMA, staging=copies, **options, start=rs.Position(epoch=0, step=9))
    assert seen + ids(rest) == expected


def test_the_folder_stays_below_its_size(both, copies):
    size = int(copies["size"].removesuffix("KiB")) << 10
    most = 0
    for _ in rs.read(both[1], SCHEMA, staging=copies, repeat=2):
        most = max(most, held(Path(copies["folder"])))
    assert 0 < most <= size


@pytest.mark.parametrize("kind", ["flip", "cut", "drop", "status"])
def test_a_fault_while_reading_is_not_noticed(both, copies, server, kind):
    times = 1 if kind == "flip" else 3  # wrong bytes are asked for once more, no oftener
    with server.proxy.failing(Fault(kind, "GET", r"\.tfrecord|%2Etfrecord", times=times, skip=1)):
        assert ids(rs.read(both[1], SCHEMA, batch=16, staging=copies)) == list(range(400))
        assert server.proxy.faults[0].done == times


def test_copies_that_were_changed_are_read_as_before(both, tmp_path, server, caplog):
    staging = {"folder": str(tmp_path / "copies")}
    dataset = rs.read(both[1], SCHEMA, batch=16, staging=staging)
    assert ids(dataset) == list(range(400))
    shards = rs.Manifest.load(both[0]).all_shards
    paths = [tmp_path / "copies" / shard.sha256 for shard in shards]
    for path, name in zip(paths, DAMAGE, strict=False):
        DAMAGE[name](path)
    for command in ("verify", "count"):  # these read the store
        done = run_here(command, both[1])
        assert (done.returncode, done.stdout.count('"records": 50')) == (0, 8)
    for requests in (len(DAMAGE), 0):
        with server.proxy.failing():
            assert ids(dataset) == list(range(400))
        assert server.proxy.requests.get("GET", 0) == requests
    assert len(caplog.messages) == len(DAMAGE)
    order = [path.name for path in paths]
    told = sorted(caplog.messages, key=lambda text: order.index(Path(text.partition(": ")[0]).name))
    for path, shard, text in zip(paths, shards, told, strict=False):
        assert text.startswith(f"{path}: expected a copy of {both[1] / shard.file}, got other bytes (")


def rot(path: Path, byte: int | None = None) -> None:
    """Flips a bit of a copy, in the middle or of this byte, as a disk does, and no program: its stamp fits."""
    stamp = path.with_name(f"{path.name}.stamp")
    stamped = json.loads(stamp.read_bytes())
    flip(path, byte)
    found = path.stat()
    stamped |= {"mtime_ns": found.st_mtime_ns, "ctime_ns": found.st_ctime_ns, "inode": found.st_ino}
    stamp.write_text(json.dumps(stamped))


WAYS = {
    "in order": {},
    "shuffled": {"interleave": {"cycle": 3}, "shuffle": {"buffer": 40, "seed": 5}},
    "in parallel": {"interleave": {"cycle": 3, "parallel": "auto"}, "deterministic": False},
    "ranges": {},
}


def read(place, name: str, **options):
    """A dataset; the part of a worker whose first shard begins in the middle."""
    share = WorkerShard(3, 1) if name == "ranges" else None
    chosen = from_python(Read, {"batch": 16, **WAYS[name], **options})
    return build(chosen, SCHEMA, plan_files(StoredDataset.of(place, SCHEMA), share=share))


@pytest.mark.parametrize("name", WAYS)
def test_a_pass_goes_on_where_a_copy_is_corrupt(both, tmp_path, server, caplog, name):
    """The order is that of local files, also in the pass that comes after."""
    local = read(both[0], name)
    dataset = read(both[1], name, staging={"folder": str(tmp_path / "copies")})
    in_order = sorted if name == "in parallel" else list
    wanted = [in_order(ids(local)) for _ in range(3)]
    assert sorted(wanted[0]) == ([*range(133, 266)] if name == "ranges" else [*range(400)])
    assert in_order(ids(dataset)) == wanted[0]
    copies = [path for path in (tmp_path / "copies").iterdir() if len(path.name) == 64]
    for path in copies:
        rot(path)
    # of its last shard, the worker does not read the record that is corrupt
    fetched = len(copies) - (name == "ranges")
    for wanted_now, requests in ((wanted[1], fetched), (wanted[2], 0)):
        with server.proxy.failing():
            assert in_order(ids(dataset)) == wanted_now
        assert server.proxy.requests.get("GET", 0) == requests
    files = {shard.sha256: shard.file for shard in rs.Manifest.load(both[0]).all_shards}
    hint = "it is deleted, and the object is copied again to be read"
    told = {
        f"{path}: expected a copy of {both[1] / files[path.name]}, got other bytes ({hint})"
        for path in copies
    }
    assert len(caplog.messages) == fetched
    assert told.issuperset(caplog.messages)


def test_a_copy_that_changes_while_it_is_read_is_an_error_once(bucket, tmp_path):
    """Records that were read before may be more than the changed copy has before its error."""
    rs.write(rows(0, 20_000), SCHEMA, bucket, key="id", shards=1)
    dataset = rs.read(bucket, SCHEMA, batch=10, staging={"folder": str(tmp_path)}, prefetch=0)
    assert ids(dataset) == list(range(20_000))
    (shard,) = rs.Manifest.load(bucket).all_shards
    iterator = iter(dataset)
    next(iterator)
    flip(tmp_path / shard.sha256)
    with pytest.raises(tf.errors.OpError) as error:
        list(iterator)
    assert f"{tmp_path / shard.sha256}: expected a copy of {bucket / shard.file}, got other" in str(
        error.value
    )
    del error, iterator
    assert ids(dataset) == list(range(20_000))


@pytest.mark.parametrize(("compression", "record"), [("none", 25), ("gzip", 19)])
def test_a_corrupt_object_is_named_with_its_record(bucket, tmp_path, compression, record):
    """Of a compressed file of another writer, only `locating` tells the record."""
    rs.write(rows(0, 50), SCHEMA, bucket, key="id", shards=1, compression=compression)
    (shard,) = rs.Manifest.load(bucket).all_shards
    place = bucket / shard.file
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    place.unlink()
    remote.create(place, bytes(data))
    (bucket / MANIFEST).unlink()
    given = rs.read(bucket, SCHEMA, batch=10, staging={"folder": str(tmp_path)})
    with pytest.raises(tf.errors.OpError) as error:
        ids(given)
    if compression == "none":
        assert f"{place}: record {record} at byte " in str(error.value)
    with pytest.raises(rs.RecordError) as named, rs.locating(SCHEMA, bucket):
        ids(given)
    assert str(named.value).startswith(f"{place}: record {record} at byte ")


def test_an_object_in_whose_middle_tensorflow_ends_is_named(bucket, tmp_path):
    """Joined files, one of them empty: of 50 rows, TensorFlow reads 20 without a word."""
    parts = [
        b"".join(framed(SCHEMA.encode(row)) for row in rows(*ends)) for ends in ((0, 20), (0, 0), (20, 50))
    ]
    for name, packed in {"gz": gzip.compress, "zlib": zlib.compress}.items():
        place = bucket / f"{name}/train.tfrecord.{name}"
        remote.create(place, b"".join(map(packed, parts)))
        given = rs.read(place.parent, SCHEMA, batch=10, staging={"folder": str(tmp_path)})
        with pytest.raises(tf.errors.OpError) as error:
            ids(given)
        assert f"{place}: expected whole compressed data, got " in str(error.value)
        assert "(`recordspec repair` reads on)" in str(error.value)


def test_compressed_copies_of_other_writers_are_hashed_each_time(bucket, tmp_path, server, caplog):
    """Only reading tells how many records they have, so that nothing notices the end of one."""
    rs.write(rows(0, 50), SCHEMA, bucket, key="id", shards=1, compression="gzip")
    (bucket / MANIFEST).unlink()
    dataset = rs.read(bucket, SCHEMA, batch=10, staging={"folder": str(tmp_path)})
    assert ids(dataset) == list(range(50))
    (path,) = (path for path in tmp_path.iterdir() if len(path.name) == 64)
    rot(path)
    with server.proxy.failing():
        assert ids(dataset) == list(range(50))
    assert server.proxy.requests["GET"] == 1
    assert [str(path) in text for text in caplog.messages] == [True]


@pytest.mark.parametrize("byte", [2, 9], ids=["length", "crc"])
def test_a_copy_of_another_writer_whose_lengths_are_corrupt_is_made_again(
    bucket, tmp_path, server, caplog, byte
):
    """Its records are counted before they are read. An object with such a length is named."""
    rs.write(rows(0, 50), SCHEMA, bucket, key="id", shards=1)
    (shard,) = rs.Manifest.load(bucket).all_shards
    (bucket / MANIFEST).unlink()
    dataset = rs.read(bucket, SCHEMA, batch=10, staging={"folder": str(tmp_path)})
    assert ids(dataset) == list(range(50))
    (path,) = (path for path in tmp_path.iterdir() if len(path.name) == 64)
    rot(path, byte)
    for requests in (1, 0):
        with server.proxy.failing():
            assert ids(dataset) == list(range(50))
        assert server.proxy.requests.get("GET", 0) == requests
    hint = "it is deleted, and the object is copied again to be read"
    assert caplog.messages == [f"{path}: expected a copy of {bucket / shard.file}, got other bytes ({hint})"]
    data = bytearray(path.read_bytes())
    second = int.from_bytes(data[:8], "little") + 16
    data[second + byte] ^= 1
    (bucket / shard.file).unlink()
    remote.create(bucket / shard.file, bytes(data))
    damaged = rs.read(bucket, SCHEMA, batch=10, staging={"folder": str(tmp_path)})
    for _ in range(2):
        with pytest.raises(tf.errors.OpError) as error:
            ids(damaged)
        assert f"{bucket / shard.file}: record 1 at byte {second}: expected " in str(error.value)
    assert len(caplog.messages) == 1


def test_a_shard_that_is_gone_is_named(both, copies):
    place = both[1] / "train-00003-of-00008.tfrecord"
    place.unlink()
    with pytest.raises(tf.errors.OpError) as error:
        ids(rs.read(both[1], SCHEMA, batch=10, staging=copies))
    assert f"`{place}` does not exist, and the manifest lists it" in str(error.value)
    assert "Traceback" not in str(error.value)
    del error  # it holds the iterator
    wait_until_unlocked(copies["folder"])


def test_a_model_trains_while_copies_come_and_go(both, copies):
    dataset = rs.read(both[1], SCHEMA, batch=20, staging=copies, repeat=2, interleave={"cycle": 2}, **SHUFFLE)
    model = tf.keras.Sequential([tf.keras.layers.Input([1]), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    pairs = dataset.map(
        lambda row: (tf.cast(row["id"], tf.float32)[:, None] / 400, tf.cast(row["id"] % 2, tf.float32))
    )
    history = model.fit(pairs, steps_per_epoch=20, epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    assert len(history.history["loss"]) == 2
    del dataset, pairs
    wait_until_unlocked(copies["folder"])


def test_a_folder_that_cannot_be_written_is_named(both, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(rs.StoreError) as error:
        rs.read(both[1], SCHEMA, staging={"folder": str(tmp_path / "file" / "copies")})
    assert str(error.value) == f"{tmp_path}/file/copies: cannot write: not a directory"
    assert os.listdir(both[0])
