"""The viewer in this process, as tests use it: nobody asks a second time."""

from __future__ import annotations

import pytest

from recordspec.viewer import jobs


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """A request waits for its job, however long that takes on this machine; of a page, it would ask again."""
    monkeypatch.setattr(jobs, "_PATIENCE", 60.0)
