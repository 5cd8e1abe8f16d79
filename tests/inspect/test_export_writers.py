"""The files of an export: what each format holds, and what it refuses."""

from __future__ import annotations

import base64
import json
import os

import numpy as np
import pytest
from pyarrow import parquet
from some_records import example, write
from test_export import LISTS, build, written

import recordspec as rs
from recordspec.errors import RecordError, SpecError
from recordspec.inspect.export import export
from recordspec.inspect.query import Query


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
    export(data, tmp_path / "out.csv", Query(columns=("text", "n")), limit=3)
    assert (tmp_path / "out.csv").read_text() == '"text","n"\n,-7\n"ä, b",-6\n"say ""so""",-5\n'


def test_csv_refuses_bytes_that_are_no_text_by_name(tmp_path):
    """A build would read their base64 as text."""
    path = write(tmp_path / "f", example(a=[b"\xff"], n=[1]), example(n=[2]), example(a=[b""], n=[3]))
    with pytest.raises(SpecError) as error:
        export(path, tmp_path / "out.csv")
    hint = "(choose other columns, or write jsonl or parquet)"
    assert str(error.value) == f"a: expected text or numbers for csv, got bytes that are not all UTF-8 {hint}"
    export(path, tmp_path / "out.csv", Query(columns=("n",)))
    assert (tmp_path / "out.csv").read_text() == '"n"\n1\n2\n3\n'


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_only_parquet_keeps_the_sign_and_the_payload_of_a_nan(tmp_path, suffix):
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64, x: float32}")
    nans = np.array([0xFFC00000, 0x7FC00001, 0x7FC00000], np.uint32)
    rs.write(schema, {"n": np.arange(3), "x": nans.view(np.float32)}, tmp_path / "data")
    export(tmp_path / "data", tmp_path / f"out.{suffix}")
    build(tmp_path, schema, f"{{{suffix}: out.{suffix}}}")
    (batch,) = rs.read(schema, tmp_path / "again", batch=3)
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
