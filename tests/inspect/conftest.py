"""A dataset to look at, and files of which a few records are read at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from some_records import ROWS, SCHEMA

import recordspec as rs
from recordspec.wire import tfrecord


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "d"
    rs.write(SCHEMA, ROWS, folder, shards=3)
    return folder


@pytest.fixture(params=[None, 60])
def chunks(request, monkeypatch) -> None:
    """All records at once, or a few: what is found is the same."""
    if request.param is not None:
        monkeypatch.setattr(tfrecord.salvage, "__defaults__", (None, request.param))


@pytest.fixture
def small_chunks(monkeypatch):
    """Few records at once, so that forms change on the way."""
    monkeypatch.setattr(tfrecord.salvage, "__defaults__", (None, 200))
