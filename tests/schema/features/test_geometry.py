"""Boxes and their image are one geometry: rectangles are drawn into images, and found again where boxes say."""

from __future__ import annotations

import io
from functools import partial
from itertools import product
from typing import get_args

import numpy as np
import pyarrow.parquet
import pytest
from PIL import Image

import recordspec as rs
from recordspec._tf import tf
from recordspec.schema.features.box import BoxFormat, Drop
from recordspec.schema.row_blocks import block_of_records
from recordspec.schema.validate import violations
from recordspec.tables.export import export
from recordspec.wire.arrays import data_of
from recordspec.wire.proto import parse_example
from recordspec.wire.record_batch import decode

FORMATS = get_args(BoxFormat)
SIZES = ([40, 64], [90, 50], [61, 61])
# Of each image the height and width, and rectangles that are drawn into it: left, top, right, bottom. At least
# one of them leaves the image when its centre is kept.
DRAWN = [
    ((60, 100), [(2, 4, 30, 25), (40, 10, 70, 50), (90, 30, 98, 58)]),
    ((100, 60), [(5, 2, 50, 12), (20, 30, 40, 80), (1, 70, 18, 99)]),
    ((80, 80), [(0, 0, 25, 30), (30, 35, 60, 60), (65, 66, 80, 80)]),
]
ORIENTATION = 0x0112  # the EXIF tag
BOX = "{kind: box, format: xyxy}"
SMALL = "{kind: image, resize: [4, 4]}"
UPRIGHT = "{kind: image, orientation: upright}"
CROPPED = ", orientation: upright, resize: {size: [40, 64], aspect: crop}"


def drawn(place: int, orientation: int, format_: str = "png") -> tuple[bytes, np.ndarray]:
    """A file with a red, a green and a blue rectangle, and their corners in its pixels."""
    (height, width), corners = DRAWN[place % len(DRAWN)]
    pixels = np.zeros((height, width, 3), np.uint8)
    for colour, (left, top, right, bottom) in enumerate(corners):
        pixels[top:bottom, left:right, colour] = 255
    stream, exif = io.BytesIO(), Image.Exif()
    exif[ORIENTATION] = orientation
    Image.fromarray(pixels).save(stream, format_, exif=exif)
    return stream.getvalue(), np.array(corners, np.float64)


def found(pixels: np.ndarray) -> np.ndarray:
    """The corners of the rectangles in decoded pixels, by their colours; NaN for one that is not there."""
    corners = np.full((3, 4), np.nan)
    for colour in range(3):
        rows, columns = np.nonzero(pixels[:, :, colour] > 127)
        if len(rows):
            corners[colour] = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
    return corners


def of_corners(format_: str, corners: np.ndarray, height: int, width: int) -> list[list[float]]:
    """Boxes of a format, number by number."""
    boxes = []
    for left, top, right, bottom in corners.tolist():
        if format_.startswith("rel_"):
            left, top, right, bottom = left / width, top / height, right / width, bottom / height
        boxes.append(
            {
                "xyxy": [left, top, right, bottom],
                "yxyx": [top, left, bottom, right],
                "xywh": [left, top, right - left, bottom - top],
                "center_xywh": [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top],
            }[format_.removeprefix("rel_")]
        )
    return boxes


def to_corners(format_: str, boxes: np.ndarray, height: int, width: int) -> np.ndarray:
    corners = []
    for a, b, c, d in boxes.tolist():
        left, top, right, bottom = {
            "xyxy": (a, b, c, d),
            "yxyx": (b, a, d, c),
            "xywh": (a, b, a + c, b + d),
            "center_xywh": (a - c / 2, b - d / 2, a + c / 2, b + d / 2),
        }[format_.removeprefix("rel_")]
        scale = (width, height) if format_.startswith("rel_") else (1, 1)
        corners.append([left * scale[0], top * scale[1], right * scale[0], bottom * scale[1]])
    return np.array(corners)


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    """Intersection over union."""
    sides = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    common = np.prod(np.maximum(sides, 0))
    areas = [np.prod(box[2:] - box[:2]) for box in (one, other)]
    return float(common / (sum(areas) - common))


