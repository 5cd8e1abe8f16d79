"""`recordspec diff` (`cli.diff`) of schemas: what a change breaks, which is what readers refuse."""

from __future__ import annotations

import json

import numpy as np
import pytest

import recordspec as rs
from recordspec.errors import StoreError
from recordspec.statistics.diff import changes
from shell import run_here as run

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
                    "old indices keep their meaning, but models lack one class",
                )
            ],
        ),
        (
            "[cat, dog]",
            "[cat]",
            [("features.label.names", ALL, "records may hold indices of one class that have no name now")],
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
        rs.write(rows, rs.Schema.loads(OLD), tmp_path / "data", force=True)
        with pytest.raises(StoreError):
            rs.read(tmp_path / "data", rs.Schema.loads(OLD.replace(old, new)))


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
