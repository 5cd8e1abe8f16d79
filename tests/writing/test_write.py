"""`recordspec.write`: the same rows in any form give the same dataset, and a failure gives none."""

from __future__ import annotations

import errno
import os
import re
from array import array

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import recordspec as rs
from recordspec._tf import tf
from recordspec.store.shard_file import ShardFile
from recordspec.wire.tfrecord import scan
from recordspec.writing.division import hashes, key_bytes, split_of
from recordspec.writing.sorter import Sorter

SCHEMA = rs.Schema.loads(
    """\
schema: rows
features:
  id: int64
  on: {dtype: float32, default: 0.5}
  a name: string
  tags: {kind: var_len, dtype: int64}
  kind: {kind: label, names: [a, b]}
"""
)


def rows(count: int) -> list[dict]:
    return [
        {
            "id": index,
            "on": None if index % 3 == 0 else index / 2,
            "a name": f"é{index}",
            "tags": list(range(index % 4)),
            "kind": "ab"[index % 2],
        }
        for index in range(count)
    ]


def files(folder) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in sorted(os.listdir(folder))}


def by_hand(row: dict) -> tf.train.Example:
    made = tf.train.Feature
    feature = {
        "id": made(int64_list=tf.train.Int64List(value=[row["id"]])),
        "a name": made(bytes_list=tf.train.BytesList(value=[row["a name"].encode()])),
        "tags": made(int64_list=tf.train.Int64List(value=row["tags"])),
        "kind": made(int64_list=tf.train.Int64List(value=["ab".index(row["kind"])])),
    }
    if row["on"] is not None:
        feature["on"] = made(float_list=tf.train.FloatList(value=[row["on"]]))
    return tf.train.Example(features=tf.train.Features(feature=feature))


@pytest.mark.parametrize("count", [0, 1, 64, 65, 2048, 5000])
def test_every_record_is_that_of_a_hand(tmp_path, count):
    manifest = rs.write(SCHEMA, rows(count), tmp_path / "data", shards=3, allow_empty=True)
    records = [
        record.data for shard in manifest.shards("train") for record in scan(tmp_path / "data" / shard.file)
    ]
    assert list(map(tf.train.Example.FromString, records)) == list(map(by_hand, rows(count)))
    assert manifest.rows("train") == count


def test_rows_columns_and_frames_give_the_same_dataset(tmp_path):
    given_rows = rows(3000)
    frame = pd.DataFrame(given_rows)
    columns = {
        "id": frame["id"].to_numpy(),
        "on": [row["on"] for row in given_rows],
        "a name": frame["a name"].to_numpy(object),
        "tags": [np.array(row["tags"], np.int64) for row in given_rows],
        "kind": np.arange(3000) % 2,
    }
    frame["on"] = frame["on"].astype("Float64")
    forms = {"rows": given_rows, "iterator": iter(given_rows), "columns": columns, "frame": frame}
    for name, one in forms.items():
        rs.write(SCHEMA, one, tmp_path / name, shards=2)
    with rs.ShardedWriter(SCHEMA, tmp_path / "writer", shards=2) as writer:
        for row in given_rows:
            writer.write(row)
    expected = files(tmp_path / "rows")
    for name in ("iterator", "columns", "frame", "writer"):
        assert files(tmp_path / name) == expected, name


