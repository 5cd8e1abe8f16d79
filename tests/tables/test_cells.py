"""What values show, and that each renderer draws each kind of it."""

from __future__ import annotations

import json
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest

from media import image_bytes, photo, sound_bytes, tone
from recordspec.tables import cells, show, table_html
from recordspec.tables.cells import CellKind, cell_of, cell_of_listed, cell_of_numbers
from recordspec.viewer import cells_json
from recordspec.wire.proto import Listed

PNG, WAV = image_bytes(photo(), "png"), sound_bytes(tone(0.5), 8000)
LONG = "x" * 1000
# For each value: its kind, the text on a terminal, the text in a notebook, and the JSON of the page.
VALUES = {
    "null": (pa.scalar(None, pa.int64()), "missing", None, "<em>null</em>", {"is": "missing"}),
    "number": (pa.scalar(0.1, pa.float32()), "number", 0.1, "0.1", 0.1),
    "truth value": (pa.scalar(True), "number", True, "True", True),
    "label": (
        pa.scalar("left").cast(pa.dictionary(pa.int32(), pa.string())),
        "label",
        "left",
        "left",
        {"is": "label", "text": "left"},
    ),
    "text": (
        pa.scalar(LONG),
        "text",
        f"{LONG[:200]}... 1,000 characters",
        f"{LONG[:200]}... 1,000 characters",
        {"is": "text", "text": LONG[:200], "length": 1000},
    ),
    "markup": (pa.scalar("<b>"), "text", "<b>", "&lt;b&gt;", "<b>"),
    "bytes": (
        pa.scalar(b"\xff\x00"),
        "bytes",
        "<2 bytes>",
        "&lt;2 bytes&gt;",
        {"is": "bytes", "form": "", "size": 2, "hex": "ff 00"},
    ),
    "image": (
        pa.scalar(image_bytes(photo(), "tiff")),
        "image",
        "<TIFF 40x30>",
        "&lt;TIFF 40x30&gt;",
        {
            "is": "image",
            "form": "TIFF image",
            "size": len(image_bytes(photo(), "tiff")),
            "width": 40,
            "height": 30,
        },
    ),
    "numbers": (
        pa.scalar(list(range(20))),
        "numbers",
        "<20 integers in [0, 19]>",
        "[0, 1, 2, 3, 4, 5, 6, 7, ... 20 in all]",
        {"is": "numbers", "type": "int64", "shape": [20], "some": list(range(20))},
    ),
    "list": (
        pa.scalar(["a", None]),
        "list",
        ["a", None],
        "[a, <em>null</em>]",
        {"is": "list", "length": 2, "items": ["a", {"is": "missing"}]},
    ),
    "fields": (
        pa.scalar({"a": 1}),
        "fields",
        {"a": 1},
        "a: 1",
        {"is": "fields", "fields": [["a", 1]]},
    ),
}


def in_html(cell) -> str:
    return table_html._drawn(cell, table_html._MediaBudget(1 << 20))


@pytest.mark.parametrize("name", VALUES)
def test_each_renderer_draws_it(name):
    value, kind, text, markup, drawn = VALUES[name]
    assert cell_of(value).kind == kind
    assert show.shown(cell_of(value), "short") == text
    assert in_html(cell_of(value)) == markup
    assert cells_json.drawn(cell_of(value)) == drawn


def test_each_renderer_draws_every_kind_and_no_other():
    for renderer in (show, table_html, cells_json):
        assert set(renderer._DRAWN) == set(get_args(CellKind))
    assert {kind for _, kind, *_ in VALUES.values()} | {"audio"} == set(get_args(CellKind))


def test_audio_has_its_duration():
    cell = cell_of(pa.scalar(WAV))
    assert show.shown(cell, "short") == "<WAV 0.5 s at 8 kHz>"
    assert in_html(cell).startswith('<audio controls src="data:audio/wav;base64,')
    drawn = cells_json.drawn(cell)
    assert drawn == {"is": "audio", "form": "WAV file", "size": len(WAV), "seconds": 0.5}


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int64", "float32"])
def test_pixels_of_every_dtype_are_an_image(dtype):
    """Notebooks drew 8 and 16 bits only: of others, the whole table was an error."""
    cell = cell_of_numbers(np.zeros((4, 5, 3), dtype), is_picture=True)
    assert show.shown(cell, "short") == f"<{dtype} [4, 5, 3]>"
    assert in_html(cell).startswith('<img src="data:image/png;base64,')
    assert cells_json.drawn(cell)["is"] == "image"


@pytest.mark.parametrize(
    ("listed", "kind", "shown"),
    [
        (Listed("none", []), "missing", None),
        (Listed("int64", []), "numbers", []),
        (Listed("int64", [1]), "label", "right"),
        (Listed("int64", [7]), "number", 7),
        (Listed("int64", [7, 7]), "numbers", [7, 7]),
        (Listed("int64", [1, 7]), "list", ["right", 7]),
        (Listed("float32", [0.1]), "number", 0.1),
        (Listed("bytes", [PNG]), "image", "<PNG 40x30>"),
        (Listed("bytes", [b"a", b"\xff"]), "list", ["a", "<1 byte>"]),
    ],
)
def test_stored_values_have_the_cells_of_decoded_values(listed, kind, shown):
    cell = cell_of_listed(listed, ("left", "right"))
    assert (cell.kind, show.shown(cell, "full")) == (kind, shown)
    json.dumps(show.shown(cell_of_listed(listed), "full"))


def test_of_very_long_values_the_renderers_know_the_size(monkeypatch):
    monkeypatch.setattr(cells, "_LONG_TEXT", 1000)
    monkeypatch.setattr(cells, "_LONG_BYTES", 5000)
    text, data = cell_of(pa.scalar("é" * 1000)), cell_of(pa.scalar(b"\xff\xd8\xff" * 2000))
    assert text.short_text == in_html(text) == "é" * 200 + "... 2,000 bytes"
    assert show.shown(data, "short") == "<JPEG image, 6,000 bytes>"
    assert in_html(data) == "&lt;JPEG image, 6,000 bytes&gt;"
