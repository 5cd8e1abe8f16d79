"""Rows of CSV files: cells of text are values (`writing.sources.text_cells`), gaps stay gaps, and lines are named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import recordspec as rs
from recordspec.schema.values import BadValue
from recordspec.writing.sources import base, ranges
from recordspec.writing.sources import text_cells as text
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.parquet import Parquet

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
    rs.write(Csv(files="rows.csv", **options).open(tmp_path), schema, tmp_path / "data", force=True)
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
        ("1,1,1,a,1\n1.5,x,1,a,1\n", ["3: features.n: expected int64, got `1.5` (`float32` holds fractions)", "3: features.x: expected float32, got `x`"]),
        ('1,1,1,"a\nb",1\n\n1,1,maybe,a,1\n', ["5: features.b: expected true or false, got `maybe`"]),
        ("1,1,,a,1\n", ["2: features.b: expected bool, got nothing (only a feature with a default may be missing)"]),
        ("1,1,1,a,3\n", ["2: features.label: expected one of `1`, `2`, got `3` (add `3` to `names` if it is a class)"]),
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
        ("", rs.RecordError, ":1: expected a header with the names of the columns, got an empty file"),
        ("\nn\n", rs.RecordError, ":1: expected a header with the names of the columns, got an empty line"),
        ("sep=;\nn;x\n", rs.RecordError, ":1: expected a header with the names of the columns, got `sep=;` (from which Excel takes the delimiter: `skip_lines: 1` skips it)"),
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
    source = Csv(files="rows.csv").open(tmp_path)
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


def test_a_cell_may_be_a_part_of_the_path(tmp_path):
    """Identifiers in a table, with files in a folder beside it, in each kind of table; `infer` finds them."""
    pixels = {name: np.full((2, 3, 3), place, np.uint8) for place, name in enumerate(["a", "b"])}
    (tmp_path / "photos").mkdir()
    for name, one in pixels.items():
        Image.fromarray(one).save(tmp_path / f"photos/{name}.png")
    rows = [{"photo": name, "id": name} for name in ("b", "a", "b")]
    (tmp_path / "t.csv").write_text("photo,id\n" + "".join(f"{row['photo']},{row['id']}\n" for row in rows))
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    schema = rs.Schema.loads("schema: s\nfeatures: {id: text, photo: {kind: image, shape: [2, 3, 3]}}")
    media = {"photo": "photos/{}.png"}
    for source in (Csv, Jsonl, Parquet):
        path = tmp_path / f"t.{source.__name__.lower()}"
        rs.write(source(files=str(path), media=media), schema, tmp_path / "data", force=True)
        read = [(row["id"].decode(), row["photo"].tolist()) for row in rs.open(tmp_path / "data")]
        assert read == [(row["id"], pixels[row["photo"]].tolist()) for row in rows]
        found = rs.infer(path)
        assert found.schema.names["photo"].kind == "image"
        (option,) = found.options
        assert (option.name, option.value["photo"]) == ("media", "photos/{}.png")
    assert any(note.startswith("photo: a file in several rows") for note in found.notes)
    outside = Csv(files=str(tmp_path / "t.csv"), media={"photo": "../{}.png"})
    with pytest.raises(rs.RecordError, match=r"expected a path in .*, got `../b.png`"):
        rs.write(outside, schema, tmp_path / "data", force=True)
    with pytest.raises(rs.SpecError, match=r"media.photo: expected a path with one {}, got `photos`"):
        Csv(files="t.csv", media={"photo": "photos"})
    for name, expected in {
        "id": "media.id: expected a feature that takes files",
        "x": "media: expected features",
    }.items():
        with pytest.raises(rs.SpecError, match=expected):
            rs.write(Csv(files=str(tmp_path / "t.csv"), media={name: "{}"}), schema, tmp_path / "o")


def test_a_csv_file_of_many_rows_is_read_in_parts(tmp_path):
    """Arrow 15 gives wrong bytes for a part of a column of text, if it is asked to make gaps in it."""
    cells = ["" if index % 7 == 0 else str(index + 1_000_000) for index in range(3000)]
    (tmp_path / "rows.csv").write_text("x,t\n" + "".join(f'{cell},"{cell}"\n' for cell in cells))
    schema = rs.Schema.loads("schema: s\nfeatures:\n  x: {dtype: int64, default: -1}\n  t: text")
    rs.write(Csv(files="rows.csv").open(tmp_path), schema, tmp_path / "data")
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
    (part,) = Csv(files=f"{tmp_path}/rows.csv").parts(SCHEMA, ())
    assert len(part.span.cuts) == {1: 39, 7: 39, 40: 13, 200: 3}[size]
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


def cells_of(folder: Path, data: str | bytes, *names: str, **options) -> list[list[str | None]]:
    """The cells of the rows, None for a missing one; the same with tiny ranges, pieces and blocks."""
    path = folder / "rows.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    features = "".join(f'  "{name}": {{dtype: string, default: <none>}}\n' for name in names)
    schema = rs.Schema.loads(f"schema: s\nfeatures:\n{features}")
    found = []
    for sizes in ({}, {"_BLOCK": 3, "_PIECE_BYTES": 4}):
        with pytest.MonkeyPatch.context() as patch:
            for name, size in sizes.items():
                patch.setattr(ranges, name, size)
                patch.setattr(base, "PART_BYTES", 5)
            source = Csv(files=str(path), **options)
            batches = [batch for part in source.parts(schema, ()) for batch in part.batches(schema, ())]
        columns = [[cell for batch in batches for cell in batch.values[name].to_pylist()] for name in names]
        found.append([list(row) for row in zip(*columns, strict=True)])
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize(
    ("options", "data", "expected"),
    [
        ({"header": False}, "1,x\n2,y\n", {"column_1": ["1", "2"], "column_2": ["x", "y"]}),
        ({"header": ("n", "t")}, "\ufeff1,x\n2,\"y\"\n", {"n": ["1", "2"], "t": ["x", "y"]}),
        ({"skip_lines": 2}, 'a "b\n,,,\nn,t\n1,x\n', {"n": ["1"], "t": ["x"]}),
        ({"skip_lines": 1, "header": ("n", "t"), "encoding": "windows-1252"}, "é\né,x\n".encode("windows-1252"), {"n": ["é"], "t": ["x"]}),
        ({"quote": None, "delimiter": "\t"}, 'n\tt\n"a\tb "c"\nd"\t\n', {"n": ['"a', 'd"'], "t": ['b "c"', None]}),
        ({"quote": "'"}, "n,t\n'a,\nb',\"c\n", {"n": ["a,\nb"], "t": ['"c']}),
        ({"comment": "#"}, '# "x\n\n#,\nn,t\n1,"#\n# a"\n# "b\n2,y\n#', {"n": ["1", "2"], "t": ["#\n# a", "y"]}),
        ({"comment": "#"}, "n\n1\n# a\n\n2\n", {"n": ["1", "2"]}),
        ({"trim": True}, 'n , t\n 1 , "a, ""b"" \n c" \n\t, \n"" ,d\n', {"n": ["1", None, ""], "t": ['a, "b" \n c', None, "d"]}),
        ({"trim": True}, '"n" , "x\n(cm)" ,t\n1, "a\nb" ,c\n', {"n": ["1"], "t": ["c"]}),
        ({"trim": True, "header": ("n", "t")}, '1, "a\nb" \n"2" ,c\n', {"n": ["1", "2"], "t": ["a\nb", "c"]}),
        ({"delimiter": "whitespace"}, ' n  t\t"u v"\n  1 \t 2 "x  y"  \n3 4 z\n', {"n": ["1", "3"], "t": ["2", "4"], "u v": ["x  y", "z"]}),
        ({}, "n,t,n,n,n_2\n1,2,3,4,5\n", {"n": ["1"], "n_3": ["3"], "n_4": ["4"], "n_2": ["5"]}),
    ],
)  # fmt: skip
def test_options_tell_where_rows_and_cells_are(tmp_path, options, data, expected):
    rows = cells_of(tmp_path, data, *expected, **options)
    assert [list(column) for column in zip(*rows, strict=True)] == list(expected.values())


@given(
    st.lists(st.lists(st.sampled_from(["", "a", " b", "# c", 'd"', "e,\n#f", '"', " "]), min_size=2, max_size=2), max_size=8),
    st.lists(st.sampled_from(["#", '# "', '#,"x', "#a,b"]), max_size=8),
)  # fmt: skip
def test_comments_and_spaces_are_left_out_as_by_hand(tmp_path_factory, rows, comments):
    def written_cell(number: int, cell: str) -> str:
        must = set(cell) & set('",\n') or cell.strip() != cell or (number == 0 and cell[:1] == "#")
        return '"' + cell.replace('"', '""') + '"' if must else cell

    lines = [" , ".join(map(written_cell, range(2), row)) for row in rows]
    text = "n,t\n"
    for number, line in enumerate(lines):
        text += "".join(f"{comment}\n" for comment in comments[number : number + 1]) + f"{line}\n"
    expected = [[(cell.strip() or None) for cell in row] for row in rows]
    assert cells_of(tmp_path_factory.mktemp("csv"), text, "n", "t", comment="#", trim=True) == [
        [None if cell in (None, "") else cell for cell in row] for row in expected
    ]


@pytest.mark.parametrize(
    ("options", "text", "expected"),
    [
        ({"trim": True}, 'n,t\n1,x\n2, "y" z\n', ":3: expected a delimiter or a line break after a quoted cell, got `\"y\" z`"),
        ({"trim": True}, '"n", "t\nu" v\n1,2\n', ":2: expected a delimiter or a line break after a quoted cell, got `\"t\\nu\" v`"),
        ({"header": ("n", "t")}, "1,x,2\n", ":1: expected 2 cells, as in `header` of the source, got 3: `1,x,2`"),
        ({"header": False}, "1,x\n2\n", ":2: expected 2 cells, as in the first row, got 1: `2`"),
        (
            {"comment": "#", "trim": True},
            "n,t\n1,2\n  # b\n",
            ":3: expected 2 cells, as in the header, got 1: `# b` (a comment has no spaces before `#`)",
        ),
        ({"comment": "#"}, "# a\nn,t\n# b\n1\n", ":4: expected 2 cells, as in the header, got 1: `1`"),
        ({"skip_lines": 9}, "n,t\n", ":2: expected a header with the names of the columns, got the end of the file (`skip_lines: 9` skips all of its lines)"),
    ],
)  # fmt: skip
def test_an_error_names_the_line_of_the_file(tmp_path, options, text, expected):
    names = ("column_1", "column_2") if options.get("header") is False else ("n", "t")
    with pytest.raises(rs.RecordError) as caught:
        cells_of(tmp_path, text, *names, **options)
    assert str(caught.value).startswith(f"{tmp_path}/rows.csv{expected}")


@pytest.mark.parametrize(
    ("feature", "options", "expected"),
    [
        ("text", {"lists": {"t": "|"}}, "lists.t: expected a feature of lists, such as `kind: var_len`, got text"),
        ("{kind: var_len, dtype: float32}", {"lists": {"t": ","}, "decimal": ","}, "lists.t: expected a text that no number has, as `,` is in numbers, got `,`"),
        ("float32", {"currency": "e"}, "currency: expected the sign of a currency, such as $, € or USD, got `e`"),
    ],
)  # fmt: skip
def test_options_that_would_read_another_value_are_refused(tmp_path, feature, options, expected):
    schema = rs.Schema.loads(f"schema: s\nfeatures: {{t: {feature}}}")
    with pytest.raises(rs.SpecError) as caught:
        written(tmp_path, "t\n1e5\n", schema, **options)
    assert str(caught.value).removeprefix(f"{tmp_path}/rows.csv:1: ") == expected


@pytest.mark.parametrize("source", [Csv, Parquet])
def test_a_column_of_the_file_and_of_its_folder_is_noted(tmp_path, source):
    path = tmp_path / f"c=DE/rows.{source.__name__.lower()}"
    path.parent.mkdir()
    rows = pa.table({"c": ["US"]})
    pa.csv.write_csv(rows, path) if source is Csv else pq.write_table(rows, path)
    given = source(files=str(path))
    rs.write(given, rs.Schema.loads("schema: s\nfeatures: {c: string}"), tmp_path / "data")
    assert given.notes == ["c: read from the files, not from their folders, such as `c=DE`"]
    assert rs.open(tmp_path / "data")[0]["c"] == b"US"


@pytest.mark.parametrize("source", [Csv, Parquet])
def test_zeros_before_a_number_in_the_name_of_a_folder(tmp_path, source):
    rows = pa.table({"n": [1]})
    for month in ("01", "12"):
        path = tmp_path / f"in/month={month}/rows.{source.__name__.lower()}"
        path.parent.mkdir(parents=True)
        pa.csv.write_csv(rows, path) if source is Csv else pq.write_table(rows, path)
    for kind, expected in {"int64": [1, 12], "text": [b"01", b"12"]}.items():
        schema = rs.Schema.loads(f"schema: s\nfeatures: {{n: int64, month: {kind}}}")
        rs.write(source(files=str(tmp_path / "in")), schema, tmp_path / "data", force=True)
        assert [row["month"] for row in rs.open(tmp_path / "data")] == expected


def test_names_given_twice_are_noted(tmp_path):
    (tmp_path / "rows.csv").write_text("n,n\n1,2\n")
    source = Csv(files="rows.csv").open(tmp_path)
    rs.write(source, rs.Schema.loads("schema: s\nfeatures: {n: int64, n_2: int64}"), tmp_path / "data")
    assert source.notes == ["columns of one name are numbered: n, n_2"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"delimiter": '"'}, "delimiter: expected one ASCII character, no quote and no line break; or whitespace, got '\"'"),
        ({"quote": ","}, "quote: expected one ASCII character that is no space and no delimiter, or null, got ','"),
        ({"comment": "//"}, "comment: expected one ASCII character that is no space and no delimiter, or null, got '//'"),
        ({"skip_lines": -1}, "skip_lines: expected at least 0, got -1"),
        ({"header": ("a", "a")}, "header: expected every name once, got `a` again"),
        ({"header": ()}, "header: expected the names of the columns, true or false, got no names"),
    ],
)  # fmt: skip
def test_options_of_a_dialect_are_checked(options, expected):
    with pytest.raises(rs.SpecError) as caught:
        Csv(files="rows.csv", **options)
    assert str(caught.value) == expected
