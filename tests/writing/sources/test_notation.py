"""How cells of CSV files are written: each notation beside one that is read by hand, with Decimal and strptime."""

from __future__ import annotations

import csv
import datetime
import re
from decimal import Decimal
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from in_parts import MANY, error_of, rows_of, schema

import recordspec as rs
from recordspec.locations import location
from recordspec.schema.values import BadValue
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.notation import DateFormat, Notation
from recordspec.writing.sources.text_cells import from_text

KINDS = schema(
    "whole: int64\n  number: {kind: tensor, dtype: float64}\n  single: float32\n  text: string\n"
    "  day: {dtype: int64, date: days}\n  time: {dtype: int64, date: microseconds}"
).names
SPACES = " \u00a0\u202f"
SEPARATORS = {"": "", ",": ",", ".": ".", "'": "'\u2019", " ": SPACES}
NOTATIONS = [
    Notation(decimal=decimal, thousands=thousands, percent=percent)
    for decimal, thousands, percent in product(".,", SEPARATORS, (False, True))
    if decimal != thousands
]


def cells(*texts: str | None) -> pa.Array:
    return pa.array(texts, pa.large_string())


def by_hand(cell: str, notation: Notation) -> Decimal | None:
    """The number that a cell is; None if it is none."""
    sign, digits = (cell[0], cell[1:]) if cell[:1] in ("-", "+") else ("", cell)
    exponent, is_exponential = "0", False
    if notation.percent and digits.endswith("%"):
        digits, exponent = digits[:-1], "-2"
        digits = digits[:-1] if digits[-1:] in tuple(SPACES) else digits
    elif "e" in digits.lower():
        digits, _, exponent = digits.lower().partition("e")
        is_exponential = True
    whole, _, decimals = digits.partition(notation.decimal)
    groups = [whole]
    if notation.thousands:
        groups = re.split(f"[{SEPARATORS[notation.thousands]}]", whole)
    sizes = [len(group) for group in groups[1:]]
    is_indian = notation.thousands == "," and len(groups[0]) < 3 and sizes == [2] * (len(sizes) - 1) + [3]
    if len(groups) > 1 and (
        is_exponential
        or not (1 <= len(groups[0]) <= 3 and groups[0][0] != "0" and (set(sizes) == {3} or is_indian))
    ):
        return None
    parts = [
        *groups,
        decimals,
        exponent.removeprefix("-") if exponent[:1] == "-" else exponent.removeprefix("+"),
    ]
    if not all(re.fullmatch("[0-9]*", part) for part in parts) or not parts[-1] or not whole + decimals:
        return None
    return Decimal(f"{sign}{''.join(groups) or '0'}.{decimals or '0'}e{exponent}")


NUMBERS = st.builds(
    lambda sign, number, digits, grouped, tail: (
        sign + (f"{number:,.{digits}f}" if grouped else f"{number:.{digits}f}") + tail
    ),
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**9).map(lambda number: Decimal(number) / 1000),
    st.integers(0, 4),
    st.booleans(),
    st.sampled_from(["", "", "%", " %", "\u00a0%", "  %", "e3", "E-2", "%%"]),
)


@pytest.mark.parametrize("notation", NOTATIONS, ids=lambda one: one.number_example)
@given(
    st.lists(
        st.one_of(NUMBERS, st.text("0123.,'\u2019 \u202f%-+eE", min_size=1, max_size=7)),
        min_size=1,
        max_size=5,
    )
)
def test_numbers_are_those_that_are_read_by_hand(notation, some):
    swap = {",": notation.thousands or ",", ".": notation.decimal}
    some = ["".join(swap.get(char, char) for char in cell) for cell in some]
    expected = [by_hand(cell, notation) for cell in some]
    assume(all(number is None or abs(number) < Decimal("1e300") for number in expected))
    wrong = next((row for row, number in enumerate(expected) if number is None), len(some))
    values = from_text(cells(*some[:wrong]), KINDS["number"], location("."), notation)
    assert [float(value) for value in values] == [float(number) for number in expected[:wrong]]
    if wrong < len(some):
        with pytest.raises(BadValue) as caught:
            from_text(cells(*some), KINDS["number"], location("."), notation)
        assert caught.value.index == wrong
        assert caught.value.problem == rs.Problem(
            expected="float64",
            got=f"`{some[wrong]}`",
            hint=f"numbers are written as `{notation.number_example}`" if notation.has_numbers else "",
        )


