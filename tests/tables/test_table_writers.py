"""The files of tables, of `export` and `query`: what each format holds, and what it refuses."""

from __future__ import annotations

import base64
import csv
import datetime
import json
import os
from decimal import Decimal

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from test_export import LISTS, TEXTS, build, written

import recordspec as rs
from recordspec.errors import RecordError, SpecError
from recordspec.tables.export import export
from recordspec.tables.table_writers import CsvWriter, ParquetWriter, json_lines
from some_records import example, write


def bit_patterns(dtype: type[np.floating]) -> np.ndarray:
    """Floats of all sizes, NaN and infinities among them, and the ones beside each power of ten."""
    width = np.dtype(dtype).itemsize
    bits = np.random.default_rng(5).integers(0, 256, (20_000, width), np.uint8).view(dtype)[:, 0]
    tens = np.array([float(f"1e{power}") for power in range(-45, 39)], dtype)
    near = [tens, np.nextafter(tens, dtype(0)), np.nextafter(tens, dtype(np.inf)), tens * dtype(0.7), -tens]
    special = [0.0, -0.0, np.nan, np.inf, -np.inf, 2.0**53, 16777217, 5e-324]
    return np.concatenate([bits, *near, np.arange(-999, 999).astype(dtype), np.array(special, dtype)])


def lines_of(columns: dict) -> list[str]:
    """What is written of the columns of a record batch, and of a slice of it."""
    batch = pyarrow.RecordBatch.from_arrays([*columns.values()], [*columns])
    lines = str(json_lines(batch), "utf-8").split("\n")
    assert str(json_lines(batch.slice(1, 2)), "utf-8").split("\n") == [*lines[1:3], ""]
    return lines


def test_json_values_are_those_of_the_json_module():
    """Arrow formats most of them: the line must be the one that Python's encoder writes."""
    single, double = bit_patterns(np.float32), bit_patterns(np.float64)
    half = np.resize(np.arange(2**16, dtype=np.uint16).view(np.float16), len(single))
    rows = len(single)
    present = np.arange(rows) % 7 > 0
    integers = np.random.default_rng(6).integers(-(2**63), 2**63 - 1, rows)
    words = [f"{n} ä\U0001f600" for n in range(rows)]
    odd = [TEXTS[n % len(TEXTS)] for n in range(rows)]
    values = {  # Arrow's, and Python's
        "single": (single, [float(str(value)) for value in single]),
        "double": (double, double.tolist()),
        "half": (half, half.tolist()),
        "int": (integers, integers.tolist()),
        "uint": (integers.view(np.uint64), integers.view(np.uint64).tolist()),
        "bool": (present, present.tolist()),
        "word": (words, words),
        "odd%s": (odd, odd),
        "none": ([None] * rows, [None] * rows),
    }
    arrays, expected = {}, {}
    for name, (stored, python) in values.items():
        for column, mask in ((name, None), (f"some {name}", ~present)):
            arrays[column] = pyarrow.array(stored, mask=mask)
            expected[column] = python
            if mask is not None:
                expected[column] = [None if gap else value for gap, value in zip(mask, python, strict=True)]
    encode = json.JSONEncoder(ensure_ascii=False).encode
    lines = [encode(dict(zip(expected, row, strict=True))) for row in zip(*expected.values(), strict=True)]
    assert lines_of(arrays) == [*lines, ""]


def of_type(values: list, kind: pyarrow.DataType) -> pyarrow.Array:
    return pyarrow.array([*values, None], kind)


