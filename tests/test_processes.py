"""Tasks in several processes."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from recordspec.processes import processes


class TwoArgumentsError(Exception):
    """Can be pickled, and not be made again."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


def fail(how: str, attempt: str) -> object:
    """Does what cannot be sent to another process."""
    if how == "not made again":
        raise TwoArgumentsError("the ", "reason")
    if how == "not pickled":
        error = ValueError("the reason")
        error.lock = threading.Lock()  # type: ignore[attr-defined]
        raise error
    return threading.Lock()


def test_what_cannot_be_sent_between_processes_is_told_with_its_reason(capfd):
    told = {
        "not made again": "TwoArgumentsError: the reason",
        "not pickled": "ValueError: the reason",
        "result": "cannot pickle '_thread.lock' object",
    }
    with processes(1, "tasks") as several:
        for how, reason in told.items():
            with pytest.raises((RuntimeError, TypeError)) as caught:
                list(several.results(fail, [(how,)]))
            assert str(caught.value) == reason
            assert "in fail" in str(caught.value.__cause__) or how == "result"
    assert capfd.readouterr().err == ""


def blocked(attempt: str) -> int:
    """The signals that this process blocks, of `man 5 proc`."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1], 16) for line in status if line.startswith("SigBlk"))


FIRST = """
from recordspec.processes import processes
from test_processes import blocked

with processes(2, "tasks") as several:
    print(*several.results(blocked, [(), ()]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux has it")
def test_ctrl_c_cannot_reach_a_process_before_it_ignores_it():
    # in a new process: the first that it starts, starts the resource tracker of Python, too
    done = subprocess.run(
        [sys.executable, "-c", FIRST], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [int(signals) >> 1 & 1 for signals in done.stdout.split()] == [1, 1]  # SIGINT is 2
