"""Pipelines that encode inputs, and of two features."""

from __future__ import annotations

import pytest
import rows_to_encode

import recordspec as rs


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory) -> rs.Pipeline:
    folder = tmp_path_factory.mktemp("encoded")
    (folder / "s.yaml").write_text(rows_to_encode.SCHEMA)
    (folder / "c.yaml").write_text(rows_to_encode.CONFIG)
    made = rs.Pipeline.load(folder / "c.yaml")
    made.build(rows_to_encode.rows(600))
    return made


@pytest.fixture
def small(tmp_path):
    """A pipeline of two features, `x` and `y`, by its `fit`."""

    def make(fit: str, features: str = "{x: float32, y: int64}", some: list | None = None) -> rs.Pipeline:
        (tmp_path / "s.yaml").write_text(f"schema: s\nfeatures: {features}\n")
        (tmp_path / "c.yaml").write_text(f"schema: s.yaml\ndata: data\nread: {{batch: 4}}\nfit: {fit}\n")
        found = rs.Pipeline.load(tmp_path / "c.yaml")
        found.build([{"x": n / 2, "y": n} for n in range(8)] if some is None else some, force=True)
        return found

    return make
