"""SQL over TFRecords, which reads the tables that are named, and nothing else: `cli.query`, `_duckdb`."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import tempfile
import threading
from pathlib import Path

import pytest
from pyarrow import parquet

import recordspec as rs
from examples import example as record_of
from examples import file_of
from recordspec._duckdb import connected, interrupting
from recordspec.cli.shared_options import NAMED_PATTERN, grouped
from recordspec.errors import RecordError, SpecError, StoreError
from recordspec.locations import location
from recordspec.store.dataset import StoredDataset
from recordspec.store.scan import Scanner
from recordspec.tables.sql import Condition, named_tables, query
from recordspec.tables.table_writers import json_lines, saving
from some_records import ROWS, SCHEMA, example, write

SPLIT = {"train": 0.8, "test": 0.2}


@pytest.fixture(scope="module")
def splits(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("splits") / "d"
    rs.write(ROWS, SCHEMA, folder, split=SPLIT, key="id")
    return folder


def tables_of(sql: str, *sources: object) -> dict:
    return named_tables(grouped(NAMED_PATTERN.convert(str(source), None, None) for source in sources), sql)


def rows_of(sql: str, *sources: object, **options) -> list[dict]:
    with query(sql, tables_of(sql, *sources), **options) as result:
        return [json.loads(line) for batch in result for line in bytes(json_lines(batch)).splitlines()]


def test_a_query_is_answered_as_python_answers_it(data, chunks):
    counted = rows_of(
        "SELECT side, count(*) AS n, sum(id) AS s FROM d WHERE text IS NOT NULL GROUP BY side ORDER BY side",
        f"d={data}",
    )
    kept = {
        side: [row["id"] for row in ROWS if row["side"] == place and "text" in row]
        for place, side in enumerate(["left", "right"])
    }
    assert counted == [{"side": side, "n": len(ids), "s": sum(ids)} for side, ids in kept.items()]
    (longest,) = rows_of("SELECT max(len(many)) AS n FROM d", f"d={data}")
    assert longest == {"n": 19}
    # a column that only the condition names; one that is a dictionary; a table beside itself
    assert rows_of("SELECT text FROM d WHERE id = 7 AND side = 'right'", f"d={data}") == [{"text": "t7"}]
    (joined,) = rows_of("SELECT count(*) AS n FROM d a JOIN d b ON a.id = b.id + 1", f"d={data}")
    assert joined == {"n": 49}


def test_columns_of_one_name_are_told_apart(data):
    (row,) = rows_of(
        "SELECT 1 AS id, 2 AS id_1, a.id, b.id FROM d a JOIN d b ON a.id = 4 AND b.id = 5", f"d={data}"
    )
    assert row == {"id": 1, "id_1": 2, "id_2": 4, "id_3": 5}


def test_each_split_is_a_table(splits):
    manifest = rs.Manifest.load(splits)
    (counted,) = rows_of(
        "SELECT (SELECT count(*) FROM train) AS train, (SELECT count(*) FROM test) AS test,"
        " (SELECT count(*) FROM whole) AS whole, (SELECT count(*) FROM train JOIN test USING (id)) AS both",
        splits,
        f"whole={splits}",
    )
    assert counted == {"train": manifest.rows("train"), "test": manifest.rows("test"), "whole": 50, "both": 0}


def test_where_rows_are_may_be_asked(splits):
    rows = rows_of("SELECT id, key, split, record, file FROM d ORDER BY split, file, record", f"d={splits}")
    assert {row["split"] for row in rows} == set(SPLIT)
    assert all(row["key"] == row["id"] for row in rows)
    assert [row["record"] for row in rows if row["split"] == "test"] == list(range(len(rows)))[
        : sum(row["split"] == "test" for row in rows)
    ]
    assert all(Path(row["file"]).parent == splits for row in rows)
    assert "split" not in rows_of("SELECT * FROM d WHERE text <> 'split' LIMIT 1", f"d={splits}")[0]


def test_files_of_others_are_records(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / f"{name}.tfrecord", *[example(n=[number]) for number in range(3)])
    assert rows_of("SELECT sum(n) AS s FROM records", tmp_path / "a.tfrecord", tmp_path / "b.tfrecord") == [
        {"s": 6}
    ]
    several = [f"t={tmp_path}/a.tfrecord", f"t={tmp_path}/b.tfrecord"]
    assert rows_of("SELECT count(*) AS n FROM t", *several) == [{"n": 6}]
    (tmp_path / "x=1").mkdir()
    write(tmp_path / "x=1/c.tfrecord", example(n=[5]))
    previous = os.getcwd()
    try:
        os.chdir(tmp_path)
        assert rows_of("SELECT n FROM records", "x=1") == [{"n": 5}]
    finally:
        os.chdir(previous)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT sid FROM d", "SQL: expected a column, got `sid` (did you mean `side`?)"),
        ("SELECT 1 FROM dd", "SQL: expected d, got `dd` (did you mean `d`?)"),
        ("SELECT 1; SELECT 2", "SQL: expected one query, got 2 statements"),
        ("", "SQL: expected one query, got 0 statements"),
        ("CREATE TABLE x AS SELECT 1", "SQL: expected one query, got CREATE"),
        ("SELECT id + text FROM d", "SQL: "),
        ("SELECT", "SQL: "),
        ("SELECT text::INT FROM d", "SQL: "),
    ],
)
def test_what_is_wrong_is_told_in_a_line(sql, message, data):
    with pytest.raises(SpecError) as error:
        rows_of(sql, f"d={data}")
    text = str(error.value)
    assert text.startswith(message)
    assert "\n" not in text
    assert len(text) > len("SQL: ")


OUTSIDE = [
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM read_json('{file}')",
    "SELECT * FROM read_parquet('{file}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM '{file}'",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "COPY d TO '{folder}/out.parquet' (FORMAT parquet)",
    "EXPORT DATABASE '{folder}/all'",
    "IMPORT DATABASE '{folder}/all'",
    "ATTACH '{folder}/x.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET memory_limit = '10GB'",
    "RESET lock_configuration",
    "PRAGMA enable_profiling",
    "CALL pragma_version()",
    "CREATE SECRET (TYPE s3, KEY_ID 'a')",
    "SELECT getenv('HOME')",
    "SELECT * FROM ROWS",
    "SELECT 1; COPY (SELECT 1) TO '{folder}/out.csv'",
]


@pytest.mark.parametrize("sql", OUTSIDE)
def test_nothing_else_is_read_or_written(sql, data, tmp_path):
    file = tmp_path / "secret.csv"
    file.write_text("a\n1\n")
    with pytest.raises(SpecError) as error:
        rows_of(sql.format(file=file, folder=tmp_path), f"d={data}")
    assert "1\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_a_corrupt_record_is_named(tmp_path):
    file = write(tmp_path / "a.tfrecord", *[example(n=[number]) for number in range(5)])
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(RecordError, match=f"{file}: record 4 at byte"):
        rows_of("SELECT sum(n) FROM records", file)


def test_a_query_has_a_folder_and_memory_of_its_own(data, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source, sql = f"d={data}", "SELECT current_setting('temp_directory') AS folder FROM d LIMIT 1"
    with query(sql, tables_of(sql, source), memory="100MiB") as result:
        (row,) = result.read_all().to_pylist()
        assert [Path(row["folder"])] == list(tmp_path.iterdir())
    sql = "SELECT id, repeat(text, 100) AS text FROM d, range(20000) ORDER BY hash(id, range) LIMIT 3"
    assert len(rows_of(sql, source, memory="200MB")) == 3
    with pytest.raises(StoreError, match="`SQL` needs more memory"):
        rows_of("SELECT list(range) FROM range(10_000_000), d", source, memory="20MB")
    for size in ("much", "5", "5x"):
        with pytest.raises(SpecError, match=f"memory: expected a size such as 2GiB, got `{size}`"):
            rows_of("SELECT 1", source, memory=size)
    assert not list(tmp_path.iterdir())


def test_results_are_saved(data, tmp_path):
    sql = "SELECT id, text, many, side, text::BLOB AS raw FROM d WHERE id < 5 ORDER BY id"
    expected = rows_of(sql, f"d={data}")
    for suffix in (".jsonl", ".csv", ".parquet"):
        out = location(tmp_path / f"out{suffix}")
        with saving(out, force=False) as save, query(sql, tables_of(sql, f"d={data}")) as result:
            assert save(result) == 5
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert lines == expected
    assert parquet.read_table(tmp_path / "out.parquet")["id"].to_pylist() == list(range(5))
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [json.loads(row["many"]) for row in rows] == [row["many"] for row in expected]
    assert [row["text"] for row in rows] == [row["text"] or "" for row in expected]
    for name, error, message in (("out.csv", StoreError, "exists"), ("out.txt", SpecError, "ends in")):
        with pytest.raises(error, match=message), saving(location(tmp_path / name), force=False):
            raise AssertionError


def test_columns_that_differ_in_case_are_told_apart_or_refused(tmp_path):
    path = file_of(
        tmp_path / "x", [record_of({"A": ("int64", [1]), "a": ("int64", [2]), "b": ("int64", [3])})]
    )
    with query("SELECT max(b) AS b FROM t", {"t": rs.scan(path)}) as result:
        assert result.read_all().to_pylist() == [{"b": 3}]
    with query("FROM t", {"t": rs.scan(path)}) as result:
        assert list(result.read_all().to_pylist()[0].values()) == [1, 2, 3]
    with pytest.raises(SpecError) as error, query("SELECT max(a) FROM t", {"t": rs.scan(path)}):
        pass
    assert str(error.value) == (
        "SQL: expected names that differ in more than case, got `A` and `a` (`export` writes both)"
    )


def test_tables_whose_names_differ_in_case_are_told_apart_or_refused(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {a: int64}")
    for name, rows in {"one": [1], "two": [2, 3]}.items():
        rs.write([{"a": n} for n in rows], schema, tmp_path / name)
    sources = [f"A={tmp_path}/one", f"a={tmp_path}/two", f"b={tmp_path}/one"]
    with pytest.raises(SpecError, match="tables whose names differ in more than case, got `A` and `a`"):
        rows_of("SELECT count(*) AS n FROM A", *sources)
    assert rows_of("SELECT count(*) AS n FROM b", *sources) == [{"n": 1}]


def test_a_gap_is_no_empty_line_of_csv(tmp_path):
    """Which readers pass over."""
    schema = rs.Schema.loads("schema: s\nfeatures: {x: {dtype: float32, default: 0.0}}")
    rs.write([{"x": 1.0}, {}, {"x": 2.0}], schema, tmp_path / "data", shuffle=None)
    tables = named_tables({"train": tmp_path / "data"})
    out = tmp_path / "x.csv"

    def save(sql: str) -> int:
        with saving(location(out), force=False) as write, query(sql, tables) as result:
            return write(result)

    with pytest.raises(RecordError, match="x: expected a value in every record for a csv of one column"):
        save("SELECT x FROM train")
    assert not out.exists()
    assert save("SELECT x, 1 AS y FROM train") == 3
    assert [row["x"] for row in csv.DictReader(out.open())] == ["1", "", "2"]


def test_ctrl_c_ends_a_query(tmp_path):
    """With KeyboardInterrupt, also where Python is called by DuckDB."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    started, ended = threading.Event(), threading.Event()

    def interrupt() -> None:
        started.wait()
        while not ended.wait(0.05):
            os.kill(os.getpid(), signal.SIGINT)

    def count() -> None:
        with connected() as connection, interrupting(connection):
            try:
                started.set()
                connection.sql(sql).fetchall()
            finally:
                ended.set()
                thread.join()

    sql = "SELECT count(*) FROM range(20000) x(i), range(400000) y(j) WHERE i * j % 7 = 3"
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            count()
    finally:
        started.set()
        ended.set()
        signal.signal(signal.SIGINT, usual)


