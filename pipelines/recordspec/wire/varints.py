"""Varints: whole numbers in groups of 7 bits, least first, each in a byte; its top bit says: more follow.

The varint of a number of up to 56 bits is computed within one word, with whole arrays: the groups are
spread to bytes, and the top bits set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.wire.strings import Bytes, Sizes, one_size, squeeze

Words = npt.NDArray[Any]  # uint32 or uint64

# So many words, and what comes of them, stay in the cache: 3 times as fast as 250k at once.
_AT_ONCE = 1 << 14
_WORD_BITS = 56  # of a number whose varint takes 8 bytes


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
    width = _widest(values)
    if width == 1:
        return values.astype(np.uint8)[:, None], 1
    matrix, sizes = _matrix(values, width)
    return matrix, one_size(sizes.astype(np.int64))


def packed(values: npt.NDArray[np.uint64]) -> tuple[Bytes, Sizes]:
    """The varints of uint64 `[n]` end to end, uint8 `[bytes]`, and their sizes."""
    width = _widest(values)
    if width == 1:
        return values.astype(np.uint8), 1
    starts = range(0, len(values), _AT_ONCE)
    parts = [_packed(values[start : start + _AT_ONCE], width) for start in starts]
    sizes = np.concatenate([sizes for _, sizes in parts])
    return np.concatenate([data for data, _ in parts]), one_size(sizes)


def _widest(values: npt.NDArray[np.uint64]) -> int:
    """Bytes of the longest varint."""
    bits = int(np.bitwise_or.reduce(values)).bit_length()
    return max(1, (bits + 6) // 7)


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


def _words(values: Words, width: int) -> tuple[Words, Bytes]:
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


def _pairs(words: Words, sizes: Bytes) -> tuple[Words, Bytes]:
    """Every two varints of up to 4 bytes in one word of 8: half as many to lay down."""
    if len(words) % 2:
        words, sizes = np.append(words, words[:1]), np.append(sizes, np.uint8(0))
    shifts = (sizes[::2] << 3).astype(np.uint64)
    pairs = words[::2] | words[1::2].astype(np.uint64) << shifts
    return pairs, sizes[::2] + sizes[1::2]


def _bytes(words: Words) -> Bytes:
    """Words as uint8 `[n, bytes of a word]`."""
    little = words.astype(words.dtype.newbyteorder("<"), copy=False)
    return little.view(np.uint8).reshape(-1, words.itemsize)
