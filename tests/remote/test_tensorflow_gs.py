"""TensorFlow's own `gs://` reads what obstore has written, and writes nothing."""

from __future__ import annotations

import itertools
import shutil

import pytest
import tensorflow as tf
from tls_proxy import TlsProxy

import recordspec as rs
from recordspec import remote
from recordspec.remote import RemotePath

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("openssl") is None, reason="openssl, which makes the certificate, is not there"
    ),
]

SCHEMA = rs.Schema.loads("schema: s\nfeatures:\n  id: int64\n  text: string\n")
_fresh = itertools.count()


@pytest.fixture(scope="module")
def tls(servers, tmp_path_factory):
    """TensorFlow talks to the server of the tests."""
    server = servers("gs")
    proxy = TlsProxy(int(server.proxy.url.rpartition(":")[2]), tmp_path_factory.mktemp("tls"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in proxy.environment.items():
            patch.setenv(name, value)
        yield server
    proxy.close()


@pytest.fixture
def place(tls) -> RemotePath:
    return RemotePath.parse(f"{tls.root}/tensorflow-{next(_fresh)}")


def test_tensorflow_finds_and_reads_objects(place):
    remote.create(place / "a b/ü.txt", b"x" * 100_000)
    remote.create(place / "c.txt", b"")
    assert tf.io.gfile.exists(f"{place}/c.txt")
    assert not tf.io.gfile.exists(f"{place}/d.txt")
    assert sorted(tf.io.gfile.listdir(str(place))) == ["a b/", "c.txt"]
    assert tf.io.gfile.stat(f"{place}/a b/ü.txt").length == 100_000
    with tf.io.gfile.GFile(f"{place}/a b/ü.txt", "rb") as file:
        assert file.read() == b"x" * 100_000


def test_tensorflow_reads_the_shards_of_a_dataset(place):
    made = rs.write([{"id": n, "text": f"row {n}"} for n in range(300)], SCHEMA, place, key="id", shards=3)
    paths = [f"{place}/{shard.file}" for shard in made.shards("train")]
    parsed = (
        tf.data.TFRecordDataset(paths)
        .batch(50)
        .map(lambda held: tf.io.parse_example(held, SCHEMA.parse_dict()))
    )
    assert [number for batch in parsed for number in batch["id"].numpy().tolist()] == list(range(300))
