"""Schemas of CSV and Parquet files: what `inferring.rules` says of a column, by `inferring.column_profile`, is what a
build makes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow
import pytest
import yaml

import recordspec as rs
from recordspec.inferring.infer import infer as inferred
from recordspec.progress import Progress
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.parquet import Parquet
from shell import run_here as run

TABLE = """\
id,price,city,comment,paid,empty
1,1.5,Rome,x1,true,
2,,Paris,,false,
"""


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_tables(tmp_path, suffix):
    path = tmp_path / f"rows{suffix}"
    lines = TABLE.splitlines()
    text = "\n".join([lines[0], *lines[1:] * 50]) + "\n"
    if suffix == ".parquet":
        import io

        from pyarrow import csv, parquet

        options = csv.ConvertOptions(strings_can_be_null=True)
        parquet.write_table(csv.read_csv(io.BytesIO(text.encode()), convert_options=options), path)
    else:
        path.write_text(text.replace(",", "\t") if suffix == ".tsv" else text)
    found = inferred([str(path)], None)
    assert found.rows == 100
    assert found.schema == rs.Schema.loads("""
schema: rows
features:
  id: int64
  price: {description: missing in 50 of 100, dtype: float32, default: 0.0, with_missing: true}
  city: {kind: label, names: [Paris, Rome]}
  comment: {kind: fixed_len, description: missing in 50 of 100, dtype: string, default: ""}
  paid: {kind: tensor, dtype: bool}
