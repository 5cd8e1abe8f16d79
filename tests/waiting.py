"""Waiting for a state, however long the machine takes to come to it: no test waits for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

# A hang ends after so many seconds. Nothing that is waited for takes a hundredth of them on an idle machine.
_HANG = 240.0


def wait_until(is_so: Callable[[], object]) -> None:
    """Returns once this is so. Raises TimeoutError if it never is."""
    end = time.monotonic() + _HANG
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(f"after {_HANG:.0f} s it is not so")
        time.sleep(0.01)


def wait_for_a_later_time(path: Path) -> None:
    """Returns once what is written gets a later time than this file has: where the clock of files ticks every
    few milliseconds, what is written at once has the same."""
    status, probe = path.stat(), path.with_name(".time")
    last = max(status.st_mtime_ns, status.st_ctime_ns)

    def is_later() -> bool:
        probe.write_bytes(b"x")
        return probe.stat().st_mtime_ns > last

    wait_until(is_later)
    probe.unlink()
