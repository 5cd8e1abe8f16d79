"""Prints results: as a table on a terminal, as JSON lines in a pipe or with --json."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import click

from recordspec.errors import show_json, show_text

# The minimum width of a column, unless its text is shorter. In a narrower column, every word has its own
# line.
_NARROWEST = 40


def wants_json(as_json: bool) -> bool:
    """Whether to print JSON."""
    return as_json or not sys.stdout.isatty()


def echo(line: Any = "", *, err: bool = False, bold: bool = False) -> None:
    """Prints a line, escaped: names in files may be hostile to a terminal. Commands print only with this."""
    text = show_text(str(line))
    click.echo(click.style(text, bold=True) if bold else text, err=err)


def print_text(text: str, *, err: bool = False) -> None:
    """Prints the lines of a text."""
    for line in text.removesuffix("\n").split("\n"):
        echo(line, err=err)


def print_json(value: Any) -> None:
    """Prints a value on a line; bytes in base64. Control characters are escaped."""
    click.echo(show_json(json.dumps(value, ensure_ascii=False, allow_nan=True, default=_base64)))


def print_json_lines(lines: memoryview) -> None:
    """Prints lines of JSON in UTF-8, each with its line break. Control characters are escaped."""
    click.echo("\n".join(map(show_json, str(lines, "utf-8").split("\n"))), nl=False)


def _escaped(value: Any) -> str:
    return repr(value)[2:-1] if isinstance(value, bytes) else str(value)


def _base64(value: Any) -> str:
    if not isinstance(value, bytes):
        raise TypeError(f"{type(value).__name__} in JSON")
    return base64.b64encode(value).decode()


def print_rows(rows: Iterable[Mapping[str, Any]], as_json: bool, footer: Callable[[], str] = str) -> None:
    """Prints rows with the same keys as JSON lines, or as a table with a footer."""
    rows = list(rows)
    if wants_json(as_json):
        for row in rows:
            print_json(row)
        return
    if rows:
        numbers = {key for key in rows[0] if all(isinstance(row[key], (int, float)) for row in rows)}
        _print_table([{show_text(key): shown(row[key]) for key in row} for row in rows], numbers)
    if text := footer():
        print_text(text)


def _print_table(rows: Sequence[Mapping[str, str]], numbers: set[str]) -> None:
    """Prints rows with the same keys. The columns `numbers` are aligned to the right.

    If the terminal is too narrow for a readable table, each row is printed as a list under its first cell,
    without empty cells.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.markup import escape
    from rich.padding import Padding
    from rich.table import Table

    console = Console()
    table = Table(box=None, pad_edge=False)
    width = -2
    for key in rows[0]:
        cells = [key, *(row[key] for row in rows)]
        longest_word = max((cell_len(word) for cell in cells for word in cell.split()), default=0)
        needed = max(longest_word, min(_NARROWEST, max(map(cell_len, cells))))
        width += needed + 2
        # a column of minimum width must not shrink to make room
        tight = needed >= max(cell_len(row[key]) for row in rows)
        justify: Literal["left", "right"] = "right" if key in numbers else "left"
        table.add_column(escape(key), justify=justify, overflow="fold", no_wrap=tight)
    for row in rows:
        table.add_row(*map(escape, row.values()))
    if width <= console.width:
        console.print(table)
        return
    for row in rows:
        (_, first), *others = row.items()
        echo(first, bold=True)
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for key, text in others:
            if text:
                grid.add_row(escape(key), escape(text))
        console.print(Padding(grid, (0, 0, 0, 2)))


def shown(value: Any) -> str:
    """A value as text, with separators for thousands, and visible control characters."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, bytes):
        return _escaped(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_escaped)
    return show_text(text)


def print_notes(notes: Iterable[Any]) -> None:
    """Prints notes on stderr."""
    for note in notes:
        echo(f"note: {note}", err=True)


@contextmanager
def quiet_tensorflow() -> Iterator[None]:
    """Keeps TensorFlow's log, which no setting silences, off stderr."""
    kept = os.dup(2)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(silent)
        os.close(kept)


def size(count: int) -> str:
    """A number of bytes in a suitable unit."""
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            break
        amount /= 1024
    return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.1f} {unit}"
