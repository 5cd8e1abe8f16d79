"""Messages of many records at once: a message is a list of pieces, and `join` lays them down.

A piece is what stands at one place of the message in every record: constant bytes, a varint, or a
payload. While every piece has one size, a batch is a matrix that NumPy fills column by column. Where
sizes differ, short pieces are padded to the widest and squeezed together by a mask; long ones are
copied one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.wire.strings import Bytes, Ints, Strings, offsets

Mask = npt.NDArray[np.bool_]
Sizes = int | Ints

# A padded byte costs about 1 ns to mask and a slice of its own about 150 ns a row (measured on one
# 2.1 GHz core), so a payload that varies is padded only up to this width.
_WIDEST_PADDED = 160


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Bytes at one place in `rows` records.

    `data` is uint8 `[width]` (the same in each), `[rows, width]` (padded at the right), or
    `[bytes]` with `flat` (end to end). `sizes` says how many bytes each record has of it.
    """

    data: Bytes
    sizes: Sizes
    width: int
    flat: bool = False
    present: Mask | None = None

    @property
    def padded(self) -> bool:
        """Whether it may be laid down in a matrix at all."""
        return self.fixed or self.width <= _WIDEST_PADDED or _constant(self)

    @property
    def fixed(self) -> bool:
        return isinstance(self.sizes, int) and self.present is None

    def each(self) -> Sizes:
        """Bytes in each record, 0 where absent."""
        if self.present is None:
            return self.sizes
        return np.where(self.present, self.sizes, 0)


def const(data: bytes) -> Piece:
    """The same bytes in every record."""
    return Piece(data=np.frombuffer(data, np.uint8), sizes=len(data), width=len(data))


def varint(values: Sizes) -> Piece:
    """One varint a record."""
    if isinstance(values, int):
        return const(varint_bytes(values))
    matrix, sizes = varints(values.view(np.uint64))
    return Piece(data=matrix, sizes=sizes, width=matrix.shape[1])


def payload(data: Any, sizes: Sizes) -> Piece:
    """Bytes of any length, given end to end."""
    width = sizes if isinstance(sizes, int) else int(sizes.max(initial=0))
    return Piece(data=np.frombuffer(data, np.uint8), sizes=sizes, width=width, flat=True)


def field(tag: int, pieces: list[Piece]) -> list[Piece]:
    """The pieces as one length-delimited field (its tag below 16)."""
    size = total(pieces)
    key = bytes([tag << 3 | 2])
    if isinstance(size, int):
        return [const(key + varint_bytes(size)), *pieces]
    return [const(key), varint(size), *pieces]


def where(present: Mask, pieces: Iterable[Piece]) -> list[Piece]:
    """The pieces, absent from the records where `present` is false."""
    return [
        replace(piece, present=present if piece.present is None else np.logical_and(piece.present, present))
        for piece in pieces
    ]


def total(pieces: Iterable[Piece]) -> Sizes:
    """Bytes of all the pieces in each record."""
    constant, varying = 0, None
    for piece in pieces:
        size = piece.each()
        if isinstance(size, int):
            constant += size
        else:
            varying = size if varying is None else varying + size
    return constant if varying is None else varying + constant


def join(pieces: list[Piece], rows: int) -> Strings:
    """The records, in a buffer that may be written to."""
    pieces = _merge(pieces)
    if all(piece.fixed for piece in pieces):
        return Strings.rows(_padded(pieces, rows)[0])
    runs: list[list[Piece]] = [[]]
    for piece in pieces:
        if piece.padded:
            runs[-1].append(piece)
        else:
            runs += [[piece], []]
    segments = [_segment(run, rows) for run in runs if run]
    return segments[0] if len(segments) == 1 else _interleave(segments)


