"""A sample of the crash tests; `make crash` tries every point."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.newest]


def test_after_any_crash_there_is_the_old_or_the_new_dataset(root):
    command = [sys.executable, root / "tests/crashes/sweep.py", "--sample", "60", "--processes", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "wrong: 0"