def check_boxes(format_: str, pixels: np.ndarray, boxes: np.ndarray) -> list[float]:
    """Compares boxes with rectangles in the pixels. Their edges are found to half a pixel."""
    corners = to_corners(format_, boxes, *pixels.shape[:2])
    overlaps = []
    for box, rectangle in zip(corners, found(pixels), strict=True):
        if np.isnan(rectangle).any():
            assert box.tolist() == [0, 0, 0, 0] or (box[2:] - box[:2]).min() <= 0.5
        else:
            assert np.abs(box - rectangle).max() <= 0.75, (format_, box, rectangle)
            overlaps.append(overlap(box, rectangle))
    return overlaps


def schema(options: str, *, formats=FORMATS, more: str = "") -> rs.Schema:
    boxes = "".join(f"  {one}: {{kind: box, format: {one}}}\n" for one in formats)
    return rs.Schema.loads(f"schema: s\nfeatures:\n  photo: {{kind: image{options}}}\n{boxes}{more}")


def rows_of(formats=FORMATS, orientations=range(1, 9), files=("png",)) -> list[dict]:
    rows = []
    for place, (orientation, file) in enumerate(product(orientations, files)):
        data, corners = drawn(place, orientation, file)
        sides = DRAWN[place % len(DRAWN)][0]
        rows.append({"photo": data} | {one: of_corners(one, corners, *sides) for one in formats})
    return rows


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("aspect", "size", "orientation"),
    [*product(("stretch", "crop", "pad"), SIZES, ("keep", "upright"))],
)
def test_boxes_follow_their_image(aspect, size, orientation):
    given = schema(f", orientation: {orientation}, resize: {{size: {size}, aspect: {aspect}}}")
    rows = rows_of(files=("png", "tiff"))
    records = given.encode_batch({name: [row[name] for row in rows] for name in rows[0]}, len(rows))
    decoded = given.decode(records)
    overlaps = [
        overlap
        for row, pixels in enumerate(decoded["photo"].numpy())
        for one in FORMATS
        for overlap in check_boxes(one, pixels, decoded[one][row].numpy())
    ]
    assert np.mean(overlaps) > 0.9


@pytest.mark.tensorflow
def test_boxes_follow_an_image_that_is_turned_alone():
    given, rows = schema(", orientation: upright"), rows_of()
    for row in rows:
        decoded = given.decode(given.encode(row))
        overlaps = [check_boxes(one, decoded["photo"].numpy(), decoded[one].numpy()) for one in FORMATS]
        assert np.min(overlaps) > 0.999
    same = schema("")
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    upright = [row for row in rows if rows.index(row) == 0]
    assert [given.encode(row) for row in upright] == [same.encode(row) for row in upright]
    assert given.encode_batch(columns, len(rows)) == [given.encode(row) for row in rows]


@pytest.mark.parametrize("orientation", range(2, 9))
def test_a_tiff_is_stored_as_in_its_file(orientation):
    """Pillow turns a TIFF upright when it is loaded: a PIL image has those pixels."""
    data, _ = drawn(0, orientation, "tiff")
    pixels = encoded_pixels("keep", drawn(0, 1, "tiff")[0])
    assert pixels.shape == (60, 100, 3)
    np.testing.assert_array_equal(encoded_pixels("keep", data), pixels)
    upright = encoded_pixels("upright", drawn(0, orientation)[0])
    for given in (data, Image.open(io.BytesIO(data))):
        np.testing.assert_array_equal(encoded_pixels("upright", given), upright)
    np.testing.assert_array_equal(encoded_pixels("keep", Image.open(io.BytesIO(data))), upright)
    with pytest.raises(rs.RecordError) as caught:
        encoded_pixels("error", data)
    assert str(caught.value) == (
        f"row 0: features.photo: expected an upright image, got EXIF orientation {orientation} "
        "(`orientation: upright` turns it, `keep` leaves it)"
    )


