"""A shard that is being written: what it counts, and its hash."""

from __future__ import annotations

import hashlib
import threading

import numpy as np
import pytest

from recordspec.executors import ThreadPool
from recordspec.store import shard_file
from recordspec.store.index import of_bytes
from recordspec.store.manifest import Shard
from recordspec.store.shard_file import ShardFile
from recordspec.wire import hashes


@pytest.mark.parametrize("few", [0, 5, 1 << 20])
def test_a_shard_file_says_what_is_in_it(tmp_path, monkeypatch, few):
    """With threads from the first byte on, from some byte on, and without."""
    for module in (hashes, shard_file):
        monkeypatch.setattr(module, "FEW_BYTES", few)
    shard = ShardFile(tmp_path / "x", "none", tmp_path / "x.index")
    shard.write(b"abc", np.array([3]), 10)
    shard.write(b"defg", np.array([1, 3]), 20)
    assert shard.close("y") == Shard(
        file="y", rows=30, records=3, bytes=7, sha256=hashlib.sha256(b"abcdefg").hexdigest()
    )
    index = of_bytes((tmp_path / "x.index").read_bytes())
    assert index.offsets(np.arange(4)).tolist() == [0, 3, 4, 7]


def test_a_shard_is_hashed_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(hashes, "FEW_BYTES", 0)
    shard, late = ShardFile(tmp_path / "x", "gzip", tmp_path / "x.index"), threading.Event()
    shard._hash._thread = ThreadPool("late")
    submit = shard._hash._thread.submit

    def submit_late(function, data):
        if len(data) != 10:  # bytes of the header
            submit(late.wait, 60)
        return submit(function, data)

    monkeypatch.setattr(shard._hash._thread, "submit", submit_late)
    shard.write(b"abc", np.array([3]), 1)
    threading.Timer(0.1, late.set).start()
    sha256 = shard.close("x").sha256
    assert sha256 == hashlib.sha256((tmp_path / "x").read_bytes()).hexdigest()
