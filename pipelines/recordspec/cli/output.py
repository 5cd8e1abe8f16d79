"""Printing: a table on a terminal, JSON lines in a pipe or with --json."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import click

from recordspec.errors import show_json, show_text

json_option = click.option("--json", "as_json", is_flag=True, help="JSON lines, also on a terminal.")


def wants_json(as_json: bool) -> bool:
    """Whether to print for a program."""
    return as_json or sys.stdout is None or not sys.stdout.isatty()


def echo(line: Any = "", *, err: bool = False, bold: bool = False) -> None:
    """Prints a line. Commands print nothing without it: names in files may be hostile to a terminal."""
    text = show_text(str(line))
    click.echo(click.style(text, bold=True) if bold else text, err=err)


def print_text(text: str, *, err: bool = False) -> None:
    """Prints the lines of a text."""
    for line in text.removesuffix("\n").split("\n"):
        echo(line, err=err)


def print_json(value: Any) -> None:
    """One value on a line; bytes in base64. What a terminal would take for a command is escaped."""
    click.echo(show_json(json.dumps(value, ensure_ascii=False, allow_nan=True, default=_base64)))


def _escaped(value: Any) -> str:
    return repr(value)[2:-1] if isinstance(value, bytes) else str(value)


def _base64(value: Any) -> str:
    if not isinstance(value, bytes):
        raise TypeError(f"{type(value).__name__} in JSON")
    return base64.b64encode(value).decode()


def print_rows(rows: Iterable[Mapping[str, Any]], as_json: bool, footer: Callable[[], str] = str) -> None:
    """Rows of the same keys: JSON lines, or a table with a last line under it."""
    rows = list(rows)
    if wants_json(as_json):
        for row in rows:
            print_json(row)
        return
    from recordspec.cli.tables import print_table

    keys = rows[0] if rows else ()
    numbers = frozenset(key for key in keys if all(isinstance(row[key], (int, float)) for row in rows))
    print_table([{key: shown(row[key]) for key in row} for row in rows], numbers)
    if text := footer():
        print_text(text)


def shown(value: Any) -> str:
    """A value as text: thousands apart, control characters made visible."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, bytes):
        return _escaped(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_escaped)
    return show_text(text)


def print_notes(notes: Iterable[Any]) -> None:
    """What is worth knowing beside the result, on stderr."""
    for note in notes:
        echo(f"note: {note}", err=True)


@contextmanager
def quiet_tensorflow() -> Iterator[IO[str]]:
    """Keeps TensorFlow's log, which no setting silences, off stderr, and gives stderr to who else writes.

    Errors are raised as ever.
    """
    kept = os.dup(2)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)
    try:
        with open(kept, "w", closefd=False) as stderr:
            yield stderr
    finally:
        os.dup2(kept, 2)
        os.close(silent)
        os.close(kept)


def counted(count: int, noun: str) -> str:
    """`1 file`, `2,000 files`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def size(count: int) -> str:
    """Bytes in a unit that suits."""
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            break
        amount /= 1024
    return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.1f} {unit}"
