"""`shuffle: {lanes: ...}`: the same batches on all readers, for any workers, from any step on."""

from __future__ import annotations

import pickle
from itertools import chain

import numpy as np
import pytest

import recordspec as rs

pytestmark = pytest.mark.tensorflow

SCHEMA = "schema: s\nfeatures: {n: int64, words: {kind: ragged, dtype: string, shape: [null]}}"


@pytest.fixture(scope="module", params=["rows", "{blocks: 16}", "rows, compression: gzip"])
def config(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lanes")
    (folder / "s.yaml").write_text(SCHEMA)
    (folder / "c.yaml").write_text(
        f"schema: s.yaml\ndata: data\nwrite: {{shards: 7, splits: {{train: 1}}, layout: {request.param}}}\n"
        "read: {batch: 12, shuffle: {lanes: 24, window: 5, seed: 3}}\n"
    )
    pipeline = rs.Pipeline.load(folder / "c.yaml")
    pipeline.build([{"n": n, "words": ["w"] * (n % 4)} for n in range(1003)], progress=False)
    return folder / "c.yaml"


def numbers(batches):
    return [np.asarray(batch["n"]).tolist() for batch in batches]


def test_all_readers_have_the_same_batches(config):
    pipeline = rs.Pipeline.load(config)
    for epoch in (0, 2):
        wanted = numbers(pipeline.iterate("train", start=(epoch, 0)))
        assert sorted(chain.from_iterable(wanted)) == list(range(1003))
        assert numbers(pipeline.dataset("train", start=(epoch, 0))) == wanted
        how = {"lanes": 24, "window": 5, "seed": 3}
        files = pipeline.data / "train-*"
        assert numbers(rs.iterate(files, batch=12, shuffle=how, epoch=epoch)) == wanted
        opened = pickle.loads(pickle.dumps(rs.open(files)))
        assert numbers(rs.iterate(opened, batch=12, shuffle=how, epoch=epoch)) == wanted
        assert numbers(rs.read(files, batch=12, shuffle=how, start=(epoch, 40))) == wanted[40:]
        assert len(pipeline.which(epoch, 41)) == 12
        found = pipeline.open("train")
        rows = [(str(path), record, row) for path, record, row in found.places(np.arange(1003))]
        told = [
            rows.index((one["file"], one["record"], one.get("row", 0))) for one in pipeline.which(epoch, 41)
        ]
        assert found[told]["n"].tolist() == wanted[41]
    again = numbers(pipeline.iterate("train", start=(0, 0)))
    assert again != wanted


@pytest.mark.parametrize("workers", [2, 3, 4, 12])
def test_workers_divide_the_same_batches(config, workers):
    pipeline = rs.Pipeline.load(config)
    read = {"batch": {"size": 12, "drop_remainder": True}}
    wanted = numbers(pipeline.iterate("train", **read))
    parts = [
        numbers(pipeline.iterate("train", **read, worker=worker, workers=workers))
        for worker in range(workers)
    ]
    for step, batch in enumerate(wanted):
        for worker in range(workers):
            assert parts[worker][step] == batch[worker::workers]
    with pytest.raises(rs.SpecError, match="as divide 24 lanes and a batch of 12: 1, 2, 3, 4, 6, 12, got 5"):
        pipeline.iterate("train", workers=5).__next__()
    position = pipeline.position(0, 4) if hasattr(pipeline, "position") else None
    if position is not None:
        with pytest.raises(rs.SpecError, match=r"start\.order\.lanes"):
            list(pipeline.iterate("train", start=position, shuffle={"lanes": 12, "seed": 3}))


def test_what_cannot_be_is_refused(config):
    pipeline = rs.Pipeline.load(config)
    for shuffle, message in (
        ({"lanes": 4, "global": True}, "global: expected none with `lanes`, got true"),
        ({"lanes": 4, "buffer": 5}, "buffer: expected none with `lanes`, got 5"),
        ({"window": 5}, "window: expected none without `lanes`, got 5"),
        ({"lanes": 0}, "lanes: expected at least 1, got 0"),
        ({"lanes": 4, "window": "x"}, "window: expected"),
    ):
        with pytest.raises(rs.SpecError, match=message):
            next(iter(pipeline.dataset("train", shuffle=shuffle)))
