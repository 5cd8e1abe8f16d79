"""Jobs: work in the background, whose progress pages poll; a job that is no longer polled is cancelled."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from recordspec.progress import Progress

# Seconds that a request waits for a change, and after which a job without requests is cancelled.
_PATIENCE, _FORGOTTEN = 0.7, 10.0
# Results that are kept.
_MOST = 8

T = TypeVar("T")


class _Cancelled(BaseException):
    """The job has no requests; not an Exception, so that no handler of errors catches it."""


class JobProgress(Progress):
    """The progress of a job. Ends the thread of a job that has no requests.

    Attributes:
        stage: the name of what is done.
        rows, total: the number of rows that are done, and of all; None if that is not known.
    """

    def __init__(self) -> None:
        super().__init__(show=False)
        self.stage, self.rows = "", 0
        self.total: int | None = None
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


class Job(Generic[T]):
    """A function that runs in a thread of its own.

    Args:
        work: receives the progress, and a function that it may call with a first part of what it returns.

    Attributes:
        value: what it returned, or the last part; None without any.
        version: how many parts there were so far.
        is_done: whether it ended, also if it failed, or was cancelled.
        is_whole: whether it returned.
    """

    def __init__(self, work: Callable[[JobProgress, Callable[[T], None]], T]) -> None:
        self.progress, self.version = JobProgress(), 0
        self.is_done = self.is_whole = False
        self.value: T | None = None
        self._error: Exception | None = None
        self._changed = threading.Condition()
        self._work = work
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        error = None
        try:
            self._publish(self._work(self.progress, self._publish))
            self.is_whole = True
        except Exception as failure:  # which is raised for those who wait
            error = failure
        except _Cancelled:
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
        """Whether it failed, or was cancelled."""
        return self.is_done and not self.is_whole

    def wait(self, until: Callable[[], bool]) -> T | None:
        """Waits for a while, for its end or until something is true, and returns the value so far.

        Raises what the work raised.
        """
        self.progress.ask()
        end = time.monotonic() + _PATIENCE
        with self._changed:
            while not self.is_done and not until() and (left := end - time.monotonic()) > 0:
                self._changed.wait(min(left, 0.05))
        if self._error is not None:
            raise self._error
        return self.value

    def described(self) -> dict[str, Any]:
        """How far it is, for the page."""
        progress = self.progress
        return {
            "done": self.is_whole,
            "version": self.version,
            "stage": progress.stage,
            "read": progress.rows,
            "of": progress.total,
        }


class Jobs:
    """The jobs of a viewer by what they are of: each runs once, and the last results are kept.

    Args:
        most: the number of results that are kept.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._jobs: OrderedDict[Hashable, Job[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, key: Hashable, work: Callable[[JobProgress, Callable[[T], None]], T]) -> Job[T]:
        """The job with this key, which begins now unless it has begun. One that failed begins again."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None or job.is_lost:
                job = self._jobs[key] = Job(work)
            self._jobs.move_to_end(key)
            lost = [known for known, other in self._jobs.items() if other.is_lost and known != key]
            ended = [known for known, other in self._jobs.items() if other.is_done and known != key]
            for known in dict.fromkeys([*lost, *ended[: max(len(self._jobs) - self._most, 0)]]):
                del self._jobs[known]
        return job
