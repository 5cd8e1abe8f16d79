"""`recordspec diff` of datasets with keys."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import recordspec as rs
from examples import example, file_of
from recordspec.errors import RecordError
from recordspec.statistics.diff import diff
from recordspec.store.manifest import Manifest
from recordspec.wire.tfrecord import scan
from shell import run_here as run
from third_party_data import DATA, needs_data

ROWS = rs.Schema.loads("schema: s\nfeatures: {id: int64, x: {kind: var_len, dtype: int64}}")


def keyed(folder: Path, rows: dict[int, int], **options) -> Path:
    given = [{"id": key, "x": [value] * (value % 3)} for key, value in rows.items()]
    rs.write(given, ROWS, folder, key="id", **options)
    return folder


@pytest.mark.parametrize("layout", ["rows", {"blocks": 8}])
@pytest.mark.parametrize("at_once", [7, 1 << 21])
def test_rows_by_key(tmp_path, monkeypatch, layout, at_once):
    """In pieces of any size; rows lie in another order, and in other shards."""
    monkeypatch.setattr("recordspec.statistics.diff._AT_ONCE", at_once)
    rows = {number: number for number in range(100)}
    old = keyed(tmp_path / "old", rows, layout=layout, shuffle=3, shards=2)
    new = {number: number for number in range(10, 105)} | {50: 51, 60: 61}
    new = keyed(tmp_path / "new", new, layout=layout, shuffle=4, shards=3)
    found = diff(old, new)
    assert vars(found.keys) == {"old": 100, "new": 95, "added": 5, "removed": 10, "moved": 0, "changed": 2}
    assert found.different
    assert found.measures == ()
    assert not diff(old, old).different


def test_rows_that_moved_and_rows_that_are_stored_otherwise(tmp_path):
    rows = {number: number for number in range(100)}
    old = keyed(tmp_path / "old", rows, split={"train": 80, "test": 20})
    new = keyed(tmp_path / "new", rows, split={"train": 50, "test": 50})
    by_key = diff(old, new).keys
    assert (by_key.added, by_key.removed, by_key.changed) == (0, 0, 0)
    assert 15 < by_key.moved < 45
    other = rs.Schema.loads("schema: s\nfeatures: {id: int64}")
    rs.write([{"id": key} for key in rows], other, tmp_path / "other", key="id")
    found = diff(old, tmp_path / "other")
    assert found.keys.changed is None
    assert [".".join(change.path) for change in found.schema] == ["features.x"]


def test_files_that_have_other_rows_than_keys_are_not_compared(tmp_path):
    rows = {number: number for number in range(20)}
    old, new = (keyed(tmp_path / name, rows, shards=1) for name in ("old", "new"))
    (path,) = new.glob("*.tfrecord")
    file_of(path, [record.data for record in scan(path)][:15])
    with pytest.raises(RecordError) as error:
        diff(old, new)
    assert str(error.value) == f"{path}: expected 20 rows, as the manifest says, got 15"


def test_keys_that_were_changed_are_not_compared(tmp_path):
    rows = {number: number for number in range(20)}
    old, new = (keyed(tmp_path / name, rows) for name in ("old", "new"))
    written = (old / "keys.bin").read_bytes()
    (old / "keys.bin").write_bytes(written[16:] + written[:16])
    with pytest.raises(RecordError) as error:
        diff(old, new)
    expected = f"sha256 {Manifest.load(old).keys_sha256}, as the manifest says"
    got = hashlib.sha256(written[16:] + written[:16]).hexdigest()
    assert str(error.value) == f"{old}/keys.bin: expected {expected}, got {got}"


def test_keys_that_are_not_there(tmp_path):
    path = file_of(tmp_path / "file", [example({"n": ("int64", [1])})])
    done = run("diff", path, path, "--by", "key")
    assert done.returncode == 3
    assert done.stderr == (
        f"`{tmp_path}` has no `keys.bin` with the keys of its rows: "
        "datasets that were built with unique keys have it; give the whole folder\n"
    )
    assert run("diff", path, path).returncode == 0


@needs_data
def test_the_two_shards_of_the_taxi_trips_are_alike():
    first, second = sorted((DATA / "taxi").glob("*.gz"))
    done = run("diff", first, second)
    assert (done.returncode, done.stdout) == (0, '{"different": false, "measures": 73}\n')
    full = run("diff", first, second, "--all").stdout.splitlines()
    assert len(full) == 74
    assert json.loads(full[0])["feature"] == "company"