def test_whole_numbers_with_gaps_come_as_floats(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {n: {dtype: int64, default: -1}}")
    gaps = [1, None, 3]
    given = {
        "rows": [{"n": value} for value in gaps],
        "array": {"n": np.array([1, np.nan, 3])},
        "masked": {"n": np.ma.array([1, 0, 3], mask=[False, True, False])},
        "frame": pd.DataFrame({"n": gaps}),
        "nullable": pd.DataFrame({"n": pd.array(gaps, "Int64")}),
    }
    for name, one in given.items():
        rs.write(schema, one, tmp_path / name)
        read = [int(row["n"]) for row in rs.read(schema, tmp_path / name)]
        assert read == [1, -1, 3], name
    with pytest.raises(rs.RecordError) as caught:
        rs.write(schema, {"n": np.array([1.5, np.nan])}, tmp_path / "fraction")
    assert str(caught.value).startswith("row 0: features.n: expected int64, got float 1.5")
    with pytest.raises(rs.RecordError, match=r"got float 1\.0"):
        rs.write(schema, {"n": np.array([1.0, 2.0])}, tmp_path / "floats")


def test_shards_are_as_many_as_asked_and_differ_by_one_row(tmp_path):
    manifest = rs.write(SCHEMA, rows(10), tmp_path / "a", shards=4)
    assert [shard.rows for shard in manifest.shards("train")] == [2, 3, 2, 3]
    manifest = rs.write(SCHEMA, rows(2), tmp_path / "b", shards=4)
    assert [shard.rows for shard in manifest.shards("train")] == [0, 1, 0, 1]
    size = sum(shard.bytes for shard in manifest.shards("train"))
    manifest = rs.write(SCHEMA, rows(2), tmp_path / "c", shards={"size": f"{size // 2}B"})
    assert [shard.rows for shard in manifest.shards("train")] == [1, 1]
    assert rs.Manifest.load(tmp_path / "c") == manifest


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_compression_changes_the_files_and_not_the_records(tmp_path, compression):
    manifest = rs.write(SCHEMA, rows(100), tmp_path / "data", compression=compression)
    path = tmp_path / "data" / manifest.shards("train")[0].file
    kind = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}[compression]
    assert [tf.train.Example.FromString(one.numpy()) for one in tf.data.TFRecordDataset(str(path), kind)] == [
        by_hand(row) for row in rows(100)
    ]


def test_splits_and_order_follow_from_the_key_alone(tmp_path):
    options = {"split": {"train": 8, "test": 2}, "key": "id", "shuffle": 7, "shards": 2}
    rs.write(SCHEMA, rows(3000), tmp_path / "a", **options)
    rs.write(SCHEMA, rows(3000)[::-1], tmp_path / "b", **options)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    ids = {
        name: [int(row["id"]) for row in rs.read(SCHEMA, f"{tmp_path}/a/{name}-*")]
        for name in ("train", "test")
    }
    assert sorted(ids["train"] + ids["test"]) == list(range(3000))
    assert ids["train"] != sorted(ids["train"])
    assert abs(len(ids["test"]) - 600) < 5 * (3000 * 0.8 * 0.2) ** 0.5  # five standard deviations
    rs.write(SCHEMA, rows(3000), tmp_path / "c", **{**options, "shuffle": 8})
    other = [int(row["id"]) for row in rs.read(SCHEMA, f"{tmp_path}/c/train-*")]
    assert sorted(other) == sorted(ids["train"])
    assert other != ids["train"]


@given(st.lists(st.integers(), unique=True, min_size=1), st.lists(st.integers(), unique=True))
@settings(max_examples=50)
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
    assert (
        key_bytes({"a": [7]}, ("a",))
        == key_bytes({"a": ["7"]}, ("a",))
        == key_bytes({"a": np.array([7])}, ("a",))
    )


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
    assert key_bytes({"k": pa.DictionaryArray.from_arrays([2, 0], entries)}, ("k",)) == [b"a", b"b"]
    with pytest.raises(rs.RecordError, match="row 1: k: expected a key: text or a whole number, got nothing"):
        key_bytes({"k": pa.DictionaryArray.from_arrays([0, 1], entries)}, ("k",))


def test_a_key_that_is_none_is_named(tmp_path):
    with pytest.raises(rs.SpecError) as caught:
        rs.write(SCHEMA, {"id": [1], "a name": ["x"], "tags": [[]], "kind": [0]}, tmp_path / "a", key="idd")
    assert str(caught.value) == "key: expected a column of the rows, got `idd` (did you mean `id`?)"
    with pytest.raises(rs.RecordError) as caught:
        rs.write(SCHEMA, rows(3), tmp_path / "b", key="tags")
    assert str(caught.value) == "row 0: tags: expected a key: text or a whole number, got list []"


