"""Messages of many records at once: a message is a list of parts, and `join` lays them down.

A part is the same place of the message in every record: constant bytes, or a piece, which
varies. The parts are columns of a matrix that NumPy fills one by one. Pieces of different sizes
are padded to the widest, and the padding is removed afterwards; long pieces are copied one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from recordspec.wire.strings import (
    Bytes,
    Ints,
    Mask,
    Sizes,
    Strings,
    items,
    offsets,
    sliding_windows,
    squeeze,
)
from recordspec.wire.varints import varint_bytes, varints

# A piece that varies is padded only up to this width. A slice of its own costs 200 ns a row, a padded
# byte about 0.1 ns in each of four copies (measured on one 2.1 GHz core), and all of them must stay in
# the cache.
WIDEST_PADDED = 256


@dataclass(frozen=True, kw_only=True)
class VaryingPart:
    """Bytes that vary, at one place in many records.

    `data` is uint8 `[rows, width]`, padded at the right, or Strings, none longer than `width`. `sizes`
    says how many bytes each record has of it.
    """

    data: Bytes | Strings
    sizes: Sizes
    width: int

    def lay(self, block: Bytes) -> None:
        """Writes it to uint8 `[rows, width]`."""
        data = self.data.padded(self.width) if isinstance(self.data, Strings) else self.data
        items(block)[:] = items(data)


MessagePart = bytes | VaryingPart


def payload(strings: Strings) -> MessagePart:
    """A string a record."""
    sizes = strings.each
    width = sizes if isinstance(sizes, int) else int(sizes.max(initial=0))
    if not width:
        return b""
    if isinstance(sizes, int) and not (strings.is_lazy and width > WIDEST_PADDED):
        return VaryingPart(data=strings.buffer.reshape(-1, width), sizes=width, width=width)
    return VaryingPart(data=strings, sizes=sizes, width=width)


def numbers(data: Bytes, sizes: Sizes) -> MessagePart:
    """Bytes given end to end, of which each record has `sizes`."""
    if not isinstance(sizes, int):
        return payload(Strings(data, offsets(sizes)))
    return VaryingPart(data=data.reshape(-1, sizes), sizes=sizes, width=sizes) if sizes else b""


def field(tag: int, parts: list[MessagePart]) -> list[MessagePart]:
    """The parts as one length-delimited field (its tag below 16)."""
    *first, last = header(tag, total(parts))
    return [*first, *after(last, parts)]


def header(tag: int, sizes: Sizes) -> list[MessagePart]:
    """The header of a length-delimited field of these sizes."""
    key = bytes([tag << 3 | 2])
    if isinstance(sizes, int):
        return [key + varint_bytes(sizes)]
    matrix, widths = varints(sizes.view(np.uint64))
    return [key, VaryingPart(data=matrix, sizes=widths, width=matrix.shape[1])]


def after(first: MessagePart, parts: list[MessagePart]) -> list[MessagePart]:
    """The parts after another one. Bytes next to bytes become one part: each costs a little."""
    if parts and isinstance(first, bytes) and isinstance(parts[0], bytes):
        return [first + parts[0], *parts[1:]]
    return [first, *parts]


def where(present: Mask, parts: list[MessagePart]) -> MessagePart:
    """The messages of the rows that are `present`, as a part of all rows: absent from the others."""
    messages = join(parts, int(np.count_nonzero(present)))
    sizes = np.zeros(len(present), np.int64)
    sizes[present] = messages.sizes
    return payload(Strings(messages.buffer, offsets(sizes)))


def total(parts: Iterable[MessagePart]) -> Sizes:
    """Bytes of all the parts in each record."""
    constant, varying = 0, None
    for part in parts:
        size = len(part) if isinstance(part, bytes) else part.sizes
        if isinstance(size, int):
            constant += size
        else:
            varying = size if varying is None else varying + size
    return constant if varying is None else varying + constant


def join(parts: list[MessagePart], rows: int) -> Strings:
    """The records, in a buffer that may be written to."""
    if all(isinstance(part, bytes) or _fills_its_place(part) for part in parts):
        return Strings.rows(_side_by_side(parts, rows))
    runs: list[list[MessagePart]] = [[]]
    for part in parts:
        if isinstance(part, VaryingPart) and _long(part):
            runs += [[part], []]
        else:
            runs[-1].append(part)
    segments = [_segment(run, rows) for run in runs if run]
    return segments[0] if len(segments) == 1 else _interleave(segments)


def _fills_its_place(piece: VaryingPart) -> bool:
    return isinstance(piece.sizes, int) and not isinstance(piece.data, Strings)


def _long(piece: VaryingPart) -> bool:
    """Whether it is better not padded, nor moved."""
    return piece.width > WIDEST_PADDED and (isinstance(piece.data, Strings) or _fills_its_place(piece))


def _segment(parts: list[MessagePart], rows: int) -> Strings:
    """One long piece, or parts that are not, as a string for each record."""
    first = parts[0]
    if isinstance(first, VaryingPart) and _long(first):
        return first.data if isinstance(first.data, Strings) else Strings.rows(first.data)
    matrix = _side_by_side(parts, rows)
    if all(isinstance(_size(part), int) for part in parts):
        return Strings.rows(matrix)
    return squeeze(matrix, _close_up(matrix, parts))


def _side_by_side(parts: list[MessagePart], rows: int) -> Bytes:
    """All parts, each as wide as its widest, uint8 `[rows, width]`."""
    template = b"".join(part if isinstance(part, bytes) else bytes(part.width) for part in parts)
    matrix = np.empty((rows, len(template)), np.uint8)
    matrix[:] = np.frombuffer(template, np.uint8)
    stop = 0
    for part in parts:
        start, stop = stop, stop + _width(part)
        if isinstance(part, VaryingPart):
            part.lay(matrix[:, start:stop])
    return matrix


def _close_up(matrix: Bytes, parts: list[MessagePart]) -> Ints:
    """Moves what follows padding up against it, in every row; the sizes of the rows then."""
    rows, width = matrix.shape
    begins = np.arange(rows, dtype=np.int64) * width
    ends = begins.copy()
    for run, sizes in _runs(parts):
        if run.start:
            sliding_windows(matrix.reshape(-1), run.stop - run.start)[ends] = items(matrix[:, run]).copy()
        ends += sizes
    sizes_of_rows: Ints = ends - begins
    return sizes_of_rows


def _runs(parts: list[MessagePart]) -> Iterator[tuple[slice, Sizes]]:
    """The columns of parts with padding only at their end, and the bytes of each row without padding."""
    start = stop = 0
    for part in parts:
        stop += _width(part)
        size = _size(part)
        if not isinstance(size, int):
            yield slice(start, stop), size + (stop - start - _width(part))
            start = stop
    if start < stop:
        yield slice(start, stop), stop - start


def _size(part: MessagePart) -> Sizes:
    return len(part) if isinstance(part, bytes) else part.sizes


def _width(part: MessagePart) -> int:
    return len(part) if isinstance(part, bytes) else part.width


def _interleave(segments: list[Strings]) -> Strings:
    """String `i` of every segment, for every i, end to end."""
    sizes = segments[0].sizes.copy()
    for segment in segments[1:]:
        sizes += segment.sizes
    views = [segment.views() for segment in segments]
    return Strings(bytearray().join(chain.from_iterable(zip(*views, strict=True))), offsets(sizes))
