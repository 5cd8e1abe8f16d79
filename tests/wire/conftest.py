"""A path of a file that each Hypothesis example writes again."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("frames") / "x"
