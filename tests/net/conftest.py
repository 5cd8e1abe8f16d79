"""Snapshots: texts in `snapshots/` that a test compares with the current output.

    python -m pytest tests/net                       # compare
    python -m pytest tests/net --update-snapshots    # write them again, then read the diff

They are the same on every supported version of Python, TensorFlow and the other packages.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path

import gallery
import pytest

Snapshot = Callable[[str, str], None]


def pytest_addoption(parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="write tests/net/snapshots again")


@pytest.fixture
def snapshot(request) -> Snapshot:
    """Compares a text with the snapshot of that name, or writes the snapshot."""
    # the option is unknown if pytest was started for more than this folder
    update = request.config.getoption("--update-snapshots", default=False)

    def compare(name: str, text: str) -> None:
        path = gallery.SNAPSHOTS / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        known = path.read_text(encoding="utf-8") if path.exists() else ""
        if text != known:
            hint = "if the change is meant: python -m pytest tests/net --update-snapshots"
            lines = unified_diff(
                known.splitlines(), text.splitlines(), f"snapshots/{name}", "today", lineterm=""
            )
            pytest.fail("\n".join([*lines, "", hint]), pytrace=False)

    return compare


@pytest.fixture(scope="session")
def raw_home(tmp_path_factory) -> Path:
    """The schemas, configs and raw data of the gallery. Tests do not write into it."""
    return gallery.home(tmp_path_factory.mktemp("net") / "home")
