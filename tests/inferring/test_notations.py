"""Options of a CSV source that `infer` proposes: where the cells allow one reading alone, with the reason, and so that
the config builds."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
from decimal import Decimal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from in_parts import MANY, rows_of

import recordspec as rs
from recordspec.inferring.infer import infer_files
from recordspec.inferring.inferred_config import config_text
from recordspec.inferring.input_files import input_files
from recordspec.schema.inferred import Inferred
from recordspec.writing.sources.csv import Csv


def inferred_of(folder, table: dict[str, list[str]], encoding: str = "utf-8") -> Inferred:
    """What is inferred of a table whose config builds."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=";")
    writer.writerows([[*table], *zip(*table.values(), strict=True)])
    (folder / "rows.csv").write_bytes(text.getvalue().encode(encoding))
    inferred = rs.infer(folder / "rows.csv")
    options = {option.name: option.value for option in inferred.options}
    rows = rows_of(Csv(files="rows.csv", **options).open(folder), inferred.schema)
    assert len(rows) == len(next(iter(table.values())))
    return inferred


SAYS = "are inferred as text"
TABLES = {
    "decimals": ({"a": ["1,5", "2", "-0,25"]}, {"decimal": ("," , "1,5 in 2 of 3 cells of a")}, []),
    "both": ({"a": ["1.234,5", "7"], "b": ["1,5", "0,5"]}, {"decimal": (",", "1.234,5 in 1 of 2 cells of a, and in 1 more column"), "thousands": (".", "1.234,5 in 1 of 2 cells of a")}, []),
    "two points": ({"a": ["1.234.567", "7"]}, {"decimal": (",", "1.234.567 in 1 of 2 cells of a"), "thousands": (".", "1.234.567 in 1 of 2 cells of a")}, []),
    "English": ({"a": ["1,234.50", "1,234"]}, {"thousands": (",", "1,234.50 in 2 of 2 cells of a")}, []),
    "Swiss": ({"a": ["1'234.50", "1\u2019234"]}, {"thousands": ("'", "1'234.50 in 2 of 2 cells of a")}, []),
    "French": ({"a": ["1\u202f234,50", "1 234"]}, {"decimal": (",", "1\u202f234,50 in 1 of 2 cells of a"), "thousands": (" ", "1\u202f234,50 in 2 of 2 cells of a")}, []),
    "percent": ({"a": ["5%", "12.5 %"]}, {"percent": (True, "5% in 2 of 2 cells of a")}, []),
    "settled by another": ({"a": ["1,234", "2,500"], "b": ["1.5", "2"]}, {"thousands": (",", "1,234 in 2 of 2 cells of a")}, []),
    "settled by a zero": ({"a": ["1,234", "0,500"]}, {"decimal": (",", "1,234 in 2 of 2 cells of a")}, []),
    "point or thousands": ({"a": ["1.234", "2.500"], "n": ["1", "2"]}, {}, ['a: `1.234` is read with a decimal point: if the point divides thousands, `decimal: ","` and `thousands: "."` of the source say so']),
    "a point": ({"a": ["1.234", "0.500"], "n": ["1", "2"]}, {}, []),
    "comma or thousands": ({"a": ["1,234", "2,500"], "b": ["5 %", "6 %"]}, {"percent": (True, "5 % in 2 of 2 cells of b")}, [f'a: numbers such as `1,234` {SAYS}: `decimal: ","` or `thousands: ","` of the source says which they are']),
    "contradictions": ({"n": ["1", "2"], "a": ["1,5", "2,5"], "b": ["1.5", "2.5"]}, {}, ["a and b: numbers in different notations, `1,5`, `1.5`: no option reads both"]),
    "words": ({"a": ["1", "k.A.", "-", "2"], "t": ["x", "y", "z", "u"]}, {"missing": (["k.A.", "-"], '"k.A.", "-" in 2 of 4 cells of a; all other cells are numbers')}, []),
    "words elsewhere": ({"a": ["1", "NA"], "t": ["NA", "DE"]}, {"missing": ({"a": ["NA"]}, '"NA" in 1 of 2 cells of a; all other cells are numbers; not in t, which is text')}, []),
    "words of text": ({"t": ["NA", "DE"], "u": ["-", "-"]}, {}, []),
    "dates": ({"d": ["31.1.2026", "-"]}, {"missing": (["-"], '"-" in 1 of 2 cells of d; all other cells are dates'), "dates": ("%d.%m.%Y", "31.1.2026 in 1 of 2 cells of d")}, []),
    "ISO dates": ({"d": ["2026-01-31", "NA"]}, {"missing": (["NA"], '"NA" in 1 of 2 cells of d; all other cells are dates')}, []),
    "dates and ISO dates": ({"d": ["31.1.2026", "1.2.2026"], "e": ["2026-01-31", "2026-01-01"]}, {"dates": ({"d": "%d.%m.%Y"}, "31.1.2026 in 2 of 2 cells of d")}, []),
    "times": ({"d": ["1/31/2026 1:30 PM", "2/1/2026 12:00 am"]}, {"dates": ("%m/%d/%Y %I:%M %p", "1/31/2026 1:30 PM in 2 of 2 cells of d")}, []),
    "day or month": ({"d": ["1/2/2026", "3/4/2026"]}, {}, [f'd: dates such as `1/2/2026` {SAYS}: `dates: "%d/%m/%Y"` or `dates: "%m/%d/%Y"` of the source says which they are']),
    "the day of another": ({"d": ["1/2/2026", "3/4/2026"], "e": ["31/1/2026", "1/1/2026"]}, {"dates": ("%d/%m/%Y", "1/2/2026 in 2 of 2 cells of d, and in 1 more column")}, []),
    "no date": ({"d": ["30.2.2026", "1.1.2026"]}, {}, [f"d: dates such as `30.2.2026` {SAYS}: a build reads only the notation `2026-01-31`"]),
    "leading zeros": ({"a": ["01.234", "1.234"]}, {}, []),
    "plain": ({"a": ["1", "2.5"], "t": ["a,b", "1-2"], "e": ["", ""]}, {}, []),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_an_option_is_proposed_where_one_reading_is_left(tmp_path, name):
    table, options, notes = TABLES[name]
    inferred = inferred_of(tmp_path, table | {"last": ["x"] * len(next(iter(table.values())))})
    proposed = {option.name: (option.value, option.reason) for option in inferred.options}
    assert proposed.pop("delimiter") == (";", "")
    assert proposed == options
    told = [note for note in inferred.notes if "missing in" not in note and "always empty" not in note]
    said = [f"source: `{option}: " for option in options]
    assert [note for note in told if not note.startswith("source: ")] == notes
    assert [note[: len(start)] for note, start in zip(told[: len(said)], said, strict=True)] == said


def test_the_encoding_is_proposed(tmp_path):
    table = {"city": ["Köln", "Café"], "n": ["1", "2"]}
    for encoding, expected in {
        "windows-1252": ("windows-1252", "the byte 0xf6 on line 2 of rows.csv is no UTF-8; in this encoding it is ö: check the texts"),
        "utf-16": ("utf-16", "by the first bytes of the file"),
        "utf-8-sig": None,
    }.items():  # fmt: skip
        inferred = inferred_of(tmp_path, table, encoding)
        proposed = {option.name: (option.value, option.reason) for option in inferred.options}
        assert proposed.get("encoding") == expected
        assert inferred.schema.names.keys() == {"city", "n"}


@pytest.mark.parametrize(
    ("cell", "shown"),
    [("37\u00a0554", "0xa0 on line 2 of rows.csv is no UTF-8; in this encoding it is a space that does not break a line"),
     ("Wort\u00adteil", "0xad on line 2 of rows.csv is no UTF-8; in this encoding it is a soft hyphen")],
)  # fmt: skip
def test_the_encoding_by_a_character_that_is_not_seen(tmp_path, cell, shown):
    inferred = inferred_of(tmp_path, {"a": [cell, "1"], "b": ["x", "y"]}, "windows-1252")
    proposed = {option.name: (option.value, option.reason) for option in inferred.options}
    assert proposed["encoding"] == ("windows-1252", f"the byte {shown}: check the texts")


@pytest.mark.parametrize(
    ("text", "options", "note"),
    [
        ("# by x\na,b,c\n1,2,3\n3,4,5\n5,6,7\n", ["comment"], "a line begins with it"),  # no skip_lines
        ("# by x\n#id, b\n1,2\n3,4\n5,6\n", ["comment"], "the comment `#id, b` has a cell for each column, and "
         "may be the header (`header: [id, b]` of the source names the columns)"),
    ],
)  # fmt: skip
def test_a_header_beside_comments(tmp_path, text, options, note):
    (tmp_path / "rows.csv").write_text(text)
    found = rs.infer(tmp_path / "rows.csv")
    assert [option.name for option in found.options] == options
    assert any(note in one for one in found.notes), found.notes


def test_a_config_has_the_reasons_as_comments(tmp_path):
    (tmp_path / "train.csv").write_bytes(b"preis;tag\n1.234,5;-\n7,5 %;31.12.2026\n")
    (tmp_path / "test.csv").write_bytes(b"preis;tag\n1,5;1.12.2026\n")
    files = input_files([str(tmp_path)])
    text = config_text(infer_files(files), tmp_path / "s.yaml", tmp_path / "c.yaml")
    options = """\
        delimiter: ;
        decimal: ','  # 1.234,5 in 3 of 3 cells of preis
        thousands: .  # 1.234,5 in 1 of 3 cells of preis
        percent: true  # 7,5 % in 1 of 3 cells of preis
        missing:  # "-" in 1 of 3 cells of tag; all other cells are dates
        - '-'
        dates: '%d.%m.%Y'  # 31.12.2026 in 2 of 3 cells of tag
"""
    assert text[text.index("    train:") : text.index("  shuffle:")] == (
        f"    train:\n      csv:\n        files: train.csv\n{options}"
        f"    test:\n      csv:\n        files: test.csv\n{options}"
    )
    infer_files(files).schema.dump(tmp_path / "s.yaml")
    (tmp_path / "c.yaml").write_text(text)
    assert rs.Pipeline.load(tmp_path / "c.yaml").build(progress=False).rows("train") == 2


def test_compressed_tables_are_inferred(tmp_path):
    (tmp_path / "rows.tsv.gz").write_bytes(gzip.compress(b"a\tb\n1\t2,5\n"))
    (tmp_path / "more.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n'))
    files = input_files([str(tmp_path / "rows.tsv.gz")])
    text = config_text(infer_files(files), tmp_path / "s.yaml", tmp_path / "c.yaml")
    assert yaml.safe_load(text)["write"]["source"] == {
        "csv": {"files": "rows.tsv.gz", "delimiter": "\t", "decimal": ","}
    }
    assert rs.infer(tmp_path / "more.jsonl.gz").schema.names.keys() == {"a"}
    (tmp_path / "rows.tsv.gz").unlink()
    assert input_files([str(tmp_path)]).source == "jsonl"


CELL = st.one_of(
    st.none(),
    st.decimals(-(10**7), 10**7, places=2),
    st.integers(-(10**7), 10**7).map(Decimal),
)


@pytest.mark.slow
@pytest.mark.newest
@given(
    prices=st.lists(CELL, min_size=3, max_size=9),
    marks=st.sampled_from([",", ".", ",.", ".,", ", ", ".'", ",'"]),
    word=st.sampled_from(["", "k.A.", "-", "?"]),
    days=st.lists(st.none() | st.dates(), min_size=9, max_size=9),
    form=st.sampled_from(["%d.%m.%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y-%m-%d"]),
)
@MANY
def test_what_is_proposed_reads_the_values_that_were_written(
    tmp_path_factory, prices, marks, word, days, form
):
    def number(price: Decimal) -> str:
        decimal, thousands = marks[0], marks[1:]
        text = f"{price:,}".translate(str.maketrans({",": thousands and "\0", ".": decimal}))
        return text.replace("\0", thousands) if thousands else text.replace("\0", "")

    table = {
        "price": [word if price is None else number(price) for price in prices],
        "day": [word if day is None else day.strftime(form.replace("%Y", f"{day.year:04}")) for day in days][: len(prices)],
        "last": ["x"] * len(prices),
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("csv")
    inferred = inferred_of(folder, table)
    names = inferred.schema.names
    options = {option.name: option.value for option in inferred.options}
    rows = rows_of(Csv(files="rows.csv", **options).open(folder), inferred.schema)
    if "price" in names and names["price"].value_type.is_number and not ambiguous(table["price"]):
        for row, price in zip(rows, prices, strict=True):
            assert row["price"] == (0 if price is None else pytest.approx(float(price), rel=1e-6))
    if "day" in names and names["day"].value_type.date is not None:
        epoch = datetime.date(1970, 1, 1)
        assert [row["day"] for row in rows] == [
            0 if day is None else (day - epoch).days for day in days[: len(prices)]
        ]


def ambiguous(texts: list[str]) -> bool:
    """Whether a point may divide thousands: it is read as a decimal point, and a note says so."""
    return not any("," in text or " " in text or "'" in text for text in texts)