def test_a_number_beyond_the_largest_float_is_refused():
    for notation in NOTATIONS:
        with pytest.raises(BadValue) as caught:
            from_text(cells("1", "1E310"), KINDS["number"], location("."), notation)
        assert (caught.value.index, caught.value.problem.got) == (1, "`1E310`")


def test_special_numbers_are_read_in_every_notation():
    some = ["nan", "NaN", "inf", "-INF", "+inf", "Infinity", "-infinity"]
    for notation in NOTATIONS:
        values = from_text(cells(*some), KINDS["single"], location("."), notation)
        np.testing.assert_array_equal(values, [float(one) for one in some])


GERMAN = Notation(decimal=",", thousands=".", percent=True, missing=("-", "k.A."), dates="%d.%m.%Y")
HINT = "(numbers are written as `1.234,5 %`)"


@pytest.mark.parametrize(
    ("feature", "some", "expected"),
    [
        ("whole", ["1.234", "100 %", "-2,0", "1e3"], [1234, 1, -2, 1000]),
        ("single", ["12,5 %", "12,5", ",5", "5,"], [0.125, 12.5, 0.5, 5.0]),
        ("text", ["12,5 %", "1.234"], ["12,5 %", "1.234"]),
        ("whole", ["1", "12.34"], f"1: expected int64, got `12.34` {HINT}"),
        ("whole", ["1", "0.512"], f"1: expected int64, got `0.512` {HINT}"),
        ("whole", ["1,5", "x"], "0: expected int64, got `1,5` (`float32` holds fractions)"),
        ("whole", ["50 %"], "0: expected int64, got `50 %` (`float32` holds fractions)"),
        ("whole", ["9.007.199.254.740.994,0"], "0: expected int64, got `9.007.199.254.740.994,0` (so large a number is exact only without a point)"),
        ("whole", ["9.223.372.036.854.775.807"], [2**63 - 1]),
        ("single", ["1,2,3"], f"0: expected float32, got `1,2,3` {HINT}"),
        ("single", ["1e3 %"], f"0: expected float32, got `1e3 %` {HINT}"),
        ("number", ["1", "1e400"], "1: expected float64, which holds it without overflow, got `1e400`"),
        ("day", ["31.12.2026", "-", "1.2.2026"], [20818, None, 20485]),
        ("day", ["31.12.2026", "30.02.2026"], "1: expected a date as %d.%m.%Y, such as 31.01.2026, got `30.02.2026`"),
        ("day", ["2026-12-31"], "0: expected a date as %d.%m.%Y, such as 31.01.2026, got `2026-12-31`"),
        ("text", ["-", "k.A.", "", "NA", None], [None, None, "", "NA", None]),
        ("whole", ["-", "", "k.A."], [None, None, None]),
    ],
)  # fmt: skip
def test_a_cell_is_a_value_or_a_message(feature, some, expected):
    if isinstance(expected, list):
        values = from_text(cells(*some), KINDS[feature], location("."), GERMAN)
        assert (values.to_pylist() if isinstance(values, pa.Array) else list(values)) == expected
        return
    with pytest.raises(BadValue) as caught:
        from_text(cells(*some), KINDS[feature], location("."), GERMAN)
    assert f"{caught.value.index}: {caught.value.problem}" == expected


FORMATS = [
    *("%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%d %b %Y", "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M:%S", "%Y%m%d%H%M%S"),
    *("%m/%d/%Y %I:%M %p", "%m/%d/%Y %I:%M:%S %p", "%d/%b/%Y:%H:%M:%S %z", "%Y/%m/%dT%H:%M:%S.%f", "100%% %d.%m.%Y"),
]  # fmt: skip
MOMENTS = st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30))