@pytest.mark.newest  # DuckDB 1.4 has none
def test_an_object_without_members_is_one(data):
    assert rows_of("SELECT {} AS e FROM train LIMIT 2", data) == [{"e": {}}] * 2


NAN_ROWS = [(row, (1.0, float("nan"), 2.0, None)[row % 4]) for row in range(16)]


def test_nan_is_the_largest_number_in_every_comparison(tmp_path):
    schema = rs.Schema.loads(
        "schema: s\nfeatures: {r: int64, x: {dtype: float32, default: 0.0, with_missing: true}}"
    )
    rs.write([{"r": row, "x": x} for row, x in NAN_ROWS], schema, tmp_path / "d", shuffle=None)
    known = {row: float("inf") if x != x else x for row, x in NAN_ROWS if x is not None}
    conditions = {
        "x > 1.5": lambda x: x > 1.5,
        "NOT x > 1.5": lambda x: not x > 1.5,
        "x BETWEEN 1.5 AND 'nan'::FLOAT": lambda x: x >= 1.5,
        "x <= 1": lambda x: x <= 1,
    }
    for condition, is_true in conditions.items():
        rows = rows_of(f"SELECT r FROM train WHERE {condition} ORDER BY r", tmp_path / "d")
        assert [row["r"] for row in rows] == [row for row, x in known.items() if is_true(x)], condition
    pairs = sum(one == other for one in known.values() for other in known.values())
    assert rows_of("SELECT count(*) AS n FROM train a JOIN train b USING (x)", tmp_path / "d") == [
        {"n": pairs}
    ]


