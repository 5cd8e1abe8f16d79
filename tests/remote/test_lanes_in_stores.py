"""An order in lanes from a store: the batches of local files, each byte once, whatever the store does."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from faulty_proxy import Fault

import recordspec as rs
from recordspec import remote
from recordspec.arrays.iterate import BatchReader
from recordspec.order.global_order import Share
from recordspec.order.packing import PacksInLanes
from recordspec.order.read_options import Batch, Pack
from recordspec.store import ranged_files
from recordspec.store.kept_pieces import PIECE

SCHEMA = "schema: s\nfeatures: {id: int64, blob: string}"
# Reads epochs of a config, and prints the ids of each batch.
TRAINER = """
import sys, recordspec as rs
for batch in rs.Pipeline.load(sys.argv[1]).iterate("train", repeat=int(sys.argv[2])):
    print(batch["id"].tolist(), flush=True)
"""
ROWS, SHUFFLE = 1500, {"lanes": 4, "window": "256KiB", "seed": 5}


@pytest.fixture(autouse=True)
def _default_folder(tmp_path, monkeypatch):
    """The default folder of kept pieces is the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(params=["gs", "s3"])
def server(request, servers):
    return servers(request.param)


def config(folder: Path, data: str, staging: str = "", layout: str = "rows") -> rs.Pipeline:
    """A config; `layout` may be followed by other options of `write`."""
    (folder / "s.yaml").write_text(SCHEMA)
    path = folder / f"{abs(hash(data))}.yaml"
    path.write_text(
        f"schema: s.yaml\ndata: {data}\nwrite: {{key: id, splits: {{train: 1}}, shards: 6, layout: {layout}}}\n"
        f"read: {{batch: 12, shuffle: {{lanes: 4, window: 256KiB, seed: 5}}{staging}}}\n"
    )
    return rs.Pipeline.load(path)


@pytest.fixture(scope="module", params=["rows", "{blocks: 10}", "rows, compression: zlib"])
def local(request, tmp_path_factory) -> rs.Pipeline:
    rng = np.random.default_rng(0)
    made = config(tmp_path_factory.mktemp("lanes"), "data", layout=request.param)
    made.build([{"id": n, "blob": rng.bytes(6000)} for n in range(ROWS)], progress=False)
    return made


@pytest.fixture
def stored(local, bucket, tmp_path) -> rs.Pipeline:
    for path in sorted(Path(local.data).iterdir()):
        remote.create(bucket / path.name, path.read_bytes())
    return config(tmp_path, str(bucket), f", staging: {{folder: {tmp_path / 'kept'}, size: 4MiB}}")


def ids(batches) -> list[list[int]]:
    return [np.asarray(batch["id"]).tolist() for batch in batches]


def test_batches_are_those_of_local_files(local, stored):
    wanted = ids(local.iterate("train"))
    assert ids(stored.iterate("train")) == wanted
    assert ids(stored.iterate("train", start=(0, 70), worker=1, workers=2)) == [
        row[1::2] for row in wanted[70:]
    ]
    files = stored.data / "train-*"
    assert ids(rs.iterate(str(files), batch=12, shuffle=SHUFFLE)) == wanted
    assert stored.which(0, 3)[0]["id"] == wanted[3][0]
    rows = rs.open(str(stored.data))
    assert rows[[7, 1400]]["blob"].tolist() == rs.open(local.data)[[7, 1400]]["blob"].tolist()


@pytest.mark.tensorflow
def test_tensorflow_has_the_same_batches(local, stored):
    assert ids(stored.dataset("train")) == ids(local.iterate("train"))
    assert ids(stored.dataset("train", start=(1, 100))) == ids(local.iterate("train", start=(1, 100)))


def test_workers_read_each_byte_once(local, stored, tmp_path):
    size = sum(shard.bytes for shard in local.manifest.all_shards)
    read = []
    for worker in range(4):
        rows = stored.open("train")
        batches = rs.iterate(rows, batch=12, shuffle=SHUFFLE, worker=worker, workers=4)
        assert len(list(batches)) == 125
        read.append(rows._files.counters.bytes_read)
    # pieces at the ends of lanes and of files are read twice
    assert sum(read) <= size + 2 * (4 + 6) * PIECE
    assert max(read) < 0.4 * size


