"""Boxes over their image: corners in pixels or parts of it, for every format, with the classes beside them."""

from __future__ import annotations

import numpy as np
import pytest

import recordspec as rs
from media import image_bytes, photo
from recordspec.viewer.selection import Choice
from recordspec.viewer.viewed_files import ViewedFiles

# left 4, top 3, right 20, bottom 12 in an image of 40 x 30, and a second box
FORMATS = {
    "xyxy": [[4, 3, 20, 12], [0, 0, 40, 30]],
    "yxyx": [[3, 4, 12, 20], [0, 0, 30, 40]],
    "xywh": [[4, 3, 16, 9], [0, 0, 40, 30]],
    "center_xywh": [[12, 7.5, 16, 9], [20, 15, 40, 30]],
    "rel_xyxy": [[0.1, 0.1, 0.5, 0.4], [0, 0, 1, 1]],
}


@pytest.mark.parametrize("format_", FORMATS)
def test_boxes_have_their_corners_and_names(tmp_path, format_):
    schema = rs.Schema.loads(
        f"""
schema: s
features:
  picture: {{kind: image, shape: [30, 40, 3], encoding: png}}
  boxes: {{kind: box, format: {format_}}}
  names: {{kind: label, names: [cat, dog], shape: [null]}}
"""
    )
    rows = [
        {"picture": photo(), "boxes": FORMATS[format_], "names": [1, 0]},
        {"picture": photo(), "boxes": [], "names": [1]},
    ]
    rs.write(rows, schema, tmp_path / "d", shuffle=None)
    viewed = ViewedFiles(tmp_path / "d")
    described = {column["name"]: column for column in viewed.described()["columns"]}
    assert described["boxes"]["boxes"] == "picture"
    assert "boxes" not in described["names"]
    first, second = (row["cells"][1] for row in viewed.page(None, Choice(), 0, 2)["rows"])
    is_relative = format_.startswith("rel_")
    assert (first["is"], first["relative"], first["names"]) == ("boxes", is_relative, ["dog", "cat"])
    unit = [40, 30, 40, 30] if is_relative else [1] * 4
    expected = [[4, 3, 20, 12], [0, 0, 40, 30]]
    assert np.allclose(np.array(first["corners"]) * unit, expected, atol=1e-5)
    assert second == {"is": "boxes", "corners": [], "relative": is_relative}


def test_boxes_of_two_images_belong_to_the_one_that_they_name(tmp_path):
    schema = rs.Schema.loads(
        """
schema: s
features:
  front: {kind: image, shape: [30, 40, 3], encoding: png}
  back: {kind: image, shape: [30, 40, 3], encoding: png}
  boxes: {kind: box, format: xyxy, image: back}
"""
    )
    picture = image_bytes(photo(), "png")
    rs.write([{"front": picture, "back": picture, "boxes": [[1, 2, 3, 4]]}], schema, tmp_path / "d")
    described = ViewedFiles(tmp_path / "d").described()["columns"]
    assert [column.get("boxes") for column in described] == [None, None, "back"]