def varint_bytes(value: int) -> bytes:
    """One varint."""
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def varints(values: npt.NDArray[np.uint64]) -> tuple[Bytes, Sizes]:
    """The varints of uint64 `[n]`: uint8 `[n, widest]`, padded at the right, and their sizes."""
    width = max(1, (int(values.max(initial=0)).bit_length() + 6) // 7)
    if width == 1:
        return values.astype(np.uint8)[:, None], 1
    if width <= 4:
        values = values.astype(np.uint32)  # half the memory traffic
    matrix = np.empty((len(values), width), np.uint8)
    sizes = np.ones(len(values), np.int64)
    rest = values
    for place in range(width):
        matrix[:, place] = rest.astype(np.uint8)
        rest = rest >> np.uint8(7)
        more = rest != 0
        matrix[:, place] &= 0x7F
        matrix[:, place] |= more.view(np.uint8) << 7
        sizes += more
    return matrix, width if bool((sizes == width).all()) else sizes


def squeeze(matrix: Bytes, sizes: Sizes) -> Bytes:
    """The first `sizes` bytes of every row, end to end."""
    if isinstance(sizes, int) and sizes == matrix.shape[1]:
        return matrix.reshape(-1)
    return matrix[_within(sizes, matrix.shape[1], len(matrix))]


def _within(sizes: Sizes, width: int, rows: int) -> Mask:
    column = np.broadcast_to(np.asarray(sizes), (rows,))[:, None]
    return np.arange(width) < column


def _merge(pieces: list[Piece]) -> list[Piece]:
    """Constants side by side become one: a NumPy call for each costs more than their bytes."""
    merged: list[Piece] = []
    for piece in pieces:
        last = merged[-1] if merged else None
        if last is not None and _constant(last) and _constant(piece) and last.present is piece.present:
            data = np.concatenate([last.data, piece.data])
            merged[-1] = replace(last, data=data, sizes=len(data), width=len(data))
        elif piece.width:
            merged.append(piece)
    return merged


def _constant(piece: Piece) -> bool:
    return piece.data.ndim == 1 and not piece.flat


def _segment(pieces: list[Piece], rows: int) -> Strings:
    """Pieces that may be padded, or one that may not, as a string for each record."""
    if not pieces[0].padded:
        return Strings(pieces[0].data, offsets(_for_each(pieces[0].each(), rows)))
    matrix, masks = _padded(pieces, rows)
    if not masks:
        return Strings.rows(matrix)
    mask = np.ones(matrix.shape, np.bool_)
    for place, kept in masks:
        mask[:, place] &= kept
    return Strings(matrix[mask], offsets(_for_each(total(pieces), rows)))


def _padded(pieces: list[Piece], rows: int) -> tuple[Bytes, list[tuple[slice, Mask]]]:
    """All pieces side by side, padded to their widths; and what of which columns is no padding."""
    places = _places(pieces)
    template = np.zeros(places[-1].stop, np.uint8)
    for piece, place in zip(pieces, places, strict=True):
        if _constant(piece):
            template[place] = piece.data
    matrix = np.empty((rows, len(template)), np.uint8)
    matrix[:] = template
    masks = _absences(pieces, places)
    for piece, place in zip(pieces, places, strict=True):
        if not _constant(piece):
            kept = _fill(piece, matrix[:, place])
            if kept is not None:
                masks.append((place, kept))
    return matrix, masks


def _places(pieces: list[Piece]) -> list[slice]:
    ends = np.cumsum([piece.width for piece in pieces]).tolist()
    return [slice(end - piece.width, end) for piece, end in zip(pieces, ends, strict=True)]


def _absences(pieces: list[Piece], places: list[slice]) -> list[tuple[slice, Mask]]:
    """The masks of pieces that some records lack; of neighbours with the same one, one for all."""
    spans: list[tuple[slice, Mask]] = []
    for piece, place in zip(pieces, places, strict=True):
        if piece.present is None:
            continue
        column = piece.present[:, None]
        if spans and spans[-1][0].stop == place.start and spans[-1][1].base is piece.present:
            spans[-1] = (slice(spans[-1][0].start, place.stop), column)
        else:
            spans.append((place, column))
    return spans


def _fill(piece: Piece, block: Bytes) -> Mask | None:
    """Lays down a piece; what of it is no padding, unless all of it is."""
    if isinstance(piece.sizes, int):
        block[:] = piece.data.reshape(block.shape) if piece.flat else piece.data
        return None
    kept = _within(piece.sizes, piece.width, len(block))
    if piece.flat:
        block[kept] = piece.data  # both run row by row, so the bytes fall where they belong
    else:
        block[:] = piece.data
    return kept


def _for_each(sizes: Sizes, rows: int) -> Ints:
    return np.broadcast_to(np.asarray(sizes, np.int64), (rows,))


def _interleave(segments: list[Strings]) -> Strings:
    """String `i` of every segment, for every i, end to end."""
    views = [segment.views() for segment in segments]
    sizes = segments[0].sizes.copy()
    for segment in segments[1:]:
        sizes += segment.sizes
    data = bytearray().join(chain.from_iterable(zip(*views, strict=True)))
    return Strings(data, offsets(sizes))
