"""Rows on a terminal: a table where it fits, else one row below the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from recordspec.cli.output import echo
from recordspec.errors import show_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# A column is made no narrower than this, nor than the longest of its words: below, texts are towers of words.
_NARROWEST = 40

Cells = Mapping[str, str]


def print_table(rows: Sequence[Cells], numbers: frozenset[str]) -> None:
    """Rows of the same keys, of which `numbers` are aligned to the right.

    Where the terminal is too narrow for a table that can be read, each row is a list under its first cell,
    without those that are empty.
    """
    from rich.console import Console

    if not rows:
        return
    console = Console()
    rows = [{show_text(key): show_text(text) for key, text in row.items()} for row in rows]
    columns = {key: [key, *(row[key] for row in rows)] for key in rows[0]}
    needed = {key: _needed(cells) for key, cells in columns.items()}
    if sum(needed.values()) + 2 * len(needed) - 2 <= console.width:
        console.print(_table(rows, needed, numbers))
        return
    for row in rows:
        _print_list(console, row)


def _needed(cells: Sequence[str]) -> int:
    """How wide a column is at least."""
    from rich.cells import cell_len

    longest_word = max((cell_len(word) for cell in cells for word in cell.split()), default=0)
    return max(longest_word, min(_NARROWEST, max(map(cell_len, cells))))


def _table(rows: Sequence[Cells], needed: Mapping[str, int], numbers: frozenset[str]) -> Table:
    from rich.cells import cell_len
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for key in rows[0]:
        # one that is no wider than it must be gives nothing away to the others
        tight = needed[key] >= max(cell_len(row[key]) for row in rows)
        justify: Literal["left", "right"] = "right" if key in numbers else "left"
        table.add_column(escape(key), justify=justify, overflow="fold", no_wrap=tight)
    for row in rows:
        table.add_row(*map(escape, row.values()))
    return table


def _print_list(console: Console, row: Cells) -> None:
    """A row: its first cell, and below it the names and texts of the others."""
    from rich.markup import escape
    from rich.padding import Padding
    from rich.table import Table

    (_, first), *others = row.items()
    echo(first, bold=True)
    cells = Table.grid(padding=(0, 2))
    cells.add_column(no_wrap=True)
    cells.add_column(overflow="fold")
    for key, text in others:
        if text:
            cells.add_row(escape(key), escape(text))
    console.print(Padding(cells, (0, 0, 0, 2)))
