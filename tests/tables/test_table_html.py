"""The first rows of a table in a notebook: what each value is shown as, and what is read for it."""

from __future__ import annotations

import base64
import io
import sys

import numpy as np
import pyarrow.dataset
import pytest
from PIL import Image

import recordspec as rs
from fragments import Fragment
from instances import CASES
from media import image_bytes, photo, sound_bytes, tone
from recordspec.schema.media import images
from recordspec.tables import table_html
from recordspec.tables.scan_columns import ColumnReader
from some_records import example, sequence_example, write

EVIL = "<script>alert('1')</script>\n\"&\u202e"
SEEN = "<script>alert('1')</script>\\n\"&\\u202e"


def shown(table) -> Fragment:
    return Fragment(table._repr_html_())


def test_the_columns_with_their_types_and_the_first_rows(tmp_path):
    schema = rs.Schema.loads("{schema: s, features: {a: int64, b: {dtype: float32, default: 0}}}")
    rs.write([{"a": 1000, "b": 0.1}, {"a": 2}], schema, tmp_path / "d", shuffle=None)
    assert rs.scan(tmp_path / "d")._repr_html_().replace(' style="text-align: left"', "") == (
        '<div><p><strong>2 columns of 1 file</strong></p><table><tr><th scope="col"></th>'
        '<th scope="col">a<br><small>int64</small></th><th scope="col">b<br><small>float32</small></th></tr>'
        '<tr><th scope="row">0</th><td>1000</td><td>0.1</td></tr>'
        '<tr><th scope="row">1</th><td>2</td><td><em>null</em></td></tr></table></div>'
    )


VALUES = """
schema: s
features:
  side: {kind: label, names: ["<b>", right]}
  words: {kind: var_len, dtype: string}
  day: {dtype: int64, date: days}
  time: {dtype: int64, date: nanoseconds}
  pair: {kind: sparse, dtype: float32, size: 10}
  matrix: {dtype: float32, shape: [2, 2]}
  large: {kind: tensor, dtype: float32, shape: [9, 9]}
  lists: {kind: ragged, dtype: int64, shape: [null, null]}
  data: string
"""


@pytest.mark.parametrize("layout", ["rows", {"blocks": 4}], ids=["rows", "blocks"])
def test_values_of_all_types(layout, tmp_path):
    row = {
        "side": "<b>",
        "words": ["x"] * 9,
        "day": "2026-03-01",
        "time": "2026-03-01T01:02:03.000000001",
        "pair": ([1, 2], [0.5, 0.25]),
        "matrix": [[1, 2], [3, 0.1]],
        "large": np.zeros((9, 9), np.float32),
        "lists": [[1] * 9, [2]],
        "data": b"\xff\xd8",
    }
    schema = rs.Schema.loads(VALUES)
    rs.write([row], schema, tmp_path / "d", layout=layout)
    head, first = shown(rs.scan(tmp_path / "d")).rows
    assert dict(zip(head, first, strict=True)) == {
        "": "0",
        "sidelabel, 2 classes": "<b>",
        "wordsstring [null]": "[x, x, x, x, x, x, x, x, ... 9 in all]",
        "daydate": "2026-03-01",
        "timetime in UTC": "2026-03-01 01:02:03.000000001",
        "pairstruct": "indices: [1, 2], values: [0.5, 0.25]",
        "matrixfloat32 [2, 2]": "[[1.0, 2.0], [3.0, 0.1]]",
        "largefloat32 [9, 9]": "float32 [9, 9]",
        "listsint64 [null, null]": "int64 [2, null]",
        "databinary": "<2 bytes>",
    }


def test_hostile_names_and_values_are_escaped(tmp_path):
    path = write(tmp_path / "f", sequence_example({"s": [[EVIL.encode()]]}, **{EVIL: [EVIL.encode()]}))
    head, first = shown(rs.scan(path)).rows
    assert head == ["", f"{SEEN}string", "sstring [null]"]
    assert first == ["0", SEEN, f"[{SEEN}]"]


def of_media(tmp_path, **columns):
    return rs.scan(write(tmp_path / "f", example(**{name: [data] for name, data in columns.items()})))


