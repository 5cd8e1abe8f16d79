"""Building blocks of HTML, for notebooks and pages: without scripts and external resources.

Text is escaped when it becomes a part, since names and values of records may contain markup. Nothing sets a
colour: the notebook's colours apply, light or dark.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

from recordspec.errors import counted, shorten, show_text

# Rows of a table in a notebook; of further rows, only the first cells are listed.
MOST_ROWS = 20
_MOST_LISTED = 1000
# The least length, in pixels, of the longer side of an image as it is shown; `cells.js` has it, too.
LEAST_SIDE = 48
# Characters of a cell.
_LONGEST_TEXT = 200


class Markup(str):
    """HTML text, which is not escaped again."""

    __slots__ = ()


def text(value: Any) -> Markup:
    """A value as escaped text with visible control characters; Markup is returned unchanged."""
    if isinstance(value, Markup):
        return value
    return Markup(escape(show_text(f"{value:,}" if type(value) is int else str(value))))


def short_text(value: Any) -> Markup:
    """A value as escaped text of at most 200 characters; Markup is returned unchanged."""
    if isinstance(value, (int, Markup)):
        return text(value)
    return text(shorten(str(value), _LONGEST_TEXT))


def table(names: Iterable[Any], rows: Iterable[Sequence[Any]], style: str = "") -> Markup:
    """A table. The first cell of each row is its heading.

    Args:
        style: the CSS of each cell.
    """
    styled = f' style="{style}"' if style else ""
    head = "".join(f'<th scope="col"{styled}>{text(name)}</th>' for name in names)
    body = "".join(
        f'<tr><th scope="row"{styled}>{text(first)}</th>'
        + "".join(f"<td{styled}>{text(other)}</td>" for other in others)
        + "</tr>"
        for first, *others in rows
    )
    return Markup(f"<table><tr>{head}</tr>{body}</table>")


def listing(names: Iterable[Any], rows: Sequence[Sequence[Any]], what: str) -> Markup:
    """A table for a notebook: the first rows, then the names of the remaining rows; `what` is the noun for a
    row.
    """
    shown = ([short_text(cell) for cell in row] for row in rows[:MOST_ROWS])
    made = table(names, shown, "text-align: left")
    return Markup(made + others([row[0] for row in rows[MOST_ROWS:]], what))


def others(names: Sequence[Any], what: str) -> Markup:
    """A collapsed list of further names; its heading has their number and the noun `what`."""
    if not names:
        return Markup()
    listed = ", ".join(map(short_text, names[:_MOST_LISTED])) + ", ..." * (len(names) > _MOST_LISTED)
    return Markup(f"<details><summary>{text(counted(len(names), what))} more</summary>{listed}</details>")


def paragraph(value: Any) -> Markup:
    return Markup(f"<p>{short_text(value)}</p>")


def first_names(names: Sequence[str]) -> str:
    """The first names and the number of the remaining ones, on one line that is not yet escaped."""
    more = f" and {len(names) - MOST_ROWS:,} more" if len(names) > MOST_ROWS else ""
    return f"{', '.join(names[:MOST_ROWS])}{more}"


def heading(value: Any) -> Markup:
    return Markup(f"<p><strong>{short_text(value)}</strong></p>")


def items(values: Iterable[Any]) -> Markup:
    """A list of texts; empty if there are none."""
    made = "".join(f"<li>{short_text(value)}</li>" for value in values)
    return Markup(f"<ul>{made}</ul>" if made else "")


def picture(data: bytes, media_type: str, alt: str, size: tuple[int, int]) -> Markup:
    """An image, such as `image/png`, embedded in the page, at most 160 by 120 pixels large.

    A small image is enlarged to 48 pixels, with its pixels seen.

    Args:
        size: the height and the width, in pixels.
    """
    scale = -(-LEAST_SIDE // max(*size, 1))
    style = "max-width: 160px; max-height: 120px"
    if scale > 1:
        style += f"; width: {scale * size[1]}px; height: {scale * size[0]}px; image-rendering: pixelated"
    return Markup(
        f'<img src="{_inline(data, media_type)}" alt="{text(alt)}" title="{text(alt)}" style="{style}">'
    )


def sound(data: bytes, media_type: str, alt: str) -> Markup:
    """Audio, such as `audio/wav`, embedded in the page."""
    return Markup(f'<audio controls src="{_inline(data, media_type)}" title="{text(alt)}"></audio>')


def _inline(data: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{b64encode(data).decode()}"


def in_notebook(parts: Callable[[], Iterable[Markup]]) -> str:
    """The parts as HTML. An error in making them is shown in their place: a notebook shows no other error."""
    made: list[Markup] = []
    try:
        made.extend(parts())
    except Exception as error:  # data and files may have any fault, and the remaining parts are still right
        made.append(paragraph(str(error) or type(error).__name__))
    return f"<div>{''.join(made)}</div>"