@pytest.mark.parametrize("form", FORMATS)
@given(
    some=st.lists(MOMENTS, min_size=1, max_size=4),
    hours=st.integers(-23, 23),
    change=st.integers(0, 40),
    char=st.sampled_from("0123459./: -xZ"),
)
def test_dates_are_those_of_strptime(form, some, hours, change, char):
    zone = datetime.timezone(datetime.timedelta(hours=hours))
    texts = [one.replace(tzinfo=zone).strftime(form.replace("%Y", f"{one.year:04}")) for one in some]
    if "%d." in form:
        texts = [re.sub(r"\b0(\d)\.", r"\1.", text) for text in texts]
    texts[-1] = texts[-1][:change] + char + texts[-1][change + 1 :]  # perhaps no date any more
    dates, wrong = DateFormat(form).parsed(cells(*texts))
    for row, text in enumerate(texts):
        try:
            moment = datetime.datetime.strptime(text, form)
        except ValueError:
            assert wrong == row
            return
        strict = char == " " or re.fullmatch("[0-9]{1,13}", text)
        if wrong == row and (
            strict or ("%z" in form and not re.search(r"(Z|[+-]\d{4}|[+-]\d\d:\d\d)$", text))
        ):
            return  # strptime also reads more blanks, fewer digits and seconds of offsets
        assert wrong is None or wrong > row, text
        moment = moment.replace(tzinfo=None) - (moment.utcoffset() or datetime.timedelta())
        assert dates[row].astype("datetime64[us]") == np.datetime64(moment, "us"), text


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("%d.%m", ["expected one %Y or %y, got none in `%d.%m`"]),
        ("%d.%m.%y %Y", ["expected one %Y or %y, got several in `%d.%m.%y %Y`"]),
        ("%Y-%m", ["expected one %d, got none in `%Y-%m`"]),
        ("%Y-%m-%d %d", ["expected one %d, got several in `%Y-%m-%d %d`"]),
        ("%Y-%m-%d %M", ["expected %H or %I beside %M, got none in `%Y-%m-%d %M`"]),
        ("%Y-%m-%d %H", ["expected %M beside %H, got none in `%Y-%m-%d %H`"]),
        ("%Y-%m-%d %I:%M", ["expected %p beside %I, got none in `%Y-%m-%d %I:%M`"]),
        ("%Y-%m-%d %H:%M %I %p", ["expected %H, or %I and %p, got both in `%Y-%m-%d %H:%M %I %p`"]),
        ("%Y-%m-%d %H:%M:%M", ["expected one %M, got several in `%Y-%m-%d %H:%M:%M`"]),
    ],
)  # fmt: skip
def test_a_form_that_is_no_date_is_refused(form, expected):
    assert list(map(str, DateFormat(form).problems())) == expected
    with pytest.raises(rs.SpecError) as caught:
        Csv(files="rows.csv", dates=form)
    assert str(caught.value).splitlines() == [f"dates: {line}" for line in expected]
    with pytest.raises(rs.SpecError) as caught:
        Csv(files="rows.csv", dates={"born": form})
    assert str(caught.value).splitlines() == [f"dates.born: {line}" for line in expected]


TABLE = schema(
    "price: {dtype: float32, default: -1.0}\n  share: {kind: tensor, dtype: float64}\n"
    "  day: {dtype: int64, date: days, default: 0}\n  count: {dtype: int64, default: -7}\n"
    "  note: {dtype: string, default: none}"
)
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-(10**8), 10**8).map(lambda number: Decimal(number) / 64),
        st.integers(0, 1000).map(lambda number: Decimal(number) / 10),
        st.none() | st.dates(),
        st.none() | st.integers(-(2**62), 2**62),
        st.none() | st.text('ab;"\n,é% ', max_size=5),
        st.booleans(),
    ),
    max_size=12,
)


@given(rows=ROWS, encoding=st.sampled_from(["utf-8", "utf-8-sig", "windows-1252", "utf-16", "cp500"]))
@MANY
def test_a_european_table_has_the_rows_that_are_read_by_hand(tmp_path_factory, rows, encoding):
    def grouped(number: Decimal | int) -> str:
        return f"{number:,}".replace(",", "_").replace(".", ",").replace("_", ".")

    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    with path.open("w", encoding=encoding, newline="") as file:
        file.write("price;share;day;count;note\r\n")
        for price, share, day, count, note, all_quoted in rows:
            written = [
                "k.A." if price is None else grouped(price),
                f"{share}".replace(".", ",") + " %",
                "-" if day is None else f"{day.day}.{day.month}.{day.year:04}",
                "-" if count is None else grouped(count),
                "k.A." if note is None else note or "x",
            ]
            csv.writer(file, delimiter=";", quoting=csv.QUOTE_ALL if all_quoted else 0).writerow(written)
    source = Csv(
        files="rows.csv", delimiter=";", encoding=encoding, decimal=",", thousands=".", percent=True,
        missing=("k.A.", "-"), dates="%d.%m.%Y",
    ).open(path.parent)  # fmt: skip
    epoch = datetime.date(1970, 1, 1)
    assert rows_of(source, TABLE) == [
        {
            "price": -1.0 if price is None else float(np.float32(float(price))),
            "share": float(share / 100),
            "day": 0 if day is None else (day - epoch).days,
            "count": -7 if count is None else count,
            "note": b"none" if note is None else (note or "x").encode(),
        }
        for price, share, day, count, note, _ in rows
    ]


