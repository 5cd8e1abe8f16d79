"""Tasks in several processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any

from recordspec.errors import Problem, StoreError
from recordspec.threads import Result, Threads
from recordspec.workers import Function, Task, attempt


class Processes:
    """Does tasks in new processes, which share no memory.

    Each process has a thread here, which sends it a task and waits for the result. Not a ProcessPoolExecutor:
    its queues have semaphores, which the resource tracker of Python reports on stderr, in many lines, where a
    process is killed.
    """

    def __init__(self, jobs: int, name: str) -> None:
        self._jobs, self._name = jobs, name
        # spawn: a fork of a process with threads, TensorFlow's say, may hang
        self._context = multiprocessing.get_context("spawn")
        self._threads = Threads("recordspec-process", jobs)
        self._of_thread = threading.local()
        self._starting = threading.Lock()
        self._started: list[tuple[BaseProcess, Connection]] = []
        self._killed = False

    def results(self, function: Function, tasks: Iterable[Task]) -> Iterator[Any]:
        waiting: deque[Result[Any]] = deque()
        for task in tasks:
            waiting.append(self._threads.submit(self._do, function, (*task, attempt())))
            # as many again as there are processes, so that none has to wait for the slowest
            if len(waiting) >= 2 * self._jobs:
                yield waiting.popleft().get()
        while waiting:
            yield waiting.popleft().get()

    def kill(self) -> None:
        """Ends tasks whose results are not needed."""
        with self._starting:
            self._killed = True
            for process, _ in self._started:
                process.kill()

    def close(self) -> None:
        """Ends the processes when their tasks are done."""
        self._threads.close()
        for _, connection in self._started:
            with suppress(OSError):  # it was killed
                connection.send(None)
            connection.close()
        for process, _ in self._started:
            process.join()
            process.close()

    def _do(self, function: Function, task: Task) -> Any:
        """In a thread: has its process do a task. Raises what the task raises."""
        if not hasattr(self._of_thread, "connection"):
            self._of_thread.connection = self._start()
        try:
            self._of_thread.connection.send((function, task))
            result, error, trace = self._of_thread.connection.recv()
        except (EOFError, OSError) as error:
            raise self._died() from error
        if error is not None:
            raise error from _ProcessError(trace)
        return result

    def _start(self) -> Connection:
        with self._starting:
            if self._killed:
                raise self._died()
            here, there = self._context.Pipe()
            process = self._context.Process(target=_serve, args=(there,), daemon=True)
            resource_tracker.ensure_running()  # the first process starts it, and it unblocks signals
            # Ctrl-C reaches all processes of a terminal, also one that cannot ignore it yet.
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            process.start()
            there.close()
            self._started.append((process, here))
            return here

    def _died(self) -> StoreError:
        hint = (
            "possibly killed by the out-of-memory killer; "
            "a script that starts jobs needs `if __name__ == '__main__':`"
        )
        problem = Problem(expected=f"{self._jobs} processes to the end", got="one that died", hint=hint)
        return StoreError(problem.at(self._name))


class _ProcessError(Exception):
    """Where an error was raised, in another process: a traceback as text."""


@contextmanager
def processes(jobs: int, name: str) -> Iterator[Processes]:
    """So many of them, until the work, which is called `name` in messages, is done or fails."""
    several = Processes(jobs, name)
    try:
        yield several
    except BaseException:
        several.kill()
        raise
    finally:
        several.close()


def _serve(connection: Connection) -> None:
    """In a new process: does tasks until there are no more, or the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is its parent's affair
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with suppress(EOFError, OSError):  # the parent is gone
        while task := connection.recv():
            connection.send_bytes(_done(*task))


def _done(function: Function, task: Task) -> Any:
    """The result of a task, the error that it raised, and where, as the bytes of a message."""
    try:
        return ForkingPickler.dumps((function(*task), None, ""))
    except BaseException as error:
        trace = traceback.format_exc()
        try:
            data = ForkingPickler.dumps((None, error, trace))
            ForkingPickler.loads(data)  # some errors can be pickled, and not be made again
        except Exception:
            told = RuntimeError(f"{type(error).__name__}: {error}")
            return ForkingPickler.dumps((None, told, trace))
        return data


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)
