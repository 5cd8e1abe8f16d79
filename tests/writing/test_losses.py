"""Ways in which a value could get lost, or one error hide another: each was found by trying."""

from __future__ import annotations

import collections

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import recordspec as rs
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.folders import ImageFolder


def schema(features: str) -> rs.Schema:
    return rs.Schema.loads(f"schema: s\nfeatures:\n  {features}\n")


def read(one: rs.Schema, folder) -> list:
    values = [next(iter(row.values())).numpy() for row in rs.read(folder, one)]
    return [value if isinstance(value, bytes) else value.tolist() for value in values]


def windows():
    window = collections.deque(maxlen=2)
    for number in range(3):
        window.append(number)
        yield window


def nested():
    inner = [[0]]
    for number in range(3):
        inner[0][0] = number
        yield inner


@pytest.mark.parametrize(
    ("features", "source", "expected"),
    [
        ("x: {kind: var_len, dtype: int64}", windows, [[0], [0, 1], [1, 2]]),
        ("x: {dtype: int64, shape: [1, 1]}", nested, [[[0]], [[1]], [[2]]]),
    ],
)
def test_values_are_kept_as_they_were_when_given(tmp_path, features, source, expected):
    one = schema(features)
    rs.write(({"x": value} for value in source()), one, tmp_path / "data")
    assert read(one, tmp_path / "data") == expected


def test_a_long_name_with_a_gap_keeps_its_values(tmp_path):
    name = "z" * 170
    one = schema(f"{name}: {{dtype: int64, default: 0}}")
    rows = [{name: 1}, {}, {name: 3}]
    assert one.encode_batch({name: [1, None, 3]}, 3) == [one.encode(row) for row in rows]
    rs.write(rows, one, tmp_path / "data")
    assert read(one, tmp_path / "data") == [1, 0, 3]


def test_nan_in_a_frame_of_objects_is_missing(tmp_path):
    one = schema("x: {dtype: float32, default: 7.0}")
    frame = pd.DataFrame({"x": pd.Series([1.0, float("nan"), None, pd.NA], dtype=object)})
    rs.write(frame, one, tmp_path / "data")
    np.testing.assert_array_equal(read(one, tmp_path / "data"), [1.0, 7.0, 7.0, 7.0])


def test_a_whole_number_among_floats_is_not_rounded():
    with pytest.raises(
        rs.RecordError, match="float64, which holds whole numbers exactly, got 9007199254740993"
    ):
        schema("x: {kind: tensor, dtype: float64, shape: [2]}").encode({"x": [0.5, 2**53 + 1]})


MASKED = np.ma.array([1, 2], mask=[False, True])