def test_options_by_column_name_columns_of_the_file(tmp_path):
    (tmp_path / "rows.csv").write_text("Price,note,born\nNA,NA,1/2/2026\n1,x,3/4/2026\n")
    one = schema("price: {dtype: int64, default: 0}\n  note: string\n  born: {dtype: int64, date: days}")
    source = Csv(
        files="rows.csv", columns={"price": "Price"}, missing={"Price": ("NA",)}, dates={"born": "%d/%m/%Y"}
    )
    rows = rows_of(source.open(tmp_path), one)
    assert [row["price"] for row in rows] == [0, 1]
    assert [row["note"] for row in rows] == [b"NA", b"x"]
    assert [row["born"] for row in rows] == [20485, 20546]
    with pytest.raises(rs.SpecError) as caught:
        rows_of(
            Csv(files="rows.csv", columns={"price": "Price"}, missing={"price": ("NA",)}).open(tmp_path), one
        )
    assert str(caught.value) == (
        f"{tmp_path}/rows.csv:1: missing: expected columns of the file, got `price` (the column of this feature is `Price`)"
    )


def test_a_missing_key_is_missing(tmp_path):
    (tmp_path / "rows.csv").write_text("n,id\n1,a\n2,-\n")
    (part,) = Csv(files="rows.csv", missing=("-",)).open(tmp_path).parts(schema("n: int64"), ("id",))
    (batch,) = part.batches(schema("n: int64"), ("id",))
    assert batch.values["id"] == ["a", None]


def test_a_cell_in_another_notation_is_named_by_its_line(tmp_path):
    (tmp_path / "rows.csv").write_text('n;t\n1.000;"a\nb"\n2,5;c\n')
    source = Csv(files="rows.csv", delimiter=";", decimal=",", thousands=".").open(tmp_path)
    one = schema("n: int64\n  t: string")
    assert error_of(source, one) == [
        f"{tmp_path}/rows.csv:4: features.n: expected int64, got `2,5` (`float32` holds fractions)"
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"decimal": ",", "thousands": ","}, "thousands: expected another character than `decimal`, `,`, got the same"),
        ({"encoding": "utf-99"}, "encoding: expected an encoding that Python knows, got `utf-99` (such as utf-8, utf-16, windows-1252, latin-1)"),
        ({"encoding": "base64"}, "encoding: expected an encoding that Python knows, got `base64` (such as utf-8, utf-16, windows-1252, latin-1)"),
    ],
)  # fmt: skip
def test_options_that_contradict_are_refused(options, expected):
    with pytest.raises(rs.SpecError) as caught:
        Csv(files="rows.csv", **options)
    assert str(caught.value) == expected


LISTS = rs.Schema.loads(
    """\
schema: s
features:
  tags: {kind: var_len, dtype: string}
  n: {kind: var_len, dtype: int64}
  xy: {dtype: float32, shape: [2], default: [-1, -1]}
  flags: {kind: var_len, dtype: string, missing: empty}
  l: {kind: label, names: [a, b], shape: [null]}
"""
)


def test_a_cell_may_be_a_list(tmp_path):
    cells = ["tags,n,xy,flags,l", 'red|deep blue | ,"1,000; 2",0.5 1,,"a;b"', ',"",,NA,', "x, 3 ,2 .5,q,b"]
    (tmp_path / "rows.csv").write_text("\n".join(cells) + "\n")
    lists = {"tags": "|", "n": ";", "xy": " ", "flags": "/", "l": ";"}
    source = Csv(files="rows.csv", lists=lists, thousands=",", missing={"flags": ("NA",)})
    rs.write(source.open(tmp_path), LISTS, tmp_path / "data", shuffle=None, progress=False)
    table = rs.scan(tmp_path / "data").to_table()
    assert table["tags"].to_pylist() == [["red", "deep blue", ""], [], ["x"]]
    assert table["n"].to_pylist() == [[1000, 2], [], [3]]
    assert table["xy"].to_pylist() == [[0.5, 1], None, [2, 0.5]]
    assert table["flags"].to_pylist() == [[], None, ["q"]]
    assert table["l"].to_pylist() == [["a", "b"], [], ["b"]]


