"""What a value shows, before it is drawn.

Three renderers draw each kind of cell: `tables.show` as text and JSON for a terminal, `tables.table_html` as
HTML for a notebook, and `viewer.cells_json` as JSON for the viewer's page. A new kind of value is a new kind
of cell here, and an entry in the table of each renderer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import counted, show_shape
from recordspec.tables.column_types import is_image_shape, is_list_type, leaves_of, shortest, type_text
from recordspec.tables.media_headers import MediaInfo, describe, media_info
from recordspec.wire.arrays import to_numpy
from recordspec.wire.file_types import printable, type_name
from recordspec.wire.proto import Listed

if TYPE_CHECKING:
    from recordspec.schema.dates import DateUnit

CellKind = Literal[
    "missing", "number", "label", "text", "bytes", "image", "audio", "numbers", "list", "fields"
]

# Characters of a text, and items of a list, that are shown.
MOST_CHARACTERS, MOST_ITEMS = 200, 8
# Bytes of texts, and of other byte strings, of which only the beginning is read.
_LONG_TEXT, _LONG_BYTES = 1 << 20, 1 << 26
_DATE_UNITS: dict[str, DateUnit] = {
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}
_START = 1 << 12


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What a value shows.

    Attributes:
        kind: what the value is.
        value: a number or truth value; the name of a label; a text; the bytes of a byte string, an image or
            audio; pixels of an image, NumPy `[height, width, channels]`; or numbers, NumPy `[n]`.
        form: the type of bytes by their first bytes, such as `PNG image`; the dtype of numbers, of pixels and
            of the items of a list.
        size: the number of bytes; of a list, the number of its innermost items. If the bytes are very many,
            `value` has only the first.
        length: the number of items of a list, or of characters of a text; None if it is unknown.
        shape: the sizes of nested lists per level; None for a level at which they differ.
        info: the header of an image or audio.
        items: the cells of the items of a list, or of fields, made while they are read.
        names: the names of fields.
        index: the index of a label, if it is known.
    """

    kind: CellKind
    value: Any = None
    form: str = ""
    size: int = 0
    length: int | None = None
    shape: tuple[int | None, ...] = ()
    info: MediaInfo | None = None
    items: Iterable[Cell] = ()
    names: tuple[str, ...] = ()
    index: int | None = None

    @property
    def short_text(self) -> str:
        """The text, or its beginning and how long it is."""
        if self.length is not None and self.length <= MOST_CHARACTERS:
            return str(self.value)
        long = counted(self.size, "byte") if self.length is None else f"{self.length:,} characters"
        return f"{self.value[:MOST_CHARACTERS]}... {long}"

    @property
    def description(self) -> str:
        """Bytes, media or nested lists in words: `PNG 28x28`, `12 bytes`, `uint8 [28, 28, 3]`."""
        if self.shape:
            return f"{self.form} {show_shape(self.shape)}"
        return describe(self.value, self.size) if self.info is None else self.info.text


def cell_of(value: Any, *, is_picture: bool = False) -> Cell:
    """The cell of a `pyarrow.Scalar`. With `is_picture`, lists of numbers may be the pixels of an image."""
    types, type_ = arrow().types, value.type
    if not value.is_valid:
        return Cell(kind="missing")
    if types.is_dictionary(type_):
        return Cell(kind="label", value=str(value.as_py()))
    if types.is_struct(type_):
        return Cell(kind="fields", names=tuple(value), items=(cell_of(value[name]) for name in value))
    if types.is_binary(type_) or types.is_large_binary(type_):
        return _cell_of_buffer(value.as_buffer())
    if types.is_string(type_) or types.is_large_string(type_):
        return _cell_of_long_text(value.as_buffer())
    if is_list_type(type_):
        return _cell_of_list(value.values, is_picture=is_picture)
    if types.is_boolean(type_):
        return Cell(kind="number", value=value.as_py())
    if types.is_integer(type_) or types.is_floating(type_):
        number = value.as_py()
        return Cell(kind="number", value=_shortest(number) if types.is_float32(type_) else number)
    if types.is_temporal(type_):
        return _cell_of_temporal(value)
    return cell_of_text(str(value.as_py()))


def cell_of_bytes(data: bytes) -> Cell:
    """The cell of a byte string: an image or audio by its header, printable UTF-8 as text, or bytes."""
    form = type_name(data) or ""
    info = media_info(data, form)
    if info is not None:
        kind: CellKind = "audio" if "seconds" in info.measures else "image"
        return Cell(kind=kind, value=data, form=form, size=len(data), info=info)
    text = printable(data)
    return Cell(kind="bytes", value=data, form=form, size=len(data)) if text is None else cell_of_text(text)


def cell_of_text(text: str) -> Cell:
    return Cell(kind="text", value=text, length=len(text))


def cell_of_date(number: int, unit: DateUnit) -> Cell:
    """The cell of a date or a time, a number of units since 1970-01-01."""
    from recordspec.schema.dates import date_text

    return cell_of_text(date_text(number, unit))


