"""Dates and times as whole numbers, from every source that has them."""

from __future__ import annotations

import datetime
import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import tensorflow as tf
from pyarrow import parquet

import recordspec as rs
from recordspec.inferring.tables import infer_rows
from recordspec.schema import dates
from recordspec.schema.values import BadValue
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.parquet import Parquet

DAY = 20_484  # 2026-01-31
NOON = DAY * 86_400 + 43_200


def schema(unit: str, default: str = "") -> rs.Schema:
    return rs.Schema.loads(f"schema: s\nfeatures: {{t: {{dtype: int64, date: {unit}{default}}}}}")


@pytest.mark.parametrize(
    ("unit", "value", "expected"),
    [
        ("days", datetime.date(2026, 1, 31), DAY),
        ("days", "2026-01-31", DAY),
        ("days", "1969-12-31", -1),
        ("days", np.datetime64("2026-01-31T00:00", "ns"), DAY),
        ("days", DAY, DAY),
        ("seconds", datetime.date(2026, 1, 31), DAY * 86_400),
        ("seconds", datetime.datetime(2026, 1, 31, 12), NOON),
        ("seconds", "2026-01-31T12:00", NOON),
        ("seconds", "2026-01-31 12:00:00.000Z", NOON),
        ("seconds", "2026-01-31T10:30:00-01:30", NOON),
        ("seconds", pd.Timestamp("2026-01-31T14:00", tz="Europe/Helsinki"), NOON),
        ("seconds", "2026-01-31T12:00:00.000000000+0000", NOON),
        ("milliseconds", "2026-01-31T12:00:00.25", NOON * 1000 + 250),
        ("microseconds", "9999-12-31T23:59:59.9999990Z", 253_402_300_799_999_999),
        ("nanoseconds", pd.Timestamp(NOON * 10**9 + 1), NOON * 10**9 + 1),
    ],
)
def test_a_date_is_so_many_units_since_1970(unit, value, expected):
    given = schema(unit)
    assert int(given.decode(given.encode({"t": value}))["t"]) == expected
    assert given.encode_batch({"t": [value] * 2}, 2) == [given.encode({"t": expected})] * 2


@pytest.mark.parametrize(
    ("unit", "value", "expected"),
    [
        ("days", "2026-01-31T12:00", "expected whole days since 1970-01-01, got 2026-01-31T12:00:00 (`date: seconds` holds it)"),
        ("seconds", "2026-01-31T12:00:00.5", "expected whole seconds since 1970-01-01, got 2026-01-31T12:00:00.500 (`date: milliseconds` holds it)"),
        ("nanoseconds", "2500-01-01", "expected whole nanoseconds since 1970-01-01, got 2500-01-01 (`date: days` holds it)"),
        ("nanoseconds", "2300-01-01T00:00:00.1234567", "expected nanoseconds only from 1677-09-22 to 2262-04-10, got `2300-01-01T00:00:00.1234567`"),
        ("seconds", "2026-01-31T12:00:00+24:00", "expected a date, a time, or their text as 2026-01-31 or 2026-01-31T12:00:00Z, got `2026-01-31T12:00:00+24:00`"),
        ("milliseconds", "2026-01-31T12:00.5", "expected a date, a time, or their text as 2026-01-31 or 2026-01-31T12:00:00Z, got `2026-01-31T12:00.5`"),
        ("days", "31.01.2026", "expected a date, a time, or their text as 2026-01-31 or 2026-01-31T12:00:00Z, got `31.01.2026`"),
        ("days", "2026-02-30", "expected a date, a time, or their text as 2026-01-31 or 2026-01-31T12:00:00Z, got `2026-02-30`"),
        ("days", 1.0, "expected a date, a time, or their text as 2026-01-31 or 2026-01-31T12:00:00Z, got float 1.0"),
        ("days", True, "expected a date, a time, or their text as 2026-01-31 or 2026-01-31T12:00:00Z, got bool True"),
    ],
)  # fmt: skip
def test_nothing_is_rounded_or_guessed(unit, value, expected):
    with pytest.raises(rs.RecordError) as caught:
        schema(unit).encode({"t": value})
    assert str(caught.value) == f"row 0: features.t: {expected}"


