"""A tf.data service of real processes: every row once, and what it cannot do is refused."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs

pytestmark = pytest.mark.services

SCHEMA = """\
schema: s
features:
  n: int64
  words: {kind: var_len, dtype: int64}
  filler: {kind: fixed_len, dtype: string, default: ""}
"""
CONFIG = """\
schema: s.yaml
data: data
write: {splits: {train: 1}, shards: 7}
read: {batch: 32}
fit: {inputs: words, targets: n}
"""
ROWS = 1000
SERVER = """
import sys
import tensorflow as tf
service = tf.data.experimental.service
if len(sys.argv) == 1:
    server = service.DispatchServer(service.DispatcherConfig(port=0))
    print(server.target, flush=True)
else:
    server = service.WorkerServer(service.WorkerConfig(dispatcher_address=sys.argv[1]))
    print("up", flush=True)
sys.stdin.read()
"""


@contextmanager
def server(folder: Path, *arguments: str):
    """A process that serves, in a folder of its own. Gives what it says when it is ready."""
    folder.mkdir()
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        try:
            ready, _, _ = select.select([process.stdout], [], [], 120)
            said = process.stdout.readline().strip() if ready else ""
            assert said, (folder / "log").read_text()
            yield said
        finally:
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    home = tmp_path_factory.mktemp("service")
    with server(home / "dispatcher") as target:
        address = target.removeprefix("grpc://")
        with server(home / "one", address), server(home / "two", address):
            yield target


@pytest.fixture(
    scope="module", params=[("rows", 0), ({"blocks": 16}, 0), ("rows", 9000)], ids=["rows", "blocks", "large"]
)
def pipeline(request, tmp_path_factory) -> rs.Pipeline:
    home = tmp_path_factory.mktemp("pipeline")
    (home / "s.yaml").write_text(SCHEMA)
    (home / "c.yaml").write_text(CONFIG)
    pipeline = rs.Pipeline.load(home / "c.yaml")
    layout, filler = request.param
    rows = {
        "n": np.arange(ROWS),
        "words": [[index] * (index % 4) for index in range(ROWS)],
        "filler": ["x" * filler] * ROWS,
    }
    rs.write(rows, pipeline.schema, home / "data", shards=7, layout=layout)
    return pipeline


SHUFFLE = {"buffer": 200, "seed": 7}


@pytest.mark.parametrize(
    ("times", "options"),
    [
        (1, {}),
        (1, {"interleave": {"cycle": 3}}),
        (1, {"shuffle": SHUFFLE}),
        (1, {"shuffle": SHUFFLE, "interleave": {"cycle": 7}}),
        (2, {"repeat": 2}),
        (3, {"shuffle": SHUFFLE, "repeat": 3}),
        (1, {"bucket": {"by": "words", "boundaries": [1, 2]}}),
        (1, {"shuffle": SHUFFLE, "filter": lambda row: row["n"] >= 0}),
    ],
    ids=["plain", "interleave", "shuffle", "all-shuffled", "twice", "thrice-shuffled", "bucket", "filter"],
)
def test_every_row_comes_once_a_pass(service, pipeline, times, options):
    dataset = pipeline.dataset("train", service=service, **options)
    assert int(dataset.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    for _ in range(2):
        seen = Counter()
        for words, numbers in dataset:
            seen.update(numbers.numpy().tolist())
            np.testing.assert_array_equal(
                np.count_nonzero(words, axis=1) > 0, (numbers % 4 > 0) & (numbers > 0)
            )
        assert seen == dict.fromkeys(range(ROWS), times)


def test_a_relative_folder_is_found_by_workers_elsewhere(service, pipeline, monkeypatch):
    monkeypatch.chdir(pipeline.folder)
    dataset = rs.read("data", pipeline.schema, batch=100, service=service)
    assert sum(len(batch["n"]) for batch in dataset) == ROWS


def test_without_an_end_there_is_none(service, pipeline):
    dataset = pipeline.dataset("train", service=service, repeat="forever", batch=100)
    assert sum(len(numbers) for _, numbers in dataset.take(50)) > 3 * ROWS


def test_where_nothing_listens_there_is_an_error_at_once(pipeline):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"grpc://localhost:{free.getsockname()[1]}"
        with pytest.raises(rs.StoreError) as caught:
            pipeline.dataset("train", service=address)
    assert str(caught.value) == (
        f"{address}: expected the dispatcher of a tf.data service, got Connection refused (start it first)"
    )


@pytest.mark.parametrize(
    "text", ["localhost:5050", "http://a:1", "grpc://a", "grpc://a:x", "grpc://a:1/b", "grpc://:1"]
)
def test_a_text_that_is_no_address_is_named(pipeline, text):
    with pytest.raises(rs.SpecError) as caught:
        pipeline.dataset("train", service=text)
    assert str(caught.value) == f"service: expected an address such as grpc://localhost:5050, got `{text}`"


def test_what_a_service_cannot_do_is_refused(pipeline):
    address = "grpc://localhost:1"
    with pytest.raises(rs.SpecError) as caught:
        pipeline.dataset("train", service=address, cache="memory")
    assert str(caught.value) == (
        "cache: expected none with a service, got memory (each of its workers would cache its part of a single pass)"
    )
    with pytest.raises(rs.SpecError) as caught:
        pipeline.dataset("train", service=address, shuffle=SHUFFLE, bucket={"by": "words", "boundaries": [2]})
    assert str(caught.value) == (
        "bucket: expected none with a service and a shuffle, got by `words` (each of its workers would read "
        "every row)"
    )
    with pytest.raises(rs.SpecError) as caught:
        pipeline.dataset("train", service=address, start=(1, 0))
    assert str(caught.value) == "start: expected none with a service, got epoch 1, step 0"
    with pytest.raises(rs.SpecError) as caught:
        pipeline.input_fn("train", service=address)(tf.distribute.InputContext(2, 0, 2))
    assert str(caught.value) == (
        "service: expected none for several workers, since they must have equally many batches, got "
        "`grpc://localhost:1`"
    )
