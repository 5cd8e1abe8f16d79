"""Calls in other threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class Result(Generic[_T]):
    """What a call returns or raises, once it is done."""

    def __init__(self, function: Callable[..., _T], arguments: tuple[Any, ...]) -> None:
        self._call: tuple[Callable[..., _T], tuple[Any, ...]] | None = (function, arguments)
        self._value: _T | None = None
        self._error: BaseException | None = None
        self._undone = threading.Lock()
        self._undone.acquire()

    def done(self) -> bool:
        return not self._undone.locked()

    def get(self) -> _T:
        """Waits for the call, and returns or raises what it did."""
        self._undone.acquire()
        self._undone.release()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def do(self) -> None:
        """Does the call, once."""
        assert self._call is not None
        function, arguments = self._call
        self._call = None  # the arguments are not kept with the result
        try:
            self._value = function(*arguments)
        except BaseException as error:
            self._error = error
        self._undone.release()


class Threads:
    """Does calls in threads, which begin them in the order in which they are submitted.

    Not a ThreadPoolExecutor: it takes its locks in Python, where a Ctrl-C can leave one locked, and then
    closing it waits for ever. SimpleQueue and Lock work in C: a signal is handled before or after.
    """

    def __init__(self, name: str, count: int = 1) -> None:
        self._calls: SimpleQueue[Result[Any] | None] = SimpleQueue()
        self._closed = False
        # daemons: what a Ctrl-C has left running does not keep the process from its end
        self._threads = [threading.Thread(target=self._run, name=name, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., _T], *arguments: Any) -> Result[_T]:
        result = Result(function, arguments)
        self._calls.put(result)
        return result

    def close(self) -> None:
        """Waits for the calls that have begun; the others are never done."""
        self._closed = True
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (result := self._calls.get()) is not None and not self._closed:
            result.do()
            del result  # what it returned is not kept until the next call comes
