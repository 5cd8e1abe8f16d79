"""What `sweep` takes for abandoned, and what it leaves."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

import recordspec as rs
from recordspec import remote
from recordspec.integrity.indexing import index
from recordspec.locations import location
from recordspec.remote import RemotePath
from recordspec.statistics.count import count
from recordspec.store.sweep import sweep
from recordspec.wire.hashes import sha256_of

pytestmark = pytest.mark.newest

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {id: int64}")
NOW = timedelta(0)


def names(found) -> set[str]:
    return {location(one.file).name for one in found}


@pytest.fixture
def replaced(bucket) -> RemotePath:
    """A dataset that has replaced another one, whose first shard has an index."""
    for start in (0, 100):
        rs.write({"id": [*range(start, start + 50)]}, SCHEMA, bucket / "data", shards=2, key="id", force=True)
        if not start:
            index(bucket / "data/train-00000-of-00002.tfrecord")
    return bucket


def test_a_sweep_takes_what_no_manifest_names(replaced, tmp_path):
    data = replaced / "data"
    left = data / "train-v2-00000-of-00002.tfrecord.0123456789ab.keys"
    (tmp_path / "keys").write_bytes(b"0" * 16)
    assert remote.upload(left, tmp_path / "keys", sha256_of(tmp_path / "keys"))
    assert not [*sweep(replaced)]
    orphans = {
        *("train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord", "keys.bin", "schema.yaml"),
        *("train-00000-of-00002.tfrecord.index", "index.bin", left.name),
    }
    assert names(sweep(replaced, older_than=NOW)) == orphans
    before = {path for path, _ in remote.walk(replaced)}
    assert names(sweep(replaced, older_than=NOW, delete=True)) == orphans
    assert {path.name for path in before - {path for path, _ in remote.walk(replaced)}} == orphans
    assert sum(one.records for one in count(data)) == 50
    rs.write({"id": [*range(50)]}, SCHEMA, data, key="id", shards=1, append=True)  # keys.bin is whole


def test_files_of_others_stay(bucket, tmp_path):
    folder = bucket / "theirs"
    rs.write({"id": [*range(50)]}, SCHEMA, tmp_path / "data", shards=1)
    remote.put_file(
        folder / "train-00000-of-00001.tfrecord",
        tmp_path / "data/train-00000-of-00001.tfrecord",
        overwrite=False,
    )
    remote.put_file(
        folder / "train-00000-of-00001.tfrecord.idx", tmp_path / "data/schema.yaml", overwrite=False
    )
    remote.put_file(folder / "schema.yaml", tmp_path / "data/schema.yaml", overwrite=False)
    remote.put_file(folder / "notes.txt", tmp_path / "data/schema.yaml", overwrite=False)
    assert not [*sweep(bucket, older_than=NOW, delete=True)]
    assert len([*folder.iterdir()]) == 4


def test_a_build_that_was_broken_off_is_swept(bucket):
    rs.write({"id": [*range(50)]}, SCHEMA, bucket / "data", shards=2)
    (bucket / "data/manifest.json").unlink()
    assert len([*sweep(bucket, older_than=NOW, delete=True)]) == 4
    assert not [*remote.walk(bucket)]


def test_a_local_folder_is_not_swept(tmp_path):
    with pytest.raises(rs.SpecError, match="expected a URL, got a local path"):
        [*sweep(tmp_path)]


def files_and_sizes(out: str) -> list[dict]:
    """What was printed of each file, but for its age, which grows."""
    return [{**json.loads(line), "age": None} for line in out.splitlines()]


def test_the_command(replaced, command):
    url = str(replaced)
    assert command("sweep", url) == (0, "", "")
    code, out, err = command("sweep", url, "--older-than", "0s")
    assert (code, len(out.splitlines()), err) == (0, 6, "")
    deleted = command("sweep", url, "--older-than", "0s", "--delete")[1]
    assert files_and_sizes(deleted) == files_and_sizes(out)
    assert command("sweep", url, "--older-than", "0s") == (0, "", "")
    code, _, err = command("sweep", url, "--older-than", "5 days")
    assert code == 2
    assert "expected a number of s, m, h or d such as 12h, got '5 days'" in err
