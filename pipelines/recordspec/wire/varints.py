"""Varints: whole numbers in groups of 7 bits, least first, each in a byte; its top bit says: more follow.

The varint of a number of up to 56 bits is computed within one word, with whole arrays: the groups are
spread to bytes, and the top bits set. Those of small numbers, which tokens and labels are, are looked up,
and laid down four at a time.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.wire.strings import Bytes, Ints, Sizes, offsets, one_size, sliding_windows, squeeze

VarintWords = npt.NDArray[Any]  # uint32 or uint64

# This many words, and their results, stay in the cache: 3 times as fast as 250k at once.
_AT_ONCE = 1 << 14
_WORD_BITS = 56  # of a number whose varint takes 8 bytes
# Numbers of no more bits are looked up. The table takes 1 MiB: so it stays in the second cache.
_TABLED_BITS = 18
_QUAD = 4  # of up to 3 bytes each
_BITS = 24  # in a word of the table, the varint is below, and above it how many bits it has


def varint_bytes(value: int) -> bytes:
    """One varint."""
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def read_varint(data: bytes | memoryview, place: int) -> tuple[int, int]:
    """The varint that begins at a place, and the byte after it."""
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def varints(values: npt.NDArray[np.uint64]) -> tuple[Bytes, Sizes]:
    """The varints of uint64 `[n]`: uint8 `[n, widest]`, padded at the right, and their sizes."""
    width = _groups(_widest(values))
    if width == 1:
        return values.astype(np.uint8)[:, None], 1
    matrix, sizes = _matrix(values, width)
    return matrix, one_size(sizes.astype(np.int64))


def packed(values: npt.NDArray[np.uint64], lengths: Sizes) -> tuple[Bytes, Sizes]:
    """The varints of uint64 `[n]` end to end, uint8 `[bytes]`, and the bytes of each group.

    `lengths` says how many values each group has; together they have all.
    """
    bits = _widest(values)
    width = _groups(bits)
    if width == 1:
        return values.astype(np.uint8), lengths
    every = isinstance(lengths, int)
    bounds = np.arange(0, len(values) + 1, lengths) if isinstance(lengths, int) else offsets(lengths)
    laid = _by_table if bits <= _TABLED_BITS else _by_word
    data, places = laid(values, width, bounds)
    sizes = np.diff(places)
    return data, one_size(sizes) if every else sizes


def _widest(values: npt.NDArray[np.uint64]) -> int:
    """Bits of the largest number."""
    return int(np.bitwise_or.reduce(values)).bit_length()


def _groups(bits: int) -> int:
    """The bytes of the varint of a number with this many bits."""
    return max(1, (bits + 6) // 7)


def _by_table(values: npt.NDArray[np.uint64], width: int, bounds: Ints) -> tuple[Bytes, Ints]:
    """The varints of numbers that are all in the table, and where those at `bounds` begin."""
    count = -(-len(values) // _QUAD)
    data = np.empty(count * _QUAD * width + 16, np.uint8)
    starts = np.zeros(count + 1, np.int64)
    for first in range(0, len(values), _AT_ONCE):
        quads, sizes = _quads(values[first : first + _AT_ONCE])
        places = starts[first // _QUAD :][: len(quads) + 1]
        np.cumsum(sizes, out=places[1:])
        places[1:] += places[0]
        # each covers what is too much of the one before
        sliding_windows(data, 16)[places[:-1]] = quads
    places = _starts_of(values, starts, bounds)
    return data[: places[-1]], places


def _quads(values: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.void], Ints]:
    """Every four varints end to end, 16 bytes for each, and how many of these they take.

    At the end zeros make up for what is missing.
    """
    if len(values) % _QUAD:
        values = np.append(values, np.zeros(-len(values) % _QUAD, np.uint64))
    # `clip` is the fastest mode, as NumPy need not look for bad indices first
    words = _table().take(values.view(np.int64), mode="clip")
    twos = words.astype(words.dtype.newbyteorder("<"), copy=False).view("<u8")
    low, high = twos & ((1 << _BITS) - 1), twos >> 32 & ((1 << _BITS) - 1)
    bits = twos >> _BITS & 0xFF
    pairs = low | high << bits
    bits += twos >> 32 + _BITS
    first, second, shift = pairs[::2], pairs[1::2], bits[::2]
    quads = np.empty((len(first), 2), "<u8")
    quads[:, 0] = first | second << shift
    quads[:, 1] = second >> 64 - shift
    return quads.view("V16")[:, 0], (shift + bits[1::2] >> 3).view(np.int64)


def _starts_of(values: npt.NDArray[np.uint64], starts: Ints, bounds: Ints) -> Ints:
    """Where the varints at `bounds` begin, by where every fourth does."""
    quads, within = np.divmod(bounds, _QUAD)
    places = starts[quads]
    for back in range(1, _QUAD):
        later = within >= back
        places[later] += _table()[values[bounds[later] - back].view(np.int64)] >> _BITS + 3
    return places


@cache
def _table() -> npt.NDArray[np.uint32]:
    """The varint of every number of `_TABLED_BITS`, and above its bytes how many bits they have."""
    words, sizes = _words(np.arange(1 << _TABLED_BITS, dtype=np.uint32), 3)
    table: npt.NDArray[np.uint32] = words | sizes.astype(np.uint32) << _BITS + 3
    return table


def _by_word(values: npt.NDArray[np.uint64], width: int, bounds: Ints) -> tuple[Bytes, Ints]:
    """The varints of any numbers, and where those at `bounds` begin."""
    starts = range(0, len(values), _AT_ONCE)
    parts = [_packed(values[start : start + _AT_ONCE], width) for start in starts]
    places = offsets(np.concatenate([sizes for _, sizes in parts]))
    return np.concatenate([data for data, _ in parts]), places[bounds]


def _packed(values: npt.NDArray[np.uint64], width: int) -> tuple[Bytes, Bytes]:
    if width > 4:
        matrix, sizes = _matrix(values, width)
        return squeeze(matrix, sizes).buffer, sizes
    words, sizes = _words(values.astype(np.uint32), width)
    pairs, lengths = _pairs(words, sizes)
    return squeeze(_bytes(pairs), lengths).buffer, sizes


def _matrix(values: npt.NDArray[np.uint64], width: int) -> tuple[Bytes, Bytes]:
    """The varints, uint8 `[n, width]`, and their sizes, uint8 `[n]`."""
    if width <= 4:
        words, sizes = _words(values.astype(np.uint32), width)
        return _bytes(words)[:, :width], sizes
    if width <= 8:
        words, sizes = _words(values, width)
        return _bytes(words)[:, :width], sizes
    more = values >= (1 << _WORD_BITS)
    first, sizes = _words(values & ((1 << _WORD_BITS) - 1), 8)
    first[more] |= 0x8080808080808080
    rest, rest_sizes = _words(values >> _WORD_BITS, 2)
    matrix = np.concatenate([_bytes(first), _bytes(rest)[:, : width - 8]], axis=1)
    return matrix, np.where(more, 8 + rest_sizes, sizes)


def _words(values: VarintWords, width: int) -> tuple[VarintWords, Bytes]:
    """The varints of numbers of at most `width` groups, each in one word, and their sizes."""
    words = values.copy()
    sizes = np.ones(len(values), np.uint8)
    for place in range(1, width):
        more = values >= (1 << 7 * place)
        sizes += more.view(np.uint8)
        top = 8 * place - 1
        words += words & (-1 << top & (1 << 8 * words.itemsize) - 1)  # adding a number to itself shifts it
        words |= more.astype(words.dtype) << top
    return words, sizes


def _pairs(words: VarintWords, sizes: Bytes) -> tuple[VarintWords, Bytes]:
    """Every two varints of up to 4 bytes in one word of 8: half as many to lay down."""
    if len(words) % 2:
        words, sizes = np.append(words, words[:1]), np.append(sizes, np.uint8(0))
    shifts = (sizes[::2] << 3).astype(np.uint64)
    pairs = words[::2] | words[1::2].astype(np.uint64) << shifts
    return pairs, sizes[::2] + sizes[1::2]


def _bytes(words: VarintWords) -> Bytes:
    """VarintWords as uint8 `[n, bytes of a word]`."""
    little = words.astype(words.dtype.newbyteorder("<"), copy=False)
    return little.view(np.uint8).reshape(-1, words.itemsize)