def test_columns_of_dates_are_stored_from_every_source(tmp_path):
    days = [datetime.date(2026, 1, 31), None, datetime.date(1969, 12, 31)]
    times = [None if day is None else datetime.datetime(day.year, day.month, day.day) for day in days]
    table = pa.table({"t": pa.array(days, pa.date32())})
    parquet.write_table(table, tmp_path / "a.parquet")
    texts = [None if day is None else day.isoformat() for day in days]
    (tmp_path / "a.csv").write_text("t,n\n" + "".join(f"{text or ''},1\n" for text in texts))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"t": text}) + "\n" for text in texts))
    given = {
        "date32": table,
        "date64": table.cast(pa.schema([("t", pa.date64())])),
        "timestamp": pa.table({"t": pa.array(times, pa.timestamp("us"))}),
        "zone": pa.table({"t": pa.array(times, pa.timestamp("ms", "Asia/Tokyo"))}),
        "text": pa.table({"t": texts}),
        "frame": pd.DataFrame({"t": pd.to_datetime(texts)}),
        "objects": pd.DataFrame({"t": days}),
        "polars": pl.DataFrame({"t": days}),
        "dicts": [{"t": day} for day in days],
        "parquet": Parquet(files="a.parquet").open(tmp_path),
        "csv": Csv(files="a.csv").open(tmp_path),
        "jsonl": Jsonl(files="a.jsonl").open(tmp_path),
    }
    for unit, scale in (("days", 1), ("seconds", 86_400)):
        for name, rows in given.items():
            folder = tmp_path / f"{unit} {name}"
            rs.write(rows, schema(unit, ", default: 7"), folder, progress=False)
            found = [int(row["t"]) for row in rs.read(folder, schema(unit, ", default: 7"))]
            assert found == [DAY * scale, 7, -scale], name
    with pytest.raises(
        rs.SpecError, match=r"t: expected a column for int64, got date32\[day\] \(`date: days` or"
    ):
        rs.write(table, rs.Schema.loads("schema: s\nfeatures: {t: int64}"), tmp_path / "plain")
    with pytest.raises(rs.StoreError, match=r"features\.t\.date: expected `days`, as the data was written"):
        rs.read(tmp_path / "days date32", schema("seconds"), batch=2)


def test_the_unit_is_inferred(tmp_path):
    cells = [("2026-01-31" if day < 10 else "", f"2026-01-{day:02d}") for day in range(1, 21)]
    lines = [f"{day},{day}T10:00:00Z,{gap},2026-01-99\n" for gap, day in cells]
    (tmp_path / "a.csv").write_text("day,time,gaps,none\n" + "".join(lines))
    found = rs.infer(tmp_path / "a.csv", "s").schema
    features = {name: feature for name, feature in found.names.items() if name != "none"}
    assert {name: (feature.date, feature.default) for name, feature in features.items()} == {
        "day": ("days", None),
        "time": ("seconds", None),
        "gaps": ("days", 0),
    }
    assert found.names["gaps"].description == "days since 1970-01-01, missing in 11 of 20"
    assert found.names["none"].kind == "text"
    rs.write(Csv(files="a.csv").open(tmp_path), found, tmp_path / "data", progress=False)
    times = pa.table({"t": pa.array([NOON * 1000, NOON * 1000 + 1], pa.timestamp("ms"))})
    assert infer_rows(times, "s").schema.names["t"].date == "milliseconds"
    assert infer_rows([{"t": datetime.date(2026, 1, 31)}], "s").schema.names["t"].date == "days"