@pytest.mark.parametrize(
    ("features", "value"),
    [
        ("x: {dtype: int64, shape: [2]}", MASKED),
        ("x: {kind: var_len, dtype: int64}", MASKED),
        ("x: {kind: tensor, dtype: int64, shape: [null]}", MASKED),
        ("x: float32", np.ma.masked),
        ("x: {kind: image, shape: [1, 2, 1]}", np.ma.array(np.zeros((1, 2), np.uint8), mask=True)),
        ("x: {kind: var_len, dtype: int64}", np.void(b"abc")),
        ("x: int64", 10**5000),
        ("x: {kind: label, names: [a]}", 10**5000),
        ("x: {kind: label, names: [a]}", b"\xff"),
        ("x: {kind: sparse, dtype: int64, size: 9}", ([0, 1], {5, 6})),
        ("x: {kind: sparse, dtype: int64, size: 9}", (np.array(3), np.array(5))),
        ("x: {dtype: string, shape: [2]}", [np.zeros((2, 2)), np.zeros((2, 3))]),
        ("x: {kind: image, shape: [null, null, 1]}", np.zeros((0, 3, 1), np.uint8)),
        ("x: {kind: image, encoding: jpeg, shape: [null, null, 1]}", np.zeros((1, 70_000, 1), np.uint8)),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,  # not the values' own text
)
def test_odd_values_are_refused_in_a_line(features, value):
    for given in (lambda one: one.encode({"x": value}), lambda one: one.encode_batch({"x": [value]}, 1)):
        with pytest.raises(rs.RecordError) as caught:
            given(schema(features))
        (line,) = str(caught.value).splitlines()
        assert line.startswith("row 0: features.x: expected ")


@pytest.mark.parametrize("row", [[1], None, "x"])
def test_a_row_that_is_no_mapping_is_refused(row):
    with pytest.raises(rs.RecordError, match="expected a mapping from names to values"):
        schema("x: int64").encode(row)


def test_names_that_become_one_are_refused(tmp_path):
    with pytest.raises(rs.SpecError, match="rows: expected every name once, got 1, 1"):
        rs.write({1: [1], "1": [2]}, schema("1: int64"), tmp_path / "data")


def write_csv(tmp_path, text: str, one: rs.Schema) -> list:
    (tmp_path / "rows.csv").write_text(text)
    rs.write(Csv(files="rows.csv").open(tmp_path), one, tmp_path / "data", force=True)
    return read(one, tmp_path / "data")


def test_a_quote_that_is_never_closed_is_named(tmp_path):
    with pytest.raises(rs.RecordError) as caught:
        write_csv(tmp_path, 'x,y\n1,a\n2,"b\n3,c\n', schema("x: int64\n  y: string"))
    assert str(caught.value).startswith(
        f"{tmp_path}/rows.csv:3: expected quotes in pairs, got one that is never"
    )
    assert write_csv(tmp_path, 'x\n5" pipe\n', schema("x: string")) == [b'5" pipe']


def test_an_empty_line_of_one_column_is_an_empty_cell(tmp_path):
    assert write_csv(tmp_path, "x\n1\n\n3\n", schema("x: {dtype: int64, default: -1}")) == [1, -1, 3]
    with pytest.raises(rs.RecordError, match=r"rows.csv:3: features.x: expected int64, got nothing"):
        write_csv(tmp_path, "x\n1\n\n3\n", schema("x: int64"))


def test_a_png_without_its_end_is_refused(tmp_path):
    (tmp_path / "a").mkdir()
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(tmp_path / "a/x.png")
    data = (tmp_path / "a/x.png").read_bytes()
    (tmp_path / "a/x.png").write_bytes(data[:-20])
    one = schema("image: {kind: image, shape: [8, 8, 1]}\n  label: {kind: label, names: [a]}")
    with pytest.raises(rs.RecordError, match="expected an image that decodes"):
        rs.write(ImageFolder(folder=".").open(tmp_path), one, tmp_path / "data")


@pytest.mark.parametrize(
    ("image", "features", "mode"),
    [
        (Image.new("P", (3, 2)), "[2, 3, 1]", "P"),
        (Image.new("CMYK", (3, 2)), "[2, 3, 4]", "CMYK"),
        (Image.new("HSV", (3, 2)), "[2, 3, 3]", "HSV"),
        (Image.new("I;16", (3, 2)), "[2, 3, 1]", "I;16"),
    ],
)
def test_pixels_of_another_mode_are_refused(image, features, mode):
    one = schema(f"x: {{kind: image, shape: {features}}}")
    with pytest.raises(rs.RecordError, match=f"got mode {mode} "):
        one.encode({"x": image})


def test_a_file_that_loses_its_alpha_or_depth_is_refused(tmp_path):
    for pixels, mode in [(np.zeros((2, 3, 4), np.uint8), "RGBA"), (np.zeros((2, 3), np.uint16), "I")]:
        Image.fromarray(pixels).save(tmp_path / "x.png")
        with pytest.raises(rs.RecordError, match=f"x.png: mode {mode}(;16)? "):
            schema("x: {kind: image, shape: [2, 3, 3]}").encode({"x": tmp_path / "x.png"})


def test_a_deep_file_is_stored_raw_as_it_is(tmp_path):
    pixels = np.arange(6, dtype=np.uint16).reshape(2, 3) * 9999
    Image.fromarray(pixels).save(tmp_path / "x.png")
    for encoding in ("raw", "png"):
        one = schema(f"x: {{kind: image, shape: [2, 3, 1], dtype: uint16, encoding: {encoding}}}")
        decoded = one.decode(one.encode({"x": tmp_path / "x.png"}))["x"]
        np.testing.assert_array_equal(decoded.numpy()[:, :, 0], pixels)


def test_arrays_of_the_other_byte_order_are_what_they_say():
    one = schema("x: int64\n  y: float32")
    swapped = {"x": np.array([1, 2], ">i8"), "y": np.array([1.5, 2.5], ">f4")}
    native = {"x": np.array([1, 2]), "y": np.array([1.5, 2.5], np.float32)}
    assert one.encode_batch(swapped, 2) == one.encode_batch(native, 2)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"bucket": {"by": "x"}, "batch": 4}, "bucket: expected the key `boundaries`, got none"),
        (
            {"batch": 2**63},
            "batch: expected a whole number, got int 9223372036854775808 (int64 does not hold it)",
        ),
    ],
)
def test_options_that_lack_something_are_named(tmp_path, options, expected):
    one = schema("x: int64")
    rs.write([{"x": 1}], one, tmp_path / "data")
    with pytest.raises(rs.SpecError) as caught:
        rs.read(tmp_path / "data", one, **options)
    assert str(caught.value) == expected
