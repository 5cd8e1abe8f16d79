"""Rows by their number are those that a scan yields, wherever a page begins, and however often one is asked for."""

from __future__ import annotations

import random

import pytest

import recordspec as rs
from recordspec.store.dataset import StoredDataset
from recordspec.store.index import find_records
from recordspec.store.scan import RowBatch, Scanner
from recordspec.viewer import row_pages as viewer_rows
from recordspec.viewer.row_pages import NumberedRows
from recordspec.wire.arrays import flat_of
from some_records import example, write

SCHEMA = rs.Schema.loads("{schema: s, features: {n: int64}}")
FORMS = {
    "rows": {},
    "rows without an index": {},
    "blocks": {"layout": {"blocks": 16}},
    "compressed": {"compression": "gzip"},
    "compressed blocks": {"compression": "gzip", "layout": {"blocks": 16}},
}


def numbers(page) -> list[tuple[int, int]]:
    """The number of each row, and its value."""
    found = []
    for rows in page:
        (array,) = rows.item.decode().features["n"]
        found += zip(range(rows.first, rows.first + len(rows)), flat_of(array).tolist(), strict=True)
    return found


@pytest.mark.parametrize("form", FORMS)
def test_pages_are_parts_of_all_rows(tmp_path, monkeypatch, form):
    monkeypatch.setattr(viewer_rows, "_APART", 10)
    rs.write(
        {"n": list(range(1000))}, SCHEMA, tmp_path / "d", shards=3, shuffle=None, split="all", **FORMS[form]
    )
    if "without" in form:
        (tmp_path / "d" / "index.bin").unlink()
    numbered = NumberedRows(Scanner.of_rows(StoredDataset.of(tmp_path / "d")))
    assert numbered.total == 1000
    draws = random.Random(1)
    for _ in range(60):
        first, count = draws.randrange(1010), draws.randrange(1, 200)
        expected = [(row, row) for row in range(first, min(first + count, 1000))]
        assert numbers(numbered.page(first, count)) == expected


def test_rows_of_other_writers_are_counted_when_all_are_passed(tmp_path, monkeypatch):
    monkeypatch.setattr(viewer_rows, "_APART", 10)
    paths = [write(tmp_path / f"{name}-x", *(example(n=[n]) for n in range(5000))) for name in ("a", "b")]
    numbered = NumberedRows(Scanner.of_rows(StoredDataset.of(paths)))
    assert numbers(numbered.page(3, 2)) == [(3, 3), (4, 4)]
    assert numbered.total is None
    assert numbers(numbered.page(5001, 2)) == [(5001, 1), (5002, 2)]
    assert numbered.page(20_000, 5) == []
    assert numbered.total == 10_000
    assert numbers(numbered.page(9999, 5)) == [(9999, 4999)]


def test_a_record_that_cannot_be_read_has_a_number(tmp_path):
    path = write(tmp_path / "x", *(example(n=[n]) for n in range(100)))
    data = bytearray(path.read_bytes())
    data[len(data) // 100 * 50 + 14] ^= 1  # in a record of the middle
    path.write_bytes(data)
    numbered = NumberedRows(Scanner.of_rows(StoredDataset.of(path)))
    whole = numbered.page(0, 1000)
    (bad,) = [rows.first for rows in whole if not isinstance(rows.item, RowBatch)]
    assert sum(map(len, whole)) == numbered.total == 100
    before, broken, after = numbered.page(bad - 1, 3)
    assert (before.first, broken.first, after.first) == (bad - 1, bad, bad + 1)
    assert numbers([after]) == [(bad + 1, bad + 1)]


def test_only_the_rows_of_a_split(tmp_path):
    rs.write({"n": list(range(50))}, SCHEMA, tmp_path / "d", shuffle=None, split={"train": 80, "test": 20})
    scanner = Scanner.of_rows(StoredDataset.of(tmp_path / "d"))
    counts = [NumberedRows(scanner, split).total for split in ("train", "test", None)]
    assert counts[0] + counts[1] == counts[2] == 50
    assert len(numbers(NumberedRows(scanner, "test").page(0, 100))) == counts[1]


@pytest.mark.parametrize("form", FORMS)
def test_rows_at_numbers_come_in_their_order(tmp_path, monkeypatch, form):
    monkeypatch.setattr(viewer_rows, "_APART", 10)
    rows = {"n": list(range(1000))}
    rs.write(rows, SCHEMA, tmp_path / "d", shards=3, shuffle=None, split="all", **FORMS[form])
    numbered = NumberedRows(Scanner.of_rows(StoredDataset.of(tmp_path / "d")))
    draws = random.Random(2)
    for _ in range(10):
        wanted = [draws.randrange(1000) for _ in range(20)]
        assert numbers(numbered.at(wanted)) == [(row, row) for row in wanted]
    assert numbers(numbered.at([999, 5, 2000])) == [(999, 999), (5, 5)]


@pytest.mark.parametrize("form", ["rows", "blocks"])
@pytest.mark.parametrize("place", [4, 14], ids=["a length", "a record"])
def test_rows_have_the_same_numbers_however_they_are_reached(tmp_path, form, place):
    rows = {"n": list(range(1000))}
    rs.write(rows, SCHEMA, tmp_path / "d", shards=3, shuffle=None, split="all", **FORMS[form])
    path = tmp_path / "d" / "all-00001-of-00003.tfrecord"
    (record, *_) = find_records(path, [5], None)
    data = bytearray(path.read_bytes())
    data[record.start + place] ^= 1
    path.write_bytes(data)
    numbered = NumberedRows(Scanner.of_rows(StoredDataset.of(tmp_path / "d")))
    alone = [numbered.at([row])[0] for row in range(1000)]
    assert numbered.total == 1000
    whole = numbered.page(0, 1000)
    assert sum(map(len, whole)) == numbered.total == 1000
    (lost,) = [rows for rows in whole if not isinstance(rows.item, RowBatch)]
    bad = range(lost.first, lost.first + len(lost))
    for row, rows in enumerate(alone):
        is_lost = not isinstance(
            rows.item, RowBatch
        )  # the index reaches some that a search after damage misses
        assert row in bad if is_lost else numbers([rows]) == [(row, row)]
    readable = [rows for rows in whole if isinstance(rows.item, RowBatch)]
    assert numbers(readable) == [(row, row) for row in range(1000) if row not in bad]