def test_a_cell_may_be_a_list_in_json(tmp_path):
    (tmp_path / "rows.csv").write_text(
        'n,tags,deep,l\n"[1, null]","[""a, b"", ""é""]","[[1], []]","[""b""]"\n,[],[[2]],[]\n'
    )
    features = (
        "n: {kind: var_len, dtype: int64, missing_item: -1}, tags: {kind: var_len, dtype: string}, "
        "deep: {kind: ragged, dtype: int64, shape: [null, null]}, l: {kind: label, names: ['0', b], shape: [null]}"
    )
    schema = rs.Schema.loads(f"schema: s\nfeatures: {{{features}}}")
    source = Csv(files="rows.csv", lists=dict.fromkeys(["n", "tags", "deep", "l"], "json")).open(tmp_path)
    rs.write(source, schema, tmp_path / "data", shuffle=None, progress=False)
    assert rs.scan(tmp_path / "data").to_table().to_pylist() == [
        {"n": [1, -1], "tags": ["a, b", "é"], "deep": [[1], []], "l": ["b"]},
        {"n": [], "tags": [], "deep": [[2]], "l": []},
    ]
    (tmp_path / "rows.csv").write_text("n,tags,deep,l\n,,[],[0]\n")
    with pytest.raises(
        rs.RecordError, match=r"l: expected a list of names in JSON, got `\[0\]` \(names are in"
    ):
        rs.write(source, schema, tmp_path / "no", progress=False)


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ({"n": ","}, "features.n: expected int64, got `x` at item 1"),
        ({"n": "json"}, "rows.csv:2: features.n: expected a list in JSON, got `1,2`"),
        ({}, "n: expected a feature that one cell of text can give: a number, a string, a label, a path, got var_len (`lists` of the source names the text between items)"),
    ],
)  # fmt: skip
def test_an_item_that_is_no_value_is_named(tmp_path, lists, expected):
    (tmp_path / "rows.csv").write_text('n\n"1,2"\n"1,x"\n')
    schema = rs.Schema.loads("schema: s\nfeatures: {n: {kind: var_len, dtype: int64}}")
    with pytest.raises(rs.RecordspecError) as caught:
        rs.write(Csv(files="rows.csv", lists=lists).open(tmp_path), schema, tmp_path / "data")
    assert str(caught.value).endswith(expected)


@pytest.mark.parametrize(
    ("options", "written", "expected"),
    [
        ({"currency": "$", "thousands": ","}, ["$1,234.50", "-$5", "$-6", "$ 7", "8 $", "9"], [1234.5, -5, -6, 7, 8, 9]),
        ({"currency": "Rs.", "thousands": ","}, ["Rs. 12,34,567.50", "5 Rs."], [1234567.5, 5]),
        ({"currency": "$", "negative": "(5)", "thousands": ","}, ["($1,234.5)", "(5)", "-5", "5"], [-1234.5, -5, -5, 5]),
        ({"negative": "\u22125"}, ["\u22125", "-6", "7", "1e-3"], [-5, -6, 7, 0.001]),
        ({"negative": "5-", "decimal": ",", "thousands": ".", "currency": "EUR"}, ["1.234,5-", "5- EUR", "-5", "5"], [-1234.5, -5, -5, 5]),
        ({"percent": True, "negative": "(5)"}, ["(5 %)", "5%"], [-0.05, 0.05]),
    ],
)  # fmt: skip
def test_amounts_are_numbers(options, written, expected):
    values = from_text(cells(*written), KINDS["number"], location("."), Notation(**options))
    assert [float(value) for value in values] == expected


@pytest.mark.parametrize(
    ("options", "cell"),
    [
        ({"currency": "$"}, "\u20ac5"),
        ({"currency": "$"}, "$5$$"),
        ({"currency": "$"}, "5"[:0] + "$"),
        ({"negative": "(5)"}, "(-5)"),
        ({"negative": "(5)"}, "(5"),
        ({"negative": "5-"}, "-5-"),
        ({"thousands": ","}, "6,807e+10"),
        ({"thousands": ","}, "1,23,45"),
    ],
)
def test_amounts_in_another_notation_are_refused(options, cell):
    with pytest.raises(BadValue) as caught:
        from_text(cells("1", cell), KINDS["number"], location("."), Notation(**options))
    assert (caught.value.index, caught.value.problem.got) == (1, f"`{cell}`")


def test_two_digits_of_a_year_are_those_of_strptime():
    written = [f"{year:02d}-1-31" for year in range(100)]
    expected = [datetime.datetime.strptime(cell, "%y-%m-%d") for cell in written]
    dates, wrong = DateFormat("%y-%m-%d").parsed(cells(*written))
    assert wrong is None
    assert dates.astype("datetime64[s]").tolist() == expected


def test_a_currency_is_no_number():
    with pytest.raises(rs.SpecError) as caught:
        Csv(files="rows.csv", currency={"a": "$", "b": "5 $"})
    assert (
        str(caught.value) == "currency: expected the sign of a currency, such as $, \u20ac or USD, got `5 $`"
    )
