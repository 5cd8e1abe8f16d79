"""The key of a row decides its split and its place; and what is a key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_rows import SCHEMA, files, rows

import recordspec as rs
from recordspec.wire.arrays import bytes_in
from recordspec.writing.division import hashes, key_bytes, split_of
from selection import scaled


def test_splits_and_order_follow_from_the_key_alone(tmp_path):
    options = {"split": {"train": 8, "test": 2}, "key": "id", "shuffle": 7, "shards": 2}
    rs.write(rows(3000), SCHEMA, tmp_path / "a", **options)
    rs.write(rows(3000)[::-1], SCHEMA, tmp_path / "b", **options)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    ids = {
        name: [int(row["id"]) for row in rs.read(f"{tmp_path}/a/{name}-*", SCHEMA)]
        for name in ("train", "test")
    }
    assert sorted(ids["train"] + ids["test"]) == list(range(3000))
    assert ids["train"] != sorted(ids["train"])
    assert abs(len(ids["test"]) - 600) < 5 * (3000 * 0.8 * 0.2) ** 0.5  # five standard deviations
    rs.write(rows(3000), SCHEMA, tmp_path / "c", **{**options, "shuffle": 8})
    other = [int(row["id"]) for row in rs.read(f"{tmp_path}/c/train-*", SCHEMA)]
    assert sorted(other) == sorted(ids["train"])
    assert other != ids["train"]


@given(st.lists(st.integers(), unique=True, min_size=1), st.lists(st.integers(), unique=True))
@settings(max_examples=scaled(50))
def test_new_rows_move_no_old_row_to_another_split(old, new):
    splits = {"train": 7, "validation": 2, "test": 1}

    def split_by_key(values: list[int]) -> dict[int, int]:
        keys = key_bytes({"k": values}, ("k",))
        places = split_of(hashes(keys), splits)
        return dict(zip(values, places.tolist(), strict=True))

    together = list(dict.fromkeys([*new, *old]))
    before, after = split_by_key(old), split_by_key(together)
    assert all(after[value] == place for value, place in before.items())
    assert set(after.values()) <= {0, 1, 2}


def test_a_key_of_several_parts_keeps_them_apart():
    first, second = key_bytes({"a": ["ab", "a"], "b": ["c", "bc"]}, ("a", "b"))
    assert first != second
    assert all(bytes_in(key_bytes({"a": one}, ("a",))) == [b"7"] for one in ([7], ["7"], np.array([7])))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], [2]], pa.large_list(pa.int64())),
        pa.array([0, 1], pa.date32()),
        pa.array([["a"], ["b"]], pa.large_list(pa.string())),
        np.array([[1, 2], [3, 4]]),
    ],
)
def test_a_key_that_is_neither_text_nor_a_number_is_refused(column):
    with pytest.raises(rs.RecordError, match="row 0: k: expected a key: text or a whole number, got "):
        key_bytes({"k": column}, ("k",))


def test_a_dictionary_is_a_key_by_its_entries():
    entries = pa.array(["b", None, "a"])
    keys = key_bytes({"k": pa.DictionaryArray.from_arrays([2, 0], entries)}, ("k",))
    assert bytes_in(keys) == [b"a", b"b"]
    with pytest.raises(rs.RecordError, match="row 1: k: expected a key: text or a whole number, got nothing"):
        key_bytes({"k": pa.DictionaryArray.from_arrays([0, 1], entries)}, ("k",))


def test_a_key_that_is_none_is_named(tmp_path):
    with pytest.raises(rs.SpecError) as caught:
        rs.write({"id": [1], "a name": ["x"], "tags": [[]], "kind": [0]}, SCHEMA, tmp_path / "a", key="idd")
    assert str(caught.value) == "key: expected a column of the rows, got `idd` (did you mean `id`?)"
    with pytest.raises(rs.RecordError) as caught:
        rs.write(rows(3), SCHEMA, tmp_path / "b", key="tags")
    assert str(caught.value) == "row 0: tags: expected a key: text or a whole number, got list []"


def test_a_key_need_not_be_a_feature(tmp_path):
    with_path = [{**row, "path": f"p{row['id']}"} for row in rows(50)]
    assert rs.write(with_path, SCHEMA, tmp_path / "a", key="path", shuffle=1).rows("train") == 50
    with pytest.raises(rs.RecordError) as caught:
        rs.write(rows(3), SCHEMA, tmp_path / "b", key="path")
    assert str(caught.value) == "row 0: path: expected a key: text or a whole number, got nothing"
