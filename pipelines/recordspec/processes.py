"""Tasks in several processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from recordspec.errors import Problem, StoreError
from recordspec.workers import Function, Task, attempt


class Processes:
    """Does tasks in processes of their own, which are started anew and share no memory."""

    def __init__(self, pool: ProcessPoolExecutor, jobs: int, name: str) -> None:
        self._pool, self._jobs, self._name = pool, jobs, name

    def results(self, function: Function, tasks: Iterable[Task]) -> Iterator[Any]:
        waiting: deque[Future[Any]] = deque()
        for task in tasks:
            waiting.append(self._submit(function, task))
            # as many again as there are processes, so that none has to wait for the slowest
            if len(waiting) >= 2 * self._jobs:
                yield self._result(waiting.popleft())
        while waiting:
            yield self._result(waiting.popleft())

    def _submit(self, function: Function, task: Task) -> Future[Any]:
        try:
            return self._pool.submit(function, *task, attempt())
        except BrokenProcessPool as error:
            raise self._died() from error

    def _result(self, future: Future[Any]) -> Any:
        try:
            return future.result()
        except BrokenProcessPool as error:
            raise self._died() from error

    def _died(self) -> StoreError:
        hint = (
            "was it killed, for want of memory? a script that starts jobs needs `if __name__ == '__main__':`"
        )
        problem = Problem(expected=f"{self._jobs} processes to the end", got="one that died", hint=hint)
        return StoreError(problem.at(self._name))


@contextmanager
def processes(jobs: int, name: str) -> Iterator[Processes]:
    """So many of them, until the work, which is called `name` in messages, is done or fails."""
    # spawn: a fork of a process with threads, TensorFlow's say, may hang
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin)
    try:
        yield Processes(pool, jobs, name)
    except BaseException:
        _kill(pool)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin() -> None:
    """In a new process: Ctrl-C is its parent's affair, and it does not outlive that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _kill(pool: ProcessPoolExecutor) -> None:
    """Ends tasks that nobody waits for any more."""
    for process in list((pool._processes or {}).values()):
        process.kill()
