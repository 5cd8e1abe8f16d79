"""Annotations of COCO and Pascal VOC as rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import recordspec as rs
from media import image_bytes, photo
from recordspec.writing.sources.coco import Coco
from recordspec.writing.sources.voc import PascalVoc

SCHEMA = """
schema: objects
features:
  image: {kind: image, shape: [null, null, 3]}
  boxes: {kind: box, format: FORMAT}
  labels: {kind: label, names: [cat, dog], shape: [null]}
  area: {kind: var_len, dtype: float32}
  id: {dtype: int64}
"""
COCO = {
    "info": {"year": 2017},
    "images": [
        {"id": 5, "file_name": "b.png", "width": 40, "height": 30, "license": 1},
        {"id": 2, "file_name": "sub/a.png", "width": 40, "height": 30},
    ],
    "annotations": [
        {"id": 70, "image_id": 5, "category_id": 18, "bbox": [10, 3, 20, 6.5], "area": 99.5, "iscrowd": 0,
         "segmentation": [[1, 2, 3, 4]]},
        {"id": 71, "image_id": 5, "category_id": 17, "bbox": [0, 0, 40, 30], "area": 7, "iscrowd": 1},
    ],
    "categories": [{"id": 17, "name": "cat"}, {"id": 18, "name": "dog", "supercategory": "animal"}],
}  # fmt: skip
VOC = """<annotation><folder>x</folder><filename>b.png</filename>
<size><width>40</width><height>30</height><depth>3</depth></size>
<object><name>dog</name><pose>Left</pose><difficult>1</difficult>
 <bndbox><xmin>10</xmin><ymin>3</ymin><xmax>30</xmax><ymax>9.5</ymax></bndbox>
 <part><name>head</name><bndbox><xmin>0</xmin><ymin>0</ymin><xmax>1</xmax><ymax>1</ymax></bndbox></part></object>
</annotation>"""


def schema(format_: str = "rel_yxyx", without: str = "") -> rs.Schema:
    lines = SCHEMA.replace("FORMAT", format_).splitlines()
    return rs.Schema.loads("\n".join(line for line in lines if not without or f" {without}:" not in line))


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "images/sub").mkdir(parents=True)
    (tmp_path / "images/b.png").write_bytes(image_bytes(photo(), "png"))
    (tmp_path / "images/sub/a.png").write_bytes(image_bytes(photo()[::-1], "png"))
    (tmp_path / "coco.json").write_text(json.dumps(COCO))
    return tmp_path


def coco(folder: Path, change=None, **options) -> Coco:
    given = json.loads(json.dumps(COCO))
    if change is not None:
        change(given)
        (folder / "coco.json").write_text(json.dumps(given))
    options = {"columns": {"id": "image_id"}} | options
    return Coco(annotations="coco.json", images="images", **options).open(folder)


@pytest.mark.parametrize(
    ("format_", "first"),
    [
        ("xyxy", [10, 3, 30, 9.5]),
        ("yxyx", [3, 10, 9.5, 30]),
        ("xywh", [10, 3, 20, 6.5]),
        ("center_xywh", [20, 6.25, 20, 6.5]),
        ("rel_yxyx", [0.1, 0.25, 9.5 / 30, 0.75]),
        ("rel_center_xywh", [0.5, 6.25 / 30, 0.5, 6.5 / 30]),
    ],
)
def test_objects_of_coco_have_the_format_of_the_schema(folder, format_, first):
    rs.write(coco(folder), schema(format_), folder / "data", key=None, progress=False)
    crowd, empty = rs.read(folder / "data", schema(format_))
    np.testing.assert_array_equal(crowd["boxes"][0], np.float32(first))
    assert crowd["labels"].numpy().tolist() == [1, 0]
    assert crowd["area"].numpy().tolist() == [99.5, 7]
    assert [int(crowd["id"]), int(empty["id"])] == [5, 2]
    np.testing.assert_array_equal(crowd["image"], photo())
    np.testing.assert_array_equal(empty["image"], photo()[::-1])
    assert empty["boxes"].shape.as_list() == [0, 4]
    assert empty["labels"].shape.as_list() == [0]


def test_a_box_that_leaves_its_image_is_refused_or_clipped(folder):
    def change(given):
        given["annotations"][0]["bbox"] = [10, 3, 31, 6.5]
        given["annotations"][1]["bbox"] = [45, 3, 5, 5]

    with pytest.raises(rs.RecordError) as caught:
        rs.write(coco(folder, change), schema(), folder / "data", progress=False)
    assert str(caught.value).splitlines()[0] == (
        f"{folder}/images/b.png: features.boxes: expected a box in its image, 40 x 30, "
        "got corners [10, 3, 41, 9.5] of annotation 70 (`clip: true` of the source clips it)"
    )
    rs.write(coco(folder, change, clip=True), schema("xyxy"), folder / "data", key=None, progress=False)
    first, _ = rs.read(folder / "data", schema("xyxy"))
    assert first["boxes"].numpy().tolist() == [[10, 3, 40, 9.5]]
    assert first["labels"].numpy().tolist() == [1]
    assert first["area"].numpy().tolist() == [99.5]


def test_a_bad_image_can_be_quarantined(folder):
    def change(given):
        given["annotations"][0]["bbox"] = [10, 3, 0, 6.5]
        given["images"].append({"id": 9, "file_name": "../coco.json", "width": 1, "height": 1})
        given["images"].append({"id": 10, "file_name": "none.png", "width": 1, "height": 1})

    source = coco(folder, change)
    rs.write(source, schema(), folder / "data", key=None, invalid="quarantine", progress=False)
    lines = [json.loads(line) for line in (folder / "data/rejects.jsonl").read_text().splitlines()]
    assert sorted(line["problems"][0] for line in lines) == [
        "features.boxes: expected a box with an area, got corners [10, 3, 10, 9.5] of annotation 70",
        f"features.image: expected a path in {folder}/images, got `../coco.json`",
        f"features.image: expected an image file at {folder}/images/none.png, got no such file or directory",
    ]


def turned_photo(orientation: int) -> bytes:
    """A JPEG of 40 x 30 stored pixels; upright, it is 30 x 40 if the orientation is 5 or more."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return image_bytes(photo(), "jpeg", quality=100, subsampling=0, exif=exif)


