"""Which records of files are meant, by conditions and by numbers, and what their keys are called."""

from __future__ import annotations

import gzip

import pytest

import recordspec as rs
from recordspec.errors import RecordError, SpecError
from recordspec.statistics.info import info
from recordspec.store.dataset import StoredDataset
from recordspec.store.scan import Scanner
from recordspec.tables.query import Query
from recordspec.tables.show import RecordViewer
from recordspec.wire.framing import framed
from some_records import BLOCKED, ROWS, example, found, sequence_example, write

OF_LIST = "(`1 IN x` is true of a list `x` that has a 1, and `len(x)` is its length)"


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ("id > 45", lambda row: row["id"] > 45),
        ("1 < id AND id <= 3 OR id = 40", lambda row: row["id"] in (2, 3, 40)),
        ("side = 'right' and id in (1, 2, 3)", lambda row: row["id"] in (1, 3)),
        ("side == 'left' AND ID BETWEEN 3 AND 5", lambda row: row["id"] == 4),
        ("text IS NULL AND id < 9", lambda row: row["id"] in (0, 3, 6)),
        ("NOT text = 't1' AND id < 5", lambda row: row["id"] in (2, 4)),
        ("text LIKE 't_' AND text <> 't8'", lambda row: row["id"] in (1, 2, 4, 5, 7)),
        ("len(many) > 18", lambda row: row["id"] % 20 == 19),
        ("0.1 IN many AND many[1] = 0.1 AND id < 3", lambda row: row["id"] in (1, 2)),
        ("many = [] OR len(list_filter(many, lambda x: x < 1)) = 1", lambda row: row["id"] % 20 < 2),
        ("number = 7 OR records.id = 8", lambda row: row["id"] in (7, 8)),
        ("file LIKE '%-00001-of-00003.%' AND record < 1 AND split = 'train'", lambda row: row["id"] == 16),
        ("CASE WHEN id > 3 THEN NULL ELSE id > 0 END -- a comment", lambda row: row["id"] in (1, 2, 3)),
        ("true", lambda row: True),
        ("NULL = 1", lambda row: False),
    ],
)
def test_a_condition_is_sql_over_the_columns_of_scan(data, chunks, where, holds):
    chosen = RecordViewer(data, Query(where=where)).head(99)
    assert [row["features"]["id"] for row in chosen] == [row["id"] for row in ROWS if holds(row)]