EPOCH, LATE = datetime.datetime(1970, 1, 1, 0, 0, 1), datetime.date(2026, 1, 31)
TEXT, OCTETS = pyarrow.string(), pyarrow.binary()
# Of each type some values, and what is written of them; null follows.
TYPES = [
    (pyarrow.array(["b", "a", None]).dictionary_encode(), ['"b"', '"a"']),
    (pyarrow.array([[b"x"], [], None], pyarrow.large_list(OCTETS)), ['[{"b64": "eA=="}]', "[]"]),
    (of_type([["a", None], ['"']], pyarrow.list_(TEXT)), ['["a", null]', r'["\""]']),
    (of_type([[0.1, 2], [None, 1e-7]], pyarrow.list_(pyarrow.float32(), 2)), ["[0.1, 2.0]", "[null, 1e-07]"]),
    (of_type([[[1], None], []], pyarrow.list_(pyarrow.list_(pyarrow.int8()))), ["[[1], null]", "[]"]),
    (of_type([{"a": 1, 'b"': [True]}, {}], pyarrow.struct([("a", pyarrow.int32()), ('b"', pyarrow.list_(pyarrow.bool_()))])),
     [r'{"a": 1, "b\"": [true]}', r'{"a": null, "b\"": null}']),
    (of_type([[("k", 1)], []], pyarrow.map_(TEXT, pyarrow.int64())), ['[{"key": "k", "value": 1}]', "[]"]),
    (of_type([b"ab", b"\xff\xff"], pyarrow.binary(2)), ['{"b64": "YWI="}', '{"b64": "//8="}']),
    (of_type([Decimal("12.50"), Decimal("-0.01")], pyarrow.decimal128(38, 2)), ["12.50", "-0.01"]),
    (of_type([Decimal(10**20), Decimal(0)], pyarrow.decimal128(38, 0)), ["100000000000000000000", "0"]),
    (of_type([LATE, -719163], pyarrow.date32()), ['"2026-01-31"', "-719163"]),
    (of_type([LATE, EPOCH.date()], pyarrow.date64()), ['"2026-01-31"', '"1970-01-01"']),
    (of_type([EPOCH, 253402300800], pyarrow.timestamp("s")), ['"1970-01-01T00:00:01"', "253402300800"]),
    (of_type([EPOCH, -1], pyarrow.timestamp("ms")), ['"1970-01-01T00:00:01.000"', '"1969-12-31T23:59:59.999"']),
    (of_type([0, 1], pyarrow.timestamp("us", "Europe/Berlin")),
     ['"1970-01-01T00:00:00.000000Z"', '"1970-01-01T00:00:00.000001Z"']),
    (of_type([0, 1], pyarrow.time32("s")), ['"00:00:00"', '"00:00:01"']),
]  # fmt: skip


def test_every_type_of_arrow_has_a_form_in_json():
    for array, expected in TYPES:
        lines = lines_of({"a": array})
        assert lines == [f'{{"a": {text}}}' for text in [*expected, "null"][: len(array)]] + [""], array.type


PAIRS = pyarrow.struct([("a", pyarrow.large_list(pyarrow.list_(pyarrow.float32(), 1)))])


def test_a_parquet_file_has_types_that_every_tool_reads(tmp_path):
    batch = pyarrow.RecordBatch.from_pydict(
        {
            "same": pyarrow.array(["a", "b"] * 50, pyarrow.large_string()),
            "apart": pyarrow.array([f"{n}" for n in range(100)]),
            "class": pyarrow.array(["x", None] * 50).dictionary_encode(),
            "pair": pyarrow.array([[1, 2], None] * 50, pyarrow.list_(pyarrow.int64(), 2)),
            "tags": pyarrow.array([["t"], []] * 50, pyarrow.large_list(pyarrow.large_binary())),
            "of": pyarrow.array([{"a": [[0.5]]}, {}, None, {"a": [None]}] * 25, PAIRS),
        }
    )
    with ParquetWriter(tmp_path / "out.parquet", batch.schema) as writer:
        for start in range(0, 100, 10):
            writer.write(batch.slice(start, 10))
    table, meta = (
        parquet.read_table(tmp_path / "out.parquet"),
        parquet.read_metadata(tmp_path / "out.parquet"),
    )
    assert table.to_pylist() == batch.to_pylist()
    assert {field.name: str(field.type).replace("element", "item") for field in table.schema} == {
        "same": "string",
        "apart": "string",
        "class": "string",
        "pair": "list<item: int64>",
        "tags": "list<item: binary>",
        "of": "struct<a: list<item: list<item: float>>>",
    }
    columns = [meta.row_group(0).column(place) for place in range(meta.num_columns)]
    repeated = [one.path_in_schema for one in columns if "RLE_DICTIONARY" in one.encodings]
    assert (meta.num_row_groups, repeated) == (1, ["same", "class", "tags.list.element"])


def test_what_parquet_lacks_is_refused(tmp_path):
    spans = pyarrow.array([pyarrow.MonthDayNano([1, 2, 3])])
    schema = pyarrow.schema([("a", spans.type)])
    with pytest.raises(SpecError) as error, ParquetWriter(tmp_path / "out.parquet", schema) as writer:
        writer.write(pyarrow.RecordBatch.from_arrays([spans], schema=schema))
    assert str(error.value) == (
        "out: expected values that parquet holds, got Unhandled type for Arrow to Parquet schema conversion: "
        "month_day_nano_interval (choose other columns, or write jsonl)"
    )


