"""Annotated images, from the files of each tool to the values of a built dataset."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

import annotated_datasets as tools
import recordspec as rs

SPLIT = {
    "ultralytics": ("train", "val"),
    "roboflow_yolo": ("train", "val"),
    "roboflow_coco": ("train", "valid"),
}
SPLIT |= {"coco": ("train", "val"), "cvat_yolo": ("train", "val")}
YOLO = ("ultralytics", "roboflow_yolo", "darknet", "label_studio", "cvat_yolo")


def expected(pictures):
    """The size and the objects of each image: the class, and (top, left, bottom, right) as fractions."""
    return Counter(
        (
            (one.height, one.width),
            tuple(
                (
                    label,
                    *np.round(
                        [top / one.height, left / one.width, bottom / one.height, right / one.width], 4
                    ),
                )
                for label, left, top, right, bottom in one.objects
            ),
        )
        for one in pictures
    )


def read(pipeline, split):
    """The same of the rows of a dataset."""
    rows = list(pipeline.open(split))
    assert all(row["image"].shape[2] == 3 for row in rows)
    return Counter(
        (
            row["image"].shape[:2],
            tuple(
                (int(label), *np.round(box.astype(np.float64), 4))
                for box, label in zip(row["boxes"], row["labels"], strict=True)
            ),
        )
        for row in rows
    )


@pytest.mark.parametrize("tool", [*YOLO, "coco", "roboflow_coco", "labelme", "cvat", "voc"])
def test_the_files_of_each_tool_become_the_boxes_that_were_drawn(tmp_path, monkeypatch, tool):
    monkeypatch.chdir(tmp_path)
    upright = tool in (*YOLO, "labelme", "cvat")
    orientations = (1, 6, 3, 8, 1, 5, 7, 2, 4) if upright else (1,)
    train, val = tools.pictures(12, 1, orientations), tools.pictures(5, 2, orientations)
    given = getattr(tools, tool)(tmp_path / "raw", train, val)
    found = rs.infer(str(given), "pets")
    assert found.schema.names["labels"].names == tools.NAMES
    lists = f"splits: the lists in {tmp_path / 'ImageSets'} are not read"
    assert (lists in found.notes) == (tool == "voc")
    found.save("c.yaml", data="data")
    pipeline = rs.Pipeline.load("c.yaml")
    pipeline.build(progress=False)
    if tool in SPLIT:
        for split, pictures in zip(SPLIT[tool], (train, val), strict=True):
            assert read(pipeline, split) == expected(pictures)
    else:
        assert sum((read(pipeline, split) for split in pipeline.manifest.splits), Counter()) == expected(
            train + val
        )


def test_notes_name_what_a_user_may_choose(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pictures = tools.pictures(6, 1)
    tools.roboflow_coco(tmp_path / "raw", pictures, pictures)
    document = tools.coco_document(pictures)
    document["categories"] += [{"id": 0, "name": "pets"}, {"id": 99, "name": "cat"}]
    document["annotations"][0]["iscrowd"] = 1
    document["annotations"][1]["bbox"][2] = 0
    document["images"][2]["file_name"] = "gone.jpg"
    document["images"][3]["file_name"] = document["images"][3]["file_name"].removesuffix(".jpg")
    file = tmp_path / "raw/train/_annotations.coco.json"
    file.write_text(json.dumps(document))
    found = rs.infer(str(file), "pets")
    assert [note for note in found.notes if not note.startswith("image: of different")] == [
        f"image: 1 of 6 files do not exist, such as {tmp_path}/raw/train/gone.jpg: `write: {{invalid: ...}}` of the "
        "config leaves their rows out; without it, they are an error",
        "boxes: 1 without an area, which `clip: true` of the source leaves out",
        "boxes: 1 region of crowds (`iscrowd: 1`), objects as all others: `crowds: false` of the source leaves them "
        "out, the column `iscrowd` marks them",
        "boxes: none in 2 of 6 images",
        "labels: several categories are named `cat`: `merge_categories: true` of the source makes one class of them",
        "labels: no object is `pets`: remove names that are no classes from `names`",
    ]
    found.save("c.yaml", data="data")
    source = yaml.safe_load(Path("c.yaml").read_text())["write"]["source"]["coco"]
    assert source == {
        "annotations": "raw/train/_annotations.coco.json",
        "merge_categories": True,
        "clip": True,
    }
    pipeline = rs.Pipeline.load("c.yaml")
    pipeline.build(progress=False)
    assert sum(map(pipeline.manifest.rows, pipeline.manifest.splits)) == 5


def test_captions_and_keypoints_are_inferred_and_built(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pictures = tools.pictures(6, 1, (1, 6))
    stored = [
        replace(one, width=one.height, height=one.width) if one.orientation == 6 else one for one in pictures
    ]
    document = tools.coco_document(stored)
    for picture in pictures:
        picture.save(tmp_path / "images" / picture.name)
    captions = [{"id": n, "image_id": n // 2, "caption": f"text {n}"} for n in range(12)]
    Path("captions.json").write_text(json.dumps(document | {"annotations": captions, "categories": []}))
    for number, annotation in enumerate(document["annotations"]):
        annotation |= {"keypoints": [number, 2, 2, 3, 4, 1], "num_keypoints": 2, "bbox": [1, 1, 9, 9]}
    Path("person_keypoints.json").write_text(json.dumps(document))
    rows = {}
    for name in ("captions", "person_keypoints"):
        found = rs.infer(f"{name}.json")
        found.save(f"{name}.yaml", data=name)
        pipeline = rs.Pipeline.load(f"{name}.yaml")
        pipeline.build(progress=False)
        rows[name] = [row for split in pipeline.manifest.splits for row in pipeline.open(split)]
    assert sorted(list(row["captions"]) for row in rows["captions"]) == sorted(
        [b"text %d" % (2 * n), b"text %d" % (2 * n + 1)] for n in range(6)
    )
    points = [point for row in rows["person_keypoints"] for point in row["keypoints"].tolist()]
    assert sorted(points) == [[[n, 2, 2], [3, 4, 1]] for n in range(len(document["annotations"]))]
    assert "image: not turned upright, since the keypoints would not be" in found.notes


def test_a_folder_of_yolo_without_names_and_with_more_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pictures = tools.pictures(6, 1)
    tools.write_yolo(tmp_path / "pets", tmp_path / "pets", pictures)
    (tmp_path / "pets/other.txt").write_text("0 0.5 0.5 1 1\n")
    found = rs.infer("pets")
    assert found.schema.name == "pets"
    assert found.notes[-2:] == (
        "labels: the numbers of the classes are their names, since there is no data.yaml or classes.txt: `names:` of "
        "the source takes one",
        "text files without an image, left out: 1, such as pets/other.txt",
    )
    Path("pets/classes.txt").write_text("\n".join(tools.NAMES))
    assert rs.infer("pets").schema.names["labels"].names == tools.NAMES