@pytest.mark.parametrize("format_", ["xyxy", "rel_yxyx"])
def test_a_size_that_is_not_that_of_the_image_is_an_invalid_row(folder, format_):
    def double(given):
        given["images"][0].update(width=80, height=60)

    source, expected = (
        coco(folder, double),
        "features.image: expected an image of 80 x 60, as its annotations state",
    )
    with pytest.raises(rs.RecordError) as caught:
        rs.write(source, schema(format_), folder / "data", progress=False)
    path = f"{folder}/images/b.png"
    assert str(caught.value).splitlines()[0] == f"{path}: {expected}, got {path}: 40 x 30"
    rs.write(source, schema(format_), folder / "data", key=None, invalid="quarantine", progress=False)
    (line,) = (folder / "data/rejects.jsonl").read_text().splitlines()
    assert json.loads(line)["problems"] == [f"{expected}, got {path}: 40 x 30"]
    (left,) = rs.read(folder / "data", schema(format_))
    assert left["id"] == 2

    (folder / "images/b.xml").write_text(
        VOC.replace("<width>40", "<width>30").replace("<height>30", "<height>40")
    )
    small = schema(format_, without="area").only(["image", "boxes", "labels"])
    with pytest.raises(rs.RecordError) as caught:
        rs.write(PascalVoc(annotations="images").open(folder), small, folder / "voc", progress=False)
    assert str(caught.value).splitlines()[0] == (
        f"{folder}/images/b.xml: features.image: expected an image of 30 x 40, as its annotations state, "
        f"got {path}: 40 x 30"
    )


