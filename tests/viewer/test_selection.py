"""The rows that a page chooses are those that pass a test of Python, in its order; bad rows end nothing."""

from __future__ import annotations

import pytest

import recordspec as rs
from recordspec.store.dataset import StoredDataset
from recordspec.store.scan import Scanner
from recordspec.tables.scan_columns import columns_of
from recordspec.viewer import selection
from recordspec.viewer.jobs import JobProgress
from recordspec.viewer.row_pages import NumberedRows
from recordspec.viewer.selection import Choice, Selection
from some_records import example, write

SCHEMA = """
schema: s
features:
  n: int64
  half: {dtype: float32, default: 0.0, with_missing: true}
  text: {kind: text}
  side: {kind: label, names: [left, right, "it's"]}
  few: {kind: var_len, dtype: int64}
  tags: {kind: var_len, dtype: string}
  data: string
"""
ROWS = [
    {
        "n": row,
        "half": None if row % 7 == 0 else row / 2,
        "text": ("Zebra", "ant", "it's 5")[row % 3] + str(row),
        "side": row % 3,
        "few": list(range(row % 4)),
        "tags": ["Red", "it's, so"][: row % 3],
        "data": b"\xff" * (row % 5),
    }
    for row in range(500)
]
CHOICES = {
    "where": (
        Choice(where="n % 10 = 3 AND half > 20"),
        lambda row: row["n"] % 10 == 3 and (row["half"] or 0) > 20,
    ),
    "no value is no match": (
        Choice(where="half < 5"),
        lambda row: row["half"] is not None and row["half"] < 5,
    ),
    "text in a text": (Choice(text="ZEBRA1"), lambda row: "zebra1" in row["text"].lower()),
    "text in a label": (
        Choice(text="it's"),
        lambda row: "it's" in row["text"] or row["side"] == 2 or row["tags"][1:],
    ),
    "text in a list": (Choice(text="rEd"), lambda row: "Red" in row["tags"]),
    "a quote in a list": (Choice(text="it's, s"), lambda row: "it's, so" in row["tags"]),
    "a number": (Choice(text="12"), lambda row: 12 in (row["n"], row["half"]) or "12" in row["text"]),
    "both": (Choice(text="ant", where="n > 400"), lambda row: "ant" in row["text"] and row["n"] > 400),
    "none": (Choice(where="n < 0"), lambda row: False),
}
ORDERS = {
    "n": lambda row: row["n"],
    "half": lambda row: row["half"],
    "text": lambda row: row["text"],
    "side": lambda row: ("left", "right", "it's")[row["side"]],
    "few": lambda row: len(row["few"]),
    "data": lambda row: len(row["data"]),
}


def selected(scanner, choice) -> Selection:
    columns = columns_of(scanner, is_decoded=False, binary=frozenset())
    made = Selection(choice, NumberedRows(scanner), scanner, columns)
    made.find(JobProgress())
    return made


@pytest.fixture(scope="module", params=["rows", "blocks"])
def scanner(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("selection") / "d"
    layout = {"layout": {"blocks": 16}} if request.param == "blocks" else {}
    rs.write(ROWS, rs.Schema.loads(SCHEMA), folder, shards=3, shuffle=None, split="all", **layout)
    return Scanner.of_rows(StoredDataset.of(folder))


@pytest.mark.parametrize("case", CHOICES)
def test_the_rows_are_those_that_match(scanner, case):
    choice, matches = CHOICES[case]
    found = selected(scanner, choice)
    assert found.numbers(0, 1000) == [row["n"] for row in ROWS if matches(row)]
    assert (found.ends, found.skipped) == ("", 0)


@pytest.mark.parametrize("column", ORDERS)
@pytest.mark.parametrize("descending", [False, True])
def test_the_rows_are_sorted_with_missing_values_last(scanner, column, descending):
    key = ORDERS[column]
    known = [row for row in ROWS if key(row) is not None]
    ordered = sorted(known, key=lambda row: key(row), reverse=descending)
    if descending:  # equal ones in the order of the rows, too
        ordered = [row for value in dict.fromkeys(map(key, ordered)) for row in known if key(row) == value]
    ordered += [row for row in ROWS if key(row) is None]
    found = selected(scanner, Choice(sort=column, descending=descending))
    assert found.numbers(0, 1000) == [row["n"] for row in ordered]


def test_some_of_the_rows_sorted(scanner):
    found = selected(scanner, Choice(where="n < 10", sort="half", descending=True))
    assert found.numbers(0, 3) == [9, 8, 6]
    assert found.numbers(8, 3) == [0, 7]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (Choice(where="n >"), "where: expected a condition in SQL, got `n >` (syntax error at its end)"),
        (Choice(where="1) OR (1 = 1"), "where: expected a condition in SQL, got `1) OR (1 = 1`"),
        (Choice(where="m = 1"), "where: expected "),
        (Choice(sort="m"), "sort: expected a column, got `m`"),
    ],
)
def test_a_choice_that_is_none(scanner, choice, message):
    with pytest.raises(rs.SpecError) as error:
        selected(scanner, choice)
    assert str(error.value).startswith(message)


def test_rows_that_cannot_be_read_are_counted_and_passed(tmp_path, monkeypatch):
    monkeypatch.setattr(selection, "_MOST_SKIPPED", 5)
    schema = rs.Schema.loads("{schema: s, features: {n: int64}}")
    bad = {30: example(n=[1, 2]), 31: example(n=[]), 60: b"\xff\xff"}
    records = [bad.get(row, example(n=[row])) for row in range(100)]
    path = write(tmp_path / "x", *records)
    data = bytearray(path.read_bytes())
    data[data.index(example(n=[77])) + 3] ^= 1
    path.write_bytes(data)
    found = selected(Scanner.of_rows(StoredDataset.of(path, schema)), Choice(where="n >= 25"))
    assert found.numbers(0, 1000) == [row for row in range(25, 100) if row not in (30, 31, 60, 77)]
    assert (found.skipped, found.ends) == (4, "")
    ordered = selected(Scanner.of_rows(StoredDataset.of(path, schema)), Choice(sort="n", descending=True))
    assert ordered.numbers(0, 1000) == [row for row in range(99, -1, -1) if row not in (30, 31, 60, 77)]
    assert ordered.skipped == 4
    many = write(tmp_path / "y", *(example(n=[row] * (1 + row % 2)) for row in range(100)))
    found = selected(Scanner.of_rows(StoredDataset.of(many, schema)), Choice(where="n >= 4"))
    assert found.numbers(0, 1000) == [4, 6, 8, 10]
    assert found.ends == "too many rows cannot be read, or have no value: only the first rows are shown"


def test_more_rows_than_are_kept(scanner, monkeypatch):
    monkeypatch.setattr(selection, "_MOST_ROWS", 100)
    found = selected(scanner, Choice(where="n >= 0"))
    assert len(found) <= 100
    assert found.ends == "too many rows to keep: only the first rows are shown"
