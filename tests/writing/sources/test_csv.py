"""Rows of CSV files: cells of text are values (`writing.sources.text_cells`), gaps stay gaps, and lines are named."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordspec as rs
from recordspec.schema.values import BadValue
from recordspec.writing.sources import ranges
from recordspec.writing.sources import text_cells as text
from recordspec.writing.sources.csv import Csv

SCHEMA = rs.Schema.loads(
    """\
schema: s
features:
  n: {dtype: int64, default: -1}
  x: {dtype: float32, default: 0.0}
  b: {kind: tensor, dtype: bool}
  text: {dtype: string, default: none}
  label: {kind: label, names: ["1", "2"]}
"""
)
HEADER = "n,x,b,text,label\n"


def written(tmp_path: Path, text: str | bytes, schema: rs.Schema = SCHEMA, **options) -> list[dict]:
    path = tmp_path / "rows.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    rs.write(Csv(path="rows.csv", **options).open(tmp_path), schema, tmp_path / "data", force=True)
    return [
        {name: value.numpy() for name, value in row.items()} for row in rs.read(tmp_path / "data", schema)
    ]


def test_cells_are_values_and_empty_cells_are_missing(tmp_path):
    text = (
        HEADER
        + '7,1.5,true,"a, ""b""\nc",1\n,"",0,"",2\n180.0,nan,1,,1\n-9223372036854775808,1e3,False,é,2\n'
    )
    rows = written(tmp_path, text)
    assert [row["n"].item() for row in rows] == [7, -1, 180, -(2**63)]
    np.testing.assert_array_equal([row["x"] for row in rows], np.float32([1.5, 0, np.nan, 1000]))
    assert [row["b"].item() for row in rows] == [True, False, True, False]
    assert [row["text"].decode() for row in rows] == ['a, "b"\nc', "", "none", "é"]
    assert [row["label"].item() for row in rows] == [0, 1, 0, 1]


def test_columns_may_have_other_names_and_delimiters(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {a b: int64}")
    rows = written(tmp_path, "é x;rest\r\n3;4\r\n", schema, delimiter=";", columns={"a b": "é x"})
    assert rows == [{"a b": 3}]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("1,1,1,a,1\n1.5,x,1,a,1\n", ["3: features.n: expected int64, got `1.5` (it is not a whole number)", "3: features.x: expected float32, got `x`"]),
        ('1,1,1,"a\nb",1\n\n1,1,maybe,a,1\n', ["5: features.b: expected true or false, got `maybe`"]),
        ("1,1,,a,1\n", ["2: features.b: expected bool, got nothing (only a feature with a default may be missing)"]),
        ("1,1,1,a,3\n", ["2: features.label: expected one of 1, 2, got `3`"]),
        ("99999999999999999999,1,1,a,1\n", ["2: features.n: expected int64 (-9223372036854775808 to 9223372036854775807), got 99999999999999999999"]),
    ],
)  # fmt: skip
def test_a_cell_that_does_not_fit_is_named_by_its_line(tmp_path, body, expected):
    with pytest.raises(rs.RecordError) as caught:
        written(tmp_path, HEADER + body)
    assert str(caught.value).splitlines() == [f"{tmp_path}/rows.csv:{line}" for line in expected]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("n,x,b,txet,label\n", rs.SpecError, ":1: text: expected one column `text`, got none (did you mean `txet`?)"),
        ("n,n,x,b,text,label\n", rs.SpecError, ":1: n: expected one column `n`, got several"),
        ("", rs.RecordError, ":1: expected a header with the names of the columns, got an empty file"),
        ("\nn\n", rs.RecordError, ":1: expected a header with the names of the columns, got an empty line"),
        ("sep=;\nn;x\n", rs.RecordError, ":1: expected a header with the names of the columns, got `sep=;` (from which Excel takes the delimiter: remove the line)"),
        (b"\xff\n", rs.RecordError, ":1: expected UTF-8 text, got the byte 0xff (`encoding` of the source names another, such as windows-1252 or utf-16)"),
        (HEADER + "1,2\n", rs.RecordError, ":2: expected 5 cells, as in the header, got 2: `1,2`"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_as_it_should_be_is_named(tmp_path, text, kind, expected):
    with pytest.raises(kind) as caught:
        written(tmp_path, text)
    assert str(caught.value).splitlines()[0] == f"{tmp_path}/rows.csv{expected}"


def test_a_column_that_nothing_names_is_noted(tmp_path):
    (tmp_path / "rows.csv").write_text("n,id\n1,2\n")
    source = Csv(path="rows.csv").open(tmp_path)
    rs.write(source, rs.Schema.loads("schema: s\nfeatures: {n: int64}"), tmp_path / "data")
    assert source.notes == ["columns that no feature names: id"]


def test_images_of_a_csv_stay_in_its_folder(tmp_path, folder):
    schema = rs.Schema.loads("schema: s\nfeatures: {image: {kind: image, shape: [2, 3, 3]}}")
    assert len(written(tmp_path, "image\nimages/cat/a.png\n", schema)) == 1
    with pytest.raises(rs.RecordError) as caught:
        written(tmp_path, "image\n../secret.png\n", schema)
    assert str(caught.value) == (
        f"{tmp_path}/rows.csv:2: features.image: expected a path in {tmp_path}, got `../secret.png`"
    )


def test_a_csv_file_of_many_rows_is_read_in_parts(tmp_path):
    """Arrow 15 gives wrong bytes for a part of a column of text, if it is asked to make gaps in it."""
    cells = ["" if index % 7 == 0 else str(index + 1_000_000) for index in range(3000)]
    (tmp_path / "rows.csv").write_text("x,t\n" + "".join(f'{cell},"{cell}"\n' for cell in cells))
    schema = rs.Schema.loads("schema: s\nfeatures:\n  x: {dtype: int64, default: -1}\n  t: text")
    rs.write(Csv(path="rows.csv").open(tmp_path), schema, tmp_path / "data")
    (batch,) = rs.read(tmp_path / "data", schema, batch=5000)
    assert batch["x"].numpy().tolist() == [int(cell or -1) for cell in cells]
    assert batch["t"].numpy().tolist() == [cell.encode() for cell in cells]


@pytest.mark.parametrize("size", [1, 7, 40, 200])
def test_a_part_is_parsed_in_pieces_of_whole_rows(tmp_path, monkeypatch, size):
    """A line break in quotes ends no row, nor does one between CR and LF."""
    body = "".join(
        f'{row},{row / 4},true,"a\r\n{row},""b",1\r\n' if row % 3 else f"{row},,0,é,2\n" for row in range(40)
    )
    whole = written(tmp_path, HEADER + body)
    for name in ("_PIECE_BYTES", "_BLOCK"):
        monkeypatch.setattr(ranges, name, size)
    assert written(tmp_path, HEADER + body) == whole
    assert [row["n"].item() for row in whole] == list(range(40))
    (part,) = Csv(path=f"{tmp_path}/rows.csv").parts(SCHEMA, ())
    assert len(part.span.cuts) == {1: 40, 7: 40, 40: 12, 200: 2}[size]
    lines = 2 + sum(2 if row % 3 else 1 for row in range(40))
    for bad, expected in [
        ("1,y,1,a,1\n", "features.x: expected float32, got `y`"),
        ("1,1,1\n", "expected 5 cells, as in the header, got 3: `1,1,1`"),
    ]:
        with pytest.raises(rs.RecordError) as caught:
            written(tmp_path, HEADER + body + bad)
        assert str(caught.value).startswith(f"{tmp_path}/rows.csv:{lines}: {expected}")


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@given(
    st.lists(
        st.one_of(
            st.text("+-.0123456789Ee", min_size=1, max_size=8),
            st.integers(-(10**20), 10**20).map(str),
            st.floats(allow_nan=False, allow_infinity=False).map(repr),
            st.sampled_from(["-0", "-0.0", ".5", "5.", "1e400", "5e-324", "-9223372036854775808"]),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_numbers_are_cast_as_each_is_read_alone(dtype, cells):
    """Arrow casts more texts than are numbers here, such as hexadecimals."""
    found = text.cast(pa.array(cells, pa.large_string()), dtype)
    if found is None:
        return
    for cell, value in zip(cells, found.tolist(), strict=True):
        try:
            number = text._number(0, cell, dtype)
        except BadValue:
            assert np.isinf(value), cell
            continue
        assert value == (number if dtype == "int64" else float(number)), cell
        assert np.signbit(value) == np.signbit(float(number)), cell
        assert dtype == "float64" or type(number) is int


@pytest.mark.parametrize("dtype", ["int64", "float64", "bool"])
@given(
    st.lists(
        st.one_of(
            st.text("+-.0123456789EeTRUEtrueFALSEfalseNaniIty x\n\u00e9", min_size=1, max_size=9),
            st.integers(-(10**20), 10**20).map(str),
            st.sampled_from(["true", "FALSE", "nan", "-inf", "+Infinity", "1e5", "+1", "1.", ".5", "."]),
        ),
        max_size=3,
    )
)
def test_a_form_is_found_with_and_without_a_regex(dtype, cells):
    column = pa.array(cells, pa.large_string())
    assert text.are(column, dtype) == all(text.form(column, dtype).to_pylist())
    short, long = text.integers(column)
    whole = [cell for cell in cells if re.fullmatch("[-+]?[0-9]{1,400}", cell)]
    assert short.tolist() == [int(cell) for cell in whole if len(cell.lstrip("+-")) <= 18]
    assert long == [int(cell) for cell in whole if len(cell.lstrip("+-")) > 18]
