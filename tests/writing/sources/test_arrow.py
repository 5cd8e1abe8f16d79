"""Typed columns of tables and frames: sent to another process in parts, they give the same rows."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from in_parts import NUMBER, error_of, parts_of, records, rows_in, rows_of, schema
from PIL import Image
from pyarrow import parquet
from typed_rows import TABLE, encoded, without

import recordspec as rs
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.parquet import Parquet
from recordspec.writing.sources.python_rows import source_of


def large(table: pa.Table) -> pa.Table:
    """The same in types with 64-bit offsets, and labels as a dictionary."""
    kinds = {
        "s": pa.large_binary(),
        "l": pa.dictionary(pa.int8(), pa.string()),
        "v": pa.large_list(pa.int16()),
        "t": pa.large_list(pa.large_string()),
    }
    for name, kind in kinds.items():
        place = table.schema.get_field_index(name)
        column = pa.array(table.column(name).to_pylist(), kind)
        table = table.set_column(place, name, column)
    return table


def chunked(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table.slice(0, 13), table.slice(13, 0), table.slice(13, 20), table.slice(33)])


FORMS = {
    "table": TABLE,
    "large": large(TABLE),
    "chunks": chunked(TABLE),
    "slice": pa.concat_tables([TABLE, TABLE]).combine_chunks().slice(50, 50),
    "batch": TABLE.combine_chunks().to_batches()[0],
    "reader": TABLE,
    "dict": {name: TABLE.column(name) for name in TABLE.column_names},
    "polars": pl.from_arrow(TABLE.drop_columns(["h", "p"])),
    "series": {column.name: column for column in pl.from_arrow(TABLE.drop_columns(["h", "p"])).get_columns()},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [300, 1 << 20])
def test_typed_columns_are_the_rows(part_bytes, form, size):
    part_bytes(size)
    # Polars has no float16, and in old versions no arrays of one length
    one = without("h", "p") if form in ("polars", "series") else without()

    def source():
        return source_of(FORMS[form].to_reader(7) if form == "reader" else FORMS[form])

    for step in (50, 3):
        assert records(source(), one, step) == encoded(one)
    parts = parts_of(source(), one)
    assert (len(parts) > 1) == (size == 300)
    counts = [rows_in(part.batches(one, ())) for part in parts]
    places = [part.place(row) for part, count in zip(parts, counts, strict=True) for row in range(count)]
    assert places == [f"row {row}" for row in range(50)]


def test_a_part_of_a_table_is_sent_alone(part_bytes):
    part_bytes(8000)
    parts = list(source_of(pa.table({"n": np.arange(100_000)})).parts(NUMBER, ()))
    assert len(parts) == 100
    assert len(pickle.dumps(parts[5])) < 10_000
    parts = list(source_of({"n": np.arange(100_000)}).parts(NUMBER, ()))
    assert len(pickle.dumps(parts[5])) < 10_000


def test_lists_of_numbers_need_no_python_list():
    one = schema("v: {kind: var_len, dtype: int64, missing_item: -1}")
    lists = pa.array([[1, 2], [], [3, None]])
    (part,) = source_of(pa.table({"v": lists})).parts(one, ())
    values = next(part.batches(one, ())).part(1, 3).values["v"]
    assert isinstance(values, pa.Array)
    assert values.to_pylist() == [[], [3, -1]]


@pytest.mark.parametrize(
    ("features", "column", "expected"),
    [
        ("x: {kind: var_len, dtype: int64}", pa.array([[1], [1, None]]), "expected int64, got nothing at item 1 (`missing_item` of the feature gives a value to store in its place)"),
        ("x: {dtype: int64, shape: [2]}", pa.array([[1, 2], [1]]), "expected int64 of shape [2], got shape [1]"),
        ("x: int64", pa.array([1, None]), "expected int64, got nothing (only a feature with a default may be missing)"),
        ("x: int64", pa.array(["1", "a"]).slice(1), "expected int64, got str 'a'"),
        ("x: int64", pa.array([1.0, 1.5]), "expected int64, got float 1.0 (write 1)"),
        ("x: {kind: label, names: [a]}", pa.array(["a", "b"]).dictionary_encode(), "expected `a`, or an index, got `b` (add `b` to `names` if it is a class)"),
        ("x: float32", pa.array([None, None]), "expected float32, got nothing (only a feature with a default may be missing)"),
        ("x: {kind: text}", pa.array([b"a", b"\xff"]), "expected UTF-8 text, got the byte 0xff at position 0"),
    ],
)  # fmt: skip
def test_a_typed_value_that_does_not_fit_is_named(features, column, expected):
    (line,) = error_of(source_of(pa.table({"x": column})), schema(features))
    assert line.split(": ", 2)[1:] == ["features.x", expected]


@pytest.mark.parametrize(
    ("features", "kind", "expected"),
    [
        ("x: int64", pa.timestamp("us"), "expected a column for int64, got timestamp[us] (`date: days` or `date: seconds` takes dates; cast others to int64)"),
        ("x: {kind: var_len, dtype: float32}", pa.list_(pa.duration("s")), "expected a column for float32, got list<item: duration[s]> (cast it to float64)"),
        ("x: {kind: var_len, dtype: int64}", pa.list_(pa.date32()), "expected a column for int64, got list<item: date32[day]> (cast dates in lists, days to int32 and times to int64)"),
        ("x: text", pa.date32(), "expected a column of text, got date32[day] (cast it to string)"),
        ("x: {kind: label, names: [a]}", pa.duration("s"), "expected a column of names or indices, got duration[s] (cast it to string)"),
        ("x: {kind: image}", pa.time32("s"), "expected a column of paths or bytes, got time32[s]"),
    ],
)  # fmt: skip
def test_a_type_that_no_feature_takes_is_named(tmp_path, features, kind, expected):
    table = pa.table({"x": pa.array([], kind)})
    with pytest.raises(rs.SpecError) as caught:
        parts_of(source_of(table), schema(features))
    assert str(caught.value) == f"x: {expected}"
    parquet.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(rs.SpecError) as caught:
        parts_of(Parquet(files="rows.parquet").open(tmp_path), schema(features))
    got = str(caught.value).replace("element:", "item:")
    assert got.startswith(f"{tmp_path}/rows.parquet: x: {expected.partition(', got')[0]}, got ")


def test_columns_of_other_names_are_refused():
    for rows in ({"n": [1], "m": [2]}, pa.table({"n": [1], "m": [2]}), pd.DataFrame({"n": [1], "m": [2]})):
        with pytest.raises(rs.SpecError) as caught:
            parts_of(source_of(rows), NUMBER)
        assert (
            str(caught.value)
            == "expected names of `s`, got `m` (`rs.write(..., ignore=[...])` leaves names out)"
        )
    with pytest.raises(rs.SpecError) as caught:
        parts_of(source_of(pa.table([[1], [2]], ["n", "n"])), NUMBER)
    assert str(caught.value) == "rows: expected every column once, got `n` again"


def test_a_reader_is_read_once():
    source = source_of(pa.table({"n": [1]}).to_reader())
    assert rows_of(source, NUMBER) == [{"n": 1}]
    with pytest.raises(rs.SpecError) as caught:
        parts_of(source, NUMBER)
    assert str(caught.value) == (
        "rows: expected a reader from its start, got one at its end (give another, or the table)"
    )


@pytest.mark.parametrize(
    "rows", [pa.table({"n": [True]}), pd.DataFrame({"n": [True]}), pl.DataFrame({"n": [True]}), {"n": [True]}]
)
def test_a_column_of_bools_is_none_of_numbers(rows):
    hint = "write 1, or store it as `kind: tensor` with `dtype: bool`"
    assert error_of(source_of(rows), NUMBER) == [f"row 0: features.n: expected int64, got bool True ({hint})"]
    assert rows_of(source_of(rows), schema("n: {kind: tensor, dtype: bool}")) == [{"n": True}]


@pytest.mark.parametrize("feature", ["text", "string", "{kind: label, names: [a, b]}"])
def test_a_null_entry_of_a_dictionary_is_missing(feature):
    schema = rs.Schema.loads(f"schema: s\nfeatures:\n  f: {feature}\n")
    column = pa.DictionaryArray.from_arrays([0, 1, 2], pa.array(["a", None, "b"]))
    assert error_of(source_of(pa.table({"f": column})), schema) == error_of(
        source_of({"f": ["a", None, "b"]}), schema
    )


def test_paths_of_a_table_stay_in_its_folder(tmp_path):
    one = schema("v: {kind: video, shape: [null, 2, 3, 3]}\n  i: {kind: image, shape: [2, 3, 3]}")
    Image.new("RGB", (3, 2)).save(tmp_path / "a.png")
    rows = [{"v": ["a.png"], "i": "a.png"}, {"v": ["a.png", "../b.png"], "i": "/etc/c.png"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    for form, place in [
        (Jsonl(files="rows.jsonl"), "rows.jsonl:2"),
        (Parquet(files="rows.parquet"), "rows.parquet: row 1"),
    ]:
        assert error_of(form.open(tmp_path), one) == [
            f"{tmp_path}/{place}: features.v: expected a path in {tmp_path}, got `../b.png`",
            f"{tmp_path}/{place}: features.i: expected a path in {tmp_path}, got `/etc/c.png`",
        ]
