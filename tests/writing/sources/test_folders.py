"""Folders of images and sounds: their classes are those of the folders, in any parts."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
import soundfile
from in_parts import error_of, parts_of, records, rows_of, schema
from PIL import Image
from pyarrow import parquet

import recordspec as rs
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.folders import AudioFolder, ImageFolder
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.parquet import Parquet


@pytest.fixture
def images(tmp_path):
    for index, name in enumerate(["cat/a.png", "cat/b.png", "dog/c.png"]):
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (3, 2), (index, 0, 0)).save(path)
    return tmp_path / "images"


PICTURES = schema("image: {kind: image, shape: [2, 3, 3]}\n  label: {kind: label, names: [cat, dog]}")


def test_a_table_of_files_and_labels_is_a_folder_of_images(tmp_path, images):
    pairs = [
        (path.relative_to(tmp_path).as_posix(), path.parent.name) for path in sorted(images.rglob("*.png"))
    ]
    (tmp_path / "rows.csv").write_text("image,label\n" + "".join(f"{path},{name}\n" for path, name in pairs))
    objects = [{"image": path, "label": name} for path, name in pairs]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, objects)))
    parquet.write_table(pa.Table.from_pylist(objects), tmp_path / "rows.parquet")
    expected = records(ImageFolder(folder="images").open(tmp_path), PICTURES)
    assert len(expected) == 3
    for form in (Csv(files="rows.csv"), Jsonl(files="rows.jsonl"), Parquet(files="rows.parquet")):
        assert records(form.open(tmp_path), PICTURES) == expected


def test_a_folder_in_parts_has_the_same_files(tmp_path, images, part_bytes):
    source = ImageFolder(folder="images").open(tmp_path)
    whole = records(source, PICTURES)
    part_bytes(100)
    parts = parts_of(source, PICTURES, ("path",))
    assert [part.place(0) for part in parts] == [str(path) for path in sorted(images.rglob("*.png"))]
    assert [next(part.batches(PICTURES, ("path",))).values["path"] for part in parts] == [
        ["cat/a.png"],
        ["cat/b.png"],
        ["dog/c.png"],
    ]
    assert records(source, PICTURES) == whole


def test_a_folder_of_sounds_gives_sounds_and_classes(tmp_path):
    samples = np.arange(400, dtype=np.int16)
    for name in ("no/a.wav", "yes/b.FLAC", "c.wav"):
        path = tmp_path / "sounds" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, samples, 8000, format=path.suffix[1:].upper())
    (tmp_path / "sounds/notes.txt").touch()
    one = schema(
        "audio: {kind: audio, sample_rate: 8000, dtype: int16, encoding: raw}\n  label: {kind: label, names: ['no', 'yes']}"
    )
    source = AudioFolder(folder="sounds").open(tmp_path)
    assert (source.rows, source.notes) == (
        3,
        ["files that are not audio files, left out: 1 of .txt (notes.txt)"],
    )
    assert error_of(source, one) == [
        f"{tmp_path}/sounds/c.wav: features.label: expected one of `no`, `yes`, or an index, got nothing"
    ]
    (tmp_path / "sounds/c.wav").unlink()
    rows = rows_of(AudioFolder(folder="sounds").open(tmp_path), one)
    assert [row["label"] for row in rows] == [0, 1]
    assert [np.ravel(row["audio"]).tolist() for row in rows] == [samples.tolist()] * 2
    with pytest.raises(rs.SpecError) as caught:
        parts_of(AudioFolder(folder="sounds", audio="sound", label=None).open(tmp_path), one)
    assert str(caught.value) == (
        "sound: expected a feature for it, got none (the options of the source name them)"
    )


IMAGES = rs.Schema.loads(
    "schema: s\nfeatures: {image: {kind: image, shape: [2, 3, 3]}, label: {kind: label, names: [cat, dog]}}"
)


def test_a_folder_gives_images_and_their_classes(tmp_path, folder):
    source = ImageFolder(folder="images").open(tmp_path)
    assert source.rows == 3
    rs.write(source, IMAGES, tmp_path / "data", key="path")
    rows = list(rs.read(tmp_path / "data", IMAGES))
    assert [int(row["label"]) for row in rows] == [0, 1, 1]
    assert [int(row["image"][0, 0, 0]) for row in rows] == [0, 1, 2]
    assert source.notes == ["files that are not images, left out: 1 of .db (dog/Thumbs.db)"]


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
            rs.write(ImageFolder(folder="images").open(tmp_path), IMAGES, tmp_path / "data")
        assert str(caught.value).startswith(f"{bad}: features.image: {expected.format(bad=bad)}")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(rs.StoreError) as caught:
        rs.write(ImageFolder(folder="no").open(tmp_path), IMAGES, tmp_path / "data")
    assert str(caught.value) == f"`{tmp_path / 'no'}` is not a folder"


def test_a_folder_without_images_has_no_rows(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {image: {kind: image, shape: [2, 3, 3]}}")
    (tmp_path / "images").mkdir()
    (tmp_path / "images/notes.txt").touch()
    source = ImageFolder(folder="images", label=None).open(tmp_path)
    with pytest.raises(rs.RecordError, match="images` has no rows: "):
        rs.write(source, schema, tmp_path / "data")
    assert source.notes == ["files that are not images, left out: 1 of .txt (notes.txt)"]
    assert rs.write(source, schema, tmp_path / "data", allow_empty=True).rows("train") == 0