@pytest.mark.parametrize("condition", ["true", "r > 0"])
def test_lists_without_a_label_are_empty(tmp_path, condition):
    schema = rs.Schema.loads(
        "schema: s\nfeatures: {r: int64, w: {kind: label, names: [p, q], shape: [null]}}"
    )
    rs.write([{"r": row, "w": []} for row in range(2)], schema, tmp_path / "d", shuffle=None)
    rows = rows_of(f"SELECT * FROM train WHERE {condition}", tmp_path / "d")
    assert rows == [{"r": row, "w": []} for row in range(2) if condition == "true" or row]
    scanner = Scanner.of_rows(StoredDataset.of(tmp_path / "d"))
    assert sum(
        map(len, Condition(f"len(w) = 0 AND {condition}", scanner).matching(scanner.batches()))
    ) == len(rows)


def test_files_without_rows_and_rows_without_features_are_counted(tmp_path):
    write(tmp_path / "none.tfrecord")
    write(tmp_path / "hollow.tfrecord", example(), example(), example())
    for name, rows in {"none": 0, "hollow": 3}.items():
        assert rows_of("SELECT count(*) AS n FROM records", tmp_path / f"{name}.tfrecord") == [{"n": rows}]


def test_a_pivot_is_a_query(data):
    counted = rows_of(
        "PIVOT (SELECT id % 3 AS m, side FROM d) ON m USING count(*) ORDER BY side", f"d={data}"
    )
    assert counted == [
        {"side": side}
        | {str(m): sum(row["id"] % 3 == m and row["side"] == n for row in ROWS) for m in range(3)}
        for n, side in enumerate(["left", "right"])
    ]
    for sql in ("CREATE TABLE x AS PIVOT d ON side", "PIVOT d ON side; SELECT 1"):
        with pytest.raises(SpecError, match="SQL: expected one query, got "):
            rows_of(sql, f"d={data}")


