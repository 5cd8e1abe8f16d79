"""Shows the progress of long work on a terminal: rows, rows/s, MB/s, time left."""

from __future__ import annotations

import sys
from typing import IO, Any

# To update the bar costs a few microseconds: not for every row.
_ROWS_AT_ONCE = 256


class Progress:
    """A context manager that shows a progress bar; without a terminal it shows nothing."""

    def __init__(self, *, show: bool | None = None, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stderr
        # a process may have no stderr
        terminal = self._stream is not None and self._stream.isatty()
        self._show = terminal if show is None else show
        self._bar: Any = None
        self._rows = self._bytes = 0
        self._task: Any = None

    def __enter__(self) -> Progress:
        if self._show:
            self._bar = _bar(self._stream)
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._update()
            self._bar.stop()

    def begin(self, stage: str, rows: int | None) -> None:
        """Begins a stage of the work; `rows` is None if their number is unknown."""
        if self._bar is not None:
            self._update()
            self._task = self._bar.add_task(stage, total=rows, bytes=0)

    def advance(self, rows: int, size: int = 0) -> None:
        """Adds rows, and bytes of records, that are done."""
        if self._bar is None:
            return
        self._rows += rows
        self._bytes += size
        if self._rows >= _ROWS_AT_ONCE:
            self._update()

    def _update(self) -> None:
        if self._task is not None:
            size = self._bar.tasks[self._task].fields["bytes"] + self._bytes
            self._bar.update(self._task, advance=self._rows, bytes=size)
        self._rows = self._bytes = 0


def _bar(stream: IO[str]) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress
    from rich.table import Column
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Any) -> Text:
            speed = task.finished_speed or task.speed or 0
            size = task.fields["bytes"] / task.completed * speed if task.completed else 0
            read = f", {size / 1e6:,.0f} MB/s" if size else ""  # counting reads hardly any of them
            return Text(f"{speed:,.0f} rows/s{read}")

    # On a narrow terminal the bar is what gets shorter.
    one_line = [Column(no_wrap=True) for _ in range(5)]
    return RichProgress(
        TextColumn("{task.description}", table_column=one_line[0]),
        BarColumn(),
        TextColumn("{task.completed:,.0f} rows", table_column=one_line[1]),
        Rate(one_line[2]),
        TimeElapsedColumn(one_line[3]),
        TimeRemainingColumn(table_column=one_line[4]),
        console=Console(file=stream),
    )
