"""The keys of rows, and `keys.bin`, the file of their hashes: little-endian uint64 `[rows, 2]`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError, SpecError, StoreError, describe, nearest, system_errors
from recordspec.locations import Location, open_file, sync
from recordspec.store.manifest import KEYS_FILE, Manifest
from recordspec.wire import native
from recordspec.wire.arrays import (
    ArrowArray,
    bytes_in,
    data_of,
    is_arrow,
    is_text,
    numbers_array,
    to_binary,
    views_of,
)
from recordspec.wire.hashes import Words

_WORD = np.dtype("<u8")
_ROW = 2 * _WORD.itemsize
# Rows read at a time.
_AT_ONCE = 1 << 20


def key_bytes(columns: Mapping[str, Any], names: tuple[str, ...]) -> ArrowArray:
    """The key of each row as a large string, from the key's columns; 7 and "7" are the same key.

    Raises SpecError if there is no such column, RecordError if a row's value is missing, or is neither text
    nor a whole number.
    """
    parts = [_key_column(columns, name) for name in names]
    if len(parts) == 1:
        return parts[0]
    # each part is preceded by its length, so that ("ab", "c") differs from ("a", "bc")
    rows = zip(*map(bytes_in, parts), strict=True)
    return [b"".join(len(part).to_bytes(4, "big") + part for part in row) for row in rows]


def _key_column(columns: Mapping[str, Any], name: str) -> ArrowArray:
    values = columns.get(name)
    if values is None:
        hint = nearest(name, columns)
        raise SpecError(Problem(path=("key",), expected="a column of the rows", got=f"`{name}`", hint=hint))
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu" and values.ndim == 1:
        values = numbers_array(values)
    if is_arrow(values):
        if hasattr(values, "dictionary"):  # a dictionary entry may be null
            values = values.dictionary_decode()
        if not values.null_count and arrow().types.is_integer(values.type):
            values = values.cast(arrow().large_string())
        if not values.null_count and is_text(values):
            return to_binary(values)
        values = values.to_pylist()
    values = values.tolist() if isinstance(values, np.ndarray) else values
    return [_key_part(row, value, name) for row, value in enumerate(values)]


def _key_part(row: int, value: Any, name: str) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return value
    short = isinstance(value, (int, np.integer)) and int(value).bit_length() < 4096
    if short and not isinstance(value, bool):
        return str(int(value)).encode()
    problem = Problem(path=(name,), expected="a key: text or a whole number", got=describe(value))
    raise RecordError(problem.at(f"row {row}"), row)


def hashes(keys: ArrowArray, head: int = 0, tail: int = 0) -> Words:
    """128-bit hashes (BLAKE2b) of keys, large strings, without their first `head` and their last `tail`
    bytes, uint64 `[n, 2]`."""
    if (library := native.library()) is not None:
        buffer, places = data_of(keys)
        hashed = np.empty((len(keys), 2), np.uint64)
        starts, stops = native.ints(places[:-1] + head), native.ints(places[1:] - tail)
        library.rs_keys(*map(native.at, (buffer, starts, stops)), len(keys), native.at(hashed))
        return hashed
    digests = b"".join([hashlib.blake2b(key, digest_size=16).digest() for key in views_of(keys, head, tail)])
    return np.frombuffer(digests, ">u8").astype(np.uint64).reshape(-1, 2)


def add(path: Path, hashed: Words) -> None:
    """Appends hashes of rows to a file, uint64 `[2, n]`."""
    with path.open("ab") as file:
        file.write(np.ascontiguousarray(hashed.T, _WORD).data)


def rows(path: Location) -> int:
    """The number of hashes in a file. Raises StoreError, also if the file does not exist: as a file without
    hashes, it would say that no row has a key."""
    with system_errors("read", path):
        return path.stat().st_size // _ROW


def whole(folder: Location, manifest: Manifest) -> Location | None:
    """The file with the hashes of the keys of a dataset; None unless it has one hash for each row."""
    path = folder / manifest.name_of(KEYS_FILE)
    known = manifest.keys_sha256 is not None and path.exists()
    return path if known and rows(path) == sum(map(manifest.rows, manifest.splits)) else None


def read(path: Location, start: int, count: int) -> Words:
    """Reads the hashes of `count` rows from `start` on, uint64 `[count, 2]`. For no rows, the file need not
    exist. Raises StoreError if there are fewer.
    """
    if not count:
        return np.zeros((0, 2), np.uint64)
    with open_file(path) as file:
        file.seek(start * _ROW)
        data = file.read(count * _ROW)
    if len(data) < count * _ROW:
        expected, got = f"the keys of {start + count:,} rows", f"{start + len(data) // _ROW:,}"
        raise StoreError(Problem(where=str(path), expected=expected, got=got))
    return np.frombuffer(data, _WORD).reshape(count, 2)


def in_range(path: Location, low: np.uint64, high: np.uint64) -> tuple[Words, Words]:
    """The hashes with a first word from `low` to `high`, uint64 `[n, 2]`, and their rows, uint64 `[n]`.

    Raises StoreError if the file cannot be read.
    """
    hashed, places = [np.zeros((0, 2), np.uint64)], [np.zeros(0, np.uint64)]
    total = rows(path)
    for start in range(0, total, _AT_ONCE):
        known = read(path, start, min(_AT_ONCE, total - start))
        within = np.flatnonzero((known[:, 0] >= low) & (known[:, 0] <= high))
        hashed.append(known[within])
        places.append((within + start).astype(np.uint64))
    return np.concatenate(hashed), np.concatenate(places)


def ranges(count: int) -> Iterator[tuple[np.uint64, np.uint64]]:
    """Divides the hash values into `count` equal ranges, at least one, each a first and a last value. Hash
    values are uniform."""
    edges = [(index << 64) // max(1, count) for index in range(max(1, count) + 1)]
    for low, high in pairwise(edges):
        yield np.uint64(low), np.uint64(high - 1)


def write(path: Path, parts: Iterable[Words]) -> str:
    """Writes parts of hashes, each uint64 `[n, 2]`, in order and durably. Returns the SHA-256 of the file."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for part in parts:
            data = np.ascontiguousarray(part, _WORD).data
            file.write(data)
            digest.update(data)
        sync(file)
    return digest.hexdigest()
