"""Byte strings laid end to end in one buffer: encoded records, and columns of strings."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec._arrow import arrow

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Sizes = int | Ints  # of many things: one number where all have it

# As text, a byte takes up to 4.
_DECODED_AT_ONCE = 1 << 20


class Strings:
    """`n` byte strings in one buffer; string `i` is `buffer[offsets[i]:offsets[i + 1]]`.

    `buffer` is any object with the buffer protocol, viewed as uint8 `[bytes]`; `offsets` is int64
    `[n + 1]`, ascending from 0.
    """

    __slots__ = ("_buffer", "_parts", "_width", "offsets")

    def __init__(self, buffer: Any, offsets: Ints) -> None:
        held: Bytes = buffer if isinstance(buffer, np.ndarray) else np.frombuffer(buffer, np.uint8)
        self._buffer: Bytes | None = held
        self._parts: Sequence[bytes] = ()
        self._width: int | None = None  # where it is known that all have it
        self.offsets = offsets

    @classmethod
    def of(cls, strings: Sequence[bytes]) -> Strings:
        """The strings of a list. They are joined when `buffer` is first used, so that long ones are copied
        once only, into their records."""
        made = cls(b"", offsets(lengths_of(strings)))
        made._buffer, made._parts = None, strings
        return made

    @classmethod
    def rows(cls, matrix: Bytes) -> Strings:
        """The rows of uint8 `[n, width]`."""
        count, width = matrix.shape
        made = cls(matrix.reshape(-1), np.arange(count + 1, dtype=np.int64) * width)
        made._width = width
        return made

    @classmethod
    def joined(cls, many: Sequence[Strings]) -> Strings:
        """The strings of all of these, one after the other."""
        sizes = np.concatenate([strings.sizes for strings in many])
        return cls(np.concatenate([strings.buffer for strings in many]), offsets(sizes))

    @property
    def buffer(self) -> Bytes:
        """The bytes of all."""
        if self._buffer is None:
            self._buffer, self._parts = np.frombuffer(b"".join(self._parts), np.uint8), ()
        return self._buffer

    @property
    def is_lazy(self) -> bool:
        """Whether the strings are not joined in a buffer yet."""
        return self._buffer is None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> bytes:
        return self.buffer[self.offsets[index] : self.offsets[index + 1]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        return map(bytes, self.views())

    @property
    def sizes(self) -> Ints:
        """Bytes of each string, int64 `[n]`."""
        return np.diff(self.offsets)

    @property
    def each(self) -> Sizes:
        """Bytes of each string, as one number where all are equal."""
        return one_size(self.sizes) if self._width is None else self._width

    def views(self) -> Sequence[bytes | memoryview]:
        """Each string, without a copy."""
        if self._buffer is None:
            return self._parts
        view = self._buffer.data
        places = self.offsets.tolist()
        return [view[start:stop] for start, stop in pairwise(places)]

    def inner(self, head: int, tail: int) -> list[memoryview]:
        """Each string without its first `head` and last `tail` bytes, and without a copy."""
        view = self.buffer.data
        starts, stops = (self.offsets[:-1] + head).tolist(), (self.offsets[1:] - tail).tolist()
        return [view[start:stop] for start, stop in zip(starts, stops, strict=True)]

    def part(self, start: int, stop: int) -> Strings:
        """Strings `start` to `stop`, without a copy."""
        if self._buffer is None:
            return Strings.of(self._parts[start:stop])
        places = self.offsets[start : stop + 1]
        part = Strings(self._buffer[places[0] : places[-1]], places - places[0])
        part._width = self._width
        return part

    def take(self, indices: Ints) -> Strings:
        """The strings at `indices`, in that order, in a buffer that may be written to."""
        starts, stops = self.offsets[indices], self.offsets[indices + 1]
        sizes = one_size(stops - starts)
        if isinstance(sizes, int) and sizes:
            taken = sliding_windows(self.buffer, sizes)[starts]
            return Strings.rows(taken.view(np.uint8).reshape(-1, sizes))
        view = self.buffer.data
        parts = [view[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
        return Strings(bytearray().join(parts), offsets(stops - starts))

    def padded(self, width: int) -> Bytes:
        """The strings as uint8 `[n, width]`, none longer than that; the bytes after a string are
        undefined."""
        # `width` bytes from where each begins, so that the last ones need more after them
        buffer = np.concatenate([self.buffer, np.zeros(width, np.uint8)])
        return sliding_windows(buffer, width)[self.offsets[:-1]].view(np.uint8).reshape(-1, width)


def to_arrow(strings: Strings) -> Any:
    """Strings as an Arrow array of `large_binary`, without a copy."""
    pyarrow = arrow()
    buffers = [pyarrow.py_buffer(strings.offsets), pyarrow.py_buffer(strings.buffer)]
    return pyarrow.Array.from_buffers(pyarrow.large_binary(), len(strings), [None, *buffers])


def squeeze(matrix: Bytes, sizes: npt.NDArray[np.integer[Any]]) -> Strings:
    """The first `sizes` bytes of every row of uint8 `[n, width]`, end to end.

    Whole rows are written in order, so that each overwrites the padding of the previous one. That is
    twice as fast as to pick the bytes out by a mask.
    """
    width = matrix.shape[1]
    places = offsets(sizes)
    buffer = np.empty(int(places[-1]) + width, np.uint8)
    sliding_windows(buffer, width)[places[:-1]] = items(matrix)
    return Strings(buffer[: places[-1]], places)


def prefixes(strings: Strings, size: int) -> Strings:
    """The first `size` bytes of each string, or all of a shorter one."""
    sizes = strings.sizes
    if int(sizes.max(initial=0)) <= size:
        return strings
    view, kept, starts = strings.buffer.data, np.minimum(sizes, size), strings.offsets[:-1]
    pairs = zip(starts.tolist(), (starts + kept).tolist(), strict=True)
    return Strings(b"".join([view[start:stop] for start, stop in pairs]), offsets(kept))


def are_text(strings: Strings) -> bool:
    """Whether all are UTF-8: joined they are, and none begins within a character."""
    data = strings.buffer
    starts = strings.offsets[:-1][strings.sizes > 0]
    if bool((data[starts] & 0xC0 == 0x80).any()):
        return False
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(data), _DECODED_AT_ONCE):
            decoder.decode(data[start : start + _DECODED_AT_ONCE].data)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def items(matrix: Bytes) -> npt.NDArray[np.void]:
    """The rows of uint8 `[n, width]` as items, `[n]`: NumPy copies each at once, not byte by byte."""
    rows: npt.NDArray[np.void] = matrix.view(f"V{matrix.shape[1]}")[:, 0]
    return rows


def sliding_windows(buffer: Bytes, width: int) -> npt.NDArray[np.void]:
    """Item `i` is the `width` bytes from byte `i` on.

    To index it with many places reads or writes 4 ns an item, of up to 32 bytes; a slice of its own is
    70 ns.
    """
    count = max(0, len(buffer) - width + 1)
    overlapping: npt.NDArray[np.void] = np.ndarray((count,), f"V{width}", buffer, strides=(1,))
    return overlapping


def offsets(sizes: npt.NDArray[np.integer[Any]]) -> Ints:
    """Where strings of these sizes begin and end, int64 `[n + 1]`."""
    places = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=places[1:])
    return places


def ranges(starts: Ints, sizes: Ints) -> Ints:
    """The numbers of several ranges, one after the other: of each `sizes` from `starts` on."""
    return np.arange(int(sizes.sum())) + np.repeat(starts - offsets(sizes)[:-1], sizes)


def one_size(sizes: Sizes) -> Sizes:
    """The sizes, as one number where all are equal."""
    if not isinstance(sizes, int) and len(sizes) and bool((sizes == sizes[0]).all()):
        return int(sizes[0])
    return sizes


def lengths_of(values: Sequence[Any]) -> Ints:
    """`len` of every value, int64 `[n]`. Raises TypeError if one has no length."""
    return np.fromiter(map(len, values), np.int64, len(values))