""")
    assert found.notes == (
        "price: missing in 50 of 100 rows and reads as its default, with price_missing true",
        "comment: missing in 50 of 100 rows and reads as its default",
        "empty: always empty, in 100 rows: its type is unknown, so it is left out",
    )


def test_identifiers_stored_as_floats_are_noted(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(
        "tract,all,part,huge\n"
        ",16777216.0,0.5,1e300\n17031840300.0,17031840300.0,16777217,0.1\n17031320100.0,2,3,\n"
    )
    found = inferred([str(path)], None)
    expected = "{schema: s, features: {tract: {description: missing in 1 of 3, dtype: int64, default: 0, with_missing: true}}}"
    assert found.schema.names["tract"] == rs.Schema.loads(expected).names["tract"]
    rows = Csv(files="rows.csv").open(tmp_path)
    rs.write(rows, found.schema.only(["tract"]), tmp_path / "data", progress=False)
    stored = next(iter(rs.read(tmp_path / "data/train-*", found.schema.only(["tract"]), batch=3)))
    assert stored["tract"].numpy().tolist() == [0, 17031840300, 17031320100]
    assert found.notes == (
        "tract: missing in 1 of 3 rows and reads as its default, with tract_missing true",
        "tract: integers, some with `.0`, which float32 would round: kept as int64",
        "all: integers, some with `.0`, which float32 would round: kept as int64",
        "part: numbers that float32 does not hold: kept as float64",
        "huge: missing in 1 of 3 rows and reads as its default",
        "huge: numbers that float32 does not hold: kept as string",
    )


def test_digits_with_leading_zeros_are_text(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("zip,text,number,zero\n10115,01x,-1.05,0\n01067,02,00.5,-1\n")
    assert inferred([str(path)], None).notes == (
        "zip: digits with leading zeros or a plus, which an integer loses: text",
    )


CELLS = {
    "a word and 1": (["unknown", "1"], {"kind": "text"}),
    "nan": (["1", "nan", "-Infinity"], {"dtype": "float32"}),
    "with a point": (["1", "2.0"], {"dtype": "float32"}),
    "with a blank": (["1", " 2"], {"kind": "text"}),
    "with a sign": (["-7", "-0"], {"dtype": "int64"}),
    "with a plus": (["+491711", "+5", "7"], {"kind": "text"}),
    "with both signs": (["+4", "-3", "7"], {"dtype": "int64"}),
    "floats with a plus": (["+1.5", "-2"], {"dtype": "float32"}),
    "late": (["1"] * 70000 + ["x"], {"kind": "label", "names": ["1", "x"]}),
    "bool": (["true", "FALSE"], {"kind": "tensor", "dtype": "bool"}),
    "bool and a gap": (["true", ""], {"dtype": "string", "default": ""}),
    "bool and numbers": (["true", "1"], {"kind": "text"}),
    "int and a gap": (["1", "", '""'], {"dtype": "int64", "default": 0, "with_missing": True}),
    "leading zeros": (["007", "", "7"], {"dtype": "string", "default": ""}),
    "classes with leading zeros": (["01", "02"] * 10, {"kind": "label", "names": ["01", "02"]}),
    "zeros": (["0", "-0", "10"], {"dtype": "int64"}),
    "int64": ([str(2**63 - 1), str(-(2**63))], {"dtype": "int64"}),
    "beyond int64": (["1", str(2**63)], {"kind": "text"}),
    "beyond float32": (["1.5", "1e39"], {"kind": "tensor", "dtype": "float64"}),
    "whole beyond 2^53": (["9007199254740994.0", "1"], {"kind": "tensor", "dtype": "float64"}),
    "whole up to 2^53": (["9007199254740991.0", "1", "9007199254740993"], {"dtype": "int64"}),
    "whole beyond 2^53 and a gap": (["-9007199254740994.0", ""], {"dtype": "string", "default": ""}),
    "beyond float64 with a point": (["12345678901234567.0", "1"], {"kind": "text"}),
    "a power of two": (["18014398509481984.0", "1"], {"dtype": "float32"}),
    "a power of two and others": (
        ["9007199254740992.0", "16777217.0"],
        {"kind": "tensor", "dtype": "float64"},
    ),
    "dates": (["2024-01-01", "2024-01-02"], {"dtype": "int64", "date": "days"}),
    "an empty text": (["a", '""'], {"kind": "text"}),
    "classes": (["a", "b"] * 10, {"kind": "label", "names": ["a", "b"]}),
    "classes and an empty text": (["a", '""'] * 10, {"kind": "text"}),
    "NULL": (["NULL"] * 12 + ["x"] * 12, {"kind": "label", "names": ["NULL", "x"]}),
}


@pytest.mark.parametrize("sort", CELLS)
def test_a_column_of_cells_is_what_all_of_them_are_and_builds(tmp_path, sort):
    cells, options = CELLS[sort]
    (tmp_path / "rows.csv").write_text("\n".join(["x,n", *(f"{cell},1" for cell in cells)]) + "\n")
    found = inferred([str(tmp_path / "rows.csv")], None)
    assert found.rows == len(cells)
    said = {"description": x.description} if (x := found.schema.names["x"]).description else {}
    loaded = {"schema": "rows", "features": {"x": options | said, "n": "int64"}}
    assert found.schema == rs.Schema.loads(yaml.safe_dump(loaded, sort_keys=False))
    rows = Csv(files="rows.csv").open(tmp_path)
    report = rs.write(rows, found.schema, tmp_path / "data", progress=False)
    assert report.rows("train") == len(cells)


def parquet(path: Path, **columns) -> Path:
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), path)
    return path


TYPES = {
    "uint64": (pyarrow.array([2**63], pyarrow.uint64()), {"kind": "tensor", "dtype": "uint64"}),
    "small uint64": (pyarrow.array([1], pyarrow.uint64()), {"dtype": "int64"}),
    "bools": (pyarrow.array([True, False]), {"kind": "tensor", "dtype": "bool"}),
    "large floats": (pyarrow.array([1e300]), {"kind": "tensor", "dtype": "float64"}),
    "half": (pyarrow.array(np.ones(1, np.float16)), {"dtype": "float32"}),
    "lists": (pyarrow.array([[1, 2]]), {"kind": "var_len", "dtype": "int64"}),
    "large texts": (pyarrow.array([["a"]], pyarrow.list_(pyarrow.large_string())), {"kind": "var_len", "dtype": "string"}),
    "lists of one size": (pyarrow.array([[1, 2]], pyarrow.list_(pyarrow.int64(), 2)), {"dtype": "int64", "shape": [2]}),
    "classes": (pyarrow.array(["a", "b"] * 10).dictionary_encode(), {"kind": "label", "names": ["a", "b"]}),
    "an empty text": (pyarrow.array(["", "b"] * 10), {"kind": "text"}),
}  # fmt: skip


@pytest.mark.parametrize("sort", TYPES)
def test_a_column_of_parquet_has_its_type_and_builds(tmp_path, sort):
    column, options = TYPES[sort]
    path = parquet(tmp_path / "rows.parquet", x=column)
    found = inferred([str(path)], None)
    assert found.schema == rs.Schema.loads(yaml.safe_dump({"schema": "rows", "features": {"x": options}}))
    rows = Parquet(files="rows.parquet").open(tmp_path)
    assert rs.write(rows, found.schema, tmp_path / "data", progress=False).rows("train") == len(column)


def test_columns_that_no_feature_holds_are_noted(tmp_path):
    path = parquet(
        tmp_path / "rows.parquet",
        gaps=pyarrow.array([[1, None], [2]]),
        deep=pyarrow.array([[[True]], [[False], []]]),
        bools=pyarrow.array([[True, False], None]),
        n=[1, 2],
    )
    found = inferred([str(path)], None)
    assert list(found.schema.names) == ["n"]
    out = "which no feature holds, so it is left out"
    assert found.notes == (
        "gaps: list<element: int64> with 1 item that is missing (`{kind: var_len, dtype: int64, "
        f"missing_item: -1}}` stores -1 in its place), {out}",
        f"deep: list<element: list<element: bool>>, {out}",
        "bools: list<element: bool> that is missing in 1 of 2 rows (an empty list in its place makes it "
        f"`kind: tensor`), {out}",
    )


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("a,b\n", 1, "rows.csv: expected a column with values, got none"),
        (",\n1,2\n", 2, 'rows.csv:1: "": expected one column ``, got several'),
        ("a,b\n1\n", 1, "rows.csv:2: expected 2 cells, as in the header, got 1: `1`"),
        ("a\n1\n\x81\n", 1, "rows.csv:3: expected UTF-8 text, got the byte 0x81 (`encoding` of the source names another, such as windows-1252 or utf-16)"),
        ("", 1, "rows.csv:1: expected a header with the names of the columns, got an empty file"),
    ],
)  # fmt: skip
def test_an_invalid_table_is_an_error_of_one_line(tmp_path, text, status, said):
    (tmp_path / "rows.csv").write_bytes(text.encode("latin-1"))
    done = run("infer", "rows.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[0]) == (status, "", said)


DIGITS = [str(number % 3) for number in range(30)]
NAMES = [f"name {number % 25:02}" for number in range(500)]


@pytest.mark.parametrize(
    ("column", "cells", "feature", "notes"),
    [
        ("label", DIGITS, {"kind": "label", "names": ["0", "1", "2"]}, ("label: classes 0 to 2: replace these numbers with the names of the classes",)),
        ("count", DIGITS, {"dtype": "int64"}, ("count: integers from 0 to 2: if they are classes, `kind: label` takes their names",)),
        ("count", DIGITS[:29], {"dtype": "int64"}, ()),
        ("label", [f"{cell}.0" for cell in DIGITS], {"kind": "label", "names": ["0", "1", "2"], "encoding": "float"}, (
            "label: floats, all whole, from 0 to 2, 3 different: classes, by the name; replace these numbers with the names of the classes",
        )),
        ("label", ["00", "01"] * 20, {"kind": "label", "names": ["00", "01"]}, (
            "label: digits with leading zeros or a plus, which an integer loses: text",
        )),
        ("label", [str(number + 1) for number in range(20)], {"dtype": "int64"}, ()),
        ("category", NAMES, {"kind": "label", "names": NAMES[:25]}, ()),
        ("street", NAMES, {"kind": "text"}, ()),
        ("category", NAMES[:240], {"kind": "text"}, ()),
    ],
)  # fmt: skip
def test_classes_of_a_table_are_found_as_those_of_records_are(tmp_path, column, cells, feature, notes):
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([f"{column},n", *(f"{cell},-1" for cell in cells)]) + "\n")
    found = inferred([str(path)], None)
    expected = {"schema": "rows", "features": {column: feature, "n": "int64"}}
    assert found.schema == rs.Schema.loads(yaml.safe_dump(expected, sort_keys=False))
    assert found.notes == notes
    report = rs.write(Csv(files="rows.csv").open(tmp_path), found.schema, tmp_path / "data", progress=False)
    assert report.rows("train") == len(cells)


def test_numbers_of_parquet_are_classes_by_their_name(tmp_path):
    path = parquet(tmp_path / "rows.parquet", label=[0, 1] * 10, y=[0, 1, 2, 2000] * 5)
    names = inferred([str(path)], None).schema.names
    floats = parquet(tmp_path / "floats.parquet", label=[0.0, 1.0] * 10)
    assert inferred([str(floats)], None).schema.names["label"].encoding == "float"
    assert (names["label"].kind, names["label"].traits.class_names, names["y"].kind) == (
        "label",
        ("0", "1"),
        "fixed_len",
    )


def test_a_sample_of_a_table_is_its_first_rows(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("n\n" + "1\n" * 40 + '""\n' * 10)
    assert inferred([str(path)], None, sample=40).schema.names["n"].default is None
    found = inferred([str(path)], None, sample=45)
    assert (found.rows, found.notes) == (
        45,
        ("n: missing in 5 of 45 rows and reads as its default, with n_missing true",),
    )


def test_a_file_that_is_no_table_is_an_error_of_one_line(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"no parquet")
    done = run("infer", "x.parquet", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("x.parquet: expected a Parquet file that pyarrow reads, got ")


def test_columns_of_which_each_row_has_another_word_identify_rows(tmp_path):
    table = {
        "ticket": [f"T-{number:03}" for number in range(30)],
        "customer_no": [f"{number:05}" for number in range(30)],
        "twice": [f"T-{number // 2:03}" for number in range(30)],
        "subject": [f"the case {number}" for number in range(30)],
        "kind": ["bug", "question", "order"] * 10,
    }
    (tmp_path / "rows.csv").write_text(
        "\n".join([",".join(table), *map(",".join, zip(*table.values(), strict=True))]) + "\n"
    )
    for given in (tmp_path / "rows.csv", table):
        found = rs.infer(given, "rows")
        assert found.no_inputs == dict.fromkeys(("ticket", "customer_no"), "it identifies rows")
        assert found.free_text == ("subject",)
        assert found.notes[-1] == (
            "subject: texts of several words, mostly different: `fit.encode` takes them as `words`"
        )
    done = run("infer", "rows.csv", "--out", "s.yaml", "--config", "c.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    config = (tmp_path / "c.yaml").read_text()
    assert "  inputs:  # without ticket, customer_no: it identifies rows\n  - twice\n  - subject\n" in config
    assert "    subject:\n      as: words\n      max_tokens: 20000\n" in config
    assert "    twice:\n      as: one_hot\n      max_tokens: 1000\n" in config


def test_missing_texts_have_no_words_which_is_noted(tmp_path):
    rows = [{"subject": None if number == 7 else f"the case {number}"} for number in range(30)]
    assert rs.infer(rows).notes == (
        "subject: missing in 1 of 30 rows and reads as its default",
        "subject: texts of several words, mostly different: `fit.encode` takes them as `words`",
        "subject: a missing text has no words, whose mean is NaN: `default: none` is a word",
    )


def test_numbers_and_dates_that_no_build_reads_are_noted(tmp_path):
    table = {
        "cost": ["$12", "$1", "$3", "$0.5"],
        "day": ["31/01/2026", "1/2/2026", "28.02.2026", "01-03-2026 10:30"],
        "iso": ["2026-01-31", "2026-02-01", "2026-02-28", "2026-03-01"],
        "code": ["1.2.3", "12/3", "4-4", "7"],
        "phone": ["555-1234", "555-1235", "555-1236", "555-1237"],
        "mixed": ['"1,5"', '"2.75"', '"0,1"', '"3,0"'],
        "saldo": ['"1.234,56 €"', '"€ 7,50"', "12.345.678 €", '"-0,5\u00a0€"'],
        "konto": ['"1 234,50-"', "7", '"1.234,5"', '"2,5-"'],
        "short": ["31.12.24", "1/2/24 10:30", "01.01.99", "9.9.00"],
        "version": ["1.2.30", "1.2.31", "1.2.32", "1.40.1"],
    }
    rows = [",".join(table), *(",".join(row) for row in zip(*table.values(), strict=True))]
    (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n")
    notes = [note for note in rs.infer(tmp_path / "rows.csv").notes if "missing" not in note]
    numbers, dates = (
        f"are inferred as text: a build reads only the notation `{one}`" for one in ("1234.5", "2026-01-31")
    )
    assert notes == [
        'cost: numbers such as `$12` are inferred as text: `currency: "$"` of the source reads them',
        f"day: dates such as `31/01/2026` {dates}",
        f"mixed: numbers such as `1,5` {numbers}",
        "saldo: numbers such as `1.234,56 €` are inferred as text: "
        '`currency: "€"` of the source reads them (beside `thousands` and `decimal`)',
        "konto: numbers such as `1 234,50-` are inferred as text: "
        '`negative: "5-"` of the source reads them (beside `thousands` and `decimal`)',
        "short: dates such as `31.12.24` are inferred as text: "
        '`dates: "%d.%m.%y"`, with the years 1969 to 2068, of the source reads them',
    ]


def test_amounts_are_no_words(tmp_path):
    cells = [f"{number}.000,50 €" for number in range(1, 40)]
    (tmp_path / "rows.csv").write_text("\n".join(["saldo;y", *(f"{cell};{cell[0]}" for cell in cells)]))
    found = rs.infer(tmp_path / "rows.csv")
    note = (
        "saldo: numbers such as `1.000,50 €` are inferred as text: "
        '`currency: "€"` of the source reads them (beside `thousands` and `decimal`)'
    )
    assert (found.notes, found.free_text) == ((note,), ())


def test_texts_that_stand_for_gaps_among_numbers_are_noted(tmp_path):
    table = {
        "size": ["1.5", "none", "/", "-3"] * 5,
        "half": ["1", "x", "y", "2", "z"] * 4,
        "street": ["1", "2", "3a", "4"] * 5,
        "city": ["Rome"] * 20,
        "weight": [*map(str, range(19)), "about 5"],
        "ids": ['"[1, null]"', "[]", "[3]", "[4]"] * 5,
        "names": ["['a']", "[]"] * 10,
    }
    (tmp_path / "rows.csv").write_text(
        "\n".join([",".join(table), *map(",".join, zip(*table.values(), strict=True))]) + "\n"
    )
    assert rs.infer(tmp_path / "rows.csv").notes == (
        "size: numbers, but for `/`, `none` (10 cells of the first rows, first on line 3): if that means missing, `missing` of "
        "the source says so",
        "weight: numbers, but for `about 5` (1 cell of the first rows, first on line 21): if that means missing, `missing` of the "
        "source says so",
        "weight: texts of several words, mostly different: `fit.encode` takes them as `words`",
        "ids: texts such as `[1, null]` are lists, kept as text: `lists: {ids: json}` of the source, and "
        "`{kind: var_len, dtype: int64, missing_item: -1}` as the feature, read them",
        "names: texts such as `['a']` are lists, kept as text: the source reads lists without brackets, "
        '`lists: {names: ","}`, and in JSON, `lists: {names: json}`',
    )


def test_views_of_strings_are_strings():
    rows = {"text": ["a", "b c", None], "lists": [["a"], [], ["b", "c"]]}
    plain = pyarrow.table({"text": pyarrow.array(rows["text"]), "lists": pyarrow.array(rows["lists"])})
    views = pyarrow.table(
        {
            "text": pyarrow.array(rows["text"], pyarrow.string_view()),
            "lists": pyarrow.array(rows["lists"], pyarrow.list_(pyarrow.string_view())),
        }
    )
    assert rs.infer(views).schema == rs.infer(plain).schema


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_progress_is_of_the_rows_that_are_read(tmp_path, name):
    text = "a,b\n1,2\n3,4\n" if name.endswith("csv") else '{"a": 1}\n{"a": 3}\n'
    (tmp_path / name).write_text(text)
    told: list[int] = []
    progress = Progress(show=False)
    progress.advance = lambda rows, size=0: told.append(rows)
    rs.infer(str(tmp_path / name), progress=progress)
    assert told == [2]


def test_lists_in_cells_are_noted(tmp_path):
    rows = [f"{'a|b' if row % 2 else 'a'},{row} 2 3,$1;{row},some words | or" for row in range(40)]
    (tmp_path / "rows.csv").write_text("tags,pixels,money,prose\n" + "\n".join(rows) + "\n")
    notes = [note for note in rs.infer(tmp_path / "rows.csv").notes if "lists" in note]
    assert notes == [
        'tags: texts such as `a|b` may be lists: `lists: {tags: "|"}` of the source, and '
        "`{kind: var_len, dtype: string}` as the feature, read them",
        'pixels: texts such as `0 2 3` may be lists: `lists: {pixels: " "}` of the source, and '
        "`{kind: var_len, dtype: int64}` as the feature, read them",
    ]


def test_amounts_of_other_notations_have_a_way_out(tmp_path):
    cells = {
        "loss": "(1,234.50)",
        "minus": "\u22125",
        "lakh": "\u20b912,34,567.50",
        "big": "6,807e+10",
        "float": "1.5",
    }
    (tmp_path / "rows.csv").write_text(";".join(cells) + "\n" + f"{';'.join(cells.values())}\n" * 3)
    found = rs.infer(tmp_path / "rows.csv")
    ways = {
        note.partition(":")[0]: note.partition("as text: ")[2] for note in found.notes if "as text: " in note
    }
    beside = " (beside `thousands` and `decimal`)"
    assert ways == {
        "loss": f'`negative: "(5)"` of the source reads them{beside}',
        "minus": '`negative: "\u22125"` of the source reads them',
        "lakh": f'`currency: "\u20b9"` of the source reads them{beside}',
    }
    assert [option.name for option in found.options] == ["delimiter"]


def test_a_footer_with_all_cells_is_noted_with_its_line(tmp_path):
    path = tmp_path / "sales.csv"
    days = [f"2024-01-{day:02d},{day},{day}.5" for day in range(1, 31)]
    note = (
        "source: line {}, the last one, of sales.csv may be a footer, `Total,5,17.3`: day has dates on all other "
        "lines that were compared (remove the line; or, if the schema has dates for day, `invalid: quarantine` of "
        "`write` leaves the row out)"
    )
    path.write_text("\n".join(["day,n,price", *days, "Total,5,17.3"]))
    assert inferred([str(path)], None).notes == (note.format(32),)
    path.write_bytes("\r\n".join(["day,n,price", *days * 20, "Total,5,17.3", "", ""]).encode())
    found = inferred([str(path)], None, sample=10)
    assert found.notes == (note.format(602),)
    rows = Csv(files="sales.csv").open(tmp_path)
    built = rs.write(rows, found.schema, tmp_path / "data", invalid="quarantine", progress=False)
    assert (built.rows("train"), built.rejected) == (600, 1)
    for last in ("2024-02-01,x,1", "NA,5,1.5"):  # a column of the rows before, too; a missing value
        path.write_text("\n".join(["day,n,price", "2024-01-01,x,1", *days, last]) + "\n")
        assert not any("footer" in note for note in inferred([str(path)], None).notes)
