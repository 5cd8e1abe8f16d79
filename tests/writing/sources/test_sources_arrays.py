"""Arrays and frames of pandas: what is missing in them, and what is lost by none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from in_parts import MANY, error_of, records, rows_of, schema

import recordspec as rs
from recordspec.writing.sources import base
from recordspec.writing.sources.python_rows import source_of


def test_gaps_are_told_by_the_whole_column(part_bytes):
    part_bytes(8)
    one = schema("n: {dtype: int64, default: -1}")
    assert [row["n"] for row in rows_of(source_of({"n": np.array([1.0, 2.0, np.nan])}), one)] == [1, 2, -1]
    assert error_of(source_of({"n": np.array([1.0, 2.0])}), one) == [
        "row 0: features.n: expected int64, got float 1.0 (write 1)"
    ]
    assert error_of(source_of({"n": np.array([1, np.nan, 2.5])}), one) == [
        "row 2: features.n: expected int64, got float 2.5 (`float32` holds fractions)"
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
        "row 1: features.n: expected int64, got float 1.5 (`float32` holds fractions)"
    ]


@pytest.mark.parametrize(
    ("cells", "row", "got"),
    [
        ([1, 2**53 + 1, None, 3], 1, "9007199254740992.0 (from 2^53 on a float may be rounded; the dtype Int64"),
        ([1, None, 2.5], 2, "2.5 (`float32` holds fractions)"),
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


def test_whole_numbers_with_gaps_come_as_floats(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {n: {dtype: int64, default: -1}}")
    gaps = [1, None, 3]
    given = {
        "rows": [{"n": value} for value in gaps],
        "array": {"n": np.array([1, np.nan, 3])},
        "masked": {"n": np.ma.array([1, 0, 3], mask=[False, True, False])},
        "frame": pd.DataFrame({"n": gaps}),
        "nullable": pd.DataFrame({"n": pd.array(gaps, "Int64")}),
    }
    for name, one in given.items():
        rs.write(one, schema, tmp_path / name)
        read = [int(row["n"]) for row in rs.read(tmp_path / name, schema)]
        assert read == [1, -1, 3], name
    with pytest.raises(rs.RecordError) as caught:
        rs.write({"n": np.array([1.5, np.nan])}, schema, tmp_path / "fraction")
    assert str(caught.value).startswith("row 0: features.n: expected int64, got float 1.5")
    with pytest.raises(rs.RecordError, match=r"got float 1\.0"):
        rs.write({"n": np.array([1.0, 2.0])}, schema, tmp_path / "floats")


def test_a_row_that_is_masked_in_part_is_refused(tmp_path):
    values = np.ma.array([[1, 2], [3, 4]], mask=[[True, True], [False, True]])
    with pytest.raises(rs.RecordError, match="row 1: x: expected a whole value, got a mask in it"):
        rs.write({"x": values}, schema("x: {dtype: int64, shape: [2], default: [0, 0]}"), tmp_path / "data")