def test_rows_that_are_changed_after_they_were_given_are_as_they_were(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64, x: {kind: tensor, dtype: uint8, shape: [2]}}")
    row: dict = {"x": np.zeros(2, np.uint8)}
    with rs.ShardedWriter(schema, tmp_path / "data") as writer:
        for number in range(5):
            row["n"] = number
            row["x"][:] = number
            writer.write(row)
    assert [row["x"].numpy().tolist() for row in rs.read(schema, tmp_path / "data")] == [
        [n, n] for n in range(5)
    ]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_image_is_what_it_was_in_memory(tmp_path, jobs):
    """Copies of Pillow lose an orientation that is not in a file, and pickles also the alpha of a palette."""
    pixels = np.zeros((2, 3, 4), np.uint8)
    pixels[:, :, 3] = [[255, 0, 128], [0, 255, 64]]
    turned = Image.fromarray(pixels[:, :, :3])
    turned.getexif()[0x0112] = 6
    schema = rs.Schema.loads(
        "schema: s\nfeatures:\n"
        "  alpha: {kind: image, shape: [null, null, 4]}\n"
        "  photo: {kind: image, orientation: upright}\n"
        "  frames: {kind: video, encoding: png, shape: [null, null, null, 4]}\n"
    )
    palette = Image.fromarray(pixels).quantize(8)
    row = {"alpha": palette, "photo": turned, "frames": [palette, palette]}
    rs.write(schema, [row] * 3, tmp_path / "data", key=None, jobs=jobs, progress=False)
    records = [one.data for path in sorted((tmp_path / "data").glob("*.tfrecord")) for one in scan(path)]
    assert records == [schema.encode(row)] * 3


def test_a_memoryview_may_be_filled_again(tmp_path):
    """Also within a list, and of numbers."""
    schema = rs.Schema.loads(
        "schema: s\nfeatures: {a: {kind: var_len, dtype: string}, n: {dtype: int64, shape: [2]}}\n"
    )
    text, numbers = bytearray(b"..."), array("q", [0, 0])

    def rows_of_one_buffer():
        for number in range(3):
            text[:], numbers[1] = b"<%d>" % number, number
            yield {"a": [b"x", text, memoryview(text)], "n": memoryview(numbers)}

    rs.write(schema, rows_of_one_buffer(), tmp_path / "data", key=None, progress=False)
    (path,) = (tmp_path / "data").glob("*.tfrecord")
    expected = [{"a": [b"x", b"<%d>" % n, b"<%d>" % n], "n": [0, n]} for n in range(3)]
    assert [one.data for one in scan(path)] == [schema.encode(row) for row in expected]


def test_a_list_of_itself_is_refused(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {a: {kind: var_len, dtype: int64}}\n")
    endless: list = []
    endless.append(endless)
    with pytest.raises(rs.RecordError, match=r"row 0: features\.a: expected int64"):
        rs.write(schema, [{"a": endless}], tmp_path / "data", progress=False)


def test_columns_that_do_not_belong_together_are_refused():
    for columns, expected in [
        ({"id": [1, 2]}, "rows: id: expected 3 values, got 2"),
        ({"idd": [1, 2, 3]}, "expected names of `rows`, got `idd` (did you mean `id`?)"),
    ]:
        with pytest.raises(rs.SpecError) as caught:
            SCHEMA.encode_batch(columns, 3)
        assert str(caught.value) == expected


def test_a_key_that_comes_twice_is_refused(tmp_path):
    with pytest.raises(rs.RecordError) as caught:
        rs.write(SCHEMA, [*rows(300), rows(8)[7]], tmp_path / "data", key="id")
    assert str(caught.value) == "row 300: id: expected a key that no other row has, got that of row 7"
    assert os.listdir(tmp_path) == []


def test_a_key_need_not_be_a_feature(tmp_path):
    with_path = [{**row, "path": f"p{row['id']}"} for row in rows(50)]
    assert rs.write(SCHEMA, with_path, tmp_path / "a", key="path", shuffle=1).rows("train") == 50
    with pytest.raises(rs.RecordError) as caught:
        rs.write(SCHEMA, rows(3), tmp_path / "b", key="path")
    assert str(caught.value) == "row 0: path: expected a key: text or a whole number, got nothing"


def test_the_row_that_does_not_fit_is_named_across_batches(tmp_path):
    bad = [*rows(4321), {**rows(1)[0], "id": "x", "tags": 7}]
    for form in (bad, iter(bad)):
        with pytest.raises(rs.RecordError) as caught:
            rs.write(SCHEMA, form, tmp_path / "data")
        assert str(caught.value).splitlines() == [
            "row 4321: features.id: expected int64, got str 'x'",
            "row 4321: features.tags: expected a list of int64, got int 7",
        ]
        assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("error", "kind", "expected"),
    [
        (ValueError("boom"), rs.WriteError, "expected all the rows, got ValueError: boom, after 3,000 rows (nothing was published)"),
        (KeyboardInterrupt(), rs.Interrupted, "interrupted after 3,000 rows (nothing was published)"),
    ],
)  # fmt: skip
def test_a_source_that_fails_publishes_nothing(tmp_path, error, kind, expected):
    def source():
        yield from rows(3000)
        raise error

    with pytest.raises(kind) as caught:
        rs.write(SCHEMA, source(), tmp_path / "data")
    assert str(caught.value) == f"{tmp_path}/data: {expected}"
    assert os.listdir(tmp_path) == []


