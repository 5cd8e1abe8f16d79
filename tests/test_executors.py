"""Tasks in several processes, and calls in threads."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from recordspec import executors
from recordspec.executors import ProcessExecutor, ThreadPool
from waiting import wait_until


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
    with closing(ProcessExecutor(1, "tasks")) as several:
        for how, reason in told.items():
            with pytest.raises((RuntimeError, TypeError)) as caught:
                list(several.map(fail, [(how,)]))
            assert str(caught.value) == reason
            assert "in fail" in str(caught.value.__cause__) or how == "result"
    assert capfd.readouterr().err == ""


def seen(numbers: list[int], together: Path | None, attempt: str) -> tuple[int, list[int]]:
    """The process that runs it, and what an earlier task has left in its argument.

    Waits until two processes of their own run tasks, which each leave a file in the folder `together`.
    """
    if together is not None:
        if multiprocessing.parent_process() is not None:
            (together / str(os.getpid())).touch()
        wait_until(lambda: len(os.listdir(together)) >= 2)
    numbers.append(len(numbers))
    return os.getpid(), numbers


def test_a_little_work_is_done_in_this_process_with_copies_of_the_tasks(monkeypatch):
    monkeypatch.setattr(executors, "_ALONE", 60.0)
    numbers: list[int] = []
    with executors.executor(2, "tasks") as several:
        assert list(several.map(seen, [(numbers, None)] * 9)) == [(os.getpid(), [0])] * 9
        with pytest.raises(ValueError, match="the reason"):
            list(several.map(fail, [("not pickled",)]))
    assert numbers == []


def test_processes_begin_once_there_is_work_for_them(monkeypatch, tmp_path):
    """One less than there are jobs: the first task goes on in this process, which waits for them."""
    monkeypatch.setattr(executors, "_ALONE", 0.2)
    with executors.executor(3, "tasks") as several:
        first, *others = several.map(seen, [([], tmp_path)] * 9)
    assert {numbers == [0] for _, numbers in (first, *others)} == {True}
    processes = {process for process, _ in others}
    assert sorted(map(str, processes - {os.getpid()})) == sorted(os.listdir(tmp_path))
    assert len(os.listdir(tmp_path)) == 2


def blocked(attempt: str) -> int:
    """The signals that this process blocks, of `man 5 proc`."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1], 16) for line in status if line.startswith("SigBlk"))


FIRST = """
from recordspec import executors
from test_executors import blocked

executors._ALONE = 0.0
with executors.executor(2, "tasks") as several:
    print(*several.map(blocked, [(), ()]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux has it")
def test_ctrl_c_cannot_reach_a_process_before_it_ignores_it():
    # in a new process: the first that it starts, starts the resource tracker of Python, too
    done = subprocess.run(
        [sys.executable, "-c", FIRST], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [int(signals) >> 1 & 1 for signals in done.stdout.split()] == [1, 1]  # SIGINT is 2


INTERRUPTED = """
import random, signal
from recordspec.executors import ThreadPool

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
for seed in range(500):
    threads = ThreadPool("interrupted")
    try:
        signal.setitimer(signal.ITIMER_REAL, random.Random(seed).uniform(1e-5, 3e-4))
        while True:
            threads.submit(len, b"").done()
    except KeyboardInterrupt:
        threads.close()
"""


def test_calls_are_done_in_their_order_and_their_errors_raised():
    threads, done = ThreadPool("in order"), []
    results = [threads.submit(done.append, number) for number in range(100)]
    failed = threads.submit(int, "x")
    assert [result.result() for result in results] == [None] * 100
    assert done == list(range(100))
    with pytest.raises(ValueError, match="invalid literal"):
        failed.result()
    assert failed.done()
    threads.close()


def interrupted() -> None:
    raise KeyboardInterrupt


def test_an_interrupt_of_a_call_in_this_thread_is_raised_before_other_results():
    with closing(ThreadPool("interrupted", after=60)) as threads:
        threads.submit(interrupted)
        with pytest.raises(KeyboardInterrupt):
            threads.run_next()
        assert not threads.run_next()


def test_closing_waits_for_what_has_begun_alone():
    threads, begun, go_on, late = ThreadPool("closed"), threading.Event(), threading.Event(), []
    first = threads.submit(lambda: (begun.set(), go_on.wait(60)))
    last = threads.submit(late.append, 1)
    closing = threading.Thread(target=threads.close)
    begun.wait(60)
    closing.start()
    wait_until(lambda: threads._closed)
    closing.join(0.1)  # it would be long enough to end
    assert closing.is_alive()
    go_on.set()
    closing.join(60)
    assert not closing.is_alive()
    assert first.done()
    assert not last.done()
    assert not late


def test_an_interrupt_at_any_place_leaves_threads_that_can_be_closed():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], timeout=240, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
