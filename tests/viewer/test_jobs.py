"""A job runs once for all requests, reports its progress, and is cancelled when there are no more requests."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

import recordspec as rs
from recordspec.viewer import jobs
from recordspec.viewer.jobs import Jobs
from waiting import wait_until


def waited(job):
    while not job.is_done:
        job.wait(lambda: False)
    return job.wait(lambda: True)


def test_a_job_runs_once_and_is_kept():
    made, begun = Jobs(), []

    def work(progress, publish):
        begun.append(1)
        progress.begin("counting", 10)
        publish("first")
        progress.advance(4)
        progress.advance(6)
        return "whole"

    assert [waited(made.of("a", work)) for _ in range(3)] == ["whole"] * 3
    assert begun == [1]
    described = made.of("a", work).described()
    assert described == {"done": True, "version": 2, "stage": "counting", "read": 10, "of": 10}


def test_a_first_part_is_there_before_the_end():
    go_on = threading.Event()

    def work(progress, publish):
        publish("first")
        go_on.wait(60)
        return "whole"

    job = Jobs().of("a", work)
    assert job.wait(lambda: job.version > 0) == "first"
    assert not job.is_done
    go_on.set()
    assert waited(job) == "whole"


@pytest.mark.parametrize("error", [rs.RecordError("bad"), ValueError("other")])
def test_an_error_is_raised_for_who_asks_and_the_job_begins_again(error):
    made, begun = Jobs(), []

    def work(progress, publish):
        begun.append(1)
        if len(begun) == 1:
            raise error
        return "whole"

    with pytest.raises(type(error)):
        waited(made.of("a", work))
    assert waited(made.of("a", work)) == "whole"


def test_a_job_of_which_nobody_asks_is_cancelled_and_begins_again(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(jobs, "time", SimpleNamespace(monotonic=lambda: now[0]))
    made, ended = Jobs(), []

    def work(progress, publish):
        try:
            for row in range(30):
                if row == 5:
                    progress.ask()  # as a request does
                now[0] += 1
                progress.advance(1)
        finally:
            ended.append(progress.rows)
        return "whole"

    job = made.of("a", work)
    wait_until(lambda: job.is_done)
    assert ended == [5 + 11]
    assert job.is_lost
    assert made.of("a", work) is not job


def test_the_last_results_are_kept():
    made = Jobs(most=3)
    first = made.of(0, lambda *_: 0)
    for key in range(5):
        waited(made.of(key, lambda *_: 0))
    assert made.of(0, lambda *_: 0) is not first