@pytest.mark.parametrize("name", ["b-c", "c/d", "g.h", "i j"])
def test_a_name_that_is_no_word_takes_double_quotes(tmp_path, name):
    path = file_of(
        tmp_path / "x", [record_of({name: ("int64", [1]), "a": ("int64", [2]), "A": ("int64", [3])})]
    )
    says = re.escape(
        f'expected "{name}", got `{name}` (a name with other characters than letters, digits and _'
    )
    with pytest.raises(SpecError, match=says):
        rows_of(f"SELECT {name} FROM x", f"x={path}")
    # `a` in double quotes is no column that is two
    assert rows_of(f'SELECT "{name}" AS "of a" FROM x', f"x={path}") == [{"of a": 1}]
    with pytest.raises(SpecError, match=f'{says}|the name "{name}" takes its double quotes'):
        Condition(f"{name} = 1", Scanner.of_rows(StoredDataset.of(path)))
    if "/" not in name:
        with pytest.raises(SpecError, match=says):
            rows_of(f"SELECT 1 FROM {name}", f"{name}={path}")
        assert rows_of(f'SELECT 1 AS one FROM "{name}"', f"{name}={path}") == [{"one": 1}]


ODD_VALUES = {
    "'340282366920938463463374607431768211455'::UHUGEINT": str(2**128 - 1),
    "'24:00'::TIME": "24:00:00",
    "'12:00:00+02:30'::TIMETZ": "12:00:00+02:30",
    "'0101'::BIT": "0101",
    "'-123456789012345678901234567890123456789012345'::BIGNUM": "-" + "1234567890" * 4 + "12345",
    "TIMESTAMP '2020-01-12 01:00:00' - TIMESTAMP '2020-01-01'": "11 days 01:00:00",
    "[INTERVAL 14 MONTH]": ["1 year 2 months"],
    "{'TIME': '24:00'::TIME, 'bit': 1}": {"TIME": "24:00:00", "bit": 1},
    "TIMESTAMPTZ '2020-01-01 01:30:00+02'": "2019-12-31T23:30:00.000000Z",
}


@pytest.mark.parametrize("value", ODD_VALUES)
def test_values_that_arrow_does_not_have_are_text(data, tmp_path, value):
    expected, sql = ODD_VALUES[value], f"SELECT {value} AS x, id, id FROM d WHERE id = 3"
    assert rows_of(sql, f"d={data}") == [{"x": expected, "id": 3, "id_1": 3}]
    for suffix in (".csv", ".parquet"):
        out = location(tmp_path / f"out{suffix}")
        with saving(out, force=False) as save, query(sql, tables_of(sql, f"d={data}")) as result:
            assert save(result) == 1
    if isinstance(expected, str) and not value.startswith("TIMESTAMPTZ"):
        assert parquet.read_table(tmp_path / "out.parquet")["x"].to_pylist() == [expected]
        assert [row["x"] for row in csv.DictReader((tmp_path / "out.csv").open())] == [expected]


def test_the_order_of_rows_is_kept_where_a_value_becomes_text(data):
    rows = rows_of("SELECT id, INTERVAL (id) DAY AS days FROM d ORDER BY id DESC", f"d={data}")
    assert [row["id"] for row in rows] == list(range(50))[::-1]
    assert rows[0]["days"] == "49 days"
