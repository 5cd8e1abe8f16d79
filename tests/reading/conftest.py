"""A dataset whose schema has every sort of layout."""

from __future__ import annotations

import pytest
from broken_files import ROWS, SCHEMA, row

import recordspec as rs


@pytest.fixture
def data(tmp_path):
    rs.write(map(row, range(ROWS)), SCHEMA, tmp_path / "data", shards=4)
    return tmp_path / "data"