@pytest.mark.parametrize("format_", ["xyxy", "rel_xyxy"])
def test_annotations_are_those_of_the_stored_pixels(folder, format_):
    """Whatever the EXIF orientation; with `orientation: upright` the boxes are turned with the image."""
    (folder / "images/b.png").rename(folder / "images/b.jpg")
    (folder / "images/b.jpg").write_bytes(turned_photo(6))

    def stored(given):
        given["images"][0].update(file_name="b.jpg")

    def upright(given):
        given["images"][0].update(file_name="b.jpg", width=30, height=40)

    text = schema(format_).dump()
    kept = rs.Schema.loads(text)
    turned = rs.Schema.loads(text.replace("image: image", "image: {kind: image, orientation: upright}"))
    with pytest.raises(rs.RecordError) as caught:
        rs.write(coco(folder, upright), turned, folder / "data", progress=False)
    assert str(caught.value).splitlines()[0] == (
        f"{folder}/images/b.jpg: features.image: expected an image of 30 x 40, as its annotations state, "
        f"got {folder}/images/b.jpg: 40 x 30 (its EXIF orientation is 6: annotations refer to the stored pixels)"
    )
    boxes = {}
    for name, one in (("kept", kept), ("turned", turned)):
        rs.write(coco(folder, stored), one, folder / name, key=None, progress=False)
        first, _ = rs.read(folder / name, one)
        height, width = first["image"].shape[:2]
        unit = [width, height] * 2 if format_ == "rel_xyxy" else [1] * 4
        boxes[name] = (first["boxes"].numpy() * unit).round(3).tolist()
    assert boxes["kept"] == [[10, 3, 30, 9.5], [0, 0, 40, 30]]
    # turned clockwise: x becomes y, and y is counted from the right, of 30
    assert boxes["turned"] == [[20.5, 10, 27, 30], [0, 0, 30, 40]]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda given: given.pop("categories"), "categories: expected a list, got none"),
        (lambda given: given["images"][1].update(id=5), "images[1].id: expected every id once, got 5 again"),
        (lambda given: given["images"][1].pop("width"), "images[1].width: expected a whole number, got none"),
        (lambda given: given["annotations"][1].update(image_id=[3]), "annotations[1].image_id: expected the id of an image, got list [3]"),
        (lambda given: given["annotations"][1].update(category_id=1), "annotations[1].category_id: expected the id of a category, got int 1"),
        (lambda given: given["annotations"][1].update(bbox=[1, 2, 3, "4"]), "annotations[1].bbox: expected [x, y, width, height], got list [1, 2, 3, '4']"),
        (lambda given: given["categories"][1].update(name="cat"), "categories: expected every name once, got `cat` again (`merge_categories: true` of the source makes one class of them)"),
        (lambda given: given["annotations"][1].update(keypoints=[1, 2]), "annotations[1].keypoints: expected [x, y, visibility, ...], got list [1, 2]"),
    ],
)  # fmt: skip
def test_annotations_that_contradict_themselves_are_refused(folder, change, expected):
    with pytest.raises(rs.RecordError) as caught:
        rs.write(coco(folder, change), schema(), folder / "data", progress=False)
    assert str(caught.value).splitlines()[0].startswith(f"{folder}/coco.json: {expected}")


def test_categories_of_one_name_are_merged_and_crowds_left_out(folder):
    def change(given):
        given["categories"] += [{"id": 3, "name": "dog"}]
        given["annotations"][1]["category_id"] = 3

    for crowds, labels in ((True, [1, 1]), (False, [1])):
        source = coco(folder, change, merge_categories=True, crowds=crowds)
        rs.write(source, schema(), folder / "data", key=None, force=True, progress=False)
        assert rs.open(folder / "data", schema())[0]["labels"].tolist() == labels
    assert source.class_names == ("cat", "dog")


def test_keypoints_and_captions_are_columns(folder):
    def change(given):
        given["images"][0]["file_name"] = "b"  # without its suffix
        for annotation in given["annotations"]:
            annotation["keypoints"] = [10, 20, 2, 0, 0, 0]

    points = rs.Schema.loads(
        "schema: s\nfeatures: {image: image, keypoints: {kind: ragged, dtype: float32, shape: [null, 2, 3]}, "
        "num_keypoints: {kind: var_len, dtype: int64}}"
    )
    rs.write(coco(folder, change, columns={}), points, folder / "points", key=None, progress=False)
    first, empty = rs.open(folder / "points", points)
    assert first["keypoints"].tolist() == [[[10, 20, 2], [0, 0, 0]]] * 2
    assert (first["num_keypoints"].tolist(), len(empty["keypoints"])) == ([1, 1], 0)

    def captions(given):
        given["annotations"] = [
            {"id": 1, "image_id": 5, "caption": "A dog."},
            {"id": 2, "image_id": 5, "caption": "Ein Hund."},
        ]
        del given["categories"]

    texts = rs.Schema.loads("schema: s\nfeatures: {image: image, captions: {kind: var_len, dtype: string}}")
    rs.write(coco(folder, captions, columns={}), texts, folder / "texts", key=None, progress=False)
    rows = rs.open(folder / "texts", texts)
    assert [list(row["captions"]) for row in rows] == [[b"A dog.", b"Ein Hund."], []]
    with pytest.raises(rs.SpecError, match="boxes: expected one column `boxes`, got none"):
        rs.write(coco(folder, captions, columns={}), schema(without="area"), folder / "boxes", progress=False)


def test_an_image_is_not_turned_without_its_keypoints(folder):
    (folder / "images/b.png").unlink()
    (folder / "images/b.jpg").write_bytes(turned_photo(3))

    def change(given):
        given["images"][0].update(file_name="b.jpg")
        given["annotations"] = [given["annotations"][0] | {"keypoints": [10, 20, 2]}]

    points = rs.Schema.loads(
        "schema: s\nfeatures: {image: {kind: image, orientation: upright}, "
        "keypoints: {kind: ragged, dtype: float32, shape: [null, 1, 3]}}"
    )
    with pytest.raises(rs.RecordError) as caught:
        rs.write(coco(folder, change, columns={}), points, folder / "data", progress=False)
    assert str(caught.value).splitlines()[0] == (
        f"{folder}/images/b.jpg: features.image: expected an image that is not turned, as its keypoints are not, "
        f"got {folder}/images/b.jpg: EXIF orientation 3 (leave out `orientation: upright`)"
    )


