"""An order in lanes from a store: the batches of local files, each byte once, whatever the store does."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from faulty_proxy import Fault

import recordspec as rs
from recordspec import remote
from recordspec.store.kept_pieces import PIECE

SCHEMA = "schema: s\nfeatures: {id: int64, blob: string}"
ROWS, SHUFFLE = 1500, {"lanes": 4, "window": "256KiB", "seed": 5}


@pytest.fixture(autouse=True)
def _default_folder(tmp_path, monkeypatch):
    """The default folder of kept pieces is the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(params=["gs", "s3"])
def server(request, servers):
    return servers(request.param)


def config(folder: Path, data: str, staging: str = "", layout: str = "rows") -> rs.Pipeline:
    (folder / "s.yaml").write_text(SCHEMA)
    path = folder / f"{abs(hash(data))}.yaml"
    path.write_text(
        f"schema: s.yaml\ndata: {data}\nwrite: {{key: id, splits: {{train: 1}}, shards: 6, layout: {layout}}}\n"
        f"read: {{batch: 12, shuffle: {{lanes: 4, window: 256KiB, seed: 5}}{staging}}}\n"
    )
    return rs.Pipeline.load(path)


@pytest.fixture(scope="module", params=["rows", "{blocks: 10}"])
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
        read.append(rows._files.bytes_read)
    # pieces at the ends of lanes and of files are read twice
    assert sum(read) <= size + 2 * (4 + 6) * PIECE
    assert max(read) < 0.4 * size


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
    assert files.bytes_kept > 0
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
