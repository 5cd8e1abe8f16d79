"""Executors run tasks: in this process, in several processes of this machine, or calls in threads."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import repeat
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from recordspec.errors import Problem, StoreError

# multiprocessing takes longer to load than a small task: it is imported where processes are started.
if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

_T = TypeVar("_T")

# Seconds of work before other processes begin: to start, each takes about as much as a build of 100,000 rows.
_ALONE = 1.0

Task = tuple[Any, ...]
Function = Callable[..., Any]


class Executor(Protocol):
    """Runs tasks; a cluster would be another kind.

    A task's function and arguments can be pickled, and it may run twice: each attempt has its own name.

    Attributes:
        in_process: whether tasks run in this process, one after another.
    """

    in_process: bool

    def map(self, function: Function, tasks: Iterable[Task]) -> Iterator[Any]:
        """Yields `function(*task, attempt)` for each task, in their order; `attempt` is a new name."""


class SerialExecutor:
    """Runs tasks in this process, one after another."""

    in_process = True

    def map(self, function: Function, tasks: Iterable[Task]) -> Iterator[Any]:
        for task in tasks:
            yield function(*task, new_attempt())


@contextmanager
def executor(jobs: int, name: str) -> Iterator[Executor]:
    """An executor of `jobs` processes, or of this one alone; `name` identifies the work in messages.

    The processes are killed if the block raises, and joined when it ends.
    """
    if jobs == 1:
        yield SerialExecutor()
        return
    several = ProcessExecutor(jobs, name)
    try:
        yield several
    except BaseException:
        several.kill()
        raise
    finally:
        several.close()


def new_attempt() -> str:
    """A name that no other attempt has."""
    return uuid.uuid4().hex[:12]


class ProcessExecutor:
    """Runs tasks in new processes, which share no memory, once there is work for longer than these need to
    begin: until then in this one, with copies of the tasks.

    Each process has a thread here, which sends it a task and waits for the result. Not a ProcessPoolExecutor:
    its queues have semaphores, which the resource tracker of Python reports on stderr, in many lines, where a
    process is killed.
    """

    in_process = False

    def __init__(self, jobs: int, name: str) -> None:
        import multiprocessing

        self._jobs, self._name = jobs, name
        # spawn: a fork of a process with threads, TensorFlow's say, may hang
        self._context = multiprocessing.get_context("spawn")
        self._threads = ThreadPool("recordspec-process", jobs, after=_ALONE)
        self._alone_until = time.monotonic() + _ALONE
        self._here = threading.get_ident()
        self._of_thread = threading.local()
        self._starting = threading.Lock()
        self._started: list[tuple[BaseProcess, Connection]] = []
        self._killed = False

    def map(self, function: Function, tasks: Iterable[Task]) -> Iterator[Any]:
        waiting: deque[Future[Any]] = deque()
        for task in tasks:
            waiting.append(self._threads.submit(self._run, function, (*task, new_attempt())))
            # as many again as there are processes, so that none has to wait for the slowest
            if len(waiting) >= 2 * self._jobs:
                yield self._first(waiting)
        while waiting:
            yield self._first(waiting)

    def _first(self, waiting: deque[Future[Any]]) -> Any:
        if threading.get_ident() == self._here and time.monotonic() < self._alone_until:
            self._threads.run_next()
        return waiting.popleft().result()

    def kill(self) -> None:
        """Ends the processes at once; the results of their tasks are not needed."""
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

    def _run(self, function: Function, task: Task) -> Any:
        """In a thread: has its process run a task. Raises what the task raises."""
        if threading.get_ident() == self._here:
            return _run_copy(function, task)
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
        from multiprocessing import resource_tracker

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
    """The traceback, as text, of an error that another process raised."""


def _serve(connection: Connection) -> None:
    """In a new process: runs tasks until there are no more, or the parent has ended."""
    import multiprocessing

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()
    with suppress(EOFError, OSError):  # the parent is gone
        while task := connection.recv():
            connection.send_bytes(_response(*task))


def _run_copy(function: Function, task: Task) -> Any:
    """Runs a task in this process, as in another: what it changes of its arguments is not seen here, where
    threads may send the same to processes."""
    from multiprocessing.reduction import ForkingPickler

    function, task = ForkingPickler.loads(ForkingPickler.dumps((function, task)))
    return function(*task)


def _response(function: Function, task: Task) -> Any:
    """The result of a task, its error and the traceback, as the bytes of a message."""
    from multiprocessing.reduction import ForkingPickler

    try:
        return ForkingPickler.dumps((function(*task), None, ""))
    except BaseException as error:
        trace = traceback.format_exc()
        try:
            data = ForkingPickler.dumps((None, error, trace))
            ForkingPickler.loads(data)  # some errors can be pickled, and not be made again
        except Exception:
            substitute = RuntimeError(f"{type(error).__name__}: {error}")
            return ForkingPickler.dumps((None, substitute, trace))
        return data


def _exit_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


class Future(Generic[_T]):
    """The result of a call in a thread, or the error that it raised."""

    def __init__(self, function: Callable[..., _T], arguments: tuple[Any, ...]) -> None:
        self._call: tuple[Callable[..., _T], tuple[Any, ...]] | None = (function, arguments)
        self._value: _T | None = None
        self._error: BaseException | None = None
        self._undone = threading.Lock()
        self._undone.acquire()

    def done(self) -> bool:
        return not self._undone.locked()

    def result(self) -> _T:
        """Waits for the call, and returns or raises what it did."""
        # Polars replaces Python's handler of Ctrl-C by one with SA_RESTART, which does not end a wait: after
        # a fifth of a second Python looks for signals anyway.
        while not self._undone.acquire(timeout=0.2):
            pass
        self._undone.release()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def run(self) -> None:
        """Runs the call, once."""
        assert self._call is not None
        function, arguments = self._call
        self._call = None  # the arguments are not kept with the result
        try:
            self._value = function(*arguments)
        except BaseException as error:
            self._error = error
        self._undone.release()


class ThreadPool:
    """Runs calls in threads, which begin them in the order in which they are submitted.

    Not a ThreadPoolExecutor: it acquires its locks in Python, where a Ctrl-C can leave one locked, and then
    closing it waits for ever. SimpleQueue and Lock work in C: a signal is handled before or after.

    Args:
        name: of the threads.
        count: their number.
        after: the seconds after which they begin.
    """

    def __init__(self, name: str, count: int = 1, after: float = 0) -> None:
        self._after, self._open = after, threading.Lock()
        self._open.acquire()
        self._calls: SimpleQueue[Future[Any] | None] = SimpleQueue()
        self._closed = False
        # daemons: what a Ctrl-C has left running does not keep the process from its end
        self._threads = [threading.Thread(target=self._run, name=name, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., _T], *arguments: Any) -> Future[_T]:
        future = Future(function, arguments)
        self._calls.put(future)
        return future

    def run_next(self) -> None:
        """Runs the next call in this thread, if there is one that no thread has begun."""
        with suppress(Empty):
            future = self._calls.get_nowait()
            if future is not None:
                future.run()

    def close(self) -> None:
        """Waits for the calls that have begun; the others are never run."""
        if not self._closed:
            self._closed = True
            self._open.release()
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        if self._after and self._open.acquire(timeout=self._after):
            self._open.release()
        while (future := self._calls.get()) is not None and not self._closed:
            future.run()
            del future  # what it returned is not kept until the next call comes


def threaded_map(
    name: str,
    function: Callable[..., _T],
    tasks: Iterable[Task],
    threads: int | None = None,
    ahead: int | None = None,
    stop: Callable[[], None] = lambda: None,
) -> Generator[_T]:
    """Yields `function(*task)` for each task, in their order, called in threads of this name.

    Args:
        threads: their number, by default one per processor.
        ahead: how many tasks are taken ahead; by default as many as there are threads.
        stop: called at the end, whatever it is, before calls that have begun are waited for.
    """
    count = threads or len(os.sched_getaffinity(0))
    most = ahead or count
    pool, waiting = ThreadPool(name, count), deque[Future[_T]]()
    try:
        for task in tasks:
            waiting.append(pool.submit(function, *task))
            if len(waiting) > most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        stop()
        pool.close()


def taken_ahead(name: str, items: Generator[_T], ahead: int, stop: Callable[[], None]) -> Iterator[_T]:
    """Yields the items, of which a thread of this name takes up to `ahead` before they are asked for.

    At the end, whatever it is, `stop` is called, by which the next item ends early, and they are closed.
    """
    end: Any = object()
    calls = threaded_map(name, next, repeat((items, end)), threads=1, ahead=ahead, stop=stop)
    with closing(items), closing(calls):
        for item in calls:
            if item is end:
                return
            yield item
