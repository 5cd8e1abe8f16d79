"""Shapes of LabelMe and CVAT become the smallest boxes around them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import recordspec as rs
from recordspec.writing.sources.cvat import Cvat
from recordspec.writing.sources.labelme import LabelMe

SCHEMA = rs.Schema.loads("""
schema: shapes
features:
  image: {kind: image, shape: [null, null, 3]}
  boxes: {kind: box, format: xyxy}
  labels: {kind: label, names: [a, b], shape: [null]}
  shape: {kind: var_len, dtype: string}
""")
SHAPES = [
    {"label": "a", "points": [[1, 2], [30, 2], [9, 19.5]], "shape_type": "polygon"},
    {"label": "b", "points": [[20, 10], [23, 14]], "shape_type": "circle"},
    {"label": "a", "points": [[3, 3]], "shape_type": "point"},
    {"label": "b", "points": [[2, 3], [8, 9]], "shape_type": "mask", "mask": "iVBORw0KGgo="},
]
CVAT = """<?xml version="1.0" encoding="utf-8"?>
<annotations><version>1.1</version><meta><task><labels><label><name>a</name></label></labels></task></meta>
<image id="7" name="p.png" width="40" height="20" subset="train">
 <polygon label="a" points="1.00,2.00;30.00,2.00;9.00,19.50" occluded="1" source="manual" z_order="0"></polygon>
 <ellipse label="b" cx="20" cy="10" rx="5" ry="4" rotation="90" occluded="0" z_order="0"></ellipse>
 <box label="a" xtl="10" ytl="8" xbr="20" ybr="12" rotation="90.0" occluded="0" z_order="0"></box>
 <mask label="b" rle="1, 2" left="2" top="3" width="6" height="6" occluded="0" z_order="0"></mask>
 <points label="a" points="3.0,3.0" occluded="0" z_order="0"></points>
 <tag label="a" source="manual"></tag>
</image></annotations>"""


def built(source, folder: Path) -> dict:
    rs.write(source, SCHEMA, folder / "data", key=None, force=True, progress=False)
    (row,) = rs.open(folder / "data", SCHEMA)
    return row


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "images/train").mkdir(parents=True)
    Image.new("RGB", (40, 20)).save(tmp_path / "images/train/p.png")
    return tmp_path


def labelme(folder: Path, **changes) -> LabelMe:
    document = {"version": "5.5.0", "flags": {}, "shapes": SHAPES, "imagePath": "..\\images\\train\\p.png"}
    document |= {"imageData": None, "imageHeight": 20, "imageWidth": 40} | changes
    (folder / "drawn").mkdir(exist_ok=True)
    (folder / "drawn/other.json").write_text(json.dumps(document))
    return LabelMe(annotations="drawn", images="images").open(folder)


def test_shapes_of_labelme(folder):
    row = built(labelme(folder), folder)
    np.testing.assert_allclose(row["boxes"], [[1, 2, 30, 19.5], [15, 5, 25, 15], [2, 3, 8, 9]])
    assert (row["labels"].tolist(), list(row["shape"])) == ([0, 1, 1], [b"polygon", b"circle", b"mask"])
    assert [image.left_out for image in labelme(folder).annotated] == [("point",)]
    # versions before 4 do not state the size
    assert len(built(labelme(folder, imageHeight=None, imageWidth=None), folder)["boxes"]) == 3


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"shapes": None}, "shapes: expected a list, got none"),
        ({"shapes": [SHAPES[0] | {"shape_type": "cuboid"}]}, "shapes[0].shape_type: expected one of rectangle, polygon, circle, "
         "mask, oriented_rectangle, point, points, line, linestrip, got str 'cuboid'"),
        ({"shapes": [SHAPES[0] | {"points": [[1, "2"]]}]}, "shapes[0].points: expected [[x, y], ...], got list [[1, '2']]"),
        ({"imageWidth": 41}, "features.image: expected an image of 41 x 20, as its annotations state, got "
         "{folder}/images/train/p.png: 40 x 20"),
        ({"imagePath": "q.png"}, "imagePath: expected the path of an image in {folder}/images, got str 'q.png'"),
    ],
)  # fmt: skip
def test_what_is_no_annotation_of_labelme_is_refused(folder, change, expected):
    with pytest.raises(rs.RecordError) as caught:
        built(labelme(folder, **change), folder)
    line = str(caught.value).splitlines()[0]
    assert line == f"{folder}/drawn/other.json: {expected.format(folder=folder)}"


@pytest.mark.parametrize("name", ["http://127.0.0.1:1/p.png", "../annotations.xml"])
def test_an_image_elsewhere_is_not_opened(folder, name, monkeypatch):
    opened = []
    monkeypatch.setattr("recordspec.schema.media.images.header_of", opened.append)
    (folder / "annotations.xml").write_text(CVAT.replace("p.png", name))
    with pytest.raises(rs.RecordError) as caught:
        built(Cvat(annotations="annotations.xml", images="images").open(folder), folder)
    assert f"features.image: expected a path in {folder}/images, got `{name}`" in str(caught.value)
    assert opened == []


def test_shapes_of_cvat(folder):
    (folder / "annotations.xml").write_text(CVAT)
    source = Cvat(annotations="annotations.xml", images="images").open(folder)
    row = built(source, folder)
    expected = [[1, 2, 30, 19.5], [16, 5, 24, 15], [13, 5, 17, 15], [2, 3, 8, 9]]
    np.testing.assert_allclose(row["boxes"], expected, atol=1e-5)
    assert (row["labels"].tolist(), source.class_names) == ([0, 1, 0, 1], ("a", "b"))
    assert source.annotated[0].left_out == ("points", "tag")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<annotations><track/></annotations>", "expected images of CVAT, got tracks of a video (export the task as `CVAT for images`)"),
        (CVAT.replace('cx="20"', 'cx="x"'), "ellipse.cx: expected a number, got `x`"),
        (CVAT.replace("9.00,19.50", "9.00"), "polygon.points: expected x,y;x,y;..., got `1.00,2.00;30.00,2.00;9.00`"),
        ("<!DOCTYPE a><annotations/>", "expected XML without a document type, got <!DOCTYPE"),
    ],
)  # fmt: skip
def test_what_is_no_annotation_of_cvat_is_refused(folder, text, expected):
    (folder / "annotations.xml").write_text(text)
    with pytest.raises(rs.RecordError) as caught:
        built(Cvat(annotations="annotations.xml", images="images").open(folder), folder)
    assert str(caught.value) == f"{folder}/annotations.xml: {expected}"
