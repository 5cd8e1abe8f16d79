"""YOLO's files as rows: lists of images, polygons, keypoints, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import recordspec as rs
from recordspec.writing.sources.yolo import Yolo, YoloClasses, given_splits

SCHEMA = rs.Schema.loads("""
schema: objects
features:
  image: {kind: image, shape: [null, null, 3]}
  boxes: {kind: box, format: xyxy}
  labels: {kind: label, names: [dog, cat], shape: [null]}
""")


@pytest.fixture
def folder(tmp_path) -> Path:
    for name, size in (("a.png", (40, 20)), ("b.png", (10, 10))):
        path = tmp_path / "images/train" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size).save(path)
    (tmp_path / "labels/train").mkdir(parents=True)
    (tmp_path / "labels/train/a.txt").write_text("1 0.5 0.5 0.25 0.5\n\n0 0.1 0.2 0.3 0.2 0.3 0.6 0.1 0.6\n")
    (tmp_path / "data.yaml").write_text("train: images/train\nval: images/train\nnames: {0: cat, 1: dog}\n")
    return tmp_path


def built(folder: Path, schema: rs.Schema = SCHEMA, **options) -> list:
    options = {"images": "images/train", "names": "data.yaml"} | options
    rs.write(Yolo(**options).open(folder), schema, folder / "data", key=None, force=True, progress=False)
    return list(rs.open(folder / "data", schema))


@pytest.mark.parametrize("images", ["images/train", "train.txt"])
def test_boxes_and_polygons_have_the_names_of_their_numbers(folder, images):
    (folder / "train.txt").write_text("./images/train/a.png\ndata/images/train/b.png\n")
    first, empty = built(folder, images=images)
    np.testing.assert_allclose(first["boxes"], [[15, 5, 25, 15], [4, 4, 12, 12]], atol=1e-4)
    assert first["labels"].tolist() == [0, 1]  # in the order of the schema
    assert empty["boxes"].shape == (0, 4)


def test_without_a_file_the_numbers_are_the_names(folder):
    schema = SCHEMA.with_features({"labels": {"kind": "label", "names": ["1", "0"], "shape": [None]}})
    first, _ = built(folder, schema, names=None)
    assert first["labels"].tolist() == [0, 1]


def test_keypoints_are_in_pixels_with_their_visibility(folder):
    (folder / "data.yaml").write_text("kpt_shape: [2, 3]\nnc: 2\n")
    (folder / "labels/train/a.txt").write_text("1 0.5 0.5 0.25 0.5 0.5 0.25 2 0 0 0\n")
    schema = rs.Schema.loads(
        "schema: s\nfeatures:\n  keypoints: {kind: ragged, dtype: float32, shape: [null, 2, 3]}\n"
        "  labels: {kind: label, names: [class_0, class_1], shape: [null]}\n"
    )
    first, empty = built(folder, schema)
    assert first["keypoints"].tolist() == [[[20, 5, 2], [0, 0, 0]]]
    assert len(empty["keypoints"]) == 0


def test_a_side_that_six_decimals_round_stays_in_its_image(folder):
    (folder / "labels/train/a.txt").write_text("1 0.123456 0.5 0.246913 1.0\n")
    first, _ = built(folder)
    assert first["boxes"][0, 0] == 0


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("0 0.5 0.5 0.2 0.2 0.9", "labels/train/a.txt: expected a class and 4 numbers, or the points of a polygon, got "
         "`0 0.5 0.5 0.2 0.2 0.9` on line 1 (the sixth is the confidence of a prediction)"),
        ("2 0.5 0.5 0.2 0.2", "labels/train/a.txt: expected a class 0 to 1, as {folder}/data.yaml names, got 2 on line 1"),
        ("cat 0.5 0.5 0.2 0.2", "labels/train/a.txt: expected a class and 4 numbers, or the points of a polygon, got "
         "`cat 0.5 0.5 0.2 0.2` on line 1"),
        ("0 0.9 0.5 0.4 0.2", "labels/train/a.txt: features.boxes: expected a box in its image, 40 x 20, got corners "
         "[28, 8, 44, 12] of line 1 (`clip: true` of the source clips it)"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_object_is_refused(folder, line, expected):
    (folder / "labels/train/a.txt").write_text(f"{line}\n")
    with pytest.raises(rs.RecordError) as caught:
        built(folder)
    assert str(caught.value).splitlines()[0] == f"{folder}/{expected.format(folder=folder)}"


def test_a_folder_without_any_text_file_is_refused(folder):
    with pytest.raises(rs.StoreError) as caught:
        built(folder, annotations="images")
    assert str(caught.value) == (
        f"`{folder}/images` has no .txt file of any image: `annotations` names the folder of the text files"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("names: [cat, cat]", "names: expected every name once, got `cat` again"),
        ("names: {0: cat, 2: dog}", "names: expected the names of the classes, from 0 on, got {0: 'cat', 2: 'dog'}"),
        ("nc: 2\nkpt_shape: 17", "kpt_shape: expected [count, 2 or 3], got 17"),
        ("names: [", "expected YAML, got while parsing"),
        ("names: {0: cat, 1: no}", "names: expected names of classes, got bool False (in quotes, `no` and `yes` are names)"),
    ],
)  # fmt: skip
def test_names_that_no_class_has_are_refused(tmp_path, text, expected):
    (tmp_path / "data.yaml").write_text(text)
    with pytest.raises(rs.SpecError) as caught:
        YoloClasses.of(tmp_path / "data.yaml")
    assert str(caught.value).startswith(f"{tmp_path}/data.yaml: {expected}")


def test_the_line_of_a_name_is_the_number_of_its_class(tmp_path):
    (tmp_path / "classes.txt").write_text("cat\ndog\n\n")
    assert YoloClasses.of(tmp_path / "classes.txt").names == ("cat", "dog")
    (tmp_path / "classes.txt").write_text("cat\n\ndog\n")
    with pytest.raises(
        rs.SpecError, match=r"classes\.txt:2: expected the name of a class, got an empty line"
    ):
        YoloClasses.of(tmp_path / "classes.txt")


def test_a_list_of_folders_is_refused_with_the_way_out(folder):
    (folder / "data.yaml").write_text("train: [images/train, images/more]\nnames: [cat]\n")
    with pytest.raises(rs.SpecError) as caught:
        given_splits(folder / "data.yaml")
    assert str(caught.value) == (
        f"{folder}/data.yaml: train: expected one folder, or one file that lists the images, got 2 paths "
        "(a text file can list the images of all folders)"
    )
