"""Calls in other threads."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from recordspec.threads import Threads

INTERRUPTED = """
import random, signal
from recordspec.threads import Threads

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
for seed in range(500):
    threads = Threads("interrupted")
    try:
        signal.setitimer(signal.ITIMER_REAL, random.Random(seed).uniform(1e-5, 3e-4))
        while True:
            threads.submit(len, b"").done()
    except KeyboardInterrupt:
        threads.close()
"""


def test_calls_are_done_in_their_order_and_their_errors_raised():
    threads, done = Threads("in order"), []
    results = [threads.submit(done.append, number) for number in range(100)]
    failed = threads.submit(int, "x")
    assert [result.get() for result in results] == [None] * 100
    assert done == list(range(100))
    with pytest.raises(ValueError, match="invalid literal"):
        failed.get()
    assert failed.done()
    threads.close()


def test_closing_waits_for_what_has_begun_alone():
    threads, begun, go_on, late = Threads("closed"), threading.Event(), threading.Event(), []
    first = threads.submit(lambda: (begun.set(), go_on.wait(60)))
    last = threads.submit(late.append, 1)
    begun.wait(60)
    threading.Timer(0.01, go_on.set).start()
    threads.close()
    assert first.done()
    assert not last.done()
    assert not late


def test_an_interrupt_at_any_place_leaves_threads_that_can_be_closed():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], timeout=60, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
