"""Rows wait to be encoded in a batch: until then they stay as they were given."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from PIL import Image

import recordspec as rs
from recordspec.wire.tfrecord import scan


def test_rows_that_are_changed_after_they_were_given_are_as_they_were(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64, x: {kind: tensor, dtype: uint8, shape: [2]}}")
    row: dict = {"x": np.zeros(2, np.uint8)}
    with rs.ShardedWriter(schema, tmp_path / "data") as writer:
        for number in range(5):
            row["n"] = number
            row["x"][:] = number
            writer.write(row)
    assert [row["x"].numpy().tolist() for row in rs.read(tmp_path / "data", schema)] == [
        [n, n] for n in range(5)
    ]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_image_is_what_it_was_in_memory(tmp_path, jobs):
    """Copies of Pillow lose an orientation that is not in a file, and pickles also the alpha of a palette."""
    pixels = np.zeros((2, 3, 4), np.uint8)
    pixels[:, :, 3] = [[255, 0, 128], [0, 255, 64]]
    turned = Image.fromarray(pixels[:, :, :3])
    turned.getexif()[0x0112] = 6
    schema = rs.Schema.loads(
        "schema: s\nfeatures:\n"
        "  alpha: {kind: image, shape: [null, null, 4]}\n"
        "  photo: {kind: image, orientation: upright}\n"
        "  frames: {kind: video, encoding: png, shape: [null, null, null, 4]}\n"
    )
    palette = Image.fromarray(pixels).quantize(8)
    row = {"alpha": palette, "photo": turned, "frames": [palette, palette]}
    rs.write([row] * 3, schema, tmp_path / "data", key=None, jobs=jobs, progress=False)
    records = [one.data for path in sorted((tmp_path / "data").glob("*.tfrecord")) for one in scan(path)]
    assert records == [schema.encode(row)] * 3


def test_a_memoryview_may_be_filled_again(tmp_path):
    """Also within a list, and of numbers."""
    schema = rs.Schema.loads(
        "schema: s\nfeatures: {a: {kind: var_len, dtype: string}, n: {dtype: int64, shape: [2]}}\n"
    )
    text, numbers = bytearray(b"..."), array("q", [0, 0])

    def rows_of_one_buffer():
        for number in range(3):
            text[:], numbers[1] = b"<%d>" % number, number
            yield {"a": [b"x", text, memoryview(text)], "n": memoryview(numbers)}

    rs.write(rows_of_one_buffer(), schema, tmp_path / "data", key=None, progress=False)
    (path,) = (tmp_path / "data").glob("*.tfrecord")
    expected = [{"a": [b"x", b"<%d>" % n, b"<%d>" % n], "n": [0, n]} for n in range(3)]
    assert [one.data for one in scan(path)] == [schema.encode(row) for row in expected]


def test_a_list_of_itself_is_refused(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {a: {kind: var_len, dtype: int64}}\n")
    endless: list = []
    endless.append(endless)
    with pytest.raises(rs.RecordError, match=r"row 0: features\.a: expected int64"):
        rs.write([{"a": endless}], schema, tmp_path / "data", progress=False)