def test_mixtures_and_packs_are_those_of_local_files(local, stored):
    read = {"batch": 12, "shuffle": {"lanes": 4, "window": "256KiB"}}
    here, there = (rs.mix({"a": one}, seed=5, read=read) for one in (local, stored))
    wanted = ids(here.iterate("train"))
    assert len(wanted) > 100
    assert ids(there.iterate("train", worker=1, workers=2)) == [row[1::2] for row in wanted]
    rows = stored._opened("train", stored._read({}))
    lengths = np.arange(ROWS)[None] % 50 + 1
    packs = PacksInLanes(
        lengths, ("x",), Pack(length=64), seed=5, files=np.diff(rows._first), lanes=4, window=40
    )
    units = packs.padded(Batch(size=4))
    for worker in range(2):
        share = Share(rows=units, batch=4, drop_remainder=False, worker=worker, workers=2)
        parts = [
            BatchReader(rows=one._opened("train", one._read({})), share=share, seed=5, packs=packs)
            for one in (local, stored)
        ]
        found = [
            [features["id"].tolist() for group in one.groups(0) for features, _ in one.decoded(*group)]
            for one in parts
        ]
        assert found[0] == found[1]


def test_packs_of_a_config_are_those_of_local_files(bucket, tmp_path):
    """The build counts the lengths, and publishes them with the shards."""
    (tmp_path / "lists.yaml").write_text(
        "schema: lists\nfeatures: {tokens: {kind: ragged, dtype: int64, shape: [null]}}"
    )
    rng, found = np.random.default_rng(0), []
    rows = [{"tokens": rng.integers(1, 99, rng.integers(0, 40))} for _ in range(900)]
    for name, data in (("here", "here"), ("there", str(bucket / "lists"))):
        (tmp_path / f"{name}.yaml").write_text(
            f"schema: lists.yaml\ndata: {data}\nwrite: {{shards: 5}}\nfit: {{inputs: tokens}}\n"
            "read: {batch: 8, shuffle: {lanes: 8, window: 30, seed: 3}, pack: 64}\n"
        )
        pipeline = rs.Pipeline.load(tmp_path / f"{name}.yaml")
        pipeline.build(rows, progress=False)
        found.append([batch["tokens"] for batch in pipeline.iterate("train", repeat=2)])
        half = [batch["tokens"] for batch in pipeline.iterate("train", worker=1, workers=2)]
        for one, other in zip(half, found[-1], strict=False):
            np.testing.assert_array_equal(one, other[1::2])
    assert len(found[0]) > 40
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("kind", ["status", "cut", "drop", "flip"])
def test_faults_change_nothing_but_time(local, stored, servers, kind):
    proxy = servers(stored.data.root.partition(":")[0]).proxy
    fault = Fault(kind, method="GET", path=r"train(-|%2D)0000[1-5]", times=6, skip=2)
    proxy.faults.append(fault)
    try:
        assert ids(stored.iterate("train")) == ids(local.iterate("train"))
        assert fault.done == 6
    finally:
        proxy.faults.clear()


def test_what_the_disk_keeps_is_not_read_again(local, stored, tmp_path):
    first, second = ids(local.iterate("train")), ids(local.iterate("train", start=(1, 0)))
    assert ids(stored.iterate("train")) == first
    kept = sum(path.stat().st_blocks * 512 for path in (tmp_path / "kept/pieces").glob("*.pieces"))
    assert 3 << 20 < kept <= 4 << 20
    again = config(tmp_path, str(stored.data), f", staging: {{folder: {tmp_path / 'kept'}, size: 4MiB}}")
    passes = again._passes("train", 0, 1, {"start": (1, 0)})
    files = passes.reader.rows._files
    assert ids(features for features in again.iterate("train", start=(1, 0))) == second
    files.records(np.arange(0, len(files), 5))
    assert files.counters.bytes_kept > 0
    # a damaged piece is read again from the store
    for path in (tmp_path / "kept/pieces").glob("*.pieces"):
        data = bytearray(path.read_bytes())
        data[1000::5000] = bytes(len(data[1000::5000]))
        path.write_bytes(data)
    assert ids(again.iterate("train", start=(1, 0))) == second