def test_images_and_sounds_are_parts_of_the_notebook(tmp_path):
    pixels = photo(6, 8)
    pictures = {name: image_bytes(pixels, name) for name in ("png", "jpeg", "gif", "bmp", "webp")}
    sounds = {"wav": sound_bytes(tone(), 8000), "flac": sound_bytes(tone(), 8000, "FLAC")}
    fragment = shown(of_media(tmp_path, **pictures, **sounds))
    expected = {**{f"image/{name}": data for name, data in pictures.items()}}
    expected |= {f"audio/{name}": data for name, data in sounds.items()}
    assert sorted(fragment.media) == sorted(
        f"data:{kind};base64,{base64.b64encode(data).decode()}" for kind, data in expected.items()
    )
    text = of_media(tmp_path, **pictures)._repr_html_()
    assert f'alt="PNG 8x6, {len(pictures["png"])} B"' in text
    assert text.count("width: 48px; height: 36px; image-rendering: pixelated") == len(pictures)


def test_other_media_are_described(tmp_path):
    tiff, cut = image_bytes(photo(6, 8), "tiff"), image_bytes(photo(6, 8), "png")[:20]
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    fragment = shown(of_media(tmp_path, cut=cut, svg=svg, tiff=tiff))
    assert fragment.media == []
    assert fragment.rows[1][1:] == ["<PNG image, 20 bytes>", svg.decode(), "<TIFF 8x6>"]


def test_large_media_are_described_and_so_are_those_beyond_the_limit_of_all(tmp_path, monkeypatch):
    noise = np.random.default_rng(0).integers(0, 256, (300, 400, 3), np.uint8)
    large, small = image_bytes(noise, "bmp"), image_bytes(photo(6, 8), "png")
    fragment = shown(of_media(tmp_path, large=large, small=small))
    assert fragment.rows[1][1:] == ["BMP 400x300, 352 KiB", ""]
    assert len(fragment.media) == 1
    monkeypatch.setattr(table_html, "_MOST_BYTES", 2 * len(small))
    path = write(tmp_path / "many", *[example(small=[small])] * 5)
    cells = [row[1] for row in shown(rs.scan(path)).rows[1:]]
    assert cells == ["", "", *[f"PNG 8x6, {len(small)} B"] * 3]
    monkeypatch.setattr(table_html, "_MOST_PIXELS", 6 * 8 - 1)
    assert shown(rs.scan(path)).media == []


def pixels_in(source: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))))


DECODED = """
schema: s
features:
  a: {kind: image, shape: [null, null, 3], encoding: png}
  b: {kind: image, shape: [6, 8, 1], dtype: uint16, encoding: raw}
  c: {kind: audio, sample_rate: 8000, channels: 1}
"""


def test_decoded_and_raw_pixels_are_png(tmp_path, monkeypatch):
    pixels, deep = photo(6, 8), np.full((6, 8, 1), 0x1234, np.uint16)
    rs.write([{"a": pixels, "b": deep, "c": tone()}], rs.Schema.loads(DECODED), tmp_path / "d")
    decoded = rs.scan(tmp_path / "d", values="decoded")
    fragment = shown(decoded)
    first, second = map(pixels_in, fragment.media)
    np.testing.assert_array_equal(first, pixels)
    np.testing.assert_array_equal(second, np.full((6, 8), 0x12))
    assert fragment.rows[1][1:] == ["", "", "float32 [2000, 1]"]
    assert 'alt="uint8 [6, 8, 3]"' in decoded._repr_html_()
    images.pillow.cache_clear()
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert shown(rs.scan(tmp_path / "d", columns=["b"])).rows[1][1:] == ["uint16 [6, 8, 1]"]
    assert "(pip install &#x27;pillow&gt;=10.2&#x27;" in decoded._repr_html_()
    monkeypatch.undo()
    monkeypatch.setattr(table_html, "_MOST_RAW_PIXELS", 6 * 8 - 1)
    assert shown(decoded).media == []


# ---- what is read ----


@pytest.fixture
def two_files(tmp_path):
    """30 rows in each of two files."""
    for name in ("a", "b"):
        write(tmp_path / name, *(example(n=[number]) for number in range(30)))
    return tmp_path


def numbers(fragment: Fragment) -> list[int]:
    return [int(row[1]) for row in fragment.rows[1:]]


