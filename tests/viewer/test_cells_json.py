"""What the page is told of each value; those of any kind, in `viewer.viewed_files`, are some that it can draw."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import recordspec as rs
from instances import CASES
from media import image_bytes, photo, sound_bytes, tone
from recordspec.tables.cells import cell_of
from recordspec.viewer.cells_json import drawn, item_at
from recordspec.viewer.selection import Choice
from recordspec.viewer.viewed_files import ViewedFiles

PNG, WAV = image_bytes(photo(), "png"), sound_bytes(tone(0.5), 8000)
CELLS = {
    "null": (pa.scalar(None, pa.int64()), {"is": "missing"}),
    "int": (pa.scalar(-3), -3),
    "large int": (pa.scalar(2**53 + 1), {"is": "number", "text": "9007199254740993"}),
    "float": (pa.scalar(0.1, pa.float32()), 0.1),
    "nan": (pa.scalar(float("nan")), {"is": "number", "text": "nan"}),
    "infinity": (pa.scalar(float("-inf"), pa.float32()), {"is": "number", "text": "-inf"}),
    "bool": (pa.scalar(True), True),
    "text": (pa.scalar("<b>\u202e"), "<b>\u202e"),
    "long text": (pa.scalar("x" * 1000), {"is": "text", "text": "x" * 200, "length": 1000}),
    "text in bytes": (pa.scalar("né".encode()), "né"),
    "bytes": (
        pa.scalar(b"\xff\x00" * 20),
        {"is": "bytes", "form": "", "size": 40, "hex": " ".join(["ff 00"] * 8)},
    ),
    "label": (
        pa.scalar("left").cast(pa.dictionary(pa.int32(), pa.string())),
        {"is": "label", "text": "left"},
    ),
    "date": (pa.scalar(0, pa.timestamp("ns")), "1970-01-01 00:00:00"),
    "image": (
        pa.scalar(PNG),
        {"is": "image", "form": "PNG image", "size": len(PNG), "width": 40, "height": 30},
    ),
    "audio": (pa.scalar(WAV), {"is": "audio", "form": "WAV file", "size": len(WAV), "seconds": 0.5}),
    "one number": (pa.scalar([5]), {"is": "list", "length": 1, "items": [5]}),
    "numbers": (pa.scalar([1, 2]), {"is": "numbers", "type": "int64", "shape": [2], "some": [1, 2]}),
    "many numbers": (
        pa.scalar(list(range(1000))),
        {"is": "numbers", "type": "int64", "shape": [1000], "some": list(range(0, 1000, 4))},
    ),
    "matrix": (
        pa.scalar([[1, 2], [3, 4]]),
        {"is": "numbers", "type": "int64", "shape": [2, 2], "some": [1, 2, 3, 4]},
    ),
    "ragged": (
        pa.scalar([[1], []]),
        {
            "is": "list",
            "length": 2,
            "items": [{"is": "list", "length": 1, "items": [1]}, {"is": "list", "length": 0, "items": []}],
        },
    ),
    "missing in a list": (pa.scalar([1, None]), {"is": "list", "length": 2, "items": [1, {"is": "missing"}]}),
    "texts": (pa.scalar(list("abcdefghij")), {"is": "list", "length": 10, "items": list("abcdefgh")}),
    "fields": (
        pa.scalar({"a": 1, "b": None}),
        {"is": "fields", "fields": [["a", 1], ["b", {"is": "missing"}]]},
    ),
}


def cell(value, *, is_picture=False):
    return drawn(cell_of(value, is_picture=is_picture))


@pytest.mark.parametrize("name", CELLS)
def test_each_value_is_what_it_is(name):
    value, expected = CELLS[name]
    made = cell(value)
    assert made == expected
    json.dumps(made, allow_nan=False)


def test_pixels_are_an_image_only_where_the_schema_says_so():
    pixels = pa.scalar(np.zeros((4, 5, 3), int).tolist())
    assert cell(pixels, is_picture=True) == {
        "is": "image",
        "form": "int64",
        "size": 480,
        "height": 4,
        "width": 5,
    }
    assert cell(pixels)["is"] == "numbers"


def test_an_item_is_found_by_its_place():
    value = pa.scalar([["a"], ["b", "c"]])
    assert item_at(value, [1, 0]).as_py() == "b"
    for place in ([2], [1, 2], [1, -1], [1, 0, 0]):
        with pytest.raises(IndexError):
            item_at(value, place)


@pytest.mark.parametrize("section", ["features", "sequence"])
def test_values_of_every_kind_are_cells(tmp_path, section):
    for number, case in enumerate(case for case in CASES if case.section == section):
        folder = tmp_path / str(number)
        rs.write(case.rows[:4], case.schema, folder, shuffle=None, progress=False)
        viewed = ViewedFiles(folder, case.schema)
        page = viewed.page(None, Choice(), 0, 100)
        assert [row for row in page["rows"] if "problems" in row] == []
        assert len(page["rows"]) == 4
        json.dumps([page, viewed.record(None, 0), viewed.described()], allow_nan=False)


def test_of_very_long_values_only_the_beginning_is_looked_at(monkeypatch):
    text, data = "né" * (1 << 20), b"\xff\xd8\xff" * (1 << 25)
    assert cell(pa.scalar(text)) == {"is": "text", "text": text[:200], "size": 3 << 20}
    made = cell(pa.scalar(data, pa.large_binary()))
    start = {"is": "bytes", "form": "JPEG image", "size": 3 << 25, "hex": data[:16].hex(" ")}
    assert made == {**start, "damaged": True}


@pytest.mark.parametrize("layout", ["rows", {"blocks": 2}])
def test_a_row_with_nan_and_infinities_is_opened(tmp_path, layout):
    """JSON has none: they are texts in what is stored, too."""
    schema = rs.Schema.loads("schema: s\nfeatures: {x: float32, v: {kind: var_len, dtype: float32}}")
    rows = [{"x": float("nan"), "v": [1.5, float("-inf")]}, {"x": float("inf"), "v": []}]
    rs.write(rows, schema, tmp_path / "data", shuffle=None, layout=layout)
    viewed = ViewedFiles(tmp_path / "data")
    opened = [viewed.record(None, row) for row in range(2)]
    json.dumps(opened, allow_nan=False)
    assert [row["stored"]["features"]["x"] for row in opened] == ["nan", "inf"]
    assert [row["stored"]["features"].get("v", []) for row in opened] == [[1.5, "-inf"], []]


def test_numbers_are_written_without_a_call_of_arrow_for_each(monkeypatch):
    """A cast takes 170 us: 3.5 s for a page of 20,000 numbers."""
    values = pa.scalar(np.float32([0.1, 1e-45, 16777216, -0.3]).tolist(), pa.list_(pa.float32()))
    monkeypatch.setattr("pyarrow.compute.cast", None)
    assert cell(values)["some"] == [0.1, 1e-45, 16777216.0, -0.3]
