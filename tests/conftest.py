"""Quiet TensorFlow, and where things are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

ROOT = Path(__file__).parents[1]


@pytest.fixture
def root() -> Path:
    """The project's folder."""
    return ROOT