ODD_TEXTS = """
2026-02-29 2024-02-29 1900-02-29 2000-02-29 1600-02-29 2026-04-31 2026-00-10 2026-13-01 2026-01-00 2026-1-1 0000-01-01 0001-01-01
0001-01-01T00:30+01:00 9999-12-31T23:30-01:00 9999-12-31T23:59:59.999999 2026-01-31T24:00 2026-01-31T12:60
2026-01-31T12:00:60 2026-01-31T12:00:59.1 2026-01-31T12 2026-01-31T12:00+25:00 2026-01-31T12:00-0030 2026-01-31T12:00+00:30
2026-01-31T00:00Z 2026-01-31T01:00+01:00 2026-01-31T12:00:00.000000001 2500-01-31T12:00:00.000000001 2500-01-31T12:00:00.5
1600-01-01 1969-12-31T23:59:59.999999999 2026-01-31Z 20260131 soon - 31.01.2026 2026-01-31T12:00:00.1234567890 2500-01-01
"""


@pytest.mark.parametrize("unit", ["days", "seconds", "milliseconds", "microseconds", "nanoseconds"])
def test_texts_in_a_graph_are_what_numpy_makes_of_them(unit):
    """Random days and times, and odd texts one by one."""
    first, last = np.datetime64("0001-01-01"), np.datetime64("9999-12-31")
    draw = np.random.default_rng(0)
    if unit == "nanoseconds":
        first, last = np.datetime64("1678-01-01"), np.datetime64("2262-01-01")
    span = (last - first).astype(int)
    days = first + np.unique([0, 1, 364, 365, 366, span - 1, span, *draw.integers(0, span, 30_000)])
    texts = np.datetime_as_string(days)
    if unit != "days":
        code = dates._CODES[unit]
        parts = np.timedelta64(1, "D").astype(f"m8[{code}]").astype(int)
        moments = days[:-1].astype(f"M8[{code}]") + draw.integers(0, parts, len(days) - 1)
        texts = np.concatenate([texts, np.datetime_as_string(moments)])
    in_graph = tf.function(
        lambda some: dates.since_epoch_in_graph(some, unit, ("t",)),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    np.testing.assert_array_equal(in_graph(tf.constant(texts)), dates.since_epoch(texts.tolist(), unit))
    for text in (f" {one}" for one in [*ODD_TEXTS.split(), "", "2026-01-31 12:00:00.000Z"]):
        try:
            (expected,) = dates.since_epoch([text], unit)
        except BadValue:
            named = f"t: expected .*, got `{re.escape(text.strip())}`"
            with pytest.raises(tf.errors.InvalidArgumentError, match=named):
                in_graph(tf.constant(["2026-01-31", text]))
        else:
            assert in_graph(tf.constant([text])).numpy().tolist() == [expected]


def test_a_text_in_a_graph_that_is_no_date_is_named():
    for text, expected in {
        "31.1.2026": r"d: expected a date or a time as 2026-01-31 or 2026-01-31T12:00:00Z, got `31\.1\.2026`",
        "2026-01-31T12:00": "d: expected whole days since 1970-01-01, got `2026-01-31T12:00`",
    }.items():
        with pytest.raises(tf.errors.InvalidArgumentError, match=expected):
            dates.since_epoch_in_graph(tf.constant(["2026-01-31", text]), "days", ("d",))


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (DAY, "days", "2026-01-31"),
        (DAY + 0.4, "days", "2026-01-31"),  # a mean
        (-1, "days", "1969-12-31"),
        (NOON, "seconds", "2026-01-31 12:00:00"),
        (NOON * 1000 + 50, "milliseconds", "2026-01-31 12:00:00.05"),
        (-1, "nanoseconds", "1969-12-31 23:59:59.999999999"),
        (NOON, "days", f"{NOON:,} days"),  # seconds, most likely
    ],
)
def test_a_date_is_drawn_as_text(number, unit, text):
    assert dates.date_text(number, unit) == text


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (0.5, "days", "0.5 days"),
        (129_600_000, "milliseconds", "1.5 days"),
        (5400, "seconds", "1.5 h"),
        (90, "seconds", "1.5 min"),
        (1500, "milliseconds", "1.5 s"),
        (86.6, "nanoseconds", "86.6 ns"),
    ],
)
def test_a_duration_is_drawn_in_a_unit_of_its_size(number, unit, text):
    assert dates.span_text(number, unit) == text