def encoded_pixels(orientation: str, value: object) -> np.ndarray:
    """The pixels of the PNG that is stored."""
    given = schema(f", orientation: {orientation}", formats=[])
    (data,) = parse_example(given.encode({"photo": value}))["photo"]
    return np.asarray(Image.open(io.BytesIO(data)))


def test_an_invalid_box_in_an_image_that_is_turned_is_refused_as_it_was_given():
    given = schema(", orientation: upright", formats=["xyxy"])
    row = {"photo": drawn(0, 6)[0], "xyxy": [[2, 4, 30, 25], [30, 4, 2, 25]]}
    with pytest.raises(rs.RecordError) as caught:
        given.encode(row)
    assert str(caught.value) == (
        "row 0: features.xyxy: expected a box xyxy with an area, got [30, 4, 2, 25] at item 1 "
        "(is the format right?)"
    )


@pytest.mark.tensorflow
def test_every_way_to_read_boxes_gives_the_same(tmp_path):
    """Records one by one, in batches and in blocks, with the image and without, previewed, and served."""
    given = schema(CROPPED, formats=["xywh", "rel_yxyx"])
    rows = rows_of(["xywh", "rel_yxyx"])
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    expected = given.decode(given.encode_batch(columns, len(rows)))
    one_by_one = [given.decode(given.encode(row)) for row in rows]
    given.dump(tmp_path / "schema.yaml")
    (tmp_path / "config.yaml").write_text(
        "schema: schema.yaml\ndata: data\nwrite: {splits: {train: 1}, layout: {blocks: 3}}\n"
        "read: {batch: 8}\nfit: {inputs: [photo, xywh]}\n"
    )
    pipeline = rs.Pipeline.load(tmp_path / "config.yaml")
    pipeline.build(rows, progress=False)
    rs.write(rows, given, tmp_path / "rows", key=None, progress=False)
    (batch,) = rs.read(tmp_path / "rows", given, batch=8)
    (alone,) = rs.read(tmp_path / "rows", given, batch=8, features=["rel_yxyx"])
    (block,) = pipeline.dataset("train")
    preview = pipeline.preview("train")
    pipeline.export_model(lambda inputs: inputs["xywh"], tmp_path / "served")
    records = [given.encode(row) for row in rows]
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["examples"](tf.constant(records))
    for row in range(len(rows)):
        for name in ("xywh", "rel_yxyx"):
            np.testing.assert_array_equal(one_by_one[row][name], expected[name][row])
            np.testing.assert_array_equal(batch[name][row], expected[name][row])
        np.testing.assert_array_equal(alone["rel_yxyx"][row], expected["rel_yxyx"][row])
        np.testing.assert_array_equal(block["xywh"][row], expected["xywh"][row])
        np.testing.assert_array_equal(preview["xywh"][row], expected["xywh"][row])
        np.testing.assert_array_equal(served["outputs"][row], expected["xywh"][row])
    assert list(alone) == ["rel_yxyx"]


def row_of_steps(steps: int, in_steps: bool) -> dict:
    """Boxes of steps, in an image of each step or in one of the record."""
    made = [drawn(place if in_steps else 0, 6) for place in range(steps)]
    photo = [data for data, _ in made] if in_steps else drawn(0, 6)[0]
    return {"photo": photo, "boxes": [corners.tolist() for _, corners in made]}


