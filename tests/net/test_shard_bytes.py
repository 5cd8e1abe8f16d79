"""The bytes of every dataset in `configs/`, in rows and in blocks, with every compression, by one process or two.

A snapshot holds the sha256 of the inflated bytes of each shard: see conftest.py for the update.
"""

from __future__ import annotations

import gzip
import hashlib
import multiprocessing
from pathlib import Path

import gallery
import pytest

from recordspec.wire.tfrecord import scan
from recordspec.writing.sources import base
from recordspec.writing.sources import rows as packing

pytestmark = pytest.mark.slow

LAYOUTS = {"rows": "rows", "blocks": {"blocks": 7}}


@pytest.fixture
def small_parts(monkeypatch) -> None:
    """A few rows fill several parts, so that two processes share them."""
    monkeypatch.setattr(base, "PART_BYTES", 2000)
    monkeypatch.setattr(packing, "_PACKED_BYTES", 2000)


@pytest.fixture
def quick_processes(monkeypatch) -> None:
    """Processes that are forked by a server that has loaded what they need, in 10 ms in place of 500.

    The server is a clean process: unlike a fork of this one it has no threads of TensorFlow.
    """
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["recordspec.pipeline", "recordspec.executors", "pyarrow.csv"])
    monkeypatch.setattr(multiprocessing, "get_context", lambda method: server)


@pytest.mark.parametrize("name", gallery.NAMES)
def test_shards_have_the_bytes_that_they_had(
    name, raw_home, tmp_path, snapshot, small_parts, quick_processes
):
    lines = []
    for layout, option in LAYOUTS.items():
        found = {}
        for compression in ("none", "gzip"):
            for jobs in (1, 2):
                data = tmp_path / f"{layout}-{compression}-{jobs}"
                gallery.build(raw_home, name, data, layout=option, compression=compression, jobs=jobs)
                found[compression, jobs] = list(shards(data))
        assert len({tuple(shard) for shard in found.values()}) == 1, found
        lines += [layout, *found["none", 1]]
    snapshot(f"shards/{name}.txt", "\n".join(lines) + "\n")


def shards(data: Path):
    """Each shard of a dataset: its name, how many records it has, and the hash of its inflated bytes."""
    for path in sorted(data.glob("*-of-*")):
        stored = path.read_bytes()
        inflated = gzip.decompress(stored) if path.name.endswith(".gz") else stored
        records = sum(1 for _ in scan(path))
        name = path.name.removesuffix(".gz")
        yield f"  {name}  {records:>3} records  {hashlib.sha256(inflated).hexdigest()}"
