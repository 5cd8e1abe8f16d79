"""Files of images and sounds, and TFRecords: cut anywhere, they give the same rows under the same names."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from in_parts import MANY, NUMBER, error_of, parts_of, records, rows_in, rows_of, schema
from PIL import Image
from pyarrow import parquet

import recordspec as rs
from recordspec._tf import tf
from recordspec.writing.sources import base
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.folders import AudioFolder, ImageFolder
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.parquet import Parquet
from recordspec.writing.sources.tfrecord import TFRecords


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
    expected = records(ImageFolder(path="images").open(tmp_path), PICTURES)
    assert len(expected) == 3
    for form in (Csv(path="rows.csv"), Jsonl(path="rows.jsonl"), Parquet(files="rows.parquet")):
        assert records(form.open(tmp_path), PICTURES) == expected


def test_paths_of_a_table_stay_in_its_folder(tmp_path):
    one = schema("v: {kind: video, shape: [null, 2, 3, 3]}\n  i: {kind: image, shape: [2, 3, 3]}")
    Image.new("RGB", (3, 2)).save(tmp_path / "a.png")
    rows = [{"v": ["a.png"], "i": "a.png"}, {"v": ["a.png", "../b.png"], "i": "/etc/c.png"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    for form, place in [
        (Jsonl(path="rows.jsonl"), "rows.jsonl:2"),
        (Parquet(files="rows.parquet"), "rows.parquet: row 1"),
    ]:
        assert error_of(form.open(tmp_path), one) == [
            f"{tmp_path}/{place}: features.v: expected a path in {tmp_path}, got `../b.png`",
            f"{tmp_path}/{place}: features.i: expected a path in {tmp_path}, got `/etc/c.png`",
        ]


def test_a_folder_in_parts_has_the_same_files(tmp_path, images, part_bytes):
    source = ImageFolder(path="images").open(tmp_path)
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
    source = AudioFolder(path="sounds").open(tmp_path)
    assert (source.rows, source.notes) == (
        3,
        ["files with no sound's suffix, left out: 1, such as notes.txt"],
    )
    assert error_of(source, one) == [
        f"{tmp_path}/sounds/c.wav: features.label: expected one of no, yes, or an index, got nothing"
    ]
    (tmp_path / "sounds/c.wav").unlink()
    rows = rows_of(AudioFolder(path="sounds").open(tmp_path), one)
    assert [row["label"] for row in rows] == [0, 1]
    assert [np.ravel(row["audio"]).tolist() for row in rows] == [samples.tolist()] * 2
    with pytest.raises(rs.SpecError) as caught:
        parts_of(AudioFolder(path="sounds", audio="sound", label=None).open(tmp_path), one)
    assert str(caught.value) == (
        "sound: expected a feature for it, got none (the options of the source name them)"
    )


# TFRecords


@given(sizes=st.lists(st.integers(0, 40), max_size=20), size=st.integers(1, 120))
@MANY
def test_a_tfrecord_file_cut_anywhere_has_the_same_records(tmp_path_factory, sizes, size):
    path = tmp_path_factory.mktemp("tfrecord") / "old.tfrecord"
    one = schema("t: string")
    rows = [bytes([index]) * length for index, length in enumerate(sizes)]
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            writer.write(one.encode({"t": row}))
    source = TFRecords(files="old.tfrecord").open(path.parent)
    (whole,) = parts_of(source, one)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "PART_BYTES", size)
        parts = parts_of(source, one)
        assert [row["t"] for row in rows_of(source, one)] == rows
        counts = [rows_in(part.batches(one, ())) for part in parts]
    assert all(counts[1:])
    places = [part.place(row) for part, count in zip(parts, counts, strict=True) for row in range(count)]
    assert places == [whole.place(row) for row in range(len(rows))]


def test_a_broken_record_of_a_later_part_keeps_its_number(tmp_path, small):
    path = tmp_path / "old.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number in range(5):
            writer.write(NUMBER.encode({"n": number}))
    data = bytearray(path.read_bytes())
    size = len(data) // 5
    data[3 * size + 14] ^= 1
    path.write_bytes(data)
    source = TFRecords(files="old.tfrecord").open(tmp_path)
    assert len(parts_of(source, NUMBER)) == 5
    with pytest.raises(rs.RecordError) as caught:
        records(source, NUMBER)
    assert str(caught.value) == (
        f"{path}: record 3 at byte {3 * size}: expected data that matches its CRC, got other bytes"
    )
