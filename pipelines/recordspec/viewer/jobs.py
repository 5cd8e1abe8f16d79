"""Runs jobs in the background. The page polls their progress; a job that is no longer polled is cancelled.

At most two jobs of a kind run at a time, so a user who turns many pages waits for the last page alone.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from recordspec.progress import Progress

# The seconds that a request waits for a change, and the seconds until a job without requests is cancelled.
_PATIENCE, _FORGOTTEN = 0.7, 10.0
# The number of kept results, and the number of jobs that run at a time.
_MOST, _AT_WORK = 8, 2
# Whether the client of the current request has disconnected.
CLIENT_HAS_LEFT: ContextVar[Callable[[], bool]] = ContextVar("CLIENT_HAS_LEFT", default=lambda: False)

T = TypeVar("T")


class _Cancelled(BaseException):
    """Ends a job that has no requests. It is not an Exception, so that no error handler catches it."""


class JobProgress(Progress):
    """The progress of a job. Ends the thread of a job that has no requests.

    Attributes:
        stage: the name of the current stage.
        rows, total: the number of rows done, and of all rows; `total` is None if it is unknown.
        interrupt: interrupts a call that does not report progress, for example a query of DuckDB.
    """

    def __init__(self) -> None:
        super().__init__(show=False)
        self.stage, self.rows = "", 0
        self.total: int | None = None
        self.interrupt: Callable[[], None] = lambda: None
        self._asked = time.monotonic()

    def begin(self, stage: str, rows: int | None) -> None:
        self.stage, self.rows, self.total = stage, 0, rows
        self.advance(0)

    def advance(self, rows: int, size: int = 0) -> None:
        self.rows += rows
        if time.monotonic() - self._asked > _FORGOTTEN:
            raise _Cancelled

    def ask(self) -> None:
        """Records a request."""
        self._asked = time.monotonic()

    def cancel(self) -> None:
        """Ends the thread at its next progress report, unless a request comes first."""
        self._asked = -_FORGOTTEN
        self.interrupt()


class Job(Generic[T]):
    """A function that runs in its own thread.

    Args:
        work: the function. It receives the progress, and a function that publishes a partial result.
        places: a semaphore that limits the number of running jobs.
        is_brief: whether the job is cancelled as soon as the client of its last request disconnects. Another
            job runs on for 10 s, since the client may come back.

    Attributes:
        value: the result, or the last partial result; None if there is none.
        version: the number of results published so far.
        is_done: whether the function has ended: returned, failed or was cancelled.
        is_whole: whether the function has returned.
    """

    def __init__(
        self,
        work: Callable[[JobProgress, Callable[[T], None]], T],
        places: threading.Semaphore,
        *,
        is_brief: bool,
    ) -> None:
        self.progress, self.version = JobProgress(), 0
        self.is_done = self.is_whole = False
        self.value: T | None = None
        self._error: Exception | None = None
        self._changed = threading.Condition()
        self._work, self._places = work, places
        self._is_brief, self._waiting = is_brief, 0
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        error = None
        try:
            while not self._places.acquire(timeout=0.05):
                self.progress.begin("waiting for other work", None)
            try:
                self._publish(self._work(self.progress, self._publish))
            finally:
                self._places.release()
            self.is_whole = True
        except Exception as failure:  # raised by `wait`
            error = failure
        except (_Cancelled, KeyboardInterrupt):  # DuckDB was interrupted
            pass
        with self._changed:
            self._error, self.is_done = error, True
            self._changed.notify_all()

    def _publish(self, value: T) -> None:
        with self._changed:
            self.value, self.version = value, self.version + 1
            self._changed.notify_all()

    @property
    def is_lost(self) -> bool:
        """Whether the job failed or was cancelled."""
        return self.is_done and not self.is_whole

    def wait(self, until: Callable[[], bool]) -> T | None:
        """Waits for the end of the job or until `until()` is true, at most 0.7 s. Returns the value so far.

        Also returns if the client disconnects. Raises the exception of the work if it failed.
        """
        self.progress.ask()
        end, has_left = time.monotonic() + _PATIENCE, CLIENT_HAS_LEFT.get()
        with self._changed:
            self._waiting += 1
            while not (self.is_done or until() or has_left()) and (left := end - time.monotonic()) > 0:
                self._changed.wait(min(left, 0.05))
            self._waiting -= 1
            if has_left() and self._is_brief and not self._waiting:
                self.progress.cancel()
        if self._error is not None:
            raise self._error
        return self.value

    def described(self) -> dict[str, Any]:
        """The progress of the job, as values for the page."""
        progress = self.progress
        return {
            "done": self.is_whole,
            "version": self.version,
            "stage": progress.stage,
            "read": progress.rows,
            "of": progress.total,
        }


class Jobs:
    """The jobs of a viewer by key. Each runs once, and the last results are kept.

    Args:
        most: the number of kept results.
        are_brief: whether a job is cancelled as soon as the client of its last request disconnects.
    """

    def __init__(self, most: int = _MOST, *, are_brief: bool = False) -> None:
        self._most, self._are_brief = most, are_brief
        self._places = threading.Semaphore(_AT_WORK)
        self._jobs: OrderedDict[Hashable, Job[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, key: Hashable, work: Callable[[JobProgress, Callable[[T], None]], T]) -> Job[T]:
        """The job with this key. It is started unless it runs or has finished; a failed job is started
        again."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None or job.is_lost:
                job = self._jobs[key] = Job(work, self._places, is_brief=self._are_brief)
            self._jobs.move_to_end(key)
            lost = [known for known, other in self._jobs.items() if other.is_lost and known != key]
            ended = [known for known, other in self._jobs.items() if other.is_done and known != key]
            for known in dict.fromkeys([*lost, *ended[: max(len(self._jobs) - self._most, 0)]]):
                del self._jobs[known]
        return job
