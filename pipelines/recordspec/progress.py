"""Shows the progress of long work: rows, rows/s, MB/s, time left. A terminal and a notebook show a bar; other
outputs, occasional lines.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from recordspec import html

# Updating the bar costs a few microseconds: not after every row, but soon if rows are slow.
_ROWS_AT_ONCE, _SECONDS_AT_ONCE = 256, 0.25
# In a notebook: the delay before the bar appears, and the interval of its updates, in seconds. Each update is
# a message to the browser, and short work needs no bar.
_FIRST_SHOWN, _SHOWN_EACH = 0.5, 0.25
# In other outputs, such as the log of a job: seconds between lines.
_LINE_EACH = 30.0


class Progress:
    """A context manager that shows a progress bar on a terminal or in a notebook. In other outputs it prints
    at most one line every 30 s.

    Args:
        show: whether to show progress; by default, if there is a stream or a notebook.
        stream: the text stream; by default stderr.
    """

    def __init__(self, *, show: bool | None = None, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stderr
        # a process may have no stderr
        terminal = self._stream is not None and self._stream.isatty()
        self._in_notebook = stream is None and not terminal and _in_notebook()
        self._show = terminal or self._in_notebook if show is None else show
        self._has_lines = not self._show and show is None and self._stream is not None
        self._stage: tuple[str, int | None, float] = ("", None, 0.0)  # name, rows and start time
        self._bar: Any = None
        self._rows = self._bytes = 0
        self._task: Any = None
        self._due = time.monotonic() + _LINE_EACH if self._has_lines else 0.0

    def __enter__(self) -> Progress:
        if self._show:
            self._bar = _NotebookBar() if self._in_notebook else _terminal_bar(self._stream)
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._update()
            self._bar.stop()

    def begin(self, stage: str, rows: int | None) -> None:
        """Begins a stage of the work; `rows` is None if their number is unknown."""
        if self._has_lines:
            self._stage, self._rows, self._bytes = (stage, rows, time.monotonic()), 0, 0
        if self._bar is not None:
            self._update()
            self._bytes = 0
            self._task = self._bar.add_task(stage, total=rows, bytes=0)

    def advance(self, rows: int, size: int = 0) -> None:
        """Adds finished rows, and the bytes of their records."""
        if self._bar is None and not self._has_lines:
            return
        self._rows += rows
        self._bytes += size
        if self._has_lines:
            if time.monotonic() >= self._due:
                self._print_line()
            return
        if self._rows >= _ROWS_AT_ONCE or time.monotonic() >= self._due:
            self._update()

    def _update(self) -> None:
        if self._task is not None:
            self._bar.update(self._task, advance=self._rows, bytes=self._bytes)
        self._rows, self._due = 0, time.monotonic() + _SECONDS_AT_ONCE

    def _print_line(self) -> None:
        self._due = time.monotonic() + _LINE_EACH
        stage = _Stage(*self._stage, rows=self._rows, bytes=self._bytes)
        with suppress(OSError, ValueError):  # the stream is closed
            print(f"{stage.name}: {stage.text}", file=self._stream, flush=True)


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook: a kernel has imported IPython."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


@dataclass
class _Stage:
    """A stage of the work, in a notebook or as lines.

    Attributes:
        name: the name of the stage.
        total: the number of rows; None if unknown.
        begun: the start, in seconds of `time.monotonic`.
        rows, bytes: the finished rows and bytes.
        seconds: the duration, once the stage has ended.
    """

    name: str
    total: int | None
    begun: float
    rows: int = 0
    bytes: int = 0
    seconds: float | None = None

    @property
    def text(self) -> str:
        seconds = self.seconds or time.monotonic() - self.begun
        speed = self.rows / seconds if seconds else 0
        text = f"{self.rows:,} rows, {speed:,.0f} rows/s"
        if self.rows and self.bytes:
            text += f", {self.bytes / seconds / 1e6:,.0f} MB/s"
        if self.seconds is not None:
            return f"{text}, {_clock(seconds)}"
        return text if not self.total or not speed else f"{text}, {_clock(self._left / speed)} left"

    @property
    def _left(self) -> int:
        return max(0, (self.total or 0) - self.rows)

    @property
    def markup(self) -> str:
        total = self.total or (self.rows if self.seconds is not None else 0)
        measured = f' max="{total}" value="{min(self.rows, total)}"' if total else ""
        bar = f"<progress{measured}></progress>"
        return f"<tr><td>{html.text(self.name)}</td><td>{bar}</td><td>{html.text(self.text)}</td></tr>"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


class _NotebookBar:
    """An HTML bar that replaces itself, with the methods of a terminal's bar."""

    def __init__(self) -> None:
        self._stages: list[_Stage] = []
        self._shown: Any = None
        self._next = 0.0

    def start(self) -> None:
        self._next = time.monotonic() + _FIRST_SHOWN

    def stop(self) -> None:
        self._end_stage()
        if self._shown is not None:
            self._display()

    def add_task(self, name: str, *, total: int | None, bytes: int) -> _Stage:  # noqa: A002  a field of rich
        self._end_stage()
        self._stages.append(_Stage(name, total, time.monotonic()))
        return self._stages[-1]

    def update(self, stage: _Stage, *, advance: int, bytes: int) -> None:  # noqa: A002
        stage.rows += advance
        stage.bytes = bytes
        if time.monotonic() >= self._next:
            self._display()

    def _end_stage(self) -> None:
        if self._stages and self._stages[-1].seconds is None:
            self._stages[-1].seconds = time.monotonic() - self._stages[-1].begun

    def _display(self) -> None:
        from IPython import display

        self._next = time.monotonic() + _SHOWN_EACH
        data = {
            "text/html": f"<table>{''.join(stage.markup for stage in self._stages)}</table>",
            "text/plain": "\n".join(f"{stage.name}: {stage.text}" for stage in self._stages),
        }
        if self._shown is None:
            show: Any = display.display
            self._shown = show(data, raw=True, display_id=True)
        else:
            self._shown.update(data, raw=True)


def _terminal_bar(stream: IO[str]) -> Any:
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

    # On a narrow terminal, the bar is the part that gets shorter.
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
