"""Who does tasks: this process, or several others on this machine."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

Task = tuple[Any, ...]
Function = Callable[..., Any]


class Workers(Protocol):
    """Does tasks; a cluster would be another kind."""

    def results(self, function: Function, tasks: Iterable[Task]) -> Iterator[Any]:
        """`function(*task, attempt)` for each task, in their order; the attempt's name is new each time."""


class Here:
    """Does tasks in this process, one after another."""

    def results(self, function: Function, tasks: Iterable[Task]) -> Iterator[Any]:
        for task in tasks:
            yield function(*task, attempt())


@contextmanager
def workers(jobs: int, name: str) -> Iterator[Workers]:
    """So many processes, or this one alone; `name` is that of the work, in messages."""
    if jobs == 1:
        yield Here()
        return
    from recordspec.processes import processes  # what they need takes longer to load than a small task

    with processes(jobs, name) as several:
        yield several


def attempt() -> str:
    """A name that no other attempt has."""
    return uuid.uuid4().hex[:12]