@pytest.mark.tensorflow
@pytest.mark.parametrize("in_steps", [True, False], ids=["an image a step", "one image"])
def test_boxes_of_steps_follow_the_image_of_their_step(in_steps):
    image = "{kind: image, orientation: upright, resize: {size: [40, 64], aspect: pad}}"
    sections = f"sequence:\n  photo: {image}\n" if in_steps else f"context:\n  photo: {image}\nsequence:\n"
    given = rs.Schema.loads(f"schema: s\nrecord: sequence_example\n{sections}  boxes: {BOX}\n")
    records = [given.encode(row_of_steps(steps, in_steps)) for steps in (2, 0, 3)]
    batch = tf.function(given.decode)(tf.constant(records))
    for row, record in enumerate(records):
        alone = given.decode(record)
        for step, boxes in enumerate(alone["boxes"]):
            pixels = (alone["photo"][step] if in_steps else alone["photo"]).numpy()
            np.testing.assert_array_equal(batch["boxes"][row][step], boxes)
            assert np.mean(check_boxes("xyxy", pixels, boxes.numpy())) > 0.9
    assert batch["boxes"].row_lengths().numpy().tolist() == [2, 0, 3]
    if in_steps:
        row = row_of_steps(3, True) | {"boxes": []}
        kept = rs.Schema.loads(given.dump().replace("orientation: upright", "orientation: keep"))
        for one in (given, kept):
            with pytest.raises(rs.RecordError) as caught:
                one.encode(row)
            assert str(caught.value) == "row 0: sequence.boxes: expected 3 steps, as `photo` has, got 0"
        unchecked = rs.Schema.loads(
            f"schema: s\nrecord: sequence_example\n{sections}"
            "  boxes: {kind: ragged, dtype: float32, shape: [null, 4]}\n"
        )
        bad = unchecked.encode(row)
        assert problems(given, [records[0], bad]) == [
            "sequence.boxes: expected 3 steps, as `photo` has, got 0"
        ]
        for serialized in (bad, [bad]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="as many steps of coordinates as of"):
                given.decode(serialized)


@pytest.mark.tensorflow
def test_boxes_in_a_video_follow_its_frames():
    given = rs.Schema.loads(
        "schema: s\nfeatures:\n  boxes: {kind: box, format: xywh}\n"
        "  clip: {kind: video, encoding: png, resize: {size: [50, 40], aspect: crop}}\n"
    )
    rows = []
    for place in range(3):
        data, corners = drawn(place, 1)
        sides = Image.open(io.BytesIO(data)).size[::-1]
        rows.append({"clip": [data] * (place + 1), "boxes": of_corners("xywh", corners, *sides)})
    batch = tf.function(given.decode)(tf.constant([given.encode(row) for row in rows]))
    for place, row in enumerate(rows):
        alone = given.decode(given.encode(row))
        np.testing.assert_array_equal(alone["boxes"], batch["boxes"][place])
        assert np.mean(check_boxes("xywh", alone["clip"].numpy()[-1], alone["boxes"].numpy())) > 0.9


def problems(given: rs.Schema, records: list[bytes]) -> list[str]:
    """What `check` says of records."""
    data, places = data_of(records)
    decoded = decode(data, places[:-1], places[1:], sequence=given.record == "sequence_example")
    return [str(one.problem(place)) for one in violations(given, decoded) for place in range(len(one.rows))]


def lint(text: str) -> list[str]:
    with pytest.raises(rs.SpecError) as caught:
        rs.Schema.loads(text, source="s.yaml")
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (
            f"  a: {SMALL}\n  b: image\n  box: {BOX}",
            "s.yaml:5:8: features.box.image: expected one of a, b, got none "
            "(`a` is resized, and its coordinates must follow)",
        ),
        (
            f"  a: image\n  b: {UPRIGHT}\n  box: {BOX}",
            "s.yaml:5:8: features.box.image: expected one of a, b, got none "
            "(`b` is turned upright, and its coordinates must follow)",
        ),
        (
            "  photo: image\n  box: {kind: box, format: xyxy, image: foto}",
            "s.yaml:4:41: features.box.image: expected photo, got `foto` (did you mean `photo`?)",
        ),
        (
            "  name: text\n  box: {kind: box, format: xyxy, image: name}",
            "s.yaml:4:41: features.box.image: expected a record with an image, got `name`, a text",
        ),
    ],
)
def test_coordinates_that_cannot_follow_an_image_are_refused(features, expected):
    assert lint(f"schema: s\nfeatures:\n{features}\n") == [expected]


def test_boxes_of_a_record_cannot_follow_the_images_of_its_steps():
    text = f"schema: s\nrecord: sequence_example\ncontext:\n  box: {BOX}\nsequence:\n  photo: {SMALL}\n"
    assert lint(text) == [
        "s.yaml:4:8: context.box.image: expected a record with an image, got none "
        "(`photo` is resized, and its coordinates must follow)"
    ]
    assert lint(text.replace("xyxy", "xyxy, image: photo")) == [
        "s.yaml:4:41: context.box.image: expected a record with an image, got `photo`, which each step has"
    ]


