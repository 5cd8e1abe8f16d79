"""Many byte strings laid end to end: how encoded records and string columns are held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]


class Strings:
    """`n` byte strings in one buffer; string `i` is `buffer[offsets[i]:offsets[i + 1]]`.

    `buffer` is anything with the buffer protocol, seen as uint8 `[bytes]`; `offsets` is int64
    `[n + 1]`, rising from 0.
    """

    __slots__ = ("buffer", "offsets")

    def __init__(self, buffer: Any, offsets: Ints) -> None:
        self.buffer: Bytes = buffer if isinstance(buffer, np.ndarray) else np.frombuffer(buffer, np.uint8)
        self.offsets = offsets

    @classmethod
    def of(cls, strings: Sequence[bytes]) -> Strings:
        """The strings of a list."""
        return cls(b"".join(strings), offsets(lengths_of(strings)))

    @classmethod
    def rows(cls, matrix: Bytes) -> Strings:
        """The rows of uint8 `[n, width]`."""
        count, width = matrix.shape
        return cls(matrix.reshape(-1), np.arange(count + 1, dtype=np.int64) * width)

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

    def views(self) -> list[memoryview]:
        """Each string, without a copy."""
        view = self.buffer.data
        places = self.offsets.tolist()
        return [view[start:stop] for start, stop in pairwise(places)]

    def part(self, start: int, stop: int) -> Strings:
        """Strings `start` to `stop`, without a copy."""
        places = self.offsets[start : stop + 1]
        return Strings(self.buffer[places[0] : places[-1]], places - places[0])

    def take(self, indices: Ints) -> Strings:
        """The strings at `indices`, in that order."""
        view = self.buffer.data
        starts, stops = self.offsets[indices], self.offsets[indices + 1]
        parts = [view[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
        return Strings(b"".join(parts), offsets(stops - starts))


def offsets(sizes: Ints) -> Ints:
    """Where strings of these sizes begin and end, int64 `[n + 1]`."""
    places = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=places[1:])
    return places


def lengths_of(values: Sequence[Any]) -> Ints:
    """`len` of every value, int64 `[n]`. Raises TypeError if one has no length."""
    return np.fromiter(map(len, values), np.int64, len(values))
