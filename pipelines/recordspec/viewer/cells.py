"""Values as JSON that tells the page how each is drawn.

A number, a text or a truth value stands for itself. Everything else is an object, whose `is` says what it is:
`missing`, `label`, `number` (as text, where JSON has none such), `text` that is cut, `bytes`, `image`,
`sound`, `list`, `numbers` or `fields`. Images and sounds have only their measures: the page asks for each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.tables.column_types import is_image_shape, is_list_type, leaves_of, shortest
from recordspec.tables.media_headers import media_info
from recordspec.wire.arrays import to_numpy
from recordspec.wire.file_types import printable, type_name

# Characters of a text, bytes in hexadecimal, items of a list, and numbers of which a curve is drawn.
_CHARACTERS, _BYTES, _ITEMS, _NUMBERS = 300, 16, 8, 256
# Items of a list in a record alone.
_ALL_ITEMS = 1000
# Bytes of texts, and of strings, of which only the beginning is looked at.
_LONG_TEXT, _LONG_BYTES = 1 << 20, 1 << 26
# Integers beyond this are rounded by JavaScript.
_EXACT = 1 << 53
_MISSING = {"is": "missing"}

Cell = Any


def cell(value: Any, *, is_picture: bool = False, whole: bool = False) -> Cell:
    """A value, a `pyarrow.Scalar`.

    Args:
        is_picture: whether lists of numbers are the pixels of an image.
        whole: whether texts and lists are not cut, unless they are very long.
    """
    types, kind = arrow().types, value.type
    if not value.is_valid:
        return _MISSING
    if types.is_dictionary(kind):
        return {"is": "label", "text": str(value.as_py())}
    if types.is_struct(kind):
        return {"is": "fields", "fields": [[name, cell(value[name], whole=whole)] for name in value]}
    if types.is_binary(kind) or types.is_large_binary(kind):
        return _bytes(value.as_buffer(), whole=whole)
    if types.is_string(kind) or types.is_large_string(kind):
        return _text_of(value.as_buffer(), whole=whole)
    if is_list_type(kind):
        return _list(value.values, is_picture=is_picture, whole=whole)
    if types.is_boolean(kind):
        return value.as_py()
    if types.is_integer(kind) or types.is_floating(kind):
        return _number(value.as_py(), is_single=types.is_float32(kind))
    if types.is_temporal(kind):  # Python has no nanoseconds, and no year 10000
        return value.cast("string").as_py()
    return _text(str(value.as_py()), whole=whole)


def _text_of(data: Any, *, whole: bool) -> Cell:
    """A text, a buffer; of so many bytes that all would take too much memory, its beginning."""
    if data.size <= _LONG_TEXT:
        return _text(data.to_pybytes().decode(), whole=whole)
    start = data.slice(0, 4 * _CHARACTERS).to_pybytes().decode(errors="ignore")
    return {"is": "text", "text": start[:_CHARACTERS], "size": data.size}


def _bytes(data: Any, *, whole: bool) -> Cell:
    """A string, a buffer; of one of very many bytes, its first."""
    if data.size <= _LONG_BYTES:
        return bytes_cell(data.to_pybytes(), whole=whole)
    start = data.slice(0, 1 << 12).to_pybytes()
    return _hex(start if whole else start[:_BYTES], type_name(start) or "", data.size)


def bytes_cell(data: bytes, *, whole: bool = False) -> Cell:
    """A string: an image or a sound by its header, text if it is UTF-8, else its first bytes."""
    form = type_name(data) or ""
    info = media_info(data, form)
    if info is not None:
        kind = "sound" if "seconds" in info.measures else "image"
        return {"is": kind, "form": form, "size": len(data), **info.measures}
    text = printable(data)
    if text is not None:
        return _text(text, whole=whole)
    return _hex(data if whole else data[:_BYTES], form, len(data))


def _hex(data: bytes, form: str, size: int) -> Cell:
    return {"is": "bytes", "form": form, "size": size, "hex": data[: 1 << 12].hex(" ")}


def _text(text: str, *, whole: bool) -> Cell:
    if whole or len(text) <= _CHARACTERS:
        return text
    return {"is": "text", "text": text[:_CHARACTERS], "length": len(text)}


def _number(number: Any, *, is_single: bool) -> Cell:
    if isinstance(number, float):
        if not math.isfinite(number):
            return {"is": "number", "text": str(number)}
        return shortest(np.array([number], np.float32))[0] if is_single else number
    return number if abs(number) < _EXACT else {"is": "number", "text": str(number)}


def _list(values: Any, *, is_picture: bool, whole: bool) -> Cell:
    leaves, shape = leaves_of(values)
    types = arrow().types
    has_numbers = types.is_integer(leaves.type) or types.is_floating(leaves.type)
    if is_picture and is_image_shape(shape) and not leaves.null_count:
        return {"is": "image", "form": str(leaves.type), "size": leaves.nbytes} | dict(
            zip(("height", "width"), shape, strict=False)
        )
    if has_numbers and None not in shape and not leaves.null_count and (len(shape) > 1 or len(leaves) > 1):
        return numbers_cell(to_numpy(leaves), shape, form=str(leaves.type), whole=whole)
    count = min(len(values), _ALL_ITEMS if whole else _ITEMS)
    return {"is": "list", "length": len(values), "items": [cell(one, whole=whole) for one in values[:count]]}


def numbers_cell(numbers: Any, shape: list[int | None], *, form: str, whole: bool = False) -> Cell:
    """Some of the numbers of an array, evenly apart, of which a curve is drawn.

    Args:
        numbers: all of them, NumPy `[n]`.
        shape: that of the array.
        form: the name of their type.
    """
    some = numbers if whole and len(numbers) <= 1 << 14 else numbers[:: -(-len(numbers) // _NUMBERS) or 1]
    return {
        "is": "numbers",
        "type": form,
        "shape": shape,
        "some": [_number(one, is_single=numbers.dtype == np.float32) for one in some.tolist()],
    }


def labels_cell(indices: Any, names: tuple[str, ...]) -> Cell:
    """Indices of classes, one or lists of them, with the names of these; other numbers, such as a padding,
    stay numbers."""
    if isinstance(indices, list):
        items = [labels_cell(index, names) for index in indices[:_ALL_ITEMS]]
        return {"is": "list", "length": len(indices), "items": items}
    if 0 <= indices < len(names):
        return {"is": "label", "text": names[indices], "index": indices}
    return _number(indices, is_single=False)


def item_at(value: Any, place: list[int]) -> Any:
    """The item of a value at a place: the number of an item of each list. Raises IndexError."""
    for number in place:
        if not value.is_valid or not is_list_type(value.type) or not 0 <= number < len(value.values):
            raise IndexError(number)
        value = value.values[number]
    return value