def test_only_the_first_rows_are_read(two_files):
    table = rs.scan([two_files / "a", two_files / "b"])
    (two_files / "b").unlink()
    data = bytearray((two_files / "a").read_bytes())
    data[-1] ^= 1  # of the last record
    (two_files / "a").write_bytes(data)
    read, plain = [], ColumnReader.made
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ColumnReader, "made", lambda self, batch: read.append(len(batch)) or plain(self, batch))
        fragment = shown(table)
    assert numbers(fragment) == [*range(20)]
    assert read == [20]
    assert "li" not in fragment.tags


def test_only_the_first_columns_are_read_and_the_others_are_named(tmp_path):
    path = write(tmp_path / "f", example(**{f"n{number:02}": [number] for number in range(25)}))
    text = rs.scan(path)._repr_html_()
    assert len(Fragment(text).rows[0]) == 1 + 20
    assert (
        "<summary>5 columns more</summary>n20: int64, n21: int64, n22: int64, n23: int64, n24: int64<" in text
    )


def test_rows_end_at_one_that_is_damaged_and_it_is_named(two_files):
    path = two_files / "a"
    data = bytearray(path.read_bytes())
    size = len(data) // 30
    data[5 * size + 14] ^= 1
    path.write_bytes(data)
    table = rs.scan(path)
    text = table._repr_html_()
    assert numbers(Fragment(text)) == [*range(5)]
    assert f"<li>{path}: record 5 at byte {5 * size}" in text
    skipping = rs.scan(path, corrupt="skip")
    assert numbers(shown(skipping)) == [0, 1, 2, 3, 4, *range(6, 21)]
    assert "<p>1 record before the last of these cannot be read</p>" in skipping._repr_html_()


def test_a_file_that_is_gone_is_named(two_files):
    table = rs.scan([two_files / "a", two_files / "b"])
    (two_files / "a").unlink()
    text = table._repr_html_()
    assert Fragment(text).rows == [["", "nint64"]]
    assert f"<li>{two_files / 'a'}: cannot read: no such file or directory</li>" in text


def test_rows_that_match_are_looked_for_among_the_first(two_files, monkeypatch):
    table = rs.scan([two_files / "a", two_files / "b"])
    fragment = shown(table.filter(pyarrow.dataset.field("n") > 17))
    assert numbers(fragment) == [*range(18, 30), *range(18, 26)]
    monkeypatch.setattr(table_html, "_MOST_SEARCHED", 25)
    text = table.filter(pyarrow.dataset.field("n") > 22)._repr_html_()
    assert numbers(Fragment(text)) == [23, 24]
    assert "<p>the rows that match among the first 25</p>" in text


def test_a_condition_may_be_on_a_column_that_is_not_shown(tmp_path):
    records = [example(**{f"n{column:02}": [row] for column in range(25)}) for row in range(5)]
    table = rs.scan(write(tmp_path / "f", *records)).filter(pyarrow.dataset.field("n24") == 3)
    assert [row[1] for row in shown(table).rows[1:]] == ["3"]


@pytest.mark.parametrize("layout", ["rows", {"blocks": 4}], ids=["rows", "blocks"])
@pytest.mark.parametrize("section", ["features", "context", "sequence"])
def test_every_kind_is_shown(section, layout, tmp_path):
    for number, case in enumerate(case for case in CASES if case.section == section):
        feature = case.feature
        record = "example" if section == "features" else "sequence_example"
        schema = rs.Schema(name="s", record=record, **{section: (feature,)})
        rng = np.random.default_rng(0)
        in_steps = section == "sequence" and not feature.traits.spans_steps
        rows = [
            {feature.name: [feature.sample(rng)] * 2 if in_steps else feature.sample(rng)} for _ in range(3)
        ]
        if feature.traits.optional:
            rows[1] = {}
        rs.write(rows, schema, tmp_path / str(number), layout=layout)
        for values in ("stored", "decoded"):
            fragment = shown(rs.scan(tmp_path / str(number), schema, values=values))
            assert fragment.tags.count("li") == 0, (feature, fragment.rows)
            assert len(fragment.rows) == 1 + 3
            assert fragment.tags.count("p") == 1
