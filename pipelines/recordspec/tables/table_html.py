"""The first rows of a table as HTML for a notebook, with images and audio up to a size."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import MissingExtra, Problem, RecordError, RecordspecError, counted, show_shape
from recordspec.html import MOST_ROWS, Markup, heading, items, others, paragraph, picture, short_text, sound
from recordspec.html import table as html_table
from recordspec.schema.media import images
from recordspec.schema.options import format_bytes
from recordspec.store.scan import RowBatch, Scanner, scan
from recordspec.tables.column_types import is_image_shape, is_list_type, leaves_of, shortest, type_text
from recordspec.tables.media_headers import describe, media_info
from recordspec.tables.scan_columns import is_picture
from recordspec.tables.show import shown_value
from recordspec.wire.arrays import to_numpy
from recordspec.wire.file_types import type_name

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
# Items of a list that are shown, and media among them.
_MOST_ITEMS, _MOST_MEDIA = 8, 4
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
    media, shown, read = _Cells(_MOST_BYTES), [*columns.values()][:MOST_COLUMNS], rows.read()
    heads = [
        Markup(f"{short_text(column.name)}<br><small>{type_text(column.type)}</small>") for column in shown
    ]
    cells = [
        (Markup(row), *(media.of(read[column.name][row], is_picture=is_picture(column)) for column in shown))
        for row in range(len(read))
    ]
    yield html_table(("", *heads), cells, "text-align: left")
    yield from map(paragraph, rows.notes)
    yield items(rows.problems)
    yield others(
        [f"{column.name}: {type_text(column.type)}" for column in [*columns.values()][MOST_COLUMNS:]],
        "column",
    )


@dataclass
class _Cells:
    """Arrow values as HTML, with media up to a total size.

    Attributes:
        left: the bytes left for further media.
    """

    left: int

    def of(self, value: Any, *, is_picture: bool = False) -> Markup:
        """A value, a `pyarrow.Scalar`, as HTML. With `is_picture`, lists of numbers are shown as an image."""
        types = arrow().types
        if not value.is_valid:
            return _NULL
        if types.is_binary(value.type) or types.is_large_binary(value.type):
            return self._bytes(value.as_buffer().to_pybytes())
        if types.is_struct(value.type):
            pairs = (f"{short_text(name)}: {self.of(value[name])}" for name in value)
            return Markup(", ".join(pairs))
        if is_list_type(value.type):
            return self._picture(value.values) if is_picture else self._list(value.values)
        if types.is_float32(value.type):
            return short_text(shortest(np.array([value.as_py()], np.float32))[0])
        if types.is_temporal(value.type):  # Python has no nanoseconds, and no year 10000
            return short_text(value.cast("string").as_py())
        return short_text(str(value.as_py()))

    def _bytes(self, data: bytes) -> Markup:
        form = type_name(data) or ""
        info = media_info(data, form) if form in _IMAGES or form in _SOUNDS else None
        if info is None:
            return short_text(shown_value(data, "short"))
        alt = f"{describe(data)}, {format_bytes(len(data))}"
        pixels = info.measures.get("width", 0) * info.measures.get("height", 0)
        if pixels > _MOST_PIXELS or not self._takes(len(data)):
            return short_text(alt)
        return picture(data, _IMAGES[form], alt) if form in _IMAGES else sound(data, _SOUNDS[form], alt)

    def _takes(self, size: int) -> bool:
        """Whether an image or audio of `size` bytes is shown; if so, subtracts them from `left`."""
        taken = size <= min(self.left, _MOST_BYTES_OF_ONE)
        self.left -= size if taken else 0
        return taken

    def _list(self, values: Any) -> Markup:
        """The first items; for nested lists with many items, only their type and shape."""
        leaves, shape = leaves_of(values)
        if len(shape) > 1 and len(leaves) > _MOST_ITEMS:
            return short_text(f"{leaves.type} {show_shape(shape)}")
        is_binary = arrow().types.is_large_binary(leaves.type)
        most = _MOST_MEDIA if is_binary else _MOST_ITEMS
        made = [self.of(value) for value in values[:most]]
        made += [Markup(f"... {len(values):,} in all")] if len(values) > most else []
        return Markup(f"[{', '.join(made)}]")

    def _picture(self, values: Any) -> Markup:
        """Nested lists of pixels, `[height, width, channels]`, as PNG."""
        leaves, shape = leaves_of(values)
        if not is_image_shape(shape) or leaves.null_count:
            return self._list(values)
        alt = f"{leaves.type} {show_shape(shape)}"
        if shape[0] * shape[1] > _MOST_RAW_PIXELS:  # type: ignore[operator]
            return short_text(alt)
        try:
            data = _png(to_numpy(leaves).reshape(shape))
        except MissingExtra:
            return short_text(alt)
        return picture(data, "image/png", alt) if self._takes(len(data)) else short_text(alt)


def _png(pixels: Any) -> bytes:
    """Encodes pixels `[height, width, channels]`, uint8 or uint16, as a PNG image. Raises MissingExtra."""
    pillow = images.pillow("images in a notebook")
    if pixels.dtype == np.uint16:
        pixels = (pixels >> 8).astype(np.uint8)
    buffer = io.BytesIO()
    pillow.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(buffer, "PNG")
    return buffer.getvalue()