def test_cells_of_csv_are_text_numbers_or_json(tmp_path):
    batch = pyarrow.RecordBatch.from_pydict(
        {
            "class": pyarrow.array(['a"', None]).dictionary_encode(),
            "day": pyarrow.array([LATE, None]),
            "list": pyarrow.array([["a", None], None]),
            "raw": pyarrow.array([b"\xff", None]),
            "sum": pyarrow.array([Decimal("12.50"), None]),
            "span": pyarrow.array([pyarrow.MonthDayNano([1, 2, 3]), None]),
            "is": pyarrow.array([True, None]),
        }
    )
    with CsvWriter(tmp_path / "out.csv", batch.schema) as writer:
        writer.write(batch)
    with (tmp_path / "out.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            batch.schema.names,
            ['a"', "2026-01-31", '["a", null]', '{"b64": "/w=="}', "12.50", "[1, 2, 3]", "true"],
            [""] * 7,
        ]


def test_types_follow_from_all_records(tmp_path, small_chunks):
    """The first records do not tell that a later one has two values, another key, or bytes that are no text."""
    first = [example(a=[1], b=[b"text"], gone=[]) for _ in range(50)]
    path = write(tmp_path / "f", *first, example(a=[1, 2], b=[b"\xff"], late=[0.5]))
    export(path, tmp_path / "out.parquet")
    table = parquet.read_table(tmp_path / "out.parquet")
    assert {name: str(table.schema.field(name).type) for name in table.column_names} == {
        "a": "list<element: int64>",
        "b": "binary",
        "gone": "null",
        "late": "float",
    }
    assert table.to_pylist()[0] == {"a": [1], "b": b"text", "gone": None, "late": None}
    assert table.to_pylist()[-1] == {"a": [1, 2], "b": b"\xff", "gone": None, "late": 0.5}
    export(path, tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert lines[0] == {
        "a": [1],
        "b": {"b64": base64.b64encode(b"text").decode()},
        "gone": None,
        "late": None,
    }
    assert len(lines) == 51


def test_csv_refuses_lists_by_name(tmp_path):
    data = written(LISTS, tmp_path / "data")
    with pytest.raises(SpecError) as error:
        export(data, tmp_path / "out.csv")
    hint = "(choose other columns, or write jsonl or parquet)"
    assert str(error.value).splitlines() == [
        f"{name}: expected one value per record for csv, got a list {hint}"
        for name in ("many", "pair", "words")
    ]
    assert os.listdir(tmp_path) == ["data"]
    export(data, tmp_path / "out.csv", columns=("text", "n"), limit=3)
    assert (tmp_path / "out.csv").read_text() == '"text","n"\n,-7\n"ä, b",-6\n"say ""so""",-5\n'


def test_csv_refuses_bytes_that_are_no_text_by_name(tmp_path):
    """A build would read their base64 as text."""
    path = write(tmp_path / "f", example(a=[b"\xff"], n=[1]), example(n=[2]), example(a=[b""], n=[3]))
    with pytest.raises(SpecError) as error:
        export(path, tmp_path / "out.csv")
    hint = "(choose other columns, or write jsonl or parquet)"
    assert str(error.value) == f"a: expected text or numbers for csv, got bytes that are not all UTF-8 {hint}"
    export(path, tmp_path / "out.csv", columns=("n",))
    assert (tmp_path / "out.csv").read_text() == '"n"\n1\n2\n3\n'


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_only_parquet_keeps_the_sign_and_the_payload_of_a_nan(tmp_path, suffix):
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64, x: float32}")
    nans = np.array([0xFFC00000, 0x7FC00001, 0x7FC00000], np.uint32)
    rs.write({"n": np.arange(3), "x": nans.view(np.float32)}, schema, tmp_path / "data")
    export(tmp_path / "data", tmp_path / f"out.{suffix}")
    build(tmp_path, schema, f"{{{suffix}: out.{suffix}}}")
    (batch,) = rs.read(tmp_path / "again", schema, batch=3)
    expected = nans.tolist() if suffix == "parquet" else [0x7FC00000] * 3
    found = zip(batch["n"].numpy().tolist(), batch["x"].numpy().view(np.uint32).tolist(), strict=True)
    assert [bits for _, bits in sorted(found)] == expected


def test_what_is_missing_in_a_csv_of_one_column_is_no_empty_line(tmp_path):
    path = write(tmp_path / "f", example(a=[1]), example(), example(a=[3]))
    with pytest.raises(RecordError) as error:
        export(path, tmp_path / "out.csv")
    assert str(error.value) == (
        "a: expected a value in every record for a csv of one column, got none in some "
        "(choose two, or write jsonl or parquet)"
    )
    assert os.listdir(tmp_path) == ["f"]


def test_a_csv_is_of_one_column_only_if_no_later_record_has_another(tmp_path, small_chunks):
    path = write(tmp_path / "f", *[example(), example(a=[1])] * 30, example(b=[2]))
    assert export(path, tmp_path / "out.csv").columns == ("a", "b")
    assert (tmp_path / "out.csv").read_text() == '"a","b"\n' + ",\n1,\n" * 30 + ",2\n"
