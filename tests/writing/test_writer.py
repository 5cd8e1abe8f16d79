"""A writer of rows, one after another: it is used in its block, and publishes all or nothing."""

from __future__ import annotations

import contextlib
import os

import pytest
from in_parts import schema

import recordspec as rs


def test_a_writer_that_refused_a_row_publishes_nothing(tmp_path):
    def build() -> None:
        with rs.ShardedWriter(schema("x: int64"), tmp_path / "data") as writer:
            for index in range(200):
                with contextlib.suppress(rs.RecordError):
                    writer.write({"x": "bad" if index == 10 else index})

    with pytest.raises(rs.RecordError, match=r"row 10: features\.x: expected int64, got str 'bad'"):
        build()
    assert os.listdir(tmp_path) == []


def test_a_writer_is_used_in_its_block(tmp_path):
    writer = rs.ShardedWriter(schema("x: int64"), tmp_path / "data")
    for _ in range(2):
        with pytest.raises(rs.SpecError, match="expected a writer within its `with` block"):
            writer.write({"x": 1})
        with writer:
            writer.write({"x": 1})
        (tmp_path / "data").rename(tmp_path / "other") if not (tmp_path / "other").exists() else None


def test_columns_have_as_many_values_as_rows_are_announced(tmp_path):
    with (
        pytest.raises(rs.SpecError, match="x: expected 2 values, got 3"),
        rs.ShardedWriter(schema("x: int64"), tmp_path / "data") as writer,
    ):
        writer.write_columns({"x": [1, 2, 3]}, 2)
