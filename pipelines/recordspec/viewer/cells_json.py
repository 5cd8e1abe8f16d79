"""Cells as JSON that tells the page how each is drawn.

A number, a text or a truth value stands for itself. Everything else is an object, whose `is` says what it is:
`missing`, `label`, `number` (as text, where JSON has none such), `text` that is cut, `bytes` (`damaged` if
they begin as an image or audio does), `image`,
`audio`, `list`, `numbers`, `fields`, or `pack`: several rows in one sequence. Images and audio have only
their measures: the page asks for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from recordspec.schema.values import Array
from recordspec.tables.cells import MOST_CHARACTERS, MOST_ITEMS, Cell, CellKind, plain_numbers
from recordspec.tables.column_types import is_list_type
from recordspec.tables.media_headers import MEDIA

# Bytes in hexadecimal, and numbers of which a curve is drawn; of a record alone more.
_BYTES, _NUMBERS = 16, 256
_ALL_BYTES, _ALL_NUMBERS, _ALL_ITEMS = 1 << 12, 1 << 14, 1000
# The values of each row of a pack.
_IN_PACK = 6
# Integers beyond this are rounded by JavaScript.
_EXACT = 1 << 53


def drawn(cell: Cell, *, whole: bool = False) -> Any:
    """A cell as JSON. With `whole`, texts and lists are not cut, unless they are very long."""
    return _DRAWN[cell.kind](cell, whole)


def _number(number: Any) -> Any:
    is_exact = math.isfinite(number) if isinstance(number, float) else abs(number) < _EXACT
    return number if is_exact else {"is": "number", "text": str(number)}


def _label(cell: Cell, whole: bool) -> Any:
    label = {"is": "label", "text": cell.value}
    return label if cell.index is None else {**label, "index": cell.index}


def _text(cell: Cell, whole: bool) -> Any:
    if cell.length is None:
        return {"is": "text", "text": cell.value, "size": cell.size}
    if whole or cell.length <= MOST_CHARACTERS:
        return cell.value
    return {"is": "text", "text": cell.value[:MOST_CHARACTERS], "length": cell.length}


def _bytes(cell: Cell, whole: bool) -> Any:
    start = cell.value[: _ALL_BYTES if whole else _BYTES]
    made = {"is": "bytes", "form": cell.form, "size": cell.size, "hex": start.hex(" ")}
    return {**made, "damaged": True} if cell.form in MEDIA else made


def _medium(cell: Cell, whole: bool) -> Any:
    if cell.info is not None:
        return {"is": cell.kind, "form": cell.form, "size": cell.size, **cell.info.measures}
    height, width, _ = cell.shape
    return {"is": cell.kind, "form": cell.form, "size": cell.size, "height": height, "width": width}


def _numbers(cell: Cell, whole: bool) -> Any:
    """Some of the numbers, evenly apart, of which a curve is drawn."""
    numbers, count = cell.value, len(cell.value)
    some = numbers if whole and count <= _ALL_NUMBERS else numbers[:: -(-count // _NUMBERS) or 1]
    return {
        "is": "numbers",
        "type": cell.form,
        "shape": list(cell.shape),
        "some": list(map(_number, plain_numbers(some))),
    }


def _list(cell: Cell, whole: bool) -> Any:
    some = islice(cell.items, _ALL_ITEMS if whole else MOST_ITEMS)
    return {"is": "list", "length": cell.length, "items": [drawn(item, whole=whole) for item in some]}


def _fields(cell: Cell, whole: bool) -> Any:
    pairs = zip(cell.names, cell.items, strict=True)
    return {"is": "fields", "fields": [[name, drawn(item, whole=whole)] for name, item in pairs]}


def drawn_pack(values: Array, segments: Sequence[tuple[int, int]], names: Sequence[str]) -> Any:
    """Values of several rows in one sequence as JSON: the place of each row, and its first values.

    Args:
        values: `[length, ...]`; those of more than one dimension are not told.
        segments: the first place and the number of values of each row.
        names: the names of the classes that the values are; empty for other values.
    """

    def first(place: int, size: int) -> list[Any]:
        some = values[place : place + min(size, _IN_PACK)]
        if some.ndim > 1:
            return []
        if names:
            return [names[index] if 0 <= index < len(names) else index for index in some.tolist()]
        if some.dtype == object:
            return [one.decode(errors="replace")[:MOST_CHARACTERS] for one in some.tolist()]
        return list(map(_number, plain_numbers(some)))

    rows = [{"at": place, "size": size, "first": first(place, size)} for place, size in segments]
    return {"is": "pack", "length": len(values), "rows": rows}


_DRAWN: dict[CellKind, Callable[[Cell, bool], Any]] = {
    "missing": lambda cell, whole: {"is": "missing"},
    "number": lambda cell, whole: _number(cell.value),
    "label": _label,
    "text": _text,
    "bytes": _bytes,
    "image": _medium,
    "audio": _medium,
    "numbers": _numbers,
    "list": _list,
    "fields": _fields,
}


def item_at(value: Any, place: list[int]) -> Any:
    """The item of a value at a place: the number of an item of each list. Raises IndexError."""
    for number in place:
        if not value.is_valid or not is_list_type(value.type) or not 0 <= number < len(value.values):
            raise IndexError(number)
        value = value.values[number]
    return value