def test_the_key_of_a_dataset_and_dates_are_columns(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64, day: {dtype: int64, date: days}}")
    rs.write([{"id": n, "day": n} for n in range(9)], schema, tmp_path / "d", key="id", shuffle=None)
    assert found(tmp_path / "d", "key < 3 AND day >= DATE '1970-01-02'") == [1, 2]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("sid = 3", "expected a feature, or a key of the first records, got `sid` (did you mean `side`?)"),
        ("numbers = 3", "expected a feature, or a key of the first records, got `numbers` (did you mean `number`?)"),
        ('side == "left"', "expected a feature, or a key of the first records, got `left` (a text takes single quotes: 'left')"),
        ('side == "test"', "expected a feature, or a key of the first records, got `test` (did you mean `text`?; a text takes single quotes: 'test')"),
        ("side = order", "expected a condition in SQL, got `side = order` (a text takes single quotes: 'order')"),
        ("side = left", "expected a condition in SQL, got `side = left` (a text takes single quotes: 'left')"),
        ("side = default", "WHERE clause cannot contain DEFAULT clause (a text takes single quotes: 'default')"),
        ("(id = id", "expected a condition in SQL, got `(id = id` (syntax error at its end)"),
        ("missing(text)", "expected a function of DuckDB, got `missing` (`x IS NULL` is true of what is missing)"),
        ('feature("text") = \'a\'', 'expected a function of DuckDB, got `feature` (a name such as "image/encoded" takes double quotes)'),
        ("leng(many) > 3", "expected a function of DuckDB, got `leng` (did you mean `len`?)"),
        ("", "expected a condition in SQL, got nothing"),
        ("id >", "expected a condition in SQL, got `id >` (syntax error at its end)"),
        ("id > 3)", "expected a condition in SQL, got `id > 3)` (syntax error at its end)"),
        ("id > 3 LIMIT 5", 'expected a condition in SQL, got `id > 3 LIMIT 5` (syntax error at or near "LIMIT")'),
        ("id > 3; SELECT 1", 'expected a condition in SQL, got `id > 3; SELECT 1` (syntax error at or near ";")'),
        ("id > 3) GROUP BY (id", "expected a condition in SQL, got `id > 3) GROUP BY (id` (a query has more parts: `recordspec query`)"),
        ("id > 3) UNION SELECT (2", "expected a condition in SQL, got `id > 3) UNION SELECT (2` (a query has more parts: `recordspec query`)"),
        ("id > (SELECT 3)", "expected a condition in SQL, got a query in it (`recordspec query` takes whole queries)"),
        ("EXISTS (FROM duckdb_settings())", "expected a condition in SQL, got a query in it (`recordspec query` takes whole queries)"),
        ("COLUMNS(*) > 3", "expected a condition in SQL, got `*`, which stands for several columns (`recordspec query` takes whole queries)"),
        ("\ud800 = 1", r"expected a condition in SQL, got '\ud800 = 1' (half of a surrogate pair is no text)"),
        ("count(*) > 1", "WHERE clause cannot contain aggregates!"),
        ("row_number() OVER () > 3", "WHERE clause cannot contain window functions!"),
        ("id", "expected a condition in SQL, got `id`, which is BIGINT (a comparison is true or false)"),
        ("'left'", "expected a condition in SQL, got `'left'`, which is VARCHAR (a comparison is true or false)"),
        ("many > 3", f"expected a comparison with a list, got Cannot compare values of type FLOAT[] and type INTEGER_LITERAL - an explicit cast is required {OF_LIST}"),
        ("many = 3", f"expected a comparison with a list, got Unimplemented type for cast (INTEGER -> FLOAT[]) {OF_LIST}"),
        ("side = 'lef'", "side: expected one of `left`, `right`, got `lef` (did you mean `left`?)"),
        ("side <> 'up'", "side: expected one of `left`, `right`, got `up`"),
        ("id = 1 OR side IN ('left', 'rihgt')", "side: expected one of `left`, `right`, got `rihgt` (did you mean `right`?)"),
        ("key = 3", "expected a feature, or a key of the first records, got `key` (it is a column of datasets that have a key)"),
        ("read_text('x') = 'y'", 'Function "read_text" is a table function but it was used as a scalar function. This function has to be called in a FROM clause (similar to a table).'),
    ],
)  # fmt: skip
def test_what_is_no_condition_is_told_before_anything_is_read(data, where, message):
    with pytest.raises(SpecError) as error:
        RecordViewer(data, Query(where=where))
    assert str(error.value) == f"where: {message}"


def test_a_condition_that_is_nested_deeply_is_answered_or_told(tmp_path):
    """Python's own limit decides, which 3.13 does not reach at this depth."""
    path = write(tmp_path / "f", example(a=[1]), example(a=[2]))
    try:
        answer = found(path, "not " * 900 + "a = 1")
    except SpecError as error:
        answer = str(error)
    assert answer in ([0], "where: expected a condition in SQL, got one that is nested too deeply")


def test_names_that_differ_in_case_alone(tmp_path):
    path = write(tmp_path / "f", example(a=[1], A=[b"x"], B=[2]), example(a=[3], A=[b"y"], b=[4]))
    assert found(path, "a = 1") == [0]
    assert found(path, "A = 'y' AND file IS NOT NULL") == [1]
    for where, names in (("a = 1 AND A = 'x'", "`a` and `A`"), ("B = 2 AND b = 4", "`B` and `b`")):
        with pytest.raises(SpecError) as error:
            found(path, where)
        assert str(error.value) == f"where: expected names that differ in more than case, got {names}"


def test_other_keys_and_those_of_later_records(tmp_path):
    """Only the keys in a condition are read; keys that no first record has are none."""
    records = [example(a=[n], other=[n if n < 1000 else float(n)]) for n in range(1005)]
    path = write(tmp_path / "f", *records, example(late=[1]))
    assert found(path, "a >= 1003") == [1003, 1004]
    shown = RecordViewer(path, Query(where="other >= 999")).head(9)
    assert next(shown)["record"] == 999
    with pytest.raises(RecordError) as error:
        next(shown)
    assert str(error.value) == (
        f"{path}: record 1000 at byte 47,744: other: expected int64, as in the first records, got float32 "
        "(a schema tells what its columns are: `recordspec infer` proposes one)"
    )
    with pytest.raises(SpecError) as refused:
        found(path, "late IS NULL")
    assert str(refused.value) == (
        "where: expected a key of the first records, got `late` (a text takes single quotes: 'late')"
    )


