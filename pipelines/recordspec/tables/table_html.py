"""The first rows of a table as HTML for a notebook, with images and audio up to a size."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import MissingExtra, Problem, RecordError, RecordspecError, counted
from recordspec.html import (
    MOST_ROWS,
    Markup,
    heading,
    items,
    others,
    paragraph,
    picture,
    short_text,
    sound,
    text,
)
from recordspec.html import table as html_table
from recordspec.schema.options import format_bytes
from recordspec.store.scan import RowBatch, Scanner, scan
from recordspec.tables.cells import MOST_ITEMS, Cell, CellKind, cell_of, image_of, plain_numbers
from recordspec.tables.scan_columns import is_picture, type_words

if TYPE_CHECKING:
    from recordspec.tables.scan_columns import ColumnReader, ScanColumn

# Columns that are read and shown; all others are only named.
MOST_COLUMNS = 20
# Rows that are searched for matches of a condition.
_MOST_SEARCHED = 10_000
# The largest size in bytes of an image or audio, and of all media of a table, before base64 adds a third.
_MOST_BYTES_OF_ONE, _MOST_BYTES = 256 << 10, 2 << 20
# A small file may be an image with very many pixels; compressing the pixels of an array takes 50 ns each.
_MOST_PIXELS, _MOST_RAW_PIXELS = 1 << 24, 1 << 20
# Items of a list of byte strings that are shown, which may be media.
_MOST_MEDIA = 4
_IMAGES = {f"{name} image": f"image/{name.lower()}" for name in ("PNG", "JPEG", "GIF", "BMP", "WebP")}
_SOUNDS = {f"{name} file": f"audio/{name.lower()}" for name in ("WAV", "FLAC", "Ogg")} | {
    "MP3 file": "audio/mpeg"
}
_NULL = Markup("<em>null</em>")


@dataclass(kw_only=True)
class FirstRows:
    """The first rows of a table, or the first that match its condition.

    Attributes:
        reader: reads the columns that are shown.
        scanner: the scanner of the files.
        is_filtered: whether there is a condition.
        skips: whether records that cannot be read are skipped; otherwise the first ends the rows.
        skipped: the number of skipped records.
        searched: the number of rows read.
        problems: the problems that ended the rows.
    """

    reader: ColumnReader
    scanner: Scanner
    is_filtered: bool
    skips: bool
    skipped: int = 0
    searched: int = 0
    problems: tuple[Problem, ...] = ()

    def read(self) -> Any:
        """The rows, a `pyarrow.Table`. Sets `problems` if reading ends with an error."""
        some = []
        try:
            for batch in self._batches():
                some.append(batch)
                if sum(map(len, some)) >= MOST_ROWS:
                    break
        except RecordspecError as error:
            self.problems = error.problems
        return arrow().Table.from_batches(some, self.reader.projected_schema).slice(0, MOST_ROWS)

    def _batches(self) -> Iterator[Any]:
        """Record batches with few rows each, so that few rows are decoded. Raises the error that ends
        them.
        """
        for file in self.scanner.files:
            for item in scan(self.reader.narrowed(file)):
                if isinstance(item, RowBatch):
                    yield from self._pieces(item)
                else:
                    self._skip(item.error)
                if self.searched >= _MOST_SEARCHED:
                    return

    def _pieces(self, batch: RowBatch) -> Iterator[Any]:
        first, count = 0, MOST_ROWS
        while first < len(batch) and self.searched < _MOST_SEARCHED:
            count = min(count, _MOST_SEARCHED - self.searched)
            rows = np.arange(first, min(first + count, len(batch)))
            made, error = self.reader.made(batch.take(rows))
            read = len(rows) if error is None else (error.row or 0) + 1
            first, self.searched = first + read, self.searched + read
            yield from made
            if error is not None:
                self._skip(error)
            count *= 2

    def _skip(self, error: RecordError) -> None:
        if not self.skips:
            raise error
        self.skipped += 1

    @property
    def notes(self) -> Iterator[str]:
        if self.skipped:
            yield f"{counted(self.skipped, 'record')} before the last of these cannot be read"
        if self.is_filtered and self.searched >= _MOST_SEARCHED:
            yield f"the rows that match among the first {self.searched:,}"


def parts(columns: Mapping[str, ScanColumn], rows: FirstRows) -> Iterator[Markup]:
    """The columns with their types, and their values in the first rows; then the omissions, with the reason.

    Args:
        columns: all columns of the table, by name.
        rows: the first rows, with the first columns.
    """
    files = counted(len(rows.scanner.dataset.paths), "file")
    yield heading(f"{counted(len(columns), 'column')} of {files}")
    media, shown, read = _MediaBudget(_MOST_BYTES), [*columns.values()][:MOST_COLUMNS], rows.read()
    heads = [
        Markup(f"{short_text(column.name)}<br><small>{text(type_words(column))}</small>") for column in shown
    ]
    cells = [
        (
            Markup(row),
            *(_drawn(cell_of(read[one.name][row], is_picture=is_picture(one)), media) for one in shown),
        )
        for row in range(len(read))
    ]
    yield html_table(("", *heads), cells, "text-align: left")
    yield from map(paragraph, rows.notes)
    yield items(rows.problems)
    yield others(
        [f"{column.name}: {type_words(column)}" for column in [*columns.values()][MOST_COLUMNS:]],
        "column",
    )


@dataclass
class _MediaBudget:
    """The bytes that images and audio of a table may still take."""

    left: int

    def takes(self, size: int) -> bool:
        """Whether an image or audio of `size` bytes is shown; if so, subtracts them from `left`."""
        taken = size <= min(self.left, _MOST_BYTES_OF_ONE)
        self.left -= size if taken else 0
        return taken


def _drawn(cell: Cell, media: _MediaBudget) -> Markup:
    """A cell as HTML."""
    return _DRAWN[cell.kind](cell, media)


def _value(cell: Cell, media: _MediaBudget) -> Markup:
    return short_text(str(cell.value))


def _text(cell: Cell, media: _MediaBudget) -> Markup:
    return text(cell.short_text)


def _bytes(cell: Cell, media: _MediaBudget) -> Markup:
    return short_text(f"<{cell.description}>")


def _image(cell: Cell, media: _MediaBudget) -> Markup:
    if cell.info is None:
        return _pixels(cell, media)
    if cell.form not in _IMAGES:
        return _bytes(cell, media)
    alt = f"{cell.description}, {format_bytes(cell.size)}"
    if cell.info.measures["width"] * cell.info.measures["height"] > _MOST_PIXELS or not media.takes(
        cell.size
    ):
        return short_text(alt)
    size = (int(cell.info.measures["height"]), int(cell.info.measures["width"]))
    return picture(cell.value, _IMAGES[cell.form], alt, size)


def _pixels(cell: Cell, media: _MediaBudget) -> Markup:
    """Pixels as PNG."""
    alt, buffer = cell.description, io.BytesIO()
    if cell.value.shape[0] * cell.value.shape[1] > _MOST_RAW_PIXELS:
        return short_text(alt)
    try:
        image_of(cell.value).save(buffer, "PNG")
    except MissingExtra:
        return short_text(alt)
    data = buffer.getvalue()
    size = cell.value.shape[:2]
    return picture(data, "image/png", alt, size) if media.takes(len(data)) else short_text(alt)


def _sound(cell: Cell, media: _MediaBudget) -> Markup:
    alt = f"{cell.description}, {format_bytes(cell.size)}"
    return sound(cell.value, _SOUNDS[cell.form], alt) if media.takes(cell.size) else short_text(alt)


def _numbers(cell: Cell, media: _MediaBudget) -> Markup:
    """The first numbers; for nested lists with many numbers, only their type and shape."""
    if len(cell.shape) > 1 and len(cell.value) > MOST_ITEMS:
        return short_text(cell.description)
    first = plain_numbers(cell.value.reshape(cell.shape)[:MOST_ITEMS])
    return _joined([text(str(item)) for item in first], cell)


def _list(cell: Cell, media: _MediaBudget) -> Markup:
    """The first items; for nested lists with many items, only their type and shape."""
    if len(cell.shape) > 1 and cell.size > MOST_ITEMS:
        return short_text(cell.description)
    most = _MOST_MEDIA if "binary" in cell.form else MOST_ITEMS
    return _joined([_drawn(item, media) for item in islice(cell.items, most)], cell)


def _joined(made: list[Markup], cell: Cell) -> Markup:
    """The first items of a list, and the number of all items if there are more."""
    count = cell.length or 0
    more = [Markup(f"... {count:,} in all")] if count > len(made) else []
    return Markup(f"[{', '.join([*made, *more])}]")


def _fields(cell: Cell, media: _MediaBudget) -> Markup:
    pairs = zip(cell.names, cell.items, strict=True)
    return Markup(", ".join(f"{short_text(name)}: {_drawn(item, media)}" for name, item in pairs))


_DRAWN: dict[CellKind, Callable[[Cell, _MediaBudget], Markup]] = {
    "missing": lambda cell, media: _NULL,
    "number": _value,
    "label": _value,
    "text": _text,
    "bytes": _bytes,
    "image": _image,
    "audio": _sound,
    "numbers": _numbers,
    "list": _list,
    "fields": _fields,
}
