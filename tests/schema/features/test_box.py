"""Boxes: at the edges, in four lists, and dropped with what belongs to them."""

from __future__ import annotations

import numpy as np
import pytest

import recordspec as rs
from one_feature import schema
from recordspec._tf import tf
from recordspec.integrity.check import check_files
from recordspec.schema.decoder import decode_problems
from recordspec.schema.row_blocks import block_of_records
from recordspec.store.shards import File
from recordspec.wire.framing import framed


def test_boxes_at_the_very_edges_are_taken():
    boxes = [[0, 0, 1, 1], [0.1, 0.2, 0.9, 0.8]]
    centred = [[0.95, 0.5, 0.1, 0.2], [1 / 3, 0.5, 2 / 3, 1.0]]
    for options, value in (("rel_yxyx", boxes), ("rel_center_xywh", centred)):
        given = schema(f"{{kind: box, format: {options}}}")
        found = given.decode(given.encode({"f": value}))["f"].numpy()
        np.testing.assert_array_equal(found, np.array(value, np.float32))


SIDES = [f"image/object/bbox/{side}" for side in ("ymin", "xmin", "ymax", "xmax")]


def sides(*numbers: list[float], without: str = "") -> bytes:
    """A record as the TensorFlow Object Detection API writes it."""
    lists = {
        key: tf.train.Feature(float_list=tf.train.FloatList(value=some))
        for key, some in zip(SIDES, numbers, strict=True)
        if key != without
    }
    return tf.train.Example(features=tf.train.Features(feature=lists)).SerializeToString(deterministic=True)


def test_boxes_in_four_lists_are_those_of_the_object_detection_api(tmp_path):
    given = schema(f"{{kind: box, format: rel_yxyx, keys: {SIDES}}}".replace("'", ""))
    two, none = sides([0, 0.5], [0.25, 0], [1, 0.75], [0.5, 1]), sides([], [], [], [])
    boxes = [[0, 0.25, 1, 0.5], [0.5, 0, 0.75, 1]]
    assert given.encode({"f": boxes}) == two
    assert given.encode({"f": []}) == none
    lacking = tf.train.Example().SerializeToString(deterministic=True)
    decoded = given.decode([two, none, lacking])["f"]
    assert decoded.to_list() == [boxes, [], []]
    assert decoded.shape.as_list() == [3, None, 4]
    assert given.decode(two)["f"].numpy().tolist() == boxes
    with pytest.raises(rs.RecordError, match=r"item 1 \(is the format right\?\)"):
        given.encode({"f": [boxes[0], [1, 0, 0, 1]]})
    rs.write([{"f": boxes}, {"f": []}], given, tmp_path / "data", key=None, progress=False)
    for feature in ("{kind: box, format: rel_yxyx}", f"{{kind: box, format: rel_yxyx, keys: {SIDES[::-1]}}}"):
        with pytest.raises(rs.StoreError, match=r"features\.f\.key"):
            rs.read(tmp_path / "data", schema(feature.replace("'", "")), batch=2)
    assert "keys" not in schema("{kind: box, format: rel_yxyx}").names["f"].stored_options()


@pytest.mark.parametrize("without", ["", SIDES[3]])
def test_four_lists_of_different_lengths_are_never_cut(without, tmp_path):
    given = schema(f"{{kind: box, format: rel_yxyx, keys: {SIDES}}}".replace("'", ""))
    bad = sides([0, 0.5], [0.25, 0], [1, 0.75], [0.5], without=without)
    expected = f"expected 2 items under `{SIDES[3]}`, as under `{SIDES[0]}`, got {0 if without else 1}"
    assert list(map(str, decode_problems(given, bad, in_blocks=False))) == [f"features.f: {expected}"]
    for records in (bad, [bad]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected as many numbers under each key"):
            given.decode(records)
    with pytest.raises(rs.RecordError, match=f"as under `{SIDES[0]}`"):
        block_of_records(given, [bad])
    crossed = sides([0, 0.5], [0.25, 0], [1, 0.25], [0.5, 1])  # ymax below ymin, which TensorFlow reads
    path = tmp_path / "x"
    path.write_bytes(framed(crossed) + framed(bad))
    report = check_files([File(path=path)], given)
    assert {str(one.problem).partition("features.f: ")[2] for one in report.examples} == {
        "expected a box rel_yxyx with an area, got [0.5, 0, 0.25, 1] at item 1 (is the format right?)",
        expected,
    }


@pytest.mark.parametrize("aspect", ["stretch", "crop", "pad"])
def test_boxes_of_which_nothing_is_cut_are_whole(aspect):
    """In float32, 49 * (224 / 49) is more than 224."""
    resize = f"resize: {{size: [224, 224], aspect: {aspect}}}"
    given = rs.Schema.loads(
        f"schema: s\nfeatures:\n  image: {{kind: image, shape: [null, null, 1], {resize}}}\n"
        "  box: {kind: box, format: xyxy, drop: {with: [], below: 1}}\n"
    )
    boxes = [[10, 10, 49, 49], [0, 0, 49, 49], [0, 0, 10, 10]]
    record = given.encode({"image": np.zeros((49, 49, 1), np.uint8), "box": boxes})
    assert given.decode(record)["box"].shape == (3, 4)


def test_words_of_a_box_are_dropped_with_it():
    """In one record, where they are ragged, and in a batch."""
    given = rs.Schema.loads(
        "schema: s\nfeatures:\n  image: {kind: image, resize: {size: [4, 4], aspect: crop}}\n"
        "  box: {kind: box, format: xyxy, drop: {with: [words]}}\n"
        "  words: {kind: ragged, dtype: int64, shape: [null, null]}\n"
    )
    row = {
        "image": np.zeros((4, 8, 3), np.uint8),
        "box": [[0, 0, 1, 1], [3, 0, 5, 2]],
        "words": [[1], [2, 3]],
    }
    record = given.encode(row)
    assert given.decode(record)["words"].to_list() == [[2, 3]]
    assert given.decode([record])["words"].to_list() == [[[2, 3]]]
