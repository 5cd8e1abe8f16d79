"""Executors run tasks: in this process, or in several processes of this machine. Thread pools run calls in
threads.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from itertools import repeat
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from recordspec.errors import Problem, StoreError

# multiprocessing takes longer to load than a small task: it is imported where processes are started.
if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

_T = TypeVar("_T")

# Seconds of work before other processes start: each takes about as long to start as a build of 100,000 rows.
# With 0, all tasks run in other processes, as tests want it.
_ALONE = 1.0

Task = tuple[Any, ...]
Function = Callable[..., Any]


class Executor(Protocol):
    """Runs tasks. A cluster is another kind of executor.

    A task's function and arguments can be pickled. A task may run twice: each attempt has its own name.

    Attributes:
        in_process: whether tasks run in this process, one after another.
        processes: the number of tasks that run at a time.
    """

    in_process: bool
    processes: int

    def map(self, function: Function, tasks: Iterable[Task]) -> Iterator[Any]:
        """Yields `function(*task, attempt)` for each task, in order; `attempt` is a new name."""


class SerialExecutor:
    """Runs tasks in this process, one after another."""

    in_process = True
    processes = 1

    def map(self, function: Function, tasks: Iterable[Task]) -> Iterator[Any]:
        for task in tasks:
            yield function(*task, new_attempt())


class Cluster(Executor, Protocol):
    """The executor of a cluster, which also compares rows."""

    def equal_rows(
        self, tables: Sequence[Any], columns: Sequence[str], places: Sequence[str]
    ) -> tuple[list[Any], list[Any]]:
        """As for `spark.frames.equal_rows`."""


_of_cluster: ContextVar[Cluster | None] = ContextVar("of_cluster", default=None)


@contextmanager
def on_cluster(executor: Cluster) -> Iterator[None]:
    """Within it, tasks that read files run on the executor of a cluster: see `store.scan.run`."""
    token = _of_cluster.set(executor)
    try:
        yield
    finally:
        _of_cluster.reset(token)


def cluster() -> Cluster | None:
    """The executor of the cluster on which tasks that read files run; None for this machine."""
    return _of_cluster.get()


def current() -> Executor:
    """The executor of the cluster, or of this process."""
    return cluster() or SerialExecutor()


@contextmanager
def working_in(folder: str) -> Iterator[None]:
    """Makes `folder` the working folder within the block, so that relative paths are those of the process
    that sent a task. If this machine has no such folder, the working folder stays.
    """
    before = os.getcwd()
    with suppress(OSError):
        os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def executor(jobs: int, name: str) -> Iterator[Executor]:
    """An executor with `jobs` processes; for one job, this process. `name` identifies the work in messages.

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
    """A unique name for an attempt."""
    return uuid.uuid4().hex[:12]


class ProcessExecutor:
    """Runs tasks in this process and in new ones, `jobs` in all, which share no memory.

    The new processes start once the work has lasted longer than starting them takes. This process runs tasks
    with copies of their arguments while it would only wait for a result: one process less has to start.

    Each process has a thread here, which sends it a task and waits for the result. ProcessPoolExecutor is not
    used: its queues have semaphores, and if a process is killed, Python's resource tracker reports them on
    stderr in many lines.
    """

    in_process = False

    def __init__(self, jobs: int, name: str) -> None:
        import multiprocessing

        self._jobs, self._name = jobs, name
        self.processes = jobs
        # spawn: a fork of a process with threads, such as TensorFlow's, may hang
        self._context = multiprocessing.get_context("spawn")
        self._works = bool(_ALONE)
        self._threads = ThreadPool("recordspec-process", max(1, jobs - self._works), after=_ALONE)
        self._here = threading.get_ident()
        self._of_thread = threading.local()
        self._starting = threading.Lock()
        self._started: list[tuple[BaseProcess, Connection]] = []
        self._killed = False

    def map(self, function: Function, tasks: Iterable[Task]) -> Iterator[Any]:
        waiting: deque[Future[Any]] = deque()
        for task in tasks:
            waiting.append(self._threads.submit(self._run, function, (*task, new_attempt())))
            # twice as many tasks as processes, so that no process waits for the slowest
            if len(waiting) >= 2 * self._jobs:
                yield self._first(waiting)
        while waiting:
            yield self._first(waiting)

    def _first(self, waiting: deque[Future[Any]]) -> Any:
        first = waiting.popleft()
        if self._works and threading.get_ident() == self._here:
            while not first.done() and self._threads.run_next():
                pass
        return first.result()

    def kill(self) -> None:
        """Ends the processes at once, without waiting for their tasks."""
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
        """Runs in a thread: sends a task to the thread's process and waits. Raises the task's error."""
        if threading.get_ident() == self._here:
            return _run_copy(function, task)
        if not hasattr(self._of_thread, "connection"):
            self._of_thread.connection = self._start()
        try:
            self._of_thread.connection.send((function, task))
            response = self._of_thread.connection.recv()
        except (EOFError, OSError) as error:
            raise self._died() from error
        return result_in(response)

    def _start(self) -> Connection:
        from multiprocessing import resource_tracker

        with self._starting:
            if self._killed:
                raise self._died()
            here, there = self._context.Pipe()
            process = self._context.Process(target=_serve, args=(there,), daemon=True)
            resource_tracker.ensure_running()  # the first process would start it, which unblocks signals
            # Ctrl-C reaches all processes of a terminal, even a new one that does not ignore it yet.
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