def test_an_error_keeps_its_place_among_many_small_files(tmp_path):
    """Rows of small files are evaluated together, and come in order, before the error of a row after them."""
    for number in range(40):
        records = [example(a=[number], t=[b"x" if number == 37 and n else b"7"]) for n in range(3)]
        write(tmp_path / f"f{number:02}", *records)
    shown = RecordViewer(tmp_path / "f*", Query(where="t::INT = 7 AND record > 0")).head(999)
    for number in range(37):
        assert [next(shown)["features"]["a"], next(shown)["features"]["a"]] == [number, number]
    with pytest.raises(RecordError) as error:
        next(shown)
    assert str(error.value).startswith(
        f"{tmp_path}/f37: record 1 at byte {len(example(a=[37], t=[b'7'])) + 16}: "
        "where: Could not convert string 'x' to INT32"
    )
    (tmp_path / "f30").write_bytes((tmp_path / "f30").read_bytes()[:-1])
    shown = RecordViewer(tmp_path / "f*", Query(where="a > 25")).head(999)
    assert [next(shown)["features"]["a"] for _ in range(14)] == [n for n in range(26, 31) for _ in "012"][:14]
    with pytest.raises(RecordError, match="f30: record 2 at byte "):
        next(shown)


def test_the_first_rows_come_before_the_others_are_read(tmp_path):
    for number in range(40):
        write(tmp_path / f"f{number:02}", *[example(a=[number]) for n in range(3)])
    opened = []
    scanner = Scanner.of_rows(StoredDataset.of(tmp_path / "f*"))
    batches = scanner.batches
    scanner.batches = lambda: (opened.append(batch.file) or batch for batch in batches())  # type: ignore
    rows = Query(where="a >= 0").batches(scanner)
    seen = []
    for _ in range(12):
        next(rows)
        seen.append(len(opened))
    assert seen == [1, 2, 4, 4, 7, 7, 7, 13, 13, 13, 13, 13]


def test_a_record_with_values_of_another_kind(tmp_path, chunks):
    path = write(
        tmp_path / "f",
        *[example(a=[1], s=[2.5, 7.0])] * 1000,
        sequence_example({"s": [[2.5], [7], []]}),
        example(a=[b"x"]),
    )
    assert found(path, "s = [2.5, 7]") == list(range(1000))
    shown = RecordViewer(path, Query(where="a > 0 OR a IS NULL")).head(1002)
    assert sum(1 for _ in zip(range(1001), shown, strict=False)) == 1001
    with pytest.raises(RecordError) as error:
        next(shown)
    assert str(error.value).startswith(f"{path}: record 1001 at byte ")
    assert ": a: expected int64, as in the first records, got bytes (" in str(error.value)


def test_a_number_beside_a_float32_is_the_float32_closest_to_it(tmp_path):
    path = write(tmp_path / "f", example(d=[17031839744.0] * 20, x=[17031839744.0], i=[17031839745], y=[0.1]))
    for where in (
        "x = i",
        "x = 17031839745",
        "i in d",
        "17031840000 in d",
        "y = 0.1",
        "y IN (1, 0.1)",
        "y <= 0.1",
    ):
        assert found(path, where) == [0]
    for where in (
        "x = 17031900000",
        "y > 0.1",
        "y = 1e-1",
        "y = 0.1::DOUBLE",
        "x::DOUBLE = i",
        "i = 17031839744",
    ):
        assert found(path, where) == []


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_what_is_behind_a_record_need_not_be_whole(tmp_path, pack):
    data = pack(b"".join(map(framed, [example(a=[1]), example(a=[2])])) + b"cut")
    (tmp_path / "f").write_bytes(data)
    if pack is bytes:
        assert RecordViewer(tmp_path / "f").show(1)["features"] == {"a": 2}
    with pytest.raises(RecordError) as error:
        RecordViewer(tmp_path / "f").show(2)
    assert "record 2 at byte 60: " in str(error.value)


@pytest.mark.parametrize("first", ["b", "r"])
def test_blocks_and_rows_may_be_in_files_beside_each_other(tmp_path, first):
    rows = [{"n": n, "s": [n]} for n in range(9)]
    rs.write(rows, BLOCKED, tmp_path / "b", layout={"blocks": 4})
    rs.write(rows, BLOCKED, tmp_path / "r")
    files = [tmp_path / first, tmp_path / ("r" if first == "b" else "b")]
    look = RecordViewer(files, Query(schema=BLOCKED))
    shown = list(look.head(99))
    assert [one["features"]["n"] for one in shown] == [*range(9), *range(9)]
    assert [look.show(number) for number in range(18)] == shown
    assert len(list(look.sample(99, 1))) == 18
    assert info(files).blocks
