"""Where a row goes: its split, and its place in the order, as functions of its key.

Both come from a hash of the key, never from the row's position: adding rows moves no old row to
another split, and the order of the source does not matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from recordspec.wire.strings import Ints

Hashes = npt.NDArray[np.uint64]

_WORD = 1 << 64


def hashes(keys: Iterable[bytes | memoryview], purpose: str, count: int) -> Hashes:
    """128-bit hashes of keys, uint64 `[count, 2]`; `purpose` (a seed, say) makes them independent."""
    secret = purpose.encode()
    digests = b"".join(hashlib.blake2b(key, digest_size=16, key=secret).digest() for key in keys)
    return np.frombuffer(digests, ">u8").astype(np.uint64).reshape(count, 2)


def key_bytes(columns: Sequence[Sequence[Any]]) -> list[bytes]:
    """The key of each row, from the columns that make it up; 7 and "7" are one key."""
    if len(columns) == 1:
        return [_text(value) for value in columns[0]]
    # each part with its length before it, so that ("ab", "c") is not ("a", "bc")
    return [
        b"".join(len(part).to_bytes(4, "big") + part for part in map(_text, values))
        for values in zip(*columns, strict=True)
    ]


def _text(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def split_of(hashed: Hashes, splits: Mapping[str, float]) -> Ints:
    """The index of each row's split, int64 `[n]`."""
    total = sum(splits.values())
    shares = np.cumsum([weight / total for weight in splits.values()])[:-1]
    bounds = np.array([min(int(share * _WORD), _WORD - 1) for share in shares], np.uint64)
    return np.searchsorted(bounds, hashed[:, 0], side="right")


def order_of(hashed: Hashes) -> Ints:
    """The row numbers in the order of their hashes."""
    return np.lexsort((hashed[:, 1], hashed[:, 0]))


def first_equal(hashed: Hashes, order: Ints) -> tuple[int, int] | None:
    """Two rows with one hash, the earlier first, or None."""
    ranked = hashed[order]
    equal = np.flatnonzero((ranked[1:] == ranked[:-1]).all(axis=1))
    if not len(equal):
        return None
    first, second = sorted((int(order[equal[0]]), int(order[equal[0] + 1])))
    return first, second
