"""Videos: frames come back as they were, also where there are none."""

from __future__ import annotations

import numpy as np
import pytest

import recordspec as rs
from media import image_bytes, photo
from one_feature import schema
from recordspec._tf import tf
from recordspec.errors import show_shape
from recordspec.schema.row_blocks import block_of_records


@pytest.mark.parametrize("encoding", ["jpeg", "png", "bmp", "webp", "raw"])
@pytest.mark.parametrize("resize", ["", ", resize: [4, 5]"])
def test_a_video_without_frames_is_a_value(encoding, resize):
    shape = [2, 3] if encoding == "raw" else [None, None]
    given = schema(
        f"{{kind: video, encoding: {encoding}, shape: [null, {show_shape(shape)[1:-1]}, 3]{resize}}}"
    )
    pixels = np.zeros([2, 2, 3, 3], np.uint8)
    sides = [4, 5] if resize else shape if encoding == "raw" else [0, 0]
    records = [given.encode({"f": value}) for value in ([], pixels, np.zeros([0, 2, 3, 3], np.uint8))]
    assert records == given.encode_batch({"f": [[], list(pixels), []]}, 3)
    assert given.decode(records[0])["f"].shape == [0, *sides, 3]
    read = tf.function(given.decode).get_concrete_function(tf.TensorSpec([None], tf.string))
    for batch, counts in ((records, [0, 2, 0]), (records[:1], [0]), ([], [])):
        for decoded in (given.decode(batch), read(tf.constant(batch, tf.string)), *blocks_of(given, batch)):
            assert decoded["f"].row_lengths().numpy().tolist() == counts


def blocks_of(given: rs.Schema, records: list[bytes]) -> list[dict]:
    """What the block of records decodes to; there is none without records."""
    return [given.decode_block(block_of_records(given, records))] if records else []


def test_boxes_beside_a_video_without_frames_are_read():
    given = rs.Schema.loads(
        "schema: s\nfeatures: {v: {kind: video, resize: [4, 4]}, b: {kind: box, format: rel_xyxy}}"
    )
    rows = [{"v": [], "b": []}, {"v": [photo()], "b": [[0, 0, 0.5, 0.5]]}, {"v": [], "b": []}]
    records = [given.encode(row) for row in rows]
    assert given.decode(records[0])["b"].shape == [0, 4]
    assert given.decode(records)["b"].to_list() == [[], [[0, 0, 0.5, 0.5]], []]


def test_the_frames_of_a_video_come_back_as_they_were():
    frames = [photo(), photo()[:, ::-1], photo()[::-1]]
    for options in ("{kind: video, encoding: png}", "{kind: video, encoding: png, shape: [3, 30, 40, 3]}"):
        given = schema(options)
        for value in (frames, np.stack(frames), [image_bytes(frame, "png") for frame in frames]):
            record = given.encode({"f": value})
            np.testing.assert_array_equal(given.decode(record)["f"].numpy(), np.stack(frames))
    batch = schema("{kind: video, encoding: png}").encode_batch({"f": [frames, [photo(4, 6)]]}, 2)
    decoded = schema("{kind: video, encoding: png}").decode(list(batch))["f"]
    assert decoded.shape.as_list() == [2, None, None, None, 3]
    np.testing.assert_array_equal(decoded[1].to_tensor().numpy(), photo(4, 6)[None])


def test_frames_of_another_dtype_do_not_change_those_of_other_rows():
    frames = np.zeros((2, 2, 2, 3), np.uint8)
    with pytest.raises(rs.RecordError) as caught:
        schema("{kind: video, encoding: png}").encode_batch({"f": [frames, frames.astype(np.uint16)]}, 2)
    assert caught.value.row == 1