def test_boxes_of_several_images_that_nothing_changes_need_no_image():
    schema_of = rs.Schema.loads(f"schema: s\nfeatures:\n  a: image\n  b: image\n  box: {BOX}")
    assert schema_of._images == {}
    named = rs.Schema.loads(schema_of.dump().replace("box, format", "box, image: b, format"))
    assert named._images == {"box": named.names["b"]}
    assert rs.Schema.loads(named.dump()) == named
    assert named.fingerprint == schema_of.fingerprint
    assert named.only(["box"]).outputs == ("b", "box")
    assert named.without("b").outputs == ("a", "b", "box")
    assert named.without("box").outputs == ("a", "b")
    assert schema_of.only(["box"]).outputs == ("box",)


def test_an_exported_table_has_boxes_of_its_images(tmp_path):
    """As they are stored: turned upright, and not resized."""
    given, rows = schema(CROPPED, formats=["rel_center_xywh"]), rows_of(["rel_center_xywh"])
    rs.write(rows, given, tmp_path / "data", key=None, progress=False)
    export((str(tmp_path / "data"),), tmp_path / "table.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "table.parquet").to_pylist()
    assert len(table) == len(rows)
    for row in table:
        with Image.open(io.BytesIO(row["photo"])) as image:
            assert image.getexif().get(ORIENTATION, 1) == 1
            boxes = np.reshape(row["rel_center_xywh"], (-1, 4))
            assert np.min(check_boxes("rel_center_xywh", np.asarray(image), boxes)) > 0.999


def encode_rows(given: rs.Schema, row: dict) -> None:
    """Encodes a row as the first of a batch."""
    given.encode_batch({name: [value, value] for name, value in row.items()}, 2)


@pytest.mark.tensorflow
def test_boxes_of_steps_are_dropped_with_their_labels():
    text = (
        "schema: s\nrecord: sequence_example\nsequence:\n"
        "  photo: {kind: image, resize: {size: [40, 40], aspect: crop}}\n"
        "  boxes: {kind: box, format: xyxy, drop: {with: [labels]}}\n"
        "  labels: {kind: label, names: [a, b], shape: [null]}\n"
    )
    given = rs.Schema.loads(text)
    unchecked = rs.Schema.loads(text.replace(", drop: {with: [labels]}", ""))
    photo = np.zeros((40, 100, 3), np.uint8)
    row = {"photo": [photo] * 2, "boxes": [[[0, 0, 9, 9], [40, 0, 50, 9]], [[0, 0, 99, 9]]]}
    record = given.encode(row | {"labels": [["a", "b"], ["a"]]})
    assert given.decode(record)["labels"].to_list() == [[1], [0]]
    assert problems(given, [record]) == []
    for labels, message in (
        ([["a", "b"]], "expected 2 steps, as `boxes` has, got 1"),
        ([["a", "b"], []], "expected 1 item, as `boxes` has, got 0"),
    ):
        with pytest.raises(rs.RecordError) as caught:
            given.encode(row | {"labels": labels})
        assert str(caught.value) == f"row 0: sequence.labels: {message}"
        bad = unchecked.encode(row | {"labels": labels})
        assert problems(given, [record, bad]) == [f"sequence.labels: {message}"]


DROPPING = """
schema: s
features:
  photo: {kind: image, resize: {size: [40, 40], aspect: crop}}
  boxes: {kind: box, format: FORMAT, drop: {with: [labels, area], below: 0.25}}
  labels: {kind: label, names: [a, b, c, d], shape: [null]}
  area: {kind: var_len, dtype: float32}
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize("format_", ["xyxy", "rel_center_xywh"])
def test_boxes_are_dropped_with_their_labels(format_):
    """Of 100 columns, `crop` keeps those from 30 to 70."""
    given = rs.Schema.loads(DROPPING.replace("FORMAT", format_))
    corners = np.array([[0, 0, 31, 40], [32, 0, 50, 40], [60, 0, 95, 40], [71, 0, 100, 40], [20, 0, 80, 40]])
    rows = [
        {
            "photo": np.zeros((40, 100, 3), np.uint8),
            "boxes": of_corners(format_, corners[:count], 40, 100) if count else [],
            "labels": ["a", "b", "c", "d", "a"][:count],
            "area": list(range(count)),
        }
        for count in (5, 0, 1)
    ]
    records = [given.encode(row) for row in rows]
    batch = tf.function(given.decode)(tf.constant(records))
    assert batch["area"].to_list() == [[1, 2, 4], [], []]  # of the others, a thirtieth is left, and nothing
    assert batch["labels"].to_list() == [[1, 2, 0], [], []]
    left = to_corners(format_, batch["boxes"][0].numpy(), 40, 40)
    np.testing.assert_allclose(left, [[2, 0, 20, 40], [30, 0, 40, 40], [0, 0, 40, 40]], atol=1e-4)
    alone = given.decode(records[0])
    assert alone["area"].numpy().tolist() == [1, 2, 4]
    np.testing.assert_allclose(alone["boxes"], batch["boxes"][0], atol=1e-6)
    assert given.only(["labels"]).outputs == ("photo", "boxes", "labels")
    assert given.only(["labels"]).decode(records)["labels"].to_list() == [[1, 2, 0], [], []]
    # boxes depend on their image, but not on their labels
    request = given.without("labels", "area")
    assert request.outputs == given.only(["boxes"]).outputs == ("photo", "boxes")
    assert request.names["boxes"].drop == Drop(with_=(), below=0.25)
    assert request.decode(records)["boxes"].to_list() == batch["boxes"].to_list()
    assert given.without("boxes", "labels", "area").outputs == ("photo",)
    unchecked = rs.Schema.loads(DROPPING.replace("FORMAT", format_).replace("labels, area", "labels"))
    bad = unchecked.encode(rows[0] | {"area": [1.0]})
    message = "features.area: expected 5 items, as `boxes` has, got 1"
    assert problems(given, [*records, bad]) == [message]
    for encode in (given.encode, partial(encode_rows, given)):
        with pytest.raises(rs.RecordError) as caught:
            encode(rows[0] | {"area": [1.0]})
        assert str(caught.value) == f"row 0: {message}"
    with pytest.raises(rs.RecordError) as caught:
        block_of_records(given, [*records, bad])
    assert str(caught.value) == message
    for serialized in (bad, [bad]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected an item for each box of `drop`"):
            given.decode(serialized)


def test_features_that_cannot_lose_items_are_refused():
    text = "schema: s\nfeatures:\n  photo: image\n  tags: {kind: var_len, dtype: int64}\n  n: int64\n"
    text += "  box: {kind: box, format: xyxy, drop: {with: [n, tag], below: 2}}\n"
    assert lint(text) == ["s.yaml:6:64: features.box.drop.below: expected 0 to 1, got 2"]
    assert lint(text.replace("below: 2", "below: 1")) == [
        "s.yaml:6:48: features.box.drop.with[0]: expected tags, got `n`",
        "s.yaml:6:51: features.box.drop.with[1]: expected tags, got `tag` (did you mean `tags`?)",
    ]
    twice = text.replace("n, tag", "tags").replace("below: 2", "below: 1")
    twice += "  more: {kind: box, format: xyxy, drop: {with: [tags]}}\n"
    assert lint(twice) == [
        "s.yaml:6:48: features.box.drop.with[0]: expected a feature that only these boxes drop, got `tags`, which `more` has",
        "s.yaml:7:49: features.more.drop.with[0]: expected a feature that only these boxes drop, got `tags`, which `box` has",
    ]
    nested = text.replace("n, tag", "more").replace("below: 2", "below: 1")
    assert lint(nested + "  more: {kind: box, format: xyxy, drop: {with: []}}\n") == [
        "s.yaml:6:48: features.box.drop.with[0]: expected a feature without `drop`, got `more`, which has its own"
    ]
    assert lint(text.replace("with: [n, tag], ", "")) == [
        "s.yaml:6:40: features.box.drop: expected the key `with`, got none"
    ]
