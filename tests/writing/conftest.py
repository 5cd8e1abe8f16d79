"""Makes the parts of sources so small that a few rows fill several parts."""

from __future__ import annotations

import pytest

from recordspec.writing.sources import base


@pytest.fixture
def part_bytes(monkeypatch):
    return lambda size: monkeypatch.setattr(base, "PART_BYTES", size)


@pytest.fixture
def small(part_bytes):
    part_bytes(10)
