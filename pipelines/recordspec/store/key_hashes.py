"""The hashes of the keys of a dataset's rows, `keys.bin`: little-endian uint64 `[rows, 2]`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from recordspec.locations import Location, open_file, sync
from recordspec.remote import RemotePath
from recordspec.wire.hashes import Words

_WORD = np.dtype("<u8")
_ROW = 2 * _WORD.itemsize
# Rows that are read at once.
_AT_ONCE = 1 << 20


def add(path: Path, hashed: Words) -> None:
    """Appends the hashes of some rows, uint64 `[2, n]`."""
    with path.open("ab") as file:
        file.write(np.ascontiguousarray(hashed.T, _WORD).data)


def rows(path: Path | RemotePath) -> int:
    """The number of hashes in a file; 0 without one."""
    return path.stat().st_size // _ROW if path.exists() else 0


def read(path: Path | RemotePath, start: int, count: int) -> Words:
    """Reads the hashes of some rows, uint64 `[count, 2]`. For no rows, the file need not exist."""
    if not count:
        return np.zeros((0, 2), np.uint64)
    with open_file(path) as file:
        file.seek(start * _ROW)
        return np.frombuffer(file.read(count * _ROW), _WORD).reshape(count, 2)


def in_range(path: Location, low: np.uint64, high: np.uint64) -> tuple[Words, Words]:
    """The hashes whose first word is in a range, uint64 `[n, 2]`, and their rows, uint64 `[n]`."""
    hashed, places = [np.zeros((0, 2), np.uint64)], [np.zeros(0, np.uint64)]
    for start in range(0, rows(path), _AT_ONCE):
        known = read(path, start, min(_AT_ONCE, rows(path) - start))
        within = np.flatnonzero((known[:, 0] >= low) & (known[:, 0] <= high))
        hashed.append(known[within])
        places.append((within + start).astype(np.uint64))
    return np.concatenate(hashed), np.concatenate(places)


def ranges(count: int) -> Iterator[tuple[np.uint64, np.uint64]]:
    """Divides the hashes into ranges, at least one, of first and last hash: hashes are uniform."""
    edges = [(index << 64) // max(1, count) for index in range(max(1, count) + 1)]
    for low, high in pairwise(edges):
        yield np.uint64(low), np.uint64(high - 1)


def write(path: Path, parts: Iterable[Words]) -> str:
    """Writes hashes, uint64 `[n, 2]`, one part after another, durably. Returns the file's SHA-256."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for part in parts:
            data = np.ascontiguousarray(part, _WORD).data
            file.write(data)
            digest.update(data)
        sync(file)
    return digest.hexdigest()