def test_features_take_the_columns_of_their_kinds(folder):
    plain = rs.Schema.loads(
        "schema: s\nfeatures: {photo: {kind: image, shape: [null, null, 3]}, box: {kind: box, format: xyxy}, "
        "what: {kind: label, names: [cat, dog], shape: [null]}}"
    )
    rs.write(coco(folder, columns={}), plain, folder / "data", key=None, progress=False)
    first = next(iter(rs.read(folder / "data", plain)))
    assert first["box"].numpy()[0].tolist() == [10, 3, 30, 9.5]
    assert first["what"].numpy().tolist() == [1, 0]


def test_of_two_labels_the_columns_say_which_has_the_categories(folder):
    plain = rs.Schema.loads(
        "schema: s\nfeatures: {what: {kind: label, names: [cat, dog], shape: [null]}, "
        "crowd: {kind: label, names: [one, many], shape: [null]}}"
    )
    known = {"what": "labels"}
    for columns in ({}, known):
        with pytest.raises(rs.SpecError) as caught:
            rs.write(coco(folder, columns=columns), plain, folder / "data", progress=False)
        assert str(caught.value) == (
            f"{folder}/coco.json: crowd: expected one label for the column `labels`, got `what` and `crowd` "
            "(name the column of each in `columns`)"
        )
    source = coco(folder, columns=known | {"crowd": "iscrowd"})
    rs.write(source, plain, folder / "data", key=None, progress=False)
    first = next(iter(rs.read(folder / "data", plain)))
    assert first["what"].numpy().tolist() == [1, 0]
    assert first["crowd"].numpy().tolist() == [0, 1]


def test_a_feature_of_no_column_is_named(folder):
    with pytest.raises(rs.SpecError) as caught:
        rs.write(coco(folder, columns={}), schema(), folder / "data", progress=False)
    others = "image_id, file_name, width, height, category_id, annotation_id, iscrowd"
    expected = f"{folder}/coco.json: id: expected one column `id`, got none (other columns: {others})"
    assert str(caught.value) == expected


def test_a_config_reads_voc_in_jobs_as_it_reads_coco(folder):
    (folder / "images/b.xml").write_text(VOC)
    empty = VOC.replace("b.png", "sub/a.png")
    (folder / "images/sub/a.xml").write_text(empty[: empty.index("<object>")] + "</annotation>")
    (folder / "s.yaml").write_text(
        schema(without="area").dump().replace("id: int64", "difficult: {kind: var_len, dtype: int64}")
    )
    (folder / "c.yaml").write_text(
        "schema: s.yaml\ndata: data\nwrite:\n  source: {voc: images}\n  shuffle: null\n  key: file_name\n"
    )
    pipeline = rs.Pipeline.load(folder / "c.yaml")
    pipeline.build(jobs=2, progress=False)
    batch = next(iter(rs.read(folder / "data", pipeline.schema, batch=2)))
    np.testing.assert_array_equal(batch["boxes"].to_list()[0], np.float32([[0.1, 0.25, 9.5 / 30, 0.75]]))
    assert batch["labels"].to_list() == [[1], []]
    assert batch["difficult"].to_list() == [[1], []]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '<!DOCTYPE a [<!ENTITY x "y">]><annotation/>',
            "expected XML without a document type, got <!DOCTYPE",
        ),
        ("<annotation>", "expected XML, got no element found: line 1, column 12"),
        ("<annotation><filename>b.png</filename></annotation>", "annotation: expected <size>, got none"),
        (VOC.replace("<xmin>10", "<xmin>ten"), "bndbox.xmin: expected a number, got `ten`"),
        (
            VOC.replace("<xmax>30", "<xmax>50"),
            "features.boxes: expected a box in its image, 40 x 30, got corners [10, 3, 50, 9.5] of "
            "object 0 (`dog`) (`clip: true` of the source clips it)",
        ),
    ],
)
def test_what_is_no_annotation_of_voc_is_refused(folder, text, expected):
    (folder / "images/b.xml").write_text(text)
    source = PascalVoc(annotations="images").open(folder)
    small = schema(without="area")
    small = small.only(["image", "boxes", "labels"])
    with pytest.raises(rs.RecordError) as caught:
        rs.write(source, small, folder / "data", progress=False)
    assert str(caught.value).splitlines()[0] == f"{folder}/images/b.xml: {expected}"
