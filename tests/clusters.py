"""A cluster within this process."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from recordspec.errors import RecordspecError
from recordspec.executors import new_attempt


class Elsewhere:
    """Runs tasks in this process with copies of their function and arguments, as a cluster does: all are sent
    before the result of the first is there.
    """

    in_process = False
    processes = 2

    def map(self, function: Any, tasks: Iterable[Any]) -> Iterator[Any]:
        sent = [pickle.dumps((function, task)) for task in tasks]
        for one in sent:
            called, arguments = pickle.loads(one)
            yield pickle.loads(pickle.dumps(called(*arguments, new_attempt())))


class Late(Elsewhere):
    """Repeats the tasks of the first pass at the end, as an executor does that was taken for lost. Their
    results are ignored. Then calls `before_the_end`.
    """

    def __init__(self, before_the_end: Callable[[], object] = lambda: None) -> None:
        self._first: list[bytes] = []
        self._before_the_end = before_the_end

    def map(self, function: Any, tasks: Iterable[Any]) -> Iterator[Any]:
        sent = [(function, task) for task in tasks]
        self._first = self._first or [pickle.dumps(one) for one in sent]
        yield from super().map(function, [task for _, task in sent])
        for one in self._first:
            called, arguments = pickle.loads(one)
            with suppress(RecordspecError):
                called(*arguments, new_attempt())
        self._before_the_end()
