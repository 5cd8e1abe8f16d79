"""Progress of long work on a terminal: rows, rows/s, time left. Silent where there is none."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

# Telling the bar costs a few microseconds: not for every row.
_ROWS_AT_ONCE = 256


class Progress:
    """A context in which `advance` tells of rows done. `total` is None where it is not known."""

    def __init__(self, title: str, total: int | None, *, show: bool | None = None) -> None:
        self._title, self._total = title, total
        self._show = sys.stderr.isatty() if show is None else show
        self._bar: Any = None
        self._waiting = 0
        self._task: Any = None

    def __enter__(self) -> Progress:
        if self._show:
            self._bar = _bar()
            self._task = self._bar.add_task(self._title, total=self._total)
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._tell()
            self._bar.stop()

    def advance(self, rows: int) -> None:
        if self._bar is None:
            return
        self._waiting += rows
        if self._waiting >= _ROWS_AT_ONCE:
            self._tell()

    def _tell(self) -> None:
        self._bar.advance(self._task, self._waiting)
        self._waiting = 0


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text(f"{task.speed or 0:,.0f} rows/s")

    return RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
