"""Typed columns of tables and frames: sent to another process in parts, they give the same rows."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from in_parts import MANY, NUMBER, error_of, parts_of, records, rows_in, rows_of, schema
from pyarrow import parquet
from typed_rows import TABLE, encoded, without

import recordspec as rs
from recordspec.writing.sources import base
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
    one = schema("v: {kind: var_len, dtype: int64}")
    lists = pa.array([[1, 2], [], [3]])
    (part,) = source_of(pa.table({"v": lists})).parts(one, ())
    values = next(part.batches(one, ())).part(1, 3).values["v"]
    assert isinstance(values, pa.Array)
    assert values.to_pylist() == [[], [3]]


@pytest.mark.parametrize(
    ("features", "column", "expected"),
    [
        ("x: {kind: var_len, dtype: int64}", pa.array([[1], [1, None]]), "expected int64, got nothing at item 1"),
        ("x: {dtype: int64, shape: [2]}", pa.array([[1, 2], [1]]), "expected int64 of shape [2], got shape [1]"),
        ("x: int64", pa.array([1, None]), "expected int64, got nothing (only a feature with a default may be missing)"),
        ("x: int64", pa.array(["1", "a"]).slice(1), "expected int64, got str 'a'"),
        ("x: int64", pa.array([1.0, 1.5]), "expected int64, got float 1.0 (write 1)"),
        ("x: {kind: label, names: [a]}", pa.array(["a", "b"]).dictionary_encode(), "expected a, or an index, got `b`"),
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
        ("x: {kind: var_len, dtype: float32}", pa.list_(pa.decimal128(5, 2)), "expected a column for float32, got list<item: decimal128(5, 2)> (cast it to float64)"),
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
        assert str(caught.value) == "expected names of `s`, got `m`"
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


def test_gaps_are_told_by_the_whole_column(part_bytes):
    part_bytes(8)
    one = schema("n: {dtype: int64, default: -1}")
    assert [row["n"] for row in rows_of(source_of({"n": np.array([1.0, 2.0, np.nan])}), one)] == [1, 2, -1]
    assert error_of(source_of({"n": np.array([1.0, 2.0])}), one) == [
        "row 0: features.n: expected int64, got float 1.0 (write 1)"
    ]
    assert error_of(source_of({"n": np.array([1, np.nan, 2.5])}), one) == [
        "row 2: features.n: expected int64, got float 2.5 (round it, or store it as a float)"
    ]


NAN = float("nan")
DEFAULTS = (
    "{dtype: float32, default: -7.0}",
    "{dtype: int64, default: -7}",
    "{dtype: string, default: none}",
    "{kind: tensor, dtype: float64}",
    "{kind: tensor, dtype: bool}",
    "{kind: label, names: [a, b]}",
    "float32",
)
# What stands in a column of pandas, by its dtype, where a value is missing, and the values.
COLUMNS = {
    "float64": ([NAN], [1.0, 2.5, -3.0]),
    "float32": ([NAN], [1.0, 2.5]),
    "Float64": ([None], [1.0, 2.5]),
    "int64": ([], [1, 2]),
    "Int64": ([None], [1, 2]),
    "bool": ([], [True, False]),
    "boolean": ([None], [True, False]),
    "string": ([None], ["a", "b", ""]),
    "category": ([None], ["a", "b"]),
    "object": ([None, NAN, pd.NA, pd.NaT], ["a", "b"]),
    "datetime64[ns]": ([], [pd.Timestamp("2020-01-01")]),
}
NUMBERS = {"object": [1, 1.5, 2.0, np.float64(3), np.float32(0.5), np.int64(4)], "category": [1, 2]}


@st.composite
def series(draw) -> pd.Series:
    dtype = draw(st.sampled_from(sorted(COLUMNS)))
    missing, values = COLUMNS[dtype]
    values = draw(st.sampled_from([values, NUMBERS.get(dtype, values)]))
    cells = draw(st.lists(st.sampled_from([*missing, *values]), min_size=1, max_size=8))
    return pd.Series(cells, dtype=dtype)


def outcome(source, one: rs.Schema) -> list[bytes] | str:
    try:
        return records(source, one, 3)
    except (rs.RecordError, rs.SpecError):
        return "refused"


@pytest.mark.slow
@given(column=series(), feature=st.sampled_from(DEFAULTS), size=st.sampled_from([8, 1 << 20]))
@MANY
def test_a_frame_and_its_table_are_the_same_rows(column, feature, size):
    frame, one = pd.DataFrame({"x": column}), schema(f"x: {feature}")
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except pa.ArrowInvalid:  # NumPy scalars of several dtypes in one column
        reject()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "PART_BYTES", size)
        of_frame = outcome(source_of(frame), one)
        assert of_frame == outcome(source_of(table), one)


@pytest.mark.parametrize("missing", [None, NAN, pd.NA, pd.NaT])
def test_what_pandas_calls_missing_is_missing(missing):
    frame = pd.DataFrame({"n": pd.Series([1.5, missing], dtype=object)})
    one = schema("n: {dtype: float32, default: -7.0}")
    assert rows_of(source_of(frame), one) == [{"n": 1.5}, {"n": -7.0}]
    assert error_of(source_of(frame), schema("n: float32")) == [
        "row 1: features.n: expected float32, got nothing (only a feature with a default may be missing)"
    ]


@pytest.mark.parametrize("cells", [[None, 2.0], [1, 2.0, None], [np.float64(2), None], [np.float32(2), None]])
def test_floats_of_an_object_column_are_whole_numbers_beside_gaps(cells):
    frame = pd.DataFrame({"n": pd.Series(cells, dtype=object)})
    one = schema("n: {dtype: int64, default: -7}")
    expected = [{"n": -7 if cell is None else int(cell)} for cell in cells]
    assert rows_of(source_of(frame), one) == expected
    assert rows_of(source_of(pa.Table.from_pandas(frame)), one) == expected


def test_whole_numbers_of_an_object_column_stay_exact():
    frame = pd.DataFrame({"n": pd.Series([2**53 + 1, 1.5], dtype=object)})
    one = schema("n: {kind: tensor, dtype: float64}")
    assert [row["n"] for row in rows_of(source_of(frame[1:]), one)] == [1.5]
    assert error_of(source_of(frame), schema("n: int64")) == [
        "row 1: features.n: expected int64, got float 1.5 (round it, or store it as a float)"
    ]


@pytest.mark.parametrize(
    ("cells", "row", "got"),
    [
        ([1, 2**53 + 1, None, 3], 1, "9007199254740992.0 (from 2^53 on a float may be rounded; the dtype Int64"),
        ([1, None, 2.5], 2, "2.5 (round it, or store it as a float)"),
    ],
)  # fmt: skip
def test_of_integers_with_gaps_the_one_that_lost_is_named(cells, row, got):
    frame = pd.DataFrame({"n": cells})
    one = schema("n: {dtype: int64, default: -7}")
    for rows in (frame, {"n": frame["n"].to_numpy()}):
        (message,) = error_of(source_of(rows), one)
        assert message.startswith(f"row {row}: features.n: expected int64, got float {got}")


def test_nan_is_a_value_in_arrays_rows_and_polars():
    one = schema("n: {dtype: float32, default: -7.0}")
    for rows in ({"n": np.array([NAN])}, [{"n": NAN}], {"n": [NAN]}, pl.DataFrame({"n": [NAN]})):
        (row,) = rows_of(source_of(rows), one)
        assert np.isnan(row["n"])


@pytest.mark.parametrize(
    "rows", [pa.table({"n": [True]}), pd.DataFrame({"n": [True]}), pl.DataFrame({"n": [True]}), {"n": [True]}]
)
def test_a_column_of_bools_is_none_of_numbers(rows):
    hint = "write 1, or store it as `kind: tensor` with `dtype: bool`"
    assert error_of(source_of(rows), NUMBER) == [f"row 0: features.n: expected int64, got bool True ({hint})"]
    assert rows_of(source_of(rows), schema("n: {kind: tensor, dtype: bool}")) == [{"n": True}]


@pytest.mark.parametrize("kind", ["int64[pyarrow]", "Int64", "float64"])
def test_pandas_columns_of_any_backing_are_values(kind):
    one = schema("n: {dtype: int64, default: -1}\n  s: {dtype: string, default: none}")
    frame = pd.DataFrame(
        {"n": pd.Series([1, None, 3], dtype=kind), "s": pd.Series(["a", None, ""], dtype="string")}
    )
    assert rows_of(source_of(frame), one) == [
        {"n": 1, "s": b"a"},
        {"n": -1, "s": b"none"},
        {"n": 3, "s": b""},
    ]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (pl.DataFrame({"n": [1]}).lazy(), "got a LazyFrame (give its .collect())"),
        (pl.Series([1]), "got Series"),
        (3, "got int 3"),
        ("ab", "got str 'ab' (a config's `write: {source: ...}` names files)"),
    ],
)
def test_rows_that_are_none_are_refused(rows, expected):
    with pytest.raises(rs.SpecError) as caught:
        source_of(rows)
    assert str(caught.value) == (
        f"rows: expected an iterable of dicts, a dict of arrays, a frame, or an Arrow table, {expected}"
    )


@pytest.mark.parametrize("feature", ["text", "string", "{kind: label, names: [a, b]}"])
def test_a_null_entry_of_a_dictionary_is_missing(feature):
    schema = rs.Schema.loads(f"schema: s\nfeatures:\n  f: {feature}\n")
    column = pa.DictionaryArray.from_arrays([0, 1, 2], pa.array(["a", None, "b"]))
    assert error_of(source_of(pa.table({"f": column})), schema) == error_of(
        source_of({"f": ["a", None, "b"]}), schema
    )


@pytest.mark.parametrize("feature", ["{kind: fixed_len, dtype: float32, default: -1}", "int64"])
@pytest.mark.parametrize("cells", [[1, 2], [1e300, 2], [2**70, 2]])
def test_long_doubles_with_gaps_are_numbers(feature, cells):
    schema = rs.Schema.loads(f"schema: s\nfeatures:\n  f: {feature}\n")
    wide = np.array([*cells, 0], np.longdouble)
    masked = np.ma.array(wide, mask=[False, False, True])
    frame = pd.DataFrame({"f": [*wide[:2], np.longdouble("nan")]}, dtype=np.longdouble)
    expected = error_of(source_of({"f": [*map(float, cells), None]}), schema)
    if feature == "int64" and max(cells) < 3:
        expected = error_of(source_of({"f": [*cells, None]}), schema)
    assert error_of(source_of({"f": masked}), schema) == expected
    assert error_of(source_of(frame), schema) == expected