def result_in(response: tuple[Any, BaseException | None, str]) -> Any:
    """The result of a task in what `response_of` returned. Raises the task's error."""
    result, error, trace = response
    if error is not None:
        raise error from _ProcessError(trace)
    return result


class _ProcessError(Exception):
    """The traceback, as text, of an error raised in another process."""


def _serve(connection: Connection) -> None:
    """Runs in a new process: runs tasks until there are no more, or the parent has ended."""
    import multiprocessing

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()
    with suppress(EOFError, OSError):  # the parent is gone
        while task := connection.recv():
            connection.send_bytes(response_of(*task))


def _run_copy(function: Function, task: Task) -> Any:
    """Runs a task in this process with copies of its arguments, as another process would: its changes to them
    are not seen by threads that may be sending the same arguments to processes.
    """
    from multiprocessing.reduction import ForkingPickler

    function, task = ForkingPickler.loads(ForkingPickler.dumps((function, task)))
    return function(*task)


def response_of(function: Function, task: Task) -> Any:
    """The message with the result of a task, or its error and traceback, pickled."""
    from multiprocessing.reduction import ForkingPickler

    try:
        return ForkingPickler.dumps((function(*task), None, ""))
    except BaseException as error:
        trace = traceback.format_exc()
        try:
            data = ForkingPickler.dumps((None, error, trace))
            ForkingPickler.loads(data)  # some errors can be pickled, but not unpickled
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

    @property
    def failed(self) -> bool:
        """Whether the call has raised an error."""
        return self._error is not None

    def result(self) -> _T:
        """Waits for the call. Returns its result or raises its error."""
        # Polars replaces Python's handler of Ctrl-C by one with SA_RESTART, which does not interrupt a wait.
        # After a fifth of a second Python checks for signals anyway.
        while not self._undone.acquire(timeout=0.2):
            pass
        self._undone.release()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    @property
    def interrupt(self) -> BaseException | None:
        """The interrupt that ended a call that was run, if any."""
        return None if isinstance(self._error, Exception) else self._error

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

    ThreadPoolExecutor is not used: it acquires its locks in Python, where Ctrl-C can leave one locked, and
    then closing the pool hangs. SimpleQueue and Lock are C code: a signal is handled before or after them.

    Args:
        name: the name of the threads.
        count: the number of threads.
        after: the delay in seconds before the threads begin.
    """

    def __init__(self, name: str, count: int = 1, after: float = 0) -> None:
        self._after, self._open = after, threading.Lock()
        self._open.acquire()
        self._calls: SimpleQueue[Future[Any] | None] = SimpleQueue()
        self._closed = False
        # daemon threads: calls that still run after Ctrl-C do not keep the process alive
        self._threads = [threading.Thread(target=self._run, name=name, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., _T], *arguments: Any) -> Future[_T]:
        future = Future(function, arguments)
        self._calls.put(future)
        return future

    def run_next(self) -> bool:
        """Runs the next call in this thread. Returns False if threads have begun all of them.

        An interrupt is raised at once, and not when the result of the call is taken.
        """
        with suppress(Empty):
            future = self._calls.get_nowait()
            if future is not None:
                future.run()
                if future.interrupt is not None:
                    raise future.interrupt
                return True
        return False

    def close(self) -> None:
        """Waits for the calls that have begun. The rest are never run."""
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
            del future  # does not keep the result until the next call comes


def threaded_map(
    name: str,
    function: Callable[..., _T],
    tasks: Iterable[Task],
    threads: int | None = None,
    ahead: int | None = None,
    stop: Callable[[], None] = lambda: None,
) -> Generator[_T]:
    """Yields `function(*task)` for each task, in order, called in threads named `name`.

    Args:
        threads: the number of threads; by default one per processor.
        ahead: the number of tasks taken ahead; by default the number of threads.
        stop: called at the end, also after an error, before waiting for calls that have begun.
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
    """Yields the items, of which a thread named `name` prefetches up to `ahead`.

    At the end, also after an error, `stop` is called to make the next item end early, and `items` is closed.
    """
    end: Any = object()
    calls = threaded_map(name, next, repeat((items, end)), threads=1, ahead=ahead, stop=stop)
    with closing(items), closing(calls):
        for item in calls:
            if item is end:
                return
            yield item
