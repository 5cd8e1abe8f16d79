"""Rows from CSV files, image folders and TFRecords: as they are, with gaps, and with their places."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import recordspec as rs
from instances import CASES
from recordspec._tf import tf
from recordspec.config import From
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.folders import ImageFolder
from recordspec.writing.sources.tfrecord import TFRecords

SCHEMA = rs.Schema.loads(
    """\
schema: s
features:
  n: {dtype: int64, default: -1}
  x: {dtype: float32, default: 0.0}
  b: {kind: tensor, dtype: bool}
  text: {dtype: string, default: none}
  label: {kind: label, names: ["1", "2"]}
"""
)
HEADER = "n,x,b,text,label\n"


def written(tmp_path: Path, text: str | bytes, schema: rs.Schema = SCHEMA, **options) -> list[dict]:
    path = tmp_path / "rows.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    rs.write(schema, Csv(path="rows.csv", **options).open(tmp_path), tmp_path / "data", force=True)
    return [
        {name: value.numpy() for name, value in row.items()} for row in rs.read(schema, tmp_path / "data")
    ]


def test_cells_are_values_and_empty_cells_are_missing(tmp_path):
    text = (
        HEADER
        + '7,1.5,true,"a, ""b""\nc",1\n,"",0,"",2\n180.0,nan,1,,1\n-9223372036854775808,1e3,False,é,2\n'
    )
    rows = written(tmp_path, text)
    assert [row["n"].item() for row in rows] == [7, -1, 180, -(2**63)]
    np.testing.assert_array_equal([row["x"] for row in rows], np.float32([1.5, 0, np.nan, 1000]))
    assert [row["b"].item() for row in rows] == [True, False, True, False]
    assert [row["text"].decode() for row in rows] == ['a, "b"\nc', "", "none", "é"]
    assert [row["label"].item() for row in rows] == [0, 1, 0, 1]


def test_columns_may_have_other_names_and_delimiters(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {a b: int64}")
    rows = written(tmp_path, "é x;rest\r\n3;4\r\n", schema, delimiter=";", columns={"a b": "é x"})
    assert rows == [{"a b": 3}]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("1,1,1,a,1\n1.5,x,1,a,1\n", ["3: features.n: expected int64, got `1.5` (it is no whole number)", "3: features.x: expected float32, got `x`"]),
        ('1,1,1,"a\nb",1\n\n1,1,maybe,a,1\n', ["5: features.b: expected true or false, got `maybe`"]),
        ("1,1,,a,1\n", ["2: features.b: expected bool, got nothing"]),
        ("1,1,1,a,3\n", ["2: features.label: expected an index from 0 to 1, got 3"]),
        ("99999999999999999999,1,1,a,1\n", ["2: features.n: expected int64 (-9223372036854775808 to 9223372036854775807), got 99999999999999999999"]),
    ],
)  # fmt: skip
def test_a_cell_that_does_not_fit_is_named_by_its_line(tmp_path, body, expected):
    with pytest.raises(rs.RecordError) as caught:
        written(tmp_path, HEADER + body)
    assert str(caught.value).splitlines() == [f"{tmp_path}/rows.csv:{line}" for line in expected]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("n,x,b,txet,label\n", rs.SpecError, ":1: text: expected one column `text`, got none (did you mean `txet`?)"),
        ("n,n,x,b,text,label\n", rs.SpecError, ":1: n: expected one column `n`, got several"),
        ("", rs.SpecError, ":1: n: expected one column `n`, got none"),
        (b"\xff\n", rs.RecordError, ":1: expected UTF-8 text, got the byte 0xff"),
        (HEADER + "1,2\n", rs.RecordError, ":2: expected CSV, got Expected 5 columns, got 2: 1,2"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_as_it_should_be_is_named(tmp_path, text, kind, expected):
    with pytest.raises(kind) as caught:
        written(tmp_path, text)
    assert str(caught.value).splitlines()[0] == f"{tmp_path}/rows.csv{expected}"


def test_a_column_that_nothing_names_is_noted(tmp_path):
    (tmp_path / "rows.csv").write_text("n,id\n1,2\n")
    source = Csv(path="rows.csv").open(tmp_path)
    rs.write(rs.Schema.loads("schema: s\nfeatures: {n: int64}"), source, tmp_path / "data")
    assert source.notes == ["columns that no feature names: id"]


IMAGES = rs.Schema.loads(
    "schema: s\nfeatures: {image: {kind: image, shape: [2, 3, 3]}, label: {kind: label, names: [cat, dog]}}"
)


@pytest.fixture
def folder(tmp_path) -> Path:
    for index, name in enumerate(["cat/a.png", "dog/b.PNG", "dog/deep/c.png"]):
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (3, 2), (index, 0, 0)).save(path)
    (tmp_path / "images/dog/Thumbs.db").touch()
    (tmp_path / "images/.hidden.png").touch()
    return tmp_path / "images"


def test_a_folder_gives_images_and_their_classes(tmp_path, folder):
    source = ImageFolder(path="images").open(tmp_path)
    assert source.rows == 3
    rs.write(IMAGES, source, tmp_path / "data", key="path")
    rows = list(rs.read(IMAGES, tmp_path / "data"))
    assert [int(row["label"]) for row in rows] == [0, 1, 1]
    assert [int(row["image"][0, 0, 0]) for row in rows] == [0, 1, 2]
    assert source.notes == ["files with no image's suffix, left out: 1, such as dog/Thumbs.db"]


def test_an_image_that_is_none_is_named(tmp_path, folder):
    bad = folder / "dog" / "b.PNG"
    whole = (folder / "cat/a.png").read_bytes()
    for data, expected in [
        (b"<html></html>", "expected an image, got {bad}: an HTML page"),
        (b"", "expected an image, got {bad}: no bytes at all"),
        (whole[:40], "expected an image that decodes, got {bad}: "),
    ]:
        bad.write_bytes(data)
        with pytest.raises(rs.RecordError) as caught:
            rs.write(IMAGES, ImageFolder(path="images").open(tmp_path), tmp_path / "data")
        assert str(caught.value).startswith(f"{bad}: features.image: {expected.format(bad=bad)}")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(rs.StoreError) as caught:
        rs.write(SCHEMA, ImageFolder(path="no").open(tmp_path), tmp_path / "data")
    assert str(caught.value) == f"`{tmp_path / 'no'}` is no folder"


def test_a_folder_without_images_has_no_rows(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {image: {kind: image, shape: [2, 3, 3]}}")
    (tmp_path / "images").mkdir()
    (tmp_path / "images/notes.txt").touch()
    source = ImageFolder(path="images", label=None).open(tmp_path)
    with pytest.raises(rs.RecordError, match="images` has no rows: "):
        rs.write(schema, source, tmp_path / "data")
    assert source.notes == ["files with no image's suffix, left out: 1, such as notes.txt"]
    assert rs.write(schema, source, tmp_path / "data", allow_empty=True).rows("train") == 0


def test_images_of_a_csv_stay_in_its_folder(tmp_path, folder):
    schema = rs.Schema.loads("schema: s\nfeatures: {image: {kind: image, shape: [2, 3, 3]}}")
    assert len(written(tmp_path, "image\nimages/cat/a.png\n", schema)) == 1
    with pytest.raises(rs.RecordError) as caught:
        written(tmp_path, "image\n../secret.png\n", schema)
    assert str(caught.value) == (
        f"{tmp_path}/rows.csv:2: features.image: expected a path in {tmp_path}, got `../secret.png`"
    )


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if not case.tolerance],
    ids=str,
)
def test_records_of_every_kind_are_rows_again(tmp_path, case):
    rs.write(case.schema, case.rows, tmp_path / "a", compression="gzip")
    rs.write(case.schema, TFRecords(files="a").open(tmp_path), tmp_path / "b", compression="gzip")
    names = [shard.file for shard in rs.Manifest.load(tmp_path / "a").shards("train")]
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_records_are_written_with_another_spec(tmp_path):
    path = tmp_path / "old.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for value in ([3], []):
            made = tf.train.Feature(int64_list=tf.train.Int64List(value=value))
            writer.write(
                tf.train.Example(features=tf.train.Features(feature={"old/n": made})).SerializeToString()
            )
    (tmp_path / "old.yaml").write_text("schema: old\nfeatures: {n: {dtype: int64, default: 0, key: old/n}}")
    new = rs.Schema.loads("schema: new\nfeatures: {n: {dtype: float32, default: -1.0}}")
    rs.write(new, TFRecords(files="old.tfrecord", schema="old.yaml").open(tmp_path), tmp_path / "data")
    assert [float(row["n"]) for row in rs.read(new, tmp_path / "data")] == [3.0, -1.0]
    plain = rs.Schema.loads("schema: old\nfeatures: {n: {dtype: int64, key: old/n}}")
    with pytest.raises(rs.RecordError) as caught:
        rs.write(plain, TFRecords(files="old.tfrecord").open(tmp_path), tmp_path / "other")
    assert str(caught.value).startswith(
        f"{path}: record 1 at byte 34: features.n: expected int64, got nothing"
    )


def test_a_config_names_one_source():
    for given, got in [({}, "none"), ({"csv": Csv(path="a"), "tfrecord": TFRecords(files="b")}, "several")]:
        with pytest.raises(rs.SpecError) as caught:
            From(**given)
        forms = "csv, jsonl, parquet, image_folder, audio_folder, coco, voc, webdataset, tfrecord"
        assert str(caught.value) == f"expected one of {forms}, got {got}"


def test_a_csv_file_of_many_rows_is_read_in_parts(tmp_path):
    """Arrow 15 gives wrong bytes for a part of a column of text, if it is asked to make gaps in it."""
    cells = ["" if index % 7 == 0 else str(index + 1_000_000) for index in range(3000)]
    (tmp_path / "rows.csv").write_text("x,t\n" + "".join(f'{cell},"{cell}"\n' for cell in cells))
    schema = rs.Schema.loads("schema: s\nfeatures:\n  x: {dtype: int64, default: -1}\n  t: text")
    rs.write(schema, Csv(path="rows.csv").open(tmp_path), tmp_path / "data")
    (batch,) = rs.read(schema, tmp_path / "data", batch=5000)
    assert batch["x"].numpy().tolist() == [int(cell or -1) for cell in cells]
    assert batch["t"].numpy().tolist() == [cell.encode() for cell in cells]
