"""Framed records set aside on the disk until all are there, and handed out in their final order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from recordspec.wire.strings import Ints, Strings, offsets
from recordspec.writing.shuffle import Hashes

# Rows handed out at once: enough to make a copy cheap, few enough to need little memory.
_ROWS_AT_ONCE = 4096


class Spool:
    """The records of one split, in a file. In memory it keeps 32 bytes a record: size, number, hash."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("xb")
        self._sizes: list[Ints] = []
        self._rows: list[Ints] = []
        self._hashes: list[Hashes] = []
        self.bytes = 0

    def add(self, records: Strings, rows: Ints, hashed: Hashes | None) -> None:
        """Framed records, the numbers of their rows, and the hashes of their keys, if any."""
        self._file.write(records.buffer.data)
        self.bytes += len(records.buffer)
        self._sizes.append(records.sizes)
        self._rows.append(rows)
        if hashed is not None:
            self._hashes.append(hashed)

    def __len__(self) -> int:
        return sum(map(len, self._rows))

    @cached_property
    def _places(self) -> Ints:
        """Where each record begins and ends, once all are there."""
        return offsets(np.concatenate([np.zeros(0, np.int64), *self._sizes]))

    @property
    def rows(self) -> Ints:
        """The row numbers of the records."""
        return np.concatenate([np.zeros(0, np.int64), *self._rows])

    @property
    def hashes(self) -> Hashes:
        """The hashes of their keys, uint64 `[n, 2]`."""
        return np.concatenate([np.zeros((0, 2), np.uint64), *self._hashes])

    def read(self, order: Ints | None, start: int, stop: int) -> Iterator[Strings]:
        """Records `start` to `stop` of the order (None: as they came), some at a time."""
        self._file.flush()
        if start == stop:
            return
        records = Strings(np.memmap(self._path, np.uint8, "r"), self._places)
        for first in range(start, stop, _ROWS_AT_ONCE):
            last = min(first + _ROWS_AT_ONCE, stop)
            yield records.part(first, last) if order is None else records.take(order[first:last])

    def close(self) -> None:
        """Removes what was set aside."""
        with contextlib.suppress(OSError):  # a full disk, which has been told already
            self._file.close()
        self._path.unlink(missing_ok=True)
