"""The viewer in this process: a test sends each request once."""

from __future__ import annotations

import pytest

from recordspec.viewer import jobs


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """Makes a request wait until its job is done. The page would ask again after 0.7 s; a test does not."""
    monkeypatch.setattr(jobs, "_PATIENCE", 60.0)
