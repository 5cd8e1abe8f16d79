"""Files whose first look misleads: a note of each reading that the file may have as well."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from PIL import Image
from pyarrow import parquet

import recordspec as rs
from recordspec.wire.framing import framed


def notes_of(path: Path | str, text: str = "") -> list[str]:
    if text:
        Path(path).write_text(text)
    return [
        note.partition(":")[2].strip()
        for note in rs.infer(path).notes
        if note.startswith(("source:", "image:"))
    ]


def test_a_first_line_of_numbers_may_be_a_row(tmp_path):
    rows = "".join(f"4.{n},3.1,setosa\n6.{n},2.2,other\n" for n in range(30))
    (note,) = notes_of(tmp_path / "iris.csv", "5.1,2.7,setosa\n" + rows)
    assert note.startswith(
        "names of columns are numbers, 5.1 (and 1 more): if the file has no header, its first row"
    )
    assert notes_of(tmp_path / "named.csv", "length,width,species\n" + rows) == []


def test_a_space_beside_a_delimiter_is_told(tmp_path):
    rows = "".join(f"{n}, {n * 7 % 90}, a\n" for n in range(60))
    note, *_ = notes_of(tmp_path / "spaces.csv", "age, hours, y\n" + rows)
    assert note.startswith("names of columns have spaces around them, ' hours' (and 1 more): spaces are kept")
    assert notes_of(tmp_path / "plain.csv", ("age, hours, y\n" + rows).replace(", ", ",")) == []


def test_a_quote_that_joins_lines_of_a_tsv_is_told(tmp_path):
    text = 'text\tlabel\none\tx\n"two\ty\nthree"\tx\nfour\ty\n'
    (note,) = notes_of(tmp_path / "rows.tsv", text)
    assert note.startswith("cells of several lines: 1, which begin with a quote")
    assert notes_of(tmp_path / "same.tsv", text.replace('"', "")) == []


def test_columns_that_folders_name_are_not_lost_without_a_word(tmp_path):
    folder = tmp_path / "sales/country=DE/year=2020"
    folder.mkdir(parents=True)
    parquet.write_table(pyarrow.table({"a": [1, 2]}), folder / "part-0.parquet")
    (note,) = notes_of(f"{tmp_path}/sales/*/*/*.parquet")
    assert note.startswith(
        "the columns in the names of folders are not read, country, year (pyarrow.dataset."
    )


def test_images_of_a_table_are_inputs_and_missing_ones_are_named(tmp_path):
    for number in range(5):
        Image.fromarray(np.full((4, 4, 3), number, np.uint8)).save(tmp_path / f"{number}.png")
    text = "image,y\n" + "".join(f"{number}.png,{number % 2}\n" for number in range(5))
    assert notes_of(tmp_path / "rows.csv", text) == ["paths of image files, judged by the first 5"]
    found = rs.infer(tmp_path / "rows.csv")
    assert (found.schema["image"].kind, found.no_inputs) == ("image", {})  # its path would identify the row
    (tmp_path / "3.png").unlink()
    (note,) = notes_of(tmp_path / "rows.csv")
    assert (
        note == f"text, not image files, since 1 of the first 5 paths do not exist, such as {tmp_path}/3.png"
    )


def test_boxes_of_crowds_are_told(tmp_path):
    Image.fromarray(np.zeros((40, 60, 3), np.uint8)).save(tmp_path / "a.jpg")
    one = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 9, 9], "area": 81, "iscrowd": 0}
    for crowds in (0, 2):
        some = [one, *(one | {"id": 2 + n, "iscrowd": 1} for n in range(crowds))]
        images = [{"id": 1, "file_name": "a.jpg", "width": 60, "height": 40}]
        document = {"images": images, "annotations": some, "categories": [{"id": 1, "name": "car"}]}
        (tmp_path / "instances.json").write_text(json.dumps(document))
        told = [note for note in rs.infer(tmp_path / "instances.json").notes if "crowds" in note]
        expected = "boxes: 2 are crowds, which the column `iscrowd` of the source marks"
        assert told == ([expected] if crowds else [])


def test_a_training_split_of_another_name_is_told(tmp_path):
    for split in ("training", "testing"):
        (tmp_path / f"{split}.csv").write_text("x,y\n1.5,a\n2.5,b\n" * 20)
    told = [
        note
        for note in rs.infer([tmp_path / "training.csv", tmp_path / "testing.csv"]).notes
        if "splits" in note
    ]
    assert told == [
        "splits: no `fit.encode` is proposed, which learns from a split named `train`, not `training`"
    ]


def test_photos_of_formats_without_a_feature_are_counted(tmp_path):
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "a.png")
    for name in ("b.avif", "c.HEIC", "d.avif", "Thumbs.db"):
        (tmp_path / name).write_bytes(b"")
    (note,) = [note for note in rs.infer(tmp_path).notes if "left out" in note]
    assert note.startswith("files that are not images, left out: 2 of .avif, 1 of .")
    assert "1 of .HEIC" in note


def test_a_split_of_tfds_without_labels_is_left_out(tmp_path):
    """TFDS stores a missing label as -1, which no class has; a build of it would end at its first row."""
    schema = rs.Schema.loads("schema: t\nfeatures: {label: int64}\n")
    stored = {"train": 1, "test": -1}
    for split, label in stored.items():
        file = tmp_path / f"sst-{split}.tfrecord-00000-of-00001"
        file.write_bytes(framed(schema.encode({"label": label})) * 3)
    base = "tensorflow_datasets.core.features"
    label = {"pythonClassName": f"{base}.class_label_feature.ClassLabel", "classLabel": {"numClasses": "2"}}
    top = {
        "pythonClassName": f"{base}.features_dict.FeaturesDict",
        "featuresDict": {"features": {"label": label}},
    }
    (tmp_path / "features.json").write_text(json.dumps(top))
    (tmp_path / "label.labels.txt").write_text("no\nyes\n")
    splits = [{"name": split, "shardLengths": ["3"], "numBytes": "1"} for split in stored]
    info = {"name": "sst", "version": "1.0.0", "fileFormat": "tfrecord", "splits": splits}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    found = rs.infer(tmp_path)
    assert found.notes == ("splits: the config leaves out `test`: their labels are -1, which means missing",)
    found.save(tmp_path / "c.yaml", schema=tmp_path / "s.yaml")
    built = rs.Pipeline.load(tmp_path / "c.yaml").build()
    assert {split: built.rows(split) for split in built.splits} == {"train": 3}


# the oldest Polars gives Arrow no order
@pytest.mark.parametrize("library", ["pandas", pytest.param("Polars", marks=pytest.mark.newest), "Arrow"])
def test_ordered_categories_keep_their_order(tmp_path, library):
    """And the class that no row has."""
    levels, values = ["low", "mid", "high"], ["mid", "low", "mid", "low"] * 20
    frame = pandas.DataFrame({"level": pandas.Categorical(values, categories=levels, ordered=True)})
    given = {
        "pandas": frame,
        "Polars": polars.DataFrame({"level": polars.Series(values, dtype=polars.Enum(levels))}),
        "Arrow": pyarrow.Table.from_pandas(frame),
    }[library]
    found = rs.infer(given)
    assert found.schema["level"].traits.class_names == tuple(levels)
    rs.write(given, found, tmp_path / "data", shuffle=None)
    assert rs.open(tmp_path / "data")[:4]["level"].tolist() == [1, 0, 1, 0]
    unordered = rs.infer(pandas.DataFrame({"level": pandas.Categorical(values)}))
    assert unordered.schema["level"].traits.class_names == ("low", "mid")