def cell_of_numbers(numbers: Any, *, form: str = "", is_picture: bool = False) -> Cell:
    """The cell of a NumPy array of numbers. With `is_picture`, they may be the pixels of an image."""
    shape, form = tuple(numbers.shape), form or numbers.dtype.name
    if is_picture and is_image_shape(shape):
        return Cell(kind="image", value=numbers, form=form, size=numbers.nbytes, shape=shape)
    return Cell(kind="numbers", value=numbers.reshape(-1), form=form, shape=shape, length=shape[0])


def cell_of_labels(indices: Any, names: Sequence[str]) -> Cell:
    """The cell of the index of a class, or of lists of indices. An index without a name, such as a padding,
    is a number.
    """
    if isinstance(indices, list):
        items = (cell_of_labels(index, names) for index in indices)
        return Cell(kind="list", form="int64", length=len(indices), items=items)
    if 0 <= indices < len(names):
        return Cell(kind="label", value=names[indices], index=indices)
    return Cell(kind="number", value=indices)


def cell_of_listed(listed: Listed, names: Sequence[str] = (), date: DateUnit | None = None) -> Cell:
    """The cell of the list of a stored Feature: of its value if it has one, missing if there is no list.

    Args:
        names: the names of the classes, if integers are their indices.
        date: the unit, if integers are dates or times.
    """
    kind, values = listed
    if kind == "none":
        return Cell(kind="missing")
    if len(values) != 1:
        return cell_of_values(listed, names, date)
    if kind == "bytes":
        return cell_of_bytes(values[0])
    if kind == "int64" and date is not None:
        return cell_of_date(values[0], date)
    if kind == "int64":
        return cell_of_labels(values[0], names)
    return Cell(kind="number", value=_shortest(values[0]))


def cell_of_values(listed: Listed, names: Sequence[str] = (), date: DateUnit | None = None) -> Cell:
    """The cell of the values of a stored Feature, as a list, however many there are; see `cell_of_listed`."""
    kind, values = listed
    if kind == "bytes":
        return Cell(kind="list", form=kind, length=len(values), items=map(cell_of_bytes, values))
    if kind == "int64" and date is not None:
        items = (cell_of_date(value, date) for value in values)
        return Cell(kind="list", form="date", length=len(values), items=items)
    if kind == "int64" and any(0 <= value < len(names) for value in values):
        return cell_of_labels(values, names)
    return cell_of_numbers(np.array(values, kind))


def image_of(pixels: Any) -> Any:
    """Pixels, NumPy `[height, width, 1, 3 or 4]`, as an image of Pillow with 8 bits. Floats are scaled: the
    least is black, and the most is white. Raises MissingExtra.
    """
    from recordspec.schema.media import images  # importing it takes 0.1 s

    if pixels.dtype.kind == "f":
        finite = np.nan_to_num(pixels.astype(np.float64), posinf=0.0, neginf=0.0)
        low, high = float(finite.min()), float(finite.max())
        pixels = ((finite - low) * (255 / (high - low or 1))).astype(np.uint8)
    elif pixels.dtype != np.uint8:
        shift = 8 if pixels.dtype == np.uint16 else 0
        pixels = (pixels.astype(np.int64) >> shift).clip(0, 255).astype(np.uint8)
    return images.pillow("images").fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def plain_numbers(numbers: Any) -> Any:
    """NumPy numbers as Python's, in nested lists; a float32 is the shortest number that reads back equal."""
    if numbers.dtype == np.float32:
        return np.array(shortest(numbers.reshape(-1)), float).reshape(numbers.shape).tolist()
    return numbers.tolist()


def _shortest(number: float) -> float:
    return shortest(np.array([number], np.float32))[0]


def _cell_of_buffer(data: Any) -> Cell:
    """The cell of a byte string in an Arrow buffer."""
    if data.size <= _LONG_BYTES:
        return cell_of_bytes(data.to_pybytes())
    start = _start_of(data)
    return Cell(kind="bytes", value=start, form=type_name(start) or "", size=data.size)


def _start_of(data: Any) -> bytes:
    start: bytes = data.slice(0, min(_START, data.size)).to_pybytes()
    return start


def _cell_of_long_text(data: Any) -> Cell:
    """The cell of a text in an Arrow buffer."""
    if data.size <= _LONG_TEXT:
        return cell_of_text(data.to_pybytes().decode())
    start = _start_of(data).decode(errors="ignore")
    return Cell(kind="text", value=start[:MOST_CHARACTERS], size=data.size)


def _cell_of_temporal(value: Any) -> Cell:
    if arrow().types.is_date32(value.type):
        return cell_of_date(value.value, "days")
    if arrow().types.is_timestamp(value.type):
        return cell_of_date(value.value, _DATE_UNITS[value.type.unit])
    return cell_of_text(value.cast("string").as_py())


def _cell_of_list(values: Any, *, is_picture: bool) -> Cell:
    leaves, shape = leaves_of(values)
    types, form = arrow().types, type_text(leaves.type)
    is_numeric = types.is_integer(leaves.type) or types.is_floating(leaves.type)
    if is_numeric and not leaves.null_count and None not in shape and (len(shape) > 1 or len(leaves) > 1):
        return cell_of_numbers(to_numpy(leaves).reshape(shape), form=form, is_picture=is_picture)
    items = map(cell_of, values)
    return Cell(kind="list", form=form, length=len(values), size=len(leaves), shape=tuple(shape), items=items)