def test_a_full_disk_names_the_shard(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(ShardFile, "_put", full)
    with pytest.raises(rs.StoreError) as caught:
        rs.write(SCHEMA, rows(70), tmp_path / "data", shards=1)
    # on a busy machine it was told after 64 of the 70 rows
    assert re.fullmatch(
        rf"{tmp_path}/data: cannot write train-00000-of-00001\.tfrecord: no space left on device, after \d+ rows"
        r" \(nothing was published\)",
        str(caught.value),
    )
    assert os.listdir(tmp_path) == []


def test_a_full_disk_publishes_nothing(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Sorter, "finish", full)
    with pytest.raises(rs.StoreError) as caught:
        rs.write(SCHEMA, rows(70), tmp_path / "data", shuffle=1)
    assert str(caught.value) == (
        f"{tmp_path}/data: cannot write: no space left on device, after 70 rows (nothing was published)"
    )
    assert os.listdir(tmp_path) == []


def test_an_exception_in_the_callers_block_is_the_callers(tmp_path):
    def fail() -> None:
        with rs.ShardedWriter(SCHEMA, tmp_path / "data") as writer:
            writer.write(rows(1)[0])
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine") as caught:
        fail()
    note = f"{tmp_path}/data: nothing was published, after 1 row"
    assert getattr(caught.value, "__notes__", [note]) == [note]  # Python 3.10 has no notes
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"shards": 0}, "shards: expected 1 to 99999, got 0"),
        ({"shards": "many"}, "shards: expected auto, a whole number or a mapping of size, got str 'many'"),
        ({"shards": {"size": "9 apples"}}, "shards.size: expected a size such as 128MiB (B, KiB, MiB, GiB), got `9 apples`"),
        ({"compression": "gz"}, "compression: expected one of none, gzip, zlib, got str 'gz'"),
        ({"shard": 2}, "shard: expected one of key, splits, group_by, shards, compression, layout, shuffle, invalid, got `shard` (did you mean `shards`?)"),
        ({"split": {"train": 0}}, "splits.train: expected a weight above 0, got 0.0"),
        ({"split": "a/b"}, "splits.a/b: expected a split's name of letters, digits, _, . and -, got `a/b`"),
    ],
)  # fmt: skip
def test_an_option_that_is_wrong_is_named(tmp_path, options, expected):
    with pytest.raises(rs.SpecError) as caught:
        rs.write(SCHEMA, rows(1), tmp_path / "data", **options)
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"id": [1], "on": [1.0, 2.0]}, "on: expected 1 rows, got 2 (`id` has so many)"),
        ({"idd": [1]}, "expected names of `rows`, got `idd` (did you mean `id`?)"),
        ({"id": 1}, "id: expected an array or a list, got int 1"),
        ("rows.csv", "rows: expected an iterable of dicts, a dict of arrays, a frame, or an Arrow table, got str 'rows.csv' (a config's `write: {source: ...}` names files)"),
    ],
)  # fmt: skip
def test_rows_of_another_form_are_named(tmp_path, given, expected):
    with pytest.raises(rs.SpecError) as caught:
        rs.write(SCHEMA, given, tmp_path / "data")
    assert str(caught.value) == expected


def test_two_features_on_one_key_can_be_read_and_not_written(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {a: int64, b: {dtype: int64, key: a}}")
    with pytest.raises(rs.SpecError) as caught:
        rs.write(schema, [], tmp_path / "data")
    assert str(caught.value) == "s: features.b.key: expected a distinct key, got `a`, which `a` writes"
