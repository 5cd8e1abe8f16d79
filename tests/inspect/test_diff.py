"""`recordspec diff`: schemas, and datasets with keys."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import recordspec as rs
from examples import example, file_of
from recordspec.errors import RecordError, StoreError
from recordspec.inspect.diff import changes, diff
from recordspec.store.manifest import Manifest
from recordspec.wire.tfrecord import scan
from shell import run_here as run
from third_party_data import DATA, needs_data

OLD = """
schema: pets
features:
  id: int64
  image: {kind: image, shape: [8, 8, 1], quality: 90, encoding: jpeg}
  label: {kind: label, names: [cat, dog]}
  tokens: {kind: var_len, dtype: int64}
  note: {dtype: string, default: ""}
"""


def changed(old: str, new: str) -> list[tuple]:
    """Path, what breaks, and why, after a text of OLD was replaced."""
    assert old in OLD
    found = changes(rs.Schema.loads(OLD), rs.Schema.loads(OLD.replace(old, new)))
    return [(".".join(map(str, change.path)), change.breaks, change.why) for change in found]


ALL = ("reading old records", "old readers of new records", "models")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", []),
        (
            "[8, 8, 1], quality: 90",
            "[8, 8, 1], quality: 80",
            [("features.image.quality", (), "new records are written differently, and read the same")],
        ),
        ("[8, 8, 1]", "[4, 8, 1]", [("features.image.shape", ALL, "it is stored differently")]),
        (
            "{kind: var_len, dtype: int64}",
            "{kind: var_len, dtype: int64, as: dense}",
            [("features.tokens.as", ("models",), "the same records are decoded differently")],
        ),
        ("id: int64", "id: float32", [("features.id.dtype", ALL, "it is stored differently")]),
        (
            "[cat, dog]",
            "[dog, cat]",
            [
                (
                    "features.label.names",
                    ALL,
                    "records hold indices: 0 meant `cat`, and would mean `dog`",
                )
            ],
        ),
        (
            "[cat, dog]",
            "[cat, dog, fox]",
            [
                (
                    "features.label.names",
                    ALL,
                    "old indices keep their meaning, but models have one class less",
                )
            ],
        ),
        (
            "[cat, dog]",
            "[cat]",
            [("features.label.names", ALL, "records may hold indices without a name now, of one class")],
        ),
        (
            "  id: int64\n",
            "  id: int64\n  more: {dtype: float32, default: 0}\n",
            [("features.more", (), "old records lack it, and read its default")],
        ),
        (
            "  id: int64\n",
            "  id: int64\n  more: float32\n",
            [("features.more", ("reading old records",), "old records lack it, and it has no default")],
        ),
        (
            "  id: int64\n",
            "",
            [
                (
                    "features.id",
                    ("old readers of new records", "models"),
                    "models lose an input; readers that keep the old schema find no value in new records",
                )
            ],
        ),
        (
            '  note: {dtype: string, default: ""}\n',
            "",
            [
                (
                    "features.note",
                    ("models",),
                    "models lose an input; readers that keep the old schema read its default",
                )
            ],
        ),
        (
            ', default: ""}',
            "}",
            [
                (
                    "features.note.default",
                    ("reading old records", "models"),
                    "old records may lack it, and there is no default any more",
                )
            ],
        ),
        (
            "id: int64",
            "id: {dtype: int64, default: 0}",
            [
                (
                    "features.id.default",
                    ("old readers of new records", "models"),
                    "new records may lack it, and readers that keep the old schema have no default",
                )
            ],
        ),
        (
            'default: ""',
            "default: none",
            [("features.note.default", ("models",), "the same records are decoded differently")],
        ),
        (
            "{kind: var_len, dtype: int64}",
            "{kind: var_len, dtype: int64, max_length: 5}",
            [("features.tokens.max_length", (), "new records are written differently, and read the same")],
        ),
        ("id: int64", "id: {kind: text}", [("features.id", ALL, "another kind stores other values")]),
        (
            "schema: pets",
            "schema: pets\nversion: 2",
            [("version", (), "no record depends on it")],
        ),
    ],
)
def test_what_a_change_of_a_schema_breaks(old, new, expected):
    assert changed(old, new) == expected


def test_what_breaks_is_what_readers_refuse(tmp_path):
    """The words agree with what reading does."""
    for old, new in (
        ("id: int64", "id: float32"),
        ("  id: int64\n", "  id: int64\n  more: float32\n"),
        (', default: ""}', "}"),
    ):
        (change,) = changes(rs.Schema.loads(OLD), rs.Schema.loads(OLD.replace(old, new)))
        assert "reading old records" in change.breaks
        rows = [{"id": 1, "image": np.zeros((8, 8, 1), np.uint8), "label": 0, "tokens": [], "note": ""}]
        rs.write(rs.Schema.loads(OLD), rows, tmp_path / "data", force=True)
        with pytest.raises(StoreError):
            rs.read(rs.Schema.loads(OLD.replace(old, new)), tmp_path / "data")


def test_schemas_on_the_command_line(tmp_path):
    (tmp_path / "old.yaml").write_text(OLD)
    (tmp_path / "new.yaml").write_text(OLD.replace("int64\n", "float32\n", 1))
    (tmp_path / "next.yaml").write_text(OLD + "  more: {dtype: int64, default: 0}\n")
    done = run("diff", tmp_path / "old.yaml", tmp_path / "new.yaml")
    assert done.returncode == 1
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {
            "change": "features.id.dtype",
            "old": "int64",
            "new": "float32",
            "breaks": ", ".join(ALL),
            "why": "it is stored differently",
        },
        {"different": True, "measures": 0},
    ]
    compatible = run("diff", tmp_path / "old.yaml", tmp_path / "next.yaml")
    assert (compatible.returncode, json.loads(compatible.stdout.splitlines()[0])["breaks"]) == (0, "nothing")
    assert run("diff", tmp_path / "old.yaml", tmp_path / "next.yaml", "--strict").returncode == 1
    assert run("diff", tmp_path / "old.yaml", tmp_path / "old.yaml", "--strict").returncode == 0
    mixed = run("diff", tmp_path / "old.yaml", tmp_path)
    assert mixed.returncode == 2
    assert mixed.stderr.splitlines()[-1] == (
        "Error: a schema is compared with a schema, and a dataset with a dataset"
    )


ROWS = rs.Schema.loads("schema: s\nfeatures: {id: int64, x: {kind: var_len, dtype: int64}}")


def keyed(folder: Path, rows: dict[int, int], **options) -> Path:
    given = [{"id": key, "x": [value] * (value % 3)} for key, value in rows.items()]
    rs.write(ROWS, given, folder, key="id", **options)
    return folder


@pytest.mark.parametrize("layout", ["rows", {"blocks": 8}])
@pytest.mark.parametrize("at_once", [7, 1 << 21])
def test_rows_by_key(tmp_path, monkeypatch, layout, at_once):
    """In pieces of any size; rows lie in another order, and in other shards."""
    monkeypatch.setattr("recordspec.inspect.diff._AT_ONCE", at_once)
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
    rs.write(other, [{"id": key} for key in rows], tmp_path / "other", key="id")
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
