"""Objects of another writer that are adopted where they are: nothing replaces or deletes them."""

from __future__ import annotations

from datetime import timedelta

import pytest

import recordspec as rs
from recordspec import SpecError, StoreError, remote
from recordspec.integrity.verify import verify
from recordspec.store.sweep import sweep

pytestmark = pytest.mark.newest

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {id: int64}")


@pytest.fixture
def theirs(bucket, tmp_path):
    """Two objects of 25 rows each, which this package did not upload."""
    rs.write({"id": [*range(50)]}, SCHEMA, tmp_path / "ours", shards=2)
    for number, path in enumerate(sorted((tmp_path / "ours").glob("*.tfrecord"))):
        remote.put_file(bucket / "theirs" / f"part-{number:05d}", path, overwrite=False)
    return bucket / "theirs"


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_objects_are_adopted_in_place(theirs, tmp_path):
    before = contents(theirs)
    manifest = rs.adopt(theirs, SCHEMA)
    after = contents(theirs)
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() == {"manifest.json", "schema.yaml", "index.bin"}
    assert (manifest.adopted, manifest.rows("train")) == ("files", 50)
    assert all(shard.sha256 for shard in manifest.all_shards)  # every byte was transferred
    (batch,) = rs.read(theirs, SCHEMA, batch=50)
    assert batch["id"].numpy().tolist() == [*range(50)]
    assert all(file.intact for file in verify(theirs))
    with pytest.raises(StoreError) as error:
        rs.adopt(theirs, SCHEMA)
    assert str(error.value) == f"`{theirs}` was adopted: force=True, or --force, adopts it again"
    again = rs.adopt(theirs, SCHEMA, force=True, check=True)
    assert again.splits == manifest.splits
    assert rs.Manifest.load(theirs) == again
    for how, message in {
        "force": "has shards of another writer, which are not deleted:"
        " `recordspec adopt --force` writes its manifest again; build into another folder",
        "append": "was adopted, and its shards are those of another writer:"
        " `recordspec reshard` writes a dataset to which rows can be added",
    }.items():
        with pytest.raises(StoreError) as error:
            rs.write({"id": [1]}, SCHEMA, theirs, **{how: True})
        assert str(error.value) == f"`{theirs}` {message}"
    [*sweep(theirs, older_than=timedelta(0), delete=True)]
    assert contents(theirs).keys() == after.keys()
    with pytest.raises(SpecError) as error:
        rs.adopt(theirs, SCHEMA, tmp_path / "links")
    assert str(error.value) == (
        f"files: expected files on this machine, for links to them, got {theirs}/part-00000"
        " (without `out`, it is adopted there)"
    )
