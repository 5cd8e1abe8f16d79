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
        return self.fixed or self.width <= _WIDEST_PADDED

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
        return _matrix(pieces, rows)
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
    return matrix, sizes


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


def _matrix(pieces: list[Piece], rows: int) -> Strings:
    matrix = np.empty((rows, sum(piece.width for piece in pieces)), np.uint8)
    start = 0
    for piece in pieces:
        block = matrix[:, start : start + piece.width]
        block[:] = piece.data.reshape(rows, piece.width) if piece.flat else piece.data
        start += piece.width
    return Strings.rows(matrix)


def _segment(pieces: list[Piece], rows: int) -> Strings:
    if not pieces[0].padded:
        sizes = np.broadcast_to(np.asarray(pieces[0].each(), np.int64), (rows,))
        return Strings(pieces[0].data, offsets(sizes))
    if all(piece.fixed for piece in pieces):
        return _matrix(pieces, rows)
    matrix = np.empty((rows, sum(piece.width for piece in pieces)), np.uint8)
    mask = np.ones(matrix.shape, np.bool_)
    start = 0
    for piece in pieces:
        stop = start + piece.width
        _fill(piece, matrix[:, start:stop], mask[:, start:stop])
        start = stop
    return Strings(matrix[mask], offsets(_sizes(pieces, rows)))


def _sizes(pieces: list[Piece], rows: int) -> Ints:
    return np.broadcast_to(np.asarray(total(pieces), np.int64), (rows,))


def _fill(piece: Piece, block: Bytes, mask: Mask) -> None:
    sizes = piece.each()
    if not isinstance(sizes, int):
        mask[:] = _within(sizes, piece.width, len(block))
    if not piece.flat:
        block[:] = piece.data
    elif isinstance(sizes, int):
        block[:] = piece.data.reshape(len(block), piece.width)
    else:
        block[mask] = piece.data  # both run row by row, so the bytes fall where they belong


def _interleave(segments: list[Strings]) -> Strings:
    """String `i` of every segment, for every i, end to end."""
    views = [segment.views() for segment in segments]
    sizes = segments[0].sizes.copy()
    for segment in segments[1:]:
        sizes += segment.sizes
    data = bytearray().join(chain.from_iterable(zip(*views, strict=True)))
    return Strings(data, offsets(sizes))
