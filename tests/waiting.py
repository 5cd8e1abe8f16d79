"""Waits for a state instead of a time, so that no test depends on the speed of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

# Only limits a hang: on an idle machine, each state is reached within 2 s.
_HANG = 240.0


def wait_until(condition: Callable[[], object]) -> None:
    """Waits until a condition is true. Raises TimeoutError after 240 s."""
    end = time.monotonic() + _HANG
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"the condition was not true within {_HANG:.0f} s")
        time.sleep(0.01)


def wait_for_a_later_time(path: Path) -> None:
    """Waits until a file written now would get a later modification time than `path`.

    Times of files have the resolution of the kernel's tick, some milliseconds.
    """
    status, probe = path.stat(), path.with_name(".time")
    last = max(status.st_mtime_ns, status.st_ctime_ns)

    def is_later() -> bool:
        probe.write_bytes(b"x")
        return probe.stat().st_mtime_ns > last

    wait_until(is_later)
    probe.unlink()
