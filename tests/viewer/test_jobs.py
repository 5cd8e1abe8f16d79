"""A job runs once for all requests, reports its progress, and is cancelled when there are no more requests."""

from __future__ import annotations

import contextvars
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


def asked_by_a_client_that_leaves(job):
    """The request of a client that has left, in the context of its own thread."""
    context = contextvars.copy_context()
    context.run(jobs.CLIENT_HAS_LEFT.set, lambda: True)
    context.run(job.wait, lambda: False)


@pytest.mark.parametrize("are_brief", [True, False])
def test_a_brief_job_ends_when_its_last_client_leaves(are_brief):
    made, go_on, interrupted = Jobs(are_brief=are_brief), threading.Event(), []

    def work(progress, publish):
        progress.interrupt = lambda: interrupted.append(1)
        publish("begun")
        go_on.wait(60)
        progress.advance(1)
        return "whole"

    job = made.of("page", work)
    job.wait(lambda: job.version == 1)
    asked_by_a_client_that_leaves(job)
    go_on.set()
    wait_until(lambda: job.is_done)
    assert (job.is_lost, interrupted) == (are_brief, [1] * are_brief)


def test_a_job_for_which_another_client_waits_goes_on():
    made, go_on, both = Jobs(are_brief=True), threading.Event(), []

    def work(progress, publish):
        go_on.wait(60)
        progress.advance(1)
        return "whole"

    job = made.of("page", work)
    other = threading.Thread(target=lambda: both.append(job.wait(lambda: bool(both.append("waits")))))
    other.start()
    wait_until(lambda: both)
    asked_by_a_client_that_leaves(job)
    go_on.set()
    other.join()
    assert both[-1] == "whole"


def test_few_jobs_run_at_a_time_and_those_that_wait_can_be_cancelled():
    made, go_on, begun = Jobs(most=100, are_brief=True), threading.Event(), []

    def job(key):
        return made.of(key, lambda progress, publish: (begun.append(key), go_on.wait(60)))

    working = [job(key) for key in range(2)]
    wait_until(lambda: len(begun) == 2)
    turned = [job(key) for key in range(2, 40)]
    for each in turned:
        asked_by_a_client_that_leaves(each)
    wait_until(lambda: all(each.is_lost for each in turned))
    last = job("last")
    wait_until(lambda: last.described()["stage"] == "waiting for other work")
    go_on.set()
    for each in (*working, last):
        waited(each)
    assert (sorted(begun[:2]), begun[2:]) == ([0, 1], ["last"])