def test_an_object_that_was_replaced_is_an_error(local, stored):
    rows = stored.open("train")
    rows[0]
    path = stored.data / local.manifest.shards("train")[0].file
    data = (Path(local.data) / path.name).read_bytes()
    path.unlink()
    remote.create(path, data[:-1] + b"?")
    with pytest.raises(rs.StoreError, match="was replaced while it was read: open it again"):
        rows[240]


def test_what_cannot_be_read_is_refused(local, stored):
    with pytest.raises(rs.SpecError, match="expected `lanes` for files in an object store"):
        next(rs.iterate(str(stored.data / "train-*"), batch=4, shuffle=True))
    with pytest.raises(rs.StoreError, match=r"others are not|only a manifest counts"):
        rs.open([str(stored.data / "train-*"), str(local.data / "train-*")])
    rows = stored.open("train")
    child = os.fork()
    if not child:
        code = 1
        try:
            rows[0]
        except rs.StoreError as error:
            code = 0 if "was opened before this process was forked" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def trainer(pipeline: rs.Pipeline, folder: Path, epochs: int) -> subprocess.Popen:
    path = next(path for path in folder.glob("*.yaml") if str(pipeline.data) in path.read_text())
    command = [sys.executable, "-c", TRAINER, str(path), str(epochs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_trainers_share_the_disk_and_may_be_killed(local, stored, tmp_path):
    wanted = ids(local.iterate("train", repeat=2))
    for _ in range(3):
        killed = trainer(stored, tmp_path, 2)
        for _ in range(20):
            killed.stdout.readline()
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
    several = [trainer(stored, tmp_path, 2) for _ in range(2)]
    found = [[json.loads(line) for line in one.communicate()[0].splitlines()] for one in several]
    assert [one.returncode for one in several] == [0, 0]
    assert found == [wanted, wanted]
    kept = sum(path.stat().st_blocks * 512 for path in (tmp_path / "kept/pieces").glob("*.pieces"))
    assert 3 << 20 < kept <= 4 << 20


def test_a_full_disk_keeps_no_more(local, stored, monkeypatch):
    write, written = os.pwrite, []

    def full(file, data, place):
        if len(data) > 100:
            written.append(len(data))
            if len(written) > 3:
                raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data, place)

    monkeypatch.setattr(os, "pwrite", full)
    assert ids(stored.iterate("train")) == ids(local.iterate("train"))
    assert 4 <= len(written) < 40  # some threads had begun to write


def test_a_store_that_stalls_takes_time_alone(local, stored, servers):
    proxy = servers(stored.data.root.partition(":")[0]).proxy
    with proxy.failing(Fault("slow", method="GET", path=r"train(-|%2D)00002", times=3, rate=2e5)):
        begin = time.perf_counter()
        assert ids(stored.iterate("train")) == ids(local.iterate("train"))
        assert time.perf_counter() - begin > 1


@pytest.mark.tensorflow
def test_bench_counts_what_each_epoch_reads(local, stored, monkeypatch):
    monkeypatch.setattr(ranged_files, "_MEMORY", 1 << 20)
    size = sum(shard.bytes for shard in local.manifest.all_shards)
    epochs = stored.bench("train", seconds=100).epochs
    assert [epoch.epoch for epoch in epochs] == [0, 1, 2]
    assert {epoch.rows for epoch in epochs} == {ROWS}
    assert [epoch.share for epoch in epochs] == [1, 1, 1]
    first, *later = epochs
    headers = 0 if stored.manifest.compression == "none" else 2 * 6  # of compressed files, which are not read
    assert size - headers <= first.bytes < 2.5 * size
    assert first.fetched == first.bytes / size
    assert first.requests > 6
    assert all(one.bytes < first.bytes and one.bytes_kept > 0 for one in later)
    short = stored.bench("train", seconds=1e-6).epochs
    assert len(short) == 1
    assert 0 < short[0].share < 1


@pytest.mark.tensorflow
def test_opening_rows_asks_a_store_for_the_manifest_and_the_index_alone(stored, servers):
    proxy = servers(stored.data.root.partition(":")[0]).proxy
    with proxy.failing():
        stored.dataset("train")
        assert proxy.requests["HEAD"] == 0
        read = {path for _, path in proxy.log if "train-" in path or "train%2D" in path}
        # the bytes of a compressed row are estimated by the first records of a shard
        assert len(read) == (stored.manifest.compression != "none")
