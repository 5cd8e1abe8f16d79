"""A folder after `init` and `build`."""

from __future__ import annotations

from pathlib import Path

import pytest

from shell import run


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A folder after `init` and `build`."""
    folder = tmp_path_factory.mktemp("home")
    assert run("init", folder).returncode == 0
    assert run("build", folder / "configs/flowers.yaml").returncode == 0
    return folder
