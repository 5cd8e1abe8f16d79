"""Parquet files: in any parts they give the same rows under the same names."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from in_parts import NUMBER, parts_of, records, rows_in, rows_of
from pyarrow import parquet
from typed_rows import TABLE, encoded, without

import recordspec as rs
from recordspec.inferring.tables import infer_table
from recordspec.locations import location
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.parquet import Parquet


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    parquet.write_table(TABLE.slice(0, 20).drop_columns(["h"]), folder / "a.parquet", row_group_size=6)
    parquet.write_table(TABLE.slice(20).drop_columns(["h"]), folder / "b.parquet", row_group_size=30)
    (folder / "_SUCCESS").touch()
    return tmp_path


WITHOUT_HALF = without("h")


@pytest.mark.parametrize("size", [1, 300, 700, 1500, 1 << 30])
@pytest.mark.parametrize("given_files", ["rows", "rows/*.parquet"])
def test_parquet_files_in_any_parts_are_the_rows(files, part_bytes, size, given_files):
    part_bytes(size)
    source = Parquet(files=given_files).open(files)
    assert source.rows == 50
    assert records(source, WITHOUT_HALF) == encoded(WITHOUT_HALF)
    parts = parts_of(source, WITHOUT_HALF)
    counts = [rows_in(part.batches(WITHOUT_HALF, ())) for part in parts]
    places = [part.place(row) for part, count in zip(parts, counts, strict=True) for row in range(count)]
    assert places == [f"{files}/rows/a.parquet: row {row}" for row in range(20)] + [
        f"{files}/rows/b.parquet: row {row}" for row in range(30)
    ]
    if size == 1:
        starts = [(0, 0), (1, 6), (2, 12), (3, 18), (0, 0)]
        assert [(*part.groups, part.start) for part in parts] == starts
    if size == 1 << 30:
        assert [[*part.groups] for part in parts] == [[0, 1, 2, 3], [0]]


def test_parquet_columns_are_checked_by_name(tmp_path):
    parquet.write_table(pa.table({"x y": [1], "z": [1.5]}), tmp_path / "a.parquet")
    source = Parquet(files="a.parquet", columns={"n": "x y"}).open(tmp_path)
    assert rows_of(source, NUMBER) == [{"n": 1}]
    assert source.notes == ["columns that no feature names: z"]
    with pytest.raises(rs.SpecError) as caught:
        parts_of(Parquet(files="a.parquet").open(tmp_path), NUMBER)
    assert (
        str(caught.value)
        == f"{tmp_path}/a.parquet: n: expected one column `n`, got none (other columns: x y, z; if all rows lack "
        "it: a `default` of the feature, and `columns: {n: null}`)"
    )
    parquet.write_table(pa.table({"x y": ["1"]}), tmp_path / "b.parquet")
    with pytest.raises(rs.SpecError) as caught:
        parts_of(Parquet(files="*.parquet", columns={"n": "x y"}).open(tmp_path), NUMBER)
    assert str(caught.value) == f"{tmp_path}/b.parquet: n: expected int64, as in a.parquet, got string"


def test_all_rows_of_a_file_may_lack_a_feature(tmp_path):
    """As those of a test set lack the target."""
    parquet.write_table(pa.table({"n": [1, 2]}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("n\n1\n2\n")
    label = "{kind: label, names: [a, b]%s}"
    schema = rs.Schema.loads(f"schema: s\nfeatures: {{n: int64, y: {label % ', missing: true'}}}")
    for source in (Parquet, Csv):
        file = tmp_path / f"a.{source.__name__.lower()}"
        given = source(files=str(file), columns={"y": None})
        rs.write(given, schema, tmp_path / "data", force=True)
        (rows,) = rs.iterate(tmp_path / "data", batch=2)
        assert (rows["n"].tolist(), rows["y"].tolist()) == ([1, 2], [-1, -1])
        where = f"{file}{':1' * (source is Csv)}"
        message = (
            f"{where}: y: expected one column `y`, got none (if all rows lack it: `columns: {{y: null}}`)"
        )
        with pytest.raises(rs.SpecError, match=f"^{re.escape(message)}$"):
            source(files=str(file)).check(schema, ())
        strict = rs.Schema.loads(f"schema: s\nfeatures: {{n: int64, y: {label % ''}}}")
        message = f"{where}: columns.y: expected a column, got null, and a feature without `missing: true`"
        with pytest.raises(rs.SpecError, match=f"^{re.escape(message)}$"):
            given.check(strict, ())
        with pytest.raises(rs.SpecError, match=r"columns.k: expected a column, got null$"):
            source(files=str(file), columns={"k": None, "y": None}).check(schema, ("k",))


def test_files_that_are_no_parquet_are_named(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(rs.StoreError) as caught:
        parts_of(Parquet(files="empty").open(tmp_path), NUMBER)
    assert str(caught.value) == f"`{tmp_path}/empty` has no files named .parquet"
    (tmp_path / "a.parquet").write_text("no, this is something else")
    with pytest.raises(rs.RecordError) as refused:
        parts_of(Parquet(files="a.parquet").open(tmp_path), NUMBER)
    assert str(refused.value).startswith(
        f"{tmp_path}/a.parquet: expected a Parquet file that pyarrow reads, got Parquet magic bytes"
    )


def test_a_footer_that_contradicts_its_row_groups_is_named(tmp_path):
    """As in repeated_no_annotation.parquet of Apache's files, whose footer has 0 rows."""
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"n": [1, 2, 3, 4, 5, 6]}), path)
    data = path.read_bytes()
    # Thrift: a field of 64 bits, its value 6 in zigzag, and the list of row groups
    assert data.count(b"\x16\x0c\x19") == 1
    path.write_bytes(data.replace(b"\x16\x0c\x19", b"\x16\x00\x19"))
    hint = "pyarrow.parquet.read_table reads those of the row groups, and write_table makes a whole file"
    message = f"{path}: expected 6 rows in the footer, as in the row groups, got 0 ({hint})"
    for read in (
        lambda: rs.write(Parquet(files="a.parquet").open(tmp_path), NUMBER, tmp_path / "data"),
        lambda: infer_table([location(path)], "a", "parquet"),
    ):
        with pytest.raises(rs.RecordError) as caught:
            read()
        assert str(caught.value) == message
    parquet.write_table(parquet.read_table(path), path)
    assert Parquet(files="a.parquet").open(tmp_path).rows == 6


def test_dictionaries_in_structs_are_read_across_row_groups(tmp_path):
    words = pa.array(["a", "b", "c"] * 7).dictionary_encode()
    parquet.write_table(
        pa.table({"s": pa.StructArray.from_arrays([words], ["x"])}),
        tmp_path / "rows.parquet",
        row_group_size=5,
    )
    found = rs.infer(tmp_path / "rows.parquet").with_features({"s.x": "text"})
    rs.write(Parquet(files="rows.parquet").open(tmp_path), found.schema, tmp_path / "data", shuffle=None)
    assert rs.scan(tmp_path / "data").to_table()["s.x"].to_pylist() == ["a", "b", "c"] * 7
